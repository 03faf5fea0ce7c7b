// SPDX-License-Identifier: GPL-2.0-only
/* What the resident set grew by, and what was torn down. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "render/fault.h"

/* ---- reconciliation ---- */

/* A way to grow or to shrink that is no fault. */
static const struct path {
	enum metric_id metric;
	int sign;		/* 0: pages move, and the resident set stays */
	const char *name;
} paths[] = {
	{ METRIC_RSS_FORK_COPY, 1, "fork copy" },
	{ METRIC_RSS_UFFD, 1, "UFFDIO_COPY" },
	{ METRIC_RSS_KHUGEPAGED, 1, "khugepaged" },
	{ METRIC_RSS_SWAPOFF, 1, "swapoff" },
	{ METRIC_RSS_ZAPPED, -1, "unmapped" },
	{ METRIC_RSS_UNMAPPED, -1, "reclaimed" },
	{ METRIC_PAGES_MOVED, 0, "mremap" },
	{ METRIC_PAGES_MIGRATED, 0, "migration" },
};

#define PATHS	(sizeof(paths) / sizeof(*paths))

/* Sums of intervals; both ends may be negative. */
struct span {
	int64_t low, high;
	bool open;		/* something is a lower bound only, or unavailable */
	bool inferred;
};

static void span_add(struct span *s, const struct total *t, int64_t factor)
{
	int64_t low = (int64_t)t->min * factor, high = (int64_t)t->max * factor;

	s->low += factor < 0 ? high : low;
	s->high += factor < 0 ? low : high;
	s->open |= t->flags & (SAMPLE_LOWER_BOUND | SAMPLE_SATURATED);
	s->inferred |= t->flags & SAMPLE_INFERRED;
}

static void add_metric(struct span *s, const struct run *run, enum metric_id metric,
		       const char *const *want, int64_t factor)
{
	struct total t;

	if (run_total(run, metric, want, &t, NULL))
		span_add(s, &t, factor);
	else
		s->open = true;
}

/* What faults and mmap brought: every page that an entry was installed for, but ... */
static struct span by_faults(const struct run *run, uint64_t page_size)
{
	const char *want[LABEL_MAX] = { NULL };
	int64_t huge = page_size / 8;	/* pages that one entry of the next level maps */
	struct span s = { 0 };

	add_metric(&s, run, METRIC_PTES_INSTALLED, NULL, 1);
	add_metric(&s, run, METRIC_PMD_MAPS, NULL, huge);
	/* ... huge pages of hugetlbfs are no part of it, */
	want[LABEL_BACKING] = label_values(LABEL_BACKING)[BACKING_HUGETLB];
	add_metric(&s, run, METRIC_PMD_MAPS, want, -huge);
	/* ... nor are the zero page, plain frames, and copies of a page that was mapped. */
	add_metric(&s, run, METRIC_PTES_RSS_UNCHANGED, NULL, -1);
	return s;
}

struct words {
	char s[200];
};

static struct words signed_count(int64_t n)
{
	struct words t;

	snprintf(t.s, sizeof(t.s), "%s%.60s", n < 0 ? "-" : "", text_count(n < 0 ? -n : n).s);
	return t;
}

static struct words span_text(const struct span *s)
{
	struct words t;
	int len = snprintf(t.s, sizeof(t.s), "%s%.80s", s->inferred ? "~" : "",
			   signed_count(s->low).s);

	if (s->low != s->high)
		snprintf(t.s + len, sizeof(t.s) - len, " to %.80s", signed_count(s->high).s);
	else if (s->open)
		snprintf(t.s + len, sizeof(t.s) - len, "+");
	return t;
}

/* "; not seen: mremap, migration" and the like: the paths that `is` picks. */
struct list {
	char text[768];
	size_t len;
};

static void __attribute__((format(printf, 3, 4)))
list_add(struct list *l, const char *head, const char *format, ...)
{
	va_list args;

	l->len += snprintf(l->text + l->len, sizeof(l->text) - l->len, "%s",
			   l->len ? ", " : head);
	if (l->len < sizeof(l->text)) {
		va_start(args, format);
		l->len += vsnprintf(l->text + l->len, sizeof(l->text) - l->len, format, args);
		va_end(args);
	}
	if (l->len >= sizeof(l->text))
		l->len = sizeof(l->text) - 1;
}

