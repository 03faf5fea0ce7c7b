// SPDX-License-Identifier: GPL-2.0-only
/* Histogram arithmetic: buckets, bounds, sums, percentiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "data/hist.h"

static const enum hist_kind kinds[] = { HIST_BATCH, HIST_TIME };

static size_t bucket_of(enum hist_kind kind, uint64_t v)
{
	return kind == HIST_BATCH ? hist_batch_bucket(v) : hist_time_bucket(v);
}

static void test_log2(void **state)
{
	unsigned int i;

	for (i = 0; i < 64; i++) {
		assert_int_equal(hist_log2(1ULL << i), i);
		assert_int_equal(hist_log2((1ULL << i) | ((1ULL << i) - 1)), i);
	}
}

static void expect(enum hist_kind kind, uint64_t v, uint64_t want_low, uint64_t want_high)
{
	uint64_t low, high;

	hist_bounds(kind, bucket_of(kind, v), &low, &high);
	assert_int_equal(low, want_low);
	assert_int_equal(high, want_high);
}

static void test_values(void **state)
{
	static const uint64_t exact[] = { 0, 1, 2, 7 };
	size_t i;

	for (i = 0; i < sizeof(exact) / sizeof(*exact); i++) {
		expect(HIST_BATCH, exact[i], exact[i], exact[i] + 1);
		expect(HIST_TIME, exact[i], exact[i], exact[i] + 1);
	}
	for (i = 0; i <= 512; i++)
		expect(HIST_BATCH, i, i, i + 1);
	expect(HIST_BATCH, 513, 513, 576);
	expect(HIST_BATCH, 514, 513, 576);
	expect(HIST_BATCH, 575, 513, 576);
	expect(HIST_BATCH, 576, 576, 640);
	expect(HIST_BATCH, 8192, 8192, 9216);
	expect(HIST_BATCH, 16383, 15360, 16384);
	expect(HIST_BATCH, 16384, 16384, 0);
	expect(HIST_BATCH, (1ULL << 32) + 5, 16384, 0);
	expect(HIST_BATCH, INT64_MAX, 16384, 0);
	expect(HIST_BATCH, UINT64_MAX, 16384, 0);

	expect(HIST_TIME, 8, 8, 9);
	expect(HIST_TIME, 9, 9, 10);
	expect(HIST_TIME, 15, 15, 16);
	expect(HIST_TIME, 16, 16, 18);
	expect(HIST_TIME, 511, 480, 512);
	expect(HIST_TIME, 512, 512, 576);
	expect(HIST_TIME, 513, 512, 576);
	expect(HIST_TIME, 514, 512, 576);
	expect(HIST_TIME, (1ULL << 32) + 5, 1ULL << 32, 9ULL << 29);
	expect(HIST_TIME, (1ULL << 40) - 1, 15ULL << 36, 1ULL << 40);
	expect(HIST_TIME, 1ULL << 40, 1ULL << 40, 0);
	expect(HIST_TIME, INT64_MAX, 1ULL << 40, 0);
	expect(HIST_TIME, UINT64_MAX, 1ULL << 40, 0);
}

/* Each bucket begins where the last one ended, and holds exactly its bounds. */
static void test_contiguous(void **state)
{
	size_t k, i;

	for (k = 0; k < 2; k++) {
		uint64_t low, high, next = 0;
		size_t n = hist_buckets(kinds[k]);

		for (i = 0; i < n; i++) {
			hist_bounds(kinds[k], i, &low, &high);
			assert_int_equal(low, next);
			assert_int_equal(bucket_of(kinds[k], low), i);
			if (i + 1 == n) {
				assert_int_equal(high, 0);
				break;
			}
			assert_true(high > low);
			assert_int_equal(bucket_of(kinds[k], high - 1), i);
			assert_int_equal(bucket_of(kinds[k], high), i + 1);
			next = high;
		}
	}
}

static void test_resolution(void **state)
{
	uint64_t low, high;
	size_t i;

	/* At least 8 buckets per power of two: no bucket wider than 1/8 of its value. */
	for (i = 8; i < hist_buckets(HIST_TIME) - 1; i++) {
		hist_bounds(HIST_TIME, i, &low, &high);
		assert_true((high - low) * 8 <= low);
	}
}

static void test_empty(void **state)
{
	uint64_t low = 1, high = 1;
	struct hist h;

	hist_init(&h, HIST_TIME);
	assert_false(hist_percentile(&h, 50, &low, &high));
	assert_int_equal(h.count, 0);
	assert_int_equal(h.sum, 0);
	assert_false(h.saturated);
	/* Rows that have a number and a sum only. */
	h.count = 3;
	h.sum = 99;
	assert_false(hist_percentile(&h, 50, &low, &high));
}

