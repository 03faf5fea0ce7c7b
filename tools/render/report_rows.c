// SPDX-License-Identifier: GPL-2.0-only
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render/report_rows.h"

#define ROWS_MAX	4096	/* a file may be hostile */

static const struct {
	const char *name;
	enum report_form form;
	bool of_command;
	size_t offset;
} facts[] = {
	{ "wall", FORM_TIME, false, offsetof(struct run, wall_ns) },
	{ "user", FORM_TIME, true, offsetof(struct run, user_ns) },
	{ "sys", FORM_TIME, true, offsetof(struct run, sys_ns) },
	{ "minflt", FORM_COUNT, true, offsetof(struct run, minflt) },
	{ "majflt", FORM_COUNT, true, offsetof(struct run, majflt) },
	{ "maxrss KiB", FORM_COUNT, true, offsetof(struct run, maxrss_kib) },
	{ "AnonHugePages KiB", FORM_COUNT, false, offsetof(struct run, anon_huge_kib) },
};

struct list {
	struct report_row *row;
	size_t n;
	bool failed;
};

static struct report_row *add(struct list *l)
{
	struct report_row *grown = l->row;

	if (l->n == ROWS_MAX)
		return NULL;
	if (!(l->n & (l->n - 1))) {
		grown = reallocarray(grown, l->n ? 2 * l->n : 1, sizeof(*grown));
		if (!grown) {
			l->failed = true;
			return NULL;
		}
		l->row = grown;
	}
	grown += l->n++;
	*grown = (struct report_row){ .fact = -1 };
	return grown;
}

static void add_facts(struct list *l, const struct recording *rec)
{
	struct report_row *row;
	size_t i, r;

	for (i = 0; i < sizeof(facts) / sizeof(*facts); i++) {
		for (r = 0; r < rec->runs; r++)
			if (!facts[i].of_command || rec->run[r]->has_command)
				break;
		row = r < rec->runs ? add(l) : NULL;
		if (!row)
			continue;
		snprintf(row->name, sizeof(row->name), "%s", facts[i].name);
		row->form = facts[i].form;
		row->fact = i;
	}
}

static void add_values(struct list *l, const struct recording *rec)
{
	size_t first = l->n, r, i, k;
	struct report_row *row;

	for (r = 0; r < rec->runs; r++) {
		for (i = 0; i < rec->run[r]->values; i++) {
			const struct run_value *v = &rec->run[r]->value[i];

			for (k = first; k < l->n && strcmp(l->row[k].value, v->name); k++)
				;
			row = k < l->n ? NULL : add(l);
			if (!row)
				continue;
			row->value = v->name;
			row->form = !strcmp(v->unit, "ns") ? FORM_TIME : FORM_PLAIN;
			text_escape(row->name, sizeof(row->name), v->name);
			if (row->form == FORM_PLAIN)
				text_escape(row->labels, sizeof(row->labels), v->unit);
		}
	}
}

static bool shape_has(enum shape shape, enum label label)
{
	const enum label *list;
	size_t i, n = shape_labels(shape, &list);

	for (i = 0; i < n; i++)
		if (list[i] == label)
			return true;
	return false;
}

/* The labels that a metric's rows are told apart by; LABEL_MAX: none. */
static void row_labels(const struct metric *m, const struct view *view, enum label *a,
		       enum label *b)
{
	static const enum label seconds[] = { LABEL_METHOD, LABEL_REASON, LABEL_OUTCOME,
					      LABEL_MODE, LABEL_PART };
	size_t i;

