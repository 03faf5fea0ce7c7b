// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that read and write while pages, page tables and rights are taken from under
 * them. The memory is the array's: whatever comes and goes, no increment may be lost.
 */
#include <bpf/bpf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arraymap.h"

#define TABLE	512u	/* pages of a page table */
#define THREADS	2u
#define CHILD	THREADS	/* the counter of forked children */
#define ROUNDS	1000u
#define AT_LEAST 100u	/* rounds, however slow the machine is */
#define SECONDS	3

/* What is in a page: which it is, at both ends, and a counter for each that writes. */
struct page {
	uint32_t first, count[PAGE / 4 - 2], last;
};

struct writer {
	pthread_t id;
	uint32_t who;
	uint32_t done;		/* pages of the range that it has written to */
	uint32_t refused;	/* SIGSEGVs there */
	uint32_t *wrote;	/* what its counters must be */
	long faults;
	const char *wrong;
	uint32_t wrong_page;
};

/* Of the mapping `many` pages (a power of two) from `first` on are what changes. */
static struct {
	struct page *page;
	uint32_t pages, first, many;
	int fd;
	bool stop;
} shared;

static struct writer writers[THREADS];
static _Thread_local struct writer *self;

/* Not only sched_yield(): an emulator may run one CPU until it idles. */
static void rest(void)
{
	static const struct timespec time = { .tv_nsec = 20000 };

	nanosleep(&time, NULL);
}

static uint32_t tag(uint32_t page)
{
	return (page + 1) * 2654435761u;
}

static bool has_tags(uint32_t page)
{
	const volatile struct page *p = shared.page + page;

	return p->first == tag(page) && p->last == tag(page);
}

static void step(struct writer *w, uint32_t page, bool read_first)
{
	uint32_t *count = &shared.page[page].count[w->who], was;
	bool right = !read_first || has_tags(page);

	/* One instruction: it is done, or faults and is done again. */
	was = __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
	right = right && has_tags(page);
	if (!w->wrong && (!right || was != w->wrote[page])) {
		w->wrong = right ? "a counter that jumped" : "something else";
		w->wrong_page = page;
	}
	w->wrote[page] = was + 1;
}

static void *writer(void *arg)
{
	struct writer *w = arg;
	uint32_t i, x = w->who;
	long before = faults();

	self = w;
	for (i = 0; !__atomic_load_n(&shared.stop, __ATOMIC_ACQUIRE); i++) {
		/* One goes in order, the other everywhere: 5 generates all numbers. */
		x = (w->who ? x * 5 + 387 : x + 1) & (shared.many - 1);
		step(w, shared.first + x, i & 1);
		__atomic_fetch_add(&w->done, 1, __ATOMIC_RELEASE);
		/* And around the range, so that windows come to its bounds. */
		if (i % 8 == 0)
			step(w, (shared.first + shared.many + i % 64) % shared.pages, i & 8);
	}
	w->faults = faults() - before;
	return NULL;
}

static void begin(uint32_t pages, uint32_t first, uint32_t many)
{
	uint32_t i;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip("one CPU");
	shared.fd = array_new(pages);
	shared.pages = pages;
	shared.first = first;
	shared.many = many;
	shared.page = (struct page *)array_map(shared.fd, pages, PROT_READ | PROT_WRITE, 0, 0);
	for (i = 0; i < pages; i++)
		shared.page[i].first = shared.page[i].last = tag(i);
}

static void start(void)
{
	uint32_t t;

	for (t = 0; t < THREADS; t++) {
		writers[t].who = t;
		writers[t].wrote = calloc(shared.pages, sizeof(*writers[t].wrote));
		need(writers[t].wrote);
		need(!pthread_create(&writers[t].id, NULL, writer, writers + t));
	}
}

/* Wait until each thread has begun and ended a write of the range after this call. */
static void go_on(uint32_t more)
{
	uint32_t t, from;

	for (t = 0; t < THREADS; t++) {
		from = __atomic_load_n(&writers[t].done, __ATOMIC_ACQUIRE);
		while (__atomic_load_n(&writers[t].done, __ATOMIC_ACQUIRE) - from < 2 + more)
			rest();
	}
}

