// SPDX-License-Identifier: GPL-2.0-only
/* The values of one quantity, one per boot. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/compare_parts.h"
#include "data/stats.h"

/* What the run itself tells beside its metrics: names as in the recording file. */
const struct fact run_facts[FACTS] = {
	{ "wall_ns", "ns", offsetof(struct run, wall_ns), false, REDUCE_MEDIAN },
	{ "user_ns", "ns", offsetof(struct run, user_ns), true, REDUCE_MEDIAN },
	{ "sys_ns", "ns", offsetof(struct run, sys_ns), true, REDUCE_MEDIAN },
	{ "minflt", "faults", offsetof(struct run, minflt), true, REDUCE_MEDIAN },
	{ "majflt", "faults", offsetof(struct run, majflt), true, REDUCE_MEDIAN },
	{ "maxrss_kib", "KiB", offsetof(struct run, maxrss_kib), true, REDUCE_MOST },
};

/* ---- one quantity of one run ---- */

enum outcome_of { GOT, EMPTY, UNAVAILABLE };

struct reading {
	double low, high;
	double floor, ceiling;	/* with another alignment; low is possible in any case */
	unsigned int flags;
	const char *reason;
};

static bool has_sample(const struct run *run, enum metric_id id)
{
	size_t i;

	for (i = 0; i < run->samples; i++)
		if (run->sample[i].metric->id == id)
			return true;
	return false;
}

/* Without any sample of it a metric is zero only if its events were looked at. */
static bool was_observed(const struct run *run, const struct metric *m)
{
	bool attached = false;
	size_t i;

	for (i = 0; i < run->trust.probes; i++) {
		const struct probe_state *p = &run->trust.probe[i];

		if (!(m->events & EVENT_BIT(p->event)))
			continue;
		if (!p->mechanism)
			return false;
		attached = true;
	}
	return attached;
}

/* Lost runs of the worst program that a metric needs; UINT64_MAX: unknown. */
static uint64_t misses_of(const struct run *run, const struct metric *m)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < run->trust.probes; i++) {
		const struct probe_state *p = &run->trust.probe[i];

		if (p->mechanism && p->misses > most &&
		    (m->events | m->named) & EVENT_BIT(p->event))
			most = p->misses;
	}
	return most;
}

/*
 * What the alignment of the mapping may have made of a count or, with a histogram,
 * of its mean. Fault-around cuts its windows at their own size, at page tables and
 * at the end of the mapping, so the same pages take one window more when they start
 * in the middle of one, and one for each table; and each of these windows may hold
 * any number of pages up to its size, that are then mapped or not. Alignment takes
 * no events to nothing, and makes none of nothing.
 */
static void read_alignment(const struct quantity *q, const struct recording *rec,
			   const struct run *run, const struct hist *h, struct reading *r)
{
	uint64_t per_table = rec->machine.page_size / 8;
	const char *want[LABEL_MAX] = { [LABEL_BACKING] = q->want[LABEL_BACKING] };
	double faults, pages = 0, sum, events;
	struct total asked;

	if (q->metric->align == ALIGN_NONE || !per_table ||
	    !run_total(run, METRIC_FAULT_AROUND_ASKED, want, &asked, NULL) || !asked.value)
		return;
	faults = 1 + ceil((double)asked.value / per_table);
	if (rec->machine.fault_around_bytes > 0)
		pages = faults * (rec->machine.fault_around_bytes / rec->machine.page_size);
	if (h) {
		sum = h->sum;
		events = h->count;
		r->floor = fmax((sum - pages) / (events + faults), 1);
		r->ceiling = (sum + pages) / fmax(events - faults, 1);
	} else if (q->metric->align == ALIGN_PAGES) {
		r->floor = fmax(r->low - pages, 0);
		r->ceiling = r->low + pages;
	} else if (r->low > 0) {
		r->floor = fmax(r->low - faults, 1);
		r->ceiling = r->low + faults;
	}
}

