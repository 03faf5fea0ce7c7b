// SPDX-License-Identifier: GPL-2.0-only
/*
 * lock_io cold|warm FILE STEP THREADS: each thread touches every STEP-th page of a mapping
 * of the file, of which no page is in memory, or all are; prints
 *
 *   {"touched": pages, "cached": pages before, "threads": [[ns, sleeps, ticks], ...]}
 *
 * of each thread: how long it took, and by the kernel's own account how often it slept
 * meanwhile and the clock ticks asleep for a block device. One thread reads page by page,
 * several read ahead.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAGE		4096
#define THREADS		16
#define BLKIO		42	/* field of /proc/PID/stat, from 1 */

static struct account {
	unsigned long ns, sleeps, ticks;
} account[THREADS];

static volatile const char *map;
static long pages, step;
static pthread_barrier_t all;

static void fail(const char *what)
{
	fprintf(stderr, "lock_io: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void read_line(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "r");

	if (!f || !fgets(line, size, f))
		fail(path);
	fclose(f);
}

static unsigned long sleeps(void)
{
	struct rusage use;

	getrusage(RUSAGE_THREAD, &use);
	return use.ru_nvcsw;
}

static unsigned long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000UL + t.tv_nsec;
}

static void *touch(void *arg)
{
	struct account *a = arg;
	char line[1024], *field;
	long i;

	pthread_barrier_wait(&all);
	a->sleeps = sleeps();
	a->ns = now();
	for (i = 0; i < pages; i += step)
		(void)map[i * PAGE];
	a->ns = now() - a->ns;
	a->sleeps = sleeps() - a->sleeps;
	read_line("/proc/thread-self/stat", line, sizeof(line));
	field = strrchr(line, ')');
	for (i = 2; field && i < BLKIO; i++)
		field = strchr(field + 1, ' ');
	if (!field)
		fail("stat");
	a->ticks = strtoul(field, NULL, 10);
	return NULL;
}

static long cached(void)
{
	unsigned char *in = malloc(pages);
	long i, n = 0;

	if (!in || mincore((void *)map, pages * PAGE, in))
		fail("mincore");
	for (i = 0; i < pages; i++)
		n += in[i] & 1;
	free(in);
	return n;
}

static void prepare(int fd, const char *how)
{
	static char room[1 << 16];
	long i;

	if (!strcmp(how, "cold"))
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	else
		for (i = 0; i < pages * PAGE; i += sizeof(room))
			if (pread(fd, room, sizeof(room), i) < 0)
				fail("read");
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	long threads, before, i;
	struct stat st;
	int fd;

	if (argc != 5)
		return 2;
	fd = open(argv[2], O_RDONLY);
	if (fd < 0 || fstat(fd, &st))
		fail(argv[2]);
	pages = st.st_size / PAGE;
	step = atol(argv[3]);
	threads = atol(argv[4]);
	if (!pages || step < 1 || threads < 1 || threads > THREADS)
		return 2;
	prepare(fd, argv[1]);
	map = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED ||
	    madvise((void *)map, pages * PAGE, threads == 1 ? MADV_RANDOM : MADV_NORMAL))
		fail("mmap");
	before = cached();
	pthread_barrier_init(&all, NULL, threads);
	for (i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, touch, &account[i]))
			fail("pthread_create");
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	printf("{\"touched\": %ld, \"cached\": %ld, \"threads\": [", (pages + step - 1) / step,
	       before);
	for (i = 0; i < threads; i++)
		printf("[%lu, %lu, %lu]%s", account[i].ns, account[i].sleeps, account[i].ticks,
		       i + 1 < threads ? ", " : "]}\n");
	return 0;
}
