// SPDX-License-Identifier: GPL-2.0-only
/*
 * waits WORKLOAD ROUNDS REPEATS: prints {"ns": [...]}, what ROUNDS of the workload took,
 * for each repeat after a first that is not told.
 *
 *   rwsem, mutex   a task waits once for a lock of the kernel's that another one holds
 *                  asleep: the inode's of a file, or a pipe's
 *   mmap           a page is mapped and unmapped: nobody else wants mmap_lock
 *   pipe           a byte is written to a pipe and read: nobody else wants its mutex
 *   fault          a page is touched for the first time: nobody else wants its locks
 *
 * The waits are certain. The holder copies from or to a page that userfaultfd keeps back,
 * which puts it to sleep with the lock; all run on one CPU, and both tasks are of real-time
 * priority, so that each of them runs until it sleeps as soon as it is told to.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define REPEATS	256

static char *page;		/* kept back */
static int file, ends[2], uffd, holder_go, waiter_go, done;
static int of_pipe;

static void fail(const char *what)
{
	fprintf(stderr, "waits: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static void told(int fd)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) != sizeof(n))
		fail("eventfd");
}

static void tell(int fd)
{
	uint64_t n = 1;

	if (write(fd, &n, sizeof(n)) != sizeof(n))
		fail("eventfd");
}

static void *hold(void *unused)
{
	for (;;) {
		told(holder_go);
		if ((of_pipe ? read(ends[0], page, 1) : pwrite(file, page, 1, 0)) != 1)
			fail("holder");
		tell(done);
	}
	return NULL;
}

static void *wait_for_it(void *unused)
{
	char byte = 0;

	for (;;) {
		told(waiter_go);
		if ((of_pipe ? write(ends[1], &byte, 1) : pwrite(file, &byte, 1, 0)) != 1)
			fail("waiter");
		tell(done);
	}
	return NULL;
}

static void wait_once(void)
{
	struct uffdio_zeropage zero = { .range = { (uintptr_t)page, PAGE } };
	struct uffd_msg msg;

	tell(holder_go);
	if (read(uffd, &msg, sizeof(msg)) != sizeof(msg))	/* it holds the lock, asleep */
		fail("userfaultfd");
	tell(waiter_go);					/* it waits for the lock */
	if (ioctl(uffd, UFFDIO_ZEROPAGE, &zero))
		fail("UFFDIO_ZEROPAGE");
	told(done);						/* one, */
	told(done);						/* and the other */
	if (madvise(page, PAGE, MADV_DONTNEED))
		fail("madvise");
}

static void start(void *(*run)(void *))
{
	struct sched_param first = { .sched_priority = 1 };
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &first);
	errno = pthread_create(&thread, &attr, run, NULL);
	if (errno)
		fail("pthread_create");
}

static void prepare(void)
{
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };

	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	file = memfd_create("waits", 0);
	uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	range.range.start = (uintptr_t)page;
	range.range.len = PAGE;
	if (page == MAP_FAILED || file < 0 || uffd < 0 || ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &range))
		fail("userfaultfd");
	holder_go = eventfd(0, 0);
	waiter_go = eventfd(0, 0);
	done = eventfd(0, EFD_SEMAPHORE);
	/* A byte is always there to be read. */
	if (pipe(ends) || write(ends[1], "", 1) != 1)
		fail("pipe");
	start(hold);
	start(wait_for_it);
}

static void map_once(void)
{
	char *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || munmap(p, PAGE))
		fail("mmap");
}

static void pipe_once(void)
{
	char byte = 0;

	if (write(ends[1], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1)
		fail("pipe");
}

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

int main(int argc, char **argv)
{
	const char *what = argc == 4 ? argv[1] : "";
	long rounds = argc == 4 ? atol(argv[2]) : 0, repeats = argc == 4 ? atol(argv[3]) : 0;
	static long ns[REPEATS + 1];
	cpu_set_t first;
	char *pages;
	long i, n;

	if (rounds < 1 || repeats < 1 || repeats > REPEATS)
		return 2;
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	if (sched_setaffinity(0, sizeof(first), &first))
		fail("sched_setaffinity");
	of_pipe = !strcmp(what, "mutex");
	if (of_pipe || !strcmp(what, "rwsem"))
		prepare();
	else if (!strcmp(what, "pipe") && pipe(ends))
		fail("pipe");
	pages = mmap(NULL, rounds * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	if (pages == MAP_FAILED || madvise(pages, rounds * PAGE, MADV_NOHUGEPAGE))
		fail("mmap");
	for (n = 0; n <= repeats; n++) {
		ns[n] = now();
		for (i = 0; i < rounds; i++) {
			if (uffd)
				wait_once();
			else if (!strcmp(what, "mmap"))
				map_once();
			else if (!strcmp(what, "pipe"))
				pipe_once();
			else
				((volatile char *)pages)[i * PAGE] = 1;
		}
		ns[n] = now() - ns[n];
		madvise(pages, rounds * PAGE, MADV_DONTNEED);
	}
	printf("{\"ns\": [");
	for (n = 1; n <= repeats; n++)
		printf("%ld%s", ns[n], n < repeats ? ", " : "]}\n");
	fflush(stdout);
	_exit(0);	/* the two others never end */
}
