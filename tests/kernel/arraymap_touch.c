// SPDX-License-Identifier: GPL-2.0-only
/* Every way to reach the pages: what it finds, and which pages a fault brings. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arraymap.h"

#define PAGES 700u	/* more than a page table, in two at least */
#define AHEAD 101u	/* in no multiple of a window */

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

struct model {
	char *mem;
	uint32_t pages, ahead, window;
	bool there[2048];
};

static void model_begin(struct model *m, int fd, uint32_t pages, uint32_t ahead, int prot)
{
	*m = (struct model){ .pages = pages, .ahead = ahead };
	if (!fault_around(&m->window))
		skip("debugfs does not show fault_around_bytes");
	m->mem = array_map(fd, pages, prot, 0, ahead);
	memset(m->there, behaviour == EAGER, sizeof(m->there));
}

/* Are exactly those pages present that the rule gives? */
static void model_holds(struct model *m, const char *when, uint32_t page)
{
	uint64_t entry[2048];
	uint32_t i;

	pagemap_read(m->mem, m->pages, entry);
	for (i = 0; i < m->pages; i++) {
		if (!!(entry[i] & PM_PRESENT) == m->there[i])
			continue;
		failed(__FILE__, __LINE__, "%s %u: page %u is %s", when, page, i,
		       m->there[i] ? "missing" : "present");
		memset(m->there, 0, sizeof(m->there));
		for (i = 0; i < m->pages; i++)
			m->there[i] = !!(entry[i] & PM_PRESENT);
		return;
	}
}

/* Touch a page; it must take one fault if the rule says that it is not there, else none. */
static void model_touch(struct model *m, uint32_t page, bool write)
{
	bool was = m->there[page];
	long before = faults();

	if (write)
		touch_write(m->mem + page * PAGE);
	else
		touch_read(m->mem + page * PAGE);
	before = faults() - before;
	if (before != !was)
		failed(__FILE__, __LINE__, "page %u, %s: %ld faults", page,
		       was ? "there" : "not there", before);
	if (!was)
		rule(m->there, m->pages, m->ahead, m->window, page);
}

static void at_mmap(void)
{
	struct model m;
	int fd = array_new(PAGES);

	model_begin(&m, fd, PAGES, AHEAD, PROT_READ | PROT_WRITE);
	model_holds(&m, "after mmap", 0);
	check_is(present(m.mem, PAGES), behaviour == EAGER ? PAGES : 0);
	check_is(smaps(m.mem, "Rss"), behaviour == EAGER ? 4 * (long)PAGES : 0);
}

static void in_order(bool write)
{
	struct model m;
	uint32_t i;
	int fd = array_new(PAGES);

	array_fill(fd, PAGES, 1);
	model_begin(&m, fd, PAGES, AHEAD, PROT_READ | PROT_WRITE);
	for (i = 0; i < PAGES; i++) {
		model_touch(&m, i, write);
		/* Whenever a fault may have come, and at the end. */
		if (i < 40 || i % 16 == 16 - AHEAD % 16 || i == PAGES - 1)
			model_holds(&m, "in order", i);
	}
	check_is(present(m.mem, PAGES), PAGES);
	array_check(m.mem, fd, 0, PAGES, 1);
}

static void read_in_order(void)
{
	in_order(false);
}

static void write_in_order(void)
{
	in_order(true);
}

/* 5 generates all numbers below a power of two: a permutation, with jumps. */
static void in_disorder(bool write)
{
	uint32_t i, x = 1, step = 0;
	struct model m;
	int fd = array_new(PAGES);

	array_fill(fd, PAGES, 2);
	model_begin(&m, fd, PAGES, AHEAD, PROT_READ | PROT_WRITE);
	for (i = 0; i < 1024; i++) {
		x = (x * 5 + 387) & 1023;
		if (x >= PAGES)
			continue;
		model_touch(&m, x, write != (step & 1));
		if (step++ < 60)
			model_holds(&m, "in disorder", x);
	}
	model_holds(&m, "at the end", 0);
	array_check(m.mem, fd, 0, PAGES, 2);
}

static void disorder_read_first(void)
{
	in_disorder(false);
}

static void disorder_write_first(void)
{
	in_disorder(true);
}

