// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data/err.h"

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
 * Bytes of the well-formed UTF-8 character at p, 0 if it is none: overlong
 * forms, surrogates and values above U+10FFFF are not. Stops at the NUL.
 */
static int utf8_length(const unsigned char *p)
{
	static const unsigned int least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned int v;
	int n, i;

	if (*p < 0x80)
		return 1;
	n = *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : 2;
	if (*p < 0xc2 || *p > 0xf4)
		return 0;
	v = *p & (0x7f >> n);
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | (p[i] & 0x3f);
	}
	if (v < least[n] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
		return 0;
	return n;
}

/*
 * Write what may be printed of the character at p into out (at least 8 bytes);
 * *used is the number of bytes that it took of p. Returns the bytes written.
 */
static int escape(char *out, const unsigned char *p, int *used)
{
	int n = utf8_length(p);

	*used = n ? n : 1;
	if (!n)		/* a lone byte of 0x80 to 0x9f is a control to some terminals */
		return json ? sprintf(out, "\xef\xbf\xbd") : sprintf(out, "\\x%02x", *p);
	if (n == 1 && (*p < 0x20 || *p == 0x7f))
		return sprintf(out, json ? "\\u%04x" : "\\x%02x", *p);
	if (n == 2 && *p == 0xc2 && p[1] < 0xa0)	/* U+0080 to U+009F: controls */
		return json ? sprintf(out, "\\u%04x", p[1]) :
			      sprintf(out, "\\xc2\\x%02x", p[1]);
	if (json && (*p == '"' || *p == '\\'))
		return sprintf(out, "\\%c", *p);
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
			if (!utf8_length((unsigned char *)text + len - back))
				text[len - back] = 0;
			return;
		}
	}
}

static void put(const char *prefix, const char *key, const char *what, const char *cause,
		va_list ap)
{
	char format[1024], text[2048], line[LINE_MAX_BYTES], piece[16];
	const unsigned char *p;
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
	for (p = (unsigned char *)text; *p; p += used) {
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
