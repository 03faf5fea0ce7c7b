// SPDX-License-Identifier: GPL-2.0-only
/* Histograms in user space: bounds, sums that saturate, percentiles. */
#include <math.h>
#include <string.h>

#include "data/hist.h"

size_t hist_buckets(enum hist_kind kind)
{
	return kind == HIST_BATCH ? HIST_BATCH_BUCKETS : HIST_TIME_BUCKETS;
}

void hist_bounds(enum hist_kind kind, size_t bucket, uint64_t *low, uint64_t *high)
{
	size_t exact = kind == HIST_BATCH ? HIST_EXACT + 1 : 8;
	unsigned int exponent = kind == HIST_BATCH ? 9 : 3;
	uint64_t step;

	if (bucket < exact) {
		*low = bucket;
		*high = bucket + 1;
		return;
	}
	if (bucket >= hist_buckets(kind) - 1) {
		*low = 1ULL << (kind == HIST_BATCH ? HIST_BATCH_TOP : HIST_TIME_TOP);
		*high = 0;
		return;
	}
	bucket -= exact;
	exponent += bucket / 8;
	step = 1ULL << (exponent - 3);
	*low = (1ULL << exponent) + bucket % 8 * step;
	*high = *low + step;
	/* 512 itself has an exact bucket: the first one above starts at 513. */
	if (kind == HIST_BATCH && *low == HIST_EXACT)
		*low = HIST_EXACT + 1;
}

uint64_t sat_add(uint64_t a, uint64_t b, bool *saturated)
{
	uint64_t sum;

	if (__builtin_add_overflow(a, b, &sum) || sum > HIST_VALUE_MAX) {
		*saturated = true;
		return HIST_VALUE_MAX;
	}
	return sum;
}

void hist_init(struct hist *h, enum hist_kind kind)
{
	memset(h, 0, sizeof(*h));
	h->kind = kind;
}

void hist_add(struct hist *h, size_t bucket, uint64_t n)
{
	size_t last = hist_buckets(h->kind) - 1;

	if (bucket > last)
		bucket = last;
	h->bucket[bucket] = sat_add(h->bucket[bucket], n, &h->saturated);
	h->count = sat_add(h->count, n, &h->saturated);
}

void hist_add_sum(struct hist *h, uint64_t sum)
{
	h->sum = sat_add(h->sum, sum, &h->saturated);
}

void hist_merge(struct hist *to, const struct hist *from)
{
	size_t i;

	for (i = 0; i < hist_buckets(from->kind); i++)
		to->bucket[i] = sat_add(to->bucket[i], from->bucket[i], &to->saturated);
	/* Not from the buckets: what is counted by an open label has none. */
	to->count = sat_add(to->count, from->count, &to->saturated);
	hist_add_sum(to, from->sum);
	to->saturated |= from->saturated;
}

void hist_unpack(struct hist *to, const struct hist_packed *from)
{
	size_t i;

	hist_init(to, from->kind);
	for (i = 0; i < from->buckets; i++)
		to->bucket[from->of[i].bucket] = from->of[i].count;
	to->count = from->count;
	to->sum = from->sum;
	to->saturated = from->saturated;
}

bool hist_percentile(const struct hist *h, double p, uint64_t *low, uint64_t *high)
{
	/*
	 * In millionths of a percent and whole numbers: 99.9 % of 1000 is rank
	 * 999, which a product of doubles would round up to 1000.
	 */
	const uint64_t all = 100 * 1000000ULL;
	uint64_t part = (uint64_t)llround(p * 1000000), rank, seen = 0;
	size_t i, n = hist_buckets(h->kind);

	if (!h->count)
		return false;
	rank = (uint64_t)(((unsigned __int128)h->count * part + all - 1) / all);
	if (!rank)
		rank = 1;
	/* With saturated buckets the count is short: the last bucket ends the walk. */
	for (i = 0; i < n - 1; i++) {
		seen += h->bucket[i];
		if (seen >= rank)
			break;
	}
	/* What is told without buckets, as of rows by an open label, has none. */
	if (!seen && !h->bucket[i])
		return false;
	hist_bounds(h->kind, i, low, high);
	return true;
}
