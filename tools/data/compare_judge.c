// SPDX-License-Identifier: GPL-2.0-only
/* What each item says: exact counts, statistics, and the families they belong to. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/compare_parts.h"
#include "data/stats.h"

static enum verdict moved(enum metric_better better, bool up)
{
	if (better == BETTER_NEITHER)
		return VERDICT_CHANGED;
	return up == (better == BETTER_LOWER) ? VERDICT_WORSE : VERDICT_BETTER;
}

static bool has_moved(enum verdict v)
{
	return v == VERDICT_WORSE || v == VERDICT_BETTER || v == VERDICT_CHANGED;
}

static void reason(struct comparison_item *it, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void reason(struct comparison_item *it, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(it->reason, sizeof(it->reason), format, ap);
	va_end(ap);
}

static void plain_change(struct comparison_item *it)
{
	it->has_change = it->base.median > 0;
	if (it->has_change)
		it->change = (it->new.median - it->base.median) / it->base.median;
}

/*
 * Could all runs of one side have been as the other's, had these lain otherwise? Of a
 * side and itself: does alignment explain all that its runs differ by?
 */
static bool is_alignment(const struct evidence *e, const struct evidence *other)
{
	return e->least >= other->floor && e->most <= other->ceiling;
}

/* Digits that show a count in full, and of a mean four or one after the point. */
static int digits(double v)
{
	return v < 1000 ? 4 : (int)fmin(log10(v), 15) + 2;
}

/*
 * A count that is the same in every boot is not a sample: any difference is one, but
 * for what another alignment would have made of it.
 */
static bool judge_exact(struct comparison_item *it)
{
	const struct evidence *b = &it->base, *n = &it->new;
	bool of_base, of_new, up;

	if (!b->certain || !n->certain) {
		reason(it, "events were lost: compared by statistics");
		return false;
	}
	if (b->boots < COMPARE_EXACT_BOOTS || n->boots < COMPARE_EXACT_BOOTS)
		return false;
	if (!is_alignment(b, b) || !is_alignment(n, n)) {
		reason(it, "not equal in all boots: compared by statistics");
		return false;
	}
	it->kind = EVIDENCE_EXACT;
	plain_change(it);
	of_base = is_alignment(n, b);
	of_new = is_alignment(b, n);
	up = n->least > b->ceiling && b->most < n->floor;
	if (b->least == n->most && b->most == n->least) {
		it->verdict = VERDICT_SAME;
		reason(it, "exact: equal in all %zu and %zu boots", b->boots, n->boots);
	} else if (of_base || of_new) {
		const struct evidence *e = of_base ? b : n;

		it->verdict = VERDICT_SAME;
		reason(it, "exact: alignment alone may make %.*g to %.*g of %s",
		       digits(e->floor), e->floor, digits(e->ceiling), e->ceiling,
		       of_base ? "BASE" : "NEW");
	} else if (up || (n->most < b->floor && b->least > n->ceiling)) {
		it->verdict = moved(it->better, up);
		reason(it, "exact: equal in all %zu and %zu boots%s", b->boots, n->boots,
		       b->floor < b->ceiling || n->floor < n->ceiling ? ", alignment apart" : "");
	} else {
		it->verdict = VERDICT_UNDECIDED;
		reason(it, "alignment alone may make %.*g to %.*g of BASE, and %.*g to %.*g of NEW",
		       digits(b->floor), b->floor, digits(b->ceiling), b->ceiling,
		       digits(n->floor), n->floor, digits(n->ceiling), n->ceiling);
	}
	return true;
}

/* The bounds of a side are those of all its boots. */
static void widen_bounds(struct evidence *e)
{
	size_t i;

	for (i = 0; i < e->boots; i++)
		e->most = fmax(e->most, e->high[i]);
}

static void judge_bounds(struct comparison_item *it, size_t needed)
{
	it->verdict = VERDICT_UNDECIDED;
	if (it->base.boots < needed || it->new.boots < needed)
		reason(it, "%zu boots a side are needed", needed);
	else if (it->new.least >= it->base.most)
		it->verdict = moved(it->better, true);
	else if (it->new.most <= it->base.least)
		it->verdict = moved(it->better, false);
	else
		reason(it, "the bounds overlap");
}

static bool unbounded(const struct evidence *e)
{
	size_t i;

	for (i = 0; i < e->boots; i++)
		if (isinf(e->high[i]))
			return true;
	return false;
}

/* False: no memory. */
static bool judge_by_statistics(struct work *w, const struct quantity *q,
				struct comparison_item *it)
{
	struct pairing pairing = w->plan.pairing;

