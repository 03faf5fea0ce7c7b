// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench io_uring: set up a ring and map it. mmap() installs all PTEs at once:
 * those of the submission and completion rings and of the submission entries.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "data/status.h"
#include "data/err.h"
#include "workloads/workload.h"

struct ring {
	struct bench bench;
	uint64_t entries, full_entries;
	uint64_t pages;		/* of the last lap, from the kernel's parameters */
	size_t page_size;
};

struct area {
	size_t len;
	off_t offset;
	char *p;
};

static void resize(void *ctx, bool warm_up)
{
	struct ring *r = ctx;

	r->entries = warm_up ? 1 : r->full_entries;
}

/* The areas to map, whole pages each; returns how many. */
static int layout(const struct ring *r, const struct io_uring_params *p, struct area area[3])
{
	size_t sq = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
	size_t cq = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	size_t sqes = p->sq_entries * sizeof(struct io_uring_sqe);
	int n = 0, i;

	if (p->features & IORING_FEAT_SINGLE_MMAP) {
		area[n++] = (struct area){ MAX(sq, cq), IORING_OFF_SQ_RING, MAP_FAILED };
	} else {
		area[n++] = (struct area){ sq, IORING_OFF_SQ_RING, MAP_FAILED };
		area[n++] = (struct area){ cq, IORING_OFF_CQ_RING, MAP_FAILED };
	}
	area[n++] = (struct area){ sqes, IORING_OFF_SQES, MAP_FAILED };
	for (i = 0; i < n; i++)
		area[i].len = roundup(area[i].len, r->page_size);
	return n;
}

static int setup_failed(uint64_t entries)
{
	if (errno == ENOSYS)
		err("bench io_uring", "this kernel is built without io_uring");
	else if (errno == EPERM)
		err("bench io_uring", "the kernel does not permit io_uring; see the sysctl "
		    "kernel.io_uring_disabled");
	else if (errno == ENOMEM)
		err("bench io_uring", "no memory for %" PRIu64 " entries; see ulimit -l", entries);
	else
		err("bench io_uring", "cannot set up a ring of %" PRIu64 " entries: %s", entries,
		    strerror(errno));
	return EXIT_UNOBSERVED;
}

static int lap(void *ctx, struct lap *lap)
{
	struct io_uring_params params = { 0 };
	struct area area[3];
	struct ring *r = ctx;
	int fd, n, i, ret = EXIT_OK;
	uint64_t begin;

	fd = syscall(SYS_io_uring_setup, (unsigned int)r->entries, &params);
	if (fd < 0)
		return setup_failed(r->entries);
	n = layout(r, &params, area);

	begin = now_ns();
	for (i = 0; i < n; i++)
		area[i].p = mmap(NULL, area[i].len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				 area[i].offset);
	lap->mmap_ns = now_ns() - begin;
	for (i = 0; i < n; i++) {
		if (area[i].p != MAP_FAILED)
			continue;
		err("bench io_uring", "cannot map the ring: %s", strerror(errno));
		ret = EXIT_UNOBSERVED;
		goto cleanup;
	}
	/* Reads that find every page present: no fault is the proof of it. */
	begin = now_ns();
	for (i = 0; i < n; i++)
		touch_all(area[i].p, area[i].len / r->page_size, false);
	lap->touch_ns = now_ns() - begin;
	r->pages = 0;
	for (i = 0; i < n && !ret; i++) {
		r->pages += area[i].len / r->page_size;
		ret = bench_oracle(&r->bench, lap, area[i].p, area[i].len);
	}
cleanup:
	begin = now_ns();
	for (i = 0; i < n; i++)
		if (area[i].p != MAP_FAILED)
			munmap(area[i].p, area[i].len);
	lap->munmap_ns = now_ns() - begin;
	close(fd);
	return ret;
}

int workload_io_uring(int argc, char **argv)
{
	struct ring r = { .full_entries = 256, .page_size = bench_page_size() };
	struct lap_ops ops = { .resize = resize, .lap = lap };
	struct bench *b = &r.bench;
	const struct option_def defs[] = {
		{ "entries", 0, OPT_COUNT, "N", "submission entries; the kernel rounds up (256)",
		  &r.full_entries, .min = 1, .max = 32768 },
		BENCH_OPTIONS(b),
		{ 0 }
	};
	const struct option_set set = {
		.usage = "bench io_uring [OPTIONS]",
		.about = "Set up an io_uring, map it, read its pages, each once, and unmap it.",
		.defs = defs,
	};
	int ret;

	bench_init(b, "io_uring");
	if (!bench_options(b, &set, argc, argv, &ret))
		return ret;
	bench_param_number(b, "entries", r.full_entries);
	ret = bench_measure(b, &ops, &r);
	b->pages = b->map_pages = r.pages;
	if (!ret)
		ret = bench_report(b);
	bench_free(b);
	return ret;
}