/* The threads end. Everything is as they say; pages are looked at by both ways. */
static long finish(uint32_t children)
{
	uint32_t t, i, wanted;
	struct page value;
	long taken = 0;

	__atomic_store_n(&shared.stop, true, __ATOMIC_RELEASE);
	for (t = 0; t < THREADS; t++) {
		need(!pthread_join(writers[t].id, NULL));
		if (writers[t].wrong)
			failed(__FILE__, __LINE__, "thread %u found %s in page %u", t,
			       writers[t].wrong, writers[t].wrong_page);
		taken += writers[t].faults;
	}
	for (i = 0; i < shared.pages; i++) {
		bool inside = i >= shared.first && i < shared.first + shared.many;

		check(has_tags(i));
		for (t = 0; t < THREADS; t++)
			check_is(shared.page[i].count[t], writers[t].wrote[i]);
		wanted = inside ? children : 0;
		check_is(shared.page[i].count[CHILD], wanted);
		need(!bpf_map_lookup_elem(shared.fd, &i, &value));
		check(!memcmp(&value, shared.page + i, sizeof(value)));
	}
	return taken;
}

/* Pages that a fault can bring back are discarded; the others are mapped anew. */
static void discard(uint32_t first, uint32_t pages)
{
	struct page *from = shared.page + first;
	size_t len = pages * sizeof(*from);

	if (behaviour != EAGER)
		check_is(madvise(from, len, MADV_DONTNEED), 0);
	else
		need(map_at((char *)from, len, PROT_READ | PROT_WRITE, 0, shared.fd,
			    first * PAGE) == (char *)from);
}

static bool goes_on(uint32_t round)
{
	static time_t end;

	if (!round)
		end = time(NULL) + SECONDS;
	return round < ROUNDS && (round < AT_LEAST || time(NULL) <= end);
}

/* ---- page tables that go ---- */

/* Does the table of 2 MiB go with its pages? */
static bool table_goes(char *mem)
{
	long before;

	touch_read(mem);
	before = status_kib("VmPTE");
	check_is(madvise(mem, TABLE * PAGE, MADV_DONTNEED), 0);
	return status_kib("VmPTE") == before - 4;
}

