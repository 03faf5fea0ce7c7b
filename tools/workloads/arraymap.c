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
#include "workloads/workload.h"

#define WARM_UP_PAGES 16

struct arraymap {
	struct bench bench;
	uint64_t size, full_pages, pages;
	const char *touch;
	bool populate, read, write;
	size_t page_size;
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
}

static int lap(void *ctx, struct lap *lap)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	struct arraymap *a = ctx;
	size_t len = a->pages * a->page_size;
	int fd, ret = EXIT_OK;
	uint64_t begin;
	char *p;

	/* A value is a page, so that the array is exactly as long as the mapping. */
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "mmscope_array", 4, a->page_size, a->pages, &opts);
	if (fd < 0)
		return bpfmap_failed("bench arraymap", "create a BPF array");

	begin = now_ns();
	p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		 MAP_SHARED | (a->populate ? MAP_POPULATE : 0), fd, 0);
	lap->mmap_ns = now_ns() - begin;
	if (p == MAP_FAILED) {
		ret = bpfmap_failed("bench arraymap", "map a BPF array");
		goto cleanup;
	}
	if (a->read || a->write) {
		begin = now_ns();
		touch_all(p, a->pages, a->write);
		lap->touch_ns = now_ns() - begin;
	}
	ret = bench_oracle(&a->bench, lap, p, len);
	begin = now_ns();
	munmap(p, len);
	lap->munmap_ns = now_ns() - begin;
cleanup:
	close(fd);
	return ret;
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
		  .choices = "none|read|write" },
		{ "populate", 0, OPT_FLAG, NULL, "map with MAP_POPULATE", .dest = &a.populate },
		BENCH_OPTIONS(b),
		{ 0 }
	};
	const struct option_set set = {
		.usage = "bench arraymap [OPTIONS]",
		.about = "Map a BPF array, touch its pages, each once, and unmap it.",
		.defs = defs,
	};
	bool dashes;
	int rest, ret;

	bench_init(b, "arraymap");
	switch (options_parse(&set, argc, argv, &rest, &dashes)) {
	case OPTIONS_HELP:
		return EXIT_OK;
	case OPTIONS_BAD:
		return EXIT_USAGE;
	case OPTIONS_OK:
		break;
	}
	err_json(b->json);
	if (rest < argc) {
		err("%s", "bench arraymap takes no arguments", argv[rest]);
		return EXIT_USAGE;
	}
	if (bench_check_size("--size", a.size))
		return EXIT_USAGE;
	a.read = !strcmp(a.touch, "read");
	a.write = !strcmp(a.touch, "write");
	a.full_pages = a.size / a.page_size;
	b->map_pages = a.full_pages;
	b->pages = a.read || a.write ? a.full_pages : 0;
	bench_param_text(b, "touch", a.touch);
	bench_param_text(b, "populate", a.populate ? "yes" : "no");
	bench_param_number(b, "size", a.size);

	ret = bench_measure(b, &ops, &a);
	if (!ret)
		ret = bench_report(b);
	bench_free(b);
	return ret;
}
