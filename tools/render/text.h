/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_TEXT_H
#define MMSCOPE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "data/run.h"

#define TEXT_WIDTH	100	/* widest line of any report */

/* How a report is shown. Nothing here changes what is counted or compared. */
struct view {
	const char *by;		/* rows by this label ("method"); NULL: backing and method */
	bool colour;
	bool utf8;		/* bars of block characters, else of '#' */
	unsigned int width;	/* columns, 0: TEXT_WIDTH */
	bool locks;		/* faults and waits for locks */
	bool brief;		/* a short block for each run, as -i prints them */
};

/*
 * The view that suits a stream: colour on a terminal unless NO_COLOR is set, the
 * terminal's width (60 to TEXT_WIDTH), block characters in a UTF-8 locale.
 */
void view_init(struct view *view, FILE *f);
unsigned int view_width(const struct view *view);

/* The default screen of `mmscope fault`; see fault.h for its parts. */
void text_fault(FILE *f, const struct recording *rec, const struct view *view);

/* The default screen of `mmscope lock`, and its part below the one of faults. */
void text_lock(FILE *f, const struct recording *rec, const struct view *view);
void text_lock_part(FILE *f, const struct run *run, const struct view *view);
/* The stacks alone, a line each, for tools that draw flame graphs; the value is ns. */
void text_folded(FILE *f, const struct run *run);

/* Lines that all screens have: the kernel and the command; an interval's place in time. */
void text_context(FILE *f, const struct recording *rec, const struct run *run,
		  const struct view *view);
void text_interval(FILE *f, const struct run *run);
/* What is unavailable, and why; nothing if all is there. */
void text_unavailable(FILE *f, const struct run *run, const struct view *view);

/*
 * The trust line: probes missing, runs lost, and all else that was not seen. It
 * ends every report, and zero is printed too.
 */
void text_trust(FILE *f, const struct machine *m, const struct trust *t,
		const struct view *view);

/* What observing added to the run, and what that is based on; before the trust line. */
void text_cost(FILE *f, const struct run *run, const struct view *view);

/* Short texts by value: text_count(n).s is valid until the statement ends. */
struct text {
	char s[64];
};

/* Exact below 10^7, from there "12.3M", "4.56G". */
struct text text_count(uint64_t n);
/* An interval: "4096", "4096 to 4101", "at least 4096"; "(inferred)" is the caller's. */
struct text text_total(const struct total *t);
/* The same for a narrow column: "4096", "4096+5", "4096+", "~4096". */
struct text text_cell(const struct total *total);
/* a / b as "1.00", "16.0", "512"; "-" when b is 0. */
struct text text_ratio(uint64_t a, uint64_t b);
/* Nanoseconds: "640 ns", "3.25 us", "1.20 ms", "2.00 s". */
struct text text_time(uint64_t ns);
/* Half-open bounds of a time bucket: "3.07 .. 3.33 us"; ">= 18.3 min" when high is 0. */
struct text text_time_bounds(uint64_t low, uint64_t high);
/* "31 %"; "-" when whole is 0. */
struct text text_percent(uint64_t part, uint64_t whole);
/* The upper bound alone: "<3.33us". */
struct text text_time_below(uint64_t low, uint64_t high);

/*
 * A copy of text for a terminal: control characters and bytes that are not UTF-8
 * become \xNN. At most size - 1 bytes, cut at a character and marked "...".
 */
void text_escape(char *out, size_t size, const char *text);
/* Columns that a UTF-8 text takes (one per character). */
size_t text_columns(const char *text);
/* Print words within the width, further lines indented, in a colour or NULL. */
void text_wrap(FILE *f, const struct view *view, const char *colour, unsigned int indent,
	       const char *text);
/* A bar of value / max of `columns` columns; never empty for a value above 0. */
void text_bar(FILE *f, const struct view *view, uint64_t value, uint64_t max,
	      unsigned int columns);
/* Switch colour on ("1" is bold) and off again (NULL), if the view wants any. */
void text_colour(FILE *f, const struct view *view, const char *code);

/* ---- tables ---- */

#define TABLE_COLUMNS	16

struct table {
	size_t columns, left;	/* the first `left` columns are aligned left */
	size_t keep;		/* columns that stay when the width does not suffice */
	char **cell;		/* row by row, the head first */
	size_t cells;
	bool broken;		/* out of memory: rows are missing */
};

void table_cell(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * Print within the width: gaps of two columns, else of one, else without the
 * last columns. Says so when rows are missing.
 */
void table_print(FILE *f, const struct view *view, const struct table *t);
void table_free(struct table *t);

#endif
