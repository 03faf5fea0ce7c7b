/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_DOMAINS_H
#define MMSCOPE_DOMAINS_H

#include <stdbool.h>

#include "data/metrics.h"

/* "fault,lock" into DOMAIN_ bits. Returns 0, or -1 after an error line. */
int domains_parse(const char *list, unsigned int *mask);

/*
 * Is there a domain among those in the mask that has rows by this label (NULL: none is
 * asked for), and for each of the options that faults alone have? Returns 0, or -1 after
 * an error line.
 */
int domains_allow(unsigned int mask, const char *by, bool exact, bool reconcile);

#endif
