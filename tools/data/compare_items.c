// SPDX-License-Identifier: GPL-2.0-only
/* What two recordings can be compared in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/compare_parts.h"

#define TIME_MARGIN		0.03
#define INSTRUCTIONS_MARGIN	0.01
#define COUNT_MARGIN		0.01

/* Names of values that are compared: a file may be damaged, or hostile. */
#define VALUES_MAX		256

static bool is_time_unit(const char *unit)
{
	return !strcmp(unit, "ns") || !strcmp(unit, "us") || !strcmp(unit, "ms") ||
	       !strcmp(unit, "s");
}

/* ---- which quantities there are ---- */

static void metric_quantity(struct quantity *q, const struct metric *m)
{
	*q = (struct quantity){ .kind = QUANTITY_METRIC, .metric = m, .better = m->better,
				.exact = m->exact, .time = m->kind == KIND_TIME,
				.margin = m->margin / 100.0 };
	snprintf(q->name, sizeof(q->name), "%s", m->name);
	snprintf(q->unit, sizeof(q->unit), "%s", m->unit);
}

static void fact_quantity(struct quantity *q, int fact)
{
	*q = (struct quantity){ .kind = QUANTITY_FACT, .fact = fact, .better = BETTER_LOWER,
				.time = is_time_unit(run_facts[fact].unit),
				.reduce = run_facts[fact].reduce };
	q->margin = q->time ? TIME_MARGIN : COUNT_MARGIN;
	snprintf(q->name, sizeof(q->name), "%s", run_facts[fact].name);
	snprintf(q->unit, sizeof(q->unit), "%s", run_facts[fact].unit);
}

static void value_quantity(struct quantity *q, const struct run_value *v)
{
	*q = (struct quantity){ .kind = QUANTITY_VALUE, .value = v->name,
				.value_unit = v->unit ? v->unit : "",
				.better = v->lower_better ? BETTER_LOWER : BETTER_HIGHER,
				.margin = TIME_MARGIN };
	snprintf(q->name, sizeof(q->name), "%s", v->name);
	snprintf(q->unit, sizeof(q->unit), "%s", v->unit ? v->unit : "");
	q->time = is_time_unit(q->unit);
}

/* Under icount the clock counts instructions: the least run is the one without ticks. */
static void adjust(struct quantity *q, const struct recording *base, const struct recording *new)
{
	if (!q->time || !is_icount(&base->machine) || !is_icount(&new->machine))
		return;
	if (q->kind != QUANTITY_PERCENTILE)
		q->reduce = REDUCE_LEAST;
	q->margin = INSTRUCTIONS_MARGIN;
}

static struct quantity *add(struct quantities *all)
{
	struct quantity *q = all->q;

	if (!(all->n & (all->n - 1))) {
		q = reallocarray(q, all->n ? 2 * all->n : 1, sizeof(*q));
		if (!q)
			return NULL;
		all->q = q;
	}
	return &q[all->n++];
}

#define BACKINGS_SEEN	32

struct seen {
	const char *backing[BACKINGS_SEEN];
	size_t n;
};

static bool is_seen(const struct seen *seen, const char *backing)
{
	size_t i;

	for (i = 0; i < seen->n; i++)
		if (!strcmp(seen->backing[i], backing))
			return true;
	return false;
}

/* The backings that a metric has anything of, in the order of their first sample. */
static void see_backings(const struct recording *rec, const struct metric *m, struct seen *seen)
{
	size_t i, k;

	for (i = 0; i < rec->runs; i++) {
		const struct run *run = rec->run[i];

		for (k = 0; k < run->samples; k++) {
			const struct sample *s = &run->sample[k];
			const char *backing = s->label[LABEL_BACKING];

			if (s->metric != m || !backing || s->unavailable ||
			    (m->kind == KIND_COUNTER && sample_is_zero(s)) ||
			    is_seen(seen, backing) || seen->n == BACKINGS_SEEN)
				continue;
			seen->backing[seen->n++] = backing;
		}
	}
}

static int add_metric(struct quantities *all, const struct recording *base,
		      const struct recording *new, const struct metric *m)
{
	static const double percentile[] = { 50, 99 };
	struct seen seen = { .n = 0 };
	struct quantity *q = add(all);
	size_t i;

	if (!q)
		return -1;
	metric_quantity(q, m);
	for (i = 0; m->kind != KIND_COUNTER && i < 2; i++) {
		q = add(all);
		if (!q)
			return -1;
		metric_quantity(q, m);
		q->kind = QUANTITY_PERCENTILE;
		q->percentile = percentile[i];
		snprintf(q->name, sizeof(q->name), "%s.p%.0f", m->name, percentile[i]);
	}
	see_backings(base, m, &seen);
	see_backings(new, m, &seen);
	/* One backing alone is the sum. */
	for (i = 0; seen.n > 1 && i < seen.n; i++) {
		q = add(all);
		if (!q)
			return -1;
		metric_quantity(q, m);
		q->want[LABEL_BACKING] = seen.backing[i];
		snprintf(q->labels, sizeof(q->labels), "backing=%s", seen.backing[i]);
	}
	return 0;
}