static void tables(void)
{
	size_t len = TABLE * PAGE;
	char *control = mmap(NULL, 2 * len, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long file, taken;
	uint32_t round;

	need(control != MAP_FAILED);
	control = (char *)(((uintptr_t)control + len - 1) & ~(len - 1));
	need(!madvise(control, len, MADV_NOHUGEPAGE));
	if (!table_goes(control))
		skip("this kernel keeps the page tables of what is discarded");
	/* The page of the vDSO that tells the time counts as well. */
	time(NULL);
	file = status_kib("RssFile");
	begin(3 * TABLE, TABLE, TABLE);
	check(table_goes((char *)(shared.page + TABLE)));
	discard(TABLE, TABLE);
	start();
	for (round = 0; goes_on(round); round++) {
		discard(TABLE, TABLE);
		go_on(round % 37);
	}
	taken = finish(0);
	/* Each round was followed by a touch of what it had discarded. */
	if (behaviour != EAGER)
		check(taken >= (long)round);
	check_is(present((char *)shared.page, shared.pages), shared.pages);
	check_is(status_kib("RssFile") - file, 4 * shared.pages);
	check_is(munmap(shared.page, shared.pages * sizeof(*shared.page)), 0);
	check_is(status_kib("RssFile"), file);
}

/* ---- pages that go ---- */

static void discarded(void)
{
	uint32_t round;
	long taken;

	begin(128, 40, 64);
	start();
	for (round = 0; goes_on(round); round++) {
		if (round & 1)
			discard(40, 64);
		else
			discard(40 + round * 7 % 57, 8);
		go_on(round % 37);
	}
	taken = finish(0);
	if (behaviour != EAGER)
		check(taken >= (long)round / 2);
}

/* ---- the right to write ---- */

static void refused(int number, siginfo_t *info, void *context)
{
	struct page *from = shared.page + shared.first;

	if (!self || info->si_code != SEGV_ACCERR || info->si_addr < (void *)from ||
	    info->si_addr >= (void *)(from + shared.many)) {
		signal(SIGSEGV, SIG_DFL);
		return;
	}
	__atomic_fetch_add(&self->refused, 1, __ATOMIC_RELEASE);
	/* The write is tried again, until it is allowed. */
	rest();
}

static uint64_t written(void)
{
	uint64_t sum = 0;
	uint32_t i, t;

	for (i = shared.first; i < shared.first + shared.many; i++)
		for (t = 0; t < THREADS; t++)
			sum += __atomic_load_n(&shared.page[i].count[t], __ATOMIC_RELAXED);
	return sum;
}

static void protected(void)
{
	struct sigaction action = { .sa_sigaction = refused, .sa_flags = SA_SIGINFO };
	size_t len = 64 * PAGE;
	struct page *from;
	uint32_t round, t;

	begin(128, 40, 64);
	from = shared.page + 40;
	sigaction(SIGSEGV, &action, NULL);
	start();
	for (round = 0; goes_on(round); round++) {
		uint64_t sum;

		check_is(mprotect(from, len, PROT_READ), 0);
		/* Both are at a write that is refused: what they write to stands still. */
		for (t = 0; t < THREADS; t++) {
			uint32_t was = __atomic_load_n(&writers[t].refused, __ATOMIC_ACQUIRE);

			while (__atomic_load_n(&writers[t].refused, __ATOMIC_ACQUIRE) == was)
				rest();
		}
		sum = written();
		/* Read faults of pages that are not writable now, and must be so later. */
		if (round & 1 && behaviour != EAGER)
			discard(40, 64);
		check_is(written(), sum);
		check_is(mprotect(from, len, PROT_READ | PROT_WRITE), 0);
		go_on(round % 7);
	}
	finish(0);
	for (t = 0; t < THREADS; t++)
		check(writers[t].refused >= round);
}

/* ---- fork ---- */

/* In the child, which has no other threads: 0, or what was wrong. */
static int child(bool forgets)
{
	struct page *from = shared.page + shared.first;
	size_t len = shared.many * sizeof(*from);
	uint32_t i, t, before[THREADS];
	int wrong = 0;

	if (forgets && behaviour != EAGER && madvise(from, len, MADV_DONTNEED))
		return 1;
	for (i = 0; i < shared.many; i++) {
		for (t = 0; t < THREADS; t++)
			before[t] = __atomic_load_n(&from[i].count[t], __ATOMIC_ACQUIRE);
		__atomic_fetch_add(&from[i].count[CHILD], 1, __ATOMIC_RELAXED);
		if (!has_tags(shared.first + i))
			wrong = 2;
		for (t = 0; t < THREADS; t++)
			if (__atomic_load_n(&from[i].count[t], __ATOMIC_ACQUIRE) < before[t])
				wrong = 3;
	}
	return munmap(shared.page, shared.pages * sizeof(*from)) ? 4 : wrong;
}

static void forking(void)
{
	uint32_t round;
	int status;
	pid_t pid;

	begin(128, 40, 64);
	start();
	for (round = 0; goes_on(round); round++) {
		if (round & 1)
			discard(40 + round * 7 % 57, 8);
		pid = fork();
		need(pid >= 0);
		if (!pid)
			_exit(child(round & 2));
		/* They write while it is forked, and while the child does. */
		go_on(round % 7);
		need(waitpid(pid, &status, 0) == pid);
		check_is(status, 0);
	}
	finish(round);
}

const struct test writer_tests[] = {
	{ "page tables that go while threads read and write", tables },
	{ "no write is lost while pages are discarded", discarded },
	{ "no write is lost while mprotect forbids and allows", protected },
	{ "no write is lost while the process forks", forking },
	{ 0 }
};