	it->verdict = VERDICT_UNDECIDED;
	it->kind = pairing.kind;
	if (unbounded(&it->base) || unbounded(&it->new)) {
		reason(it, "events were lost, and nothing tells how many");
		return true;
	}
	if (q->time && is_icount(&w->rec[0]->machine) && is_icount(&w->rec[1]->machine)) {
		it->kind = EVIDENCE_LAYOUTS;
		if (it->base.boots < COMPARE_LAYOUTS || it->base.boots != it->new.boots) {
			plain_change(it);
			reason(it, "instruction counts need the same %d layouts or more on both "
			       "sides, a boot each: there are %zu and %zu", COMPARE_LAYOUTS,
			       it->base.boots, it->new.boots);
			return true;
		}
		if (pairing.kind != EVIDENCE_BLOCKS)
			pairing = (struct pairing){ .pairs = it->base.boots };
		pairing.kind = EVIDENCE_LAYOUTS;
	}
	it->shift = shift_new(&it->base, &it->new, &pairing, it->better, it->margin);
	return it->shift;
}

static void unavailable(struct work *w, struct comparison_item *it)
{
	it->verdict = VERDICT_UNAVAILABLE;
	if (*it->base.unavailable && *it->new.unavailable &&
	    !strcmp(it->base.unavailable, it->new.unavailable))
		reason(it, "on both sides: %s", it->base.unavailable);
	else if (*it->base.unavailable)
		reason(it, "on %s: %s", w->side[0], it->base.unavailable);
	else
		reason(it, "on %s: %s", w->side[1], it->new.unavailable);
}

static bool always_zero(const struct evidence *e)
{
	return e->certain && e->least == 0 && e->most == 0;
}

int make_item(struct work *w, const struct quantity *q, bool primary,
		     struct comparison_item *it)
{
	*it = (struct comparison_item){ .better = q->better, .margin = q->margin,
					.primary = primary, .verdict = VERDICT_UNDECIDED };
	if (q->kind == QUANTITY_PERCENTILE)
		it->kind = EVIDENCE_BOUNDS;
	memcpy(it->name, q->name, sizeof(it->name));
	memcpy(it->labels, q->labels, sizeof(it->labels));
	memcpy(it->unit, q->unit, sizeof(it->unit));
	if (evidence_collect(q, w->rec[0], &w->boots[0], &it->base) ||
	    evidence_collect(q, w->rec[1], &w->boots[1], &it->new))
		return -1;
	if (it->base.empty && it->new.empty) {
		if (!primary)
			return 1;
		if (w->boots[0].n >= COMPARE_EXACT_BOOTS && w->boots[1].n >= COMPARE_EXACT_BOOTS) {
			it->kind = EVIDENCE_EXACT;
			it->verdict = VERDICT_SAME;
			reason(it, "no events on either side, in any boot");
			return 0;
		}
	}
	if (it->kind == EVIDENCE_BOUNDS) {
		widen_bounds(&it->base);
		widen_bounds(&it->new);
	}
	if (*it->base.unavailable || *it->new.unavailable) {
		unavailable(w, it);
		return 0;
	}
	w->common |= q->kind == QUANTITY_METRIC || q->kind == QUANTITY_VALUE;
	if (!primary && always_zero(&it->base) && always_zero(&it->new))
		return 1;
	if (q->kind == QUANTITY_PERCENTILE)
		judge_bounds(it, pairing_boots_needed(&w->plan.pairing, 1));
	else if (!(q->exact && judge_exact(it)) && !judge_by_statistics(w, q, it))
		return -1;
	return 0;
}

void item_free(struct comparison_item *it)
{
	evidence_free(&it->base);
	evidence_free(&it->new);
	shift_free(it->shift);
	it->shift = NULL;
}

/* ---- the sample, in words and numbers ---- */

/* The interval of the change in per cent of the base, whatever direction is better. */
static void show_interval(struct comparison_item *it, double alpha)
{
	double low, high, estimate = shift_estimate(it->shift), t;
	bool log = shift_is_log(it->shift);

	it->level = 1 - alpha;
	it->has_interval = shift_interval(it->shift, alpha, &low, &high);
	if (it->better == BETTER_HIGHER) {
		t = low;
		low = 0 - high;		/* never a negative zero */
		high = 0 - t;
		estimate = 0 - estimate;
	}
	it->has_change = log || it->base.median > 0;
	if (!it->has_change) {
		it->has_interval = false;
		return;
	}
	it->change = log ? expm1(estimate) : estimate / it->base.median;
	if (it->has_interval) {
		it->low = log ? expm1(low) : low / it->base.median;
		it->high = log ? expm1(high) : high / it->base.median;
	}
}

