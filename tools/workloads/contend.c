// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that are known to collide on one lock. How often they do is up to the
 * machine; that it is this lock is not: each class has a way of its own to take it
 * again and again while next to nothing else is shared.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
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
#include "workloads/control.h"
#include "workloads/workload.h"

#define MEMBERS_MAX	256
#define TABLE		(2UL << 20)	/* what one page table maps, with pages of 4 KiB */

/* Shared by all processes. */
struct arena {
	_Atomic unsigned int arrived;	/* members that came to a gate, at all of them */
	_Atomic unsigned int open;	/* gates that are open; a futex */
	pid_t parent;
	_Atomic bool stop;
	_Atomic unsigned int failed;	/* errno of whoever failed first */
	_Atomic uint64_t ops[MEMBERS_MAX];
	/* i_pages: between filling and emptying, and whether that was the last time */
	pthread_barrier_t round;
	_Atomic bool last;
};

struct class {
	const char *name;
	unsigned int threads;	/* of a process; 0: all are threads of one */
	/* In each process, before its threads start; what it returns, they share. */
	char *(*map)(struct arena *a, int fd, unsigned int threads);
	void (*work)(struct arena *a, char *map, int fd, unsigned int share, unsigned int threads,
		     _Atomic uint64_t *ops);
};

struct member {
	struct arena *arena;
	const struct class *class;
	char *map;
	int fd;
	unsigned int share, threads, number;
};

static void fail(struct arena *a)
{
	unsigned int none = 0;

	atomic_compare_exchange_strong(&a->failed, &none, errno ? errno : EIO);
	a->stop = true;
}

/* An emulator of CPUs that run in turn takes it for the end of one's turn. */
static void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	asm volatile("yield");
#endif
}

/* `size` bytes at a multiple of what a page table maps, of small pages. */
static char *map_aligned(struct arena *a, size_t size)
{
	char *p = mmap(NULL, size + TABLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED) {
		fail(a);
		return p;
	}
	p += -(uintptr_t)p & (TABLE - 1);
	madvise(p, size, MADV_NOHUGEPAGE);
	return p;
}

/* ---- mmap_lock: everybody maps and unmaps in one address space ---- */

