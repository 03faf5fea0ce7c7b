/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_REPORT_ROWS_H
#define MMSCOPE_REPORT_ROWS_H

/* What report.c prints of several runs: the rows, and a row's number in one run. */
#include "render/text.h"

enum report_form { FORM_COUNT, FORM_MEAN, FORM_TIME, FORM_PLAIN };

struct report_row {
	char name[64];
	char labels[96];		/* for the terminal */
	const struct metric *metric;	/* NULL: a fact or a value */
	const char *want[LABEL_MAX];
	unsigned int percentile;	/* 0: the mean of a histogram */
	int fact;			/* index, -1: a value */
	const char *value;		/* its name */
	enum report_form form;
};

struct report_number {
	double low, value, high;	/* value: what was counted, within the bounds */
	unsigned int flags;
};

/* All rows that any run has something for; the caller frees *rows. False: no memory. */
bool report_rows(const struct recording *rec, const struct view *view, struct report_row **rows,
		 size_t *n);
/* The row's number in a run. False: it has none there; *reason is NULL or why. */
bool report_read(const struct report_row *row, const struct run *run, struct report_number *number,
		 const char **reason);

#endif
