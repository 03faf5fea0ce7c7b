// SPDX-License-Identifier: GPL-2.0-only
/*
 * Statistics against full enumeration of small samples, and against values that
 * these Debian 12 packages printed (they are not needed here): r-cran-coin
 * 1.4-2-1+b1 (wilcox_test and wilcoxsign_test, zero.method = "Pratt", both with
 * distribution = "exact", which is exact with ties), r-cran-exactranktests
 * 0.8-35-1 (wilcox.exact, the same values), r-base-core 4.2.2.20221110-2
 * (wilcox.test: intervals without ties, approximations; p.adjust, binom.test) and python3-scipy
 * 1.10.1-2 (mannwhitneyu and wilcoxon, exact, without ties).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/stats.h"

#define N(a)	(sizeof(a) / sizeof(*(a)))

static void near(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * fmax(1, fabs(want))))
		fail_msg("%.15g is not %.15g", got, want);
}

/* Seeded, so that a failure repeats. */
static uint64_t state = 88172645463325252ULL;

static unsigned int random_below(unsigned int n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 33) % n;
}

static void test_median(void **unused)
{
	double many[101];
	size_t i;

	near(stats_median((double[]){ 3 }, 1), 3, 0);
	near(stats_median((double[]){ 9, 1 }, 2), 5, 0);
	near(stats_median((double[]){ 9, 1, 2 }, 3), 2, 0);
	near(stats_median((double[]){ 4, 1, 3, 2 }, 4), 2.5, 0);
	for (i = 0; i < N(many); i++)
		many[i] = (i * 37) % N(many);
	near(stats_median(many, N(many)), 50, 0);
}

/* Twice the rank that v[i] has within v: ties share the middle. */
static size_t rank2(const double *v, size_t n, size_t i)
{
	size_t below = 0, equal = 0, k;

	for (k = 0; k < n; k++) {
		below += v[k] < v[i];
		equal += v[k] == v[i];
	}
	return 2 * below + equal + 1;
}

/* The definition, by all ways to choose na of the values. */
static double all_choices(const double *v, size_t na, size_t n)
{
	unsigned long set, far = 0, all = 0;
	size_t i, seen = 0;
	long mean = (long)(na * (n + 1));

	for (i = 0; i < na; i++)
		seen += rank2(v, n, i);
	for (set = 0; set < 1UL << n; set++) {
		size_t sum = 0;

		if ((size_t)__builtin_popcountl(set) != na)
			continue;
		for (i = 0; i < n; i++)
			sum += set >> i & 1 ? rank2(v, n, i) : 0;
		all++;
		far += labs((long)sum - mean) >= labs((long)seen - mean);
	}
	return (double)far / all;
}

static double all_signs(const double *d, size_t n)
{
	unsigned long set, far = 0, all = 0;
	double absolute[16];
	long seen = 0;
	size_t i;

	for (i = 0; i < n; i++)
		absolute[i] = fabs(d[i]);
	for (i = 0; i < n; i++)
		seen += ((d[i] > 0) - (d[i] < 0)) * (long)rank2(absolute, n, i);
	for (set = 0; set < 1UL << n; set++) {
		long sum = 0;

		for (i = 0; i < n; i++)
			if (d[i] != 0)
				sum += (set >> i & 1 ? 1 : -1) * (long)rank2(absolute, n, i);
		all++;
		far += labs(sum) >= labs(seen);
	}
	return (double)far / all;
}

static void test_enumeration(void **unused)
{
	bool approximate = true;
	size_t round, i;
	double v[12];

	for (round = 0; round < 300; round++) {
		size_t na = 1 + random_below(5), n = na + 1 + random_below(6);
		unsigned int values = 1 + random_below(9);	/* few: many ties */

		for (i = 0; i < n; i++)
			v[i] = (double)random_below(values) - values / 2;
		near(mann_whitney_p(v, na, v + na, n - na, &approximate),
		     all_choices(v, na, n), 1e-12);
		assert_false(approximate);
		near(signed_rank_p(v, n, &approximate), all_signs(v, n), 1e-12);
		assert_false(approximate);
	}
}

static const double x20[] = { 107, 96, 98, 99, 97, 97, 102, 100, 100, 107, 101, 108, 107, 101,
			      106, 101, 97, 99, 100, 103 };
static const double y20[] = { 105, 104, 106, 98, 106, 103, 104, 104, 99, 101, 99, 104, 102, 102,
			      101, 100, 105, 99, 102, 103 };

