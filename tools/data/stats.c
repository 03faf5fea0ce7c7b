// SPDX-License-Identifier: GPL-2.0-only
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/stats.h"

/* Levels such as 0.1 / 2 against counts such as 1 / 20: equal but for rounding. */
#define SLIGHTLY	1e-9

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double middle(const double *sorted, size_t n)
{
	double low = sorted[(n - 1) / 2], high = sorted[n / 2];

	return low + (high - low) / 2;
}

double stats_median(const double *v, size_t n)
{
	double small[64], *copy = n > 64 ? malloc(n * sizeof(*v)) : small, m;

	if (!copy)
		return NAN;
	memcpy(copy, v, n * sizeof(*v));
	qsort(copy, n, sizeof(*copy), by_value);
	m = middle(copy, n);
	if (copy != small)
		free(copy);
	return m;
}

/* ---- null distributions without ties ---- */

/*
 * Multiply a polynomial, of which the lowest `n` coefficients are kept, by
 * (1 + q^k), by (1 - q^k), or divide it by (1 - q^k). Low coefficients depend on
 * low ones only, and all are whole numbers: exact in a double below 2^53, which
 * the tails that tests look at never reach.
 */
static void times_plus(double *c, size_t n, size_t k)
{
	size_t i;

	for (i = n; i-- > k;)
		c[i] += c[i - k];
}

static void times_minus(double *c, size_t n, size_t k)
{
	size_t i;

	for (i = n; i-- > k;)
		c[i] -= c[i - k];
}

static void divide_minus(double *c, size_t n, size_t k)
{
	size_t i;

	for (i = k; i < n; i++)
		c[i] += c[i - k];
}

/* The logarithm of C(n, k), which all counts add up to. */
static double log_choose(size_t n, size_t k)
{
	return lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0);
}

struct hl {
	double *value;		/* sorted */
	double *tail;		/* tail[i] = P(T <= i), i < tails; NULL: approximation */
	size_t n, tails;
	double mean, sd;	/* of T, for the approximation */
};

/* T counts how many values lie below the shift; its distribution is symmetric. */
static double tail(const struct hl *hl, size_t i)
{
	if (!hl->tail)
		return 0.5 * erfc((hl->mean - (i + 0.5)) / hl->sd / M_SQRT2);
	return i < hl->tails ? hl->tail[i] : 1;
}

static struct hl *hl_new(size_t n)
{
	struct hl *hl = calloc(1, sizeof(*hl));

	if (!hl)
		return NULL;
	hl->n = n;
	hl->tails = n / 2 + 1;
	hl->value = malloc(n * sizeof(*hl->value));
	if (n <= STATS_EXACT_HL) {
		hl->tail = calloc(hl->tails, sizeof(*hl->tail));
		if (hl->tail)
			hl->tail[0] = 1;
	}
	if (!hl->value || (n <= STATS_EXACT_HL && !hl->tail)) {
		hl_free(hl);
		return NULL;
	}
	return hl;
}

/* Counts become probabilities; `log_all` is the logarithm of all of them. */
static void hl_finish(struct hl *hl, double log_all)
{
	double sum = 0;
	size_t i;

	for (i = 0; hl->tail && i < hl->tails; i++) {
		sum += hl->tail[i];
		hl->tail[i] = exp(log(sum) - log_all);
	}
	qsort(hl->value, hl->n, sizeof(*hl->value), by_value);
}

struct hl *hl_one(const double *v, size_t n)
{
	struct hl *hl = n && n <= STATS_BOOTS_MAX ? hl_new(n * (n + 1) / 2) : NULL;
	size_t i, j, k = 0;

	if (!hl)
		return NULL;
	for (i = 0; i < n; i++)
		for (j = i; j < n; j++)
			hl->value[k++] = v[i] + (v[j] - v[i]) / 2;
	for (i = 1; hl->tail && i <= n; i++)
		times_plus(hl->tail, hl->tails, i);
	hl->mean = n * (n + 1.0) / 4;
	hl->sd = sqrt(n * (n + 1.0) * (2.0 * n + 1) / 24);
	hl_finish(hl, n * M_LN2);
	return hl;
}

struct hl *hl_two(const double *a, size_t na, const double *b, size_t nb)
{
	bool fits = na && nb && na <= STATS_BOOTS_MAX && nb <= STATS_BOOTS_MAX;
	struct hl *hl = fits ? hl_new(na * nb) : NULL;
	size_t i, j, k = 0;

