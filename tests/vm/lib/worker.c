// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process that takes page faults when it is told to, and says how many it took:
 * a letter and a number on stdin, an answer on stdout.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	4096UL

static char *area;		/* of pages that nobody has touched */
static size_t next_page;
static int to_second[2], from_second[2];
static pid_t second_tid;

static void fail(const char *what)
{
	fprintf(stderr, "worker: %s: %s\n", what, strerror(errno));
	exit(9);
}

static void touch(size_t pages)
{
	volatile char *p = area + next_page * PAGE;

	next_page += pages;
	for (; pages; pages--, p += PAGE)
		*p = 1;
}

static void *new_thread(void *arg)
{
	touch((size_t)arg);
	return NULL;
}

static void in_new_thread(size_t pages)
{
	pthread_t t;

	if (pthread_create(&t, NULL, new_thread, (void *)pages) || pthread_join(t, NULL))
		fail("pthread_create");
}

/*
 * Pages of which the first touch hangs until somebody answers, which nobody does:
 * in n threads at once, or in the caller.
 */
static volatile char *hanging;
static int handler;		/* of their faults */

static void *hang(void *arg)
{
	hanging[(size_t)arg * PAGE] = 1;
	return NULL;
}

static void make_hanging(void)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
		fail("userfaultfd");
	handler = fd;
	hanging = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (hanging == MAP_FAILED)
		fail("mmap");
	range.range.start = (uintptr_t)hanging;
	range.range.len = 64 * PAGE;
	if (ioctl(fd, UFFDIO_REGISTER, &range))
		fail("UFFDIO_REGISTER");
}

/* Let whoever hangs in the first n pages go on, and forget them. */
static void release(size_t n)
{
	struct uffdio_zeropage zero = { .range = { (uintptr_t)hanging, n * PAGE } };
	struct uffdio_range all = { (uintptr_t)hanging, 64 * PAGE };
	char c;

	if (ioctl(handler, UFFDIO_ZEROPAGE, &zero) || read(from_second[0], &c, 1) != 1 ||
	    ioctl(handler, UFFDIO_UNREGISTER, &all) ||
	    madvise((void *)hanging, 64 * PAGE, MADV_DONTNEED))
		fail("release");
}

/* As a debugger reads them. */
static void read_by_gup(size_t n)
{
	int fd = open("/proc/self/mem", O_RDONLY);
	char c;

	for (; n; n--)
		if (pread(fd, &c, 1, (uintptr_t)hanging + (n - 1) * PAGE) != 1)
			fail("/proc/self/mem");
	close(fd);
}

/* The second thread is there from the start. */
static void *second(void *arg)
{
	struct { char what; size_t n; } order;

	(void)arg;
	second_tid = syscall(SYS_gettid);
	if (write(from_second[1], "", 1) != 1)
		fail("write");
	while (read(to_second[0], &order, sizeof(order)) == sizeof(order)) {
		if (order.what == 'N')
			in_new_thread(order.n);
		else if (order.what == 'P')
			madvise((void *)hanging, order.n * PAGE, MADV_POPULATE_WRITE);
		else if (order.what == 'G')
			read_by_gup(order.n);
		else if (order.what == 'X')
			break;
		else
			touch(order.n);
		if (write(from_second[1], "", 1) != 1)
			fail("write");
	}
	return NULL;
}

static void by_second(char what, size_t n)
{
	struct { char what; size_t n; } order = { what, n };
	char c;

	if (write(to_second[1], &order, sizeof(order)) != sizeof(order))
		fail("write");
	if (what != 'X' && what != 'P' && read(from_second[0], &c, 1) != 1)
		fail("read");
}

static void in_child(size_t pages)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	if (!pid) {
		touch(pages);
		_exit(0);
	}
	if (waitpid(pid, NULL, 0) != pid)
		fail("waitpid");
}

/* Many of them, one after another. */
static void children(size_t n)
{
	while (n--)
		in_child(1);
}

static void hang_threads(size_t n)
{
	pthread_t t;
	size_t i;

	make_hanging();
	for (i = 0; i < n; i++)
		if (pthread_create(&t, NULL, hang, (void *)i))
			fail("pthread_create");
}

/* A System V segment of n pages, touched. */
static void sysv(size_t n)
{
	int id = shmget(IPC_PRIVATE, n * PAGE, IPC_CREAT | 0600);
	volatile char *p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
	size_t i;

	if (p == (void *)-1)
		fail("shmat");
	shmctl(id, IPC_RMID, NULL);
	for (i = 0; i < n; i++)
		p[i * PAGE] = 1;
	shmdt((void *)p);
}

static long faults(int who)
{
	struct rusage r;

	getrusage(who, &r);
	return r.ru_minflt + r.ru_majflt;
}

static void answer(void)
{
	char text[96];
	int n, i;

	/* After a fork the first pass copies the pages of the stack that it needs. */
	for (i = 0; i < 2; i++)
		n = snprintf(text, sizeof(text), "%d %d %ld %ld\n", getpid(), second_tid,
			     faults(RUSAGE_SELF), faults(RUSAGE_CHILDREN));
	if (write(STDOUT_FILENO, text, n) != n)
		exit(0);
}

static void obey(char what, size_t n)
{
	char name[16];

	switch (what) {
	case 't': touch(n); break;
	case 's': by_second('t', n); break;
	case 'n': in_new_thread(n); break;
	case 'm': by_second('N', n); break;
	case 'f': in_child(n); break;
	case 'F': children(n); break;
	case 'V': sysv(n); break;
	case 'x': by_second('X', 0); break;
	case 'c':
		snprintf(name, sizeof(name), "name-%zu", n);
		prctl(PR_SET_NAME, name);
		break;
	case 'H': hang_threads(n); break;
	case 'P':
		make_hanging();
		by_second('P', n);
		break;
	case 'R': release(n); break;
	case 'G': by_second('G', n); break;
	case 'h':
		make_hanging();
		answer();
		hang(NULL);
		break;
	case 'q': _exit(n);
	default: exit(2);
	}
}

int main(void)
{
	static char line[64];
	size_t n, len = 0;
	pthread_t t;
	char c;

	area = mmap(NULL, 1UL << 30, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (area == MAP_FAILED || madvise(area, 1UL << 30, MADV_NOHUGEPAGE))
		fail("mmap");
	if (pipe(to_second) || pipe(from_second) || pthread_create(&t, NULL, second, NULL) ||
	    read(from_second[0], &c, 1) != 1)
		fail("second thread");
	/* Nothing of the talk itself faults later. */
	in_new_thread(1);
	by_second('t', 1);
	answer();
	while (read(STDIN_FILENO, &c, 1) == 1) {
		if (c != '\n' && len < sizeof(line) - 1) {
			line[len++] = c;
			continue;
		}
		line[len] = 0;
		len = 0;
		n = strtoul(line + 1, NULL, 10);
		obey(*line, n);
		answer();
	}
	return 0;
}
