// SPDX-License-Identifier: GPL-2.0-only
/*
 * lock runs: how often each BPF program ran, by the kernel's own count.
 * lock vma N: N mprotect(2) of a mapping in which three threads fault.
 * lock huge N: N faults each of two threads on the same huge pages, under a mutex.
 * lock map N [PROGRAM [ARGS]], lock read N FILE: four threads map memory, or read the file by
 * one descriptor, until they have slept N times, which they do for the lock only; prints
 * the number of the process. PROGRAM is executed after that.
 * lock hold N: N threads, w00000 and so on, wait once each for a file that another one has
 * locked; prints the number of the process.
 * lock populate N: four threads map N times a page that is populated.
 * lock executable N: on each CPU, N times, a page that may be executed is mapped.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES	64
#define HUGE	(2UL << 20)

static char *map;
static atomic_bool stop;
static long rounds;

static int bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static int runs(void)
{
	union bpf_attr attr = { 0 };
	struct bpf_prog_info info;
	uint32_t id = 0;
	int fd;

	for (;;) {
		memset(&attr, 0, sizeof(attr));
		attr.start_id = id;
		if (bpf(BPF_PROG_GET_NEXT_ID, &attr))
			return 0;
		id = attr.next_id;
		memset(&attr, 0, sizeof(attr));
		attr.prog_id = id;
		fd = bpf(BPF_PROG_GET_FD_BY_ID, &attr);
		if (fd < 0)
			continue;
		memset(&attr, 0, sizeof(attr));
		memset(&info, 0, sizeof(info));
		attr.info.bpf_fd = fd;
		attr.info.info_len = sizeof(info);
		attr.info.info = (uintptr_t)&info;
		if (!bpf(BPF_OBJ_GET_INFO_BY_FD, &attr))
			printf("%s %llu\n", info.name, (unsigned long long)info.run_cnt);
		close(fd);
	}
}

static void *fault(void *arg)
{
	long i;

	while (!stop) {
		for (i = 0; i < PAGES; i++)
			*(volatile char *)(map + i * 4096) = 1;
		madvise(map, PAGES * 4096, MADV_DONTNEED);
	}
	return NULL;
}

static int vma(void)
{
	pthread_t thread[3];
	long i;

	map = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return 1;
	for (i = 0; i < 3; i++)
		if (pthread_create(&thread[i], NULL, fault, NULL))
			return 1;
	for (i = 0; i < rounds; i++)
		if (mprotect(map, PAGES * 4096, PROT_READ | PROT_WRITE | (i & 1 ? 0 : PROT_EXEC)))
			return 1;
	stop = true;
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	return 0;
}

static void *fault_huge(void *arg)
{
	long i;

	for (i = 0; i < rounds; i++) {
		*(volatile char *)map = 1;
		madvise(map, HUGE, MADV_DONTNEED);
	}
	return NULL;
}

static int huge(void)
{
	pthread_t thread[2];
	int i;

	map = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (map == MAP_FAILED)
		return 1;
	for (i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, fault_huge, NULL))
			return 1;
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return 0;
}

#define COLLIDERS	4
#define PIECE	(1 << 20)

static int file = -1;
static atomic_long sleeps;

static void *collide(void *arg)
{
	char *room = file < 0 ? NULL : malloc(PIECE);
	long last = 0;

	while (sleeps < rounds) {
		struct rusage use;
		void *p;

		if (file < 0) {
			p = mmap(NULL, 16 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			munmap(p, 16 * 4096);
		} else if (read(file, room, PIECE) < PIECE) {
			lseek(file, 0, SEEK_SET);
		}
		getrusage(RUSAGE_THREAD, &use);
		sleeps += use.ru_nvcsw - last;
		last = use.ru_nvcsw;
	}
	free(room);
	return NULL;
}

static int collisions(char **program)
{
	pthread_t thread[COLLIDERS];
	int i;

	for (i = 0; i < COLLIDERS; i++)
		if (pthread_create(&thread[i], NULL, collide, NULL))
			return 1;
	for (i = 0; i < COLLIDERS; i++)
		pthread_join(thread[i], NULL);
	printf("%d\n", getpid());
	fflush(stdout);
	if (!program || !*program)
		return 0;
	execv(program[0], program);
	return 1;
}

#define SLEEPS_MAX	60000	/* milliseconds: that something does not come */

