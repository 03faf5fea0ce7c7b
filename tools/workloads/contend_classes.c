// SPDX-License-Identifier: GPL-2.0-only
/*
 * What threads do that are known to collide on one lock. How often they do is up to
 * the machine; that it is this lock is not: each class has a way of its own to take it
 * again and again while next to nothing else is shared.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "workloads/contend.h"
#include "workloads/workload.h"

/* An emulator of CPUs that run in turn takes it for the end of one's turn. */
static void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	asm volatile("yield");
#endif
}

/* `size` bytes at a multiple of what a page table maps, of small pages. */
static char *map_aligned(struct arena *a, size_t size)
{
	char *p = mmap(NULL, size + TABLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED) {
		arena_fail(a);
		return p;
	}
	p += -(uintptr_t)p & (TABLE - 1);
	madvise(p, size, MADV_NOHUGEPAGE);
	return p;
}

/* ---- mmap_lock: everybody maps and unmaps in one address space ---- */

static void work_mmap_lock(struct arena *a, char *map, int fd, unsigned int share,
			   unsigned int threads, _Atomic uint64_t *ops)
{
	while (!a->stop) {
		char *p = mmap(NULL, bench_page_size(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		if (p == MAP_FAILED || munmap(p, bench_page_size()))
			arena_fail(a);
		(*ops)++;
	}
}

/*
 * ---- page_table: pages of one page table are read and then written. What was read is
 * the zero page; taking its place is told to the other CPUs while the lock is held
 * (ptep_clear_flush() in wp_page_copy(), 6.1 to 7.3), and who hears it wants the lock ----
 */

static char *map_table(struct arena *a, int fd, unsigned int threads)
{
	return map_aligned(a, TABLE);
}

static void work_page_table(struct arena *a, char *map, int fd, unsigned int share,
			    unsigned int threads, _Atomic uint64_t *ops)
{
	size_t page = bench_page_size(), pages = TABLE / page / threads, i;
	char *own = map + share * pages * page;

	while (!a->stop) {
		for (i = 0; i < pages && !a->stop; i++) {
			touch_page(own + i * page, false);
			touch_page(own + i * page, true);
			/* Whoever waits is let in before the next page. */
			cpu_relax();
		}
		*ops += i;
		if (madvise(own, pages * page, MADV_DONTNEED))
			arena_fail(a);
	}
}

/*
 * ---- page_table_pmd: huge pages that one table of PMDs maps are written, and said to
 * be of no more use. They stay, but that they are clean and old is told to the other
 * CPUs while the lock is held (madvise_free_huge_pmd(), 6.1 to 7.3) ----
 */

#define GIB		(1UL << 30)	/* what one table of PMDs maps */

/* How much of this process is huge pages; -1: it is not told. */
static long huge_kib(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[128];
	long kib = -1;

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "AnonHugePages: %ld kB", &kib);
	if (f)
		fclose(f);
	return kib;
}

static char *map_huge(struct arena *a, int fd, unsigned int threads)
{
	char *p = mmap(NULL, 2 * GIB, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	unsigned int i;
	long kib;

	if (p == MAP_FAILED) {
		arena_fail(a);
		return p;
	}
	p += -(uintptr_t)p & (GIB - 1);
	madvise(p, threads * TABLE, MADV_HUGEPAGE);
	for (i = 0; i < threads; i++)
		touch_page(p + i * TABLE, true);
	kib = huge_kib();
	if (kib >= 0 && (unsigned long)kib < threads * TABLE / 1024) {
		errno = ENOTSUP;
		arena_fail(a);
	}
	return p;
}

static void work_page_table_pmd(struct arena *a, char *map, int fd, unsigned int share,
				unsigned int threads, _Atomic uint64_t *ops)
{
	char *own = map + share * TABLE;

	while (!a->stop) {
		touch_page(own, true);
		if (madvise(own, TABLE, MADV_FREE))
			arena_fail(a);
		(*ops)++;
		cpu_relax();
	}
}

/* ---- folio: everybody writes to the same page, by a mapping of its own ---- */

static char *map_folio(struct arena *a, int fd, unsigned int threads)
{
	char *p = map_aligned(a, TABLE * threads);
	unsigned int i;

	for (i = 0; p != MAP_FAILED && i < threads; i++)
		if (mmap(p + i * TABLE, bench_page_size(), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			arena_fail(a);
	return p;
}

static void work_folio(struct arena *a, char *map, int fd, unsigned int share,
		       unsigned int threads, _Atomic uint64_t *ops)
{
	char *own = map + share * TABLE;

	while (!a->stop) {
		touch_page(own, true);
		if (madvise(own, bench_page_size(), MADV_DONTNEED))
			arena_fail(a);
		(*ops)++;
	}
}

/*
 * ---- i_mmap_rwsem: processes map and unmap a file; the first one has a page of it
 * taken out of all mappings, for which the lock is held as long as there are many ----
 */

#define FILE_MAPPINGS	1024	/* of each process */

static char *map_i_mmap(struct arena *a, int fd, unsigned int threads)
{
	unsigned int i;

	for (i = 0; i < FILE_MAPPINGS; i++)
		if (mmap(NULL, bench_page_size(), PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
			arena_fail(a);
	return NULL;
}

static void work_i_mmap(struct arena *a, char *map, int fd, unsigned int share,
			unsigned int threads, _Atomic uint64_t *ops)
{
	size_t page = bench_page_size();
	bool first = ops == &a->ops[0];

	while (!a->stop) {
		char *p = first ? NULL : mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);

		if (first ? fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, page) :
			    p == MAP_FAILED || munmap(p, page))
			arena_fail(a);
		(*ops)++;
	}
}

/* ---- lru: pages are taken off their list one by one, and put back ---- */

#define LRU_PAGES	256

static char *map_lru(struct arena *a, int fd, unsigned int threads)
{
	return map_aligned(a, TABLE * threads);
}

static void work_lru(struct arena *a, char *map, int fd, unsigned int share,
		     unsigned int threads, _Atomic uint64_t *ops)
{
	size_t page = bench_page_size();
	char *own = map + share * TABLE;

	/* Without swap space nothing leaves; with it, what left comes back. */
	while (!a->stop) {
		touch_all(own, LRU_PAGES, true);
		if (madvise(own, LRU_PAGES * page, MADV_PAGEOUT))
			arena_fail(a);
		*ops += LRU_PAGES;
	}
}

/*
 * ---- i_pages: everybody adds pages to one file, which is emptied when all have ----
 *
 * A page that is the only one far and wide needs nodes of the tree of its own, and
 * these are allocated while the lock is held: next to that, the lock of the lists
 * that the pages are put on is held for a moment.
 */

#define SPARSE_PAGES	16384	/* of all threads */
#define SPARSE_SHIFT	48	/* six nodes for each page: a level of the tree is 6 bits */

static unsigned int sparse_pages(unsigned int threads)
{
	unsigned int most = TABLE / bench_page_size();

	return SPARSE_PAGES / threads < most ? SPARSE_PAGES / threads : most;
}

static char *map_i_pages(struct arena *a, int fd, unsigned int threads)
{
	unsigned int pages = sparse_pages(threads), n = threads * pages, i;
	size_t page = bench_page_size();
	char *p = map_aligned(a, threads * TABLE);

	if (p == MAP_FAILED)
		return p;
	if (ftruncate(fd, (off_t)n << SPARSE_SHIFT))
		arena_fail(a);
	/* Each thread's are in a page table of its own. */
	for (i = 0; i < n; i++)
		if (mmap(p + i / pages * TABLE + i % pages * page, page, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, (off_t)i << SPARSE_SHIFT) == MAP_FAILED)
			arena_fail(a);
	return p;
}

static void work_i_pages(struct arena *a, char *map, int fd, unsigned int share,
			 unsigned int threads, _Atomic uint64_t *ops)
{
	unsigned int pages = sparse_pages(threads);
	bool last;

	do {
		touch_all(map + share * TABLE, pages, true);
		*ops += pages;
		pthread_barrier_wait(&a->round);
		if (!share && fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
					(off_t)threads * pages << SPARSE_SHIFT))
			arena_fail(a);
		if (!share)
			a->last = a->stop;
		pthread_barrier_wait(&a->round);
		last = a->last;
	} while (!last);
}

/*
 * ---- vma_lock: of two threads one faults huge pages in, which takes long, and the
 * other changes the mapping's protection in the middle of each fault
 */

#define HUGE_PAGES	16

static char *map_vma_lock(struct arena *a, int fd, unsigned int threads)
{
	char *p = map_aligned(a, HUGE_PAGES * TABLE);

	if (p != MAP_FAILED)
		madvise(p, HUGE_PAGES * TABLE, MADV_HUGEPAGE);
	return p;
}

static void work_vma_lock(struct arena *a, char *map, int fd, unsigned int share,
			  unsigned int threads, _Atomic uint64_t *ops)
{
	_Atomic uint64_t *faults = ops - share;
	uint64_t seen = 0;
	unsigned int i = 0;

	while (!a->stop && !share) {
		touch_page(map + i++ % HUGE_PAGES * TABLE, true);
		(*ops)++;
		if (i % HUGE_PAGES == 0 && madvise(map, HUGE_PAGES * TABLE, MADV_DONTNEED))
			arena_fail(a);
	}
	while (!a->stop && share) {
		/* One that was refused goes on under mmap_lock: let it end first. */
		if (*faults < seen + 3) {
			sched_yield();
			continue;
		}
		seen = *faults;
		if (mprotect(map, HUGE_PAGES * TABLE, i++ & 1 ? PROT_READ | PROT_WRITE :
			     PROT_READ | PROT_WRITE | PROT_EXEC))
			arena_fail(a);
		(*ops)++;
	}
}

static const struct class classes[] = {
	{ "mmap_lock", 0, NULL, work_mmap_lock },
	{ "vma_lock", 2, map_vma_lock, work_vma_lock },
	{ "page_table", 0, map_table, work_page_table },
	{ "page_table_pmd", 0, map_huge, work_page_table_pmd },
	{ "i_pages", 0, map_i_pages, work_i_pages },
	{ "folio", 0, map_folio, work_folio },
	{ "i_mmap_rwsem", 1, map_i_mmap, work_i_mmap },
	{ "lru", 0, map_lru, work_lru },
};

const struct class *class_find(const char *name)
{
	const struct class *class;

	for (class = classes; class < classes + sizeof(classes) / sizeof(*classes); class++)
		if (!strcmp(class->name, name))
			return class;
	return NULL;
}
