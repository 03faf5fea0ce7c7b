/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_CONTEND_H
#define MMSCOPE_CONTEND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What collides (contend_classes.c), and the threads and processes that do (contend.c). */

#define MEMBERS_MAX	256
#define TABLE		(2UL << 20)	/* what one page table maps, with pages of 4 KiB */

/* Shared by all processes. */
struct arena {
	_Atomic unsigned int arrived;	/* members that came to a gate, at all of them */
	_Atomic unsigned int open;	/* gates that are open; a futex */
	pid_t parent;
	_Atomic bool stop;
	_Atomic unsigned int failed;	/* errno of whoever failed first */
	_Atomic uint64_t ops[MEMBERS_MAX];
	/* i_pages: between filling and emptying, and whether that was the last time */
	pthread_barrier_t round;
	_Atomic bool last;
};

/* A way to collide on one lock. */
struct class {
	const char *name;
	unsigned int threads;	/* of a process; 0: all are threads of one */
	/* In each process, before its threads start; what it returns, they share. */
	char *(*map)(struct arena *a, int fd, unsigned int threads);
	void (*work)(struct arena *a, char *map, int fd, unsigned int share, unsigned int threads,
		     _Atomic uint64_t *ops);
};

/* By its name, which is the label of its lock; NULL: there is none. */
const struct class *class_find(const char *name);

/* Ends all of it, with the errno of whoever comes first. */
void arena_fail(struct arena *a);

#endif