	*a = shape_has(m->shape, LABEL_CLASS) ? LABEL_CLASS : LABEL_BACKING;
	*b = LABEL_MAX;
	if (view->by)
		*a = label_by_name(view->by);
	if (*a < LABEL_OPEN && !shape_has(m->shape, *a))
		*a = LABEL_MAX;
	for (i = 0; !view->by && i < sizeof(seconds) / sizeof(*seconds); i++)
		if (shape_has(m->shape, seconds[i]))
			*b = seconds[i];
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static void name_row(struct report_row *row, enum label a, enum label b)
{
	const char *x = a < LABEL_MAX ? row->want[a] : NULL;
	const char *y = b < LABEL_MAX ? row->want[b] : NULL;
	char text[192];

	snprintf(row->name, sizeof(row->name), "%s", row->metric->name);
	if (row->percentile)
		snprintf(row->name, sizeof(row->name), "%s.p%u", row->metric->name,
			 row->percentile);
	snprintf(text, sizeof(text), "%.90s%s%.90s", x ? x : "", x && y ? " " : "", y ? y : "");
	text_escape(row->labels, sizeof(row->labels), text);
}

static void add_sample(struct list *l, size_t first, const struct sample *s,
		       const struct view *view)
{
	static const unsigned int percentiles[] = { 0, 50, 99 };
	const struct metric *m = s->metric;
	struct report_row *row;
	enum label a, b;
	size_t i, k;

	row_labels(m, view, &a, &b);
	/* Views by an open label are rows of their own, or none. */
	if (s->unavailable || sample_view(s) != (a >= LABEL_OPEN ? a : LABEL_MAX))
		return;
	/* Lost runs may hide anything anywhere: a row needs something that was seen. */
	if (!s->value && !(s->hist && s->hist->count) && !(s->packed && s->packed->count))
		return;
	for (k = first; k < l->n; k++) {
		row = &l->row[k];
		if (row->metric == m &&
		    (a == LABEL_MAX || same(row->want[a], sample_label(s, a))) &&
		    (b == LABEL_MAX || same(row->want[b], sample_label(s, b))))
			return;
	}
	for (i = 0; i < (m->kind == KIND_TIME ? 3 : 1); i++) {
		row = add(l);
		if (!row)
			return;
		row->metric = m;
		row->form = m->kind == KIND_TIME ? FORM_TIME :
			    m->kind == KIND_BATCH ? FORM_MEAN : FORM_COUNT;
		row->percentile = percentiles[i];
		if (a < LABEL_MAX)
			row->want[a] = sample_label(s, a);
		if (b < LABEL_MAX)
			row->want[b] = sample_label(s, b);
		name_row(row, a, b);
	}
}

/* In the order of the table; equal ones as they were found. */
static void sort_rows(struct report_row *row, size_t n)
{
	struct report_row moved;
	size_t i, k;

	for (i = 1; i < n; i++) {
		moved = row[i];
		for (k = i; k && row[k - 1].metric > moved.metric; k--)
			row[k] = row[k - 1];
		row[k] = moved;
	}
}

bool report_rows(const struct recording *rec, const struct view *view, struct report_row **rows,
		 size_t *n)
{
	struct list l = { 0 };
	size_t first, r, i;

	add_facts(&l, rec);
	add_values(&l, rec);
	first = l.n;
	for (r = 0; r < rec->runs; r++)
		for (i = 0; i < rec->run[r]->samples; i++)
			add_sample(&l, first, &rec->run[r]->sample[i], view);
	sort_rows(l.row + first, l.n - first);
	*rows = l.row;
	*n = l.n;
	return !l.failed;
}

/* ---- numbers ---- */

static bool read_hist(const struct report_row *row, const struct run *run,
		      struct report_number *number, const char **reason)
{
	struct hist h;
	uint64_t low, high;

	if (!run_hist(run, row->metric->id, row->want, &h, &number->flags, reason))
		return false;
	if (!h.count)
		return false;
	if (!row->percentile) {
		number->value = number->low = number->high = (double)h.sum / (double)h.count;
		return true;
	}
	if (!hist_percentile(&h, row->percentile, &low, &high))
		return false;
	number->value = number->low = low;
	number->high = high ? (double)high : INFINITY;
	return true;
}

bool report_read(const struct report_row *row, const struct run *run, struct report_number *number,
		 const char **reason)
{
	struct total t;
	size_t i;

	*reason = NULL;
	number->flags = 0;
	if (row->metric && row->metric->kind != KIND_COUNTER)
		return read_hist(row, run, number, reason);
	if (row->metric) {
		if (!run_total(run, row->metric->id, row->want, &t, reason))
			return false;
		number->value = t.value;
		number->low = t.min;
		number->high = t.max;
		number->flags = t.flags;
		return true;
	}
	if (row->value) {
		for (i = 0; i < run->values && strcmp(run->value[i].name, row->value); i++)
			;
		if (i == run->values || !isfinite(run->value[i].value))
			return false;
		number->value = number->low = number->high = run->value[i].value;
		return true;
	}
	if (facts[row->fact].of_command && !run->has_command)
		return false;
	number->value = number->low = number->high =
		(double)*(const uint64_t *)((const char *)run + facts[row->fact].offset);
	return true;
}
