// SPDX-License-Identifier: GPL-2.0-only
/* Recordings from files: the stream, and where in it something is wrong. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/err.h"
#include "data/read.h"
#include "data/read_parts.h"

#define CHUNK		65536
#define QUIET_MAX	(1 << 20)	/* longest text, or stretch of white space */

struct source {
	const char *name;
	int fd;				/* -1: the memory below */
	const unsigned char *data;
	size_t len;
};

/* The next piece; 0 at the end, -1 after errno has been set. */
static ssize_t next_piece(struct source *s, unsigned char *room, const unsigned char **piece)
{
	ssize_t n;

	if (s->fd >= 0) {
		do {
			n = read(s->fd, room, CHUNK);
		} while (n < 0 && errno == EINTR);
		*piece = room;
		return n;
	}
	n = s->len < CHUNK ? s->len : CHUNK;
	*piece = s->data;
	s->data += n;
	s->len -= n;
	return n;
}

/* What the parser itself found wrong, in its words. */
static void syntax_error(struct reader *r, yajl_handle y, bool complete)
{
	unsigned char *text;

	if (*r->error)
		return;
	text = yajl_get_error(y, 0, NULL, 0);
	if (text)
		text[strcspn((char *)text, "\n")] = 0;
	if (complete)
		reader_fail(r, "the file ends before the recording does");
	else if (text && strstr((char *)text, "trailing garbage"))
		reader_fail(r, "something follows the recording; a file holds one");
	else
		reader_fail(r, "not JSON: %s", text ? (const char *)text : "unknown error");
	if (text)
		yajl_free_error(y, text);
}

/* Feed the parser to the end; false with the offset of what is wrong. */
static bool parse(struct reader *r, yajl_handle y, struct source *s, unsigned char *room,
		  uint64_t *at)
{
	const unsigned char *piece;
	uint64_t quiet = 0;
	ssize_t n;

	for (*at = 0; (n = next_piece(s, room, &piece)) > 0; *at += n) {
		r->heard = false;
		if (yajl_parse(y, piece, n) != yajl_status_ok) {
			*at += yajl_get_bytes_consumed(y);
			syntax_error(r, y, false);
			return false;
		}
		quiet = r->heard ? 0 : quiet + n;
		if (quiet > QUIET_MAX)
			return reader_fail(r, "a text or white space of more than %d bytes",
					   QUIET_MAX);
	}
	if (n < 0)
		return false;
	if (!*at)
		return reader_fail(r, "the file is empty");
	if (yajl_complete_parse(y) != yajl_status_ok) {
		syntax_error(r, y, true);
		return false;
	}
	return true;
}

static struct recording *read_source(struct source *s)
{
	struct reader *r = calloc(1, sizeof(*r));
	unsigned char *room = malloc(CHUNK);
	struct recording *rec = NULL;
	yajl_handle y = NULL;
	uint64_t at = 0;
	bool ok = false;

	if (r)
		y = yajl_alloc(&reader_callbacks, NULL, r);
	if (!r || !room || !y || !(r->rec = recording_new())) {
		err("%s", "cannot be read: out of memory", s->name);
		goto cleanup;
	}
	ok = parse(r, y, s, room, &at);
	if (ok && r->unknown)
		warn("%s", "left out what this version does not know: %s%s", s->name,
		     r->first_unknown, r->unknown > 1 ? ", and more" : "");
	else if (!ok && r->newer)
		err("%s", "%s", s->name, r->error);
	else if (!ok && *r->error)
		err("%s", "damaged at byte %" PRIu64 ": %s", s->name, at, r->error);
	else if (!ok)
		err("%s", "cannot be read: %s", s->name, strerror(errno));

cleanup:
	if (y)
		yajl_free(y);
	if (r) {
		if (ok)
			rec = r->rec;
		else
			recording_free(r->rec);
	}
	free(room);
	free(r);
	return rec;
}

struct recording *recording_read(const char *path)
{
	bool standard = !strcmp(path, "-");
	struct source s = { .name = standard ? "standard input" : path, .fd = STDIN_FILENO };
	struct recording *rec;

	if (!standard)
		s.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (s.fd < 0) {
		err("%s", "cannot be read: %s", path, strerror(errno));
		return NULL;
	}
	rec = read_source(&s);
	if (!standard)
		close(s.fd);
	return rec;
}

struct recording *recording_read_memory(const char *name, const void *data, size_t len)
{
	struct source s = { .name = name, .fd = -1, .data = data, .len = len };

	return read_source(&s);
}
