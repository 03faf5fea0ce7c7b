/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_COMPARE_PARTS_H
#define MMSCOPE_COMPARE_PARTS_H

/* What compare*.c share; of others, only expect.c includes this (boots, states). */
#include "data/compare.h"

/* ---- boots (compare_boots.c) ---- */

/* Runs by boot, boots in the order in which they were recorded. */
struct boots {
	size_t n;
	size_t *of_run;		/* boot of run i; owned */
	size_t *order;		/* runs, those of a boot together; owned */
	const char **id;	/* "" unknown; owned, the texts are not */
	uint64_t *start;	/* of the first run, real clock */
};

/* At most STATS_BOOTS_MAX + 1: then there are too many. -1: no memory. */
int boots_of(const struct recording *rec, struct boots *boots);
void boots_free(struct boots *boots);

/* How the boots of two files belong together. */
struct plan_pairs {
	struct pairing pairing;
	size_t *base, *new;	/* owned */
	size_t shared;		/* boots that are in both files */
	bool entangled;		/* some boots are in both files, but not all */
};

/*
 * Blocks, when every pair of boots that follow each other in time has one of each
 * file, or when both files hold the same boots; else boots on their own. -1: no memory.
 */
int pair_boots(const struct boots *base, const struct boots *new, struct plan_pairs *plan);
void pairs_free(struct plan_pairs *plan);

/* ---- states (compare_state.c) ---- */

/* *states is the number of differences, at most COMPARISON_STATES. -1: no memory. */
int compare_states(const struct recording *base, const struct recording *new,
		   const struct boots *boots_b, const struct boots *boots_n,
		   struct comparison_state *state, size_t *states);
bool same_command(const struct recording *base, const struct recording *new);
bool is_emulated(const struct machine *m);
bool is_icount(const struct machine *m);

/* ---- quantities (compare_items.c, compare_read.c) ---- */

enum quantity_kind {
	QUANTITY_METRIC, QUANTITY_PERCENTILE, QUANTITY_FACT, QUANTITY_VALUE, QUANTITY_UNKNOWN
};
enum reduce { REDUCE_MEDIAN, REDUCE_LEAST, REDUCE_MOST };

/* What a run itself tells beside its metrics. */
struct fact {
	const char *name, *unit;
	size_t offset;		/* of a uint64_t in struct run */
	bool of_command;
	enum reduce reduce;
};

#define FACTS	6

extern const struct fact run_facts[FACTS];

/* What can be read from every run. */
struct quantity {
	enum quantity_kind kind;
	const struct metric *metric;
	const char *want[LABEL_MAX];	/* NULL: any */
	double percentile;
	int fact;
	const char *value, *value_unit;	/* of a value, in full */
	char name[96], labels[96], unit[24];
	enum metric_better better;
	bool time;			/* nanoseconds, or instructions under icount */
	bool exact;
	double margin;
	enum reduce reduce;
};

struct quantities {
	struct quantity *q;
	size_t n;
	bool left_out;			/* more names of values than are compared */
};

/* All that either file holds. -1: no memory. */
int quantities_of(const struct recording *base, const struct recording *new,
		  struct quantities *all);
/*
 * The one that a name as --primary takes it stands for: NAME or
 * NAME{label=value,...}. False: no such metric, value or label.
 */
bool quantity_by_name(const char *name, const struct recording *base,
		      const struct recording *new, struct quantity *q);
/* Fill *e from all runs. -1: no memory. */
int evidence_collect(const struct quantity *q, const struct recording *rec,
		     const struct boots *boots, struct evidence *e);

/* ---- items (compare_judge.c) ---- */

struct work {
	const struct recording *rec[2];
	const char *side[2];	/* "BASE", "NEW" */
	struct boots boots[2];
	struct plan_pairs plan;
	struct comparison *c;
	const char *primary[COMPARE_PRIMARIES];
	size_t primaries;
	bool common;		/* a metric or value that both files hold */
};

/*
 * Collect and judge as far as that needs no other item. 1: not worth an item (the
 * caller frees it all the same); -1: no memory.
 */
int make_item(struct work *w, const struct quantity *q, bool primary,
	      struct comparison_item *it);
void item_free(struct comparison_item *it);
/* c->item holds the primaries first. */
void judge_primaries(struct work *w);
int judge_exploratory(struct work *w);

#endif