static enum outcome_of read_counter(const struct quantity *q, const struct recording *rec,
				    const struct run *run, struct reading *r)
{
	struct total t;

	if (!run_total(run, q->metric->id, q->want, &t, &r->reason))
		return UNAVAILABLE;
	r->flags = t.flags;
	r->low = t.min;
	r->high = t.flags & SAMPLE_LOWER_BOUND ? INFINITY : (double)t.max;
	read_alignment(q, rec, run, NULL, r);
	return GOT;
}

/*
 * The mean. Lost events of a batch could have had any size that was seen; those
 * of a time may have been far longer than all others, so that no useful bound
 * exists: what was seen stands for them, and the flag says so.
 */
static void read_mean(const struct quantity *q, const struct run *run, const struct hist *h,
		      struct reading *r)
{
	double mean = (double)h->sum / h->count, lost;
	uint64_t misses = misses_of(run, q->metric), least, most, low, high;
	struct total count;
	size_t i;

	r->low = r->high = mean;
	if (!(r->flags & SAMPLE_LOWER_BOUND) || q->metric->kind == KIND_TIME)
		return;
	if (misses == UINT64_MAX || !misses) {
		r->high = INFINITY;
		return;
	}
	least = UINT64_MAX;
	most = 0;
	for (i = 0; i < hist_buckets(h->kind); i++) {
		if (!h->bucket[i])
			continue;
		hist_bounds(h->kind, i, &low, &high);
		if (least == UINT64_MAX)
			least = low;
		most = high ? high - 1 : UINT64_MAX;
	}
	if (most == UINT64_MAX || least == UINT64_MAX) {
		r->high = INFINITY;
		return;
	}
	lost = misses;
	r->low = ((double)h->sum + lost * least) / (h->count + lost);
	r->high = ((double)h->sum + lost * most) / (h->count + lost);
	r->low = fmin(r->low, mean);
	r->high = fmax(r->high, mean);
	/* Some that are here may belong to another label, at worst the extreme ones. */
	if (!run_total(run, q->metric->id, q->want, &count, NULL) || count.min == count.value)
		return;
	lost = count.value - count.min;
	r->low = count.min ? fmin(r->low, ((double)h->sum - lost * most) / count.min) : least;
	r->high = count.min ? fmax(r->high, ((double)h->sum - lost * least) / count.min) : most;
	r->low = fmax(r->low, least);
	r->high = fmin(r->high, most);
}

static enum outcome_of read_hist(const struct quantity *q, const struct recording *rec,
				 const struct run *run, struct reading *r)
{
	uint64_t low, high;
	struct hist h;

	if (!run_hist(run, q->metric->id, q->want, &h, &r->flags, &r->reason))
		return UNAVAILABLE;
	if (!h.count)
		return EMPTY;
	if (q->kind == QUANTITY_PERCENTILE) {
		if (!hist_percentile(&h, q->percentile, &low, &high))
			return EMPTY;
		r->low = low;
		r->high = high ? (double)high : INFINITY;
		return GOT;
	}
	read_mean(q, run, &h, r);
	read_alignment(q, rec, run, &h, r);
	return GOT;
}

static enum outcome_of read_value(const struct quantity *q, const struct run *run,
				  struct reading *r)
{
	size_t i;

	for (i = 0; i < run->values; i++) {
		const struct run_value *v = &run->value[i];

		if (!v->name || strcmp(v->name, q->value))
			continue;
		if (strcmp(v->unit ? v->unit : "", q->value_unit)) {
			r->reason = "its unit differs between runs";
			return UNAVAILABLE;
		}
		if (v->lower_better != (q->better == BETTER_LOWER)) {
			r->reason = "its better direction differs between runs";
			return UNAVAILABLE;
		}
		if (!isfinite(v->value)) {
			r->reason = "not a finite number";
			return UNAVAILABLE;
		}
		r->low = r->high = v->value;
		return GOT;
	}
	r->reason = "the command did not give it";
	return UNAVAILABLE;
}

