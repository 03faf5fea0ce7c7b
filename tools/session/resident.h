/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_RESIDENT_H
#define MMSCOPE_RESIDENT_H

#include "session/plan.h"
#include "session/target.h"

/* The plan says why, where the resident sets of these targets (NULL: none) are not known. */
void resident_plan(struct plan *plan, const struct target *target);
void resident_refuse(struct plan *plan, const char *why);

/* Run the walk over all tasks of an iterator's link. Returns 0, or a negative errno. */
int resident_walk(int link_fd);

#endif
