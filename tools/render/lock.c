// SPDX-License-Identifier: GPL-2.0-only
/* The default screen of `mmscope lock`: docs/mmscope-lock.1 explains it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "render/fault.h"

#define ROWS_SHOWN	20	/* locks without a class, or values of an open label */

/* One line of a table: what was waited for, or who waited. */
struct lock_line {
	const char *label[3];
	uint64_t waits, ended, ns, released;
	unsigned int flags;
	struct hist hist;
};

static int by_time(const void *pa, const void *pb)
{
	const struct lock_line *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->waits > b->waits ? -1 : a->waits < b->waits;
}

static bool same(const struct sample *s, const struct lock_line *line, enum label first)
{
	if (first >= LABEL_OPEN)
		return s->view_text == line->label[0];
	return s->label[LABEL_CLASS] == line->label[0] && s->label[LABEL_MODE] == line->label[1] &&
	       s->label[LABEL_SPACE] == line->label[2];
}

/* All samples of both metrics, by class, mode and mm or by an open label, longest first. */
static struct lock_line *gather(const struct run *run, enum label first, size_t *n)
{
	struct lock_line *lines = calloc(run->samples + 1, sizeof(*lines)), *l;
	struct hist *room = malloc(sizeof(*room));
	enum label view = first >= LABEL_OPEN ? first : LABEL_MAX;
	size_t i;

	*n = 0;
	for (i = 0; lines && room && i < run->samples; i++) {
		const struct sample *s = &run->sample[i];
		const struct hist *h;

		if ((s->metric->id != METRIC_LOCK_CONTENDED && s->metric->id != METRIC_LOCK_WAIT &&
		     (s->metric->id != METRIC_LOCK_RELEASED || view == LABEL_MAX)) ||
		    s->unavailable || sample_view(s) != view)
			continue;
		/* What may be there unseen is in the trust line, not in a row of zeroes. */
		h = s->metric->kind == KIND_TIME ? sample_hist_read(s, room) : NULL;
		if (h ? !h->count : !s->value)
			continue;
		for (l = lines; l < lines + *n && !same(s, l, first); l++)
			;
		if (l == lines + *n) {
			(*n)++;
			l->label[0] = sample_label(s, first);
			l->label[1] = s->label[LABEL_MODE];
			l->label[2] = s->label[LABEL_SPACE];
			hist_init(&l->hist, HIST_TIME);
		}
		if (s->metric->id == METRIC_LOCK_RELEASED) {
			l->released += s->value;
			continue;
		}
		l->flags |= s->flags;
		if (s->metric->id == METRIC_LOCK_CONTENDED) {
			l->flags |= s->max > s->value ? SAMPLE_LOWER_BOUND : 0;
			l->waits += s->value;
			continue;
		}
		if (!h)
			continue;
		l->ended += h->count;
		l->ns += h->sum;
		if (view == LABEL_MAX)
			hist_merge(&l->hist, h);
	}
	free(room);
	if (lines)
		qsort(lines, *n, sizeof(*lines), by_time);
	return lines;
}

static struct text percentile(const struct hist *h, double p)
{
	uint64_t low, high;

	if (hist_percentile(h, p, &low, &high))
		return text_time_below(low, high);
	return (struct text){ "-" };
}

static void print_classes(FILE *f, const struct lock_line *lines, size_t n, uint64_t all,
			  const struct view *view)
{
	static const char *const head[] = { "CLASS", "MODE", "MM", "WAITS", "WAITED", "SHARE",
					    "MEAN", "P50", "P99" };
	struct table t = { .columns = 9, .left = 3, .keep = 7 };
	size_t i;

	for (i = 0; i < t.columns; i++)
		table_cell(&t, "%s", head[i]);
	for (i = 0; i < n; i++) {
		const struct lock_line *l = &lines[i];
		bool lower = l->flags & (SAMPLE_LOWER_BOUND | SAMPLE_SATURATED);

		table_cell(&t, "%s", l->label[0]);
		table_cell(&t, "%s", l->label[1]);
		table_cell(&t, "%s", strcmp(l->label[2], "none") ? l->label[2] : "-");
		table_cell(&t, "%s%s", text_count(l->waits).s, lower ? "+" : "");
		table_cell(&t, "%s", text_time(l->ns).s);
		table_cell(&t, "%s", text_percent(l->ns, all).s);
		table_cell(&t, "%s", l->ended ? text_time(l->ns / l->ended).s : "-");
		table_cell(&t, "%s", percentile(&l->hist, 50).s);
		table_cell(&t, "%s", percentile(&l->hist, 99).s);
	}
	table_print(f, view, &t);
	table_free(&t);
}

