/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_CMD_AB_H
#define MMSCOPE_CMD_AB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vm/vm.h"

/* A comparison of two kernels, as its command line says. */
struct ab {
	struct vm_options vm;
	const char *spec[2], *dir, *events, *primary, *format;
	uint64_t boots, runs, times, warmup;
	bool exact, resume, all, ignore_state, json;
	char **command;
	char *kernel[2], *append[2];	/* what the SPECs say */
	char *file[2];			/* the recordings */
	int lock;
};

/* A B B A A B ...: what drifts meanwhile falls on both, and neighbours are a block. */
int ab_side(size_t boot);

/*
 * Begin in ab->dir, or go on there, and hold ab->lock. 0, or EXIT_VERDICT_USAGE after
 * an error line.
 */
int ab_open(struct ab *ab);
/*
 * How many boots there are, which must be the first ones in turn; writes down their
 * order. -1 after an error line.
 */
int ab_count(const struct ab *ab, size_t *done);
/* Nothing to go on with: as if we had not begun. */
void ab_remove(const struct ab *ab);

#endif
