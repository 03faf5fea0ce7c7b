/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_EXPECT_PARTS_H
#define MMSCOPE_EXPECT_PARTS_H

/* Between expect_parse.c, which reads expectations, and expect.c, which judges them. */
#include "data/expect.h"

#define EXPECT_NODES	256	/* of one expectation */

enum node_kind { NODE_NUMBER, NODE_TERM, NODE_ADD, NODE_SUB, NODE_MUL, NODE_DIV };
enum compare_op { OP_LT, OP_LE, OP_GT, OP_GE, OP_EQ, OP_NE };

/* What a number counts. A bare number takes the dimension of what it meets. */
enum dimension { DIM_ANY, DIM_NUMBER, DIM_TIME, DIM_SIZE };

enum statistic { STAT_VALUE, STAT_COUNT, STAT_SUM, STAT_MEAN, STAT_MAX, STAT_PERCENTILE };

struct term {
	bool base;			/* of the other recording */
	const struct metric *metric;	/* NULL: the next ones */
	const char *want[LABEL_MAX];
	enum statistic statistic;
	unsigned int percentile;
	int fact;			/* index of expect_facts[], -1: a value */
	const char *value;		/* name of a value that the command gave */
};

struct node {
	enum node_kind kind;
	enum dimension dimension;
	unsigned int left, right;	/* operands */
	long double number;
	struct term term;
};

struct expectation {
	char *text;			/* owned */
	unsigned int line;
	struct node *node;		/* owned; the operands come before their node */
	unsigned int nodes, left, right;	/* both sides of the operator */
	enum compare_op op;
	long double slack;
	enum dimension dimension;
	bool uses_base;
};

struct expectations {
	struct expectation *item;	/* owned */
	size_t items;
	char **word;			/* label values and names; owned */
	size_t words;
};

/* What is known of every run beside its metrics. */
struct expect_fact {
	const char *name;
	enum dimension dimension;
	bool of_command;
	size_t offset;			/* of the uint64_t in a struct run */
};

#define EXPECT_FACTS	7
extern const struct expect_fact expect_facts[EXPECT_FACTS];
extern const char *const expect_operators[];

#endif
