// SPDX-License-Identifier: GPL-2.0-only
/* Whom to observe, of those commands that observe. */
#include "cmd/cmd.h"
#include "cmd/target_options.h"
#include "data/err.h"

bool target_options_given(const struct target_options *t)
{
	return t->all || t->pids.n || t->tids.n || t->cgroup || t->comm;
}

int target_options_check(const struct target_options *t, bool dashes, char **command)
{
	if (!*command && dashes) {
		err("--", "no command follows");
		return EXIT_USAGE;
	}
	if (*command && !dashes) {
		err("%s", "put -- before the command", *command);
		return EXIT_USAGE;
	}
	if (*command && (t->pids.n || t->tids.n)) {
		err("%s", "does not go with a command: observe one or the other",
		    t->pids.n ? "-p" : "-t");
		return EXIT_USAGE;
	}
	return 0;
}

int target_options_open(const struct target_options *t, struct target *target)
{
	return target_open(target, &(struct target_names){
		.pid = t->pids.item, .pids = t->pids.n, .tid = t->tids.item,
		.tids = t->tids.n, .cgroup = t->cgroup, .comm = t->comm, .all = t->all });
}

void target_options_free(struct target_options *t)
{
	option_list_free(&t->pids);
	option_list_free(&t->tids);
}
