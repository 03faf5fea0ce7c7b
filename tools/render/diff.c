// SPDX-License-Identifier: GPL-2.0-only
/* A comparison as text, and what all its renderers share. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "render/diff.h"

#define NAME_WIDTH	34

bool diff_wanted(const struct diff_view *d, const struct comparison_item *it)
{
	size_t n = strlen(it->name);

	if (!d->metric)
		return true;
	/* NAME takes its percentiles and its labels with it; NAME{label=value} one item. */
	if (!strncmp(d->metric, it->name, n)) {
		const char *rest = d->metric + n;
		size_t labels = strlen(it->labels);

		if (!*rest)
			return true;
		if (*rest == '{' && !strncmp(rest + 1, it->labels, labels) &&
		    !strcmp(rest + 1 + labels, "}"))
			return true;
	}
	n = strlen(d->metric);
	return !strncmp(it->name, d->metric, n) && it->name[n] == '.';
}

bool diff_folded(const struct diff_view *d, const struct comparison_item *it)
{
	if (d->all || it->primary || d->metric)
		return false;
	if (it->verdict == VERDICT_SAME)
		return true;
	/* Percentiles whose bounds overlap, and what no side has, say nothing. */
	if (it->verdict == VERDICT_UNDECIDED && it->kind == EVIDENCE_BOUNDS)
		return true;
	return *it->base.unavailable && *it->new.unavailable;
}

const char *diff_result(const struct comparison *c)
{
	return !c->status ? "held" : c->status == 1 ? "worse" : "cannot tell";
}

static struct text format(const char *f, ...) __attribute__((format(printf, 1, 2)));

static struct text format(const char *f, ...)
{
	struct text t;
	va_list ap;

	va_start(ap, f);
	vsnprintf(t.s, sizeof(t.s), f, ap);
	va_end(ap);
	return t;
}

static struct text number(double v)
{
	double size = fabs(v);

	if (!isfinite(v))
		return format("-");
	if (size > 1e7 && size < 1e19)
		return format("%s%s", v < 0 ? "-" : "", text_count((uint64_t)size).s);
	if (v == floor(v) && size <= 1e7)
		return format("%.0f", v);
	if (size >= 1e19 || size < 0.01)
		return format("%.3g", v);
	return format("%.*f", size < 100 ? 2 : size < 10000 ? 1 : 0, v);
}

static bool is_ns(const struct comparison_item *it)
{
	return !strcmp(it->unit, "ns");
}

struct text diff_value(const struct comparison_item *it, const struct evidence *e)
{
	bool time = is_ns(it) && e->median >= 0 && e->median < 1e19;
	struct text t;

	if (*e->unavailable)
		return format("%s", e->empty ? "none" : "n/a");
	if (it->kind == EVIDENCE_BOUNDS && !isfinite(e->most))
		return format(">=%s", time ? text_time((uint64_t)e->least).s :
					     number(e->least).s);
	/* The width of a bucket of whole numbers is one: the value itself. */
	if (it->kind == EVIDENCE_BOUNDS && time)
		return text_time_bounds((uint64_t)e->least, (uint64_t)e->most);
	if (it->kind == EVIDENCE_BOUNDS)
		return e->most - e->least <= 1 ? number(e->least) :
		       format("%s..%s", number(e->least).s, number(e->most).s);
	t = time ? text_time((uint64_t)(e->median + 0.5)) : number(e->median);
	if (e->flags & SAMPLE_INFERRED)
		return format("~%s", t.s);
	if (!e->certain || e->flags & SAMPLE_LOWER_BOUND)
		return format("%s+", t.s);
	return t;
}

static struct text percent(double fraction)
{
	double v = 100 * fraction;

	if (fabs(v) >= 99999.5)
		return format("%+.1e%%", v);
	return format("%+.*f%%", fabs(v) < 9.995 ? 2 : fabs(v) < 999.95 ? 1 : 0, v);
}

struct text diff_change(const struct comparison_item *it)
{
	if (!it->has_change || it->verdict == VERDICT_UNAVAILABLE)
		return format("-");
	return percent(it->change);
}

static struct text interval(const struct comparison_item *it)
{
	if (it->kind == EVIDENCE_EXACT)
		return format("exact");
	if (!it->has_interval)
		return format("-");
	return format("%s .. %s", percent(it->low).s, percent(it->high).s);
}

