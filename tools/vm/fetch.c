// SPDX-License-Identifier: GPL-2.0-only
/* Kernels out of the Debian archive, by apt with a configuration of our own. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "data/status.h"
#include "data/err.h"
#include "vm/apt.h"
#include "vm/fetch.h"
#include "vm/host.h"
#include "vm/kernel.h"

/* Bytes: indices, packages and the unpacked kernel. */
#define SPACE_NEEDED	(400ULL << 20)

/* True if the package is the wanted version or release, or of the series. */
static bool matches(const struct apt_package *p, const char *exact, const char *series)
{
	size_t n;

	if (exact) {
		n = strlen(exact);
		if (!strncmp(p->release, exact, n) &&
		    (!p->release[n] || !strcmp(p->release + n, "-cloud-amd64")))
			return true;
		return !strncmp(p->version, exact, n) && p->version[n] == '-';
	}
	n = strlen(series);
	return !strncmp(p->version, series, n) && p->version[n] == '.';
}

/* The best package: the highest version; of one release linux-binary, if the kernel is split. */
static const struct apt_package *choose(const struct apt_index *index, const char *exact,
					const char *series)
{
	const struct apt_package *best = NULL, *p;
	size_t i;
	int c;

	for (i = 0; i < index->n; i++) {
		p = &index->package[i];
		if ((strcmp(p->part, "linux-image-") && strcmp(p->part, "linux-binary-")) ||
		    !matches(p, exact, series))
			continue;
		c = best ? strverscmp(p->release, best->release) : 1;
		if (c > 0 || (!c && !strcmp(p->part, "linux-binary-")))
			best = p;
	}
	return best;
}

static char *find_deb(const char *dir, const struct apt_package *p, const char *prefix)
{
	/* apt writes the ":" of an epoch as %3a; kernels have none. */
	char *path = text("%s/%s%s_%s_amd64.deb", dir, prefix, p->release, p->version);

	if (!access(path, R_OK))
		return path;
	free(path);
	return NULL;
}

static int unpack(const char *cache, const char *temp, const struct apt_package *p)
{
	static const char *const prefixes[] = { "linux-image-", "linux-binary-", "linux-modules-",
						"linux-base-" };
	char *root = text("%s/root", temp), *info, *final, *path, *errors = NULL;
	size_t i;
	int ret = 0, status;

	for (i = 0; i < 4 && !ret; i++) {
		char *deb = find_deb(temp, p, prefixes[i]);
		char *argv[] = { "dpkg-deb", "-x", deb, root, NULL };

		if (!deb)
			continue;
		progress(false, "kernel %s: unpacking %s%s", p->release, prefixes[i], p->release);
		status = run_program(argv, NULL, 0, NULL, NULL, &errors, NULL, NULL);
		if (status && !interrupted())
			err("kernel %s", "cannot be unpacked: %s", p->release,
			    status == 127 ? "dpkg-deb is not installed" :
					    apt_last_line(errors));
		ret = status ? EXIT_NO_EXEC : 0;
		free(errors);
		free(deb);
	}
	path = text("%s/usr/share", root);
	remove_tree(path);
	free(path);
	info = text("version %s\npackage %s%s\n", p->version, p->part, p->release);
	path = text("%s/info", root);
	final = text("%s/kernels/%s", cache, p->release);
	if (!ret && write_file(path, info, strlen(info))) {
		err("%s", "cannot be written: %s", path, strerror(errno));
		ret = EXIT_NO_EXEC;
	}
	/* What is there under that name is older and was not whole, or we would not be here. */
	if (!ret) {
		remove_tree(final);
		if (rename(root, final)) {
			err("%s", "cannot be put in place: %s", final, strerror(errno));
			ret = EXIT_NO_EXEC;
		}
	}
	free(path);
	free(final);
	free(info);
	free(root);
	return ret;
}

int cache_lock(const char *cache)
{
	char *path = text("%s/lock", cache);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0) {
		err("%s", "cannot be opened: %s", path, strerror(errno));
	} else if (flock(fd, LOCK_EX | LOCK_NB)) {
		progress(true, "waiting for another mmscope that is fetching a kernel or its source");
		while (flock(fd, LOCK_EX)) {
			if (errno == EINTR && !interrupted())
				continue;
			close(fd);
			fd = -1;
			break;
		}
	}
	free(path);
	return fd;
}