static void test_packages(void **unused)
{
	static const double a1[] = { 1, 2, 2, 3, 5 }, b1[] = { 2, 3, 3, 4, 4, 6 };
	static const double a2[] = { 10.1, 10.2, 10.2, 10.4, 10.4, 10.4, 10.9, 11, 11.3, 11.3 };
	static const double b2[] = { 10.4, 10.9, 11.3, 11.3, 11.4, 11.4, 11.5, 11.5, 11.5, 12 };
	static const double a3[] = { 5, 5, 5, 5 }, b3[] = { 5, 5, 6, 7, 7, 8, 9 };
	static const double a4[] = { 1.83, .5, 1.62, 2.48, 1.68 };
	static const double b4[] = { .878, .647, .598, 2.05, 1.06, 1.29 };
	static const double d1[] = { 0, 0, 1, 1, -1, 2, 2, 3, -3, 4 };
	static const double d2[] = { 1, 1, 1, 2, 2, -1, 3, 4 };
	static const double d3[] = { -.5, .3, .3, .8, 1.1, 1.1, 1.1, -.3, 2, 2.5, .5, .9 };
	static const double d4[] = { 0, 0, 0, 5, 5, 6 };
	static const double d5[] = { 1.83, .5, 1.62, -2.48, 1.68, -1.88, 1.55, 3.06, 1.3, -2.02 };
	bool approximate;

	near(mann_whitney_p(a1, N(a1), b1, N(b1), &approximate), 0.212121212121, 1e-11);
	near(mann_whitney_p(a2, N(a2), b2, N(b2), &approximate), 0.00193769079218, 1e-11);
	near(mann_whitney_p(a3, N(a3), b3, N(b3), &approximate), 0.0606060606061, 1e-11);
	near(mann_whitney_p(x20, N(x20), y20, N(y20), &approximate), 0.232191817596, 1e-11);
	assert_false(approximate);
	near(mann_whitney_p(a4, N(a4), b4, N(b4), &approximate), 0.32900432900432897, 1e-14);
	near(signed_rank_p(d1, N(d1), &approximate), 0.1953125, 1e-14);
	near(signed_rank_p(d2, N(d2), &approximate), 0.0390625, 1e-14);
	near(signed_rank_p(d3, N(d3), &approximate), 0.00830078125, 1e-14);
	near(signed_rank_p(d4, N(d4), &approximate), 0.25, 1e-14);
	near(signed_rank_p(d5, N(d5), &approximate), 0.76953125, 1e-14);
	assert_false(approximate);
}

static void test_degenerate(void **unused)
{
	static const double equal[] = { 4, 4, 4, 4 }, zero[] = { 0, 0, 0 };
	bool approximate;

	near(mann_whitney_p(equal, 4, equal, 4, &approximate), 1, 0);
	near(mann_whitney_p(equal, 4, equal, 0, &approximate), 1, 0);
	near(signed_rank_p(zero, 3, &approximate), 1, 0);
	near(signed_rank_p(zero, 0, &approximate), 1, 0);
	assert_null(hl_one(equal, 0));
	assert_null(hl_two(equal, 0, equal, 4));
}

