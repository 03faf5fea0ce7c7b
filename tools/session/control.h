/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_SESSION_CONTROL_H
#define MMSCOPE_SESSION_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Commands that switch an observation, in perf's syntax: the lines "enable",
 * "disable" and "ping" on one descriptor, answered by "ack" on another. Regions
 * of several processes may overlap: it is on while at least one is open. What
 * was counted before the first "enable" was not asked for and is forgotten.
 */
struct control {
	int in, ack;		/* -1: none */
	char line[32];
	size_t len;
	bool used;
	unsigned int open;	/* regions */
};

enum control_action {
	CONTROL_WAIT,		/* nothing complete has arrived */
	CONTROL_NOTHING,	/* a command without effect: acknowledge it */
	CONTROL_RESTART,	/* forget, then observe */
	CONTROL_ON,
	CONTROL_OFF,
};

/* The descriptors' flags stay as they are: they may be shared with the peer. */
void control_init(struct control *c, int in, int ack);
/* The next command that has arrived; never blocks. An unknown one is warned of. */
enum control_action control_next(struct control *c);
/* Tell the peer that its command is done; a peer that is gone is ignored. */
void control_ack(struct control *c);
void control_close(struct control *c);

#endif
