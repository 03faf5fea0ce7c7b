// SPDX-License-Identifier: GPL-2.0-only
/* The measured region of a workload: warm-up, control of the tracer, rusage. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "data/status.h"
#include "data/err.h"
#include "workloads/control.h"
#include "workloads/memory.h"
#include "workloads/workload.h"

uint64_t bench_page_size(void)
{
	return sysconf(_SC_PAGESIZE);
}

void bench_init(struct bench *b, const char *name)
{
	*b = (struct bench){ .name = name, .repeats = BENCH_REPEATS };
}

bool bench_options(struct bench *b, const struct option_set *set, int argc, char **argv,
		   int *status)
{
	bool dashes;
	int rest;

	*status = EXIT_USAGE;
	switch (options_parse(set, argc, argv, &rest, &dashes)) {
	case OPTIONS_HELP:
		*status = EXIT_OK;
		return false;
	case OPTIONS_BAD:
		return false;
	case OPTIONS_OK:
		break;
	}
	err_json(b->json);
	if (rest == argc)
		return true;
	err("%s", "bench %s takes no arguments", argv[rest], b->name);
	return false;
}

void bench_param_text(struct bench *b, const char *key, const char *text)
{
	b->param[b->nparams++] = (struct bench_param){ key, text, 0 };
}

void bench_param_number(struct bench *b, const char *key, uint64_t number)
{
	b->param[b->nparams++] = (struct bench_param){ key, NULL, number };
}

int bench_check_size(const char *option, uint64_t size)
{
	unsigned long long page = bench_page_size();

	if (size && size % page == 0)
		return 0;
	err("%s", "%llu bytes is not a multiple of the page size (%llu)", option,
	    (unsigned long long)size, page);
	return EXIT_USAGE;
}

__attribute__((noinline)) void touch_all(char *addr, uint64_t pages, bool write)
{
	size_t page = bench_page_size();
	uint64_t i;

	for (i = 0; i < pages; i++)
		touch_page(addr + i * page, write);
}

int bench_oracle(struct bench *b, struct lap *lap, const void *addr, size_t len)
{
	if (!b->reader)
		return 0;
	if (!oracle_read(b->reader, addr, len, &lap->oracle)) {
		lap->oracle.rss.anon -= b->rss.anon;
		lap->oracle.rss.file -= b->rss.file;
		lap->oracle.rss.shmem -= b->rss.shmem;
		return 0;
	}
	err("--oracle", "cannot read /proc/self/pagemap and smaps: %s", strerror(errno));
	return EXIT_INTERNAL;
}

struct region {
	struct rusage usage;
	uint64_t outside, inside;	/* pgfault before and after the tracer is on */
};

/* 0 without --oracle. A file that could be opened and read once does not fail later. */
static uint64_t pgfault(struct bench *b)
{
	uint64_t faults = 0;

	if (b->reader)
		oracle_pgfault(b->reader, &faults);
	return faults;
}

static void region_begin(struct bench *b, struct control *control, struct region *r)
{
	r->outside = pgfault(b);
	control_send(control, "enable\n");
	r->inside = pgfault(b);
	getrusage(RUSAGE_SELF, &r->usage);
}

static void region_end(struct bench *b, struct control *control, const struct region *r)
{
	struct rusage after;

	getrusage(RUSAGE_SELF, &after);
	b->pgfault_inside += pgfault(b) - r->inside;
	control_send(control, "disable\n");
	b->pgfault_around += pgfault(b) - r->outside;
	b->minflt += after.ru_minflt - r->usage.ru_minflt;
	b->majflt += after.ru_majflt - r->usage.ru_majflt;
}

static int run_laps(struct bench *b, const struct lap_ops *ops, void *ctx,
		    struct control *control, uint64_t laps)
{
	struct region region;
	int ret = 0, ret_finish;
	uint64_t i;

	if (!ops->prepare)
		region_begin(b, control, &region);
	for (i = 0; i < laps && !ret; i++) {
		if (ops->prepare) {
			ret = ops->prepare(ctx);
			if (ret)
				break;
			region_begin(b, control, &region);
		}
		ret = ops->lap(ctx, &b->laps[i]);
		if (ops->prepare) {
			region_end(b, control, &region);
			ret_finish = ops->finish(ctx);
			if (!ret)
				ret = ret_finish;
		}
	}
	if (!ops->prepare)
		region_end(b, control, &region);
	return ret;
}

int bench_measure(struct bench *b, const struct lap_ops *ops, void *ctx)
{
	struct control control, dry;
	int ret;

	/* A tracer that dies while we write to it must not take us along. */
	signal(SIGPIPE, SIG_IGN);
	if (control_open(&control) || values_check())
		return EXIT_USAGE;
	b->laps = memory_alloc(b->repeats * sizeof(*b->laps));
	if (!b->laps) {
		err("--repeat", "no memory for %llu repeats",
		    (unsigned long long)b->repeats);
		return EXIT_USAGE;
	}
	if (b->oracle) {
		b->reader = oracle_open();
		if (!b->reader) {
			err("--oracle", "cannot open /proc/self/pagemap and smaps: %s",
			    strerror(errno));
			return EXIT_UNOBSERVED;
		}
		b->fault_around_bytes = oracle_fault_around_bytes();
	}
	if (control_open_dry(&dry)) {
		err("bench", "cannot create a pipe: %s", strerror(errno));
		return EXIT_INTERNAL;
	}

	/*
	 * All code and memory that the region uses is used once here, so that
	 * the region holds the faults of the workload and no others.
	 */
	memory_prefault_stack();
	ops->resize(ctx, true);
	ret = run_laps(b, ops, ctx, &dry, 1);
	control_close_dry(&dry);
	if (ret)
		return ret;
	ops->resize(ctx, false);
	memset(b->laps, 0, b->repeats * sizeof(*b->laps));
	b->minflt = b->majflt = b->pgfault_inside = b->pgfault_around = 0;
	if (b->reader) {
		b->rss_exact = oracle_rss_is_exact(b->reader);
		if (oracle_rss(b->reader, &b->rss) ||
		    oracle_pgfault(b->reader, &b->pgfault_inside)) {
			err("--oracle", "cannot read /proc/self/status and /proc/vmstat: %s",
			    strerror(errno));
			return EXIT_UNOBSERVED;
		}
		b->pgfault_inside = 0;
	}
	return run_laps(b, ops, ctx, &control, b->repeats);
}

void bench_free(struct bench *b)
{
	memory_free(b->laps, b->repeats * sizeof(*b->laps));
	oracle_close(b->reader);
	free(b->windows);
}
