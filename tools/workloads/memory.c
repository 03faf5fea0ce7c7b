// SPDX-License-Identifier: GPL-2.0-only
/* Memory that does not fault in the region, and children that share it. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workloads/memory.h"

#define STACK_USED	(128 * 1024)
#define CHILD_STACK	(64 * 1024)

void *memory_alloc(size_t len)
{
	void *p;

	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
		 -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	/* Different flags also keep the kernel from merging it with a workload's mapping. */
	if (madvise(p, len, MADV_DONTFORK)) {
		munmap(p, len);
		return NULL;
	}
	/* MAP_POPULATE is best effort. */
	memset(p, 0, len);
	return p;
}

void memory_free(void *p, size_t len)
{
	if (p)
		munmap(p, len);
}

__attribute__((noinline)) void memory_prefault_stack(void)
{
	volatile char below[STACK_USED];
	size_t i;

	for (i = 0; i < sizeof(below); i += 1024)
		below[i] = 0;
}

struct child {
	char *stack;		/* the child's, and at its low end what the child needs */
	pid_t pid;
	int gate;		/* our end: closed to let a holding child go */
	sigset_t mask;
};

struct child_need {
	int gate[2], ready[2];
};

/*
 * The children run on a stack of their own and without the caller's, so a
 * compiler must not add anything that looks elsewhere.
 */
#define CHILD_CODE                                                                                 \
	__attribute__((noinline, no_stack_protector, no_sanitize("address", "undefined")))

CHILD_CODE static int child_exits(void *unused)
{
	syscall(SYS_exit_group, 0);
	return 0;
}

CHILD_CODE static int child_holds(void *arg)
{
	struct child_need *need = arg;
	char byte = 0;
	long n;

	syscall(SYS_close, need->gate[1]);
	syscall(SYS_write, need->ready[1], &byte, 1);
	syscall(SYS_close, need->ready[1]);
	do {
		n = syscall(SYS_read, need->gate[0], &byte, 1);
	} while (n > 0);
	syscall(SYS_exit_group, n == 0 ? 0 : 1);
	return 0;
}

static uintptr_t thread_pointer(void)
{
#ifdef __x86_64__
	uintptr_t tp;

	__asm__("mov %%fs:0, %0" : "=r"(tp));
	return tp;
#else
	return (uintptr_t)__builtin_thread_pointer();
#endif
}

/*
 * The kernel writes a thread's rseq area when it preempts the thread. After a
 * fork that write would be a copy-on-write fault, at random.
 */
static void rseq_stop(void)
{
	void *area = (void *)(thread_pointer() + __rseq_offset);
	unsigned int len;

	if (!__rseq_size)
		return;
	/* The C library does not tell the length it registered, only the part in use. */
	for (len = 32; len <= 512; len += 4)
		if (!syscall(SYS_rseq, area, len, 1 /* unregister */, RSEQ_SIG))
			return;
}

/* The mapping that holds the caller's stack. */
static int find_stack(uintptr_t *start, uintptr_t *end)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int ret = -1;

	if (!maps)
		return -1;
	while (ret && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", start, end) == 2 && (uintptr_t)line >= *start &&
		    (uintptr_t)line < *end)
			ret = 0;
	fclose(maps);
	if (ret)
		errno = ENOENT;
	return ret;
}

struct child *child_new(void)
{
	uintptr_t start, end;
	struct child *c;

	memory_prefault_stack();
	if (find_stack(&start, &end) || madvise((void *)start, end - start, MADV_DONTFORK))
		return NULL;
	rseq_stop();
	c = memory_alloc(sizeof(*c));
	if (!c)
		return NULL;
	c->pid = -1;
	c->gate = -1;
	/* Shared: clone() writes to it, and a private page would be write-protected by then. */
	c->stack = mmap(NULL, CHILD_STACK, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (c->stack == MAP_FAILED) {
		memory_free(c, sizeof(*c));
		return NULL;
	}
	return c;
}

void child_free(struct child *c)
{
	if (!c)
		return;
	if (c->pid > 0)
		child_wait(c, NULL);
	munmap(c->stack, CHILD_STACK);
	memory_free(c, sizeof(*c));
}

/* The child inherits blocked signals: a handler of ours is not for it to run. */
static int start(struct child *c, int (*code)(void *))
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &c->mask);
	c->pid = clone(code, c->stack + CHILD_STACK, SIGCHLD, c->stack);
	sigprocmask(SIG_SETMASK, &c->mask, NULL);
	return c->pid > 0 ? 0 : -1;
}

int child_fork(struct child *c)
{
	return start(c, child_exits);
}

int child_fork_holding(struct child *c)
{
	struct child_need *need = (void *)c->stack;
	char byte;
	ssize_t n;

	if (pipe2(need->gate, O_CLOEXEC))
		return -1;
	if (pipe2(need->ready, O_CLOEXEC)) {
		close(need->gate[0]);
		close(need->gate[1]);
		return -1;
	}
	c->gate = need->gate[1];
	if (start(c, child_holds)) {
		close(need->gate[0]);
		close(need->gate[1]);
		close(need->ready[0]);
		close(need->ready[1]);
		c->gate = -1;
		return -1;
	}
	close(need->gate[0]);
	close(need->ready[1]);
	do {
		n = read(need->ready[0], &byte, 1);
	} while (n < 0 && errno == EINTR);
	close(need->ready[0]);
	if (n == 1)
		return 0;
	child_wait(c, NULL);
	errno = ECHILD;
	return -1;
}

int child_wait(struct child *c, unsigned long *minflt)
{
	struct rusage usage;
	int status;
	pid_t pid;

	if (c->gate >= 0)
		close(c->gate);
	c->gate = -1;
	do {
		pid = wait4(c->pid, &status, 0, &usage);
	} while (pid < 0 && errno == EINTR);
	c->pid = -1;
	if (pid < 0)
		return -1;
	if (minflt)
		*minflt = usage.ru_minflt;
	if (status) {
		errno = ECHILD;
		return -1;
	}
	return 0;
}
