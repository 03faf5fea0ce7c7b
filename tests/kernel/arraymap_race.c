// SPDX-License-Identifier: GPL-2.0-only
/* Threads that come to the same pages at the same time, and to pages that change. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "arraymap.h"

#define PAGES 64u
#define RACES 400
#define RACES_SECONDS 60	/* a kernel that checks itself takes 0.3 s for one */
#define RACES_LEAST 96		/* each way to race, eight times and more */

static struct {
	char *volatile mem;
	pthread_barrier_t start, end;
	uint32_t page[2];
	bool write[2];
	bool stop, torn;
} race;

static void race_touch(int who)
{
	char *p = race.mem + race.page[who] * PAGE;

	if (race.write[who])
		__atomic_fetch_add((uint32_t *)p + who, 1, __ATOMIC_RELAXED);
	else
		touch_read(p);
}

static void *racer(void *arg)
{
	for (;;) {
		pthread_barrier_wait(&race.start);
		if (race.stop)
			return NULL;
		race_touch(1);
		pthread_barrier_wait(&race.end);
	}
}

static void racing(void)
{
	uint32_t i, n, expected[2] = { 0 }, window;
	uint64_t pfn[PAGES];
	pthread_t thread;
	time_t end;
	long before;
	char *mem;
	int fd = array_new(PAGES);

	if (!fault_around(&window))
		window = 16;
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip("one CPU");
	mem = array_map(fd, PAGES, PROT_READ, MAP_POPULATE, 0);
	pagemap_read(mem, PAGES, pfn);
	munmap(mem, PAGES * PAGE);
	pthread_barrier_init(&race.start, NULL, 2);
	pthread_barrier_init(&race.end, NULL, 2);
	need(!pthread_create(&thread, NULL, racer, NULL));
	end = time(NULL) + RACES_SECONDS;
	for (i = 0; i < RACES && (i < RACES_LEAST || time(NULL) < end); i++) {
		/* The same page, the same window, and windows that follow each other. */
		race.page[0] = 16;
		race.page[1] = 16 + (i % 3 == 0 ? 0 : i % 3 == 1 ? 7 : 16);
		race.write[0] = i & 1;
		race.write[1] = i & 2;
		race.mem = map_at(mem, PAGES * PAGE, PROT_READ | PROT_WRITE, 0, fd, 0);
		need(race.mem == mem);
		before = smaps(mem, "Rss");
		pthread_barrier_wait(&race.start);
		race_touch(0);
		pthread_barrier_wait(&race.end);
		expected[0] += race.write[0];
		expected[1] += race.write[1];
		n = present(mem, PAGES);
		check_is(smaps(mem, "Rss"), 4 * n);
		check(behaviour == EAGER || before == 0);
		if (behaviour == FAULT)
			check_is(n, race.page[0] == race.page[1] ? 1 : 2);
		if (i % 16 == 0)
			for (n = 0; n < PAGES; n++)
				check_is(map_count(pfn[n] & PM_PFN),
					 !!(pagemap(mem + n * PAGE) & PM_PRESENT));
		check_is(munmap(mem, PAGES * PAGE), 0);
	}
	race.stop = true;
	pthread_barrier_wait(&race.start);
	pthread_join(thread, NULL);
	/* No increment is lost, and no page was another. */
	mem = array_map(fd, PAGES, PROT_READ, 0, 0);
	check_is(((uint32_t *)(mem + 16 * PAGE))[0], expected[0]);
	n = ((uint32_t *)(mem + 16 * PAGE))[1] + ((uint32_t *)(mem + 23 * PAGE))[1] +
	    ((uint32_t *)(mem + 32 * PAGE))[1];
	check_is(n, expected[1]);
	for (i = 0; i < PAGES; i++)
		check_is(pagemap((touch_read(mem + i * PAGE), mem + i * PAGE)) & PM_PFN,
			 pfn[i] & PM_PFN);
	munmap(mem, PAGES * PAGE);
	for (i = 0; i < PAGES; i++)
		check_is(map_count(pfn[i] & PM_PFN), 0);
}

/* Faults of one thread while another maps, discards and protects the same memory. */
static void *toucher(void *arg)
{
	uint32_t i = 0;

	while (!race.stop) {
		char *p = race.mem + i++ % PAGES * PAGE;

		if (page_is(p, i % PAGES ? i % PAGES - 1 : PAGES - 1, 8))
			continue;
		race.torn = true;
	}
	return NULL;
}

static void changing(void)
{
	pthread_t thread;
	uint32_t i;
	int fd;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip("one CPU");
	fd = array_new(PAGES);
	array_fill(fd, PAGES, 8);
	race.mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 4);
	race.stop = race.torn = false;
	need(!pthread_create(&thread, NULL, toucher, NULL));
	for (i = 0; i < 300; i++) {
		if (behaviour != EAGER)
			check_is(madvise(race.mem + i % 60 * PAGE, 4 * PAGE, MADV_DONTNEED), 0);
		check_is(mprotect(race.mem + 10 * PAGE, 20 * PAGE,
				  PROT_READ | (i & 1 ? PROT_WRITE : 0)), 0);
		if (i % 10 == 0)
			check(map_at(race.mem + 30 * PAGE, 20 * PAGE, PROT_READ, 0, fd,
				     30 * PAGE) != MAP_FAILED);
	}
	race.stop = true;
	pthread_join(thread, NULL);
	check(!race.torn);
	array_check(race.mem, fd, 0, PAGES, 8);
}

const struct test race_tests[] = {
	{ "two threads on one window", racing },
	{ "touched while discarded, protected and mapped anew", changing },
	{ 0 }
};
