// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that fault, map, unmap, fork and read /proc, all at once, for some seconds:
 * storm THREADS SECONDS. Says how many rounds were done; its faults are in rusage.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define PAGES	64
#define SHARED	256

static char *shared;
static volatile int stop;
static int file;

static void fail(const char *what)
{
	fprintf(stderr, "storm: %s: %s\n", what, strerror(errno));
	_exit(9);
}

static void map_and_touch(int flags, int fd)
{
	volatile char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
	int i, sum = 0;

	if (p == MAP_FAILED)
		fail("mmap");
	for (i = 0; i < PAGES; i++)
		sum += p[i * PAGE];
	for (i = 0; i < PAGES; i += 2)
		p[i * PAGE] = sum;
	munmap((void *)p, PAGES * PAGE);
}

static void child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		return;		/* there may be too many of them */
	if (!pid) {
		map_and_touch(MAP_PRIVATE | MAP_ANONYMOUS, -1);
		_exit(0);
	}
	if (waitpid(pid, NULL, 0) != pid)
		fail("waitpid");
}

static void read_proc(void)
{
	static const char *const names[] = { "/proc/self/smaps", "/proc/self/stat",
					     "/proc/self/maps" };
	char text[4096];
	size_t i;
	int fd;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		fd = open(names[i], O_RDONLY);
		while (fd >= 0 && read(fd, text, sizeof(text)) > 0)
			;
		if (fd >= 0)
			close(fd);
	}
}

static void *storm(void *arg)
{
	unsigned int seed = (size_t)arg * 7919 + 1;
	size_t rounds = 0;

	for (; !stop; rounds++) {
		switch (rand_r(&seed) % 8) {
		case 0: child(); break;
		case 1: read_proc(); break;
		case 2: map_and_touch(MAP_SHARED, file); break;
		case 3: map_and_touch(MAP_PRIVATE, file); break;
		case 4: madvise(shared + rand_r(&seed) % SHARED * PAGE, PAGE, MADV_DONTNEED); break;
		case 5: shared[rand_r(&seed) % SHARED * PAGE] = 1; break;
		default: map_and_touch(MAP_PRIVATE | MAP_ANONYMOUS, -1);
		}
	}
	return (void *)rounds;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[1]) : 0, i;
	struct timespec t = { .tv_sec = argc > 2 ? atoi(argv[2]) : 0 };
	static pthread_t thread[256];
	size_t rounds = 0;
	void *n;

	if (threads < 1 || threads > 256)
		return 2;
	shared = mmap(NULL, SHARED * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	if (shared == MAP_FAILED || file < 0 || ftruncate(file, PAGES * PAGE))
		fail("memory");
	for (i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, storm, (void *)(size_t)i))
			fail("pthread_create");
	nanosleep(&t, NULL);
	stop = 1;
	for (i = 0; i < threads; i++) {
		pthread_join(thread[i], &n);
		rounds += (size_t)n;
	}
	printf("%zu\n", rounds);
	return 0;
}
