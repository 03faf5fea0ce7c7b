/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_FILE_H
#define MMSCOPE_FILE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Open a file of at least `size` bytes, all of which are in the page cache.
 * Without a path: a new file in $TMPDIR or /tmp that has no name. With the path
 * of a file that is not there: it is made, and removed when the process ends.
 * With that of an existing file: it is used as it is, and refused if it is too
 * small, or if the workload writes and `overwrite` does not permit that.
 * Returns 0 and *fd (the caller closes it), or an exit status after one line.
 */
int file_open(const char *path, uint64_t size, bool writes, bool overwrite, int *fd);

#endif
