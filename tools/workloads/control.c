// SPDX-License-Identifier: GPL-2.0-only
/* Switching a tracer on and off around a region, and handing values to a recording. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/err.h"
#include "workloads/control.h"

#define VALUES_ENV	"MMSCOPE_VALUES_FD"
#define ACK		"ack\n"
#define ACK_LEN		(sizeof(ACK) - 1)
#define ACK_TIMEOUT_MS	60000

static int check_fd(const char *env, int fd, int unwanted)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0) {
		err("%s", "descriptor %d is not open", env, fd);
		return -1;
	}
	if ((flags & O_ACCMODE) == unwanted) {
		err("%s", "descriptor %d is not open for %s", env, fd,
		    unwanted == O_RDONLY ? "writing" : "reading");
		return -1;
	}
	return 0;
}

int control_open(struct control *c)
{
	const char *text = getenv(CONTROL_ENV);

	*c = (struct control){ .ctl = -1, .ack = -1 };
	if (!text)
		return 0;
	if (control_parse(text, &c->ctl, &c->ack)) {
		err(CONTROL_ENV, "'%s' is not CTL or CTL,ACK (numbers of descriptors)", text);
		return -1;
	}
	if (check_fd(CONTROL_ENV, c->ctl, O_RDONLY) ||
	    (c->ack >= 0 && check_fd(CONTROL_ENV, c->ack, O_WRONLY)))
		return -1;
	return 0;
}

int control_open_dry(struct control *c)
{
	int ctl[2], ack[2];

	if (pipe2(ctl, O_CLOEXEC))
		return -1;
	if (pipe2(ack, O_CLOEXEC)) {
		close(ctl[0]);
		close(ctl[1]);
		return -1;
	}
	*c = (struct control){ .ctl = ctl[1], .ack = ack[0], .dry = true,
			       .dry_far = { ctl[0], ack[1] } };
	return 0;
}

void control_close_dry(struct control *c)
{
	close(c->ctl);
	close(c->ack);
	close(c->dry_far[0]);
	close(c->dry_far[1]);
}

static void give_up(struct control *c, const char *why)
{
	warn(CONTROL_ENV, "%s; going on without a controller", why);
	c->ctl = c->ack = -1;
}

/* 1 ready, 0 silent for too long, -1 error */
static int wait_for(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };
	int n;

	do {
		n = poll(&p, 1, ACK_TIMEOUT_MS);
	} while (n < 0 && errno == EINTR);
	return n;
}

static int send_text(int fd, const char *text, size_t len)
{
	ssize_t n;

	while (len) {
		n = write(fd, text, len);
		if (n > 0) {
			text += n;
			len -= n;
		} else if (n < 0 && errno == EAGAIN) {
			if (wait_for(fd, POLLOUT) <= 0)
				return -1;
		} else if (n == 0 || errno != EINTR) {
			return -1;
		}
	}
	return 0;
}

/* NULL for an acknowledgement, else what came instead. */
static const char *read_ack(int fd)
{
	char answer[ACK_LEN];
	size_t len = 0;
	ssize_t n;
	int ready;

	/*
	 * In one read where possible and never beyond its end: several workloads
	 * may share the descriptor, and each must take one whole answer.
	 */
	while (len < ACK_LEN) {
		ready = wait_for(fd, POLLIN);
		if (ready == 0)
			return "no acknowledgement within a minute";
		n = ready < 0 ? -1 : read(fd, answer + len, ACK_LEN - len);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return "the acknowledgement cannot be read";
		if (n == 0)
			return "the controller is gone";
		len += n;
		/* The NUL that may end the previous answer. */
		if (!answer[0])
			memmove(answer, answer + 1, --len);
	}
	return memcmp(answer, ACK, ACK_LEN) ? "the answer is not 'ack'" : NULL;
}

void control_send(struct control *c, const char *command)
{
	const char *why;

	if (c->ctl < 0)
		return;
	if (c->dry && write(c->dry_far[1], ACK, ACK_LEN) < 0)
		return;
	if (send_text(c->ctl, command, strlen(command))) {
		give_up(c, "the controller is gone");
		return;
	}
	if (c->ack < 0)
		return;
	why = read_ack(c->ack);
	if (why)
		give_up(c, why);
}

/* -1: no such variable, -2: unusable (printed) */
static int values_fd(void)
{
	const char *text = getenv(VALUES_ENV);
	int fd, more;

	if (!text)
		return -1;
	if (control_parse(text, &fd, &more) || more >= 0) {
		err(VALUES_ENV, "'%s' is not the number of a descriptor", text);
		return -2;
	}
	return check_fd(VALUES_ENV, fd, O_RDONLY) ? -2 : fd;
}

int values_check(void)
{
	return values_fd() == -2 ? -1 : 0;
}

int values_write(const char *name, uint64_t value, const char *unit, const char *direction)
{
	int fd = values_fd(), n;
	char line[128];

	if (fd < 0)
		return 0;
	n = snprintf(line, sizeof(line), "%s %" PRIu64 " %s %s\n", name, value, unit, direction);
	return send_text(fd, line, n);
}