void diff_power(const struct comparison *c, char *out, size_t size)
{
	bool blocks = c->kind == EVIDENCE_BLOCKS;
	int n;

	n = snprintf(out, size, "%zu and %zu boots%s can decide ", c->base.boots, c->new.boots,
		     blocks ? " in blocks" : ", not interleaved,");
	if (n < 0 || (size_t)n >= size)
		return;
	snprintf(out + n, size - n, "%s by statistics; one primary metric needs %d boots a side, "
		 "five need %d. Counts that are exact need %d a side.",
		 !c->decidable ? "no metric" : c->decidable == 1 ? "one primary metric" :
		 c->decidable < COMPARE_PRIMARIES ? "a few primary metrics" :
		 "five primary metrics", blocks ? 6 : 4, blocks ? 8 : 5, COMPARE_EXACT_BOOTS);
}

/* ---- text ---- */

static void print_side(FILE *f, const struct diff_view *d, size_t i,
		       const struct comparison_side *side)
{
	char name[48], release[48];

	text_escape(name, sizeof(name), d->name[i]);
	text_escape(release, sizeof(release), d->machine[i]->release);
	fprintf(f, "%s  %s: %s, %zu boot%s, %zu run%s\n", i ? "NEW " : "BASE", name,
		*release ? release : "kernel unknown", side->boots, side->boots == 1 ? "" : "s",
		side->runs, side->runs == 1 ? "" : "s");
}

static void print_states(FILE *f, const struct diff_view *d)
{
	const struct comparison *c = d->comparison;
	struct table t = { .columns = 3, .left = 3 };
	char text[64];
	size_t i;

	if (!c->states) {
		fputs("state: alike\n", f);
	} else {
		fprintf(f, "state: the machines are NOT alike%s\n",
			c->states_ignored ? " (ignored)" : "");
		table_cell(&t, "  state");
		table_cell(&t, "BASE");
		table_cell(&t, "NEW");
		for (i = 0; i < c->states; i++) {
			table_cell(&t, "  %s", c->state[i].name);
			text_escape(text, 33, c->state[i].base);
			table_cell(&t, "%s", text);
			text_escape(text, 33, c->state[i].new);
			table_cell(&t, "%s", text);
		}
		table_print(f, &d->view, &t);
		table_free(&t);
	}
	if (c->commands_differ)
		fputs("note: the commands differ\n", f);
}

static void print_verdict(FILE *f, const struct diff_view *d)
{
	static const char *const word[] = { "HELD", "WORSE", "CANNOT TELL" };
	static const char *const colour[] = { "1;32", "1;31", "1;33" };
	const struct comparison *c = d->comparison;
	size_t i = !c->status ? 0 : c->status == 1 ? 1 : 2;
	char line[sizeof(c->reason) + 32], escaped[2 * sizeof(c->reason)];

	snprintf(line, sizeof(line), "%s: %s", word[i], c->reason);
	text_escape(escaped, sizeof(escaped), line);
	text_wrap(f, &d->view, colour[i], 2, escaped);
}

static void add_row(struct table *t, const struct comparison_item *it)
{
	char name[NAME_WIDTH + 1];

	text_escape(name, sizeof(name), it->name);
	table_cell(t, "%s%s", it->primary ? "" : "  ", name);
	table_cell(t, "%s", diff_value(it, &it->base).s);
	table_cell(t, "%s", diff_value(it, &it->new).s);
	table_cell(t, "%s", diff_change(it).s);
	table_cell(t, "%s", interval(it).s);
	table_cell(t, "%s%s", verdict_name(it->verdict), it->look ? " *" : "");
}

/* The rows that have these labels ("": none), under a line that names them. */
static size_t add_group(struct table *t, const struct diff_view *d, size_t from, size_t to,
			const char *labels, size_t *folded)
{
	char name[NAME_WIDTH + 1];
	size_t rows = 0, i, column;

	for (i = from; i < to; i++) {
		const struct comparison_item *it = &d->comparison->item[i];

		if (strcmp(it->labels, labels) || !diff_wanted(d, it))
			continue;
		if (diff_folded(d, it)) {
			++*folded;
			continue;
		}
		if (*labels && !rows) {
			text_escape(name, sizeof(name), labels);
			table_cell(t, "%s%s:", it->primary ? "" : "  ", name);
			for (column = 1; column < t->columns; column++)
				table_cell(t, "%s", "");
		}
		add_row(t, it);
		rows++;
	}
	return rows;
}

