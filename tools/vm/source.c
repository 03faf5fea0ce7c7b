// SPDX-License-Identifier: GPL-2.0-only
/* The kernel source that vanilla and patched are built from: Debian's package of it. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/status.h"
#include "data/err.h"
#include "vm/apt.h"
#include "vm/fetch.h"
#include "vm/host.h"
#include "vm/kernel.h"

/* Bytes: the package and what it unpacks to. */
#define SPACE_NEEDED (2500ULL << 20)

/* The newest version in CACHE/source that begins with want and `behind`; NULL if none. */
static char *cached(const char *cache, const char *want, char behind)
{
	char *path = text("%s/source", cache), *best = NULL;
	DIR *dir = opendir(path);
	size_t n = strlen(want);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		if (strncmp(d->d_name, want, n) || d->d_name[n] != behind ||
		    (best && strverscmp(d->d_name, best) < 0))
			continue;
		free(best);
		best = text("%s", d->d_name);
	}
	if (dir)
		closedir(dir);
	free(path);
	return best;
}

struct choice {
	const struct pin *pin;
	char *pinned, *newest;	/* to be freed */
};

static void take_version(const char *version, void *arg)
{
	struct choice *c = arg;
	size_t n = strlen(c->pin->version);

	if (!strncmp(version, c->pin->version, n) && version[n] == '-') {
		free(c->pinned);
		c->pinned = text("%s", version);
	}
	if (!c->newest || strverscmp(version, c->newest) > 0) {
		free(c->newest);
		c->newest = text("%s", version);
	}
}

/* The pinned version, or the newest if a fresh index has that no more; to be freed. */
static char *choose(struct apt *apt, const struct pin *pin, bool refreshed)
{
	struct choice c = { .pin = pin };
	char *chosen = NULL;

	for (;;) {
		if (apt_versions(apt, pin->release, take_version, &c))
			break;
		if (c.pinned || (refreshed && c.newest)) {
			chosen = text("%s", c.pinned ? c.pinned : c.newest);
			break;
		}
		if (refreshed) {
			err("%s", "no such package in the Debian archive (any more)", pin->release);
			break;
		}
		if (apt_update(apt, false))
			break;
		refreshed = true;
	}
	free(c.pinned);
	free(c.newest);
	return chosen;
}

/* One program of the unpacking; 0, or EXIT_NO_EXEC after an error line. */
static int step(const char *what, char *const argv[])
{
	char *errors = NULL;
	int status = run_program(argv, NULL, 0, NULL, NULL, &errors, NULL, NULL);

	if (status && !interrupted()) {
		if (status == 127)
			err("%s", "cannot be unpacked: %s is not installed", what, argv[0]);
		else
			err("%s", "cannot be unpacked: %s", what, apt_last_line(errors));
	}
	free(errors);
	return status ? EXIT_NO_EXEC : 0;
}

static int unpack(const char *cache, const char *temp, const struct pin *pin, const char *version)
{
	char *deb = text("%s/%s_%s_all.deb", temp, pin->release, version);
	char *root = text("%s/root", temp), *top = text("%s/%s", temp, pin->release);
	char *tarball = text("%s/usr/src/%s.tar.xz", root, pin->release);
	char *final = text("%s/source/%s", cache, version);
	char *dpkg[] = { "dpkg-deb", "-x", deb, root, NULL };
	char *tar[] = { "tar", "-C", (char *)temp, "-xJf", tarball, NULL };
	int ret;

	progress(false, "%s: unpacking", pin->release);
	ret = step(pin->release, dpkg);
	if (!ret)
		ret = step(pin->release, tar);
	if (!ret && rename(top, final)) {
		err("%s", "cannot be put in place: %s", final, strerror(errno));
		ret = EXIT_NO_EXEC;
	}
	free(deb);
	free(root);
	free(top);
	free(tarball);
	free(final);
	return ret;
}

static int fetch(const char *cache, const struct pin *pin, char **version)
{
	char *temp = NULL, *spec = NULL, *path;
	struct apt *apt = NULL;
	int ret = EXIT_NO_EXEC;
	bool refreshed;

	if (!cache_has_space(cache, SPACE_NEEDED))
		return EXIT_NO_EXEC;
	temp = cache_temp(cache);
	apt = temp ? apt_open(cache) : NULL;
	if (!apt)
		goto cleanup;
	refreshed = apt_index_age(apt) > INDEX_AGE;
	if (refreshed && apt_update(apt, false))
		goto cleanup;
	*version = choose(apt, pin, refreshed);
	if (!*version)
		goto cleanup;
	path = text("%s/source/%s", cache, *version);
	ret = access(path, R_OK) ? EXIT_NO_EXEC : 0;
	free(path);
	if (!ret)
		goto cleanup;
	spec = text("%s=%s", pin->release, *version);
	if (!apt_download_one(apt, spec, temp))
		ret = unpack(cache, temp, pin, *version);
cleanup:
	if (temp)
		remove_tree(temp);
	apt_close(apt);
	free(temp);
	free(spec);
	return ret;
}

int source_get(char **dir)
{
	const struct pin *pin = pin_source();
	char *cache = cache_dir(), *version = NULL, *path;
	int lock = -1, ret = EXIT_NO_EXEC;
	size_t n = strlen(pin->version);

	*dir = NULL;
	if (!cache)
		return EXIT_NO_EXEC;
	signals_hold();
	path = text("%s/source", cache);
	version = cached(cache, pin->version, '-');
	if (!version) {
		if (make_dirs(path))
			err("%s", "cannot be made: %s", path, strerror(errno));
		else
			lock = cache_lock(cache);
		if (lock < 0)
			goto cleanup;
		/* Another one may have fetched it while we waited. */
		version = cached(cache, pin->version, '-');
		ret = version ? 0 : fetch(cache, pin, &version);
	} else {
		ret = 0;
	}
	if (!ret && (strncmp(version, pin->version, n) || version[n] != '-'))
		warn("kernel source", "%s is no longer in the archive; %s stands in for it",
		     pin->version, version);
	if (!ret)
		*dir = text("%s/%s", path, version);
cleanup:
	if (lock >= 0)
		close(lock);
	progress_clear();
	free(version);
	free(path);
	free(cache);
	signals_release();
	return ret;
}