static void test_only_overflow(void **state)
{
	uint64_t low, high;
	struct hist h;

	hist_init(&h, HIST_BATCH);
	hist_add(&h, hist_batch_bucket(1 << 20), 3);
	assert_true(hist_percentile(&h, 0.001, &low, &high));
	assert_int_equal(low, 16384);
	assert_int_equal(high, 0);
	assert_true(hist_percentile(&h, 100, &low, &high));
	assert_int_equal(low, 16384);
	assert_int_equal(high, 0);
	/* A bucket number beyond the last is the overflow, not memory behind it. */
	hist_add(&h, SIZE_MAX, 1);
	assert_int_equal(h.bucket[HIST_BATCH_BUCKETS - 1], 4);
	assert_int_equal(h.count, 4);
}

static uint64_t percentile(const struct hist *h, double p)
{
	uint64_t low, high;

	assert_true(hist_percentile(h, p, &low, &high));
	return low;
}

static void test_percentiles(void **state)
{
	struct hist h;
	uint64_t v;

	/* 1..100 once each: nearest rank of p is p. */
	hist_init(&h, HIST_BATCH);
	for (v = 1; v <= 100; v++)
		hist_add(&h, hist_batch_bucket(v), 1);
	for (v = 1; v <= 100; v++)
		assert_int_equal(percentile(&h, (double)v), v);
	assert_int_equal(percentile(&h, 0.5), 1);
	assert_int_equal(percentile(&h, 50.5), 51);

	/* 999 small ones and a large one: 99.9 % still is small. */
	hist_init(&h, HIST_BATCH);
	hist_add(&h, 1, 999);
	hist_add(&h, 300, 1);
	assert_int_equal(percentile(&h, 99.9), 1);
	assert_int_equal(percentile(&h, 99.91), 300);
	assert_int_equal(percentile(&h, 100), 300);

	/* Ranks beyond the whole numbers of a double. */
	hist_init(&h, HIST_BATCH);
	hist_add(&h, 1, (1ULL << 62) - 1);
	hist_add(&h, 2, 1ULL << 62);
	assert_int_equal(percentile(&h, 50), 2);
	hist_init(&h, HIST_BATCH);
	hist_add(&h, 1, 1ULL << 61);
	hist_add(&h, 2, 1ULL << 61);
	assert_int_equal(percentile(&h, 50), 1);
}

static void test_saturation(void **state)
{
	bool saturated = false;
	struct hist a, b;

	assert_int_equal(sat_add(INT64_MAX - 1, 1, &saturated), INT64_MAX);
	assert_false(saturated);
	assert_int_equal(sat_add(INT64_MAX, 1, &saturated), INT64_MAX);
	assert_true(saturated);
	saturated = false;
	assert_int_equal(sat_add(UINT64_MAX, UINT64_MAX, &saturated), INT64_MAX);
	assert_true(saturated);

	hist_init(&a, HIST_TIME);
	hist_add(&a, 3, INT64_MAX);
	assert_false(a.saturated);
	hist_add(&a, 4, 1);
	assert_true(a.saturated);
	assert_int_equal(a.count, INT64_MAX);
	assert_int_equal(a.bucket[4], 1);
	assert_int_equal(percentile(&a, 100), 3);

	hist_init(&b, HIST_TIME);
	hist_add_sum(&b, INT64_MAX);
	hist_add_sum(&b, 1);
	assert_true(b.saturated);
	assert_int_equal(b.sum, INT64_MAX);

	/* Several full buckets must not wrap the walk over them. */
	hist_add(&a, 5, INT64_MAX);
	hist_add(&a, 6, INT64_MAX);
	assert_int_equal(percentile(&a, 100), 3);
}

static void test_merge(void **state)
{
	struct hist a, b;

	hist_init(&a, HIST_BATCH);
	hist_init(&b, HIST_BATCH);
	hist_add(&a, 1, 2);
	hist_add_sum(&a, 2);
	hist_add(&b, 1, 3);
	hist_add(&b, 512, 1);
	hist_add_sum(&b, 515);
	hist_merge(&a, &b);
	assert_int_equal(a.count, 6);
	assert_int_equal(a.sum, 517);
	assert_int_equal(a.bucket[1], 5);
	assert_int_equal(a.bucket[512], 1);
	assert_false(a.saturated);
	b.saturated = true;
	hist_merge(&a, &b);
	assert_true(a.saturated);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_log2),	     cmocka_unit_test(test_values),
		cmocka_unit_test(test_contiguous),   cmocka_unit_test(test_resolution),
		cmocka_unit_test(test_empty),	     cmocka_unit_test(test_only_overflow),
		cmocka_unit_test(test_percentiles),  cmocka_unit_test(test_saturation),
		cmocka_unit_test(test_merge),
	};

	return cmocka_run_group_tests_name("histograms", tests, NULL, NULL);
}
