// SPDX-License-Identifier: GPL-2.0-only
/* The core of all comparisons: evidence of two sides, an interval, a verdict. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/compare.h"
#include "data/stats.h"

struct shift {
	enum evidence_kind kind;
	enum metric_better better;
	bool log;
	double margin;		/* on the scale of the shifts */
	/*
	 * Where events were lost the truth lies between two samples of shifts, the
	 * lowest and the highest possible; else both are one.
	 */
	struct hl *lowest, *highest;
	double low, high;	/* LAYOUTS: the range */
	/* For the test of no shift: boots of both sides, or differences of pairs. */
	double *a, *b;
	size_t na, nb;
};

const char *verdict_name(enum verdict verdict)
{
	static const char *const name[] = {
		"worse", "changed", "cannot tell", "unavailable", "better", "same"
	};

	return name[verdict];
}

const char *evidence_name(enum evidence_kind kind)
{
	static const char *const name[] = { "boots", "blocks", "exact", "layouts", "bounds" };

	return name[kind];
}

void evidence_free(struct evidence *e)
{
	free(e->low);
	free(e->high);
	e->low = e->high = NULL;
}

void shift_free(struct shift *s)
{
	if (!s)
		return;
	if (s->highest != s->lowest)
		hl_free(s->highest);
	hl_free(s->lowest);
	free(s->a);
	free(s->b);
	free(s);
}

/* A margin and a ratio mean something only above zero. */
static bool all_positive(const struct evidence *e)
{
	size_t i;

	for (i = 0; i < e->boots; i++)
		if (!(e->low[i] > 0))
			return false;
	return true;
}

static double scaled(const struct shift *s, double v)
{
	return s->log ? log(v) : v;
}

static double *scaled_copy(const struct shift *s, const double *v, size_t n)
{
	double *copy = malloc(n * sizeof(*copy));
	size_t i;

	for (i = 0; copy && i < n; i++)
		copy[i] = scaled(s, v[i]);
	return copy;
}

/*
 * Differences of logarithms that stand for the same ratio must be equal for the
 * test to see the tie; rounding is far below any measurement.
 */
static double snap(double d)
{
	return round(d * 1e12) / 1e12;
}

/* Shifts of pairs: from[i] to to[i]. */
static double *pair_shifts(const struct shift *s, const struct pairing *p, const double *from,
			   const double *to, bool from_is_base)
{
	double *d = malloc((p->pairs + 1) * sizeof(*d));
	size_t i;

	for (i = 0; d && i < p->pairs; i++) {
		size_t base = p->base ? p->base[i] : i, new = p->new ? p->new[i] : i;

		d[i] = snap(scaled(s, to[from_is_base ? new : base]) -
			    scaled(s, from[from_is_base ? base : new]));
	}
	return d;
}

static struct hl *boots_shift(const struct shift *s, const double *from, size_t n_from,
			      const double *to, size_t n_to)
{
	double *a = scaled_copy(s, from, n_from), *b = scaled_copy(s, to, n_to);
	struct hl *hl = a && b ? hl_two(a, n_from, b, n_to) : NULL;

	free(a);
	free(b);
	return hl;
}

static int add_range(struct shift *s, const struct pairing *p, const struct evidence *from,
		     const struct evidence *to, bool from_is_base)
{
	double *least = pair_shifts(s, p, from->high, to->low, from_is_base);
	double *most = pair_shifts(s, p, from->low, to->high, from_is_base);
	size_t i;

	s->low = INFINITY;
	s->high = -INFINITY;
	for (i = 0; least && most && i < p->pairs; i++) {
		s->low = fmin(s->low, least[i]);
		s->high = fmax(s->high, most[i]);
	}
	free(least);
	free(most);
	return least && most && p->pairs ? 0 : -1;
}

static int add_pairs(struct shift *s, const struct pairing *p, const struct evidence *from,
		     const struct evidence *to, bool from_is_base, bool certain)
{
	double *most;

	s->a = pair_shifts(s, p, from->high, to->low, from_is_base);
	s->na = p->pairs;
	s->lowest = s->a ? hl_one(s->a, p->pairs) : NULL;
	if (certain) {
		s->highest = s->lowest;
	} else {
		most = pair_shifts(s, p, from->low, to->high, from_is_base);
		s->highest = most ? hl_one(most, p->pairs) : NULL;
		free(most);
	}
	return s->lowest && s->highest ? 0 : -1;
}