static void backwards(void)
{
	struct model m;
	uint32_t i;
	int fd = array_new(PAGES);

	array_fill(fd, PAGES, 3);
	model_begin(&m, fd, PAGES, AHEAD, PROT_READ);
	for (i = PAGES; i--;) {
		model_touch(&m, i, false);
		if (i % 16 == 0)
			model_holds(&m, "backwards", i);
	}
	array_check(m.mem, fd, 0, PAGES, 3);
}

/* The window is cut where the mapping begins and ends, and the page table. */
static void small_mappings(void)
{
	static const uint32_t sizes[] = { 1, 2, 5, 15, 16, 17, 33 };
	static const uint32_t aheads[] = { 0, 1, 8, 15, 495, 496, 500, 511 };
	struct model m;
	uint32_t s, a, page;

	for (s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		int fd = array_new(sizes[s]);

		array_fill(fd, sizes[s], s);
		for (a = 0; a < sizeof(aheads) / sizeof(*aheads); a++) {
			for (page = 0; page < sizes[s]; page += sizes[s] / 2 + 1) {
				model_begin(&m, fd, sizes[s], aheads[a], PROT_READ | PROT_WRITE);
				model_touch(&m, page, a & 1);
				model_holds(&m, "small", page);
				array_check(m.mem, fd, 0, sizes[s], s);
				munmap(m.mem, sizes[s] * PAGE);
			}
		}
		close(fd);
	}
}

/* fault_around_bytes is obeyed, also where it switches fault-around off. */
static void around_is_set(void)
{
	static const char *const bytes[] = { "4096", "16384", "262144" };
	char old[32];
	struct model m;
	uint32_t b, i, window;
	int fd = array_new(PAGES);

	if (!fault_around(&window))
		skip("debugfs does not show fault_around_bytes");
	snprintf(old, sizeof(old), "%lu", window * PAGE);
	for (b = 0; b < 3; b++) {
		if (!write_file("/sys/kernel/debug/fault_around_bytes", bytes[b]))
			skip("fault_around_bytes cannot be set here");
		model_begin(&m, fd, PAGES, AHEAD, PROT_READ | PROT_WRITE);
		for (i = 130; i < 300; i += 1 + i % 3) {
			model_touch(&m, i, i & 1);
			model_holds(&m, bytes[b], i);
		}
		munmap(m.mem, PAGES * PAGE);
	}
	check(write_file("/sys/kernel/debug/fault_around_bytes", old));
}

static void content_written(void)
{
	int fd = array_new(PAGES);
	uint32_t i;
	char *mem;

	array_fill(fd, PAGES, 4);
	mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, AHEAD);
	for (i = 0; i < PAGES; i++)
		page_fill(mem + i * PAGE, i, 5);
	array_check(mem, fd, 0, PAGES, 5);
	array_fill(fd, PAGES, 6);
	array_check(mem, fd, 0, PAGES, 6);
	munmap(mem, PAGES * PAGE);
	array_check(NULL, fd, 0, PAGES, 6);
}

/* All there afterwards, without a fault when they are touched, and right. */
static void is_populated(char *mem, int fd, uint32_t salt)
{
	long before;
	uint32_t i;

	check_is(present(mem, PAGES), PAGES);
	before = faults();
	for (i = 0; i < PAGES; i++)
		touch_read(mem + i * PAGE);
	check_is(faults() - before, 0);
	array_check(mem, fd, 0, PAGES, salt);
}

static void map_populate(void)
{
	int fd = array_new(PAGES);

	array_fill(fd, PAGES, 7);
	is_populated(array_map(fd, PAGES, PROT_READ | PROT_WRITE, MAP_POPULATE, AHEAD), fd, 7);
	is_populated(array_map(fd, PAGES, PROT_READ, MAP_POPULATE, 0), fd, 7);
}

static void madvise_populate(void)
{
	int fd = array_new(PAGES);
	char *mem;

	array_fill(fd, PAGES, 8);
	mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, AHEAD);
	check_is(madvise(mem, PAGES * PAGE, MADV_POPULATE_READ), 0);
	is_populated(mem, fd, 8);
	mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, AHEAD);
	check_is(madvise(mem, PAGES * PAGE, MADV_POPULATE_WRITE), 0);
	is_populated(mem, fd, 8);
	mem = array_map(fd, PAGES, PROT_READ, 0, AHEAD);
	check_fails(madvise(mem, PAGES * PAGE, MADV_POPULATE_WRITE), EINVAL);
	check_is(madvise(mem, PAGES * PAGE, MADV_POPULATE_READ), 0);
	is_populated(mem, fd, 8);
}