/* Rows of one open label, the longest waits first. */
static void print_rows(FILE *f, const struct run *run, enum label label, const char *head,
		       const struct view *view)
{
	struct table t = { .columns = 4, .left = 1 };
	struct lock_line *lines;
	char clean[64];
	size_t n, i;

	lines = gather(run, label, &n);
	if (!lines || !n) {
		free(lines);
		return;
	}
	for (i = 0; i < n && !lines[i].released; i++)
		;
	t.columns += i < n;
	table_cell(&t, "%s", head);
	table_cell(&t, "WAITS");
	table_cell(&t, "WAITED");
	table_cell(&t, "MEAN");
	if (t.columns > 4)
		table_cell(&t, "MADE WAIT");
	for (i = 0; i < n && i < ROWS_SHOWN; i++) {
		text_escape(clean, sizeof(clean), lines[i].label[0]);
		table_cell(&t, "%s", clean);
		table_cell(&t, "%s%s", text_count(lines[i].waits).s,
			   lines[i].flags & SAMPLE_LOWER_BOUND ? "+" : "");
		table_cell(&t, "%s", text_time(lines[i].ns).s);
		table_cell(&t, "%s",
			   lines[i].ended ? text_time(lines[i].ns / lines[i].ended).s : "-");
		if (t.columns > 4)
			table_cell(&t, "%s", text_count(lines[i].released).s);
	}
	fputc('\n', f);
	table_print(f, view, &t);
	if (n > ROWS_SHOWN)
		fprintf(f, "(and %zu more: with --json)\n", n - ROWS_SHOWN);
	table_free(&t);
	free(lines);
}

/*
 * Where tasks waited: the innermost frame first, what they waited for and who before
 * it. What has no stack of its own has no frames.
 */
static void print_stack(FILE *f, const struct lock_line *l)
{
	char *copy = strdup(l->label[0]), *frame, clean[160];

	if (!copy) {
		fputs("(out of memory)\n", f);
		return;
	}
	frame = strrchr(copy, ';');
	text_escape(clean, sizeof(clean), frame ? frame + 1 : copy);
	fprintf(f, "\n%s waits, %s %s", text_count(l->waits).s, text_time(l->ns).s, clean);
	if (frame) {
		*frame = 0;
		text_escape(clean, sizeof(clean), strtok(copy, ";"));
		fprintf(f, " by %s", clean);
		/* strtok() has ended the name: what is before the next frame starts behind it. */
		for (copy[strlen(copy)] = ';'; (frame = strrchr(copy, ';')); *frame = 0) {
			text_escape(clean, sizeof(clean), frame + 1);
			fprintf(f, "\n    %s", clean);
		}
	}
	fputc('\n', f);
	free(copy);
}

static void print_stacks(FILE *f, const struct run *run, const struct view *view)
{
	struct lock_line *lines;
	size_t n, i;

	lines = gather(run, LABEL_STACK, &n);
	for (i = 0; lines && i < n; i++)
		print_stack(f, &lines[i]);
	free(lines);
}

void text_folded(FILE *f, const struct run *run)
{
	struct lock_line *lines;
	size_t n, i;

	lines = gather(run, LABEL_STACK, &n);
	for (i = 0; lines && i < n; i++)
		fprintf(f, "%s %" PRIu64 "\n", lines[i].label[0], lines[i].ns);
	free(lines);
}

/* The total of a metric that has one label, and value by value. */
static void print_split(FILE *f, const struct run *run, enum metric_id metric, enum label label,
			const char *what)
{
	const char *const *value = label_values(label);
	const char *want[LABEL_MAX] = { NULL };
	struct total t;
	bool any = false;

	if (!run_total(run, metric, NULL, &t, NULL) || !t.value)
		return;
	fprintf(f, "%s: %s (", what, text_total(&t).s);
	for (; *value; value++) {
		want[label] = *value;
		if (!run_total(run, metric, want, &t, NULL) || !t.value)
			continue;
		fprintf(f, "%s%s %s", any ? ", " : "", *value, text_cell(&t).s);
		any = true;
	}
	fputs(")\n", f);
}

/* Numbers that belong to no row. */
static void print_rest(FILE *f, const struct run *run, const struct view *view)
{
	struct total nested;
	struct hist *h = malloc(sizeof(*h));
	unsigned int flags;

	if (h && run_hist(run, METRIC_LOCK_INTERRUPT, NULL, h, &flags, NULL) && h->count)
		fprintf(f, "in interrupts, of no task: %s waits for spinlocks, %s\n",
			text_count(h->count).s, text_time(h->sum).s);
	if (run_total(run, METRIC_LOCK_NESTED, NULL, &nested, NULL) && nested.value)
		fprintf(f, "within another wait, whose time holds theirs: %s waits\n",
			text_total(&nested).s);
	/* Readers that the lock of their mapping did not do for. */
	print_split(f, run, METRIC_LOCK_MMAP_FAULTS, LABEL_REASON,
		    "faults that took mmap_lock, for the first or a further attempt");
	print_split(f, run, METRIC_LOCK_RELEASED, LABEL_CLASS,
		    "locks given back while others waited");
	free(h);
}

