// SPDX-License-Identifier: GPL-2.0-only
/* Several runs: the median and the spread of each metric, boots apart. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "data/compare_parts.h"
#include "data/stats.h"
#include "render/report.h"
#include "render/report_rows.h"

#define FAILED_NAMED	10	/* runs that are named one by one */

/* One row over some runs. */
struct spread {
	double median, high, least, most;
	unsigned int flags;
	size_t n;
	const char *reason;	/* of a run that has no number */
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[(n - 1) / 2] == v[n / 2] ? v[n / 2] : (v[(n - 1) / 2] + v[n / 2]) / 2;
}

/* Runs of boot b; low and high are room for as many numbers as there are runs. */
static void spread_of(const struct report_row *row, const struct recording *rec,
		      const struct boots *boots, size_t b, double *low, double *high,
		      struct spread *s)
{
	struct passes passes = recording_passes(rec);
	bool time = row->value || row->form == FORM_TIME;
	struct report_number number;
	const char *reason;
	size_t i;

	*s = (struct spread){ .least = INFINITY, .most = -INFINITY };
	for (i = 0; i < rec->runs; i++) {
		if (boots->of_run[i] != b ||
		    !pass_tells(&passes, rec->run[i], row->metric, time))
			continue;
		if (!report_read(row, rec->run[i], &number, &reason)) {
			s->reason = s->reason ? s->reason : reason;
			continue;
		}
		low[s->n] = number.low;
		high[s->n++] = number.high;
		s->flags |= number.flags;
		s->least = number.value < s->least ? number.value : s->least;
		s->most = number.value > s->most ? number.value : s->most;
	}
	if (s->n) {
		s->median = median(low, s->n);
		s->high = median(high, s->n);
	}
}

static struct text number_text(const struct report_row *row, double v)
{
	struct text t;

	if (row->form == FORM_TIME && v < 100 && v != floor(v))
		snprintf(t.s, sizeof(t.s), "%.2f ns", v);
	else if (row->form == FORM_TIME)
		return text_time((uint64_t)llround(v));
	else if (row->form == FORM_COUNT && v == floor(v))
		return text_count((uint64_t)v);
	else
		snprintf(t.s, sizeof(t.s), row->form == FORM_PLAIN ? "%.6g" : "%.2f", v);
	return t;
}

static struct text median_text(const struct report_row *row, const struct spread *s)
{
	const char *before = s->flags & SAMPLE_INFERRED ? "~" : "";
	bool more = s->flags & (SAMPLE_LOWER_BOUND | SAMPLE_SATURATED);
	struct text t, v;

	if (row->percentile) {
		v = text_time((uint64_t)(isinf(s->high) ? s->median : s->high));
		snprintf(t.s, sizeof(t.s), "%s%s%.40s", before, isinf(s->high) ? ">=" : "<", v.s);
		return t;
	}
	v = number_text(row, s->median);
	if (row->form == FORM_COUNT && s->high > s->median && !more)
		snprintf(t.s, sizeof(t.s), "%s%.20s-%.20s", before, v.s,
			 number_text(row, s->high).s);
	else
		snprintf(t.s, sizeof(t.s), "%s%.40s%s", before, v.s, more ? "+" : "");
	return t;
}

static void add_spread(struct table *t, const struct report_row *row, const struct spread *s,
		       bool *used, unsigned int *flags)
{
	if (!s->n) {
		if (!s->reason)
			return;
		*used = true;
		table_cell(t, "%s", row->name);
		table_cell(t, "%s", row->labels);
		table_cell(t, "%s", "-");
		table_cell(t, "%s", "");
		table_cell(t, "%s", "");
		table_cell(t, "%s", "");
		return;
	}
	/* Another boot's. */
	if (row->metric && !(s->most > 0))
		return;
	*flags |= s->flags;
	if (row->form == FORM_COUNT && s->high > s->median)
		*flags |= SAMPLE_LOWER_BOUND << 8;
	table_cell(t, "%s", row->name);
	table_cell(t, "%s", row->labels);
	table_cell(t, "%s", median_text(row, s).s);
	table_cell(t, "%s", number_text(row, s->least).s);
	table_cell(t, "%s", number_text(row, s->most).s);
	if (s->median > 0)
		table_cell(t, "%.1f %%", 100 * (s->most - s->least) / s->median);
	else
		table_cell(t, "%s", s->most > s->least ? "-" : "0.0 %");
}

