// SPDX-License-Identifier: GPL-2.0-only
/* Two recordings: which metrics decide, what each says, and the verdict of all. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/compare_parts.h"
#include "data/stats.h"

#define STATUS_HELD	0
#define STATUS_WORSE	1
#define STATUS_NONE	125

/* ---- which ones decide ---- */

static bool listed(const char *const *name, size_t n, const char *one)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!strcmp(name[i], one))
			return true;
	return false;
}

static bool observed_at_all(const struct recording *rec, const struct metric *m)
{
	size_t i, k;

	for (i = 0; i < rec->runs; i++) {
		const struct run *run = rec->run[i];

		for (k = 0; k < run->samples; k++)
			if (run->sample[k].metric == m)
				return true;
		for (k = 0; k < run->trust.probes; k++)
			if (m->events & EVENT_BIT(run->trust.probe[k].event))
				return true;
	}
	return false;
}

/* Those that the file names, else those of the table that either file looked at. */
static size_t primaries_of(const struct work *w, const struct recording *rec, const char **name)
{
	size_t i, n = 0;

	for (i = 0; i < rec->primaries && n < COMPARE_PRIMARIES; i++)
		if (rec->primary[i] && !listed(name, n, rec->primary[i]))
			name[n++] = rec->primary[i];
	for (i = 0; !rec->primaries && i < METRIC_MAX && n < COMPARE_PRIMARIES; i++)
		if (metrics[i].primary && (observed_at_all(w->rec[0], &metrics[i]) ||
					   observed_at_all(w->rec[1], &metrics[i])))
			name[n++] = metrics[i].name;
	return n;
}

/* False: they differ between the files, and c->reason says so. */
static bool choose_primaries(struct work *w)
{
	const char *other[COMPARE_PRIMARIES];
	size_t n = primaries_of(w, w->rec[1], other), i;

	w->primaries = primaries_of(w, w->rec[0], w->primary);
	for (i = 0; i < n; i++) {
		if (listed(w->primary, w->primaries, other[i]))
			continue;
		snprintf(w->c->reason, sizeof(w->c->reason), "the primary metrics differ: %s is "
			 "one of %s only", other[i], w->side[1]);
		return false;
	}
	for (i = 0; i < w->primaries; i++) {
		if (listed(other, n, w->primary[i]))
			continue;
		snprintf(w->c->reason, sizeof(w->c->reason), "the primary metrics differ: %s is "
			 "one of %s only", w->primary[i], w->side[0]);
		return false;
	}
	return true;
}

/* Values are told apart by their whole names, of which an item holds the beginning. */
static bool is_primary(const struct quantity *q, const struct comparison_item *it,
		       const char *name)
{
	if (q->kind == QUANTITY_VALUE)
		return !strcmp(q->value, name);
	return !strcmp(q->name, it->name) && !strcmp(q->labels, it->labels);
}

static int add_items(struct work *w)
{
	struct comparison *c = w->c;
	struct quantities all;
	size_t i, k;
	int ret = -1;

	if (quantities_of(w->rec[0], w->rec[1], &all))
		return -1;
	c->values_left_out = all.left_out;
	c->item = calloc(all.n + COMPARE_PRIMARIES, sizeof(*c->item));
	if (!c->item)
		goto cleanup;
	for (i = 0; i < w->primaries; i++) {
		struct quantity q;

		quantity_by_name(w->primary[i], w->rec[0], w->rec[1], &q);
		if (make_item(w, &q, true, &c->item[c->items++]) < 0)
			goto cleanup;
	}
	c->primaries = c->items;
	for (i = 0; i < all.n; i++) {
		for (k = 0; k < c->primaries; k++)
			if (is_primary(&all.q[i], &c->item[k], w->primary[k]))
				break;
		if (k < c->primaries)
			continue;
		switch (make_item(w, &all.q[i], false, &c->item[c->items++])) {
		case 0:
			break;
		case 1:
			item_free(&c->item[--c->items]);
			break;
		default:
			goto cleanup;
		}
	}
	ret = 0;
cleanup:
	free(all.q);
	return ret;
}

