/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_VM_CPIO_H
#define MMSCOPE_VM_CPIO_H

#include <stddef.h>
#include <sys/types.h>

/*
 * An initramfs under construction ("newc" cpio), kept in anonymous memory
 * (memfd), so that nothing is left on a disk whatever happens to us. Paths are
 * absolute, without "." or ".." components; a path that is already there is
 * not added twice. Functions return 0, or -1 with errno set; after a failure
 * the archive is good for archive_free() only.
 */
struct archive;

struct archive *archive_new(void);
void archive_free(struct archive *ar);

/* The target if path is a symbolic link, "" if it is anything else, NULL if absent. */
const char *archive_find(const struct archive *ar, const char *path);

int archive_dir(struct archive *ar, const char *path, mode_t mode);
int archive_link(struct archive *ar, const char *path, const char *target);
int archive_data(struct archive *ar, const char *path, mode_t mode, const void *data, size_t len);
/* Copies the regular file open as fd from its beginning. */
int archive_file(struct archive *ar, const char *path, mode_t mode, int fd);

/* Writes the trailer. Returns the archive's descriptor, which it keeps owning, or -1. */
int archive_finish(struct archive *ar);

#endif