static void begin_table(struct table *t)
{
	static const char *const heads[] = { "", "", "median", "min", "max", "spread" };
	size_t i;

	*t = (struct table){ .columns = 6, .left = 2, .keep = 5 };
	for (i = 0; i < 6; i++)
		table_cell(t, "%s", heads[i]);
}

static void print_legend(FILE *f, const struct view *view, bool dash, unsigned int flags)
{
	char text[320];

	snprintf(text, sizeof(text), "%s%s%s%s",
		 flags & SAMPLE_INFERRED ? "; ~N: inferred, not observed on this kernel" : "",
		 flags & (SAMPLE_LOWER_BOUND << 8) ?
		 "; N-M: between N and M, runs were lost" : "",
		 flags & (SAMPLE_LOWER_BOUND | SAMPLE_SATURATED) ? "; N+: some may be missing" : "",
		 dash ? "; -: unavailable" : "");
	if (*text)
		text_wrap(f, view, NULL, 0, text + 2);
}

/* ---- trust ---- */

/* Runs of one machine have the same probes, unless one of them failed to attach. */
static struct probe_state *same_probe(const struct trust *sum, const struct probe_state *p)
{
	size_t k;

	for (k = 0; k < sum->probes; k++) {
		struct probe_state *q = &sum->probe[k];

		if (q->event != p->event)
			continue;
		if (!q->mechanism || !p->mechanism || !q->symbol || !p->symbol ||
		    !strcmp(q->symbol, p->symbol))
			return q;
	}
	return NULL;
}

static bool add_probe(struct trust *sum, const struct probe_state *p)
{
	struct probe_state *known = same_probe(sum, p);
	bool cut = false;

	if (!known) {
		known = reallocarray(sum->probe, sum->probes + 1, sizeof(*known));
		if (!known)
			return false;
		sum->probe = known;
		known[sum->probes++] = *p;
	} else if (known->mechanism && !p->mechanism) {
		*known = *p;		/* missing in one is missing */
	} else if (known->mechanism && (known->misses == UINT64_MAX || p->misses == UINT64_MAX)) {
		known->misses = UINT64_MAX;
	} else if (known->mechanism) {
		known->misses = sat_add(known->misses, p->misses, &cut);
	}
	return true;
}

/* What the runs of a boot lost together. False: no memory. */
static bool merge_trust(const struct recording *rec, const struct boots *boots, size_t b,
			struct trust *sum)
{
	bool cut = false;
	size_t i, p;

	*sum = (struct trust){ 0 };
	for (i = 0; i < rec->runs; i++) {
		const struct trust *t = &rec->run[i]->trust;

		if (boots->of_run[i] != b)
			continue;
		for (p = 0; p < t->probes; p++)
			if (!add_probe(sum, &t->probe[p]))
				return false;
		sum->unmatched = sat_add(sum->unmatched, t->unmatched, &cut);
		sum->map_full = sat_add(sum->map_full, t->map_full, &cut);
		sum->lost = sat_add(sum->lost, t->lost, &cut);
		sum->user_frames = sat_add(sum->user_frames, t->user_frames, &cut);
		sum->user_unnamed = sat_add(sum->user_unnamed, t->user_unnamed, &cut);
	}
	return true;
}

/* ---- the page ---- */

