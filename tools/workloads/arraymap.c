// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench arraymap: mmap a BPF array, touch its pages, unmap it. Kernels up to 7.2
 * populate such a mapping in mmap(), 7.3 at first touch.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/status.h"
#include "data/err.h"
#include "workloads/bpfmap.h"
#include "workloads/memory.h"
#include "workloads/workload.h"

#define WARM_UP_PAGES 16

struct arraymap {
	struct bench bench;
	uint64_t size, full_pages, pages;
	const char *touch;
	bool populate, write;
	uint64_t touched;	/* pages of the current laps */
	size_t page_size;

	/* --touch fork: mapped and touched before the region. */
	bool fork;
	struct child *child;
	int fd;
	char *base;
	uint64_t mmap_ns;
};

int bpfmap_failed(const char *bench, const char *what)
{
	if (errno == EPERM || errno == EACCES)
		err(bench, "the kernel does not permit bpf(2); it needs root (or CAP_BPF) and a "
		    "kernel that allows BPF, such as a guest of mmscope vm");
	else if (errno == ENOSYS)
		err(bench, "this kernel is built without bpf(2)");
	else
		err(bench, "cannot %s: %s", what, strerror(errno));
	return EXIT_UNOBSERVED;
}

static void resize(void *ctx, bool warm_up)
{
	struct arraymap *a = ctx;

	a->pages = warm_up && a->full_pages > WARM_UP_PAGES ? WARM_UP_PAGES : a->full_pages;
	a->touched = !strcmp(a->touch, "none") ? 0 : !strcmp(a->touch, "one") ? 1 : a->pages;
}

static int map(struct arraymap *a)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	uint64_t begin;

	/* A value is a page, so that the array is exactly as long as the mapping. */
	a->fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "mmscope_array", 4, a->page_size, a->pages,
			       &opts);
	if (a->fd < 0)
		return bpfmap_failed("bench arraymap", "create a BPF array");
	begin = now_ns();
	a->base = mmap(NULL, a->pages * a->page_size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | (a->populate ? MAP_POPULATE : 0), a->fd, 0);
	a->mmap_ns = now_ns() - begin;
	if (a->base != MAP_FAILED)
		return EXIT_OK;
	close(a->fd);
	return bpfmap_failed("bench arraymap", "map a BPF array");
}

static int unmap(struct arraymap *a, struct lap *lap)
{
	size_t len = a->pages * a->page_size;
	uint64_t begin;
	int ret;

	lap->mmap_ns = a->mmap_ns;
	ret = bench_oracle(&a->bench, lap, a->base, len);
	begin = now_ns();
	munmap(a->base, len);
	lap->munmap_ns = now_ns() - begin;
	close(a->fd);
	return ret;
}

static int lap(void *ctx, struct lap *lap)
{
	struct arraymap *a = ctx;
	uint64_t begin;
	int ret = map(a);

	if (ret)
		return ret;
	if (a->touched) {
		begin = now_ns();
		touch_all(a->base, a->touched, a->write);
		lap->touch_ns = now_ns() - begin;
	}
	return unmap(a, lap);
}

/* What fork() copies, or leaves to be faulted in, was written. */
static int prepare(void *ctx)
{
	struct arraymap *a = ctx;
	int ret = map(a);

	if (!ret)
		touch_all(a->base, a->touched, true);
	return ret;
}

static int fork_failed(const char *what)
{
	err("bench arraymap", "%s: %s", what, errno == ECHILD ? "it was killed" : strerror(errno));
	return EXIT_INTERNAL;
}

static int lap_fork(void *ctx, struct lap *lap)
{
	struct arraymap *a = ctx;
	unsigned long minflt;
	uint64_t begin;
	int ret;

	begin = now_ns();
	ret = child_fork(a->child);
	lap->touch_ns = now_ns() - begin;
	if (ret)
		return fork_failed("cannot fork");
	if (child_wait(a->child, &minflt))
		return fork_failed("waiting for the child");
	lap->child_minflt = minflt;
	return unmap(a, lap);
}

static int finish(void *ctx)
{
	return EXIT_OK;
}

int workload_arraymap(int argc, char **argv)
{
	struct arraymap a = { .size = 8 << 20, .touch = "read", .page_size = bench_page_size() };
	struct lap_ops ops = { .resize = resize, .lap = lap };
	struct bench *b = &a.bench;
	const struct option_def defs[] = {
		{ "size", 's', OPT_SIZE, "BYTES", "size of the array (8M)", &a.size,
		  .min = 1, .max = 1ull << 31 },
		{ "touch", 0, OPT_CHOICE, "HOW", "what is done to each page (read)", &a.touch,
		  .choices = "none|one|read|write|fork" },
		{ "populate", 0, OPT_FLAG, NULL, "map with MAP_POPULATE", .dest = &a.populate },
		BENCH_OPTIONS(b),
		{ 0 }
	};
	const struct option_set set = {
		.usage = "bench arraymap [OPTIONS]",
		.about = "Map a BPF array, touch its pages, each once, and unmap it.",
		.defs = defs,
	};
	int ret;

	bench_init(b, "arraymap");
	if (!bench_options(b, &set, argc, argv, &ret))
		return ret;
	if (bench_check_size("--size", a.size))
		return EXIT_USAGE;
	a.write = !strcmp(a.touch, "write");
	a.fork = !strcmp(a.touch, "fork");
	a.full_pages = a.size / a.page_size;
	resize(&a, false);
	b->map_pages = a.full_pages;
	b->pages = a.touched;
	bench_param_text(b, "touch", a.touch);
	bench_param_text(b, "populate", a.populate ? "yes" : "no");
	bench_param_number(b, "size", a.size);

	if (a.fork) {
		ops = (struct lap_ops){ .resize = resize, .prepare = prepare, .finish = finish,
					.lap = lap_fork };
		a.child = child_new();
		if (!a.child)
			return fork_failed("cannot prepare to fork");
	}
	ret = bench_measure(b, &ops, &a);
	if (!ret)
		ret = bench_report(b);
	child_free(a.child);
	bench_free(b);
	return ret;
}
