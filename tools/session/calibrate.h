/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_CALIBRATE_H
#define MMSCOPE_CALIBRATE_H

#include <stdbool.h>
#include <stdint.h>

#include "session/mark.h"
#include "session/plan.h"

/*
 * What a fault of this task on one anonymous page takes now, in picoseconds: the least
 * of several rounds, which no interrupt and no other task has disturbed. 0: not known.
 */
uint64_t calibrate_fault(void);

/*
 * What a run of a program takes, in picoseconds: of those that run for an anonymous
 * fault, which took `bare` without them. We are a target for that time; where all tasks
 * are (everyone), nothing is counted meanwhile, and it is what those pay that are no
 * targets. 0: not known. What was counted is to be forgotten.
 */
uint64_t calibrate_program(const struct plan *plan, const struct marker *m, int *pidfd,
			   uint32_t *observing, bool everyone, uint64_t bare);

#endif
