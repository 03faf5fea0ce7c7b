// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data/err.h"
#include "data/utf8.h"

/*
 * A line is at most what a pipe takes in one piece, so that lines of several
 * processes do not mix.
 */
#define LINE_MAX_BYTES	PIPE_BUF
#define CUT		"..."
#define TAIL		8	/* CUT, closing quote and brace, newline */

static bool json;

void err_json(bool on)
{
	json = on;
}

/*
 * Write what may be printed of the character at p into out (16 bytes);
 * *used is the number of bytes that it took of p. Returns the bytes written.
 */
static int escape(char *out, const char *p, int *used)
{
	int n = utf8_length(p), i, len = 0;
	unsigned char c = *p;

	*used = n ? n : 1;
	if (!n && json)
		return sprintf(out, "\xef\xbf\xbd");
	if (n && utf8_is_control(p, n) && json)		/* C1: U+0080 to U+009F */
		return sprintf(out, "\\u%04x", n == 1 ? c : (unsigned char)p[1]);
	if (!n || utf8_is_control(p, n)) {
		/* A lone byte of 0x80 to 0x9f is a control to some terminals, too. */
		for (i = 0; i < *used; i++)
			len += sprintf(out + len, "\\x%02x", (unsigned char)p[i]);
		return len;
	}
	if (json && (c == '"' || c == '\\'))
		return sprintf(out, "\\%c", c);
	memcpy(out, p, n);
	return n;
}

/* The text may have been cut inside a character: drop the stump. */
static void drop_partial(char *text, size_t len)
{
	size_t back;

	for (back = 1; back <= 3 && back <= len; back++) {
		unsigned char c = text[len - back];

		if (c < 0x80)
			return;
		if (c >= 0xc0) {
			if (!utf8_length(text + len - back))
				text[len - back] = 0;
			return;
		}
	}
}

static void put(const char *prefix, const char *key, const char *what, const char *cause,
		va_list ap)
{
	char format[1024], text[2048], line[LINE_MAX_BYTES], piece[16];
	const char *p;
	int saved = errno, n, len, used;
	bool cut;

	snprintf(format, sizeof(format), "%s: %s", what, cause);
	len = vsnprintf(text, sizeof(text), format, ap);
	if (len < 0)
		len = snprintf(text, sizeof(text), "%s", format);
	cut = len >= (int)sizeof(text);
	if (cut)
		drop_partial(text, sizeof(text) - 1);

	n = json ? sprintf(line, "{\"%s\": \"", key) : sprintf(line, "mmscope: %s", prefix);
	for (p = text; *p; p += used) {
		len = escape(piece, p, &used);
		if (n + len > LINE_MAX_BYTES - TAIL) {
			cut = true;
			break;
		}
		memcpy(line + n, piece, len);
		n += len;
	}
	n += sprintf(line + n, "%s%s\n", cut ? CUT : "", json ? "\"}" : "");
	/* Nothing is left to tell if stderr itself fails. */
	if (write(STDERR_FILENO, line, n) < 0)
		n = 0;
	errno = saved;
}

void err(const char *what, const char *cause, ...)
{
	va_list ap;

	va_start(ap, cause);
	put("", "error", what, cause, ap);
	va_end(ap);
}

void warn(const char *what, const char *cause, ...)
{
	va_list ap;

	va_start(ap, cause);
	put("warning: ", "warning", what, cause, ap);
	va_end(ap);
}