static void explain_undecided(struct work *w, struct comparison_item *it, size_t m)
{
	double least = pairing_least_alpha(&w->plan.pairing, it->base.boots, it->new.boots);
	size_t fewest = it->base.boots < it->new.boots ? it->base.boots : it->new.boots;
	size_t needed = pairing_boots_needed(&w->plan.pairing, m);
	char before[80];
	size_t n;

	snprintf(before, sizeof(before), "%.60s%s", it->reason, *it->reason ? "; " : "");
	if (it->kind != EVIDENCE_LAYOUTS && fewest == 1) {
		reason(it, "%sonly one boot on %s: the unit is the boot, and runs of one boot "
		       "share its layout", before, it->new.boots > 1 ? "BASE" :
		       it->base.boots > 1 ? "NEW" : "each side");
		n = strlen(it->reason);
		if (w->rec[0]->runs > it->base.boots || w->rec[1]->runs > it->new.boots)
			snprintf(it->reason + n, sizeof(it->reason) - n, ", so that %zu and %zu "
				 "runs are %zu and %zu values", w->rec[0]->runs, w->rec[1]->runs,
				 it->base.boots, it->new.boots);
		return;
	}
	if (it->kind != EVIDENCE_LAYOUTS && least > COMPARE_ALPHA / m * (1 + 1e-9)) {
		reason(it, "%s%zu and %zu boots cannot tell, however far apart they are: %zu a "
		       "side are needed for %zu metric%s", before, it->base.boots, it->new.boots,
		       needed, m, m > 1 ? "s" : "");
		return;
	}
	if (!it->has_interval) {
		reason(it, "%sthe base is zero, and the boots of both sides overlap", before);
		return;
	}
	if (it->kind == EVIDENCE_LAYOUTS)
		reason(it, "over the layouts it changed by %+.2f %% to %+.2f %%, across the "
		       "margin of %g %%", 100 * it->low, 100 * it->high, 100 * it->margin);
	else
		reason(it, "%sthe %.4g %% interval, %+.2f %% to %+.2f %%, reaches across the "
		       "margin of %g %%: too noisy, or too few boots", before, 100 * it->level,
		       100 * it->low, 100 * it->high, 100 * it->margin);
}

/* ---- families ---- */

static bool by_statistics(const struct comparison_item *it)
{
	return it->shift && it->kind != EVIDENCE_LAYOUTS;
}

static void show_item(struct comparison_item *it, double alpha)
{
	show_interval(it, it->verdict == VERDICT_SAME && by_statistics(it) ? COMPARE_ALPHA_SAME :
		      alpha);
	if (by_statistics(it)) {
		it->p = shift_p_zero(it->shift, &it->approximate);
		it->has_p = !isnan(it->p);
	}
}

/* Holm, by intervals: as long as one of those left moves at alpha / (number left). */
void judge_primaries(struct work *w)
{
	struct comparison *c = w->c;
	bool done[COMPARE_PRIMARIES] = { false }, again;
	size_t left = 0, step, i;

	for (i = 0; i < c->primaries; i++)
		left += by_statistics(&c->item[i]);
	do {
		again = false;
		step = left;
		for (i = 0; i < c->primaries; i++) {
			struct comparison_item *it = &c->item[i];

			if (!by_statistics(it) || done[i])
				continue;
			it->verdict = shift_verdict(it->shift, COMPARE_ALPHA / step);
			show_item(it, COMPARE_ALPHA / step);
			if (has_moved(it->verdict)) {
				done[i] = again = true;
				left--;
			}
		}
	} while (again && left);

	for (i = 0; i < c->primaries; i++) {
		struct comparison_item *it = &c->item[i];

		if (!it->shift)
			continue;
		if (it->kind == EVIDENCE_LAYOUTS) {
			it->verdict = shift_verdict(it->shift, COMPARE_ALPHA);
			show_item(it, COMPARE_ALPHA);
		}
		if (it->verdict == VERDICT_UNDECIDED)
			explain_undecided(w, it, left ? left : 1);
	}
}

/* All others: Benjamini and Hochberg. What moved is a place to look at, no verdict. */
int judge_exploratory(struct work *w)
{
	struct comparison *c = w->c;
	double *p = calloc(c->items + 1, sizeof(*p)), *adjusted = calloc(c->items + 1, sizeof(*p));
	size_t i, n = 0;
	int ret = -1;

	if (!p || !adjusted)
		goto cleanup;
	for (i = c->primaries; i < c->items; i++)
		if (by_statistics(&c->item[i]))
			p[n++] = shift_p_margin(c->item[i].shift);
	c->exploratory = n;
	if (stats_benjamini_hochberg(p, n, adjusted))
		goto cleanup;
	for (i = c->primaries, n = 0; i < c->items; i++) {
		struct comparison_item *it = &c->item[i];

		if (it->shift) {
			it->verdict = shift_verdict(it->shift, COMPARE_ALPHA);
			show_item(it, COMPARE_ALPHA);
		}
		if (by_statistics(it) && adjusted[n++] > COMPARE_ALPHA && has_moved(it->verdict)) {
			it->verdict = VERDICT_UNDECIDED;
			reason(it, "beyond its margin alone, but not as one of %zu comparisons",
			       c->exploratory);
		} else if (it->shift && it->verdict == VERDICT_UNDECIDED) {
			explain_undecided(w, it, 1);
		}
		it->look = has_moved(it->verdict);
	}
	ret = 0;
cleanup:
	free(p);
	free(adjusted);
	return ret;
}