/* Under the lock nobody else unpacks: what lies there was left by one that was killed. */
char *cache_temp(const char *cache)
{
	char *path = text("%s/unpack", cache);

	remove_tree(path);
	if (make_dirs(path)) {
		err("%s", "cannot be made: %s", path, strerror(errno));
		free(path);
		return NULL;
	}
	return path;
}

bool cache_has_space(const char *cache, uint64_t bytes)
{
	struct statvfs vfs;
	uint64_t free_bytes;

	if (statvfs(cache, &vfs))
		return true;
	free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	if (free_bytes >= bytes)
		return true;
	err("%s", "%juM free, %juM are needed to fetch a kernel; MMSCOPE_CACHE names another place",
	    cache, (uintmax_t)(free_bytes >> 20), (uintmax_t)(bytes >> 20));
	return false;
}

int kernel_fetch(const char *cache, const char *exact, const struct pin *pin, char **release)
{
	const char *series = pin ? pin->series : NULL, *asked = exact ? exact : series;
	const struct apt_package *p = NULL;
	struct apt_index index = { 0 };
	char *temp = NULL, *kernels;
	int lock, ret = EXIT_NO_EXEC;
	struct apt *apt = NULL;
	bool refreshed = false;

	*release = NULL;
	kernels = text("%s/kernels", cache);
	signals_hold();
	lock = make_dirs(kernels) ? -1 : cache_lock(cache);
	if (lock < 0)
		goto cleanup;
	/* Another one may have fetched it while we waited. */
	if (pin || exact) {
		struct kernel *k = kernel_cached(cache, exact ? exact : pin->release);

		if (k) {
			*release = text("%s", k->release);
			kernel_put(k);
			ret = 0;
			goto cleanup;
		}
	}
	if (!cache_has_space(cache, SPACE_NEEDED))
		goto cleanup;
	temp = cache_temp(cache);
	apt = temp ? apt_open(cache) : NULL;
	if (!apt)
		goto cleanup;
	if (apt_index_age(apt) > INDEX_AGE) {
		/* Without network the one that stood in before still does. */
		*release = exact ? NULL : kernel_cached_newest(cache, series);
		if (apt_update(apt, *release)) {
			ret = *release && !interrupted() ? 0 : EXIT_NO_EXEC;
			goto cleanup;
		}
		free(*release);
		*release = NULL;
		refreshed = true;
	} else {
		/* Who asks for a version knows that it is out; a series can wait for a day. */
		refreshed = !exact || apt_index_age(apt) < INDEX_FRESH;
	}
	for (;;) {
		struct kernel *k;

		apt_index_free(&index);
		if (apt_list(apt, &index))
			goto cleanup;
		p = choose(&index, exact ? exact : pin->release, NULL);
		/* Only a fresh index may say that the pinned one is gone. */
		if (!p && !exact && refreshed)
			p = choose(&index, NULL, series);
		k = p ? kernel_cached(cache, p->release) : NULL;
		if (k) {
			kernel_put(k);
			break;
		}
		if (p && !apt_download(apt, &index, p, temp, !refreshed))
			break;
		if (interrupted() || (p && refreshed))
			goto cleanup;
		if (refreshed) {
			err("kernel %s", "no such kernel in the Debian archive%s", asked,
			    exact ? " (any more); mmscope-vm(1) tells what K can be" : "");
			goto cleanup;
		}
		if (apt_update(apt, false))
			goto cleanup;
		refreshed = true;
	}
	*release = text("%s", p->release);
	{
		struct kernel *k = kernel_cached(cache, p->release);

		ret = k ? 0 : unpack(cache, temp, p);
		kernel_put(k);
	}
cleanup:
	if (temp)
		remove_tree(temp);
	if (lock >= 0)
		close(lock);
	progress_clear();
	apt_index_free(&index);
	apt_close(apt);
	free(kernels);
	free(temp);
	if (ret) {
		free(*release);
		*release = NULL;
	}
	signals_release();
	return ret;
}
