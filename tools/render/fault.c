// SPDX-License-Identifier: GPL-2.0-only
/* The default screen of `mmscope fault`: docs/mmscope-fault.1 explains it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "render/fault.h"

/* ---- rows ---- */

static size_t distinct_texts(const struct run *run, enum label label, const char **text,
			     size_t max)
{
	size_t i, j, n = 0;

	for (i = 0; i < run->samples; i++) {
		const char *t = sample_label(&run->sample[i], label);

		for (j = 0; t && j < n && strcmp(text[j], t); j++)
			;
		if (t && j == n && n < max)
			text[n++] = t;
	}
	return n;
}

static size_t values_of(const struct run *run, enum label label, const char **value, size_t max)
{
	const char *const *fixed = label_values(label);
	size_t n = 0;

	if (!fixed)
		return distinct_texts(run, label, value, max);
	while (fixed[n] && n < max) {
		value[n] = fixed[n];
		n++;
	}
	return n;
}

bool fault_rows(const struct run *run, const struct view *view, struct row **rows, size_t *n,
		enum label *first, enum label *second)
{
	const char *a[OPEN_VALUES_MAX] = { NULL }, *b[METHOD_MAX] = { NULL };
	size_t an, bn = 1, i, j;

	*first = view->by ? label_by_name(view->by) : LABEL_BACKING;
	*second = view->by ? LABEL_MAX : LABEL_METHOD;

	an = values_of(run, *first, a, sizeof(a) / sizeof(*a));
	if (*second != LABEL_MAX)
		bn = values_of(run, *second, b, METHOD_MAX);
	*n = 0;
	*rows = calloc(an ? an * bn : 1, sizeof(**rows));
	if (!*rows)
		return false;
	for (i = 0; i < an; i++) {
		for (j = 0; j < bn; j++) {
			(*rows)[*n].want[*first] = a[i];
			if (*second != LABEL_MAX)
				(*rows)[*n].want[*second] = b[j];
			++*n;
		}
	}
	return true;
}

/* ---- columns ---- */

enum cell { COUNT, REFUSED, PMDS, HOLDS, MEAN, P50, P99 };

struct column {
	const char *head;
	enum cell cell;
	enum metric_id metric;
	const char *kind;	/* value of the label "kind", or NULL */
};

static const struct column populated[] = {
	{ "minor", COUNT, METRIC_FAULT_COMPLETED, "minor" },
	{ "major", COUNT, METRIC_FAULT_COMPLETED, "major" },
	{ "PTEs", COUNT, METRIC_PTES_INSTALLED, NULL },
	{ "holds", HOLDS, METRIC_PTES_PER_HOLD, NULL },
	{ "PTEs/hold", MEAN, METRIC_PTES_PER_HOLD, NULL },
	{ "PTEs/fault", MEAN, METRIC_PTES_PER_FAULT, NULL },
	{ "PMD maps", PMDS, METRIC_PMD_MAPS, NULL },
#define LATENCY_COLUMNS	2	/* only where no table of latencies follows */
	{ "p50", P50, METRIC_FAULT_LATENCY, NULL },
	{ "p99", P99, METRIC_FAULT_LATENCY, NULL },
};

/* These do not know the method: an attempt that failed had none. */
static const struct column attempted[] = {
	{ "attempts", COUNT, METRIC_FAULT_ATTEMPTS, NULL },
	{ "completed", COUNT, METRIC_FAULT_COMPLETED, NULL },
	{ "refused", REFUSED, METRIC_FAULT_REFUSED, NULL },
	{ "retried", COUNT, METRIC_FAULT_RETRIED, NULL },
	{ "failed", COUNT, METRIC_FAULT_FAILED, NULL },
};

/* What is counted by an open label carries no other: no kind, no reason. */
static const struct column populated_open[] = {
	{ "faults", COUNT, METRIC_FAULT_COMPLETED, NULL },
	{ "PTEs", COUNT, METRIC_PTES_INSTALLED, NULL },
	{ "holds", HOLDS, METRIC_PTES_PER_HOLD, NULL },
	{ "PTEs/hold", MEAN, METRIC_PTES_PER_HOLD, NULL },
	{ "PMD maps", COUNT, METRIC_PMD_MAPS, NULL },
};

static const struct column attempted_open[] = {
	{ "attempts", COUNT, METRIC_FAULT_ATTEMPTS, NULL },
	{ "completed", COUNT, METRIC_FAULT_COMPLETED, NULL },
	{ "refused", COUNT, METRIC_FAULT_REFUSED, NULL },
	{ "retried", COUNT, METRIC_FAULT_RETRIED, NULL },
	{ "failed", COUNT, METRIC_FAULT_FAILED, NULL },
};