static void print_head(FILE *f, const struct recording *rec, const struct boots *boots,
		       const struct view *view)
{
	const struct machine *m = &rec->machine;
	char line[2048], clean[TEXT_WIDTH + 1], release[120];
	size_t len, i, width = view_width(view);

	text_colour(f, view, "1");
	fprintf(f, "%zu runs in %zu boot%s", rec->runs, boots->n, boots->n == 1 ? "" : "s");
	text_colour(f, view, NULL);
	fputc('\n', f);
	text_escape(release, sizeof(release), *m->release ? m->release : "unknown");
	snprintf(line, sizeof(line), "kernel %s, %u CPU%s, %s", release, m->cpus_online,
		 m->cpus_online == 1 ? "" : "s",
		 !strcmp(m->virt, "none") ? "bare metal" : *m->virt ? m->virt : "unknown");
	text_wrap(f, view, NULL, 0, line);
	len = snprintf(line, sizeof(line), "command:");
	for (i = 0; rec->command && rec->command[i] && len < sizeof(line); i++)
		len += snprintf(line + len, sizeof(line) - len, " %s", rec->command[i]);
	text_escape(clean, width + 1 < sizeof(clean) ? width + 1 : sizeof(clean), line);
	if (rec->command)
		fprintf(f, "%s\n", clean);
}

static void print_failed(FILE *f, const struct recording *rec)
{
	size_t i, n = 0;

	for (i = 0; i < rec->runs; i++) {
		const struct run *run = rec->run[i];

		if (!run->has_command || !run->exit_status || n++ >= FAILED_NAMED)
			continue;
		if (run->exit_status == 124)
			fprintf(f, "run %zu: killed at its time limit\n", i + 1);
		else if (run->exit_status > 128 && run->exit_status < 128 + NSIG)
			fprintf(f, "run %zu: killed by signal %d\n", i + 1, run->exit_status - 128);
		else
			fprintf(f, "run %zu: failed with status %d\n", i + 1, run->exit_status);
	}
	if (n > FAILED_NAMED)
		fprintf(f, "and %zu more runs that failed\n", n - FAILED_NAMED);
}

/* The medians of the boots, as if each were one run. */
static void collect_medians(const struct spread *of_boot, size_t boots, struct spread *s,
			    double *room)
{
	size_t b, n;

	*s = (struct spread){ .least = INFINITY, .most = -INFINITY };
	for (b = 0; b < boots; b++) {
		if (!of_boot[b].n) {
			s->reason = s->reason ? s->reason : of_boot[b].reason;
			continue;
		}
		room[s->n++] = of_boot[b].median;
		s->flags |= of_boot[b].flags;
		s->least = fmin(s->least, of_boot[b].median);
		s->most = fmax(s->most, of_boot[b].median);
	}
	if (!s->n)
		return;
	s->median = median(room, s->n);
	for (b = n = 0; b < boots; b++)
		if (of_boot[b].n)
			room[n++] = of_boot[b].high;
	s->high = median(room, n);
}

/* One line for each metric that some run could not observe. */
static void print_unavailable(FILE *f, const struct recording *rec, const struct boots *boots,
			      size_t b, size_t runs, const struct view *view)
{
	size_t m, i, k, n;

	for (m = 0; m < METRIC_MAX; m++) {
		const char *why = NULL;
		char text[400], reason[240];

		for (i = n = 0; i < rec->runs; i++) {
			const struct run *run = rec->run[i];

			for (k = 0; boots->of_run[i] == b && k < run->samples; k++)
				if (run->sample[k].metric->id == m && run->sample[k].unavailable)
					break;
			if (boots->of_run[i] != b || k == run->samples)
				continue;
			n++;
			why = why ? why : run->sample[k].unavailable;
		}
		if (!n)
			continue;
		text_escape(reason, sizeof(reason), why);
		if (n == runs)
			snprintf(text, sizeof(text), "%s: unavailable (%s)", metrics[m].name,
				 reason);
		else
			snprintf(text, sizeof(text), "%s: unavailable in %zu of %zu runs (%s)",
				 metrics[m].name, n, runs, reason);
		text_wrap(f, view, NULL, 4, text);
	}
}

