// SPDX-License-Identifier: GPL-2.0-only
/* One run of a guest: passes its output on, watches over it, judges how it ended. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "data/status.h"
#include "data/err.h"
#include "vm/console.h"
#include "vm/getfile.h"
#include "vm/host.h"
#include "vm/proto.h"
#include "vm/run.h"

/* Seconds. Generous: an emulated guest on a busy machine is slow, not dead. */
#define BOOT_MAX	240	/* until init says hello */
#define BOOT_SILENCE	90	/* without a line on the console before that */
#define STALL_GRACE	30	/* to end by itself after a lockup or stall was reported */
#define PANIC_GRACE	10	/* to end by itself after a panic */
#define QUIET_PING	30	/* without output until init is asked whether it lives */
#define PING_MAX	90	/* until it answers */
#define MARKER_WAIT	5	/* for the console's last line */

#define ESCAPE		1	/* Ctrl-A, then x: ends an interactive guest */

enum end {
	END_NONE,	/* still running */
	END_DONE,	/* all results are here */
	END_GONE,	/* the emulator ended */
	END_BOOT,	/* did not boot in time */
	END_HUNG,
	END_TIMEOUT,
	END_OUTPUT,	/* nowhere to write the output to */
	END_QUIT,	/* the user's wish, at the terminal */
	END_SIGNAL,
	END_FAULT,	/* init could not go on */
};

struct stream {
	const char *name;
	int to;
	char buf[65536];
	size_t have, sent;
	uint64_t bytes;
};

