// SPDX-License-Identifier: GPL-2.0-only
/*
 * lock runs: how often each BPF program ran, by the kernel's own count.
 * lock vma N: N mprotect(2) of a mapping in which three threads fault.
 * lock huge N: N faults each of two threads on the same huge pages, under a mutex.
 * lock map N [PROGRAM [ARGS]], lock read N FILE: four threads map memory, or read the file by
 * one descriptor, until they have slept N times, which they do for the lock only; prints
 * the number of the process. PROGRAM is executed after that.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
	return argc > 1 && !strcmp(argv[1], "huge") ? huge() : 2;
}
