// SPDX-License-Identifier: GPL-2.0-only
/* Resident sets: of whom they are known, and the walk that reads them. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session/resident.h"

static void resident_refuse(struct plan *plan, const char *why)
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

int resident_walk(struct plan *plan, int link_fd)
{
	int fd = bpf_iter_create(link_fd), e = fd < 0 ? errno : 0;
	char text[96];
	ssize_t n = 0;

	while (fd >= 0 && ((n = read(fd, text, sizeof(text))) > 0 || (n < 0 && errno == EINTR)))
		;
	if (n < 0)
		e = errno;
	if (fd >= 0)
		close(fd);
	if (!e)
		return 0;
	snprintf(text, sizeof(text), "no walk over the tasks: %s", strerror(e));
	resident_refuse(plan, text);
	return -1;
}