struct run {
	const struct vm_options *opt;
	const struct kernel *kernel;
	const char *name;
	struct qemu q;
	struct console *console;
	struct get_files *gets;
	struct stream out, err;
	char msg[sizeof(struct vm_msg) + VM_MSG_MAX];
	size_t msg_len;
	bool tty, icount, escape;
	bool hello, started, exited, done;
	uint32_t status, no_exec;
	struct vm_done counts;
	char fault[512];
	int write_error;
	double begun, started_at, heard, console_at, pinged, stalled, panicked, done_at, shown;
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void on_msg(struct run *r, uint32_t type, const char *data, size_t len)
{
	uint32_t v = 0;

	memcpy(&v, data, len < sizeof(v) ? len : sizeof(v));
	switch (type) {
	case MSG_HELLO:
		r->hello = true;
		break;
	case MSG_STARTED:
		r->started = true;
		r->started_at = now();
		progress_clear();
		break;
	case MSG_FAULT:
		snprintf(r->fault, sizeof(r->fault), "%.*s", (int)len, data);
		break;
	case MSG_NO_EXEC:
		r->no_exec = v;
		break;
	case MSG_EXIT:
		r->exited = true;
		r->status = v;
		break;
	case MSG_FILE:
		if (len == sizeof(struct vm_file)) {
			struct vm_file head;

			memcpy(&head, data, sizeof(head));
			get_files_begin(r->gets, &head);
		}
		break;
	case MSG_DATA:
		get_files_data(r->gets, data, len);
		break;
	case MSG_FILE_END:
		get_files_end(r->gets, v);
		break;
	case MSG_DONE:
		if (len == sizeof(r->counts))
			memcpy(&r->counts, data, sizeof(r->counts));
		r->done = true;
		r->done_at = now();
		break;
	case MSG_PONG:
		r->pinged = 0;
		break;
	}
}

/* -1 when the guest closed its end. */
static int read_ctl(struct run *r)
{
	struct vm_msg head;
	ssize_t n;

	n = read(r->q.ctl, r->msg + r->msg_len, sizeof(r->msg) - r->msg_len);
	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
	r->msg_len += n;
	r->heard = now();
	while (r->msg_len >= sizeof(head)) {
		memcpy(&head, r->msg, sizeof(head));
		if (head.len > VM_MSG_MAX) {
			snprintf(r->fault, sizeof(r->fault), "the guest sends what is no message");
			return -1;
		}
		if (r->msg_len < sizeof(head) + head.len)
			break;
		on_msg(r, head.type, r->msg + sizeof(head), head.len);
		r->msg_len -= sizeof(head) + head.len;
		memmove(r->msg, r->msg + sizeof(head) + head.len, r->msg_len);
	}
	return 0;
}

static int read_console(struct run *r)
{
	char buf[65536];
	ssize_t n = read(r->q.console, buf, sizeof(buf));

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
	console_feed(r->console, buf, n);
	r->console_at = now();
	if (console_worst(r->console) == SPLAT_STALL && !r->stalled)
		r->stalled = r->console_at;
	if (console_worst(r->console) == SPLAT_PANIC && !r->panicked)
		r->panicked = r->console_at;
	return 0;
}

static int read_stream(struct run *r, int fd, struct stream *s)
{
	ssize_t n = read(fd, s->buf, sizeof(s->buf));

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
	s->have = n;
	s->sent = 0;
	s->bytes += n;
	r->heard = now();
	return 0;
}

/*
 * A pipe that poll() calls writable takes PIPE_BUF bytes without blocking, so a
 * reader that stopped cannot keep us from noticing signals and timeouts.
 */
static void write_stream(struct run *r, struct stream *s)
{
	size_t want = s->have - s->sent < 4096 ? s->have - s->sent : 4096;
	ssize_t n = write(s->to, s->buf + s->sent, want);

	if (n < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return;
		r->write_error = errno;
		err(s->name, "cannot be written: %s", strerror(errno));
		return;
	}
	s->sent += n;
	if (s->sent == s->have)
		s->have = s->sent = 0;
}

static void close_fd(int *fd)
{
	close(*fd);
	*fd = -1;
}

/* The user's keys, for an interactive guest. */
static void read_keys(struct run *r, enum end *end)
{
	char buf[256], pass[512];
	ssize_t n = read(STDIN_FILENO, buf, sizeof(buf)), i;
	size_t len = 0;

	if (n <= 0) {
		*end = END_QUIT;
		return;
	}
	for (i = 0; i < n; i++) {
		if (r->escape) {
			r->escape = false;
			if (buf[i] == 'x')
				*end = END_QUIT;
			else
				pass[len++] = buf[i];
		} else if (buf[i] == ESCAPE) {
			r->escape = true;
		} else {
			pass[len++] = buf[i];
		}
	}
	/* Typing faster than a serial port of the emulator takes is dropped, as on a real one. */
	if (len && r->q.tty >= 0 && write(r->q.tty, pass, len) < 0)
		return;
}

static void show_boot(struct run *r)
{
	double t = now();

	if (r->started || t - r->shown < 0.1)
		return;
	r->shown = t;
	progress(false, "booting %s: %.1f s  %.50s", r->kernel->release, t - r->begun,
		 console_latest(r->console));
}

static void send_host(struct run *r, enum vm_msg_type type)
{
	struct vm_msg msg = { type, 0 };

	if (r->q.ctl >= 0 && send(r->q.ctl, &msg, sizeof(msg), MSG_NOSIGNAL) < 0)
		return;
}

static bool all_here(struct run *r)
{
	return r->done && r->out.bytes >= r->counts.out && r->err.bytes >= r->counts.err &&
	       !r->out.have && !r->err.have;
}

static enum end check_clocks(struct run *r)
{
	double t = now();

