// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench ringbuf: map a BPF ring buffer the way its users do. mmap() installs all
 * PTEs at once: the consumer's page, then the producer's page and the data pages
 * twice in a row.
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

struct ringbuf {
	struct bench bench;
	uint64_t size, full_size;
	size_t page_size;
};

static void resize(void *ctx, bool warm_up)
{
	struct ringbuf *r = ctx;

	r->size = warm_up ? r->page_size : r->full_size;
}

static int lap(void *ctx, struct lap *lap)
{
	struct ringbuf *r = ctx;
	size_t page = r->page_size, len = page + 2 * r->size;
	char *consumer = MAP_FAILED, *producer = MAP_FAILED;
	int fd, ret = EXIT_OK;
	uint64_t begin;

	fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "mmscope_ring", 0, 0, r->size, NULL);
	if (fd < 0)
		return bpfmap_failed("bench ringbuf", "create a BPF ring buffer");
	begin = now_ns();
	consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	producer = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, page);
	lap->mmap_ns = now_ns() - begin;
	if (consumer == MAP_FAILED || producer == MAP_FAILED) {
		ret = bpfmap_failed("bench ringbuf", "map a BPF ring buffer");
		goto cleanup;
	}
	/* Reads that find every page present: no fault is the proof of it. */
	begin = now_ns();
	touch_all(consumer, 1, false);
	touch_all(producer, len / page, false);
	lap->touch_ns = now_ns() - begin;
	ret = bench_oracle(&r->bench, lap, consumer, page) ?:
	      bench_oracle(&r->bench, lap, producer, len);
cleanup:
	begin = now_ns();
	if (consumer != MAP_FAILED)
		munmap(consumer, page);
	if (producer != MAP_FAILED)
		munmap(producer, len);
	lap->munmap_ns = now_ns() - begin;
	close(fd);
	return ret;
}

int workload_ringbuf(int argc, char **argv)
{
	struct ringbuf r = { .full_size = 1 << 20, .page_size = bench_page_size() };
	struct lap_ops ops = { .resize = resize, .lap = lap };
	struct bench *b = &r.bench;
	const struct option_def defs[] = {
		{ "size", 's', OPT_SIZE, "BYTES", "size of the data area, a power of two (1M)",
		  &r.full_size, .min = 1, .max = 1ull << 30 },
		BENCH_OPTIONS(b),
		{ 0 }
	};
	const struct option_set set = {
		.usage = "bench ringbuf [OPTIONS]",
		.about = "Map a BPF ring buffer, read its pages, each once, and unmap it.",
		.defs = defs,
	};
	int ret;

	bench_init(b, "ringbuf");
	if (!bench_options(b, &set, argc, argv, &ret))
		return ret;
	if (bench_check_size("--size", r.full_size))
		return EXIT_USAGE;
	if (r.full_size & (r.full_size - 1)) {
		err("--size", "%" PRIu64 " bytes is not a power of two", r.full_size);
		return EXIT_USAGE;
	}
	b->pages = b->map_pages = 2 + 2 * (r.full_size / r.page_size);
	bench_param_number(b, "size", r.full_size);

	ret = bench_measure(b, &ops, &r);
	if (!ret)
		ret = bench_report(b);
	bench_free(b);
	return ret;
}
