/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_WORKLOAD_H
#define MMSCOPE_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "cmd/options.h"
#include "workloads/oracle.h"

/*
 * A workload does an exactly known amount of memory-management work, so that
 * what a tracer counts can be held against it. Each one is a file with a row in
 * the table of cmd/bench.c.
 */
struct workload {
	const char *name;
	int (*run)(int argc, char **argv);	/* argv[0]: "bench NAME"; an exit status */
	const char *summary;
};

int workload_arraymap(int argc, char **argv);
int workload_contend(int argc, char **argv);
int workload_io_uring(int argc, char **argv);
int workload_ringbuf(int argc, char **argv);
int workload_touch(int argc, char **argv);

/* One repeat: times in ns, child_minflt of a child that the repeat forked. */
struct lap {
	uint64_t mmap_ns, touch_ns, munmap_ns;
	uint64_t child_minflt;
	struct lap_oracle oracle;
};

/* One parameter of the workload, for the report; text NULL: a number. */
struct bench_param {
	const char *key, *text;
	uint64_t number;
};

#define BENCH_MAX_PARAMS 12

struct bench {
	const char *name;

	/* Options that all workloads share (BENCH_OPTIONS). */
	uint64_t repeats;
	bool json, oracle;

	/* What the workload says of itself before it runs. */
	uint64_t pages;		/* touched in a repeat */
	uint64_t map_pages;	/* of the mapping(s) of a repeat */
	struct bench_param param[BENCH_MAX_PARAMS];
	size_t nparams;

	/* Measured. */
	struct lap *laps;	/* `repeats` of them, in prefaulted memory */
	struct oracle *reader;	/* NULL without --oracle */
	uint64_t minflt, majflt;	/* of this process, over the region */
	/* With --oracle: faults of the whole system, just inside and just around it. */
	uint64_t pgfault_inside, pgfault_around;
	bool rss_exact;
	struct oracle_rss rss;	/* before the laps */
	uint64_t *windows;	/* per repeat, or NULL if they say nothing here */
	uint64_t fault_around_bytes;
};

#define BENCH_REPEATS 5
#define BENCH_OPTIONS(b)                                                                           \
	{ "repeat", 'n', OPT_COUNT, "N", "repeats, each with a fresh mapping (5)",                 \
	  .dest = &(b)->repeats, .min = 1, .max = 1000000 },                                       \
	{ "oracle", 0, OPT_FLAG, NULL, "also read pagemap and smaps in each repeat (not timed)",   \
	  .dest = &(b)->oracle },                                                                  \
	{ "json", 0, OPT_FLAG, NULL, "one JSON object instead of the table",                       \
	  .dest = &(b)->json }

/*
 * How bench_measure() drives a workload. Functions return 0, or an exit status
 * after printing one line. lap() does the work of one repeat and must not cause
 * page faults other than those of its mapping: no malloc, no stdio, no memory
 * that the warm-up has not touched.
 */
struct lap_ops {
	/* Make the next laps small (the warm-up) or of the full size. */
	void (*resize)(void *ctx, bool warm_up);
	/*
	 * Work before and after each lap that must not be observed; may be NULL.
	 * With prepare() each lap is a region of its own, else one region holds
	 * all laps.
	 */
	int (*prepare)(void *ctx);
	int (*finish)(void *ctx);
	int (*lap)(void *ctx, struct lap *lap);
};

/* Start with the defaults of the common options. */
void bench_init(struct bench *b, const char *name);
/*
 * Parse the command line of a workload that takes no arguments; set->defs point into
 * `b` and where else the workload keeps them. False: that was all (--help, or a wrong
 * line, which has been said), and *status is what to exit with.
 */
bool bench_options(struct bench *b, const struct option_set *set, int argc, char **argv,
		   int *status);
void bench_param_text(struct bench *b, const char *key, const char *text);
void bench_param_number(struct bench *b, const char *key, uint64_t number);

/*
 * Run one warm-up lap, then b->repeats laps inside the region that the
 * controller of MMSCOPE_CONTROL_FD observes. Returns an exit status; anything
 * but EXIT_OK has printed its line.
 */
int bench_measure(struct bench *b, const struct lap_ops *ops, void *ctx);

/* Inside a lap, between touch and munmap; does nothing without --oracle. Never timed. */
int bench_oracle(struct bench *b, struct lap *lap, const void *addr, size_t len);

/*
 * Print the result on stdout and write the values to MMSCOPE_VALUES_FD.
 * Returns an exit status (EXIT_INTERNAL if the output cannot be written).
 */
int bench_report(struct bench *b);
void bench_free(struct bench *b);

/* "--size": a multiple of the page size; else prints the line and returns EXIT_USAGE. */
int bench_check_size(const char *option, uint64_t size);
uint64_t bench_page_size(void);

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/*
 * Read or write one byte of each page of [addr, addr + pages), in order. The
 * written byte is never 0, so that a written page cannot pass for an empty one.
 */
static inline void touch_page(char *page, bool write)
{
	if (write)
		*(volatile char *)page = 1;
	else
		(void)*(volatile char *)page;
}

void touch_all(char *addr, uint64_t pages, bool write);

#endif
