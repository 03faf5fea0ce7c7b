/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_MEMORY_H
#define MMSCOPE_MEMORY_H

#include <stddef.h>
#include <sys/types.h>

struct rusage;

/*
 * Memory of the measuring code: zeroed, present before it is returned, and kept
 * out of forked children, so that a fork does not write-protect it. NULL if
 * there is none; freed by memory_free() with the same length.
 */
void *memory_alloc(size_t len);
void memory_free(void *p, size_t len);

/* Touch the part of the stack that a region may use. */
void memory_prefault_stack(void);

/*
 * A child process that shares the caller's memory copy-on-write but not the
 * memory that the caller goes on using (its stack, memory_alloc()): the caller
 * takes no fault of its own because of the fork.
 */
struct child;

/* NULL with errno set. Takes the calling thread's stack out of forks. */
struct child *child_new(void);
void child_free(struct child *c);

/* Fork a child that exits at once. No page fault in the caller. 0, or -1 with errno. */
int child_fork(struct child *c);

/* Fork a child and return when it sleeps; it holds its copy until child_wait(). */
int child_fork_holding(struct child *c);

/*
 * Let the child go, wait for its end; *minflt (may be NULL) is the number of its
 * own minor faults. -1 with errno set, ECHILD if it was killed.
 */
int child_wait(struct child *c, unsigned long *minflt);

#endif
