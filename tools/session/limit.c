// SPDX-License-Identifier: GPL-2.0-only
#include <stdbool.h>
#include <sys/resource.h>

#include "bpf/shared.h"
#include "session/limit.h"

/* A program, its link and a try of each for every symbol; maps, pipes, files. */
#define DESCRIPTORS	(4 * EVENT_MAX + 128)

static struct rlimit before, raised;
static bool changed;

int limit_raise(unsigned long *have, unsigned long *need)
{
	*need = DESCRIPTORS;
	if (getrlimit(RLIMIT_NOFILE, &before))
		return 0;
	*have = before.rlim_cur;
	if (before.rlim_cur >= DESCRIPTORS)
		return 0;
	raised = before;
	raised.rlim_cur = DESCRIPTORS;
	if (raised.rlim_max < DESCRIPTORS)
		raised.rlim_max = DESCRIPTORS;	/* takes CAP_SYS_RESOURCE */
	changed = !setrlimit(RLIMIT_NOFILE, &raised);
	return changed ? 0 : -1;
}

void limit_restore(void)
{
	if (changed)
		setrlimit(RLIMIT_NOFILE, &before);
}

void limit_again(void)
{
	if (changed)
		setrlimit(RLIMIT_NOFILE, &raised);
}
