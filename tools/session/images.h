/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_IMAGES_H
#define MMSCOPE_IMAGES_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/shared.h"
#include "session/rings.h"

/*
 * Programs and libraries that all processes have executed since this was opened, so that
 * an address of one that has ended, or is another program now, has its name.
 */
struct images;

/* Of the map of user stacks' rows (shared.h). NULL after an error line. */
struct images *images_new(int map, unsigned int rows);
void images_free(struct images *im);

/* Look at all that exists, and have the kernel tell more. Returns 0, or -1 after an error line. */
int images_follow(struct images *im);
/* What it tells; the oldest first. */
void images_take(struct images *im, const struct ring_record *record);

int images_fd(const struct images *im);		/* readable: call images_tend() */
/*
 * Take what the kernel tells: all of it, or what is old enough to be complete. Returns 0,
 * or -1 after an error line.
 */
int images_tend(struct images *im, bool all);

/* A row of the map. Returns 0, or -1 where it cannot be had. */
int images_row(const struct images *im, unsigned int at, struct lock_stack *row);
/*
 * Name of the function that a frame of a row lies in, "[file+0x1234]" with the offset in the
 * file where that is not known, "[anon]" of memory, "[unknown]" of what was not mapped or
 * became something else since. Returns whether it is the name of a function.
 */
bool images_name(struct images *im, const struct lock_stack *row, size_t frame, char *text,
		 size_t size);

#endif
