/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_CONTROL_H
#define MMSCOPE_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "data/control.h"

/*
 * The workload's end of the control channel: MMSCOPE_CONTROL_FD=CTL[,ACK] names
 * two inherited descriptors. "enable\n" and "disable\n" go to CTL; a controller
 * that named ACK answers each with "ack\n" (a NUL may follow it, as perf sends).
 */
struct control {
	int ctl, ack;		/* -1: none */
	bool dry;		/* warm-up: we are our own controller */
	int dry_far[2];
};

/* From the environment. -1 after printing one line if the value is unusable. */
int control_open(struct control *c);

/*
 * Send a command and wait for its acknowledgement. A controller that is gone,
 * silent for a minute or answers nonsense is reported once and then ignored.
 */
void control_send(struct control *c, const char *command);

/* A control channel that answers itself, to run the same code before the region. */
int control_open_dry(struct control *c);
void control_close_dry(struct control *c);

/* MMSCOPE_VALUES_FD: -1 after one line if it is set but unusable. */
int values_check(void);

/*
 * Write "NAME VALUE UNIT DIRECTION" to the descriptor in MMSCOPE_VALUES_FD, if
 * there is one; direction is "lower" or "higher" (which is better). -1 with
 * errno set if it cannot be written.
 */
int values_write(const char *name, uint64_t value, const char *unit, const char *direction);

#endif