#define COLUMNS(table)	(sizeof(table) / sizeof(*(table)))

static bool shape_has(enum shape shape, enum label label)
{
	const enum label *list;
	size_t i, n = shape_labels(shape, &list);

	for (i = 0; i < n; i++)
		if (list[i] == label)
			return true;
	return false;
}

/* Does the column tell the label at all? Open ones are told by the samples alone. */
static bool tells(const struct run *run, const struct column *c, enum label label)
{
	enum metric_id metric = c->metric;
	size_t i;

	if (label == LABEL_MAX || shape_has(metrics[metric].shape, label) ||
	    (c->cell == PMDS && label == LABEL_METHOD))
		return true;
	for (i = 0; i < run->samples; i++)
		if (run->sample[i].metric->id == metric && sample_label(&run->sample[i], label))
			return true;
	return false;
}

static const char *const *with_kind(const struct column *c, const struct row *row,
				    const char **want)
{
	memcpy(want, row->want, sizeof(row->want));
	if (c->kind)
		want[LABEL_KIND] = c->kind;
	return want;
}

/* The number of a counter's cell; false: unavailable. */
static bool read_count(const struct run *run, const struct column *c, const char **want,
		       struct total *t)
{
	if (c->cell == REFUSED)
		return fault_refused_attempts(run, want, t);
	/* Huge pages carry no method: theirs is the one that is named after them. */
	if (c->cell == PMDS && want[LABEL_METHOD]) {
		if (strcmp(want[LABEL_METHOD], label_values(LABEL_METHOD)[METHOD_PMD])) {
			memset(t, 0, sizeof(*t));
			return true;
		}
		want[LABEL_METHOD] = NULL;
	}
	return run_total(run, c->metric, want, t, NULL);
}

/* Lost runs may hide anything anywhere: a row needs something that was seen. */
static bool is_empty(const struct run *run, const struct column *c, const struct row *row)
{
	const char *want[LABEL_MAX];
	struct total t;
	struct hist h;
	unsigned int flags;

	with_kind(c, row, want);
	if (c->cell <= PMDS)
		return !read_count(run, c, want, &t) || !t.value;
	return !run_hist(run, c->metric, want, &h, &flags, NULL) || !h.count;
}

/* *used collects the flags of all cells, *dash whether one is unavailable. */
static void add_cell(struct table *table, const struct run *run, const struct column *c,
		     const struct row *row, unsigned int *used, bool *dash)
{
	const char *want[LABEL_MAX];
	struct total t;
	struct hist h;
	unsigned int flags;
	uint64_t low = 0, high = 0;

	with_kind(c, row, want);
	if (c->cell <= PMDS) {
		if (!read_count(run, c, want, &t)) {
			*dash = true;
			table_cell(table, "-");
			return;
		}
		*used |= t.flags | (t.max > t.min ? SAMPLE_LOWER_BOUND << 8 : 0);
		table_cell(table, "%s", text_cell(&t).s);
		return;
	}
	if (!run_hist(run, c->metric, want, &h, &flags, NULL)) {
		*dash = true;
		table_cell(table, "-");
		return;
	}
	if (!h.count && c->cell != HOLDS) {	/* a mean or percentile of nothing is not 0 */
		table_cell(table, "%s", "");
		return;
	}
	switch (c->cell) {
	case HOLDS:
		run_total(run, c->metric, want, &t, NULL);
		*used |= t.flags | (t.max > t.min ? SAMPLE_LOWER_BOUND << 8 : 0);
		table_cell(table, "%s", text_cell(&t).s);
		break;
	case MEAN:
		*used |= flags & SAMPLE_INFERRED;
		table_cell(table, "%s%s", flags & SAMPLE_INFERRED ? "~" : "",
			   text_ratio(h.sum, h.count).s);
		break;
	default:
		hist_percentile(&h, c->cell == P50 ? 50 : 99, &low, &high);
		table_cell(table, "%s", text_time_below(low, high).s);
	}
}

static void print_legend(FILE *f, const struct view *view, unsigned int used, bool dash)
{
	char text[256];

	snprintf(text, sizeof(text), "%s%s%s%s",
		 used & SAMPLE_INFERRED ? "; ~N: inferred, not observed on this kernel" : "",
		 used & (SAMPLE_LOWER_BOUND << 8) ? "; N-M: between N and M, runs were lost" : "",
		 used & (SAMPLE_LOWER_BOUND | SAMPLE_SATURATED) ? "; N+: N or more" : "",
		 dash ? "; -: unavailable, see below" : "");
	if (*text)
		text_wrap(f, view, NULL, 0, text + 2);
}

