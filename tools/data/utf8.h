/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_UTF8_H
#define MMSCOPE_UTF8_H

/*
 * Bytes (1..4) of the well-formed UTF-8 character at p, 0 if it is none:
 * overlong forms, surrogates and values above U+10FFFF are not. Stops at a NUL.
 */
int utf8_length(const char *p);

/* The character of utf8_length() == n bytes at p drives terminals: C0, DEL or C1. */
int utf8_is_control(const char *p, int n);

#endif
