/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_BACKING_H
#define MMSCOPE_BACKING_H

#include <stddef.h>

/*
 * A System V segment of `len` bytes that nobody else can name, mapped at `where`
 * (NULL: anywhere), which goes with its last mapping: munmap() frees it. MAP_FAILED
 * with errno set.
 */
void *sysv_map(void *where, size_t len);

#endif