static int add_values(struct quantities *all, size_t from, const struct recording *rec)
{
	size_t i, k, j;
	struct quantity *q;

	for (i = 0; i < rec->runs; i++) {
		for (k = 0; k < rec->run[i]->values; k++) {
			const struct run_value *v = &rec->run[i]->value[k];

			if (!v->name)
				continue;
			for (j = from; j < all->n && strcmp(all->q[j].value, v->name); j++)
				;
			if (j < all->n)
				continue;
			if (all->n - from == VALUES_MAX) {
				all->left_out = true;
				return 0;
			}
			q = add(all);
			if (!q)
				return -1;
			value_quantity(q, v);
		}
	}
	return 0;
}

/* What it looked at. */
static unsigned int domains_of(const struct recording *rec)
{
	unsigned int seen = 0;
	size_t i, k;

	for (i = 0; i < rec->runs; i++)
		for (k = 0; k < rec->run[i]->samples; k++)
			seen |= rec->run[i]->sample[k].metric->domain;
	return seen;
}

int quantities_of(const struct recording *base, const struct recording *new,
		  struct quantities *all)
{
	struct quantity *q;
	unsigned int seen = DOMAIN_FAULT | domains_of(base) | domains_of(new);
	size_t i, from;
	int f;

	*all = (struct quantities){ 0 };
	for (i = 0; i < METRIC_MAX; i++)
		if (metrics[i].kind != KIND_RATIO && !(metrics[i].domain & ~seen) &&
		    add_metric(all, base, new, &metrics[i]))
			goto fail;
	for (f = 0; f < FACTS; f++) {
		q = add(all);
		if (!q)
			goto fail;
		fact_quantity(q, f);
	}
	from = all->n;
	if (add_values(all, from, base) || add_values(all, from, new))
		goto fail;
	for (i = 0; i < all->n; i++)
		adjust(&all->q[i], base, new);
	return 0;
fail:
	free(all->q);
	*all = (struct quantities){ 0 };
	return -1;
}

/* ---- by name ---- */

/* The text of a value of this label as samples hold it, or NULL. */
static const char *find_label(const struct recording *rec, enum label label, const char *text,
			      size_t len)
{
	const char *const *fixed = label_values(label);
	size_t i, k;

	for (; fixed && *fixed; fixed++)
		if (strlen(*fixed) == len && !memcmp(*fixed, text, len))
			return *fixed;
	for (i = 0; i < rec->runs; i++) {
		for (k = 0; k < rec->run[i]->samples; k++) {
			const char *value = sample_label(&rec->run[i]->sample[k], label);

			if (value && strlen(value) == len && !memcmp(value, text, len))
				return value;
		}
	}
	return NULL;
}

/* "label=value,label=value" up to the end of the text. */
static bool parse_labels(struct quantity *q, const char *text, size_t len,
			 const struct recording *base, const struct recording *new)
{
	const char *end = text + len;

	snprintf(q->labels, sizeof(q->labels), "%.*s", (int)len, text);
	while (text < end) {
		size_t n = strcspn(text, ",}"), name = strcspn(text, "=");
		const enum label *label;
		size_t i, labels = shape_labels(q->metric->shape, &label);
		const char *value;

		if (name >= n)
			return false;
		for (i = 0; i < labels; i++)
			if (strlen(label_name(label[i])) == name &&
			    !memcmp(label_name(label[i]), text, name))
				break;
		if (i == labels)
			return false;
		value = find_label(base, label[i], text + name + 1, n - name - 1);
		if (!value)
			value = find_label(new, label[i], text + name + 1, n - name - 1);
		if (!value)
			return false;
		q->want[label[i]] = value;
		text += n + 1;
	}
	return true;
}

static const struct run_value *find_value(const struct recording *rec, const char *name)
{
	size_t i, k;

	for (i = 0; i < rec->runs; i++)
		for (k = 0; k < rec->run[i]->values; k++)
			if (rec->run[i]->value[k].name &&
			    !strcmp(rec->run[i]->value[k].name, name))
				return &rec->run[i]->value[k];
	return NULL;
}

bool quantity_by_name(const char *name, const struct recording *base,
		      const struct recording *new, struct quantity *q)
{
	size_t len = strcspn(name, "{"), rest = strlen(name + len);
	const struct metric *m = NULL;
	const struct run_value *v;
	bool ok = true;
	int f;

	for (m = metrics; m < metrics + METRIC_MAX; m++)
		if (strlen(m->name) == len && !memcmp(m->name, name, len) && m->kind != KIND_RATIO)
			break;
	if (m < metrics + METRIC_MAX) {
		metric_quantity(q, m);
		if (rest)
			ok = rest > 2 && name[len + rest - 1] == '}' &&
			     parse_labels(q, name + len + 1, rest - 2, base, new);
		if (ok)
			goto found;
	}
	for (f = 0; f < FACTS; f++) {
		if (!strcmp(run_facts[f].name, name)) {
			fact_quantity(q, f);
			goto found;
		}
	}
	v = find_value(base, name);
	if (!v)
		v = find_value(new, name);
	if (v) {
		value_quantity(q, v);
		goto found;
	}
	*q = (struct quantity){ .kind = QUANTITY_UNKNOWN, .better = BETTER_NEITHER };
	snprintf(q->name, sizeof(q->name), "%s", name);
	return false;
found:
	adjust(q, base, new);
	return true;
}
