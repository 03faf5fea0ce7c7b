// SPDX-License-Identifier: GPL-2.0-only
/*
 * lock_classes NAME SECONDS: four threads or processes of this name collide on a lock that
 * no workload of mmscope has. Status 77: this kernel has not what it takes, which is told.
 *
 * zone: pages are allocated and freed, next to none of which is left to a CPU, while the
 * free ones are counted.
 * anon_vma: relatives fork.
 * invalidate_lock: pages of secret memory are faulted in while its size is to be changed.
 * inode: the i_lock of a file, for a name among many that are gone, and for its size.
 * memcg: the limit of a memory cgroup; where there are none of version 1, the peak of one
 * of version 2 (6.12 and later), for many observers of it.
 * memcg_event: who wants to be told of how much is in a memory cgroup of version 1.
 * memcg_stat: the statistics of a memory cgroup are read while they change.
 * huge: huge pages are faulted in, split and unmapped, all below one table of PMDs.
 * split: pages of the page table that was kept for a huge page until it was split.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS		4
#define SKIPPED		77
#define HUGE		(2UL << 20)
#define GIB		(1UL << 30)
#define ANCESTORS	8	/* that each have an anon_vma of their own */
#define SECRET		(16UL << 20)
#define NAMES		1000
#define INODES		"/tmp/inodes"
#define WATCHERS	512
#define CHANGED		(256UL << 10)	/* statistics that change less are as they were */
#define GROUPS		"/tmp/groups"
#define GROUP		GROUPS "/lock_classes"

static double seconds;
static struct timespec start;
static char *memory;
static int file = -1;
static atomic_long left;	/* that still fault */

static bool on(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - start.tv_sec + (now.tv_nsec - start.tv_nsec) / 1e9 < seconds;
}

static int failed(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	return 1;
}

static int skipped(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	return SKIPPED;
}

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool wrong = fd < 0 || write(fd, text, strlen(text)) < 0;

	if (fd >= 0)
		close(fd);
	return !wrong;
}

static bool processes(void *(*work)(void *))
{
	pid_t pid[THREADS];
	bool wrong = false;
	int status;
	long i;

	for (i = 0; i < THREADS; i++) {
		pid[i] = fork();
		if (!pid[i])
			_exit(work((void *)i) != NULL);
	}
	for (i = 0; i < THREADS; i++)
		wrong |= pid[i] < 0 || waitpid(pid[i], &status, 0) != pid[i] || status;
	return !wrong;
}

/* Each gets its number; what one returns is wrong. */
static bool threads(void *(*work)(void *))
{
	pthread_t thread[THREADS];
	void *wrong, *any = NULL;
	long i;

	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)i))
			return false;
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &wrong);
		any = any ? any : wrong;
	}
	return !any;
}

/* ---- zone ---- */

static void *pipes(void *arg)
{
	static char text[65536];
	int fd[2];

	/* The lock is held for each list. */
	while (!arg && on()) {
		fd[0] = open("/proc/pagetypeinfo", O_RDONLY);
		while (fd[0] >= 0 && read(fd[0], text, sizeof(text)) > 0)
			;
		close(fd[0]);
	}
	while (on()) {
		/* A page for each write. */
		if (pipe2(fd, O_DIRECT | O_NONBLOCK))
			return "pipe";
		fcntl(fd[1], F_SETPIPE_SZ, 1 << 20);
		while (write(fd[1], "", 1) == 1)
			;
		close(fd[0]);
		close(fd[1]);
	}
	return NULL;
}

static int zone(void)
{
	static const char lists[] = "/proc/sys/vm/percpu_pagelist_high_fraction";
	bool done;

	if (!put(lists, "1000000"))
		return failed(lists);
	done = threads(pipes);
	return done && put(lists, "0") ? 0 : failed("pipes");
}

/* ---- anon_vma ---- */

static void *children(void *arg)
{
	pid_t child;

	while (on()) {
		child = fork();
		if (!child)
			_exit(0);
		if (child < 0 || waitpid(child, NULL, 0) != child)
			return "fork";
	}
	return NULL;
}

static int family(void)
{
	pid_t child;
	int i, status;

	for (i = 0; i < ANCESTORS; i++) {
		child = fork();
		if (child < 0)
			return failed("fork");
		if (child)
			return waitpid(child, &status, 0) == child && !status ? 0 : 1;
	}
	return !processes(children);
}

/* ---- invalidate_lock ---- */

