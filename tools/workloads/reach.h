/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_REACH_H
#define MMSCOPE_REACH_H

#include <stdbool.h>
#include <stddef.h>

/* Who touches a page: the CPU, or the kernel on behalf of a system call. */
enum reach {
	REACH_ACCESS,	/* loads and stores */
	REACH_GUP,	/* process_vm_readv() and _writev() on this process */
	REACH_POPULATE,	/* madvise() with MADV_POPULATE_READ and _WRITE */
};

/*
 * Read or write one byte of one page by a system call (REACH_ACCESS is
 * touch_page()). The byte written is never 0; populating changes none. Returns 0
 * or the errno: EFAULT for a page beyond the end of its file. No page faults of
 * its own once it has run.
 */
int reach_page(enum reach by, char *page, size_t page_size, bool write);

/*
 * Read a byte that is beyond the end of its file: 0 if SIGBUS said so, EEXIST if
 * the read succeeded. Between reach_beyond_begin() and _end() only, which take
 * over SIGBUS; by a thread that does not block it.
 */
void reach_beyond_begin(void);
int reach_beyond(char *page);
void reach_beyond_end(void);

#endif
