/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_LIMIT_H
#define MMSCOPE_LIMIT_H

/*
 * Room for the descriptors of programs, links and maps, whatever the limit that we
 * were started with. Returns 0, or -1 when it may not be raised; *have is the
 * limit then, *need what it must be.
 */
int limit_raise(unsigned long *have, unsigned long *need);

/* Around the start of a command, which must have the limit that we had. */
void limit_restore(void);
void limit_again(void);

#endif
