/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_RINGS_H
#define MMSCOPE_RINGS_H

#include <linux/perf_event.h>
#include <stdint.h>

/*
 * What the kernel tells of all processes while it happens: which fork, execute a program,
 * and map what can be executed. Those that exist already are not told.
 */
struct rings;

struct ring_record {
	uint64_t time;		/* CLOCK_MONOTONIC, as bpf_ktime_get_ns() */
	const struct perf_event_header *header;		/* PERF_RECORD_..., sane in size */
};

struct rings *rings_open(void);		/* NULL after an error line */
void rings_close(struct rings *r);
int rings_fd(const struct rings *r);	/* readable when one is to be emptied soon */

/*
 * Take what is there and call take() for each record up to a time, the oldest of all CPUs
 * first; later ones are kept. Where records were lost, *lost is since when, else UINT64_MAX.
 * Returns 0, or -1 without memory.
 */
int rings_drain(struct rings *r, uint64_t until,
		void (*take)(void *arg, const struct ring_record *record), void *arg,
		uint64_t *lost);

#endif
