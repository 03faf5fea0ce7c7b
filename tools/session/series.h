/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_SERIES_H
#define MMSCOPE_SERIES_H

#include <stdbool.h>
#include <stddef.h>

#include "data/run.h"
#include "session/target.h"

/* A command, or targets that run already, observed several times by the same programs. */
struct series_options {
	char **command;		/* NULL-terminated; NULL: each run takes `duration` */
	struct target *target;	/* whom to observe besides the command; or NULL */
	double duration;	/* seconds */
	size_t runs, warmup;	/* warm-up runs are observed, too, and dropped */
	size_t times;		/* runs after these that are not observed */
	double run_timeout;	/* seconds of one run; 0: no limit */
	double timeout;		/* seconds of all of them */
	unsigned int domains;	/* as in plan_options */
	bool exact, reconcile;
	enum label by;		/* count by it as well, if it is an open one */
	bool stdout_to_stderr;	/* the command's standard output */
	bool progress;		/* a line on stderr for each run */
};

struct series_result {
	size_t finished;	/* runs that were added to the recording */
	size_t failed;		/* of them: the command failed or was killed */
	int status;		/* of the first of these, 0 if there is none */
	int signal;		/* that interrupted the series, or 0 */
	bool timed_out;		/* the time of the whole series was over */
	bool gone;		/* the targets have ended */
};

/*
 * Append one run for each that finished, and name those that failed. Returns 0,
 * also when it was interrupted (see *result), or after an error line the exit
 * status: 3 nothing can be observed, 126 or 127 the command cannot be run, 70.
 */
int series_record(struct recording *rec, const struct series_options *opts,
		  struct series_result *result);

#endif
