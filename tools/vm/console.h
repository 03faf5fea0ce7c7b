/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_VM_CONSOLE_H
#define MMSCOPE_VM_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>

#include "vm/splat.h"

/* The guest's console: its log, and what the log says about the kernel's health. */
struct console;

struct console *console_new(void);
void console_free(struct console *c);
void console_feed(struct console *c, const char *data, size_t len);

/* The worst that was seen, and its line, without time stamp; "" for SPLAT_NONE. */
enum splat console_worst(const struct console *c);
const char *console_report(const struct console *c);
/* True once init's last line came: everything before it is in. */
bool console_ended(const struct console *c);
/* The latest line, for the progress of a boot. */
const char *console_latest(const struct console *c);

/*
 * Writes the log to path, or if NULL to a new file in TMPDIR. Returns its name
 * (to be freed), or NULL with errno set.
 */
char *console_save(const struct console *c, const char *path, const char *release);

#endif
