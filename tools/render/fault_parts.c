// SPDX-License-Identifier: GPL-2.0-only
/* The sections below the tables: refusals, fault-around, batches, latencies. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "render/fault.h"

static const char *value_name(enum label label, unsigned int value)
{
	return label_values(label)[value];
}

/* ---- refusals, and what the extra attempts cost ---- */

static void refusals_of(FILE *f, const struct run *run, const struct view *view,
			enum reason reason)
{
	const char *want[LABEL_MAX] = { NULL };
	struct total all, t;
	char text[512];
	size_t b, len;

	want[LABEL_REASON] = value_name(LABEL_REASON, reason);
	if (!run_total(run, METRIC_FAULT_REFUSED, want, &all, NULL) || !all.value)
		return;
	len = snprintf(text, sizeof(text), "  %s %s:", text_total(&all).s, want[LABEL_REASON]);
	for (b = 0; b < BACKING_MAX; b++) {
		want[LABEL_BACKING] = value_name(LABEL_BACKING, b);
		if (!run_total(run, METRIC_FAULT_REFUSED, want, &t, NULL) || !t.value)
			continue;
		len += snprintf(text + len, sizeof(text) - len, "%s %s",
				text[len - 1] == ':' ? "" : ",", want[LABEL_BACKING]);
		if (t.value != all.value)
			len += snprintf(text + len, sizeof(text) - len, " %s", text_total(&t).s);
	}
	if (!fault_is_attempt(reason))
		snprintf(text + len, sizeof(text) - len, " (before any attempt)");
	fputs("  ", f);
	text_wrap(f, view, NULL, 4, text + 2);
}

static void print_cost(FILE *f, const struct run *run)
{
	static const enum outcome extra[] = { OUTCOME_REFUSED, OUTCOME_RETRIED };
	const char *want[LABEL_MAX] = { NULL };
	unsigned int flags, fault_flags;
	struct hist faults, h;
	bool known;
	size_t i;

	known = run_hist(run, METRIC_FAULT_LATENCY, NULL, &faults, &fault_flags, NULL);
	for (i = 0; i < sizeof(extra) / sizeof(*extra); i++) {
		want[LABEL_OUTCOME] = value_name(LABEL_OUTCOME, extra[i]);
		if (!run_hist(run, METRIC_FAULT_ATTEMPT_LATENCY, want, &h, &flags, NULL) ||
		    !h.count)
			continue;
		fprintf(f, "  %s %s attempt%s took %s%s", text_count(h.count).s,
			want[LABEL_OUTCOME], h.count == 1 ? "" : "s",
			flags & SAMPLE_LOWER_BOUND ? "at least " : "", text_time(h.sum).s);
		/* A fault that is still to be completed is no part of the whole. */
		if (known && h.sum <= faults.sum)
			fprintf(f, ", %s of the %s in completed faults",
				text_percent(h.sum, faults.sum).s, text_time(faults.sum).s);
		fputc('\n', f);
	}
}

void fault_refusals(FILE *f, const struct run *run, const struct view *view)
{
	struct total refused, retried;
	bool any;
	size_t r;

	any = run_total(run, METRIC_FAULT_REFUSED, NULL, &refused, NULL) && refused.value;
	any |= run_total(run, METRIC_FAULT_RETRIED, NULL, &retried, NULL) && retried.value;
	if (!any)
		return;
	fputs("\nRefused under the per-VMA lock, and retried\n", f);
	for (r = 0; r < REASON_MAX; r++)
		refusals_of(f, run, view, r);
	if (retried.value)
		fprintf(f, "  %s retried: dropped the lock to wait\n", text_total(&retried).s);
	print_cost(f, run);
}

/* ---- fault-around ---- */

/* Add the row of one backing; true when large folios reached beyond the windows. */
static bool around_row(struct table *table, const struct run *run, enum backing backing)
{
	const char *want[LABEL_MAX] = { NULL };
	struct total asked, mapped, present;
	bool know_mapped, know_present, beyond = false, exact;
	uint64_t used;

	want[LABEL_BACKING] = value_name(LABEL_BACKING, backing);
	if (!run_total(run, METRIC_FAULT_AROUND_ASKED, want, &asked, NULL) || !asked.value)
		return false;
	know_mapped = run_total(run, METRIC_FAULT_AROUND_MAPPED, want, &mapped, NULL);
	know_present = run_total(run, METRIC_FAULT_AROUND_PRESENT, want, &present, NULL);

	table_cell(table, "%s", want[LABEL_BACKING]);
	table_cell(table, "%s", text_cell(&asked).s);
	table_cell(table, "%s", know_mapped ?
		   text_cell(&mapped).s : "-");
	table_cell(table, "%s", know_present ?
		   text_cell(&present).s : "-");

	/* A remainder of uncertain numbers says nothing. */
	exact = know_mapped && know_present && asked.max == asked.min &&
		mapped.max == mapped.min && present.max == present.min &&
		!((asked.flags | mapped.flags | present.flags) & SAMPLE_LOWER_BOUND);
	used = mapped.value + present.value;
	if (know_mapped && used > asked.value)
		beyond = true;
	if (exact && !beyond)
		table_cell(table, "%s", text_count(asked.value - used).s);
	else
		table_cell(table, "%s", beyond ? "?" : "-");
	table_cell(table, "%s", know_mapped ? text_percent(mapped.value, asked.value).s : "-");
	return beyond;
}

