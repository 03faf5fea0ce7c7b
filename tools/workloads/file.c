// SPDX-License-Identifier: GPL-2.0-only
/* The file behind a file mapping. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/status.h"
#include "data/err.h"
#include "workloads/file.h"
#include "workloads/restore.h"

#define BLOCK (64 * 1024)

static int fail(const char *what, const char *path)
{
	err("%s", "cannot %s it: %s", path, what, strerror(errno));
	return EXIT_INPUT;
}

static int fill(int fd, const char *path, uint64_t size)
{
	static char block[BLOCK];
	uint64_t done = 0;
	ssize_t n;

	memset(block, 'm', sizeof(block));
	while (done < size) {
		n = pwrite(fd, block, MIN(size - done, BLOCK), done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail("fill", path);
		done += n;
	}
	/* Writeback under way would still change the pages' state while we measure. */
	if (fsync(fd) && errno != EINVAL && errno != EROFS)
		return fail("write back", path);
	return 0;
}

static int warm(int fd, const char *path, uint64_t size)
{
	static char block[BLOCK];
	uint64_t done = 0;
	ssize_t n;

	while (done < size) {
		n = pread(fd, block, MIN(size - done, BLOCK), done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail("read", path);
		if (n == 0) {
			errno = EIO;
			return fail("read all of", path);
		}
		done += n;
	}
	return 0;
}

static int open_unnamed(uint64_t size, int *fd)
{
	const char *dir = getenv("TMPDIR");
	char name[4096];

	if (!dir || !*dir)
		dir = "/tmp";
	*fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (*fd < 0) {
		/* Some file systems have no O_TMPFILE. */
		snprintf(name, sizeof(name), "%s/mmscope-XXXXXX", dir);
		*fd = mkostemp(name, O_CLOEXEC);
		if (*fd < 0) {
			err("--backing", "cannot make a temporary file in %s: %s; "
			    "choose another place with --path or TMPDIR", dir, strerror(errno));
			return EXIT_INPUT;
		}
		unlink(name);
	}
	return fill(*fd, dir, size);
}

static int check_existing(int fd, const char *path, uint64_t size, bool writes, bool overwrite)
{
	struct stat st;

	if (fstat(fd, &st))
		return fail("examine", path);
	if (!S_ISREG(st.st_mode)) {
		err("--path", "%s is not a regular file", path);
		return EXIT_USAGE;
	}
	if ((uint64_t)st.st_size < size) {
		err("--path", "%s exists and is too small (%lld of %" PRIu64 " bytes); "
		    "name one that does not exist, or give a smaller --size", path,
		    (long long)st.st_size, size);
		return EXIT_USAGE;
	}
	if (writes && !overwrite) {
		err("--path", "%s exists and --touch write would change it; "
		    "give --overwrite to permit that", path);
		return EXIT_USAGE;
	}
	return warm(fd, path, size);
}

int file_open(const char *path, uint64_t size, bool writes, bool overwrite, int *fd)
{
	if (!path)
		return open_unnamed(size, fd);
	*fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (*fd >= 0) {
		if (restore_unlink(path)) {
			unlink(path);
			errno = ENAMETOOLONG;
			return fail("remember to remove", path);
		}
		return fill(*fd, path, size);
	}
	if (errno != EEXIST && errno != EROFS && errno != EACCES && errno != EISDIR)
		return fail("create", path);
	/* O_NONBLOCK: a FIFO or a device must be refused, not waited for. */
	*fd = open(path, (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*fd < 0)
		return fail("open", path);
	return check_existing(*fd, path, size, writes, overwrite);
}
