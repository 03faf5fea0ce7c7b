// SPDX-License-Identifier: GPL-2.0-only
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data/err.h"

static bool json;

void err_json(bool on)
{
	json = on;
}

static void put(const char *prefix, const char *key, const char *what, const char *cause,
		va_list ap)
{
	char format[512], text[2048], line[4 * sizeof(text) + 64];
	const char *p;
	int n;

	snprintf(format, sizeof(format), "%s: %s", what, cause);
	vsnprintf(text, sizeof(text), format, ap);

	n = json ? sprintf(line, "{\"%s\": \"", key) : sprintf(line, "mmscope: %s", prefix);
	for (p = text; *p; p++) {
		unsigned char c = *p;

		if (c < 0x20 || c == 0x7f)
			n += sprintf(line + n, json ? "\\u%04x" : "\\x%02x", c);
		else if (json && (c == '"' || c == '\\'))
			n += sprintf(line + n, "\\%c", c);
		else
			line[n++] = c;
	}
	n += sprintf(line + n, json ? "\"}\n" : "\n");
	/* One write: lines of several processes do not mix. */
	if (write(STDERR_FILENO, line, n) < 0)
		return;
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