/* Only with --yield: what the windows would have held besides, and its use. */
static void fault_yield(FILE *f, const struct run *run, const struct view *view)
{
	struct table t = { .columns = 4, .left = 1 };
	const char *want[LABEL_MAX] = { NULL };
	struct total extra, touched;
	size_t b;

	if (!run_total(run, METRIC_FAULT_AROUND_EXTRA, NULL, &extra, NULL) || !extra.value)
		return;
	fputs("\nWhat fault-around would gain (it was off: each touched page faulted)\n", f);
	table_cell(&t, "backing");
	table_cell(&t, "more pages");
	table_cell(&t, "touched later");
	table_cell(&t, "yield");
	for (b = 0; b < BACKING_MAX; b++) {
		want[LABEL_BACKING] = value_name(LABEL_BACKING, b);
		run_total(run, METRIC_FAULT_AROUND_EXTRA, want, &extra, NULL);
		run_total(run, METRIC_FAULT_AROUND_TOUCHED, want, &touched, NULL);
		if (!extra.value)
			continue;
		table_cell(&t, "%s", want[LABEL_BACKING]);
		table_cell(&t, "%s", text_total(&extra).s);
		table_cell(&t, "%s", text_total(&touched).s);
		table_cell(&t, "%s", text_percent(touched.value, extra.value).s);
	}
	table_print(f, view, &t);
	table_free(&t);
}

void fault_around(FILE *f, const struct run *run, const struct view *view)
{
	struct table t = { .columns = 6, .left = 1 };
	bool beyond = false;
	struct total asked;
	size_t b;

	fault_yield(f, run, view);
	if (!run_total(run, METRIC_FAULT_AROUND_ASKED, NULL, &asked, NULL) || !asked.value)
		return;
	fputs("\nFault-around (pages of the windows)\n", f);
	table_cell(&t, "backing");
	table_cell(&t, "asked");
	table_cell(&t, "mapped");
	table_cell(&t, "present");
	table_cell(&t, "not available");
	table_cell(&t, "mapped/asked");
	for (b = 0; b < BACKING_MAX; b++)
		beyond |= around_row(&t, run, b);
	table_print(f, view, &t);
	table_free(&t);
	if (beyond)
		text_wrap(f, view, NULL, 0,
			  "?: large folios were mapped beyond their windows, so what was not "
			  "available inside cannot be told");
}

/* ---- batches ---- */

#define BATCH_LINES	40	/* more than that are merged by powers of two */
#define BAR_COLUMNS	40

struct line {
	uint64_t low, high, count;	/* high 0: overflow */
};

static size_t hist_lines(const struct hist *h, struct line *line, size_t max, bool merge)
{
	uint64_t low, high;
	size_t i, n = 0;

	for (i = 0; i < hist_buckets(h->kind); i++) {
		if (!h->bucket[i])
			continue;
		hist_bounds(h->kind, i, &low, &high);
		if (merge && high && low > 8) {
			low = 1ULL << hist_log2(low);
			high = low << 1;
		}
		if (n && line[n - 1].low == low) {
			line[n - 1].count += h->bucket[i];
			continue;
		}
		if (n == max)
			return max + 1;
		line[n++] = (struct line){ low, high, h->bucket[i] };
	}
	return n;
}

static struct text bounds(const struct line *l)
{
	struct text t;

	if (!l->high)
		snprintf(t.s, sizeof(t.s), ">= %" PRIu64, l->low);
	else if (l->high == l->low + 1)
		snprintf(t.s, sizeof(t.s), "%" PRIu64, l->low);
	else
		snprintf(t.s, sizeof(t.s), "[%" PRIu64 ", %" PRIu64 ")", l->low, l->high);
	return t;
}

static void print_batches(FILE *f, const struct view *view, const struct hist *h)
{
	struct line line[BATCH_LINES];
	size_t n = hist_lines(h, line, BATCH_LINES, false), i, wide = 5, count = 5;
	bool merged = n > BATCH_LINES;
	uint64_t max = 0;

	if (merged)
		n = hist_lines(h, line, BATCH_LINES, true);
	for (i = 0; i < n; i++) {
		size_t w = strlen(bounds(&line[i]).s), c = strlen(text_count(line[i].count).s);

		wide = w > wide ? w : wide;
		count = c > count ? c : count;
		max = line[i].count > max ? line[i].count : max;
	}
	for (i = 0; i < n; i++) {
		fprintf(f, "  %*s  %*s ", (int)wide, bounds(&line[i]).s, (int)count,
			text_count(line[i].count).s);
		text_colour(f, view, "36");
		text_bar(f, view, line[i].count, max, BAR_COLUMNS);
		text_colour(f, view, NULL);
		fputc('\n', f);
	}
	if (merged)
		fputs("  sizes above 8 are merged here; --json has each\n", f);
}

