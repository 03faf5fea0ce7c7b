/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_SESSION_VALUES_H
#define MMSCOPE_SESSION_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#include "data/run.h"

#define VALUES_ENV	"MMSCOPE_VALUES_FD"
#define VALUES_MAX	4096	/* of a run */

/*
 * What the command measured by itself: lines "name value unit lower|higher" on
 * a descriptor of its own. A line that is none is warned of once and left out.
 */
struct values {
	int in;			/* -1: none */
	char line[512];
	size_t len;
	bool overlong;		/* the rest of a line that is too long */
	bool warned;
	struct run *run;	/* its values are kept here until values_give() */
};

/* A pipe; *out is the command's end. Without one (a warning) nothing is read. */
void values_open(struct values *v, int *out);
/* Take what has arrived; never blocks. */
void values_read(struct values *v);
/* Take the rest, and move all to the run, which has none yet. */
void values_give(struct values *v, struct run *run);
void values_close(struct values *v);

#endif
