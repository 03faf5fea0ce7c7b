/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_ERR_H
#define MMSCOPE_ERR_H

#include <stdbool.h>

/*
 * Print one line on stderr, "mmscope: WHAT: CAUSE". Both are printf formats
 * that share one argument list: err("--%s", "'%s' is empty", name, arg).
 * Control characters in the text are printed as \xNN, so that a hostile name
 * cannot forge a second line. After err_json(true) the same text is the object
 * {"error": "WHAT: CAUSE"}.
 */
void err(const char *what, const char *cause, ...);
void err_json(bool on);

/* The same line with "mmscope: warning: " in front; nothing is lost. */
void warn(const char *what, const char *cause, ...);

#endif