void fault_batches(FILE *f, const struct run *run, const struct view *view)
{
	const char *want[LABEL_MAX] = { NULL };
	struct total holds;
	unsigned int flags;
	struct hist h;
	size_t m;

	for (m = 0; m < METHOD_MAX; m++) {
		want[LABEL_METHOD] = value_name(LABEL_METHOD, m);
		if (!run_hist(run, METRIC_PTES_PER_HOLD, want, &h, &flags, NULL) || !h.count)
			continue;
		run_total(run, METRIC_PTES_PER_HOLD, want, &holds, NULL);
		fprintf(f, "\nPTEs per page-table-lock hold, %s%s: %s hold%s, mean %s\n",
			want[LABEL_METHOD], flags & SAMPLE_INFERRED ? " (inferred)" : "",
			text_total(&holds).s, h.count == 1 ? "" : "s",
			text_ratio(h.sum, h.count).s);
		print_batches(f, view, &h);
	}
}

/* ---- latencies ---- */

static const double percentiles[] = { 50, 90, 99, 100 };

/* "100" is the bucket that holds the largest value. */
static void latency_cells(struct table *t, const struct hist *h, const struct total *count)
{
	uint64_t low = 0, high = 0;
	size_t i;

	table_cell(t, "%s", text_cell(count).s);
	for (i = 0; i < sizeof(percentiles) / sizeof(*percentiles); i++) {
		hist_percentile(h, percentiles[i], &low, &high);
		table_cell(t, "%s", text_time_bounds(low, high).s);
	}
}

/* Of whole calls, not of faults. */
static const struct {
	enum metric_id metric;
	const char *name;
} whole[] = {
	{ METRIC_MUNMAP_LATENCY, "munmap" },
	{ METRIC_EXIT_LATENCY, "address space torn down" },
};

static void latency_head(struct table *t, const char *title)
{
	table_cell(t, "%s", title);
	table_cell(t, "count");
	table_cell(t, "p50");
	table_cell(t, "p90");
	table_cell(t, "p99");
	table_cell(t, "max");
}

void fault_latencies(FILE *f, const struct run *run, const struct view *view)
{
	struct table t = { .columns = 6, .left = 1 };
	const char *want[LABEL_MAX] = { NULL };
	enum label first, second;
	struct row *row = NULL;
	struct total count;
	struct hist h;
	unsigned int flags;
	size_t n, i, lines = 0, rows, attempts;

	if (!fault_rows(run, view, &row, &n, &first, &second)) {
		fputs("(no latencies: out of memory)\n", f);
		return;
	}
	latency_head(&t, "Latency");
	for (i = 0; i < n; i++) {
		char name[48];

		if (!run_hist(run, METRIC_FAULT_LATENCY, row[i].want, &h, &flags, NULL) || !h.count)
			continue;
		text_escape(name, sizeof(name), row[i].want[first]);
		if (second == LABEL_MAX)
			table_cell(&t, "%s", name);
		else
			table_cell(&t, "%s %s", name, row[i].want[second]);
		run_total(run, METRIC_FAULT_LATENCY, row[i].want, &count, NULL);
		latency_cells(&t, &h, &count);
		lines++;
	}
	for (i = 0, rows = lines; i < OUTCOME_MAX; i++) {
		want[LABEL_OUTCOME] = value_name(LABEL_OUTCOME, i);
		if (!run_hist(run, METRIC_FAULT_ATTEMPT_LATENCY, want, &h, &flags, NULL) ||
		    !h.count)
			continue;
		run_total(run, METRIC_FAULT_ATTEMPT_LATENCY, want, &count, NULL);
		table_cell(&t, "attempts %s", want[LABEL_OUTCOME]);
		latency_cells(&t, &h, &count);
		lines++;
	}
	attempts = lines;
	for (i = 0; i < sizeof(whole) / sizeof(*whole); i++) {
		if (!run_hist(run, whole[i].metric, NULL, &h, &flags, NULL) || !h.count)
			continue;
		run_total(run, whole[i].metric, NULL, &count, NULL);
		table_cell(&t, "%s", whole[i].name);
		latency_cells(&t, &h, &count);
		lines++;
	}
	if (lines) {
		fputc('\n', f);
		table_print(f, view, &t);
	}
	/* One attempt and no more is what a latency without attempts is of. */
	if (attempts > rows)
		fputs("attempts: of faults that took more than one, or failed\n", f);
	table_free(&t);
	free(row);
}
