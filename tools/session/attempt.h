/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_ATTEMPT_H
#define MMSCOPE_ATTEMPT_H

#include <stdbool.h>

/* A program that does nothing, on the entry of a function: 0 or -errno. */
int try_fentry(int btf_id);
/* The same by a kprobe. */
int try_kprobe(const char *symbol);
/* May programs read kernel memory that BTF gives no type for? */
bool try_read(void);

#endif