	if (!hl)
		return NULL;
	for (i = 0; i < na; i++)
		for (j = 0; j < nb; j++)
			hl->value[k++] = b[j] - a[i];
	/* The Gaussian binomial coefficient, step by step a polynomial. */
	for (i = 1; hl->tail && i <= na; i++) {
		times_minus(hl->tail, hl->tails, nb + i);
		divide_minus(hl->tail, hl->tails, i);
	}
	hl->mean = na * (double)nb / 2;
	hl->sd = sqrt(na * (double)nb * (na + nb + 1.0) / 12);
	hl_finish(hl, log_choose(na + nb, na));
	return hl;
}

void hl_free(struct hl *hl)
{
	if (!hl)
		return;
	free(hl->value);
	free(hl->tail);
	free(hl);
}

double hl_estimate(const struct hl *hl)
{
	return middle(hl->value, hl->n);
}

bool hl_approximate(const struct hl *hl)
{
	return !hl->tail;
}

bool hl_interval(const struct hl *hl, double alpha, double *low, double *high)
{
	size_t k = 0;

	/* The k-th value from either end, for the largest k that keeps the level. */
	while (k < (hl->n + 1) / 2 && 2 * tail(hl, k) <= alpha * (1 + SLIGHTLY))
		k++;
	if (!k)
		return false;
	*low = hl->value[k - 1];
	*high = hl->value[hl->n - k];
	return true;
}

static double p_of_rank(const struct hl *hl, size_t k)
{
	double p;

	/* An interval never reaches past the middle. */
	if (k >= (hl->n + 1) / 2)
		return 1;
	p = 2 * tail(hl, k);
	return p < 1 ? p : 1;
}

double hl_p_above(const struct hl *hl, double value)
{
	size_t k = 0;

	while (k < hl->n && hl->value[k] <= value)
		k++;
	return p_of_rank(hl, k);
}

double hl_p_below(const struct hl *hl, double value)
{
	size_t k = 0;

	while (k < hl->n && hl->value[hl->n - 1 - k] >= value)
		k++;
	return p_of_rank(hl, k);
}

double hl_least_alpha_two(size_t na, size_t nb)
{
	return na && nb ? exp(M_LN2 - log_choose(na + nb, na)) : 1;
}

double hl_least_alpha_one(size_t n)
{
	return n ? exp2(1.0 - n) : 1;
}

/* ---- permutation tests ---- */

struct ranked {
	double key;
	size_t index;
};