static void print_boot(FILE *f, const struct recording *rec, const struct boots *boots, size_t b,
		       const struct view *view, const struct report_row *row,
		       const struct spread *spread, size_t rows)
{
	struct table t;
	struct trust trust;
	unsigned int flags = 0;
	bool dash = false;
	char id[64];
	size_t i, n = 0;

	for (i = 0; i < rec->runs; i++)
		n += boots->of_run[i] == b;
	text_escape(id, sizeof(id), *boots->id[b] ? boots->id[b] : "unknown");
	fprintf(f, "\nBoot %zu (%s): %zu run%s\n", b + 1, id, n, n == 1 ? "" : "s");
	begin_table(&t);
	for (i = 0; i < rows; i++)
		add_spread(&t, &row[i], &spread[i * boots->n + b], &dash, &flags);
	table_print(f, view, &t);
	table_free(&t);
	print_legend(f, view, dash, flags);
	print_unavailable(f, rec, boots, b, n, view);
	if (merge_trust(rec, boots, b, &trust))
		text_trust(f, &rec->machine, &trust, view);
	else
		fputs("trust: unknown (out of memory)\n", f);
	free(trust.probe);
}

static void print_over_boots(FILE *f, const struct boots *boots, const struct view *view,
			     const struct report_row *row, const struct spread *spread, size_t rows,
			     double *room)
{
	struct table t;
	struct spread s;
	unsigned int flags = 0;
	bool dash = false;
	size_t i;

	fprintf(f, "\nMedians of the %zu boots\n", boots->n);
	begin_table(&t);
	for (i = 0; i < rows; i++) {
		collect_medians(&spread[i * boots->n], boots->n, &s, room);
		add_spread(&t, &row[i], &s, &dash, &flags);
	}
	table_print(f, view, &t);
	table_free(&t);
	print_legend(f, view, dash, flags);
}

static void print_runs(FILE *f, const struct recording *rec, const struct view *view)
{
	struct boots boots = { 0 };
	struct report_row *row = NULL;
	struct spread *spread = NULL;
	double *low = NULL, *high = NULL;
	size_t rows = 0, i, b;

	if (boots_of(rec, &boots) || !report_rows(rec, view, &row, &rows))
		goto no_memory;
	/* Not told apart beyond this; the runs by themselves can be printed. */
	if (boots.n > STATS_BOOTS_MAX) {
		fprintf(f, "%zu runs in more than %d boots: too many for one report\n", rec->runs,
			STATS_BOOTS_MAX);
		goto cleanup;
	}
	low = calloc(rec->runs, sizeof(*low));
	high = calloc(rec->runs, sizeof(*high));
	spread = calloc(rows * boots.n + 1, sizeof(*spread));
	if (!low || !high || !spread)
		goto no_memory;
	for (i = 0; i < rows; i++)
		for (b = 0; b < boots.n; b++)
			spread_of(&row[i], rec, &boots, b, low, high, &spread[i * boots.n + b]);
	print_head(f, rec, &boots, view);
	print_failed(f, rec);
	if (boots.n > 1)
		print_over_boots(f, &boots, view, row, spread, rows, low);
	for (b = 0; b < boots.n; b++)
		print_boot(f, rec, &boots, b, view, row, spread, rows);
	goto cleanup;

no_memory:
	fputs("(no report: out of memory)\n", f);
cleanup:
	free(low);
	free(high);
	free(spread);
	free(row);
	boots_free(&boots);
}

static bool probed(const struct run *run, enum event_id event)
{
	size_t i;

	for (i = 0; i < run->trust.probes; i++)
		if (run->trust.probe[i].event == event)
			return true;
	return false;
}

void text_screen(FILE *f, const struct recording *rec, const struct view *view)
{
	struct view v = *view;

	v.locks = rec->runs && probed(rec->run[0], EVENT_LOCK_EVENT);
	if (v.locks && !probed(rec->run[0], EVENT_FAULT_ENTRY))
		text_lock(f, rec, &v);
	else
		text_fault(f, rec, &v);
}

void text_report(FILE *f, const struct recording *rec, const struct view *view)
{
	if (rec->runs > 1)
		print_runs(f, rec, view);
	else
		text_screen(f, rec, view);
	fflush(f);
}