static int worst_first(const void *a, const void *b)
{
	const struct comparison_item *x = a, *y = b;
	double cx = x->has_change ? fabs(x->change) : INFINITY;
	double cy = y->has_change ? fabs(y->change) : INFINITY;
	int order;

	if (x->primary != y->primary)
		return x->primary ? -1 : 1;
	if (x->verdict != y->verdict)
		return x->verdict < y->verdict ? -1 : 1;
	if (cx != cy && (x->has_change || y->has_change))
		return cx > cy ? -1 : 1;
	order = strcmp(x->name, y->name);
	return order ? order : strcmp(x->labels, y->labels);
}

/* ---- the status ---- */

static void sum_up(struct comparison_side *side, const struct recording *rec,
		   const struct boots *boots)
{
	bool unused = false;
	size_t i, k, missing;

	side->boots = boots->n;
	side->runs = rec->runs;
	for (i = 0; i < rec->runs; i++) {
		const struct run *run = rec->run[i];

		if (run->has_command && run->exit_status) {
			if (!side->failed_runs++)
				side->failed_status = run->exit_status;
		}
		for (k = missing = 0; k < run->trust.probes; k++) {
			const struct probe_state *p = &run->trust.probe[k];

			if (!p->mechanism)
				missing++;
			else if (p->misses == UINT64_MAX || side->lost_runs == UINT64_MAX)
				side->lost_runs = UINT64_MAX;
			else
				side->lost_runs = sat_add(side->lost_runs, p->misses, &unused);
		}
		if (missing > side->missing)
			side->missing = missing;
		side->unmatched = sat_add(side->unmatched, run->trust.unmatched, &unused);
		side->map_full = sat_add(side->map_full, run->trust.map_full, &unused);
		side->events_lost = sat_add(side->events_lost, run->trust.lost, &unused);
	}
}

