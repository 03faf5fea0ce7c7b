// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bits of page table entries, and what is counted: young, dirty, soft-dirty,
 * writable; RSS, mappings and references of pages.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arraymap.h"

#define PAGES 64u
#define PAGE_KIB 4l

/* The pages that a first touch of page 20 brings, when nothing is there. */
static uint32_t brought(void)
{
	bool there[PAGES] = { false };
	uint32_t window, i, n = 0;

	if (behaviour == EAGER)
		return PAGES;
	if (!fault_around(&window))
		skip("debugfs does not show fault_around_bytes");
	rule(there, PAGES, 0, window, 20);
	for (i = 0; i < PAGES; i++)
		n += there[i];
	return n;
}

static long dirty_kib(const char *mem)
{
	return smaps(mem, "Shared_Dirty") + smaps(mem, "Private_Dirty");
}

/* What the CPU remembers of translations hides that a bit was cleared: all of it goes. */
static void forget_translations(void)
{
	size_t len = 256 * PAGE;	/* more than are flushed one by one */
	char *mem = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	need(mem != MAP_FAILED);
	munmap(mem, len);
}

/*
 * On x86 all that a fault brings is young (arch_wants_old_prefaulted_pte() is
 * false); the first touch after the bit was cleared sets it for its page alone.
 */
static void young(void)
{
	int fd = array_new(PAGES);
	char *mem;

	array_fill(fd, PAGES, 1);
	mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0);
	touch_read(mem + 20 * PAGE);
	check_is(smaps(mem, "Rss"), PAGE_KIB * brought());
#ifdef __x86_64__
	check_is(smaps(mem, "Referenced"), PAGE_KIB * brought());
#else
	check(smaps(mem, "Referenced") >= PAGE_KIB);
#endif
	clear_refs("1");
	forget_translations();
	check_is(smaps(mem, "Referenced"), 0);
	check_is(smaps(mem, "Rss"), PAGE_KIB * brought());
	touch_read(mem + 20 * PAGE);
	check_is(smaps(mem, "Referenced"), PAGE_KIB);
}

/* A write makes its own page dirty, not those that come with it. */
static void dirty(void)
{
	uint32_t first = brought();
	int fd = array_new(PAGES);
	long before;
	char *mem;

	/* Reading makes nothing dirty; bpf(2) did not write through this mapping. */
	array_fill(fd, PAGES, 1);
	mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0);
	touch_read(mem + 20 * PAGE);
	check_is(dirty_kib(mem), 0);
	munmap(mem, PAGES * PAGE);
	close(fd);

	fd = array_new(PAGES);
	mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0);
	touch_write(mem + 20 * PAGE);
	check_is(smaps(mem, "Rss"), PAGE_KIB * first);
	check_is(dirty_kib(mem), PAGE_KIB);
	/* Its neighbours are clean, but writable: no fault more. */
	before = faults();
	touch_write(mem + 21 * PAGE);
	touch_write(mem + 19 * PAGE);
	check_is(faults() - before, behaviour == FAULT ? 2 : 0);
	check_is(dirty_kib(mem), 3 * PAGE_KIB);
	/* What was written is dirty for the map's whole life, however it is mapped. */
	munmap(mem, PAGES * PAGE);
	mem = array_map(fd, PAGES, PROT_READ, MAP_POPULATE, 0);
	check_is(dirty_kib(mem), 3 * PAGE_KIB);
}

static void soft_dirty(void)
{
	int fd = array_new(PAGES);
	uint64_t entry[PAGES];
	uint32_t i, n = 0;
	char *mem, *probe;

	/* Does this kernel have the bit at all? */
	probe = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	touch_write(probe);
	if (!(pagemap(probe) & PM_SOFT_DIRTY))
		skip("the kernel has no soft-dirty bit");

	/* Written when pages are there already: from before the bits were cleared. */
	mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0);
	for (i = 0; i < PAGES; i++)
		touch_write(mem + i * PAGE);
	clear_refs("4");
	pagemap_read(mem, PAGES, entry);
	for (i = 0; i < PAGES; i++)
		n += !!(entry[i] & PM_SOFT_DIRTY);
	check_is(n, 0);
	touch_write(mem + 20 * PAGE);
	touch_read(mem + 30 * PAGE);
	pagemap_read(mem, PAGES, entry);
	for (i = 0; i < PAGES; i++)
		check_is(!!(entry[i] & PM_SOFT_DIRTY), i == 20);
	munmap(mem, PAGES * PAGE);
	close(fd);

	/* Written when no page is there: one that comes with it is not soft-dirty. */
	fd = array_new(PAGES);
	mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0);
	clear_refs("4");
	touch_write(mem + 20 * PAGE);
	touch_read(mem + 50 * PAGE);
	pagemap_read(mem, PAGES, entry);
	for (i = 0; i < PAGES; i++)
		check_is(!!(entry[i] & PM_SOFT_DIRTY), i == 20);
	check_is(dirty_kib(mem), PAGE_KIB);
	/* A later write to such a page is seen. */
	touch_write(mem + 21 * PAGE);
	check(pagemap(mem + 21 * PAGE) & PM_SOFT_DIRTY);
	check(!(pagemap(mem + 22 * PAGE) & PM_SOFT_DIRTY));
}

