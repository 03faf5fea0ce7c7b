/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_HIST_H
#define MMSCOPE_HIST_H

/*
 * Histogram arithmetic, shared by BPF and user space (so no libc here).
 *
 * BATCH: whole numbers 0..512 have a bucket each; above, 8 buckets per power
 *        of two up to 16384 (a page table has 8192 PTEs on arm64 with 64 KiB
 *        pages); then the overflow bucket.
 * TIME:  0..7 ns have a bucket each; above, 8 buckets per power of two up to
 *        2^40 ns (18 minutes); then the overflow bucket.
 */
#ifdef __bpf__
typedef __u64 hist_u64;
#else
#include <stdint.h>
typedef uint64_t hist_u64;
#endif

#define HIST_EXACT	512
#define HIST_BATCH_TOP	14	/* log2 of the upper bound */
#define HIST_TIME_TOP	40
#define HIST_BATCH_BUCKETS	(HIST_EXACT + 1 + (HIST_BATCH_TOP - 9) * 8 + 1)
#define HIST_TIME_BUCKETS	(8 + (HIST_TIME_TOP - 3) * 8 + 1)

/* floor(log2(v)) of v > 0, without a loop: it is counted with on each fault. */
static inline unsigned int hist_log2(hist_u64 v)
{
	unsigned int r = 0, s;

	if (v > 0xffff) {	/* few are */
		r = (v > 0xffffffffULL) << 5; v >>= r;
		s = (v > 0xffff) << 4; v >>= s; r |= s;
	}
	s = (v > 0xff) << 3; v >>= s; r |= s;
	s = (v > 0xf) << 2; v >>= s; r |= s;
	s = (v > 0x3) << 1; v >>= s; r |= s;
	return r | (unsigned int)(v >> 1);
}

static inline unsigned int hist_time_bucket(hist_u64 v)
{
	unsigned int e;

	if (v < 8)
		return (unsigned int)v;
	e = hist_log2(v);
	if (e >= HIST_TIME_TOP)
		return HIST_TIME_BUCKETS - 1;
	return 8 + (e - 3) * 8 + ((unsigned int)(v >> (e - 3)) & 7);
}

static inline unsigned int hist_batch_bucket(hist_u64 v)
{
	unsigned int e;

	if (v <= HIST_EXACT)
		return (unsigned int)v;
	e = hist_log2(v);
	if (e >= HIST_BATCH_TOP)
		return HIST_BATCH_BUCKETS - 1;
	return HIST_EXACT + 1 + (e - 9) * 8 + ((unsigned int)(v >> (e - 3)) & 7);
}

#ifndef __bpf__
#include <stdbool.h>
#include <stddef.h>

enum hist_kind { HIST_BATCH, HIST_TIME };

/* A summed histogram in user space; saturates at 2^63-1 and says so. */
struct hist {
	enum hist_kind kind;
	uint64_t count, sum;
	bool saturated;
	uint64_t bucket[HIST_BATCH_BUCKETS > HIST_TIME_BUCKETS ?
			HIST_BATCH_BUCKETS : HIST_TIME_BUCKETS];
};

/* The buckets that are not empty, in order: what is kept of a histogram in a file. */
struct hist_packed {
	enum hist_kind kind;
	bool saturated;
	uint64_t count, sum;
	size_t buckets;
	struct {
		uint64_t count;
		uint32_t bucket;
	} of[];
};

#define HIST_VALUE_MAX	INT64_MAX	/* largest number in a report or file */

size_t hist_buckets(enum hist_kind kind);
/* Half-open bounds [*low, *high) of a bucket; *high is 0 in the overflow. */
void hist_bounds(enum hist_kind kind, size_t bucket, uint64_t *low, uint64_t *high);
void hist_init(struct hist *h, enum hist_kind kind);
/* Add n values in `bucket`; `sum` of the values goes through hist_add_sum(). */
void hist_add(struct hist *h, size_t bucket, uint64_t n);
void hist_add_sum(struct hist *h, uint64_t sum);
void hist_merge(struct hist *to, const struct hist *from);
void hist_unpack(struct hist *to, const struct hist_packed *from);
/*
 * Bounds of the bucket that holds percentile p (0 < p <= 100); nearest rank.
 * False when the histogram is empty, or has no buckets. *high is 0 in the overflow: print ">= low".
 */
bool hist_percentile(const struct hist *h, double p, uint64_t *low, uint64_t *high);
/* a + b, at most HIST_VALUE_MAX; sets *saturated when it was cut. */
uint64_t sat_add(uint64_t a, uint64_t b, bool *saturated);
#endif
#endif