/* Of the time that faults took: what they waited for, and what is left. */
static void print_fault_parts(FILE *f, const struct run *run, const struct view *view)
{
	const char *const *part = label_values(LABEL_PART);
	struct table t = { .columns = 4, .left = 1 };
	struct hist *h = malloc(sizeof(*h));
	const char *want[LABEL_MAX] = { NULL };
	uint64_t rest, faults;
	bool lower, some_lower = false;
	struct total waited;
	unsigned int flags;

	if (!h || !run_hist(run, METRIC_FAULT_LATENCY, NULL, h, &flags, NULL) || !h->count)
		goto cleanup;
	rest = h->sum;
	faults = h->count;
	table_cell(&t, "OF FAULTS");
	table_cell(&t, "TIME");
	table_cell(&t, "SHARE");
	table_cell(&t, "A FAULT");
	for (; *part; part++) {
		want[LABEL_PART] = *part;
		if (!run_total(run, METRIC_FAULT_WAITED, want, &waited, NULL) || !waited.value)
			continue;
		lower = waited.flags & SAMPLE_LOWER_BOUND;
		some_lower |= lower;
		table_cell(&t, "%s", *part);
		table_cell(&t, "%s%s", text_time(waited.value).s, lower ? "+" : "");
		table_cell(&t, "%s", text_percent(waited.value, h->sum).s);
		table_cell(&t, "%s", text_time(waited.value / faults).s);
		rest -= waited.value < rest ? waited.value : rest;
	}
	table_cell(&t, some_lower ? "rest, at most" : "rest");
	table_cell(&t, "%s", text_time(rest).s);
	table_cell(&t, "%s", text_percent(rest, h->sum).s);
	table_cell(&t, "%s", text_time(rest / faults).s);
	table_cell(&t, "all");
	table_cell(&t, "%s", text_time(h->sum).s);
	table_cell(&t, "%s", text_percent(h->sum, h->sum).s);
	table_cell(&t, "%s", text_time(h->sum / faults).s);
	table_print(f, view, &t);
	fputc('\n', f);
	table_free(&t);
cleanup:
	free(h);
}

/*
 * Of the waits without a class, those whose lock has no name either: a text in brackets
 * stands for all of them. Nothing is said where locks are not told at all.
 */
static void print_unnamed(FILE *f, const struct run *run, uint64_t all)
{
	uint64_t waits = 0, ns = 0;
	struct lock_line *lines;
	size_t n, i;

	lines = gather(run, LABEL_LOCK, &n);
	for (i = 0; lines && i < n; i++) {
		if (*lines[i].label[0] != '(')
			continue;
		waits += lines[i].waits;
		ns += lines[i].ns;
	}
	if (lines && n)
		fprintf(f, ", of these without a name %s waits, %s", text_count(waits).s,
			text_percent(ns, all).s);
	free(lines);
}

static void print_headline(FILE *f, const struct run *run, const struct lock_line *lines,
			   size_t n, uint64_t all)
{
	uint64_t waits = 0, unnamed = 0, unnamed_waits = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		waits += lines[i].waits;
		if (strcmp(lines[i].label[0], "other"))
			continue;
		unnamed += lines[i].ns;
		unnamed_waits += lines[i].waits;
	}
	fprintf(f, "%s waits for locks, %s; %s (%s) has %s of it; without a class %s waits, %s",
		text_count(waits).s, text_time(all).s, lines[0].label[0], lines[0].label[1],
		text_percent(lines[0].ns, all).s, text_count(unnamed_waits).s,
		text_percent(unnamed, all).s);
	print_unnamed(f, run, all);
	fputc('\n', f);
}

void text_lock_part(FILE *f, const struct run *run, const struct view *view)
{
	static const struct {
		enum label label;
		const char *head;
	} open[] = {
		{ LABEL_LOCK, "LOCK WITHOUT A CLASS" },
		{ LABEL_COMM, "NAME OF WHO WAITED" },
		{ LABEL_PID, "WHO WAITED" },
		{ LABEL_OWNER, "WHOSE ADDRESS SPACE" },
		{ LABEL_HOLDER, "WHO HELD IT" },
	};
	struct lock_line *lines;
	uint64_t all = 0;
	size_t n, i;

	print_fault_parts(f, run, view);
	lines = gather(run, LABEL_CLASS, &n);
	if (!lines) {
		fputs("(out of memory)\n", f);
		return;
	}
	for (i = 0; i < n; i++)
		all += lines[i].ns;
	text_colour(f, view, "1");
	if (n)
		print_headline(f, run, lines, n, all);
	else
		fputs("no waits for locks\n", f);
	text_colour(f, view, NULL);
	if (n)
		print_classes(f, lines, n, all, view);
	free(lines);
	for (i = 0; i < sizeof(open) / sizeof(*open); i++)
		print_rows(f, run, open[i].label, open[i].head, view);
	print_stacks(f, run, view);
	print_rest(f, run, view);
}

void text_lock(FILE *f, const struct recording *rec, const struct view *view)
{
	size_t i;

	for (i = 0; i < rec->runs; i++) {
		const struct run *run = rec->run[i];
		bool brief = view->brief || rec->runs > 1;

		if (brief)
			text_interval(f, run);
		else
			text_context(f, rec, run, view);
		text_lock_part(f, run, view);
		text_unavailable(f, run, view);
		text_cost(f, run, view);
		text_trust(f, &rec->machine, &run->trust, view);
		if (brief)
			fputc('\n', f);
	}
	fflush(f);
}
