/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_TEAM_H
#define MMSCOPE_TEAM_H

#define TEAM_MAX 256

/*
 * Threads that wait to do their share of a job. The caller's thread is one of
 * them, share 0. Their stacks and all they share are present and kept out of
 * forks, so team_run() itself causes no page fault.
 */
struct team;

/* `threads` of 1..TEAM_MAX; work(arg, share) runs in each. NULL with errno set. */
struct team *team_new(unsigned int threads, void (*work)(void *arg, unsigned int share),
		      void *arg);
/* Release all, return when all are done. */
void team_run(struct team *t);
void team_free(struct team *t);

#endif
