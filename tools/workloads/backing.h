/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_BACKING_H
#define MMSCOPE_BACKING_H

#include <stddef.h>
#include <stdint.h>

/*
 * A System V segment of `len` bytes that nobody else can name, mapped at `where`
 * (NULL: anywhere), which goes with its last mapping: munmap() frees it. MAP_FAILED
 * with errno set.
 */
void *sysv_map(void *where, size_t len);

/* Bytes of the default huge page; 0: this kernel has none. */
uint64_t hugetlb_size(void);

/*
 * See to it that `bytes` of huge pages are free, for as long as the process runs.
 * Returns 0, or an exit status after printing one line.
 */
int hugetlb_reserve(uint64_t bytes);

/*
 * A virtual machine without CPUs, whose guest_memfd files can be mapped: *vm is its
 * descriptor. Returns 0, or an exit status after printing one line.
 */
int gmem_open(int *vm);

/* A guest_memfd of `len` bytes that is shared with user space. -1 with errno set. */
int gmem_create(int vm, size_t len);

#endif
