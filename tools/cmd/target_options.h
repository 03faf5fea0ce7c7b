/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_TARGET_OPTIONS_H
#define MMSCOPE_TARGET_OPTIONS_H

#include <stdbool.h>

#include "cmd/options.h"
#include "session/target.h"

/* Whom to observe, as rows of a command's table of options. */
struct target_options {
	struct option_list pids, tids;
	const char *cgroup, *comm;
	bool all;
};

/* ROW(a row): as the table of the command holds them. */
#define TARGET_OPTIONS(ROW, t)								\
	ROW({ "pid", 'p', OPT_LIST, "PID", "a process that runs (repeatable)",		\
	      &(t)->pids }),								\
	ROW({ "tid", 't', OPT_LIST, "TID", "a single thread (repeatable)", &(t)->tids }),	\
	ROW({ "cgroup", 'c', OPT_STRING, "PATH", "who is in a cgroup, or in one below",	\
	      &(t)->cgroup }),								\
	ROW({ "comm", 0, OPT_STRING, "NAME", "threads while they have this name",	\
	      &(t)->comm }),								\
	ROW({ "all", 'a', OPT_FLAG, NULL, "the whole system", &(t)->all })

/* Is anybody named? */
bool target_options_given(const struct target_options *t);
/*
 * Do they and the command go together? `command` is what follows the options, ended by
 * NULL; `dashes`: after "--". Returns 0, or EXIT_USAGE after an error line.
 */
int target_options_check(const struct target_options *t, bool dashes, char **command);
/* As target_open(). */
int target_options_open(const struct target_options *t, struct target *target);
void target_options_free(struct target_options *t);

#endif