	if (interrupted())
		return END_SIGNAL;
	if (r->write_error)
		return END_OUTPUT;
	if (all_here(r) && (console_ended(r->console) || t - r->done_at > MARKER_WAIT))
		return END_DONE;
	if (*r->fault && (console_worst(r->console) || t - r->heard > 1))
		return END_FAULT;
	if (r->panicked && t - r->panicked > PANIC_GRACE)
		return END_GONE;
	if (r->opt->timeout > 0 && r->started && !r->exited &&
	    t - r->started_at > r->opt->timeout)
		return END_TIMEOUT;
	if (!r->hello && (t - r->begun > BOOT_MAX || t - r->console_at > BOOT_SILENCE))
		return END_BOOT;
	if (r->stalled && t - r->stalled > STALL_GRACE && !r->tty)
		return END_HUNG;
	/* While our own reader is slow the guest waits for us, not we for it. */
	if (r->out.have || r->err.have) {
		r->heard = t;
		r->pinged = 0;
	}
	if (r->pinged && t - r->pinged > PING_MAX)
		return END_HUNG;
	/* Under --icount an answer would cost instructions of the command's clock. */
	if (r->hello && !r->pinged && !r->icount && t - r->heard > QUIET_PING) {
		r->pinged = t;
		send_host(r, MSG_PING);
	}
	return END_NONE;
}

static enum end attend(struct run *r)
{
	enum end end = END_NONE;
	bool drained = false;

