// SPDX-License-Identifier: GPL-2.0-only
/* bench touch: touch pages of a mapping of some kind, each exactly once. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/status.h"
#include "data/err.h"
#include "workloads/backing.h"
#include "workloads/file.h"
#include "workloads/memory.h"
#include "workloads/reach.h"
#include "workloads/team.h"
#include "workloads/thp.h"
#include "workloads/workload.h"

#define WARM_UP_TOUCHES 8	/* of each thread */

struct touch {
	struct bench bench;

	/* As asked for. */
	const char *backing, *touch, *by, *pattern, *path;
	uint64_t size, thp, threads;
	bool overwrite, present;

	/* Derived. */
	bool shared, in_file, memfd, sysv, hugetlb, gmem;
	bool random, cow, fork, beyond, write, populate_write;
	enum reach reach;
	bool prepared;		/* mapped and populated before the region */
	bool held;		/* a child shares the pages */
	int fd;			/* of a file backing */
	int vm;			/* that a guest_memfd belongs to */
	size_t page_size;
	uint64_t align;		/* of the mapping and its length; 0: pages */

	/* Of the current laps: full size or warm-up. */
	struct order order, full;
	size_t len, full_len;

	/* Of the current lap. */
	char *base;
	uint64_t mmap_ns;
	bool populating;
	int failed;		/* errno of a touch that went wrong; 0: none */

	struct team *team;
	struct child *child;
};

static int parse_pattern(struct touch *t)
{
	const char *p = t->pattern;

	t->full.stride = 1;
	if (!strcmp(p, "seq"))
		return 0;
	if (!strcmp(p, "random")) {
		t->random = true;
		return 0;
	}
	if (!strncmp(p, "stride=", 7) && !parse_count(p + 7, &t->full.stride) && t->full.stride)
		return 0;
	err("--pattern", "'%s' is not seq, random or stride=N (N pages, 1 or more)", p);
	return EXIT_USAGE;
}

static int check_combination(struct touch *t)
{
	uint64_t pages = t->size / t->page_size;

	if (t->path && !t->in_file) {
		err("--path", "goes with --backing file or file-private, not with %s", t->backing);
		return EXIT_USAGE;
	}
	if (t->overwrite && !(t->path && t->shared && t->write)) {
		err("--overwrite", "goes with --backing file --path FILE --touch write only");
		return EXIT_USAGE;
	}
	if (t->cow && t->shared) {
		err("--touch", "cow needs private memory: --backing anon or file-private, not %s",
		    t->backing);
		return EXIT_USAGE;
	}
	if (t->fork && t->threads > 1) {
		err("--threads", "only one thread can do --touch fork");
		return EXIT_USAGE;
	}
	if (t->fork && t->reach != REACH_ACCESS) {
		err("--by", "--touch fork touches no page: it goes with access only");
		return EXIT_USAGE;
	}
	if (t->present && (!t->shared || t->in_file || t->beyond || t->fork)) {
		err("--present", "goes with --touch read or write of shmem, memfd, sysv_shm or gmem only");
		return EXIT_USAGE;
	}
	if (t->beyond && (!t->memfd || t->threads > 1)) {
		err("--touch", "beyond goes with --backing memfd and one thread");
		return EXIT_USAGE;
	}
	if (t->full.stride > pages) {
		err("--pattern", "stride=%" PRIu64 " is longer than the mapping of %" PRIu64
		    " pages", t->full.stride, pages);
		return EXIT_USAGE;
	}
	t->full.n = (pages + t->full.stride - 1) / t->full.stride;
	if (t->threads > t->full.n) {
		err("--threads", "%" PRIu64 " threads for %" PRIu64 " pages: one has nothing to do",
		    t->threads, t->full.n);
		return EXIT_USAGE;
	}
	if (t->thp && (t->thp & (t->thp - 1) || t->thp <= t->page_size)) {
		err("--thp", "%" PRIu64 " bytes is not a power of two above the page size", t->thp);
		return EXIT_USAGE;
	}
	if (t->thp && t->size % t->thp) {
		err("--thp", "--size is not a multiple of it (%" PRIu64 " bytes)", t->thp);
		return EXIT_USAGE;
	}
	if (t->thp && (t->hugetlb || t->gmem)) {
		err("--thp", "folios of %s have a size of their own", t->backing);
		return EXIT_USAGE;
	}
	if (t->hugetlb && t->align && t->size % t->align) {
		err("--size", "%" PRIu64 " bytes is not a multiple of the huge page size (%" PRIu64
		    ")", t->size, t->align);
		return EXIT_USAGE;
	}
	return 0;
}

