// SPDX-License-Identifier: GPL-2.0-only
/*
 * A page of an array whose memory failed. Its neighbours are mapped without it, and to
 * touch it is SIGBUS, where a fault maps it; where mmap() maps all, nobody looks.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kernel-page-flags.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arraymap.h"

#define PAGES	64u
#define BAD	21u	/* inside of the window that begins at 16 */

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

static uint64_t page_flags(uint64_t pfn)
{
	int fd = open("/proc/kpageflags", O_RDONLY);
	uint64_t flags;

	need(fd >= 0);
	need(pread(fd, &flags, sizeof(flags), pfn * sizeof(flags)) == sizeof(flags));
	close(fd);
	return flags;
}

/*
 * Nobody can isolate a page of vmalloc(), so that the kernel says EBUSY; but it marks
 * the page before it tries. The mark stays: unpoison-pfn of debugfs would drop a
 * reference that belongs to the array. When the array goes, the page is not used again.
 */
static void poison(char *page, uint64_t pfn)
{
	int answer = madvise(page, PAGE, MADV_HWPOISON) ? errno : 0;

	if (page_flags(pfn) & 1ull << KPF_HWPOISON)
		return;
	if (answer == EINVAL)
		skip("a kernel without MADV_HWPOISON");
	skip("MADV_HWPOISON gives %s and does not mark a page of an array",
	     answer ? strerrorname_np(answer) : "0");
}

static void all_but_bad(char *mem, const bool *there, const char *when)
{
	uint64_t entry[PAGES];
	uint32_t i;

	pagemap_read(mem, PAGES, entry);
	for (i = 0; i < PAGES; i++) {
		bool wanted = there[i] && (i != BAD || behaviour == EAGER);

		if (!!(entry[i] & PM_PRESENT) != wanted)
			failed(__FILE__, __LINE__, "%s: page %u is %s", when, i,
			       wanted ? "missing" : "present");
	}
}

static void touch_bad(char *mem, bool write)
{
	char *bad = mem + BAD * PAGE + 8 * write;

	if (behaviour == EAGER) {
		check_is(signal_of(bad, write), 0);
		return;
	}
	memset(&signal_info, 0, sizeof(signal_info));
	check_is(signal_of(bad, write), SIGBUS);
	check_is(signal_info.si_code, BUS_MCEERR_AR);
	check(signal_info.si_addr == bad || signal_info.si_addr == mem + BAD * PAGE);
	check_is(signal_info.si_addr_lsb, 12);
	check_is(present(mem + BAD * PAGE, 1), 0);
}

/* By the kernel for somebody: an error, and what lies before the page is there. */
static void asked_for(char *mem)
{
	static const int advice[] = { MADV_POPULATE_READ, MADV_POPULATE_WRITE };
	static char room[2 * PAGE];
	int i, self = open("/proc/self/mem", O_RDWR);

	need(self >= 0);
	for (i = 0; i < 2; i++) {
		if (behaviour == EAGER)
			check_is(madvise(mem, PAGES * PAGE, advice[i]), 0);
		else
			check_fails(madvise(mem, PAGES * PAGE, advice[i]), EHWPOISON);
		check_is(present(mem, BAD), BAD);
	}
	if (behaviour == EAGER) {
		check_is(pread(self, room, PAGE, (uintptr_t)mem + BAD * PAGE), PAGE);
		check(page_is(room, BAD, 1));
	} else {
		check_fails(pread(self, room, PAGE, (uintptr_t)mem + BAD * PAGE), EIO);
		check_fails(pwrite(self, room, PAGE, (uintptr_t)mem + BAD * PAGE), EIO);
		check_is(pread(self, room, 2 * PAGE, (uintptr_t)mem + (BAD - 1) * PAGE), PAGE);
		check(page_is(room, BAD - 1, 1));
	}
	close(self);
}

static void poisoned(void)
{
	bool there[PAGES];
	int fd = array_new(PAGES), write;
	uint32_t i, window;
	uint64_t pfn;
	long file;
	char *mem;

	if (!fault_around(&window))
		skip("debugfs does not show fault_around_bytes");
	array_fill(fd, PAGES, 1);
	file = status_kib("RssFile");
	mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, MAP_POPULATE, 0);
	pfn = pagemap(mem + BAD * PAGE) & PM_PFN;
	poison(mem + BAD * PAGE, pfn);
	/* Who has it keeps it. */
	check_is(present(mem, PAGES), PAGES);
	array_check(mem, fd, 0, PAGES, 1);
	check_is(munmap(mem, PAGES * PAGE), 0);
	for (write = 0; write < 2; write++) {
		mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0);
		memset(there, behaviour == EAGER, sizeof(there));
		/* Its neighbour, by the way that does not stop at it. */
		check_is(signal_of(mem + (BAD + 1) * PAGE, write), 0);
		rule(there, PAGES, 0, window, BAD + 1);
		all_but_bad(mem, there, "a neighbour");
		touch_bad(mem, write);
		touch_bad(mem, !write);
		all_but_bad(mem, there, "the page itself");
		check_is(munmap(mem, PAGES * PAGE), 0);

		/* In order: with a ramp, from page 16 on one run, but for it. */
		mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0);
		memset(there, behaviour == EAGER, sizeof(there));
		for (i = 0; i < PAGES; i++) {
			if (i == BAD)
				continue;
			check_is(signal_of(mem + i * PAGE, write), 0);
			if (!there[i])
				rule(there, PAGES, 0, window, i);
			all_but_bad(mem, there, "in order");
		}
		check_is(status_kib("RssFile") - file, 4 * (PAGES - (behaviour != EAGER)));
		check_is(map_count(pfn), behaviour == EAGER);
		array_check(mem, fd, 0, BAD, 1);
		array_check(mem + (BAD + 1) * PAGE, fd, BAD + 1, PAGES - BAD - 1, 1);
		check_is(munmap(mem, PAGES * PAGE), 0);
		check_is(status_kib("RssFile"), file);

		/* The page itself is the first that is touched. */
		mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0);
		touch_bad(mem, write);
		array_check(mem, fd, 0, BAD, 1);
		array_check(mem + (BAD + 1) * PAGE, fd, BAD + 1, PAGES - BAD - 1, 1);
		check_is(munmap(mem, PAGES * PAGE), 0);

		mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0);
		asked_for(mem);
		check_is(munmap(mem, PAGES * PAGE), 0);
		check_is(status_kib("RssFile"), file);
	}
	/* bpf(2) does not ask either, as the programs do not. */
	array_check(NULL, fd, 0, PAGES, 1);
}

const struct test poison_tests[] = {
	{ "a poisoned page and its neighbours", poisoned },
	{ 0 }
};
