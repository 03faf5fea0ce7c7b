/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_MARK_H
#define MMSCOPE_MARK_H

#include <bpf/libbpf.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "session/target.h"

/* The state that tasks carry, and the program that gives it to those that are there. */
struct marker {
	int map;			/* of task storage */
	size_t value_size;
	struct bpf_program *visit;
	uint32_t *only;			/* in memory shared with it: mark who is visited, alone */
	uint32_t *marked;		/* ... how many it has marked */
};

/*
 * Give the process of a pidfd its mark, unless it has a state. Returns 0 or an
 * errno: ESRCH when it has exited.
 */
int mark_process(const struct marker *m, int pidfd, const struct task_mark *mark);

/*
 * The same for this process; *pidfd is its own, opened if it is -1. 0, or -1 after an
 * error line.
 */
int mark_self(const struct marker *m, int *pidfd, enum task_role role);
void unmark_self(const struct marker *m, int pidfd);

/*
 * Make targets of the tasks that were named by number: all threads of a process,
 * or one thread. Their later children follow by the fork event, which must be
 * attached. Who has exited meanwhile is left out. Returns 0, or -1 after an error
 * line.
 */
int mark_targets(const struct marker *m, struct target *t);

#endif