static int add_boots(struct shift *s, const struct evidence *from, const struct evidence *to,
		     bool certain)
{
	s->a = scaled_copy(s, from->low, from->boots);
	s->b = scaled_copy(s, to->low, to->boots);
	s->na = from->boots;
	s->nb = to->boots;
	s->lowest = boots_shift(s, from->high, from->boots, to->low, to->boots);
	s->highest = certain ? s->lowest :
		     boots_shift(s, from->low, from->boots, to->high, to->boots);
	return s->a && s->b && s->lowest && s->highest ? 0 : -1;
}

struct shift *shift_new(const struct evidence *base, const struct evidence *new,
			const struct pairing *pairing, enum metric_better better, double margin)
{
	/* Oriented: where higher is better a fall is what is worse. */
	bool from_is_base = better != BETTER_HIGHER, certain = base->certain && new->certain;
	const struct evidence *from = from_is_base ? base : new, *to = from_is_base ? new : base;
	struct shift *s;
	int ret;

	if (!base->boots || !new->boots)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->kind = pairing->kind;
	s->better = better;
	s->log = all_positive(base) && all_positive(new);
	/*
	 * Of the smaller side, so that swapping the sides mirrors the verdict: from
	 * a base of zero every change is beyond the margin.
	 */
	s->margin = s->log ? log1p(margin) : margin * fmin(fabs(base->median), fabs(new->median));
	if (s->kind == EVIDENCE_LAYOUTS)
		ret = add_range(s, pairing, from, to, from_is_base);
	else if (s->kind == EVIDENCE_BLOCKS)
		ret = add_pairs(s, pairing, from, to, from_is_base, certain);
	else
		ret = add_boots(s, from, to, certain);
	if (ret) {
		shift_free(s);
		return NULL;
	}
	return s;
}

bool shift_interval(const struct shift *s, double alpha, double *low, double *high)
{
	double unused;

	if (s->kind == EVIDENCE_LAYOUTS) {
		*low = s->low;
		*high = s->high;
		return true;
	}
	return hl_interval(s->lowest, alpha, low, &unused) &&
	       hl_interval(s->highest, alpha, &unused, high);
}

double shift_estimate(const struct shift *s)
{
	if (s->kind == EVIDENCE_LAYOUTS)
		return s->low + (s->high - s->low) / 2;
	return (hl_estimate(s->lowest) + hl_estimate(s->highest)) / 2;
}

bool shift_is_log(const struct shift *s)
{
	return s->log;
}

enum verdict shift_verdict(const struct shift *s, double alpha)
{
	double low, high;

	if (shift_interval(s, alpha, &low, &high)) {
		if (low > s->margin)
			return s->better == BETTER_NEITHER ? VERDICT_CHANGED : VERDICT_WORSE;
		if (high < -s->margin)
			return s->better == BETTER_NEITHER ? VERDICT_CHANGED : VERDICT_BETTER;
	}
	if (shift_interval(s, COMPARE_ALPHA_SAME, &low, &high)) {
		/* Without a margin nothing but equality itself is the same. */
		if (-s->margin < low && high < s->margin)
			return VERDICT_SAME;
		if (!s->margin && !low && !high)
			return VERDICT_SAME;
	}
	return VERDICT_UNDECIDED;
}

double shift_p_margin(const struct shift *s)
{
	if (s->kind == EVIDENCE_LAYOUTS)
		return 1;
	return fmin(hl_p_above(s->lowest, s->margin), hl_p_below(s->highest, -s->margin));
}

double shift_p_zero(const struct shift *s, bool *approximate)
{
	*approximate = false;
	if (s->kind == EVIDENCE_LAYOUTS)
		return NAN;
	if (s->kind == EVIDENCE_BLOCKS)
		return signed_rank_p(s->a, s->na, approximate);
	return mann_whitney_p(s->a, s->na, s->b, s->nb, approximate);
}

double pairing_least_alpha(const struct pairing *p, size_t base_boots, size_t new_boots)
{
	if (p->kind == EVIDENCE_BLOCKS)
		return hl_least_alpha_one(p->pairs);
	return hl_least_alpha_two(base_boots, new_boots);
}

size_t pairing_boots_needed(const struct pairing *p, size_t m)
{
	size_t n;

	for (n = 1; n < STATS_BOOTS_MAX; n++) {
		double least = p->kind == EVIDENCE_BLOCKS ? hl_least_alpha_one(n) :
			       hl_least_alpha_two(n, n);

		if (least <= COMPARE_ALPHA / m * (1 + 1e-9))
			break;
	}
	return n;
}
