/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_RENDER_DIFF_H
#define MMSCOPE_RENDER_DIFF_H

#include "data/compare.h"
#include "render/text.h"

#define DIFF_SCHEMA	1	/* of the JSON; raised when a reader must know of a change */
#define LKML_WIDTH	75

/* A comparison, and what it is called. Nothing here changes a verdict. */
struct diff_view {
	const struct comparison *comparison;
	const char *name[2];		/* of the files */
	const struct machine *machine[2];
	const char *metric;		/* this one only; NULL: all */
	bool all;			/* what stayed the same, too */
	struct view view;
};

/* Each writes all and leaves errors to the stream (output_flush()). */
void diff_text(FILE *f, const struct diff_view *d);
void diff_lkml(FILE *f, const struct diff_view *d);
/* Returns 0 or a negative errno. */
int diff_json(FILE *f, const struct diff_view *d);

/* ---- shared by the renderers ---- */

/* Is this item asked for (--metric)? */
bool diff_wanted(const struct diff_view *d, const struct comparison_item *it);
/* Is it folded away, asked for or not? */
bool diff_folded(const struct diff_view *d, const struct comparison_item *it);
/* "held", "worse", "cannot tell". */
const char *diff_result(const struct comparison *c);
/* The value of a side for a narrow column: "2048", "12.3M", "1.50", "3.07 ms". */
struct text diff_value(const struct comparison_item *it, const struct evidence *e);
/* "+12.3%", "-0.52%"; "-" without a base. */
struct text diff_change(const struct comparison_item *it);
/* What the sample can decide at all, one sentence. */
void diff_power(const struct comparison *c, char *out, size_t size);

#endif