static int by_key(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/* Twice the mid-ranks, so that they are whole numbers; *ties = sum of t^3 - t. */
static int double_ranks(const double *v, size_t n, size_t *rank, double *ties)
{
	struct ranked *r = malloc(n * sizeof(*r));
	size_t i, j, k;

	if (!r)
		return -1;
	for (i = 0; i < n; i++)
		r[i] = (struct ranked){ v[i], i };
	qsort(r, n, sizeof(*r), by_key);
	*ties = 0;
	for (i = 0; i < n; i = j) {
		double t;

		for (j = i; j < n && r[j].key == r[i].key; j++)
			;
		for (k = i; k < j; k++)
			rank[r[k].index] = i + j + 1;
		t = j - i;
		*ties += t * t * t - t;
	}
	free(r);
	return 0;
}

/* Share of the sums whose distance from `twice_mean` / 2 is at least that of `seen`. */
static double share_as_far(const double *count, size_t sums, size_t seen, size_t twice_mean)
{
	size_t far = 2 * seen > twice_mean ? 2 * seen - twice_mean : twice_mean - 2 * seen, s;
	double all = 0, as_far = 0;

	for (s = 0; s < sums; s++) {
		size_t d = 2 * s > twice_mean ? 2 * s - twice_mean : twice_mean - 2 * s;

		all += count[s];
		if (d >= far)
			as_far += count[s];
	}
	return as_far / all;
}

static double normal_p(double distance, double sd)
{
	double p;

	if (!(sd > 0))
		return 1;
	p = erfc(fmax(distance, 0) / sd / M_SQRT2);
	return p < 1 ? p : 1;
}

double mann_whitney_p(const double *a, size_t na, const double *b, size_t nb, bool *approximate)
{
	size_t n = na + nb, total = n * (n + 1), seen = 0, i, k, s;
	double *v = malloc(n * sizeof(*v)), *count = NULL, ties, p = NAN;
	size_t *rank = malloc(n * sizeof(*rank));

	*approximate = n > STATS_EXACT_MW;
	if (!na || !nb) {
		p = 1;
		goto cleanup;
	}
	if (!v || !rank)
		goto cleanup;
	memcpy(v, a, na * sizeof(*v));
	memcpy(v + na, b, nb * sizeof(*v));
	if (double_ranks(v, n, rank, &ties))
		goto cleanup;
	for (i = 0; i < na; i++)
		seen += rank[i];

	if (*approximate) {
		double var = na * (double)nb / 12 * (n + 1 - ties / (n * (n - 1.0)));

		/* Ranks are doubled: a step of the statistic is 2, half of it 1. */
		p = normal_p((fabs(seen - na * (n + 1.0)) - 1) / 2, sqrt(var));
		goto cleanup;
	}
	/* count[k][s]: the ways to choose k of the values with ranks summing to s. */
	count = calloc((na + 1) * (total + 1), sizeof(*count));
	if (!count)
		goto cleanup;
	count[0] = 1;
	for (i = 0; i < n; i++)
		for (k = i < na ? i + 1 : na; k; k--)
			for (s = rank[i]; s <= total; s++)
				count[k * (total + 1) + s] +=
					count[(k - 1) * (total + 1) + s - rank[i]];
	p = share_as_far(count + na * (total + 1), total + 1, seen, 2 * na * (n + 1));
cleanup:
	free(count);
	free(rank);
	free(v);
	return p;
}

double signed_rank_p(const double *d, size_t n, bool *approximate)
{
	size_t *rank = malloc((n + 1) * sizeof(*rank)), total = 0, seen = 0, i, s;
	double *v = calloc(n + 1, sizeof(*v)), *count = NULL, squares = 0, ties, p = NAN;

	*approximate = n > STATS_EXACT_SR;
	if (!rank || !v)
		goto cleanup;
	for (i = 0; i < n; i++)
		v[i] = fabs(d[i]);
	if (double_ranks(v, n, rank, &ties))
		goto cleanup;
	for (i = 0; i < n; i++) {
		if (d[i] == 0)
			continue;
		total += rank[i];
		squares += (double)rank[i] * rank[i];
		if (d[i] > 0)
			seen += rank[i];
	}
	if (*approximate) {
		p = normal_p((fabs(2.0 * seen - total) - 2) / 2, sqrt(squares) / 2);
		goto cleanup;
	}
	count = calloc(total + 1, sizeof(*count));
	if (!count)
		goto cleanup;
	count[0] = 1;
	for (i = 0; i < n; i++)
		for (s = total; d[i] != 0 && s + 1 > rank[i]; s--)
			count[s] += count[s - rank[i]];
	p = share_as_far(count, total + 1, seen, total);
cleanup:
	free(count);
	free(v);
	free(rank);
	return p;
}

/* ---- families and rates ---- */

static struct ranked *order(const double *p, size_t n)
{
	struct ranked *r = malloc((n + 1) * sizeof(*r));
	size_t i;

	for (i = 0; r && i < n; i++)
		r[i] = (struct ranked){ p[i], i };
	if (r)
		qsort(r, n, sizeof(*r), by_key);
	return r;
}

int stats_holm(const double *p, size_t n, double *adjusted)
{
	struct ranked *r = order(p, n);
	double most = 0;
	size_t i;

	if (!r)
		return -1;
	for (i = 0; i < n; i++) {
		most = fmax(most, fmin(1, r[i].key * (n - i)));
		adjusted[r[i].index] = most;
	}
	free(r);
	return 0;
}

int stats_benjamini_hochberg(const double *p, size_t n, double *adjusted)
{
	struct ranked *r = order(p, n);
	double least = 1;
	size_t i;

	if (!r)
		return -1;
	for (i = n; i--;) {
		least = fmin(least, r[i].key * n / (i + 1));
		adjusted[r[i].index] = least;
	}
	free(r);
	return 0;
}

/* P(X <= x) of n trials with rate p. */
static double binomial_below(size_t x, size_t n, double p)
{
	double sum = 0;
	size_t i;

	for (i = 0; i <= x; i++)
		sum += exp(log_choose(n, i) + i * log(p) + (n - i) * log1p(-p));
	return sum;
}

double stats_rate_upper(size_t x, size_t n, double alpha)
{
	double low = (double)x / n, high = 1, mid;
	int i;

	if (x >= n)
		return 1;
	for (i = 0; i < 60; i++) {
		mid = low + (high - low) / 2;
		if (binomial_below(x, n, mid) > alpha)
			low = mid;
		else
			high = mid;
	}
	return high;
}