/* The primaries, or all others. */
static size_t print_rows(FILE *f, const struct diff_view *d, bool primary, size_t *folded)
{
	static const char *const head[] = { "base", "new", "change", "interval", "verdict" };
	const struct comparison *c = d->comparison;
	size_t from = primary ? 0 : c->primaries, to = primary ? c->primaries : c->items;
	struct table t = { .columns = 6, .left = 1 };
	size_t rows, i, k;

	table_cell(&t, "%s", primary ? "primary" : "  exploratory");
	for (i = 0; i < sizeof(head) / sizeof(*head); i++)
		table_cell(&t, "%s", head[i]);
	rows = add_group(&t, d, from, to, "", folded);
	for (i = from; i < to; i++) {
		const char *labels = c->item[i].labels;

		for (k = from; k < i && strcmp(c->item[k].labels, labels); k++)
			;
		if (*labels && k == i)
			rows += add_group(&t, d, from, to, labels, folded);
	}
	if (rows)
		table_print(f, &d->view, &t);
	table_free(&t);
	return rows;
}

static void print_reasons(FILE *f, const struct diff_view *d)
{
	const struct comparison *c = d->comparison;
	char line[600], escaped[700];
	size_t i;

	for (i = 0; i < c->items; i++) {
		const struct comparison_item *it = &c->item[i];

		if (!*it->reason || !diff_wanted(d, it) || diff_folded(d, it) ||
		    (!it->primary && !d->metric) || strstr(c->reason, it->reason))
			continue;
		snprintf(line, sizeof(line), "%s%s%s%s: %s: %s", it->name, *it->labels ? "{" : "",
			 it->labels, *it->labels ? "}" : "", verdict_name(it->verdict), it->reason);
		text_escape(escaped, sizeof(escaped), line);
		text_wrap(f, &d->view, NULL, 2, escaped);
	}
}

static void print_trust_of(FILE *f, const char *name, const struct comparison_side *s)
{
	fprintf(f, "%s probes missing %zu, lost runs ", name, s->missing);
	if (s->lost_runs == UINT64_MAX)
		fputs("unknown", f);
	else
		fprintf(f, "%" PRIu64, s->lost_runs);
	fprintf(f, ", unmatched %" PRIu64 ", map full %" PRIu64 ", events lost %" PRIu64,
		s->unmatched, s->map_full, s->events_lost);
}

static void print_trust(FILE *f, const struct diff_view *d)
{
	const struct comparison *c = d->comparison;
	char *line = NULL;
	size_t size = 0;
	FILE *mem = open_memstream(&line, &size);

	if (!mem)
		return;
	fputs("trust: ", mem);
	print_trust_of(mem, "BASE", &c->base);
	fputs("; ", mem);
	print_trust_of(mem, "NEW", &c->new);
	if (c->icount)
		fputs("; times are instructions, counts are exact where nothing was lost", mem);
	else if (c->emulated)
		fputs("; emulated CPU: times are for screening only, counts are exact where "
		      "nothing was lost", mem);
	if (!fclose(mem))
		text_wrap(f, &d->view, NULL, 7, line);
	free(line);
}

void diff_text(FILE *f, const struct diff_view *d)
{
	const struct comparison *c = d->comparison;
	size_t folded = 0, rows, i;
	char line[400];
	bool look = false;

	print_side(f, d, 0, &c->base);
	print_side(f, d, 1, &c->new);
	print_states(f, d);
	print_verdict(f, d);
	fputc('\n', f);
	rows = print_rows(f, d, true, &folded);
	print_reasons(f, d);
	if (rows)
		fputc('\n', f);
	rows += print_rows(f, d, false, &folded);
	if (d->metric && !rows) {
		text_escape(line, 120, d->metric);
		fprintf(f, "%s is in neither file\n", line);
	}
	for (i = c->primaries; i < c->items; i++)
		look |= c->item[i].look && diff_wanted(d, &c->item[i]);
	if (look)
		fprintf(f, "*: look at it; it decides nothing (5 %% of all such marks may be "
			"chance)\n");
	if (folded)
		fprintf(f, "%zu more say nothing new (--all shows them)\n", folded);
	if (c->values_left_out)
		fputs("the files hold more names of values than are compared\n", f);
	if (rows)
		fputc('\n', f);
	if (c->kind == EVIDENCE_BOOTS && c->base.boots > 1 && c->new.boots > 1)
		text_wrap(f, &d->view, NULL, 2, "note: the boots were not recorded in turns, so a "
			  "drift of the machine between the files counts as a change");
	diff_power(c, line, sizeof(line));
	text_wrap(f, &d->view, NULL, 2, line);
	print_trust(f, d);
}
