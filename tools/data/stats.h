/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_STATS_H
#define MMSCOPE_STATS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Statistics of small samples, without assuming a distribution. Functions that
 * allocate say so; NaN as a result means that memory ran out.
 */

/* Median of n > 0 values; the mean of the two in the middle when n is even. */
double stats_median(const double *v, size_t n);

/*
 * Hodges-Lehmann: the median of all Walsh averages (v[i] + v[j]) / 2, i <= j, of
 * one sample, or of all differences b[j] - a[i] of two. Its interval and the
 * p-value invert the signed-rank or the Mann-Whitney test. Both take the test's
 * distribution without ties, which with a closed interval keeps the level under
 * ties, too. Exact up to STATS_EXACT_HL values in the sorted list, from there by
 * the normal approximation.
 */
#define STATS_EXACT_HL	10000
#define STATS_BOOTS_MAX	1000	/* most values of one sample */

struct hl;

struct hl *hl_one(const double *v, size_t n);
struct hl *hl_two(const double *a, size_t na, const double *b, size_t nb);
void hl_free(struct hl *hl);
double hl_estimate(const struct hl *hl);
bool hl_approximate(const struct hl *hl);
/*
 * The two-sided interval that misses the true shift in at most `alpha` of all
 * samples. False: so few values cannot give one at that level.
 */
bool hl_interval(const struct hl *hl, double alpha, double *low, double *high);
/*
 * The least alpha at which the lower end of hl_interval() would lie above
 * `value` (hl_p_above()), or the upper end below it; 1 if none.
 */
double hl_p_above(const struct hl *hl, double value);
double hl_p_below(const struct hl *hl, double value);

/* The least alpha that samples of these sizes can reach: 2 / C(na + nb, na), 2 / 2^n. */
double hl_least_alpha_two(size_t na, size_t nb);
double hl_least_alpha_one(size_t n);

/*
 * Permutation tests, conditional on the ties: mid-ranks, and the share of all
 * permutations whose statistic is at least as far from its mean as the one seen
 * (two-sided). Zero differences of the signed-rank test are ranked, and then
 * left out (Pratt). Exact up to STATS_EXACT_MW values in all, STATS_EXACT_SR
 * differences; above, the normal approximation with the ties' variance and a
 * correction for continuity, and *approximate is set.
 */
#define STATS_EXACT_MW	60
#define STATS_EXACT_SR	100

double mann_whitney_p(const double *a, size_t na, const double *b, size_t nb, bool *approximate);
double signed_rank_p(const double *d, size_t n, bool *approximate);

/*
 * Adjusted p-values, in the order of p: rejected at alpha where adjusted <= alpha.
 * Holm keeps the chance of any false rejection, Benjamini and Hochberg the
 * expected share of false ones. -1: no memory.
 */
int stats_holm(const double *p, size_t n, double *adjusted);
int stats_benjamini_hochberg(const double *p, size_t n, double *adjusted);

/* Upper one-sided bound (Clopper-Pearson) of a rate seen x times in n > 0 trials. */
double stats_rate_upper(size_t x, size_t n, double alpha);

#endif
