/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_SESSION_H
#define MMSCOPE_SESSION_H

#include <stdbool.h>

#include "data/run.h"
#include "session/plan.h"
#include "session/target.h"

/* Programs that are loaded and attached, and the counts that they made. */
struct session;

struct session_options {
	/* Whom to observe besides what is adopted; NULL: nobody. It must outlive the session. */
	struct target *target;
	bool yield;		/* as in the plan: switches fault-around off meanwhile */
	enum label by;		/* count by it as well, if it is an open one */
	unsigned int stacks;	/* so many of where tasks waited for locks */
	bool user_stacks;	/* with where they were in user space */
	/* Asked between the steps of attaching; not 0 ends session_open() early. */
	int (*interrupted)(void);
};

/*
 * Load and attach what the plan chose; nothing is counted yet. A program that
 * does not attach after all is left out, and the plan is changed to say so.
 * NULL after an error line (nothing stays behind), or without one when
 * interrupted. Everything ends with the process, however it ends.
 */
struct session *session_open(struct plan *plan, const struct session_options *opts);
void session_close(struct session *s);

/* Switch counting on and off; one store. */
void session_observe(struct session *s, bool on);

/*
 * While adopting, what this process forks is a target, with its descendants.
 * Returns 0, or -1 after an error line.
 */
int session_adopt(struct session *s, bool on);

/* Forget what was counted until now. Returns 0, or -1 after an error line. */
int session_reset(struct session *s);

/* What is to be tended meanwhile; NULL: nothing is. */
struct images *session_images(const struct session *s);

/*
 * Add samples and trust counters to run: all that was counted since the session
 * was opened, reset or lapped. Returns 0, or -1 after an error line.
 */
int session_collect(struct session *s, struct run *run);

/* What session_collect() gave last is where the next one starts. */
void session_lap(struct session *s);

#endif
