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

/* Does the first CPU have this flag (x86: a word of the line "flags" of /proc/cpuinfo)? */
bool cpu_has(const char *flag);

/*
 * Is kernel.ftrace_enabled 0? Trampolines and kprobes at functions are attached without an
 * error then, and do not run (kernel/trace/ftrace.c, 6.1 to 7.3). false: on, or no ftrace.
 */
bool ftrace_is_off(void);

#endif
