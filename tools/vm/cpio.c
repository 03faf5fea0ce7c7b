// SPDX-License-Identifier: GPL-2.0-only
/* The initramfs format of the kernel: header, name and data, each padded to 4 bytes. */
#include <errno.h>
#include <search.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vm/cpio.h"

struct archive {
	FILE *file;
	void *names;		/* tsearch() tree of struct name */
	unsigned int inode;
};

struct name {
	char *path;
	char *target;
};

static int name_compare(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static void name_free(void *p)
{
	struct name *n = p;

	free(n->path);
	free(n->target);
	free(n);
}

struct archive *archive_new(void)
{
	struct archive *ar = calloc(1, sizeof(*ar));
	int fd;

	if (!ar)
		return NULL;
	fd = memfd_create("mmscope-initramfs", MFD_CLOEXEC);
	ar->file = fd < 0 ? NULL : fdopen(fd, "w+");
	if (!ar->file) {
		if (fd >= 0)
			close(fd);
		free(ar);
		return NULL;
	}
	return ar;
}

void archive_free(struct archive *ar)
{
	if (!ar)
		return;
	fclose(ar->file);
	tdestroy(ar->names, name_free);
	free(ar);
}

const char *archive_find(const struct archive *ar, const char *path)
{
	struct name key = { .path = (char *)path };
	void *node = tfind(&key, &ar->names, name_compare);

	return node ? (*(struct name **)node)->target : NULL;
}

static int remember(struct archive *ar, const char *path, const char *target)
{
	struct name *n = calloc(1, sizeof(*n));

	if (!n)
		return -1;
	n->path = strdup(path);
	n->target = strdup(target);
	if (!n->path || !n->target || !tsearch(n, &ar->names, name_compare)) {
		name_free(n);
		errno = ENOMEM;
		return -1;
	}
	return 0;
}

static int pad(struct archive *ar, size_t len)
{
	static const char zero[4];
	size_t n = -len & 3;

	return fwrite(zero, 1, n, ar->file) == n ? 0 : -1;
}

static int header(struct archive *ar, const char *path, mode_t mode, uint64_t len)
{
	size_t name_len = strlen(path) + 1;

	if (len > UINT32_MAX) {
		errno = EFBIG;
		return -1;
	}
	if (fprintf(ar->file, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		    ++ar->inode, (unsigned int)mode, 0, 0, 1, 0, (unsigned int)len, 0, 0, 0, 0,
		    (unsigned int)name_len, 0) < 0)
		return -1;
	if (fwrite(path, 1, name_len, ar->file) != name_len)
		return -1;
	return pad(ar, 110 + name_len);
}

/* Every parent must come before its children. */
static int parents(struct archive *ar, const char *path)
{
	char *copy = strdup(path), *slash;
	int ret = copy ? 0 : -1;

	for (slash = copy ? strchr(copy + 1, '/') : NULL; slash && !ret;
	     slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (!archive_find(ar, copy))
			ret = archive_dir(ar, copy, 0755);
		*slash = '/';
	}
	free(copy);
	return ret;
}

static int add(struct archive *ar, const char *path, mode_t mode, uint64_t len, const char *target)
{
	if (parents(ar, path) || remember(ar, path, target))
		return -1;
	return header(ar, path + 1, mode, len);
}

int archive_dir(struct archive *ar, const char *path, mode_t mode)
{
	if (archive_find(ar, path))
		return 0;
	return add(ar, path, S_IFDIR | (mode & 07777), 0, "");
}

int archive_data(struct archive *ar, const char *path, mode_t mode, const void *data, size_t len)
{
	if (archive_find(ar, path))
		return 0;
	if (add(ar, path, S_IFREG | (mode & 07777), len, ""))
		return -1;
	return fwrite(data, 1, len, ar->file) == len ? pad(ar, len) : -1;
}

int archive_link(struct archive *ar, const char *path, const char *target)
{
	size_t len = strlen(target);

	if (archive_find(ar, path))
		return 0;
	if (add(ar, path, S_IFLNK | 0777, len, target))
		return -1;
	return fwrite(target, 1, len, ar->file) == len ? pad(ar, len) : -1;
}

int archive_file(struct archive *ar, const char *path, mode_t mode, int fd)
{
	uint64_t left, done = 0;
	char buf[65536];
	struct stat st;
	ssize_t n;

	if (archive_find(ar, path))
		return 0;
	if (fstat(fd, &st) || add(ar, path, S_IFREG | (mode & 07777), st.st_size, ""))
		return -1;
	for (left = st.st_size; left; left -= n, done += n) {
		n = pread(fd, buf, left < sizeof(buf) ? left : sizeof(buf), done);
		if (n < 0)
			return -1;
		if (!n) {	/* truncated under us; the header's length stands */
			errno = EBUSY;
			return -1;
		}
		if (fwrite(buf, 1, n, ar->file) != (size_t)n)
			return -1;
	}
	return pad(ar, st.st_size);
}

int archive_finish(struct archive *ar)
{
	if (header(ar, "TRAILER!!!", 0, 0) || fflush(ar->file))
		return -1;
	return fileno(ar->file);
}
