/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_LOCKS_H
#define MMSCOPE_LOCKS_H

#include "session/lock_rows.h"
#include "session/plan.h"
#include "session/session.h"

struct fault;

/*
 * Of the programs that are to be loaded, what waits for locks need: maps of what is
 * not asked for are not made.
 */
void locks_configure(struct fault *skel, const struct plan *plan,
		     const struct session_options *opts);

/* What is counted beside the classes; NULL: not asked for. */
struct lock_views {
	struct lock_rows *rows, *stacks;
	struct images *images;
};

/* Each returns 0, or -1 after an error line; those that there are none of are passed over. */
int lock_views_open(struct lock_views *v, const struct fault *skel, const struct plan *plan,
		    const struct session_options *opts);
int lock_views_read(struct lock_views *v);
int lock_views_samples(const struct lock_views *v, struct run *run);
void lock_views_lap(struct lock_views *v);
void lock_views_free(struct lock_views *v);

#endif