static void *secrets(void *arg)
{
	size_t share = SECRET / (THREADS - 1), i;
	char *own = memory + (long)arg * share;

	if (arg == (void *)(THREADS - 1))
		while (left)
			if (!ftruncate(file, 2 * SECRET))	/* never again */
				return "size";
	for (i = 0; arg != (void *)(THREADS - 1) && i < share; i += 4096)
		*(volatile char *)(own + i) = 1;
	left--;
	return NULL;
}

static int secret(void)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	bool done = true;

	if (setrlimit(RLIMIT_MEMLOCK, &all))
		return failed("RLIMIT_MEMLOCK");
	while (done && on()) {
		file = syscall(SYS_memfd_secret, 0);
		if (file < 0)
			return errno == ENOSYS ? skipped("memfd_secret") : failed("memfd_secret");
		if (ftruncate(file, SECRET))
			return failed("ftruncate");
		memory = mmap(NULL, SECRET, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		if (memory == MAP_FAILED)
			return failed("mmap");
		left = THREADS - 1;
		done = threads(secrets);
		munmap(memory, SECRET);
		close(file);
	}
	return done ? 0 : failed("secrets");
}

/* ---- inode ---- */

static union {
	struct file_handle handle;
	char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
} name;

static void *names_and_sizes(void *arg)
{
	int of = open(INODES, O_RDONLY | O_DIRECTORY), fd;
	loff_t size;

	while (on()) {
		if (ioctl(file, FIOQSIZE, &size))
			return "FIOQSIZE";
		if ((long)arg % 2)
			continue;
		fd = open_by_handle_at(of, &name.handle, O_RDONLY);
		if (fd < 0)
			return "open_by_handle_at";
		close(fd);
	}
	close(of);
	return NULL;
}

static int inode(void)
{
	struct rlimit many = { NAMES + 100, NAMES + 100 };
	int i, mount_id;

	name.handle.handle_bytes = MAX_HANDLE_SZ;
	mkdir(INODES, 0700);
	if (mount("none", INODES, "tmpfs", 0, NULL))
		return failed(INODES);
	file = open(INODES "/file", O_CREAT | O_RDWR, 0600);
	if (file < 0 || setrlimit(RLIMIT_NOFILE, &many) ||
	    name_to_handle_at(AT_FDCWD, INODES "/file", &name.handle, &mount_id, 0))
		return failed("name_to_handle_at");
	/* Who looks for a name, with the lock held, finds these first. */
	for (i = 0; i < NAMES; i++)
		if (link(INODES "/file", INODES "/gone") || open(INODES "/gone", O_RDONLY) < 0 ||
		    unlink(INODES "/gone"))
			return failed("link");
	if (!threads(names_and_sizes))
		return failed("open_by_handle_at");
	return umount2(INODES, MNT_DETACH) ? failed(INODES) : 0;
}

/* ---- memory cgroups ---- */

static const char *knob;	/* that is written */

/* A group of its own of version 2, or if told of version 1. */
static bool group(bool old)
{
	const char *type = old ? "cgroup" : "cgroup2";
	int i;

	mkdir(GROUPS, 0700);
	/* What was there before goes away in its own time. */
	for (i = 0; mount("none", GROUPS, type, 0, old ? "memory" : NULL); i++) {
		if (errno != EBUSY || i == 100)
			return false;
		usleep(100000);
	}
	if (!old)
		put(GROUPS "/cgroup.subtree_control", "+memory");
	return !mkdir(GROUP, 0700) || errno == EEXIST;
}

static void ungroup(void)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	put(GROUPS "/cgroup.procs", pid);
	rmdir(GROUP);
	umount2(GROUPS, MNT_DETACH);
}

static void *knobs(void *arg)
{
	int fd = open(knob, O_RDWR);

	if (fd < 0)
		return "open";
	while (on())
		if (pwrite(fd, "-1", 2, 0) != 2)
			return "write";
	close(fd);
	return NULL;
}

static int memcg(void)
{
	bool old = group(true), done;
	int i;

	if (!old && !group(false))
		return failed("cgroup2");
	knob = old ? GROUP "/memory.limit_in_bytes" : GROUP "/memory.peak";
	/* Who has written is told of peaks: the lock is held for a look at each. */
	for (i = 0; !old && i < WATCHERS; i++) {
		file = open(knob, O_RDWR);
		if (file < 0 || write(file, "x", 1) != 1)
			return failed(knob);
	}
	done = threads(knobs);
	if (!done)
		failed(knob);
	ungroup();
	return !done;
}