static int parse(struct touch *t, int argc, char **argv)
{
	const struct option_def defs[] = {
		{ "backing", 'b', OPT_CHOICE, "KIND", "what the memory is (anon)", &t->backing,
		  .choices = "anon|file|file-private|shmem|memfd|sysv_shm|hugetlb|gmem" },
		{ "path", 0, OPT_STRING, "FILE", "the file (a temporary one, already unlinked)",
		  .dest = &t->path },
		{ "touch", 0, OPT_CHOICE, "HOW", "what is done to each page (write)", &t->touch,
		  .choices = "read|write|cow|fork|beyond" },
		{ "by", 0, OPT_CHOICE, "WHO", "who does it: the CPU, or the kernel (access)",
		  &t->by, .choices = "access|gup|populate" },
		{ "pattern", 0, OPT_STRING, "ORDER", "seq, random or stride=N pages (seq)",
		  .dest = &t->pattern },
		{ "size", 's', OPT_SIZE, "BYTES", "size of the mapping (8M)", &t->size,
		  .min = 1, .max = 1ull << 43 },
		{ "thp", 0, OPT_SIZE, "BYTES", "use folios of this size, aligned", &t->thp,
		  .min = 1, .max = 1ull << 40 },
		{ "threads", 0, OPT_COUNT, "N", "threads, each with its share of the pages (1)",
		  &t->threads, .min = 1, .max = TEAM_MAX },
		{ "overwrite", 0, OPT_FLAG, NULL, "permit --touch write to change FILE",
		  .dest = &t->overwrite },
		{ "present", 0, OPT_FLAG, NULL, "shared memory whose pages are there, but not mapped",
		  .dest = &t->present },
		BENCH_OPTIONS(&t->bench),
		{ 0 }
	};
	const struct option_set set = {
		.usage = "bench touch [OPTIONS]",
		.about = "Map memory, touch its pages, each once, and unmap it.",
		.defs = defs,
	};
	int status;

	if (!bench_options(&t->bench, &set, argc, argv, &status))
		return status ?: -1;
	if (bench_check_size("--size", t->size) || parse_pattern(t))
		return EXIT_USAGE;
	t->in_file = !strncmp(t->backing, "file", 4);
	t->memfd = !strcmp(t->backing, "memfd");
	t->sysv = !strcmp(t->backing, "sysv_shm");
	t->hugetlb = !strcmp(t->backing, "hugetlb");
	t->gmem = !strcmp(t->backing, "gmem");
	t->align = t->hugetlb ? hugetlb_size() : t->thp;
	t->shared = t->memfd || t->sysv || t->gmem || !strcmp(t->backing, "shmem") ||
		    !strcmp(t->backing, "file");
	t->cow = !strcmp(t->touch, "cow");
	t->fork = !strcmp(t->touch, "fork");
	t->beyond = !strcmp(t->touch, "beyond");
	t->reach = !strcmp(t->by, "gup") ? REACH_GUP :
		   !strcmp(t->by, "populate") ? REACH_POPULATE : REACH_ACCESS;
	t->prepared = t->cow || t->fork || t->present;
	/* A private file page is copied because it is the file's, without a child. */
	t->held = t->cow && !t->in_file;
	t->write = t->cow || !strcmp(t->touch, "write");
	/* What a fork must copy; but no touch of ours may change somebody's file. */
	t->populate_write = t->fork ? !(t->in_file && t->shared) : !t->in_file;
	return check_combination(t);
}

static void resize(void *ctx, bool warm_up)
{
	struct touch *t = ctx;

	t->order = t->full;
	t->len = t->full_len;
	if (!warm_up)
		return;
	/* Fewer touches; a permutation starts within the full mapping anyway. */
	if (t->order.n > WARM_UP_TOUCHES * t->threads)
		t->order.n = WARM_UP_TOUCHES * t->threads;
	if (!t->random)
		t->len = (order_page(&t->order, t->order.n - 1) + 1) * t->page_size;
	if (t->align)
		t->len = (t->len + t->align - 1) & ~(t->align - 1);
}

static int reach(struct touch *t, char *page, bool write)
{
	int e;

	if (t->beyond && t->reach == REACH_ACCESS)
		return reach_beyond(page);
	e = reach_page(t->reach, page, t->page_size, write);
	if (t->beyond)
		return e == EFAULT ? 0 : e ? e : EEXIST;
	return e;
}

static void work(void *arg, unsigned int share)
{
	struct touch *t = arg;
	uint64_t k = order_share(t->order.n, share, t->threads);
	uint64_t end = order_share(t->order.n, share + 1, t->threads);
	bool write = t->populating ? t->populate_write : t->write;

	for (; k < end; k++) {
		char *page = t->base + order_page(&t->order, k) * t->page_size;
		int e;

		if (t->populating || (t->reach == REACH_ACCESS && !t->beyond)) {
			touch_page(page, write);
			continue;
		}
		e = reach(t, page, write);
		if (e)
			__atomic_store_n(&t->failed, e, __ATOMIC_RELAXED);
	}
}