static void no_verdict(struct comparison *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void no_verdict(struct comparison *c, const char *format, ...)
{
	va_list ap;

	c->status = STATUS_NONE;
	va_start(ap, format);
	vsnprintf(c->reason, sizeof(c->reason), format, ap);
	va_end(ap);
}

static void name_states(const struct comparison *c, char *out, size_t size)
{
	size_t i, len = 0;

	*out = 0;
	for (i = 0; i < c->states && len < size; i++)
		len += snprintf(out + len, size - len, "%s%s", i ? ", " : "", c->state[i].name);
}

/* What keeps any verdict from being one, in the order in which a user should mend it. */
static bool blocked(struct work *w, bool same_primaries)
{
	struct comparison *c = w->c;
	const struct comparison_side *side[2] = { &c->base, &c->new };
	char names[320];
	size_t i;

	for (i = 0; i < 2; i++) {
		if (!side[i]->failed_runs)
			continue;
		no_verdict(c, "the command failed in %zu of %zu runs of %s, with status %d first",
			   side[i]->failed_runs, side[i]->runs, w->side[i], side[i]->failed_status);
		return true;
	}
	if (!w->common) {
		no_verdict(c, "nothing in common: there is no metric or value that both files "
			   "hold");
		return true;
	}
	if (w->plan.entangled) {
		no_verdict(c, "%zu boot%s in both files, but not all of them: the sides are not "
			   "independent", w->plan.shared, w->plan.shared == 1 ? " is" : "s are");
		return true;
	}
	if (c->states && !c->states_ignored) {
		name_states(c, names, sizeof(names));
		no_verdict(c, "the machines are not alike (%s); --ignore-state compares them "
			   "all the same", names);
		return true;
	}
	if (!same_primaries) {
		c->status = STATUS_NONE;	/* choose_primaries() gave the reason */
		return true;
	}
	if (!c->primaries) {
		no_verdict(c, "there is no primary metric; record with --primary METRIC");
		return true;
	}
	return false;
}

static void full_name(const struct comparison_item *it, char *out, size_t size)
{
	snprintf(out, size, "%s%s%s%s", it->name, *it->labels ? "{" : "", it->labels,
		 *it->labels ? "}" : "");
}

static void decide(struct work *w, bool same_primaries)
{
	const struct comparison_item *unavail = NULL, *undecided = NULL;
	struct comparison *c = w->c;
	char name[200], list[400] = "";
	size_t i, worse = 0, len = 0;

	if (blocked(w, same_primaries))
		return;
	for (i = 0; i < c->primaries; i++) {
		const struct comparison_item *it = &c->item[i];

		full_name(it, name, sizeof(name));
		if (it->verdict == VERDICT_WORSE) {
			worse++;
			if (len < sizeof(list))
				len += snprintf(list + len, sizeof(list) - len, "%s%s",
						len ? ", " : "", name);
		}
		if (it->verdict == VERDICT_UNAVAILABLE && !unavail)
			unavail = it;
		if ((it->verdict == VERDICT_UNDECIDED || it->verdict == VERDICT_CHANGED) &&
		    !undecided)
			undecided = it;
	}
	if (unavail) {
		full_name(unavail, name, sizeof(name));
		no_verdict(c, "%s is unavailable %s", name, unavail->reason);
	} else if (worse) {
		c->status = STATUS_WORSE;
		snprintf(c->reason, sizeof(c->reason), "%s", list);
	} else if (undecided && undecided->verdict == VERDICT_CHANGED) {
		full_name(undecided, name, sizeof(name));
		no_verdict(c, "%s changed, and neither direction of it is better", name);
	} else if (undecided) {
		full_name(undecided, name, sizeof(name));
		no_verdict(c, "%s: %s", name, undecided->reason);
	} else {
		c->status = STATUS_HELD;
		snprintf(c->reason, sizeof(c->reason), "%s %s the same or better",
			 c->primaries > 1 ? "all primary metrics" : c->item[0].name,
			 c->primaries > 1 ? "are" : "is");
	}
}

/* How many primaries the number of boots can decide at once. */
static size_t decidable(const struct work *w)
{
	double least = pairing_least_alpha(&w->plan.pairing, w->boots[0].n, w->boots[1].n);
	size_t m = 0;

	while (m < COMPARE_PRIMARIES && least <= COMPARE_ALPHA / (m + 1) * (1 + 1e-9))
		m++;
	return m;
}

struct comparison *comparison_new(const struct recording *base, const struct recording *new,
				  const struct compare_options *options)
{
	struct work w = { .rec = { base, new }, .side = { "BASE", "NEW" } };
	struct comparison *c = calloc(1, sizeof(*c));
	bool same_primaries, ok = false;
	size_t i;

	w.c = c;
	if (!c || boots_of(base, &w.boots[0]) || boots_of(new, &w.boots[1]) ||
	    pair_boots(&w.boots[0], &w.boots[1], &w.plan) ||
	    compare_states(base, new, &w.boots[0], &w.boots[1], c->state, &c->states))
		goto cleanup;
	sum_up(&c->base, base, &w.boots[0]);
	sum_up(&c->new, new, &w.boots[1]);
	c->kind = w.plan.pairing.kind;
	c->emulated = is_emulated(&base->machine) || is_emulated(&new->machine);
	c->icount = is_icount(&base->machine) || is_icount(&new->machine);
	c->states_ignored = options && options->ignore_state;
	c->commands_differ = !same_command(base, new);
	ok = true;
	for (i = 0; i < 2; i++) {
		if (!w.rec[i]->runs) {
			no_verdict(c, "%s holds no run", w.side[i]);
			goto cleanup;
		}
		if (w.boots[i].n > STATS_BOOTS_MAX) {
			no_verdict(c, "%s holds more than %d boots: more than are compared",
				   w.side[i], STATS_BOOTS_MAX);
			goto cleanup;
		}
	}
	c->decidable = decidable(&w);
	same_primaries = choose_primaries(&w);
	if (!same_primaries)
		w.primaries = 0;
	ok = !add_items(&w);
	if (ok) {
		judge_primaries(&w);
		ok = !judge_exploratory(&w);
	}
	if (ok) {
		qsort(c->item, c->items, sizeof(*c->item), worst_first);
		decide(&w, same_primaries);
	}
cleanup:
	boots_free(&w.boots[0]);
	boots_free(&w.boots[1]);
	pairs_free(&w.plan);
	if (!ok) {
		comparison_free(c);
		return NULL;
	}
	return c;
}

void comparison_free(struct comparison *c)
{
	size_t i;

	if (!c)
		return;
	for (i = 0; i < c->items; i++)
		item_free(&c->item[i]);
	free(c->item);
	free(c);
}