static enum outcome_of read_quantity(const struct quantity *q, const struct recording *rec,
				     const struct run *run, struct reading *r)
{
	const struct fact *fact;

	*r = (struct reading){ .floor = INFINITY, .ceiling = -INFINITY };
	switch (q->kind) {
	case QUANTITY_METRIC:
	case QUANTITY_PERCENTILE:
		if (!has_sample(run, q->metric->id) && !was_observed(run, q->metric)) {
			r->reason = "not recorded";
			return UNAVAILABLE;
		}
		if (q->metric->kind == KIND_COUNTER)
			return read_counter(q, rec, run, r);
		return read_hist(q, rec, run, r);
	case QUANTITY_FACT:
		fact = &run_facts[q->fact];
		if (fact->of_command && !run->has_command) {
			r->reason = "no command was run";
			return UNAVAILABLE;
		}
		r->low = r->high = *(const uint64_t *)((const char *)run + fact->offset);
		return GOT;
	case QUANTITY_VALUE:
		return read_value(q, run, r);
	case QUANTITY_UNKNOWN:
		break;
	}
	r->reason = "no such metric or value";
	return UNAVAILABLE;
}

/* ---- all runs ---- */

static double reduce(enum reduce how, double *v, size_t n)
{
	double m = v[0];
	size_t i;

	if (how == REDUCE_MEDIAN)
		return stats_median(v, n);
	for (i = 1; i < n; i++)
		m = how == REDUCE_LEAST ? fmin(m, v[i]) : fmax(m, v[i]);
	return m;
}

/* A median between two of which one has no bound has none. */
static double reduce_high(enum reduce how, double *v, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (isinf(v[i]))
			return INFINITY;
	return reduce(how, v, n);
}

static void no_value(struct evidence *e, const char *reason)
{
	if (!*e->unavailable)
		snprintf(e->unavailable, sizeof(e->unavailable), "%s", reason);
}

static bool tells(const struct quantity *q, const struct passes *passes, const struct run *run)
{
	bool metric = q->kind == QUANTITY_METRIC || q->kind == QUANTITY_PERCENTILE;

	return pass_tells(passes, run, metric, q->kind == QUANTITY_VALUE || q->time);
}

int evidence_collect(const struct quantity *q, const struct recording *rec,
		     const struct boots *boots, struct evidence *e)
{
	double *low = calloc(rec->runs + 1, sizeof(*low));
	double *high = calloc(rec->runs + 1, sizeof(*high));
	struct passes passes = recording_passes(rec);
	size_t boot, i = 0, n, empty = 0, told = 0;
	struct reading r;
	int ret = -1;

	*e = (struct evidence){ .certain = true, .least = INFINITY, .most = -INFINITY,
				.floor = -INFINITY, .ceiling = INFINITY };
	e->low = calloc(boots->n + 1, sizeof(*e->low));
	e->high = calloc(boots->n + 1, sizeof(*e->high));
	if (!low || !high || !e->low || !e->high)
		goto cleanup;
	ret = 0;
	for (boot = 0; boot < boots->n; boot++) {
		for (n = 0; i < rec->runs && boots->of_run[boots->order[i]] == boot; i++) {
			const struct run *run = rec->run[boots->order[i]];

			if (!tells(q, &passes, run))
				continue;
			told++;
			switch (read_quantity(q, rec, run, &r)) {
			case EMPTY:
				empty++;
				continue;
			case UNAVAILABLE:
				no_value(e, r.reason ? r.reason : "unknown reason");
				continue;
			case GOT:
				break;
			}
			if (r.flags & SAMPLE_SATURATED)
				no_value(e, "the count reached its largest number");
			low[n] = r.low;
			high[n++] = r.high;
			e->certain &= r.low == r.high;
			e->least = fmin(e->least, r.low);
			e->most = fmax(e->most, r.high);
			e->floor = fmax(e->floor, fmin(r.floor, r.low));
			e->ceiling = fmin(e->ceiling, fmax(r.ceiling, r.low));
			e->flags |= r.flags;
		}
		if (!n)
			continue;
		e->low[e->boots] = reduce(q->reduce, low, n);
		e->high[e->boots++] = reduce_high(q->reduce, high, n);
	}
	e->empty = empty == told;
	if (!e->empty && empty)
		no_value(e, "there were no events in some of the runs");
	if (!e->boots)
		no_value(e, "there were no events");
	else
		e->median = stats_median(e->low, e->boots);
cleanup:
	free(low);
	free(high);
	return ret;
}
