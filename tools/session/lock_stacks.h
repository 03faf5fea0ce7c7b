/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_LOCK_STACKS_H
#define MMSCOPE_LOCK_STACKS_H

#include "bpf/shared.h"
#include "session/kallsyms.h"

#define STACK_TEXT	8192	/* enough for all frames of a stack */

/*
 * "comm;outermost;...;innermost;[class mode]", as tools that draw flame graphs take it.
 * Frames of the probe itself are left out, those without a symbol are [unknown].
 */
void stack_text(const struct lock_trace *trace, const struct symbols *s, char *text, size_t size);

#endif
