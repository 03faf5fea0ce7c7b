// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "workloads/memory.h"
#include "workloads/team.h"

#define MEMBER_STACK (64 * 1024)

struct member {
	struct team *team;
	pthread_t thread;
	unsigned int share;
};

struct team {
	unsigned int threads, running;	/* running: created, without the caller */
	void (*work)(void *arg, unsigned int share);
	void *arg;
	bool quit;
	pthread_barrier_t gate;		/* passed twice in each run: start and end */
	char *stacks;
	struct member member[TEAM_MAX];
};

static void *member_main(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;

	for (;;) {
		pthread_barrier_wait(&t->gate);
		if (t->quit)
			return NULL;
		t->work(t->arg, m->share);
		pthread_barrier_wait(&t->gate);
	}
}

static int member_start(struct team *t, unsigned int i)
{
	char *stack = t->stacks + (size_t)(i - 1) * MEMBER_STACK;
	struct member *m = &t->member[i];
	pthread_attr_t attr;
	int ret;

	m->team = t;
	m->share = i;
	ret = pthread_attr_init(&attr);
	if (ret)
		return ret;
	ret = pthread_attr_setstack(&attr, stack, MEMBER_STACK);
	if (!ret)
		ret = pthread_create(&m->thread, &attr, member_main, m);
	pthread_attr_destroy(&attr);
	return ret;
}

struct team *team_new(unsigned int threads, void (*work)(void *arg, unsigned int share), void *arg)
{
	struct team *t = memory_alloc(sizeof(*t));
	sigset_t all, old;
	unsigned int i;
	int ret = 0;

	if (!t)
		return NULL;
	t->threads = threads;
	t->work = work;
	t->arg = arg;
	if (threads == 1)
		return t;
	t->stacks = memory_alloc((size_t)(threads - 1) * MEMBER_STACK);
	if (!t->stacks) {
		memory_free(t, sizeof(*t));
		return NULL;
	}
	/* Signals are for the first thread, whose stack is known to be deep enough. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_barrier_init(&t->gate, NULL, threads);
	for (i = 1; i < threads && !ret; i++) {
		ret = member_start(t, i);
		if (!ret)
			t->running++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!ret)
		return t;
	/*
	 * Those that run wait at a gate that will never be full: the process is
	 * about to end, and they with it.
	 */
	errno = ret;
	return NULL;
}

void team_run(struct team *t)
{
	if (t->threads > 1)
		pthread_barrier_wait(&t->gate);
	t->work(t->arg, 0);
	if (t->threads > 1)
		pthread_barrier_wait(&t->gate);
}

void team_free(struct team *t)
{
	unsigned int i;

	if (!t)
		return;
	if (t->threads > 1) {
		t->quit = true;
		pthread_barrier_wait(&t->gate);
		for (i = 1; i <= t->running; i++)
			pthread_join(t->member[i].thread, NULL);
		pthread_barrier_destroy(&t->gate);
		memory_free(t->stacks, (size_t)(t->threads - 1) * MEMBER_STACK);
	}
	memory_free(t, sizeof(*t));
}
