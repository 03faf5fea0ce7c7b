// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the robustness suite runs in its guests, in one static program: ways to
 * make short-lived tasks, and a count of the BPF objects that the kernel holds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	4096

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(9);
}

static void touch(size_t pages)
{
	volatile char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i;

	if (p == MAP_FAILED)
		fail("mmap");
	/* One fault per page, wherever the mapping is. */
	madvise((void *)p, pages * PAGE, MADV_NOHUGEPAGE);
	for (i = 0; i < pages; i++)
		p[i * PAGE] = 1;
}

static void *thread(void *arg)
{
	touch((size_t)arg);
	return NULL;
}

static int threads(long n, long pages)
{
	pthread_t t[64];
	long i;

	if (n < 1 || n > 64)
		return 9;
	for (i = 0; i < n; i++)
		if (pthread_create(&t[i], NULL, thread, (void *)pages))
			fail("pthread_create");
	for (i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	return 0;
}

static void wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			fail("waitpid");
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		exit(9);
}

static int forks(long n)
{
	pid_t pid;

	for (; n > 0; n--) {
		pid = fork();
		if (pid < 0)
			fail("fork");
		if (!pid)
			_exit(0);
		wait_for(pid);
	}
	return 0;
}

static void vfork_once(char *self)
{
	char *argv[] = { self, "touch", "3", NULL };
	pid_t pid = vfork();

	if (pid < 0)
		fail("vfork");
	if (!pid) {
		execv(self, argv);
		_exit(127);
	}
	wait_for(pid);
}

static int cloned(void *arg)
{
	touch((size_t)arg);
	return 0;
}

/* A process of its own that shares the memory: neither a thread nor a fork. */
static int clone_vm(long n, long pages)
{
	size_t size = 64 * 1024;
	char *stack = malloc(size);
	pid_t pid;

	if (!stack)
		fail("malloc");
	for (; n > 0; n--) {
		pid = clone(cloned, stack + size, CLONE_VM | SIGCHLD, (void *)pages);
		if (pid < 0)
			fail("clone");
		wait_for(pid);
	}
	return 0;
}

/* The page faults, and then it is killed by the signal that they end in. */
static int crash(long pages)
{
	touch(pages);
	*(volatile int *)8 = 1;
	return 0;
}

static long bpf_ids(int get_next)
{
	union bpf_attr attr = { 0 };
	long n = 0;

	while (!syscall(SYS_bpf, get_next, &attr, sizeof(attr))) {
		attr.start_id = attr.next_id;
		n++;
	}
	if (errno != ENOENT)
		fail("bpf");
	return n;
}

static int bpf_objects(void)
{
	printf("%ld %ld %ld\n", bpf_ids(BPF_PROG_GET_NEXT_ID), bpf_ids(BPF_MAP_GET_NEXT_ID),
	       bpf_ids(BPF_LINK_GET_NEXT_ID));
	return 0;
}

/* Three groups of pages; between them: a line to stdout, then a line from stdin. */
static int gated(long a, long b, long c)
{
	long pages[] = { a, b, c };
	char line[16];
	int i;

	for (i = 0; i < 3; i++) {
		touch(pages[i]);
		if (i < 2 && (write(STDOUT_FILENO, "done\n", 5) != 5 ||
			      read(STDIN_FILENO, line, sizeof(line)) <= 0))
			fail("gate");
	}
	return 0;
}

/* A file system of one page, to be full at once. */
static int tiny(const char *directory)
{
	if (mount("tmpfs", directory, "tmpfs", 0, "size=4k,mode=0700"))
		fail("mount");
	return 0;
}

/* A controller's client that opens a region and dies in it. */
static int enable_and_die(void)
{
	const char *text = getenv("MMSCOPE_CONTROL_FD");
	char answer[8];
	int ctl, ack;

	if (!text || sscanf(text, "%d,%d", &ctl, &ack) != 2)
		return 9;
	if (write(ctl, "enable\n", 7) != 7 || read(ack, answer, 4) != 4)
		return 9;
	touch(64);
	raise(SIGKILL);
	return 9;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 0, m = argc > 3 ? atol(argv[3]) : 0;

	if (!strcmp(what, "touch"))
		touch(n);
	else if (!strcmp(what, "threads"))
		return threads(n, m);
	else if (!strcmp(what, "forks"))
		return forks(n);
	else if (!strcmp(what, "vforks"))
		while (n-- > 0)
			vfork_once(argv[0]);
	else if (!strcmp(what, "clone"))
		return clone_vm(n, m);
	else if (!strcmp(what, "crash"))
		return crash(n);
	else if (!strcmp(what, "bpf"))
		return bpf_objects();
	else if (!strcmp(what, "gated") && argc == 5)
		return gated(n, m, atol(argv[4]));
	else if (!strcmp(what, "tiny") && argc == 3)
		return tiny(argv[2]);
	else if (!strcmp(what, "enable-and-die"))
		return enable_and_die();
	else
		return 2;
	return 0;
}
