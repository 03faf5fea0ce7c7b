/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_DATA_CONTROL_H
#define MMSCOPE_DATA_CONTROL_H

/* What both ends of a control channel agree on. */
#define CONTROL_ENV	"MMSCOPE_CONTROL_FD"	/* CTL[,ACK], for a command of ours */

/*
 * Parse "CTL[,ACK]", two numbers of descriptors; *ack is -1 without one. Returns
 * -1 if it is anything else. Does not look at the descriptors.
 */
int control_parse(const char *text, int *ctl, int *ack);

#endif
