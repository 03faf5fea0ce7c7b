/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_COMPARE_H
#define MMSCOPE_COMPARE_H

#include "data/run.h"

/*
 * Comparing recordings. The unit is the boot: runs of one boot share its layout
 * and are reduced to one value. Shifts are oriented so that + is worse, and on a
 * logarithmic scale unless a value is not above zero.
 */

#define COMPARE_PRIMARIES	5	/* most metrics that may decide */
/*
 * Chance of any false worse or better, all primaries together: half of it is worse, so that
 * exit status 1 is false at most 2 times in 100, however noisy the times are and whatever
 * they have to do with each other. The boots that are needed are those of 0.05, but for
 * three metrics in blocks: 8, not 7.
 */
#define COMPARE_ALPHA		0.04
#define COMPARE_ALPHA_SAME	0.1	/* "same" needs the interval of level 90 % */
#define COMPARE_EXACT_BOOTS	5	/* boots a side that must agree for an exact count */
#define COMPARE_LAYOUTS		10	/* boots a side that instruction counts need */

/* Worst first: the order in which they are listed. */
enum verdict {
	VERDICT_WORSE,
	VERDICT_CHANGED,	/* moved, but no direction is better */
	VERDICT_UNDECIDED,
	VERDICT_UNAVAILABLE,
	VERDICT_BETTER,
	VERDICT_SAME,
	VERDICT_MAX,
};

/* "worse", ..., "cannot tell", "unavailable". */
const char *verdict_name(enum verdict verdict);

/* What a verdict rests on. */
enum evidence_kind {
	EVIDENCE_BOOTS,		/* Mann-Whitney over boots: not interleaved */
	EVIDENCE_BLOCKS,	/* signed ranks over pairs of adjacent boots */
	EVIDENCE_EXACT,		/* counts, equal in all boots of a side */
	EVIDENCE_LAYOUTS,	/* instruction counts: the range over layouts */
	EVIDENCE_BOUNDS,	/* percentiles: only disjoint bounds tell */
};

const char *evidence_name(enum evidence_kind kind);

/* ---- the core: one quantity, one verdict ---- */

/* One quantity on one side, one value per boot; the truth of boot i lies in [low, high]. */
struct evidence {
	size_t boots;
	double *low, *high;	/* owned; high is INFINITY where nothing bounds it */
	double median;		/* of low */
	double least, most;	/* over all runs */
	double floor, ceiling;	/* what each run could have been with another alignment */
	bool certain;		/* low == high everywhere: nothing was lost */
	bool empty;		/* no event on this side: a mean does not exist */
	unsigned int flags;	/* SAMPLE_x of all runs */
	char unavailable[160];	/* why there is no value; "" if there is */
};

void evidence_free(struct evidence *e);

/* How two sides are put together. */
struct pairing {
	enum evidence_kind kind;	/* BOOTS, BLOCKS or LAYOUTS */
	size_t pairs;			/* of BLOCKS and LAYOUTS */
	const size_t *base, *new;	/* boots of pair i; NULL: i itself */
};

/* The shift of one quantity. Made by shift_new(), or filled by a rule of its own. */
struct shift;

/*
 * NULL: no memory, or no values. `better` orients it; `margin` is a fraction
 * (0.03). Both sides must have values that are bounded (high < INFINITY).
 */
struct shift *shift_new(const struct evidence *base, const struct evidence *new,
			const struct pairing *pairing, enum metric_better better, double margin);
void shift_free(struct shift *s);
/* The interval at 1 - alpha; false when so few boots cannot give one. */
bool shift_interval(const struct shift *s, double alpha, double *low, double *high);
double shift_estimate(const struct shift *s);
/* Is the scale logarithmic? Else shifts are plain differences. */
bool shift_is_log(const struct shift *s);
/* WORSE, BETTER (CHANGED where no direction is better) at alpha, SAME at 90 %, or UNDECIDED. */
enum verdict shift_verdict(const struct shift *s, double alpha);
/* The least alpha at which it is worse or better; 1 if none. */
double shift_p_margin(const struct shift *s);
/* Exact permutation test of no shift at all (two-sided). */
double shift_p_zero(const struct shift *s, bool *approximate);

/*
 * The least alpha that the sample can reach: below COMPARE_ALPHA / m it can
 * decide m primaries at once.
 */
double pairing_least_alpha(const struct pairing *p, size_t base_boots, size_t new_boots);
/* Boots a side that `m` primaries need. */
size_t pairing_boots_needed(const struct pairing *p, size_t m);

/* ---- two recordings ---- */

struct comparison_item {
	char name[96];		/* "fault_completed", "fault_latency.p99", a value's name */
	char labels[96];	/* "backing=file" or "" */
	char unit[24];
	enum metric_better better;
	bool primary;
	bool look;		/* exploratory and it moved: a place to look at, no verdict */
	enum verdict verdict;
	enum evidence_kind kind;
	double margin;		/* fraction */
	struct evidence base, new;
	bool has_change;	/* no percentage of a base of zero */
	double change;		/* (new - base) / base, the estimate */
	bool has_interval;	/* of the change, at `level`; not oriented */
	double low, high, level;
	bool has_p, approximate;
	double p;		/* permutation test of no change at all */
	char reason[240];	/* why it cannot tell, or what the verdict rests on */
	struct shift *shift;
};

/* One thing in which the machines differ. */
struct comparison_state {
	char name[32], base[80], new[80];
};

#define COMPARISON_STATES	24

struct comparison_side {
	size_t boots, runs;
	size_t failed_runs;
	int failed_status;	/* of the first of them */
	uint64_t lost_runs;	/* of probes; UINT64_MAX: a kernel that cannot tell */
	uint64_t unmatched, map_full, events_lost;
	size_t missing;		/* probes of the worst run */
};

struct comparison {
	struct comparison_item *item;	/* primaries first, each part worst first */
	size_t items, primaries;
	size_t exploratory;		/* that BH corrected for */
	struct comparison_state state[COMPARISON_STATES];
	size_t states;
	bool states_ignored;
	bool commands_differ;
	bool values_left_out;		/* more names of values than are compared */
	bool emulated, icount;		/* either side */
	enum evidence_kind kind;	/* BOOTS or BLOCKS */
	struct comparison_side base, new;
	size_t decidable;	/* primaries that the number of boots can decide, at most 5 */
	int status;		/* 0 held, 1 worse, 125 no verdict */
	char reason[480];	/* of the status, one sentence */
};

struct compare_options {
	bool ignore_state;
};

/*
 * Neither recording is kept. NULL: no memory. Whatever the recordings hold, the
 * result has a status and a reason.
 */
struct comparison *comparison_new(const struct recording *base, const struct recording *new,
				  const struct compare_options *options);
void comparison_free(struct comparison *c);

#endif