static void two_mappings(void)
{
	int fd = array_new(PAGES);
	uint32_t i;
	char *a, *b;

	array_fill(fd, PAGES, 9);
	a = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0);
	b = array_map(fd, PAGES, PROT_READ, 0, 7);
	for (i = 0; i < PAGES; i += 3)
		page_fill(a + i * PAGE, i, 10);
	for (i = 0; i < PAGES; i++)
		check(page_is(b + i * PAGE, i, i % 3 ? 9 : 10));
	for (i = 0; i < PAGES; i++) {
		touch_read(a + i * PAGE);
		check_is(pagemap(a + i * PAGE) & PM_PFN, pagemap(b + i * PAGE) & PM_PFN);
	}
	check(pagemap(a) & PM_PFN);
}

static void at_an_offset(void)
{
	int fd = array_new(PAGES);
	char *mem;

	array_fill(fd, PAGES, 11);
	mem = array_map(fd, 40, PROT_READ | PROT_WRITE, 0, 3);
	need(map_at(mem, 40 * PAGE, PROT_READ | PROT_WRITE, 0, fd, 613 * PAGE) == mem);
	touch_write(mem + 20 * PAGE);
	array_check(mem, fd, 613, 40, 11);
	page_fill(mem + 39 * PAGE, 652, 11);
	array_check(NULL, fd, 0, PAGES, 11);
	/* The last page alone. */
	need(map_at(mem, PAGE, PROT_READ, 0, fd, (PAGES - 1) * PAGE) == mem);
	array_check(mem, fd, PAGES - 1, 1, 11);
}

/* Some bytes that an array does not fill: they are zeroes, and nobody else's. */
static void odd_sizes(void)
{
	static const struct {
		uint32_t value, entries, pages;
	} sizes[] = { { 1, 1, 1 }, { 24, 1000, 6 }, { 4096, 1, 1 }, { 4104, 3, 4 }, { 8, 513, 2 } };
	char *mem, value[4104];
	uint32_t s, i, each;
	size_t at;

	for (s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		int fd = array_create(sizes[s].value, sizes[s].entries, BPF_F_MMAPABLE);

		each = (sizes[s].value + 7) / 8 * 8;
		for (i = 0; i < sizes[s].entries; i++) {
			memset(value, i % 251 + 1, sizes[s].value);
			need(!bpf_map_update_elem(fd, &i, value, BPF_ANY));
		}
		mem = array_map(fd, sizes[s].pages, PROT_READ | PROT_WRITE, 0, 5);
		for (at = 0; at < sizes[s].pages * PAGE; at++) {
			i = at / each;
			int wanted = i < sizes[s].entries && at % each < sizes[s].value ?
				     (int)(i % 251 + 1) : 0;

			if ((unsigned char)mem[at] != wanted)
				failed(__FILE__, __LINE__, "%u x %u: byte %zu is %d, not %d",
				       sizes[s].value, sizes[s].entries, at, mem[at], wanted);
		}
		check_fails((long)map_at(NULL, (sizes[s].pages + 1) * PAGE, PROT_READ, 0, fd, 0),
			    EINVAL);
		munmap(mem, sizes[s].pages * PAGE);
		close(fd);
	}
}

const struct test touch_tests[] = {
	{ "pages that mmap installs", at_mmap },
	{ "pages that each read in order brings", read_in_order },
	{ "pages that each write in order brings", write_in_order },
	{ "pages that touches in disorder bring, a read first", disorder_read_first },
	{ "pages that touches in disorder bring, a write first", disorder_write_first },
	{ "pages that reads from the end bring", backwards },
	{ "pages of small mappings, at the bounds of page tables", small_mappings },
	{ "fault_around_bytes is obeyed", around_is_set },
	{ "what is written is found, and the reverse", content_written },
	{ "MAP_POPULATE", map_populate },
	{ "MADV_POPULATE_READ and MADV_POPULATE_WRITE", madvise_populate },
	{ "two mappings are the same pages", two_mappings },
	{ "a mapping of the middle and of the last page", at_an_offset },
	{ "sizes that are no multiple of a page", odd_sizes },
	{ 0 }
};