static void work_mmap_lock(struct arena *a, char *map, int fd, unsigned int share,
			   unsigned int threads, _Atomic uint64_t *ops)
{
	while (!a->stop) {
		char *p = mmap(NULL, bench_page_size(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		if (p == MAP_FAILED || munmap(p, bench_page_size()))
			fail(a);
		(*ops)++;
	}
}

/*
 * ---- page_table: pages of one page table are read and then written. What was read is
 * the zero page; taking its place is told to the other CPUs while the lock is held
 * (ptep_clear_flush() in wp_page_copy(), 6.1 to 7.3), and who hears it wants the lock ----
 */

static char *map_table(struct arena *a, int fd, unsigned int threads)
{
	return map_aligned(a, TABLE);
}

static void work_page_table(struct arena *a, char *map, int fd, unsigned int share,
			    unsigned int threads, _Atomic uint64_t *ops)
{
	size_t page = bench_page_size(), pages = TABLE / page / threads, i;
	char *own = map + share * pages * page;

	while (!a->stop) {
		for (i = 0; i < pages && !a->stop; i++) {
			touch_page(own + i * page, false);
			touch_page(own + i * page, true);
			/* Whoever waits is let in before the next page. */
			cpu_relax();
		}
		*ops += i;
		if (madvise(own, pages * page, MADV_DONTNEED))
			fail(a);
	}
}

/* ---- folio: everybody writes to the same page, by a mapping of its own ---- */

static char *map_folio(struct arena *a, int fd, unsigned int threads)
{
	char *p = map_aligned(a, TABLE * threads);
	unsigned int i;

	for (i = 0; p != MAP_FAILED && i < threads; i++)
		if (mmap(p + i * TABLE, bench_page_size(), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			fail(a);
	return p;
}

static void work_folio(struct arena *a, char *map, int fd, unsigned int share,
		       unsigned int threads, _Atomic uint64_t *ops)
{
	char *own = map + share * TABLE;

	while (!a->stop) {
		touch_page(own, true);
		if (madvise(own, bench_page_size(), MADV_DONTNEED))
			fail(a);
		(*ops)++;
	}
}

/*
 * ---- i_mmap_rwsem: processes map and unmap a file; the first one has a page of it
 * taken out of all mappings, for which the lock is held as long as there are many ----
 */

#define FILE_MAPPINGS	1024	/* of each process */

static char *map_i_mmap(struct arena *a, int fd, unsigned int threads)
{
	unsigned int i;

	for (i = 0; i < FILE_MAPPINGS; i++)
		if (mmap(NULL, bench_page_size(), PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
			fail(a);
	return NULL;
}

static void work_i_mmap(struct arena *a, char *map, int fd, unsigned int share,
			unsigned int threads, _Atomic uint64_t *ops)
{
	size_t page = bench_page_size();
	bool first = ops == &a->ops[0];

	while (!a->stop) {
		char *p = first ? NULL : mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);

		if (first ? fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, page) :
			    p == MAP_FAILED || munmap(p, page))
			fail(a);
		(*ops)++;
	}
}

/* ---- lru: pages are taken off their list one by one, and put back ---- */

#define LRU_PAGES	256

static char *map_lru(struct arena *a, int fd, unsigned int threads)
{
	return map_aligned(a, TABLE * threads);
}

static void work_lru(struct arena *a, char *map, int fd, unsigned int share,
		     unsigned int threads, _Atomic uint64_t *ops)
{
	size_t page = bench_page_size();
	char *own = map + share * TABLE;

	/* Without swap space nothing leaves; with it, what left comes back. */
	while (!a->stop) {
		touch_all(own, LRU_PAGES, true);
		if (madvise(own, LRU_PAGES * page, MADV_PAGEOUT))
			fail(a);
		*ops += LRU_PAGES;
	}
}

/*
 * ---- i_pages: everybody adds pages to one file, which is emptied when all have ----
 *
 * A page that is the only one far and wide needs nodes of the tree of its own, and
 * these are allocated while the lock is held: next to that, the lock of the lists
 * that the pages are put on is held for a moment.
 */

#define SPARSE_PAGES	16384	/* of all threads */
#define SPARSE_SHIFT	48	/* six nodes for each page: a level of the tree is 6 bits */

static unsigned int sparse_pages(unsigned int threads)
{
	unsigned int most = TABLE / bench_page_size();

	return SPARSE_PAGES / threads < most ? SPARSE_PAGES / threads : most;
}

static char *map_i_pages(struct arena *a, int fd, unsigned int threads)
{
	unsigned int pages = sparse_pages(threads), n = threads * pages, i;
	size_t page = bench_page_size();
	char *p = map_aligned(a, threads * TABLE);

	if (p == MAP_FAILED)
		return p;
	if (ftruncate(fd, (off_t)n << SPARSE_SHIFT))
		fail(a);
	/* Each thread's are in a page table of its own. */
	for (i = 0; i < n; i++)
		if (mmap(p + i / pages * TABLE + i % pages * page, page, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, (off_t)i << SPARSE_SHIFT) == MAP_FAILED)
			fail(a);
	return p;
}

static void work_i_pages(struct arena *a, char *map, int fd, unsigned int share,
			 unsigned int threads, _Atomic uint64_t *ops)
{
	unsigned int pages = sparse_pages(threads);
	bool last;

	do {
		touch_all(map + share * TABLE, pages, true);
		*ops += pages;
		pthread_barrier_wait(&a->round);
		if (!share && fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
					(off_t)threads * pages << SPARSE_SHIFT))
			fail(a);
		if (!share)
			a->last = a->stop;
		pthread_barrier_wait(&a->round);
		last = a->last;
	} while (!last);
}

/*
 * ---- vma_lock: of two threads one faults huge pages in, which takes long, and the
 * other changes the mapping's protection in the middle of each fault
 */

#define HUGE_PAGES	16

static char *map_vma_lock(struct arena *a, int fd, unsigned int threads)
{
	char *p = map_aligned(a, HUGE_PAGES * TABLE);

	if (p != MAP_FAILED)
		madvise(p, HUGE_PAGES * TABLE, MADV_HUGEPAGE);
	return p;
}

static void work_vma_lock(struct arena *a, char *map, int fd, unsigned int share,
			  unsigned int threads, _Atomic uint64_t *ops)
{
	_Atomic uint64_t *faults = ops - share;
	uint64_t seen = 0;
	unsigned int i = 0;

	while (!a->stop && !share) {
		touch_page(map + i++ % HUGE_PAGES * TABLE, true);
		(*ops)++;
		if (i % HUGE_PAGES == 0 && madvise(map, HUGE_PAGES * TABLE, MADV_DONTNEED))
			fail(a);
	}
	while (!a->stop && share) {
		/* One that was refused goes on under mmap_lock: let it end first. */
		if (*faults < seen + 3) {
			sched_yield();
			continue;
		}
		seen = *faults;
		if (mprotect(map, HUGE_PAGES * TABLE, i++ & 1 ? PROT_READ | PROT_WRITE :
			     PROT_READ | PROT_WRITE | PROT_EXEC))
			fail(a);
		(*ops)++;
	}
}

static const struct class classes[] = {
	{ "mmap_lock", 0, NULL, work_mmap_lock },
	{ "vma_lock", 2, map_vma_lock, work_vma_lock },
	{ "page_table", 0, map_table, work_page_table },
	{ "i_pages", 0, map_i_pages, work_i_pages },
	{ "folio", 0, map_folio, work_folio },
	{ "i_mmap_rwsem", 1, map_i_mmap, work_i_mmap },
	{ "lru", 0, map_lru, work_lru },
};

#define CLASSES_N	(sizeof(classes) / sizeof(*classes))

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
		fail(a);
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
			fail(c->arena);
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
			fail(a);
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

	for (class = classes; class < classes + CLASSES_N && strcmp(class->name, name); class++)
		;
	if (class == classes + CLASSES_N) {
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
		    "one of its processes has ended early" : strerror(a->failed));
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
			 "i_pages, folio, i_mmap_rwsem or lru.",
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
