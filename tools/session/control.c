// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "data/err.h"
#include "session/control.h"

void control_init(struct control *c, int in, int ack)
{
	*c = (struct control){ .in = in, .ack = ack };
}

/*
 * A shell that opens a fifo for reading and writing hands us its own open file:
 * O_NONBLOCK would be set for its reads as well, so we ask before each step.
 */
static bool ready(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, 0) > 0;
}

static enum control_action command(struct control *c)
{
	if (!strcmp(c->line, "ping"))
		return CONTROL_NOTHING;
	if (!strcmp(c->line, "enable")) {
		bool first = !c->used;

		c->used = true;
		if (c->open++)
			return CONTROL_NOTHING;
		return first ? CONTROL_RESTART : CONTROL_ON;
	}
	if (!strcmp(c->line, "disable")) {
		c->used = true;
		if (c->open && --c->open)
			return CONTROL_NOTHING;
		return CONTROL_OFF;
	}
	warn("control", "'%s' is not enable, disable or ping: ignored", c->line);
	return CONTROL_NOTHING;
}

enum control_action control_next(struct control *c)
{
	char ch;

	while (c->in >= 0 && ready(c->in, POLLIN)) {
		ssize_t n = read(c->in, &ch, 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return CONTROL_WAIT;
		if (n <= 0) {
			/* No writer is left. */
			close(c->in);
			c->in = -1;
			return CONTROL_WAIT;
		}
		/* perf ends its words with a line feed, some peers with a zero byte. */
		if (ch == '\n' || !ch) {
			size_t len = c->len;

			c->line[len] = 0;
			c->len = 0;
			if (len)
				return command(c);
		} else if (c->len < sizeof(c->line) - 1) {
			c->line[c->len++] = ch;
		}
	}
	return CONTROL_WAIT;
}

void control_ack(struct control *c)
{
	if (c->ack < 0)
		return;
	if (!ready(c->ack, POLLOUT)) {
		warn("control", "the peer does not read its acknowledgements: one is left out");
		return;
	}
	if (write(c->ack, "ack\n", 4) < 0 && errno != EINTR && errno != EAGAIN) {
		close(c->ack);
		c->ack = -1;
	}
}

void control_close(struct control *c)
{
	if (c->in >= 0)
		close(c->in);
	if (c->ack >= 0)
		close(c->ack);
	c->in = c->ack = -1;
}