	while (end == END_NONE) {
		struct pollfd p[] = {
			{ r->q.console, POLLIN, 0 },
			{ r->q.ctl, POLLIN, 0 },
			{ r->out.have ? -1 : r->q.out, POLLIN, 0 },
			{ r->err.have ? -1 : r->q.err, POLLIN, 0 },
			{ r->out.have ? r->out.to : -1, POLLOUT, 0 },
			{ r->err.have ? r->err.to : -1, POLLOUT, 0 },
			{ signals_fd(), POLLIN, 0 },
			{ r->tty && !r->out.have ? r->q.tty : -1, POLLIN, 0 },
			{ r->tty && r->started ? STDIN_FILENO : -1, POLLIN, 0 },
		};
		/* With the emulator gone, what it wrote before is still in the sockets. */
		int ready = poll(p, sizeof(p) / sizeof(*p), drained ? 0 : 200);

		if (ready < 0 && errno != EINTR)
			return END_GONE;
		if (drained && !ready)
			return END_GONE;
		if (p[0].revents && read_console(r))
			close_fd(&r->q.console);
		if (p[1].revents && read_ctl(r))
			close_fd(&r->q.ctl);
		if (p[2].revents && read_stream(r, r->q.out, &r->out))
			close_fd(&r->q.out);
		if (p[3].revents && read_stream(r, r->q.err, &r->err))
			close_fd(&r->q.err);
		if (p[4].revents)
			write_stream(r, &r->out);
		if (p[5].revents)
			write_stream(r, &r->err);
		if (p[6].revents)
			signals_drain();
		if (p[7].revents && read_stream(r, r->q.tty, &r->out))
			close_fd(&r->q.tty);
		if (p[8].revents)
			read_keys(r, &end);
		if (qemu_ended(&r->q))
			drained = true;
		show_boot(r);
		if (end == END_NONE)
			end = check_clocks(r);
	}
	return end;
}

/* What went wrong, in words; NULL if nothing did. */
static const char *trouble(struct run *r, enum end end, char *buf, size_t size)
{
	const char *report = console_report(r->console);
	enum splat worst = console_worst(r->console);

	switch (worst) {
	case SPLAT_PANIC:
		snprintf(buf, size, "%s: %s", r->hello ? "panicked" : "panicked while booting",
			 report);
		return buf;
	case SPLAT_STALL:
		snprintf(buf, size, "%s: %s", end == END_HUNG ? "hung" : "stalled", report);
		return buf;
	case SPLAT_OOM:
		snprintf(buf, size, "ran out of memory (--memory gives it more): %s", report);
		return buf;
	case SPLAT_REPORT:
	case SPLAT_CUT:
		snprintf(buf, size, "kernel report: %s", report);
		return buf;
	case SPLAT_NONE:
		break;
	}
	switch (end) {
	case END_GONE:
		snprintf(buf, size, "ended before its result came back");
		qemu_complaint(&r->q, buf + strlen(buf) + 2, size - strlen(buf) - 2);
		if (buf[strlen(buf) + 2])
			memcpy(buf + strlen(buf), ": ", 2);
		return buf;
	case END_HUNG:
		snprintf(buf, size, "hung: its init does not answer");
		return buf;
	case END_BOOT:
		snprintf(buf, size, "does not boot: no sign of init after %.0f s, last line: %.80s",
			 now() - r->begun,
			 *console_latest(r->console) ? console_latest(r->console) : "none");
		return buf;
	case END_FAULT:
		snprintf(buf, size, "%s", r->fault);
		return buf;
	default:
		return NULL;
	}
}

static int judge(struct run *r, enum end end)
{
	char buf[1024] = "", *log = NULL;
	const char *what = NULL;
	int status = r->status, log_error = 0;
	size_t missing = 0;

	if (end == END_SIGNAL)
		return EXIT_GUEST;
	if (end == END_OUTPUT) {
		status = EXIT_GUEST;
	} else if (end != END_QUIT) {
		what = trouble(r, end, buf, sizeof(buf));
		if (what)
			status = !r->started ? EXIT_NO_EXEC : EXIT_GUEST;
		else if (end == END_TIMEOUT)
			status = EXIT_TIMEOUT;
	} else {
		status = 0;
	}
	if (what || end == END_TIMEOUT || r->opt->log) {
		log = console_save(r->console, r->opt->log, r->kernel->release);
		log_error = errno;
	}
	if (end == END_TIMEOUT && !what) {
		snprintf(buf, sizeof(buf), "%s: not done after %g s (--timeout)", r->name,
			 r->opt->timeout);
		what = buf;
	}
	if (what && log)
		err("guest %s", "%s; console log: %s", r->kernel->release, what, log);
	else if (what)
		err("guest %s", "%s; its console log could not be kept: %s", r->kernel->release,
		    what, strerror(log_error));
	else if (r->opt->log && !log)
		err("--log", "'%s' cannot be written: %s", r->opt->log, strerror(log_error));
	free(log);
	if (what)
		return status;
	if (end == END_DONE && r->no_exec) {
		err("%s", "cannot be executed in the guest: %s", r->name, strerror(r->no_exec));
		return r->no_exec == ENOENT ? EXIT_NOT_FOUND : EXIT_NO_EXEC;
	}
	if (end == END_DONE && !(status && r->opt->get_of_success))
		missing = get_files_missing(r->gets);
	/* The command's own failure says more than that its file is not there. */
	return missing && !status ? EXIT_GUEST : status;
}

int guest_run(const struct vm_options *opt, const struct kernel *kernel, int initrd,
	      enum accel accel, bool tty, const char *name)
{
	struct run *r = calloc(1, sizeof(*r));
	struct termios saved, raw;
	enum end end;
	int ret;

	if (!r)
		return EXIT_INTERNAL;
	r->opt = opt;
	r->kernel = kernel;
	r->name = name;
	r->tty = tty;
	r->icount = accel == ACCEL_ICOUNT;
	r->out.name = "standard output";
	r->out.to = opt->out;
	r->err.name = "standard error";
	r->err.to = opt->err;
	r->console = console_new();
	r->gets = get_files_new(&opt->get);
	ret = r->console && r->gets ? qemu_start(&r->q, opt, kernel, initrd, accel, tty) :
				      EXIT_INTERNAL;
	if (ret)
		goto cleanup;
	r->begun = r->console_at = r->heard = now();
	if (tty && !tcgetattr(STDIN_FILENO, &saved)) {
		raw = saved;
		cfmakeraw(&raw);
		tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	} else {
		tty = false;
	}
	end = attend(r);
	if (end == END_DONE)
		send_host(r, MSG_BYE);
	if (tty)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
	progress_clear();
	ret = judge(r, end);
	qemu_stop(&r->q);
cleanup:
	get_files_free(r->gets);
	console_free(r->console);
	free(r);
	return ret;
}
