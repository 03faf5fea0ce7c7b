// SPDX-License-Identifier: GPL-2.0-only
/* Expectations held against recordings, in interval arithmetic. */
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/compare_parts.h"
#include "data/expect_parts.h"
#include "data/stats.h"

/*
 * Decimal constants are not exact in binary: 20 * 1.05 must be 21. What differs
 * by less than this part is equal; whole numbers below 10^15 stay apart.
 */
#define EQUAL_PART	1e-15L
_Static_assert(LDBL_MANT_DIG >= 64, "long double must hold a 64-bit count");

struct judge {
	const struct expectation *e;
	const struct recording *rec, *base;
	struct boots rec_boots, base_boots;
	bool inferred;
	bool no_memory;
	char reason[200];		/* why there is no value; "" none */
};

static bool no_value(struct judge *j, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Returns false. The first reason stays. */
static bool no_value(struct judge *j, const char *format, ...)
{
	va_list ap;

	if (*j->reason)
		return false;
	va_start(ap, format);
	vsnprintf(j->reason, sizeof(j->reason), format, ap);
	va_end(ap);
	return false;
}

/* ---- terms of one run ---- */

/*
 * Lost runs of the probes that count a metric, and those that found no room.
 * False: this kernel cannot tell.
 */
static bool lost_runs(const struct run *run, const struct metric *m, uint64_t *lost)
{
	const struct trust *t = &run->trust;
	bool saturated = false;
	size_t i;

	*lost = sat_add(t->map_full, t->lost, &saturated);
	for (i = 0; i < t->probes; i++) {
		const struct probe_state *p = &t->probe[i];

		if (!p->mechanism || !((m->events | m->named) & EVENT_BIT(p->event)))
			continue;
		if (p->misses == UINT64_MAX)
			return false;
		*lost = sat_add(*lost, p->misses, &saturated);
	}
	return !saturated;
}

static struct interval total_interval(const struct total *t, bool known)
{
	known &= !(t->flags & (SAMPLE_SATURATED | SAMPLE_LOWER_BOUND));
	return (struct interval){ t->min, known ? t->max : INFINITY };
}

/* Closed bounds of the value with this rank; one beyond either end is not known. */
static struct interval at_rank(const struct hist *h, uint64_t low_rank, uint64_t high_rank)
{
	struct interval v = { 0, INFINITY };
	uint64_t seen = 0, low, high;
	bool got_low = !low_rank;
	size_t i;

	for (i = 0; i < hist_buckets(h->kind); i++) {
		if (!h->bucket[i])
			continue;
		seen += h->bucket[i];
		hist_bounds(h->kind, i, &low, &high);
		if (!got_low && seen >= low_rank) {
			v.low = low;
			got_low = true;
		}
		if (seen >= high_rank) {
			v.high = high ? high - 1 : INFINITY;
			break;
		}
	}
	return v;
}

/*
 * A lost run may add a value, take one away, or make two into one (a lock that
 * was not seen): at most three ranks away in either direction.
 */
static struct interval percentile_interval(const struct hist *h, unsigned int p, bool known,
					   uint64_t lost)
{
	uint64_t rank = (uint64_t)(((unsigned __int128)h->count * p + 99) / 100);
	uint64_t shift = lost > UINT64_MAX / 8 ? UINT64_MAX / 2 : 3 * lost;

	if (!known)
		return (struct interval){ 0, INFINITY };
	return at_rank(h, rank > shift ? rank - shift : 0, rank + shift);
}

static struct interval mean_interval(const struct hist *h, bool known, bool exact, uint64_t lost)
{
	long double sum = h->sum, count = h->count;

	if (exact)
		return (struct interval){ sum / count, sum / count };
	/* Each lost run may have been one more value, of any size. */
	return (struct interval){ known ? sum / (count + lost) : 0, INFINITY };
}

static bool hist_term(struct judge *j, const struct run *run, const struct term *t,
		      struct interval *v)
{
	struct hist h;
	unsigned int flags;
	const char *why = NULL;
	struct total count;
	bool known, exact;
	uint64_t lost;
	size_t last;

	if (!run_hist(run, t->metric->id, t->want, &h, &flags, &why))
		return no_value(j, "%s is unavailable: %s", t->metric->name, why);
	j->inferred |= flags & SAMPLE_INFERRED;
	known = lost_runs(run, t->metric, &lost) && !(flags & SAMPLE_SATURATED);
	exact = known && !lost && !(flags & SAMPLE_LOWER_BOUND);
	if (flags & SAMPLE_LOWER_BOUND && !lost)
		known = false;		/* by how much is not said */
	if (t->statistic == STAT_COUNT || t->statistic == STAT_SUM) {
		run_total(run, t->metric->id, t->want, &count, NULL);
		v->low = t->statistic == STAT_COUNT ? count.min : count.min == h.count ? h.sum : 0;
		v->high = exact ? v->low : INFINITY;
		return true;
	}
	if (!h.count && exact)
		return no_value(j, "%s has no values here", t->metric->name);
	if (!h.count) {
		*v = (struct interval){ 0, INFINITY };
		return true;
	}
	switch (t->statistic) {
	case STAT_MEAN:
		*v = mean_interval(&h, known, exact, lost);
		return true;
	case STAT_MAX:
		for (last = hist_buckets(h.kind); last && !h.bucket[last - 1]; last--)
			;
		*v = at_rank(&h, h.count, h.count);
		if (!exact)
			v->high = INFINITY;
		return last || no_value(j, "%s has no buckets here", t->metric->name);
	default:
		*v = percentile_interval(&h, t->percentile, known, lost);
		return true;
	}
}

static bool metric_term(struct judge *j, const struct run *run, const struct term *t,
			struct interval *v)
{
	struct total total;
	const char *why = NULL;
	uint64_t lost;

	if (!run_observed(run))
		return no_value(j, "%s: nothing was observed", t->metric->name);
	if (t->metric->kind != KIND_COUNTER)
		return hist_term(j, run, t, v);
	if (!run_total(run, t->metric->id, t->want, &total, &why))
		return no_value(j, "%s is unavailable: %s", t->metric->name, why);
	j->inferred |= total.flags & SAMPLE_INFERRED;
	*v = total_interval(&total, lost_runs(run, t->metric, &lost));
	return true;
}

/* In nanoseconds or KiB where the unit says so, as constants are. */
static long double unit_scale(const char *unit)
{
	static const struct { const char *unit; long double scale; } scales[] = {
		{ "us", 1e3L }, { "ms", 1e6L }, { "s", 1e9L }, { "MiB", 1024 },
		{ "GiB", 1048576 }, { "bytes", 1 / 1024.0L },
	};
	size_t i;

	for (i = 0; i < sizeof(scales) / sizeof(*scales); i++)
		if (unit && !strcmp(scales[i].unit, unit))
			return scales[i].scale;
	return 1;
}

static bool value_term(struct judge *j, const struct run *run, const struct term *t,
		       struct interval *v)
{
	size_t i;

	for (i = 0; i < run->values; i++)
		if (!strcmp(run->value[i].name, t->value))
			break;
	if (i == run->values)
		return no_value(j, "the command gave no value '%.60s'", t->value);
	if (!isfinite(run->value[i].value))
		return no_value(j, "the value '%.60s' is not a number", t->value);
	v->low = v->high = run->value[i].value * unit_scale(run->value[i].unit);
	return true;
}

static bool term_of_run(struct judge *j, const struct run *run, const struct term *t,
			struct interval *v)
{
	const struct expect_fact *fact;

	if (t->metric)
		return metric_term(j, run, t, v);
	if (t->fact < 0)
		return value_term(j, run, t, v);
	fact = &expect_facts[t->fact];
	if (fact->of_command && !run->has_command)
		return no_value(j, "%s: no command was run", fact->name);
	v->low = v->high = *(const uint64_t *)((const char *)run + fact->offset);
	return true;
}

/* ---- medians ---- */

static int by_value(const void *a, const void *b)
{
	long double x = *(const long double *)a, y = *(const long double *)b;

	return (x > y) - (x < y);
}

static long double median(long double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	/* Not the mean of two infinities' difference: both middles may be one. */
	return v[(n - 1) / 2] == v[n / 2] ? v[n / 2] : (v[(n - 1) / 2] + v[n / 2]) / 2;
}

/* The median of the truth lies between the medians of the bounds. */
static struct interval median_interval(long double *low, long double *high, size_t n)
{
	return (struct interval){ median(low, n), median(high, n) };
}

/* base.X: from the lowest to the highest median of a boot. */
static bool base_term(struct judge *j, const struct term *t, struct interval *v)
{
	const struct recording *base = j->base;
	struct passes passes = recording_passes(base);
	long double *low = calloc(base->runs, sizeof(*low));
	long double *high = calloc(base->runs, sizeof(*high));
	struct interval one;
	size_t b, i, n;
	bool ok = low && high;

	j->no_memory |= !ok;
	*v = (struct interval){ INFINITY, -INFINITY };
	for (b = 0; b < j->base_boots.n && ok; b++) {
		for (i = n = 0; i < base->runs && ok; i++) {
			if (j->base_boots.of_run[i] != b ||
			    !pass_tells(&passes, base->run[i], true, false))
				continue;
			ok = term_of_run(j, base->run[i], t, &one);
			low[n] = one.low;
			high[n++] = one.high;
		}
		ok = ok && (n || no_value(j, "a boot of the base was not observed"));
		if (!ok)
			break;
		one = median_interval(low, high, n);
		v->low = one.low < v->low ? one.low : v->low;
		v->high = one.high > v->high ? one.high : v->high;
	}
	free(low);
	free(high);
	return ok;
}

/* ---- expressions ---- */

static long double product(long double a, long double b)
{
	/* An infinity stands for a finite number that is not known. */
	return a == 0 || b == 0 ? 0 : a * b;
}

static void widen(struct interval *v, long double x)
{
	v->low = x < v->low ? x : v->low;
	v->high = x > v->high ? x : v->high;
}

static struct interval multiply(struct interval a, struct interval b)
{
	long double first = product(a.low, b.low);
	struct interval v = { first, first };

	widen(&v, product(a.low, b.high));
	widen(&v, product(a.high, b.low));
	widen(&v, product(a.high, b.high));
	return v;
}

static bool divide(struct judge *j, struct interval a, struct interval b, struct interval *v)
{
	if (b.low <= 0 && b.high >= 0)
		return no_value(j, b.low == b.high ? "divides by 0" : "may divide by 0");
	/* 1/x falls on either side of 0, also when an end is not bounded. */
	*v = multiply(a, (struct interval){ 1 / b.high, 1 / b.low });
	if (a.low == a.high && b.low == b.high)		/* one rounding, not two */
		v->low = v->high = a.low / b.low;
	return true;
}

static bool evaluate(struct judge *j, const struct run *run, unsigned int index,
		     struct interval *v)
{
	const struct node *n = &j->e->node[index];
	struct interval a, b;

	switch (n->kind) {
	case NODE_NUMBER:
		v->low = v->high = n->number;
		return true;
	case NODE_TERM:
		return n->term.base ? base_term(j, &n->term, v) : term_of_run(j, run, &n->term, v);
	default:
		break;
	}
	if (!evaluate(j, run, n->left, &a) || !evaluate(j, run, n->right, &b))
		return false;
	switch (n->kind) {
	case NODE_ADD:
		*v = (struct interval){ a.low + b.low, a.high + b.high };
		return true;
	case NODE_SUB:
		*v = (struct interval){ a.low - b.high, a.high - b.low };
		return true;
	case NODE_MUL:
		*v = multiply(a, b);
		return true;
	default:
		return divide(j, a, b, v);
	}
}

/* ---- verdicts ---- */

static bool at_most(long double a, long double b)
{
	if (a <= b)
		return true;
	if (isinf(a) || isinf(b))
		return false;
	return a - b <= EQUAL_PART * (fabsl(a) > fabsl(b) ? fabsl(a) : fabsl(b));
}

static bool below(long double a, long double b)
{
	return !at_most(b, a);
}

/* What must hold, and what must hold for it to fail: never both. */
static enum expect_verdict decide(enum compare_op op, struct interval v, struct interval b,
				  long double slack)
{
	bool yes, no, tmp;

	switch (op) {
	case OP_LE:
		yes = at_most(v.high, b.low + slack);
		no = below(b.high + slack, v.low);
		break;
	case OP_LT:
		yes = below(v.high, b.low + slack);
		no = at_most(b.high + slack, v.low);
		break;
	case OP_GE:
		yes = at_most(b.high - slack, v.low);
		no = below(v.high, b.low - slack);
		break;
	case OP_GT:
		yes = below(b.high - slack, v.low);
		no = at_most(v.high, b.low - slack);
		break;
	default:
		yes = at_most(v.high, b.low + slack) && at_most(b.high, v.low + slack);
		no = below(v.high + slack, b.low) || below(b.high + slack, v.low);
		if (op == OP_NE) {
			tmp = yes;
			yes = no;
			no = tmp;
		}
	}
	return yes ? EXPECT_OK : no ? EXPECT_NOT_OK : EXPECT_SKIP;
}

/* All runs of boot b. -1: no memory. */
static int judge_boot(struct judge *j, size_t b, struct expect_boot *to)
{
	const struct recording *rec = j->rec;
	struct passes passes = recording_passes(rec);
	long double *v = calloc(4 * rec->runs, sizeof(*v)), *at[4];
	struct interval value, bound;
	size_t i, n = 0;
	bool ok = true;

	if (!v)
		return -1;
	for (i = 0; i < 4; i++)
		at[i] = v + i * rec->runs;
	*j->reason = 0;
	for (i = 0; i < rec->runs && ok; i++) {
		/* One run tells all that an expression names: one that was observed. */
		if (j->rec_boots.of_run[i] != b || !pass_tells(&passes, rec->run[i], true, false))
			continue;
		ok = evaluate(j, rec->run[i], j->e->left, &value) &&
		     evaluate(j, rec->run[i], j->e->right, &bound);
		at[0][n] = value.low;
		at[1][n] = value.high;
		at[2][n] = bound.low;
		at[3][n++] = bound.high;
	}
	ok = ok && (n || no_value(j, "nothing was observed in this boot"));
	*to = (struct expect_boot){ .runs = n, .verdict = EXPECT_SKIP };
	if (ok) {
		to->value = median_interval(at[0], at[1], n);
		to->bound = median_interval(at[2], at[3], n);
		to->verdict = decide(j->e->op, to->value, to->bound, j->e->slack);
		if (to->verdict == EXPECT_SKIP)
			strcpy(to->reason, "the bound lies within what is known of the value");
	} else {
		to->value = to->bound = (struct interval){ NAN, NAN };
		memcpy(to->reason, j->reason, sizeof(to->reason));
	}
	free(v);
	return j->no_memory ? -1 : 0;
}

/* A run whose command did not do its work says nothing about it. */
static bool command_failed(const struct recording *rec, const char *of, char *reason, size_t size)
{
	size_t i;

	for (i = 0; i < rec->runs; i++) {
		if (!rec->run[i]->has_command || !rec->run[i]->exit_status)
			continue;
		snprintf(reason, size, "run %zu of %s: the command failed (status %d)", i + 1, of,
			 rec->run[i]->exit_status);
		return true;
	}
	if (!rec->runs)
		snprintf(reason, size, "%s has no runs", of);
	return !rec->runs;
}

static bool states_differ(struct judge *j, char *reason, size_t size)
{
	struct comparison_state state[COMPARISON_STATES];
	size_t n = 0;

	j->no_memory = compare_states(j->base, j->rec, &j->base_boots, &j->rec_boots, state, &n);
	if (n)
		snprintf(reason, size, "unlike machines: %s is %s, in the base %s%s", state[0].name,
			 state[0].new, state[0].base, n > 1 ? "; and more" : "");
	return n;
}

/* One verdict from all boots. */
static void combine(struct expect_result *r)
{
	size_t count[3] = { 0 }, i;

	for (i = 0; i < r->boots; i++)
		count[r->boot[i].verdict]++;
	r->verdict = count[EXPECT_OK] == r->boots ? EXPECT_OK :
		     count[EXPECT_NOT_OK] == r->boots ? EXPECT_NOT_OK : EXPECT_SKIP;
	if (r->verdict != EXPECT_SKIP)
		return;
	for (i = 0; i < r->boots && r->boot[i].verdict != EXPECT_SKIP; i++)
		;
	if (i < r->boots)
		snprintf(r->reason, sizeof(r->reason), "%s", r->boot[i].reason);
	else
		snprintf(r->reason, sizeof(r->reason),
			 "boots disagree: it holds in %zu, and not in %zu", count[EXPECT_OK],
			 count[EXPECT_NOT_OK]);
}

int expect_judge(const struct expectations *e, size_t index, const struct recording *rec,
		 const struct recording *base, const struct expect_options *options,
		 struct expect_result *r)
{
	static const char *const unit_names[] = { [DIM_TIME] = "ns", [DIM_SIZE] = "KiB" };
	struct judge j = { .e = &e->item[index], .rec = rec, .base = base };
	const char *unit = j.e->dimension < 4 ? unit_names[j.e->dimension] : NULL;
	int ret = -1;
	size_t b;

	*r = (struct expect_result){ .text = j.e->text, .unit = unit ? unit : "",
				     .operator = expect_operators[j.e->op], .slack = j.e->slack,
				     .verdict = EXPECT_SKIP };
	if (command_failed(rec, "the recording", r->reason, sizeof(r->reason)))
		return 0;
	if (j.e->uses_base && command_failed(base, "the base", r->reason, sizeof(r->reason)))
		return 0;
	if (boots_of(rec, &j.rec_boots) || (j.e->uses_base && boots_of(base, &j.base_boots)))
		goto cleanup;
	if (j.rec_boots.n > STATS_BOOTS_MAX || j.base_boots.n > STATS_BOOTS_MAX) {
		snprintf(r->reason, sizeof(r->reason), "more than %d boots in a recording",
			 STATS_BOOTS_MAX);
		ret = 0;
		goto cleanup;
	}
	if (j.e->uses_base && !options->ignore_state &&
	    states_differ(&j, r->reason, sizeof(r->reason))) {
		ret = 0;
		goto cleanup;
	}
	if (j.no_memory)
		goto cleanup;
	r->boot = calloc(j.rec_boots.n, sizeof(*r->boot));
	if (!r->boot)
		goto cleanup;
	r->boots = j.rec_boots.n;
	for (b = 0; b < r->boots; b++)
		if (judge_boot(&j, b, &r->boot[b]))
			goto cleanup;
	r->inferred = j.inferred;
	combine(r);
	ret = 0;
cleanup:
	if (ret)
		expect_result_free(r);
	boots_free(&j.rec_boots);
	boots_free(&j.base_boots);
	return ret;
}

void expect_result_free(struct expect_result *r)
{
	free(r->boot);
	r->boot = NULL;
	r->boots = 0;
}