/* A mean or percentile of which there is none in any row is no column. */
static bool is_shown(const struct run *run, const struct column *c, const struct row *row,
		     size_t rows)
{
	const char *want[LABEL_MAX];
	unsigned int flags;
	struct hist h;
	size_t i;

	for (i = 0; c->cell > HOLDS && i < rows; i++) {
		with_kind(c, &row[i], want);
		if (!run_hist(run, c->metric, want, &h, &flags, NULL) || h.count)
			return true;
	}
	return c->cell <= HOLDS;
}

static void print_rows(FILE *f, const struct run *run, const struct view *view,
		       const char *title, const struct column *column, size_t columns,
		       const struct row *row, size_t rows, enum label first, enum label second)
{
	const struct column *shown[TABLE_COLUMNS];
	struct table t = { 0 };
	unsigned int used = 0;
	bool dash = false, any = false;
	size_t i, c, n = 0, left = second == LABEL_MAX ? 1 : 2;

	for (c = 0; c < columns; c++)
		if (tells(run, &column[c], first) && tells(run, &column[c], second) &&
		    is_shown(run, &column[c], row, rows))
			shown[n++] = &column[c];
	t.left = left;
	t.columns = left + n;
	t.keep = n && shown[n - 1]->cell == P99 ? t.columns - 2 : 0;
	table_cell(&t, "%s", label_name(first));
	if (second != LABEL_MAX)
		table_cell(&t, "%s", label_name(second));
	for (c = 0; c < n; c++)
		table_cell(&t, "%s", shown[c]->head);

	for (i = 0; i < rows; i++) {
		char name[64];

		for (c = 0; c < n && is_empty(run, shown[c], &row[i]); c++)
			;
		if (c == n)
			continue;
		any = true;
		text_escape(name, sizeof(name), row[i].want[first]);
		table_cell(&t, "%s", name);
		if (second != LABEL_MAX)
			table_cell(&t, "%s", row[i].want[second]);
		for (c = 0; c < n; c++)
			add_cell(&t, run, shown[c], &row[i], &used, &dash);
	}
	if (any) {
		fprintf(f, "\n%s\n", title);
		table_print(f, view, &t);
		print_legend(f, view, used, dash);
	}
	table_free(&t);
}

static void print_tables(FILE *f, const struct run *run, const struct view *view,
			 bool latencies_follow)
{
	struct row *row, backing[BACKING_MAX] = { 0 };
	enum label first, second;
	size_t n, i;

	if (!fault_rows(run, view, &row, &n, &first, &second)) {
		fputs("(no tables: out of memory)\n", f);
		return;
	}
	if (first >= LABEL_OPEN) {
		print_rows(f, run, view, "Populated", populated_open, COLUMNS(populated_open),
			   row, n, first, second);
		print_rows(f, run, view, "Attempts", attempted_open, COLUMNS(attempted_open),
			   row, n, first, second);
		free(row);
		return;
	}
	print_rows(f, run, view,
		   latencies_follow ? "Populated" : "Populated (p50, p99: latency of the faults)",
		   populated, COLUMNS(populated) - (latencies_follow ? LATENCY_COLUMNS : 0),
		   row, n, first, second);
	if (second == LABEL_MAX && first != LABEL_METHOD) {
		print_rows(f, run, view, "Attempts", attempted, COLUMNS(attempted), row, n, first,
			   LABEL_MAX);
	} else if (!view->by) {
		for (i = 0; i < BACKING_MAX; i++)
			backing[i].want[LABEL_BACKING] = label_values(LABEL_BACKING)[i];
		print_rows(f, run, view, "Attempts", attempted, COLUMNS(attempted), backing,
			   BACKING_MAX, LABEL_BACKING, LABEL_MAX);
	}
	free(row);
}

/* ---- the rest of the page ---- */

/* One line for each reason, with the metrics that it takes away. */
static void print_unavailable(FILE *f, const struct run *run, const struct view *view)
{
	size_t i, j;

	for (i = 0; i < run->samples; i++) {
		const char *reason = sample_missing(&run->sample[i]);
		bool listed[METRIC_MAX] = { false };
		char text[512], clean[200];
		size_t len = 0;

		if (!reason)
			continue;
		for (j = 0; j < i; j++) {
			const char *earlier = run->sample[j].unavailable;

			if (earlier && !strcmp(earlier, reason))
				break;
		}
		if (j < i)	/* printed with the first one */
			continue;
		for (j = i; j < run->samples; j++) {
			const struct sample *s = &run->sample[j];

			if (!s->unavailable || strcmp(s->unavailable, reason) ||
			    listed[s->metric->id])
				continue;
			listed[s->metric->id] = true;
			len += snprintf(text + len, sizeof(text) - len, "%s%s", len ? ", " : "",
					s->metric->name);
			if (len >= sizeof(text))
				len = sizeof(text) - 1;
		}
		text_escape(clean, sizeof(clean), reason);
		len += snprintf(text + len, sizeof(text) - len, ": unavailable (%s)", clean);
		text_wrap(f, view, NULL, 4, text);
	}
}

