// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vm/console.h"
#include "vm/host.h"
#include "vm/proto.h"

/* A log beyond KEEP_MAX loses its middle: how it began and how it ended tell most. */
#define KEEP_MAX	(32u << 20)
#define KEEP_HEAD	(1u << 20)
#define KEEP_CUT	(16u << 20)

struct console {
	char *log;
	size_t len, size;
	char line[1024];
	size_t line_len;
	char latest[200], report[400];
	enum splat worst;
	bool cut, ended;
};

struct console *console_new(void)
{
	return calloc(1, sizeof(struct console));
}

void console_free(struct console *c)
{
	if (c)
		free(c->log);
	free(c);
}

static void end_line(struct console *c)
{
	const char *message;
	enum splat splat;

	c->line[c->line_len] = 0;
	while (c->line_len && strchr("\r \t", c->line[c->line_len - 1]))
		c->line[--c->line_len] = 0;
	splat = splat_classify(c->line, &message);
	c->line_len = 0;
	if (!*message)
		return;
	snprintf(c->latest, sizeof(c->latest), "%s", message);
	if (strstr(message, END_MARKER) == message)
		c->ended = true;
	/* "cut here" says nothing; the report's own line follows it at once. */
	if (splat == SPLAT_CUT || splat == SPLAT_NONE) {
		if (splat == SPLAT_NONE && c->cut)
			snprintf(c->report, sizeof(c->report), "%s", message);
		c->cut = splat == SPLAT_CUT && c->worst < SPLAT_CUT;
		if (c->cut) {
			c->worst = SPLAT_CUT;
			snprintf(c->report, sizeof(c->report), "%s", message);
		}
		return;
	}
	c->cut = false;
	if (splat > c->worst) {
		c->worst = splat;
		snprintf(c->report, sizeof(c->report), "%s", message);
	}
}

void console_feed(struct console *c, const char *data, size_t len)
{
	char *grown;
	size_t i;

	if (c->len + len > c->size) {
		grown = realloc(c->log, 2 * (c->len + len));
		if (grown) {
			c->log = grown;
			c->size = 2 * (c->len + len);
		}
	}
	if (c->len + len <= c->size) {
		memcpy(c->log + c->len, data, len);
		c->len += len;
	}
	if (c->len > KEEP_MAX) {
		memmove(c->log + KEEP_HEAD, c->log + KEEP_HEAD + KEEP_CUT,
			c->len - KEEP_HEAD - KEEP_CUT);
		c->len -= KEEP_CUT;
	}
	for (i = 0; i < len; i++) {
		if (data[i] == '\n')
			end_line(c);
		else if (data[i] && c->line_len < sizeof(c->line) - 1)
			c->line[c->line_len++] = data[i];
	}
}

enum splat console_worst(const struct console *c)
{
	return c->worst;
}

const char *console_report(const struct console *c)
{
	return c->report;
}

bool console_ended(const struct console *c)
{
	return c->ended;
}

const char *console_latest(const struct console *c)
{
	return c->latest;
}

char *console_save(const struct console *c, const char *path, const char *release)
{
	const char *dir = getenv("TMPDIR");
	char *name;
	ssize_t n;
	int fd, e;

	if (path) {
		name = text("%s", path);
		if (!write_file(name, c->log ? c->log : "", c->len))
			return name;
		e = errno;
	} else {
		name = text("%s/mmscope-vm-%s-XXXXXX.log", dir && *dir ? dir : "/tmp", release);
		fd = mkstemps(name, 4);
		e = fd < 0 ? errno : 0;
		for (size_t done = 0; !e && done < c->len; done += n) {
			n = write(fd, c->log + done, c->len - done);
			if (n < 0) {
				e = errno;
				n = 0;
			}
		}
		if (fd >= 0 && close(fd) && !e)
			e = errno;
		if (!e)
			return name;
		if (fd >= 0)
			unlink(name);
	}
	free(name);
	errno = e;
	return NULL;
}
