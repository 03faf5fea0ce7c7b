// SPDX-License-Identifier: GPL-2.0-only
/* Threads and processes that collide on one lock: started, observed, ended. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "data/err.h"
#include "data/status.h"
#include "workloads/contend.h"
#include "workloads/control.h"
#include "workloads/workload.h"

struct member {
	struct arena *arena;
	const struct class *class;
	char *map;
	int fd;
	unsigned int share, threads, number;
};

void arena_fail(struct arena *a)
{
	unsigned int none = 0;

	atomic_compare_exchange_strong(&a->failed, &none, errno ? errno : EIO);
	a->stop = true;
}

/* No barrier: who opens must not wait for whoever was killed. */
static void gate_pass(struct arena *a, unsigned int number)
{
	unsigned int open;

	a->arrived++;
	while ((open = a->open) < number)
		syscall(SYS_futex, &a->open, FUTEX_WAIT, open, NULL, NULL, 0);
}

static void gate_open(struct arena *a)
{
	a->open++;
	syscall(SYS_futex, &a->open, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void *member_main(void *arg)
{
	struct member *m = arg;

	gate_pass(m->arena, 1);		/* observed from here on */
	m->class->work(m->arena, m->map, m->fd, m->share, m->threads, &m->arena->ops[m->number]);
	gate_pass(m->arena, 2);		/* until here: a thread's end is not of it */
	return NULL;
}

/* One process and its threads; does not return. */
static void process_main(struct arena *a, const struct class *class, int fd, unsigned int first,
			 unsigned int threads)
{
	struct member member[MEMBERS_MAX];
	pthread_t thread[MEMBERS_MAX];
	unsigned int i;
	char *map;

	/* The parent may have ended before it could be asked for a sign of that. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != a->parent)
		_exit(1);
	map = class->map ? class->map(a, fd, threads) : NULL;
	for (i = 0; i < threads; i++)
		member[i] = (struct member){ a, class, map, fd, i, threads, first + i };
	for (i = 1; i < threads; i++) {
		errno = pthread_create(&thread[i], NULL, member_main, &member[i]);
		if (!errno)
			continue;
		arena_fail(a);
		_exit(1);
	}
	member_main(&member[0]);
	for (i = 1; i < threads; i++)
		pthread_join(thread[i], NULL);
	_exit(0);
}

/* Its processes; SIGCHLD is blocked. */
struct crowd {
	struct arena *arena;
	pid_t pid[MEMBERS_MAX];		/* 0: has ended */
	unsigned int n;
	sigset_t ends;
};

/* Reap whoever has ended; before the last gate is open, nobody should have. */
static void crowd_reap(struct crowd *c, int flags)
{
	unsigned int i;
	int status;
	pid_t pid;

	for (i = 0; i < c->n; i++) {
		pid = c->pid[i] ? waitpid(c->pid[i], &status, flags) : 0;
		if (!pid)
			continue;
		c->pid[i] = 0;
		if (flags & WNOHANG || pid < 0 || status) {
			errno = EOWNERDEAD;
			arena_fail(c->arena);
		}
	}
}

static void crowd_kill(struct crowd *c)
{
	unsigned int i;

	for (i = 0; i < c->n; i++)
		if (c->pid[i])
			kill(c->pid[i], SIGKILL);
	crowd_reap(c, 0);
}

/* For so long, or until one ends or fails. */
static void crowd_sleep(struct crowd *c, double seconds)
{
	struct timespec t = { .tv_sec = seconds };

	t.tv_nsec = (seconds - (double)t.tv_sec) * 1e9;
	sigtimedwait(&c->ends, NULL, &t);
	crowd_reap(c, WNOHANG);
}

/* Until so many have come to a gate, or one failed. */
static bool crowd_comes(struct crowd *c, unsigned int arrived)
{
	while (c->arena->arrived < arrived && !c->arena->failed)
		crowd_sleep(c, 0.001);
	return !c->arena->failed;
}

static uint64_t run(struct arena *a, const struct class *class, unsigned int threads,
		    double seconds, struct control *c, int fd)
{
	unsigned int each = class->threads ? class->threads : threads, i;
	struct crowd crowd = { .arena = a };
	sigset_t before;
	uint64_t ops = 0;
	pid_t pid;

	sigemptyset(&crowd.ends);
	sigaddset(&crowd.ends, SIGCHLD);
	sigprocmask(SIG_BLOCK, &crowd.ends, &before);
	a->parent = getpid();
	while (crowd.n < threads / each) {
		pid = fork();
		if (!pid)
			process_main(a, class, fd, crowd.n * each, each);
		if (pid < 0) {
			arena_fail(a);
			break;
		}
		crowd.pid[crowd.n++] = pid;
	}
	if (!crowd_comes(&crowd, threads))
		goto cleanup;
	control_send(c, "enable\n");
	gate_open(a);
	crowd_sleep(&crowd, seconds);
	a->stop = true;
	crowd_comes(&crowd, 2 * threads);
	control_send(c, "disable\n");
	if (a->failed)
		goto cleanup;
	gate_open(a);
	crowd_reap(&crowd, 0);
	for (i = 0; i < threads; i++)
		ops += a->ops[i];

cleanup:
	crowd_kill(&crowd);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return ops;
}

static int contend(const char *name, uint64_t threads, double seconds, bool json)
{
	pthread_barrierattr_t shared;
	const struct class *class;
	struct control c;
	struct arena *a;
	uint64_t ops;
	int fd = -1;

	class = class_find(name);
	if (!class) {
		err("%s", "is no lock that can be contended for; see mmscope bench contend --help",
		    name);
		return EXIT_USAGE;
	}
	if (class->threads && threads % class->threads) {
		err("--threads", "'%" PRIu64 "' leaves one alone: %s takes pairs", threads, name);
		return EXIT_USAGE;
	}
	if (control_open(&c))
		return EXIT_USAGE;
	a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (a == MAP_FAILED) {
		err("bench contend", "out of memory");
		return EXIT_INTERNAL;
	}
	fd = memfd_create("contend", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, MEMBERS_MAX * TABLE)) {
		err("bench contend", "no file in memory: %s", strerror(errno));
		return EXIT_UNOBSERVED;
	}
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&a->round, &shared, threads);
	ops = run(a, class, threads, seconds, &c, fd);
	close(fd);
	if (a->failed) {
		err("bench contend", "%s: %s", name, a->failed == EOWNERDEAD ?
		    "one of its processes has ended early" : a->failed == ENOTSUP ?
		    "there are no huge pages: they are switched off "
		    "(/sys/kernel/mm/transparent_hugepage/enabled), or memory is short" :
		    strerror(a->failed));
		if (a->failed == ENOTSUP)
			return EXIT_UNOBSERVED;
		return EXIT_INTERNAL;
	}
	values_write("contend_ops", ops, "ops", "higher");
	if (json)
		printf("{\"class\": \"%s\", \"threads\": %" PRIu64 ", \"ops\": %" PRIu64 "}\n",
		       name, threads, ops);
	else
		printf("%s: %" PRIu64 " operations of %" PRIu64 " threads\n", name, ops, threads);
	if (fflush(stdout)) {
		err("output", "cannot be written");
		return EXIT_INTERNAL;
	}
	return EXIT_OK;
}

int workload_contend(int argc, char **argv)
{
	uint64_t threads = 4;
	double seconds = 2;
	bool json = false, dashes;
	const struct option_def defs[] = {
		{ "threads", 0, OPT_COUNT, "N", "how many collide (4)", &threads, .min = 2,
		  .max = MEMBERS_MAX },
		{ "seconds", 0, OPT_SECONDS, "SECONDS", "for how long (2)", &seconds },
		{ "json", 0, OPT_FLAG, NULL, "one JSON object instead of a line", &json },
		{ 0 }
	};
	const struct option_set set = {
		.usage = "bench contend CLASS [OPTIONS]",
		.about = "Let threads collide on one lock: mmap_lock, vma_lock (pairs), page_table,\n"
			 "page_table_pmd, i_pages, folio, i_mmap_rwsem or lru.",
		.defs = defs,
	};
	const char *class = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
	int rest;

	if (class) {
		argv[1] = argv[0];
		argv++;
		argc--;
	}
	switch (options_parse(&set, argc, argv, &rest, &dashes)) {
	case OPTIONS_HELP:
		return EXIT_OK;
	case OPTIONS_BAD:
		return EXIT_USAGE;
	case OPTIONS_OK:
		break;
	}
	err_json(json);
	if (!class && rest < argc)
		class = argv[rest++];
	if (!class) {
		err("bench contend", "no class given; see mmscope bench contend --help");
		return EXIT_USAGE;
	}
	if (rest < argc) {
		err("%s", "bench contend takes one class", argv[rest]);
		return EXIT_USAGE;
	}
	return contend(class, threads, seconds, json);
}
