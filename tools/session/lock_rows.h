/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_LOCK_ROWS_H
#define MMSCOPE_LOCK_ROWS_H

#include "bpf/shared.h"
#include "data/run.h"
#include "session/images.h"

/* Waits for locks, row by row: of locks that have no class, stacks, or an open label. */
struct lock_rows;

struct lock_rows_maps {
	int rows, counts;
	unsigned int n;		/* of them; the last one is of all that have none */
	enum label by;		/* LABEL_LOCK, or what the rows are of instead */
	struct images *images;	/* that name stacks of user space, or NULL */
	unsigned int most;	/* those that took longest have rows of their own; 0: all */
};

struct lock_rows *lock_rows_new(const struct lock_rows_maps *maps);	/* NULL: no memory */
void lock_rows_free(struct lock_rows *l);

/* 0, or -1 after an error line. */
int lock_rows_read(struct lock_rows *l);
void lock_rows_lap(struct lock_rows *l);	/* count from what was read last */

/*
 * Samples of the rows, from what was read last, as sure as those of the classes that
 * are in the run already. Returns 0, or -1 without memory.
 */
int lock_rows_samples(const struct lock_rows *l, struct run *run);

#endif
