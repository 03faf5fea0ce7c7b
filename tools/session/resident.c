// SPDX-License-Identifier: GPL-2.0-only
/* Resident sets: of whom they are known, and the walk that reads them. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "session/resident.h"

void resident_refuse(struct plan *plan, const char *why)
{
	struct plan_event *pe = &plan->event[EVENT_RSS_WALK];

	pe->mech = MECH_NONE;
	pe->symbols = 0;
	snprintf(pe->reason, sizeof(pe->reason), "%s", why);
}

/* They are of whole processes, and those of all targets must be known. */
void resident_plan(struct plan *plan, const struct target *t)
{
	size_t i;

	if (!t)
		return;
	if (t->cgroup >= 0 || t->comm)
		resident_refuse(plan, "targets by cgroup or name come and go within a process");
	for (i = 0; i < t->tasks; i++)
		if (t->task[i].thread)
			resident_refuse(plan, "a thread has no resident set of its own");
}

int resident_walk(int link_fd)
{
	int fd = bpf_iter_create(link_fd), e = 0;
	char none[64];
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, none, sizeof(none))) > 0 || (n < 0 && errno == EINTR))
		;
	if (n < 0)
		e = -errno;
	close(fd);
	return e;
}
