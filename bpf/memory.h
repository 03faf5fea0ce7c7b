/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_MEMORY_H
#define MMSCOPE_MEMORY_H

#define MEMORY_PIECES	256	/* in one run */
#define MEMORY_WORDS	32	/* most of one piece */

#endif
