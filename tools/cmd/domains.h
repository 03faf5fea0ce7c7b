/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_DOMAINS_H
#define MMSCOPE_DOMAINS_H

#include "data/metrics.h"

/* "fault,lock" into bits 1 << DOMAIN_. Returns 0, or -1 after an error line. */
int domains_parse(const char *list, unsigned int *mask);

#endif
