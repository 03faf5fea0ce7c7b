// SPDX-License-Identifier: GPL-2.0-only
/* Children of the host, the signals that end us meanwhile, and the progress line. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vm/host.h"

static int wake[2] = { -1, -1 };
static volatile sig_atomic_t caught;
static int held;
static struct sigaction saved[4];
static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD };

static void on_signal(int sig)
{
	int e = errno;

	if (sig != SIGCHLD)
		caught = sig;
	/* A full pipe is as good as a written one. */
	if (write(wake[1], "", 1) < 0)
		errno = e;
	errno = e;
}

void signals_hold(void)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	size_t i;

	if (held++)
		return;
	if (wake[0] < 0 && pipe2(wake, O_CLOEXEC | O_NONBLOCK))
		wake[0] = wake[1] = -1;
	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		sigaction(signals[i], NULL, &saved[i]);
		/* Who started us with a signal ignored (nohup) wants it ignored. */
		if (saved[i].sa_handler != SIG_IGN || signals[i] == SIGCHLD)
			sigaction(signals[i], &sa, NULL);
	}
}

void signals_release(void)
{
	size_t i;

	if (--held)
		return;
	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &saved[i], NULL);
	if (caught) {
		int sig = caught;

		progress_clear();
		caught = 0;
		raise(sig);
	}
}

int interrupted(void)
{
	return caught;
}

int signals_fd(void)
{
	return wake[0];
}

void signals_drain(void)
{
	char buf[64];

	while (read(wake[0], buf, sizeof(buf)) > 0)
		;
}

struct sink {
	int fd;
	char *data;
	size_t len;
};

static void sink_read(struct sink *s, void (*on_line)(const char *, void *), void *arg)
{
	char *grown, *start, *nl;
	ssize_t n;

	grown = realloc(s->data, s->len + 4096 + 1);
	if (!grown)
		return;
	s->data = grown;
	n = read(s->fd, s->data + s->len, 4096);
	if (n <= 0) {
		close(s->fd);
		s->fd = -1;
		n = 0;
	}
	s->len += n;
	s->data[s->len] = 0;
	if (!on_line)
		return;
	for (start = s->data; (nl = strchr(start, '\n')); start = nl + 1) {
		*nl = 0;
		on_line(start, arg);
	}
	s->len -= start - s->data;
	memmove(s->data, start, s->len + 1);
}

static void __attribute__((noreturn)) run_child(char *const argv[], const char *cwd, int out,
						int err, pid_t parent)
{
	char *path;
	int null;
	size_t i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	/* A hang-up that we were told to ignore (nohup) is not to end a child either. */
	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (saved[i].sa_handler != SIG_IGN || signals[i] == SIGCHLD)
			signal(signals[i], SIG_DFL);
	null = open("/dev/null", O_RDONLY);
	dup2(null, 0);
	dup2(out, 1);
	if (err >= 0)
		dup2(err, 2);
	if (cwd && chdir(cwd))
		_exit(126);
	path = find_program(argv[0]);
	if (path)
		execv(path, argv);
	_exit(127);
}

char *pass_stderr;

int run_program(char *const argv[], const char *cwd, int silence, char **out, size_t *len,
		char **err, void (*on_line)(const char *line, void *arg), void *arg)
{
	struct sink so = { .fd = -1 }, se = { .fd = -1 };
	int po[2], pe[2], ws = 0, ret = -1;
	pid_t pid, parent = getpid();
	bool given_up = false;

	if (pipe2(po, O_CLOEXEC))
		return -1;
	if (pipe2(pe, O_CLOEXEC)) {
		close(po[0]);
		close(po[1]);
		return -1;
	}
	signals_hold();
	pid = fork();
	if (!pid)
		run_child(argv, cwd, po[1], err == PASS_STDERR ? -1 : pe[1], parent);
	close(po[1]);
	close(pe[1]);
	so.fd = po[0];
	se.fd = pe[0];
	while (pid > 0 && (so.fd >= 0 || se.fd >= 0) && !interrupted() && !given_up) {
		struct pollfd fds[3] = {
			{ so.fd, POLLIN, 0 }, { se.fd, POLLIN, 0 }, { signals_fd(), POLLIN, 0 },
		};
		int ready = poll(fds, 3, silence ? silence * 1000 : -1);

		given_up = !ready;
		if (ready < 0)
			continue;
		if (fds[0].revents)
			sink_read(&so, on_line, arg);
		if (fds[1].revents)
			sink_read(&se, NULL, NULL);
		if (fds[2].revents)
			signals_drain();
	}
	if (so.fd >= 0)
		close(so.fd);
	if (se.fd >= 0)
		close(se.fd);
	if (pid > 0) {
		if (interrupted() || given_up)
			kill(pid, SIGTERM);
		while (waitpid(pid, &ws, 0) < 0 && errno == EINTR)
			;
		if (!interrupted())
			ret = given_up	    ? SILENT :
			      WIFSIGNALED(ws) ? 128 + WTERMSIG(ws) :
						WEXITSTATUS(ws);
	}
	if (ret < 0 || !out) {
		free(so.data);
		so.data = NULL;
	}
	if (ret < 0 || !err || err == PASS_STDERR) {
		free(se.data);
		se.data = NULL;
	}
	if (out)
		*out = so.data;
	if (len)
		*len = so.len;
	if (err && err != PASS_STDERR)
		*err = se.data;
	signals_release();
	return ret;
}

static bool line_open;

void progress(bool milestone, const char *format, ...)
{
	char line[256];
	va_list ap;

	if (!isatty(STDERR_FILENO)) {
		if (!milestone)
			return;
		va_start(ap, format);
		vsnprintf(line, sizeof(line), format, ap);
		va_end(ap);
		fprintf(stderr, "mmscope: %s\n", line);
		return;
	}
	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	fprintf(stderr, "\r\033[Kmmscope: %.100s", line);
	fflush(stderr);
	line_open = true;
}

void progress_clear(void)
{
	if (!line_open)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	line_open = false;
}
