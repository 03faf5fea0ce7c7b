/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_EXPECT_H
#define MMSCOPE_EXPECT_H

#include <stdbool.h>
#include <stddef.h>

#include "data/run.h"

/*
 * Expectations on a recording, one per line:
 *
 *	fault_completed{backing=bpf_array} <= 10
 *	ptes_per_hold{method=fault_around}.p50 >= 16
 *	fault_completed <= 1.05 * base.fault_completed	# of another recording
 *	ptes_installed / fault_completed == 16 slack 1
 *
 * Three-valued: what is only known to lie within an interval holds or fails
 * only if the whole interval does.
 */
struct expectations;

/*
 * Parse a file's text. NULL after one error line that names line and column of
 * what is malformed: also an unknown metric, label or label value, a unit that
 * does not fit, and a file without any expectation.
 */
struct expectations *expect_parse(const char *name, const char *text, size_t len);
void expect_free(struct expectations *e);
size_t expect_count(const struct expectations *e);
/* The line of the first expectation that refers to base.X, 0 if none does. */
unsigned int expect_base_line(const struct expectations *e);

enum expect_verdict { EXPECT_OK, EXPECT_NOT_OK, EXPECT_SKIP };

/* The truth lies in [low, high]; high may be INFINITY. */
struct interval {
	long double low, high;
};

/* One boot: the medians of its runs on both sides of the operator. */
struct expect_boot {
	size_t runs;
	struct interval value, bound;
	enum expect_verdict verdict;
	char reason[200];	/* why it cannot tell, or "" */
};

struct expect_result {
	const char *text;	/* the expectation as written; not owned */
	const char *unit;	/* of value and bound: "ns", "KiB" or "" */
	const char *operator;
	long double slack;
	bool inferred;		/* on numbers that were inferred, not observed */
	enum expect_verdict verdict;
	char reason[240];	/* of EXPECT_SKIP */
	struct expect_boot *boot;	/* owned */
	size_t boots;
};

struct expect_options {
	bool ignore_state;	/* base may be of an unlike machine */
};

/*
 * Judge expectation i. The unit is the boot: runs of one boot are reduced to
 * their median, and it holds or fails only if it does in every boot; base.X is
 * the range of the medians of its boots. base NULL: there is none, and
 * expect_base_line() must be 0. -1: no memory.
 */
int expect_judge(const struct expectations *e, size_t i, const struct recording *rec,
		 const struct recording *base, const struct expect_options *options,
		 struct expect_result *result);
void expect_result_free(struct expect_result *result);

#endif