/* RssFile counts as the page tables do, at each step, and is back at the end. */
static void rss(void)
{
	long file, anon, shmem, before;
	int fd = array_new(1024), step;
	uint32_t i;
	char *mem;

	array_fill(fd, 1024, 1);
	mem = array_map(fd, 1024, PROT_READ | PROT_WRITE, 0, 0);
	munmap(mem, 1024 * PAGE);
	/* Once, so that reading status brings nothing new later. */
	file = status_kib("RssFile");
	array_check(NULL, fd, 0, 1, 1);
	for (step = 0; step < 3; step++) {
		file = status_kib("RssFile");
		anon = status_kib("RssAnon");
		shmem = status_kib("RssShmem");
		mem = array_map(fd, 1024, PROT_READ | PROT_WRITE, step == 2 ? MAP_POPULATE : 0, 9);
		for (i = 0; i < 1024; i += 1 + i % 90) {
			if (step)
				touch_write(mem + i * PAGE);
			else
				touch_read(mem + i * PAGE);
			before = status_kib("RssFile") - file;
			check_is(before, PAGE_KIB * present(mem, 1024));
			check(before <= PAGE_KIB * 1024);
		}
		check_is(smaps(mem, "Rss"), PAGE_KIB * present(mem, 1024));
		check_is(munmap(mem + 500 * PAGE, 100 * PAGE), 0);
		check_is(status_kib("RssFile") - file,
			 PAGE_KIB * (present(mem, 500) + present(mem + 600 * PAGE, 424)));
		check_is(munmap(mem, 1024 * PAGE), 0);
		check_is(status_kib("RssFile"), file);
		check_is(status_kib("RssShmem"), shmem);
		check(status_kib("RssAnon") - anon < 64);
	}
}

/* Each page is mapped as often as mappings hold it: by the page's own counter. */
static void mapcount(void)
{
	int fd = array_new(PAGES), i;
	uint64_t pfn[PAGES];
	char *a, *b;

	a = array_map(fd, PAGES, PROT_READ | PROT_WRITE, MAP_POPULATE, 0);
	pagemap_read(a, PAGES, pfn);
	for (i = 0; i < (int)PAGES; i++) {
		pfn[i] &= PM_PFN;
		check(pfn[i]);
		check_is(map_count(pfn[i]), 1);
	}
	b = array_map(fd, PAGES, PROT_READ, 0, 30);
	touch_read(b + 20 * PAGE);
	for (i = 0; i < (int)PAGES; i++)
		check_is(map_count(pfn[i]), 1 + !!(pagemap(b + i * PAGE) & PM_PRESENT));
	munmap(b + 16 * PAGE, 8 * PAGE);
	for (i = 16; i < 24; i++)
		check_is(map_count(pfn[i]), 1);
	munmap(b, PAGES * PAGE);
	munmap(a, PAGES * PAGE);
	for (i = 0; i < (int)PAGES; i++)
		check_is(map_count(pfn[i]), 0);
}

/*
 * A reference left behind would keep its page for ever: after more arrays than
 * there is memory, each touched in another way, all of it is free again.
 */
static void references(void)
{
	enum { SIZE = 2048, ROUNDS = 40 };	/* 8 MiB, together 320 MiB */
	long mapped = vmstat("nr_mapped"), tables = vmstat("nr_page_table_pages"), left, was;
	uint32_t round, i;
	char *mem;

	was = vmstat("nr_free_pages");
	for (round = 0; round < ROUNDS; round++) {
		int fd = array_new(SIZE);

		mem = array_map(fd, SIZE, PROT_READ | PROT_WRITE,
				round % 4 == 3 ? MAP_POPULATE : 0, round % 512);
		close(fd);
		for (i = round % 7; i < SIZE; i += 1 + round % 4) {
			if (round & 1)
				touch_write(mem + i * PAGE);
			else
				touch_read(mem + i * PAGE);
		}
		if (round % 5 == 4)
			check_is(madvise(mem, SIZE / 2 * PAGE, MADV_DONTNEED), 0);
		check_is(munmap(mem, SIZE * PAGE), 0);
	}
	/*
	 * Maps are freed by a worker, after a grace period, and where KASAN watches
	 * their addresses, the shadow (an eighth) only when many of those wait to be
	 * reused: more arrays, which nobody maps, bring that about. Each is given the
	 * time to be freed itself.
	 */
	for (i = 0; i < 600; i++) {
		left = was - vmstat("nr_free_pages");
		if (left < SIZE)
			break;
		usleep(100000);
		if (i % 20 == 19)
			close(array_new(SIZE));
	}
	if (left >= SIZE)
		failed(__FILE__, __LINE__, "%ld pages are gone after %d arrays of %d", left,
		       ROUNDS, SIZE);
	check(vmstat("nr_mapped") - mapped < 512);
	check(vmstat("nr_page_table_pages") - tables < 256);
}

const struct test bits_tests[] = {
	{ "young", young },
	{ "dirty, and neighbours that are not", dirty },
	{ "soft-dirty, and neighbours that are not", soft_dirty },
	{ "RssFile at each step, and back at the end", rss },
	{ "how often a page is mapped", mapcount },
	{ "no page is left behind", references },
	{ 0 }
};
