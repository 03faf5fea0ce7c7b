/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_LOCK_STACKS_H
#define MMSCOPE_LOCK_STACKS_H

#include "bpf/shared.h"
#include "session/images.h"
#include "session/kallsyms.h"

#define STACK_TEXT	16384	/* enough for all frames of a stack, but for names that are long */

/* What names frames, and how many of user space got the name of a function, and did not. */
struct stack_names {
	const struct symbols *s;
	struct images *images;		/* NULL: without user space, whose rows are so many */
	unsigned int user_rows;
	hist_u64 named, unnamed;
};

/*
 * "comm;outermost;...;innermost;[class mode]", as tools that draw flame graphs take it:
 * user space and then the kernel. Frames of the probe itself are left out, those without a
 * symbol are [unknown] in the kernel, and as images_name() has them in user space.
 */
void stack_text(const struct lock_trace *trace, struct stack_names *names, char *text,
		size_t size);

#endif
