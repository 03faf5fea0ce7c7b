/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_RESIDENT_H
#define MMSCOPE_RESIDENT_H

#include "session/plan.h"
#include "session/target.h"

/* The plan says why, where the resident sets of these targets (NULL: none) are not known. */
void resident_plan(struct plan *plan, const struct target *target);

/* Run the walk of an iterator's link over all tasks. -1: not done, which the plan says. */
int resident_walk(struct plan *plan, int link_fd);

#endif
