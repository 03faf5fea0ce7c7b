// SPDX-License-Identifier: GPL-2.0-only
/* Files and paths of the host. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/status.h"
#include "data/err.h"
#include "vm/host.h"

#define USUAL_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

char *text(const char *format, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, format);
	n = vasprintf(&s, format, ap);
	va_end(ap);
	if (n < 0) {
		err("memory", "none left");
		exit(EXIT_INTERNAL);
	}
	return s;
}

int make_dirs(const char *path)
{
	char *copy = strdup(path), *slash;
	int ret = copy ? 0 : -1;

	for (slash = copy; slash && !ret;) {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = 0;
		if (mkdir(copy, 0777) && errno != EEXIST)
			ret = -1;
		if (slash)
			*slash = '/';
	}
	free(copy);
	return ret;
}

char *cache_dir(void)
{
	const char *dir = getenv("MMSCOPE_CACHE"), *home = getenv("HOME");
	char *path;

	if (dir && *dir == '/') {
		path = text("%s", dir);
	} else if (dir && *dir) {
		char *cwd = getcwd(NULL, 0);

		path = text("%s/%s", cwd ? cwd : "", dir);
		free(cwd);
	} else if (home && *home == '/') {
		path = text("%s/.cache/mmscope", home);
	} else {
		err("cache", "neither MMSCOPE_CACHE nor HOME names a directory");
		return NULL;
	}
	if (make_dirs(path) || access(path, W_OK | X_OK)) {
		err("%s", "cannot be used as cache: %s; MMSCOPE_CACHE names another", path,
		    strerror(errno));
		free(path);
		return NULL;
	}
	return path;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	remove(path);
	return 0;
}

void remove_tree(const char *path)
{
	nftw(path, remove_one, 32, FTW_DEPTH | FTW_PHYS);
}

char *read_file(const char *path, size_t *len)
{
	size_t n = 0, size = 65536;
	char *data = malloc(size + 1), *grown;
	ssize_t got;
	int fd, e;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || !data)
		goto fail;
	while ((got = read(fd, data + n, size - n)) > 0) {
		n += got;
		if (n < size)
			continue;
		size *= 2;
		grown = realloc(data, size + 1);
		if (!grown)
			goto fail;
		data = grown;
	}
	if (got < 0)
		goto fail;
	close(fd);
	data[n] = 0;
	if (len)
		*len = n;
	return data;
fail:
	e = errno;
	free(data);
	if (fd >= 0)
		close(fd);
	errno = e;
	return NULL;
}

int write_file(const char *path, const void *data, size_t len)
{
	char *temp = text("%s.XXXXXX", path);
	int fd = mkstemp(temp), e = 0;
	const char *p = data;
	ssize_t n;

	if (fd < 0) {
		free(temp);
		return -1;
	}
	for (; len && !e; p += n, len -= n) {
		n = write(fd, p, len);
		if (n < 0) {
			e = errno;
			n = 0;
		}
	}
	fchmod(fd, 0644);
	if (close(fd) && !e)
		e = errno;
	if (!e && rename(temp, path))
		e = errno;
	if (e)
		unlink(temp);
	free(temp);
	errno = e;
	return e ? -1 : 0;
}

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

char *find_program(const char *name)
{
	const char *path = getenv("PATH"), *usual = USUAL_PATH, *p, *end;
	int round;

	if (strchr(name, '/'))
		return is_program(name) ? text("%s", name) : NULL;
	if (!*name)
		return NULL;
	/* Tools of administration are not on every user's PATH. */
	for (round = 0; round < 2; round++) {
		for (p = round ? usual : path; p && *p; p = *end ? end + 1 : end) {
			char *full;

			end = strchrnul(p, ':');
			full = text("%.*s/%s", (int)(end - p), p, name);
			if (*full == '/' && is_program(full))
				return full;
			free(full);
		}
	}
	return NULL;
}
