// SPDX-License-Identifier: GPL-2.0-only
/*
 * A comparison as a table for a mail: at most LKML_WIDTH columns, plain ASCII but
 * for names, base and new with the change between them, the name last.
 */
#include <stdlib.h>
#include <string.h>

#include "render/diff.h"

#define VALUE_WIDTH	12
#define CHANGE_WIDTH	9
#define NAME_WIDTH	(LKML_WIDTH - 2 * VALUE_WIDTH - CHANGE_WIDTH - 8)

static char mark(const struct comparison_item *it)
{
	static const char marks[] = "!~??+=";

	return marks[it->verdict];
}

/* No blanks inside: a column of a mail is narrow, and people cut it into fields. */
static struct text value(const struct comparison_item *it, const struct evidence *e)
{
	struct text t = diff_value(it, e);
	char *from, *to;

	for (from = to = t.s; *from; from++)
		if (*from != ' ')
			*to++ = *from;
	*to = 0;
	if (strlen(t.s) > VALUE_WIDTH)		/* the upper bound alone */
		t = text_time_below((uint64_t)e->least, (uint64_t)e->most);
	return t;
}

static void print_row(FILE *f, const struct comparison_item *it)
{
	char name[NAME_WIDTH + 1];

	text_escape(name, sizeof(name), it->name);
	fprintf(f, "%*s %*s %*s  %c %s%s\n", VALUE_WIDTH, value(it, &it->base).s, CHANGE_WIDTH,
		diff_change(it).s, VALUE_WIDTH, value(it, &it->new).s, mark(it), name,
		it->primary ? " *" : "");
}

/* All rows with these labels ("": none), primaries first as they come. */
static void print_group(FILE *f, const struct diff_view *d, const char *labels, size_t *folded)
{
	const struct comparison *c = d->comparison;
	char escaped[LKML_WIDTH - 1];
	bool named = !*labels;
	size_t i;

	for (i = 0; i < c->items; i++) {
		const struct comparison_item *it = &c->item[i];

		if (strcmp(it->labels, labels) || !diff_wanted(d, it))
			continue;
		if (diff_folded(d, it)) {
			++*folded;
			continue;
		}
		if (!named) {
			text_escape(escaped, sizeof(escaped), labels);
			fprintf(f, "%s:\n", escaped);
			named = true;
		}
		print_row(f, it);
	}
}

static void print_side(FILE *f, const struct diff_view *d, size_t i,
		       const struct comparison_side *side)
{
	char release[40];

	text_escape(release, sizeof(release), d->machine[i]->release);
	fprintf(f, "%s %s (%zu boot%s, %zu run%s)\n", i ? "new: " : "base:",
		*release ? release : "unknown", side->boots, side->boots == 1 ? "" : "s",
		side->runs, side->runs == 1 ? "" : "s");
}

void diff_lkml(FILE *f, const struct diff_view *d)
{
	const struct comparison *c = d->comparison;
	struct view view = { .width = LKML_WIDTH };
	char line[sizeof(c->reason) + 32], escaped[2 * sizeof(c->reason)];
	size_t i, k, folded = 0;

	print_side(f, d, 0, &c->base);
	print_side(f, d, 1, &c->new);
	for (i = 0; i < c->states; i++) {
		snprintf(line, sizeof(line), "unlike%s: %s: %s / %s",
			 c->states_ignored ? " (ignored)" : "", c->state[i].name, c->state[i].base,
			 c->state[i].new);
		text_escape(escaped, sizeof(escaped), line);
		text_wrap(f, &view, NULL, 2, escaped);
	}
	snprintf(line, sizeof(line), "verdict: %s: %s", diff_result(c), c->reason);
	text_escape(escaped, sizeof(escaped), line);
	text_wrap(f, &view, NULL, 2, escaped);
	fprintf(f, "\n%*s %*s %*s    %s\n", VALUE_WIDTH, "base", CHANGE_WIDTH, "%change",
		VALUE_WIDTH, "new", "metric");
	for (i = 0; i < LKML_WIDTH; i++)
		fputc('-', f);
	fputc('\n', f);
	print_group(f, d, "", &folded);
	for (i = 0; i < c->items; i++) {
		const char *labels = c->item[i].labels;

		for (k = 0; k < i && strcmp(c->item[k].labels, labels); k++)
			;
		if (*labels && k == i)
			print_group(f, d, labels, &folded);
	}
	fputs("\n! worse, + better, = same, ~ changed, ? cannot tell; * decides\n", f);
	if (folded)
		fprintf(f, "%zu more say nothing new\n", folded);
	if (c->kind == EVIDENCE_BOOTS && c->base.boots > 1 && c->new.boots > 1)
		fputs("boots not interleaved\n", f);
	if (c->icount)
		fputs("times are instructions of an emulated CPU\n", f);
	else if (c->emulated)
		fputs("emulated CPU: times are for screening only\n", f);
}
