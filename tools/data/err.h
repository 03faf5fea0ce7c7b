/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_ERR_H
#define MMSCOPE_ERR_H

#include <stdbool.h>

/*
 * Print one line on stderr, "mmscope: WHAT: CAUSE". Both are printf formats
 * (literals, together below 1000 bytes) that share one argument list:
 * err("--%s", "'%s' is empty", name, arg). Control characters and bytes that
 * are not UTF-8 are printed as \xNN, so that a hostile name cannot forge a
 * second line or drive the terminal. After err_json(true) the same text is the
 * object {"error": "WHAT: CAUSE"}, where what is not UTF-8 becomes U+FFFD. Text
 * too long for one atomic write to a pipe is cut and ends in "...". errno is
 * kept.
 */
void err(const char *what, const char *cause, ...);
void err_json(bool on);

/* The same with "mmscope: warning: " in front, or {"warning": ...}: the work goes on. */
void warn(const char *what, const char *cause, ...);

#endif
