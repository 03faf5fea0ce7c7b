/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_OBSERVE_H
#define MMSCOPE_OBSERVE_H

#include <stdbool.h>

#include "session/session.h"

/* How an observation ended. */
struct observe_result {
	int ending;		/* the signal that ended it; 0: none did */
	bool timed_out;		/* the command was killed */
};

struct observe_options {
	char **command;		/* NULL-terminated; NULL: until a signal or the duration */
	struct target *target;	/* the session's: its end is the end; or NULL */
	double duration;	/* seconds; 0: until the command ends */
	double timeout;		/* seconds after which the command is killed; 0: never */
	double interval;	/* seconds between reports; 0: one at the end */
	int control, ack;	/* descriptors of a controller; -1: none, or the command's own */
	bool stdout_to_stderr;	/* the command's standard output */
	/*
	 * Takes a finished run (the last, or an interval's) and owns it. A value
	 * other than 0 ends the observation.
	 */
	int (*report)(struct run *run, bool last, void *arg);
	void *arg;
	struct observe_result *result;	/* NULL: not asked for */
};

/*
 * Block the signals that end an observation, so that none is lost while the
 * programs are attached. To be called before session_open().
 */
void observe_prepare(void);
/* Has one of them arrived? Its number, or 0. For session_options.interrupted. */
int observe_interrupted(void);

/*
 * Run the command (or wait) under observation, or without where s is NULL; reports
 * through opts->report.
 * Returns the exit status for main(): the command's own, 126 or 127 when it
 * could not be run (after an error line), 128 + signal when one came before it was
 * started; 0 without a command; 70 when a report could not be collected, after an
 * error line.
 */
int observe(struct session *s, const struct observe_options *opts);

/* "fd:CTL[,ACK]" into two descriptors; returns 0, or -1 after an error line. */
int control_option(const char *text, int *control, int *ack);

#endif