/* Beyond the exact size: marked, and close to what is exact just below. */
static void test_large(void **unused)
{
	double a[60], b[60], d[101];
	bool exact, approximate;
	double p, q, low, high, low2, high2;
	struct hl *hl;
	size_t i;

	for (i = 0; i < 60; i++) {
		a[i] = (i * 17) % 41;
		b[i] = (i * 23) % 43 + 3;
	}
	p = mann_whitney_p(a, 30, b, 30, &exact);
	q = mann_whitney_p(a, 31, b, 30, &approximate);
	assert_false(exact);
	assert_true(approximate);
	near(p, q, 0.05);
	/* With ties, as R's wilcox.test(exact = FALSE, correct = TRUE) has them. */
	for (i = 0; i < 60; i++) {
		a[i] = i % 2 ? 0 : i % 5;
		b[i] = i % 2 ? 0 : i % 4 + 2;
	}
	near(mann_whitney_p(a, 30, b, 31, &approximate), 0.21972767996555, 1e-12);
	assert_true(approximate);
	for (i = 0; i < N(d); i++) {
		d[i] = (double)((i * 37) % 101) - 40.5;
		d[i] = d[i] > 0 ? ceil(d[i] / 3) : floor(d[i] / 3);
	}
	near(signed_rank_p(d, 101, &approximate), 0.003108784365791, 1e-11);
	assert_true(approximate);
	for (i = 0; i < N(d); i++)
		d[i] = (double)((i * 37) % 101) - 40;
	p = signed_rank_p(d, 100, &exact);
	q = signed_rank_p(d, 101, &approximate);
	assert_false(exact);
	assert_true(approximate);
	near(p, q, 0.01);
	assert_true(p < 0.05 && p > 0);

	hl = hl_one(d, 101);		/* 5151 averages: exact */
	assert_false(hl_approximate(hl));
	assert_true(hl_interval(hl, 0.05, &low, &high));
	hl_free(hl);
	hl = hl_two(d, 101, d, 101);	/* 10201 differences: not */
	assert_true(hl_approximate(hl));
	assert_true(hl_interval(hl, 0.05, &low2, &high2));
	near(hl_estimate(hl), 0, 0);
	near(low2, -high2, 1e-9);
	hl_free(hl);
	hl = hl_two(d, 100, d, 100);
	assert_false(hl_approximate(hl));
	assert_true(hl_interval(hl, 0.05, &low, &high));
	near(low, low2, 0.05);
	near(high, high2, 0.05);
	hl_free(hl);
}

static const double p10[] = { 1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30, 2.02 };
static const double q10[] = { 0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06001, 3.14, 1.29001,
			      1.11 };

static void test_intervals(void **unused)
{
	struct hl *hl = hl_two(p10, N(p10), q10, N(q10));
	double low, high;

	near(hl_estimate(hl), -0.604995, 1e-12);
	assert_true(hl_interval(hl, 0.05, &low, &high));
	near(low, -1.082, 1e-12);
	near(high, 0.098, 1e-12);
	assert_true(hl_interval(hl, 0.1, &low, &high));
	near(low, -1.002, 1e-12);
	near(high, -0.01, 1e-12);
	hl_free(hl);

	hl = hl_one(p10, N(p10));
	near(hl_estimate(hl), 1.78, 1e-12);
	assert_true(hl_interval(hl, 0.05, &low, &high));
	near(low, 1.3, 1e-12);
	near(high, 2.305, 1e-12);
	assert_true(hl_interval(hl, 0.01, &low, &high));
	near(low, 1.06, 1e-12);
	near(high, 2.48, 1e-12);
	hl_free(hl);
}

/* What a sample can say at all: the sizes that the manual names. */
static void test_least(void **unused)
{
	double v[20], low, high;
	struct hl *hl;
	size_t n;

	for (n = 1; n <= N(v); n++) {
		v[n - 1] = n;
		hl = hl_two(v, n, v, n);
		assert_int_equal(hl_interval(hl, 0.05, &low, &high), n >= 4);
		assert_int_equal(hl_interval(hl, 0.05 / 5, &low, &high), n >= 5);
		assert_int_equal(hl_interval(hl, 0.1, &low, &high), n >= 3);
		assert_true(hl_interval(hl, hl_least_alpha_two(n, n), &low, &high));
		assert_false(hl_interval(hl, hl_least_alpha_two(n, n) * 0.99, &low, &high));
		hl_free(hl);
		hl = hl_one(v, n);
		assert_int_equal(hl_interval(hl, 0.05, &low, &high), n >= 6);
		assert_int_equal(hl_interval(hl, 0.05 / 5, &low, &high), n >= 8);
		assert_int_equal(hl_interval(hl, 0.1, &low, &high), n >= 5);
		assert_false(hl_interval(hl, hl_least_alpha_one(n) * 0.99, &low, &high));
		hl_free(hl);
	}
	near(hl_least_alpha_two(4, 4), 2.0 / 70, 1e-12);
	near(hl_least_alpha_two(3, 7), 2.0 / 120, 1e-12);
	near(hl_least_alpha_one(8), 2.0 / 256, 1e-12);
}

/*
 * The interval holds exactly the shifts that the permutation test, which knows
 * nothing of it, does not reject. Values without ties.
 */