/*
 * RSS grew N pages, M explained by faults; the rest by the paths that are not
 * faults, each with its pages, or named as not seen, or why it cannot be.
 */
void fault_resident(FILE *f, const struct recording *rec, const struct run *run,
		    const struct view *view)
{
	struct list seen = { 0 }, moved = { 0 }, none = { 0 }, unknown = { 0 };
	struct span grew = { 0 }, faults, rest;
	const char *reason;
	struct total t;
	char text[4096], clean[4096];
	size_t i;

	if (!run_total(run, METRIC_RSS_AFTER, NULL, &t, NULL))
		return;		/* the reason is printed with those of all others */
	span_add(&grew, &t, 1);
	if (!run_total(run, METRIC_RSS_BEFORE, NULL, &t, NULL))
		return;
	span_add(&grew, &t, -1);
	if (!grew.low && !grew.high && !t.value)
		return;		/* nothing resident at all, or a file that does not tell */
	faults = by_faults(run, rec->machine.page_size ?: 4096);
	rest = grew;
	rest.low -= faults.high;
	rest.high -= faults.low;
	rest.open |= faults.open;
	rest.inferred |= faults.inferred;
	for (i = 0; i < PATHS; i++) {
		struct span s = { 0 };

		if (!run_total(run, paths[i].metric, NULL, &t, &reason)) {
			rest.open |= paths[i].sign != 0;
			list_add(&unknown, "; unavailable: ", "%s (%s)", paths[i].name, reason);
			continue;
		}
		if (!t.value) {
			list_add(&none, "; not seen: ", "%s", paths[i].name);
			continue;
		}
		span_add(&s, &t, paths[i].sign ?: 1);
		if (!paths[i].sign) {
			list_add(&moved, "; moved within it: ", "%s %s", paths[i].name,
				 span_text(&s).s);
			continue;
		}
		list_add(&seen, "; not by faults: ", "%s %s", paths[i].name, span_text(&s).s);
		rest.low -= s.high;
		rest.high -= s.low;
		rest.open |= s.open;
		rest.inferred |= s.inferred;
	}
	snprintf(text, sizeof(text), "RSS grew %s pages: %s by faults and mmap%s%s%s%s; %s%s",
		 signed_count(grew.low).s, span_text(&faults).s, seen.text, moved.text, none.text,
		 unknown.text, rest.low || rest.high ? span_text(&rest).s : "nothing",
		 " unexplained");
	text_escape(clean, sizeof(clean), text);
	fputc('\n', f);
	text_wrap(f, view, NULL, 2, clean);
}

/* ---- teardown ---- */

static bool teardown_row(struct table *table, const struct run *run, enum backing backing)
{
	const char *want[LABEL_MAX] = { NULL };
	struct total ptes, huge, holds;
	unsigned int flags;
	struct hist h;
	bool have_huge;

	want[LABEL_BACKING] = label_values(LABEL_BACKING)[backing];
	have_huge = run_total(run, METRIC_PMDS_ZAPPED, want, &huge, NULL);
	if (!run_total(run, METRIC_PTES_ZAPPED, want, &ptes, NULL) ||
	    !run_hist(run, METRIC_PTES_PER_ZAP_HOLD, want, &h, &flags, NULL) ||
	    !run_total(run, METRIC_PTES_PER_ZAP_HOLD, want, &holds, NULL) ||
	    (!ptes.value && !(have_huge && huge.value)))
		return false;
	table_cell(table, "%s", want[LABEL_BACKING]);
	table_cell(table, "%s", text_cell(&ptes).s);
	table_cell(table, "%s", text_cell(&holds).s);
	table_cell(table, "%s", h.count ? text_ratio(h.sum, h.count).s : "");
	table_cell(table, "%s", have_huge ? text_cell(&huge).s : "-");
	return true;
}

void fault_teardown(FILE *f, const struct run *run, const struct view *view)
{
	struct table t = { .columns = 5, .left = 1 };
	bool any = false;
	size_t b;

	table_cell(&t, "backing");
	table_cell(&t, "PTEs");
	table_cell(&t, "holds");
	table_cell(&t, "PTEs/hold");
	table_cell(&t, "huge pages");
	for (b = 0; b < BACKING_MAX; b++)
		any |= teardown_row(&t, run, b);
	if (any) {
		fputs("\nTorn down (by munmap, exit, exec, madvise, truncation)\n", f);
		table_print(f, view, &t);
	}
	table_free(&t);
}
