/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_SESSION_TARGET_H
#define MMSCOPE_SESSION_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Whom to observe, as the user named them; all texts belong to the caller. */
struct target_names {
	const char *const *pid, *const *tid;
	size_t pids, tids;
	const char *cgroup, *comm;
	bool all;
};

/* A process by a descriptor, or a thread by its directory in /proc: no number can lie. */
struct target_task {
	pid_t id;
	int fd;
	bool thread, gone;
};

struct target {
	struct target_task *task;
	size_t tasks;
	int cgroup;		/* descriptor; -1: none */
	const char *comm;	/* NULL: any */
	bool everyone;		/* each task is asked, none is marked */
	int watch, timer;	/* see target_watch() */
};

/*
 * Find who was named. Returns 0, or -1 after an error line: there is no such
 * process, thread or cgroup, or they do not go together (exit status 2).
 */
int target_open(struct target *t, const struct target_names *names);
void target_close(struct target *t);

/* Are children followed: is a process named? */
bool target_follows(const struct target *t);

/*
 * A descriptor that is readable when target_ended() should be asked; -1: nobody
 * named ends. target_ended(): has everyone who was named by a number?
 */
int target_watch(const struct target *t);
bool target_ended(struct target *t);

/* Is the thread or process still there? It may be a zombie for which nobody waits. */
bool target_lives(struct target_task *task);

#endif