/* An aligned address that is free; nothing else maps memory while the laps run. */
static char *aligned_hole(size_t len, size_t align)
{
	char *all = mmap(NULL, len + align, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (all == MAP_FAILED)
		return NULL;
	munmap(all, len + align);
	return (char *)(((uintptr_t)all + align - 1) & ~((uintptr_t)align - 1));
}

static int map(struct touch *t)
{
	int flags = t->shared ? MAP_SHARED : MAP_PRIVATE, prot = PROT_READ, fd = t->fd;
	char *where = NULL;
	uint64_t begin;

	if (t->write || t->populate_write)
		prot |= PROT_WRITE;
	if (t->memfd) {
		fd = memfd_create("mmscope-bench", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, t->beyond ? 0 : t->len)) {
			err("bench touch", "cannot create a memfd of %zu bytes: %s", t->len,
			    strerror(errno));
			goto fail;
		}
	} else if (t->gmem) {
		fd = gmem_create(t->vm, t->len);
		if (fd < 0) {
			err("bench touch", "cannot create a guest_memfd of %zu bytes: %s", t->len,
			    strerror(errno));
			goto fail;
		}
	} else if (!t->in_file) {
		flags |= MAP_ANONYMOUS | (t->hugetlb ? MAP_HUGETLB : 0);
	}
	if (t->thp) {
		where = aligned_hole(t->len, t->thp);
		flags |= where ? MAP_FIXED_NOREPLACE : 0;
	}

	begin = now_ns();
	t->base = t->sysv ? sysv_map(where, t->len) : mmap(where, t->len, prot, flags, fd, 0);
	t->mmap_ns = now_ns() - begin;
	if (t->base == MAP_FAILED) {
		err("bench touch", "cannot map %zu bytes of %s memory: %s", t->len, t->backing,
		    strerror(errno));
		goto fail;
	}
	if (t->memfd || t->gmem)
		close(fd);
	if (t->thp) {
		if (!madvise(t->base, t->len, MADV_HUGEPAGE))
			return 0;
		err("--thp", "the kernel refuses MADV_HUGEPAGE: %s", strerror(errno));
		return EXIT_UNOBSERVED;
	}
	/* Base pages, whatever the system's settings; kernels without THP refuse, rightly. */
	if (!t->in_file)
		madvise(t->base, t->len, MADV_NOHUGEPAGE);
	return 0;
fail:
	if ((t->memfd || t->gmem) && fd >= 0)
		close(fd);
	return EXIT_INTERNAL;
}

static int unmap(struct touch *t, struct lap *lap)
{
	uint64_t begin;
	int ret;

	begin = now_ns();
	ret = munmap(t->base, t->len);
	lap->munmap_ns = now_ns() - begin;
	if (!ret)
		return 0;
	err("bench touch", "munmap of %zu bytes failed: %s", t->len, strerror(errno));
	return EXIT_INTERNAL;
}

static int lap(void *ctx, struct lap *lap)
{
	struct touch *t = ctx;
	uint64_t begin;
	int ret;

	if (!t->prepared) {
		ret = map(t);
		if (ret)
			return ret;
	}
	lap->mmap_ns = t->mmap_ns;
	if (t->beyond)
		reach_beyond_begin();
	begin = now_ns();
	team_run(t->team);
	lap->touch_ns = now_ns() - begin;
	if (t->beyond)
		reach_beyond_end();
	ret = bench_oracle(&t->bench, lap, t->base, t->len);
	ret = unmap(t, lap) ?: ret;
	if (!ret && t->failed) {
		err("bench touch", "a page could not be touched by %s: %s", t->by,
		    t->failed == EEXIST ? "it is there, beyond the end of the file" :
		    strerror(t->failed));
		ret = EXIT_UNOBSERVED;
	}
	return ret;
}

static int fork_failed(const char *what)
{
	err("bench touch", "%s: %s", what, errno == ECHILD ? "it was killed" : strerror(errno));
	return EXIT_INTERNAL;
}

static int lap_fork(void *ctx, struct lap *lap)
{
	struct touch *t = ctx;
	unsigned long minflt;
	uint64_t begin;
	int ret;

	lap->mmap_ns = t->mmap_ns;
	begin = now_ns();
	ret = child_fork(t->child);
	lap->touch_ns = now_ns() - begin;
	if (ret)
		return fork_failed("cannot fork");
	if (child_wait(t->child, &minflt))
		return fork_failed("waiting for the child");
	lap->child_minflt = minflt;
	ret = bench_oracle(&t->bench, lap, t->base, t->len);
	return unmap(t, lap) ?: ret;
}