static atomic_int waiting;

/* A write of what is not there yet: until it is, the file is locked. */
static void *hold(void *arg)
{
	prctl(PR_SET_NAME, "holder");
	return pwrite(file, map, 1, 0) == 1 ? NULL : map;
}

static void *wait_for_file(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "w%05ld", (long)(intptr_t)arg);
	prctl(PR_SET_NAME, name);
	waiting++;
	return pwrite(file, "", 1, 0) == 1 ? NULL : map;
}

/* Does a thread sleep in its write? What runs says "running". */
static bool writes(const char *tid)
{
	char path[300], line[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/syscall", tid);
	f = fopen(path, "r");
	if (f && !fgets(line, sizeof(line), f))
		*line = 0;
	if (f)
		fclose(f);
	return atoi(line) == SYS_pwrite64;
}

static long writing(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	long n = 0;

	while (d && (e = readdir(d)))
		n += *e->d_name != '.' && writes(e->d_name);
	if (d)
		closedir(d);
	return n;
}

static bool wait_until(bool (*done)(int), int fd)
{
	int i;

	for (i = 0; i < SLEEPS_MAX / 10 && !done(fd); i++)
		usleep(10000);
	return i < SLEEPS_MAX / 10;
}

static bool has_message(int fd)
{
	struct uffd_msg msg;

	return read(fd, &msg, sizeof(msg)) == sizeof(msg);
}

static bool all_sleep(int fd)
{
	return waiting == rounds && writing() == rounds + 1;	/* the holder as well */
}

static int hold_file(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_zeropage zero = { 0 };
	pthread_t holder, *thread = calloc(rounds, sizeof(*thread));
	pthread_attr_t small;
	void *wrong, *any = NULL;
	long i;
	int fd;

	file = memfd_create("held", 0);
	fd = syscall(SYS_userfaultfd, O_NONBLOCK);
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = zero.range.start = (uintptr_t)map;
	range.range.len = zero.range.len = 4096;
	if (!thread || file < 0 || fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &range) || pthread_create(&holder, NULL, hold, NULL) ||
	    !wait_until(has_message, fd))
		return 1;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (i = 0; i < rounds; i++)
		if (pthread_create(&thread[i], &small, wait_for_file, (void *)(intptr_t)i))
			return 1;
	if (!wait_until(all_sleep, 0) || ioctl(fd, UFFDIO_ZEROPAGE, &zero))
		return 1;
	for (i = 0; i < rounds; i++) {
		pthread_join(thread[i], &wrong);
		any = any ? any : wrong;
	}
	pthread_join(holder, &wrong);
	printf("%d\n", getpid());
	return wrong || any;
}

static void *populate(void *arg)
{
	char *p;
	long i;

	for (i = 0; i < rounds; i++) {
		p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (p == MAP_FAILED || munmap(p, 4096))
			return map;
	}
	return NULL;
}

static int populate_all(void)
{
	pthread_t thread[4];
	int i;

	for (i = 0; i < 4; i++)
		if (pthread_create(&thread[i], NULL, populate, NULL))
			return 1;
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	return 0;
}

static int executable(void)
{
	int cpu, cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t one;
	void *p;
	long i;

	for (cpu = 0; cpu < cpus; cpu++) {
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (sched_setaffinity(0, sizeof(one), &one))
			return 1;
		for (i = 0; i < rounds; i++) {
			p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				 0);
			if (p == MAP_FAILED || munmap(p, 4096))
				return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	rounds = argc > 2 ? atol(argv[2]) : 0;
	if (argc > 1 && !strcmp(argv[1], "runs"))
		return runs();
	if (argc > 1 && !strcmp(argv[1], "vma"))
		return vma();
	if (argc > 2 && !strcmp(argv[1], "map"))
		return collisions(argv + 3);
	if (argc > 3 && !strcmp(argv[1], "read")) {
		file = open(argv[3], O_RDONLY);
		return file < 0 ? 1 : collisions(NULL);
	}
	if (argc > 1 && !strcmp(argv[1], "hold"))
		return hold_file();
	if (argc > 1 && !strcmp(argv[1], "populate"))
		return populate_all();
	if (argc > 1 && !strcmp(argv[1], "executable"))
		return executable();
	return argc > 1 && !strcmp(argv[1], "huge") ? huge() : 2;
}