static void *events(void *arg)
{
	int fd = open(GROUP "/memory.usage_in_bytes", O_RDONLY), event;
	int control = open(GROUP "/cgroup.event_control", O_WRONLY);
	char text[64];

	while (on()) {
		event = eventfd(0, 0);
		snprintf(text, sizeof(text), "%d %d 1000000", event, fd);
		if (write(control, text, strlen(text)) < 0)
			return "event";
		close(event);
	}
	close(control);
	close(fd);
	return NULL;
}

static int memcg_event(void)
{
	bool done;

	if (!group(true))
		return failed("cgroup");
	done = threads(events);
	if (!done)
		failed("cgroup.event_control");
	ungroup();
	return !done;
}

static void *statistics(void *arg)
{
	static char text[65536];
	int fd = open(GROUP "/memory.stat", O_RDONLY);
	char *p;

	while (on()) {
		p = mmap(NULL, CHANGED, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (p == MAP_FAILED || munmap(p, CHANGED) ||
		    pread(fd, text, sizeof(text), 0) <= 0)
			return "memory.stat";
	}
	close(fd);
	return NULL;
}

static int memcg_stat(void)
{
	char pid[16];
	bool done;

	snprintf(pid, sizeof(pid), "%d", getpid());
	if (!group(false) || !put(GROUP "/cgroup.procs", pid))
		return failed("cgroup2");
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
		return failed("PR_SET_THP_DISABLE");
	done = processes(statistics);
	if (!done)
		failed("memory.stat");
	ungroup();
	return !done;
}

/* ---- huge ---- */

static void *huge_pages(void *arg)
{
	char *own = memory + (long)arg * HUGE;

	while (on()) {
		if (mmap(own, HUGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != own)
			return "mmap";
		madvise(own, HUGE, MADV_HUGEPAGE);
		*(volatile char *)own = 1;
		if (madvise(own, 4096, MADV_DONTNEED))
			return "madvise";
	}
	return NULL;
}

static int huge(void)
{
	memory = mmap(NULL, 2 * GIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return failed("mmap");
	memory += -(uintptr_t)memory & (GIB - 1);
	return threads(huge_pages) ? 0 : failed("huge pages");
}

/* As mmscope bench contend page_table has it. */
static void *small_pages(void *arg)
{
	size_t share = HUGE / THREADS, i;
	char *own = memory + (long)arg * share;

	while (on()) {
		/* The first one stays, and the table with it. */
		for (i = arg ? 0 : 4096; i < share && on(); i += 4096) {
			(void)*(volatile char *)(own + i);
			*(volatile char *)(own + i) = 1;
		}
		i = arg ? 0 : 4096;
		if (madvise(own + i, share - i, MADV_DONTNEED))
			return "madvise";
	}
	return NULL;
}

/* Is any of this process's memory a huge page? */
static bool is_huge(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	char line[128];
	long kib = 0;

	while (f && !kib && fgets(line, sizeof(line), f))
		sscanf(line, "AnonHugePages: %ld kB", &kib);
	if (f)
		fclose(f);
	errno = ENOMEM;
	return kib;
}

static int split(void)
{
	memory = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return failed("mmap");
	memory += -(uintptr_t)memory & (HUGE - 1);
	madvise(memory, HUGE, MADV_HUGEPAGE);
	*(volatile char *)memory = 1;
	if (!is_huge())
		return skipped("huge page");
	if (madvise(memory + 4096, HUGE - 4096, MADV_DONTNEED) ||
	    madvise(memory, HUGE, MADV_NOHUGEPAGE))
		return failed("madvise");
	return threads(small_pages) ? 0 : failed("small pages");
}

static const struct {
	const char *name;
	int (*run)(void);
} workloads[] = {
	{ "zone", zone }, { "anon_vma", family }, { "invalidate_lock", secret },
	{ "inode", inode }, { "memcg", memcg }, { "memcg_event", memcg_event },
	{ "memcg_stat", memcg_stat }, { "huge", huge }, { "split", split },
};

int main(int argc, char **argv)
{
	size_t i;

	if (argc != 3)
		return 2;
	seconds = atof(argv[2]);
	prctl(PR_SET_NAME, argv[1]);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (i = 0; i < sizeof(workloads) / sizeof(*workloads); i++)
		if (!strcmp(workloads[i].name, argv[1]))
			return workloads[i].run();
	return 2;
}
