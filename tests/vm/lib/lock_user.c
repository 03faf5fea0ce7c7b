// SPDX-License-Identifier: GPL-2.0-only
/*
 * lock_user N [PROGRAM [ARGS]]: waits N times for a file that another thread has locked, in
 * the last of functions that call each other, of names that begin with NAME; then executes
 * PROGRAM. Prints its number and the offset in its file of each of the functions first, and
 * starts when there is something to read or the end of standard input.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef NAME
#define NAME	user
#endif
#define JOIN(a, b)	a##_##b
#define NAMED(a, b)	JOIN(a, b)
#define FUNCTION(x)	NAMED(NAME, x)

#define PAGE	4096

static char *page;		/* kept back by userfaultfd */
static int file, uffd;
static sem_t go, held, done, next;

/* What the C library's syscall() is called by is not found: it makes no frame. */
__attribute__((noinline)) static long FUNCTION(d)(void)
{
	long n = syscall(SYS_pwrite64, file, "", 1, 0);

	__asm__ volatile("" : "+r"(n));
	return n;
}

#define CALLS(name, other)						\
__attribute__((noinline)) static long FUNCTION(name)(void)		\
{									\
	long n = FUNCTION(other)();					\
									\
	__asm__ volatile("" : "+r"(n));					\
	return n;							\
}

CALLS(c, d)
CALLS(b, c)
CALLS(a, b)

static void *hold(void *rounds)
{
	long i;

	for (i = 0; i < *(long *)rounds; i++) {
		sem_wait(&go);
		if (pwrite(file, page, 1, 0) != 1)
			_exit(1);
		sem_post(&done);
	}
	return NULL;
}

/* The first thread sleeps in its write; while it runs this file says so. */
static int writes(void)
{
	char path[64], line[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", getpid());
	f = fopen(path, "r");
	if (!f || !fgets(line, sizeof(line), f))
		_exit(1);
	fclose(f);
	return atoi(line) == SYS_pwrite64;
}

static void *let_go(void *rounds)
{
	struct uffdio_zeropage zero = { .range = { (uintptr_t)page, PAGE } };
	struct uffd_msg msg;
	long i;

	for (i = 0; i < *(long *)rounds; i++) {
		sem_post(&go);
		if (read(uffd, &msg, sizeof(msg)) != sizeof(msg))
			_exit(1);
		sem_post(&held);
		while (!writes())
			usleep(1000);
		if (ioctl(uffd, UFFDIO_ZEROPAGE, &zero))
			_exit(1);
		sem_wait(&next);
	}
	return NULL;
}

static void tell_offset(const char *name, long (*function)(void))
{
	uint64_t start, end, offset;
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) ==
		    3 && (uintptr_t)function >= start && (uintptr_t)function < end)
			printf(" %s %" PRIu64, name, (uintptr_t)function - start + offset);
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	long rounds = argc > 1 ? atol(argv[1]) : 0, i;
	pthread_t holder, helper;
	char any;

	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	file = memfd_create("held", 0);
	uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	range.range.start = (uintptr_t)page;
	range.range.len = PAGE;
	if (page == MAP_FAILED || file < 0 || uffd < 0 || ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &range))
		return 1;
	printf("%d", getpid());
	tell_offset("a", FUNCTION(a));
	tell_offset("b", FUNCTION(b));
	tell_offset("c", FUNCTION(c));
	tell_offset("d", FUNCTION(d));
	puts("");
	fflush(stdout);
	if (read(0, &any, 1) < 0 || pthread_create(&holder, NULL, hold, &rounds) ||
	    pthread_create(&helper, NULL, let_go, &rounds))
		return 1;
	for (i = 0; i < rounds; i++) {
		sem_wait(&held);
		if (FUNCTION(a)() != 1)
			return 1;
		sem_wait(&done);
		if (madvise(page, PAGE, MADV_DONTNEED))
			return 1;
		sem_post(&next);
	}
	if (argc > 2)
		execv(argv[2], argv + 2);
	return argc > 2;
}