static bool any_unavailable(const struct run *run)
{
	size_t i;

	for (i = 0; i < run->samples; i++)
		if (sample_missing(&run->sample[i]))
			return true;
	return false;
}

void text_unavailable(FILE *f, const struct run *run, const struct view *view)
{
	if (any_unavailable(run))
		print_unavailable(f, run, view);
}

static void print_headline(FILE *f, const struct run *run, const struct view *view)
{
	char sentence[1024], clean[1100];

	fault_headline(run, sentence, sizeof(sentence));
	text_escape(clean, sizeof(clean), sentence);
	text_wrap(f, view, "1", 0, clean);
}

static void print_cut(FILE *f, const struct view *view, const char *line)
{
	char clean[TEXT_WIDTH + 1];
	size_t width = view_width(view), len;

	text_escape(clean, width + 1 < sizeof(clean) ? width + 1 : sizeof(clean), line);
	/* An argument may end in white space; a line does not. */
	for (len = strlen(clean); len && clean[len - 1] == ' '; len--)
		;
	fprintf(f, "%.*s\n", (int)len, clean);
}

/* Where and what: a line each, cut to the width. */
void text_context(FILE *f, const struct recording *rec, const struct run *run,
		  const struct view *view)
{
	const struct machine *m = &rec->machine;
	char line[2048];
	size_t len, i;

	snprintf(line, sizeof(line), "kernel %s, %u CPU%s, %s, %s",
		 *m->release ? m->release : "unknown", m->cpus_online,
		 m->cpus_online == 1 ? "" : "s",
		 !strcmp(m->virt, "none") ? "bare metal" : *m->virt ? m->virt : "unknown",
		 text_time(run->wall_ns).s);
	print_cut(f, view, line);
	if (!rec->command)
		return;
	len = snprintf(line, sizeof(line), "command:");
	for (i = 0; rec->command[i] && len < sizeof(line); i++)
		len += snprintf(line + len, sizeof(line) - len, " %s", rec->command[i]);
	print_cut(f, view, line);
}

#define NOT_OBSERVED	"not observed: this run tells times only\n"

/* The interval's place in time: local time of its start, and its length. */
void text_interval(FILE *f, const struct run *run)
{
	time_t seconds = run->start_ns / 1000000000;
	char clock[16] = "?";
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	fprintf(f, "%s.%03" PRIu64 " + %s\n", clock, run->start_ns / 1000000 % 1000,
		text_time(run->wall_ns).s);
}

static void print_brief(FILE *f, const struct recording *rec, const struct run *run,
			const struct view *view)
{
	text_interval(f, run);
	if (!run_observed(run)) {
		fputs(NOT_OBSERVED "\n", f);
		return;
	}
	print_headline(f, run, view);
	print_tables(f, run, view, false);
	if (view->locks)
		text_lock_part(f, run, view);
	text_unavailable(f, run, view);
	text_cost(f, run, view);
	text_trust(f, &rec->machine, &run->trust, view);
	fputc('\n', f);		/* between this interval and the next */
}

void text_fault(FILE *f, const struct recording *rec, const struct view *view)
{
	const struct run *run = rec->runs ? rec->run[0] : NULL;
	size_t i;

	if (view->brief || rec->runs > 1) {
		for (i = 0; i < rec->runs; i++)
			print_brief(f, rec, rec->run[i], view);
	} else if (run && !run_observed(run)) {
		text_context(f, rec, run, view);
		fputs(NOT_OBSERVED, f);
	} else if (run) {
		print_headline(f, run, view);
		text_context(f, rec, run, view);
		print_tables(f, run, view, true);
		fault_refusals(f, run, view);
		fault_around(f, run, view);
		fault_batches(f, run, view);
		fault_teardown(f, run, view);
		fault_latencies(f, run, view);
		fault_resident(f, rec, run, view);
		fputc('\n', f);
		if (view->locks) {
			text_lock_part(f, run, view);
			fputc('\n', f);
		}
		text_unavailable(f, run, view);
		text_cost(f, run, view);
		text_trust(f, &rec->machine, &run->trust, view);
	}
	fflush(f);
}