static int prepare(void *ctx)
{
	struct touch *t = ctx;
	int ret = map(t);

	if (ret)
		return ret;
	t->populating = true;
	team_run(t->team);
	t->populating = false;
	/* Of shared memory only the entries go; the pages stay with the file. */
	if (t->present && madvise(t->base, t->len, MADV_DONTNEED)) {
		err("--present", "MADV_DONTNEED: %s", strerror(errno));
		return EXIT_INTERNAL;
	}
	if (t->held && child_fork_holding(t->child))
		return fork_failed("cannot fork a child to share the pages with");
	return 0;
}

static int finish(void *ctx)
{
	struct touch *t = ctx;

	if (t->held && child_wait(t->child, NULL))
		return fork_failed("the child that shares the pages");
	return 0;
}

static int set_up(struct touch *t)
{
	t->full_len = t->size;
	if (t->random) {
		t->full.shuffled = memory_alloc(t->full.n * sizeof(*t->full.shuffled));
		if (!t->full.shuffled) {
			err("--pattern", "no memory for the order of %" PRIu64 " pages", t->full.n);
			return EXIT_INTERNAL;
		}
		order_shuffle(t->full.shuffled, t->full.n, t->threads);
	}
	if (t->thp && !t->in_file &&
	    thp_allow(t->thp, t->sysv ? THP_SYSV : t->shared ? THP_SHMEM : THP_ANON))
		return EXIT_UNOBSERVED;
	/* While a child holds the pages, there are their copies as well. */
	if (t->hugetlb && hugetlb_reserve(t->size * (t->held ? 2 : 1)))
		return EXIT_UNOBSERVED;
	if (t->gmem && gmem_open(&t->vm))
		return EXIT_UNOBSERVED;
	if (t->in_file) {
		int ret = file_open(t->path, t->size, t->shared && t->write, t->overwrite, &t->fd);

		if (ret)
			return ret;
	}
	t->team = team_new(t->threads, work, t);
	if (!t->team) {
		err("--threads", "cannot start %" PRIu64 " threads: %s", t->threads,
		    strerror(errno));
		return EXIT_INTERNAL;
	}
	if (t->held || t->fork) {
		t->child = child_new();
		if (!t->child) {
			err("bench touch", "cannot prepare to fork: %s", strerror(errno));
			return EXIT_INTERNAL;
		}
	}
	return 0;
}

static void describe(struct touch *t)
{
	struct bench *b = &t->bench;

	b->pages = t->full.n;
	b->map_pages = t->size / t->page_size;
	bench_param_text(b, "backing", t->backing);
	bench_param_text(b, "touch", t->touch);
	if (t->reach != REACH_ACCESS)
		bench_param_text(b, "by", t->by);
	bench_param_text(b, "pattern", t->pattern);
	bench_param_number(b, "size", t->size);
	bench_param_number(b, "threads", t->threads);
	if (t->thp)
		bench_param_number(b, "thp", t->thp);
	if (t->present)
		bench_param_text(b, "pages", "present");
}

/* Only reads of cached file pages go around, and only one thread's in a known order. */
static void count_windows(struct touch *t)
{
	struct bench *b = &t->bench;
	uint64_t i;

	if (!b->oracle || !(t->in_file || (t->present && !t->sysv && !t->gmem)) ||
	    strcmp(t->touch, "read") || t->threads > 1)
		return;
	b->windows = calloc(b->repeats, sizeof(*b->windows));
	for (i = 0; b->windows && i < b->repeats; i++)
		b->windows[i] = oracle_windows(b->laps[i].oracle.addr, t->page_size,
					       b->map_pages, b->fault_around_bytes / t->page_size,
					       t->page_size / 8, &t->full);
}

int workload_touch(int argc, char **argv)
{
	struct touch t = {
		.backing = "anon", .touch = "write", .by = "access", .pattern = "seq",
		.size = 8 << 20,
		.threads = 1, .fd = -1, .vm = -1, .page_size = bench_page_size(),
	};
	struct lap_ops ops = { .resize = resize, .lap = lap };
	int ret;

	bench_init(&t.bench, "touch");
	ret = parse(&t, argc, argv);
	if (ret)
		return ret < 0 ? EXIT_OK : ret;
	if (t.prepared) {
		ops.prepare = prepare;
		ops.finish = finish;
	}
	if (t.fork)
		ops.lap = lap_fork;
	ret = set_up(&t);
	if (ret)
		goto cleanup;
	describe(&t);
	ret = bench_measure(&t.bench, &ops, &t);
	if (ret)
		goto cleanup;
	count_windows(&t);
	ret = bench_report(&t.bench);
cleanup:
	child_free(t.child);
	team_free(t.team);
	if (t.fd >= 0)
		close(t.fd);
	if (t.vm >= 0)
		close(t.vm);
	memory_free(t.full.shuffled, t.full.n * sizeof(*t.full.shuffled));
	bench_free(&t.bench);
	return ret;
}