static void test_inversion(void **unused)
{
	static const double alphas[] = { 0.1, 0.05, 0.01 };
	bool approximate;
	size_t round, k, i;

	for (round = 0; round < 40; round++) {
		double a[9], b[9], moved[9], low, high, e = 1e-4;
		size_t na = 3 + random_below(7), nb = 3 + random_below(7);
		struct hl *two, *one;

		for (i = 0; i < 9; i++) {
			a[i] = random_below(1u << 30) / 1e7;
			b[i] = random_below(1u << 30) / 1e7 - 30;
		}
		two = hl_two(a, na, b, nb);
		one = hl_one(b, nb);
		for (k = 0; k < N(alphas); k++) {
			if (hl_interval(two, alphas[k], &low, &high)) {
				double at[] = { low - e, low + e, high - e, high + e }, p;
				size_t end;

				for (end = 0; end < 4; end++) {
					for (i = 0; i < nb; i++)
						moved[i] = b[i] - at[end];
					p = mann_whitney_p(a, na, moved, nb, &approximate);
					assert_int_equal(p > alphas[k] * (1 + 1e-9),
							 end == 1 || end == 2);
				}
				near(hl_p_above(two, low - e) <= alphas[k] * (1 + 1e-9), 1, 0);
				near(hl_p_above(two, low + e) <= alphas[k], 0, 0);
				near(hl_p_below(two, high + e) <= alphas[k] * (1 + 1e-9), 1, 0);
				near(hl_p_below(two, high - e) <= alphas[k], 0, 0);
			}
			if (hl_interval(one, alphas[k], &low, &high)) {
				double at[] = { low - e, low + e, high - e, high + e }, p;
				size_t end;

				for (end = 0; end < 4; end++) {
					for (i = 0; i < nb; i++)
						moved[i] = b[i] - at[end];
					p = signed_rank_p(moved, nb, &approximate);
					assert_int_equal(p > alphas[k] * (1 + 1e-9),
							 end == 1 || end == 2);
				}
			}
		}
		hl_free(two);
		hl_free(one);
	}
}

/* Ties: the interval misses the true shift no more often than it says. */
static void test_tied_coverage(void **unused)
{
	size_t round, i, missed[2] = { 0 }, rounds = 4000;
	double a[6], b[6], low, high;
	struct hl *hl;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < 6; i++) {
			a[i] = random_below(4);
			b[i] = random_below(4);
		}
		hl = hl_two(a, 6, b, 6);
		assert_true(hl_interval(hl, 0.05, &low, &high));
		missed[0] += low > 0 || high < 0;
		hl_free(hl);
		for (i = 0; i < 6; i++)
			a[i] -= b[i];
		hl = hl_one(a, 6);
		assert_true(hl_interval(hl, 0.05, &low, &high));
		missed[1] += low > 0 || high < 0;
		hl_free(hl);
	}
	assert_true(stats_rate_upper(missed[0], rounds, 0.05) < 0.05);
	assert_true(stats_rate_upper(missed[1], rounds, 0.05) < 0.05);
	assert_true(missed[0] + missed[1] > 0);
}

static void test_families(void **unused)
{
	static const double p[] = { .01, .04, .03, .005, .5 };
	static const double holm[] = { .04, .09, .09, .025, .5 };
	static const double bh[] = { .025, .05, .05, .025, .5 };
	double got[5];
	size_t i;

	assert_int_equal(stats_holm(p, 5, got), 0);
	for (i = 0; i < 5; i++)
		near(got[i], holm[i], 1e-12);
	assert_int_equal(stats_benjamini_hochberg(p, 5, got), 0);
	for (i = 0; i < 5; i++)
		near(got[i], bh[i], 1e-12);
	assert_int_equal(stats_holm(p, 0, got), 0);
	assert_int_equal(stats_benjamini_hochberg(p, 0, got), 0);
}

static void test_rate(void **unused)
{
	near(stats_rate_upper(120, 10000, 0.05), 0.0139506355583, 1e-10);
	near(stats_rate_upper(0, 10000, 0.05), 0.000299528359777, 1e-11);
	near(stats_rate_upper(3, 7, 0.05), 0.774678415968, 1e-10);
	near(stats_rate_upper(7, 7, 0.05), 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_median),	   cmocka_unit_test(test_enumeration),
		cmocka_unit_test(test_packages),   cmocka_unit_test(test_degenerate),
		cmocka_unit_test(test_large),	   cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_least),	   cmocka_unit_test(test_inversion),
		cmocka_unit_test(test_tied_coverage), cmocka_unit_test(test_families),
		cmocka_unit_test(test_rate),
	};

	return cmocka_run_group_tests_name("statistics", tests, NULL, NULL);
}
