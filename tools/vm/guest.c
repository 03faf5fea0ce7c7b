// SPDX-License-Identifier: GPL-2.0-only
/* The guest's side: process 1 of an otherwise empty system. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "vm/guest.h"
#include "vm/guest_setup.h"
#include "vm/proto.h"

#define PORT_WAIT_MS	10000

struct plan {
	const char *exec, *tty;
	bool probe;
	char **argv, **env, **modules, **gets;	/* end with NULL */
};

struct stream {
	int pipe, port;
	uint64_t bytes;
};

static int ctl = -1;
static char buffer[65536];	/* static: relaying must not fault pages in */

int guest_write(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		p += n;
		len -= n;
	}
	return 0;
}

static int read_all(int fd, void *data, size_t len)
{
	char *p = data;

	while (len) {
		ssize_t n = read(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		p += n;
		len -= n;
	}
	return 0;
}

static void send_msg(enum vm_msg_type type, const void *data, size_t len)
{
	struct vm_msg msg = { type, len };

	if (guest_write(ctl, &msg, sizeof(msg)) || guest_write(ctl, data, len))
		reboot(RB_POWER_OFF);	/* nobody listens any more */
}

static void send_u32(enum vm_msg_type type, uint32_t v)
{
	send_msg(type, &v, sizeof(v));
}

void guest_log(const char *text)
{
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	char line[600];
	int n;

	/* Without its end the kernel may hold a line back until the next one comes. */
	n = snprintf(line, sizeof(line), "%s\n", text);
	if (n >= (int)sizeof(line))
		n = sizeof(line) - 1;
	if (fd < 0 || guest_write(fd, line, n))
		printf("%s\n", text);
	if (fd >= 0)
		close(fd);
}

void guest_fatal(const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (ctl >= 0)
		send_msg(MSG_FAULT, text, strlen(text));
	guest_log(text);
	for (;;) {
		if (ctl >= 0)
			sleep(5);	/* the host ends us as soon as it has read why */
		reboot(RB_POWER_OFF);
	}
}

static char **append(char **list, size_t *n, char *item)
{
	list = realloc(list, (*n + 2) * sizeof(*list));
	if (!list)
		guest_fatal("init: out of memory");
	list[(*n)++] = item;
	list[*n] = NULL;
	return list;
}

static void plan_load(struct plan *plan)
{
	size_t args = 0, envs = 0, modules = 0, gets = 0;
	char *data, *key, *value, *end;
	struct stat st;
	int fd;

	fd = open(PLAN_PATH, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		guest_fatal("init: %s: %s", PLAN_PATH, strerror(errno));
	data = malloc(st.st_size + 1);
	if (!data || read_all(fd, data, st.st_size))
		guest_fatal("init: %s: cannot be read", PLAN_PATH);
	close(fd);
	end = data + st.st_size;
	*end = 0;

	plan->argv = append(plan->argv, &args, NULL);
	plan->env = append(plan->env, &envs, NULL);
	plan->modules = append(plan->modules, &modules, NULL);
	plan->gets = append(plan->gets, &gets, NULL);
	args = envs = modules = gets = 0;
	for (key = data; key < end; key = value + strlen(value) + 1) {
		value = key + strlen(key) + 1;
		if (value > end)
			break;
		if (!strcmp(key, PLAN_EXEC))
			plan->exec = value;
		else if (!strcmp(key, PLAN_TTY))
			plan->tty = value;
		else if (!strcmp(key, PLAN_PROBE))
			plan->probe = true;
		else if (!strcmp(key, PLAN_ARG))
			plan->argv = append(plan->argv, &args, value);
		else if (!strcmp(key, PLAN_ENV))
			plan->env = append(plan->env, &envs, value);
		else if (!strcmp(key, PLAN_MODULE))
			plan->modules = append(plan->modules, &modules, value);
		else if (!strcmp(key, PLAN_GET))
			plan->gets = append(plan->gets, &gets, value);
	}
}

/* Finds the port by its name; the driver probes in its own time, so wait for it. */
static int port_open(const char *wanted)
{
	char path[320], name[64];
	struct dirent *d;
	int fd, waited;
	DIR *dir;
	ssize_t n;

	for (waited = 0; waited < PORT_WAIT_MS; waited++) {
		dir = opendir("/sys/class/virtio-ports");
		while (dir && (d = readdir(dir))) {
			snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", d->d_name);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd < 0)
				continue;
			n = read(fd, name, sizeof(name) - 1);
			close(fd);
			name[n > 0 ? n : 0] = 0;
			name[strcspn(name, "\n")] = 0;
			if (strcmp(name, wanted))
				continue;
			snprintf(path, sizeof(path), "/dev/%s", d->d_name);
			fd = open(path, O_RDWR | O_CLOEXEC);
			if (fd < 0)
				break;
			closedir(dir);
			return fd;
		}
		if (dir)
			closedir(dir);
		usleep(1000);
	}
	guest_fatal("init: no virtio port %s: virtio_console is neither built in nor loaded",
		    wanted);
}

static void tty_setup(const char *size, int *in_out)
{
	struct winsize ws = { 0 };
	int fd = open(TTY_DEVICE, O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		guest_fatal("init: %s: %s", TTY_DEVICE, strerror(errno));
	if (sscanf(size, "%hux%hu", &ws.ws_row, &ws.ws_col) == 2)
		ioctl(fd, TIOCSWINSZ, &ws);
	*in_out = fd;
}

/* The child's half of start(). Reports through the close-on-exec pipe why exec failed. */
static void __attribute__((noreturn)) child(const struct plan *plan, int in, int out, int err,
					    int report)
{
	sigset_t none;
	int e;

	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	dup2(in, 0);
	dup2(out, 1);
	dup2(err, 2);
	if (plan->tty)
		ioctl(0, TIOCSCTTY, 1);
	if (!chdir(GUEST_HOME))
		execve(plan->exec, plan->argv, plan->env);
	e = errno;
	if (write(report, &e, sizeof(e)) < 0)
		_exit(126);
	_exit(127);
}

static pid_t start(const struct plan *plan, struct stream *out, struct stream *err)
{
	int p_out[2], p_err[2], report[2], in, e;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC) || pipe2(p_out, O_CLOEXEC) || pipe2(p_err, O_CLOEXEC))
		guest_fatal("init: pipe: %s", strerror(errno));
	if (plan->tty) {
		tty_setup(plan->tty, &in);
		dup3(in, p_out[1], O_CLOEXEC);
		dup3(in, p_err[1], O_CLOEXEC);
	} else {
		in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	send_msg(MSG_STARTED, NULL, 0);
	pid = fork();
	if (pid < 0)
		guest_fatal("init: fork: %s", strerror(errno));
	if (!pid)
		child(plan, in, p_out[1], p_err[1], report[1]);
	close(in);
	close(p_out[1]);
	close(p_err[1]);
	close(report[1]);
	out->pipe = p_out[0];
	err->pipe = p_err[0];
	fcntl(out->pipe, F_SETFL, O_NONBLOCK);
	fcntl(err->pipe, F_SETFL, O_NONBLOCK);
	if (!read_all(report[0], &e, sizeof(e)))
		send_u32(MSG_NO_EXEC, e);
	close(report[0]);
	return pid;
}

/* One read's worth from the command to the host. False if there was nothing. */
static bool relay(struct stream *s)
{
	ssize_t n;

	if (s->pipe < 0)
		return false;
	n = read(s->pipe, buffer, sizeof(buffer));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		close(s->pipe);
		s->pipe = -1;
		return false;
	}
	if (guest_write(s->port, buffer, n))
		guest_fatal("init: virtio port: %s", strerror(errno));
	s->bytes += n;
	return true;
}

/* Reaps whoever died; true when the command is among them. */
static bool reap(pid_t pid, uint32_t *status)
{
	bool found = false;
	int ws;
	pid_t p;

	while ((p = waitpid(-1, &ws, WNOHANG)) > 0) {
		if (p != pid)
			continue;
		*status = WIFSIGNALED(ws) ? 128 + WTERMSIG(ws) : WEXITSTATUS(ws);
		found = true;
	}
	return found;
}

static void answer(void)
{
	struct vm_msg msg;

	if (read_all(ctl, &msg, sizeof(msg)))
		guest_fatal("init: the host is gone");
	if (msg.type == MSG_PING)
		send_msg(MSG_PONG, NULL, 0);
}

static uint32_t attend(pid_t pid, int sigfd, struct stream *out, struct stream *err)
{
	struct pollfd fds[4];
	uint32_t status = 0;
	struct signalfd_siginfo si;

	for (;;) {
		fds[0] = (struct pollfd){ sigfd, POLLIN, 0 };
		fds[1] = (struct pollfd){ out->pipe, POLLIN, 0 };
		fds[2] = (struct pollfd){ err->pipe, POLLIN, 0 };
		fds[3] = (struct pollfd){ ctl, POLLIN, 0 };
		if (poll(fds, 4, -1) < 0 && errno != EINTR)
			guest_fatal("init: poll: %s", strerror(errno));
		if (fds[1].revents)
			relay(out);
		if (fds[2].revents)
			relay(err);
		if (fds[3].revents & POLLIN)
			answer();
		if ((fds[0].revents & POLLIN) && read(sigfd, &si, sizeof(si)) > 0 &&
		    reap(pid, &status))
			break;
	}
	/* The run ends with the command; what it left behind must not write after it. */
	kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	while (relay(out))
		;
	while (relay(err))
		;
	return status;
}

static void send_file(uint32_t index, const char *path)
{
	struct vm_file head = { .index = index };
	struct stat st;
	ssize_t n;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		head.error = errno;
	} else if (S_ISDIR(st.st_mode)) {
		head.error = EISDIR;
	} else {
		head.mode = st.st_mode & 0777;
	}
	send_msg(MSG_FILE, &head, sizeof(head));
	if (!head.error) {
		while ((n = read(fd, buffer, VM_MSG_MAX)) > 0)
			send_msg(MSG_DATA, buffer, n);
		send_u32(MSG_FILE_END, n < 0 ? errno : 0);
	}
	if (fd >= 0)
		close(fd);
}

int guest_init(void)
{
	struct stream out = { -1, -1, 0 }, err = { -1, -1, 0 };
	struct plan plan = { 0 };
	struct vm_done done;
	struct utsname uts;
	uint32_t status, i;
	sigset_t mask;
	pid_t pid;
	int sigfd;

	umask(022);
	signal(SIGPIPE, SIG_IGN);
	setup_mounts();
	plan_load(&plan);
	setup_modules(plan.modules);
	ctl = port_open(PORT_CTL);
	uname(&uts);
	send_msg(MSG_HELLO, uts.release, strlen(uts.release));
	if (plan.probe)
		guest_fatal("probe");
	out.port = port_open(PORT_OUT);
	err.port = port_open(PORT_ERR);
	setup_system();

	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	sigfd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sigfd < 0)
		guest_fatal("init: signalfd: %s", strerror(errno));

	pid = start(&plan, &out, &err);
	status = attend(pid, sigfd, &out, &err);
	send_u32(MSG_EXIT, status);
	if (chdir(GUEST_HOME))
		guest_fatal("init: %s: %s", GUEST_HOME, strerror(errno));
	for (i = 0; plan.gets[i]; i++)
		send_file(i, plan.gets[i]);
	if (chdir("/"))
		guest_fatal("init: /: %s", strerror(errno));
	setup_undo();
	guest_log("<1>" END_MARKER);
	done = (struct vm_done){ out.bytes, err.bytes };
	send_msg(MSG_DONE, &done, sizeof(done));
	for (;;) {
		struct vm_msg msg;

		if (read_all(ctl, &msg, sizeof(msg)) || msg.type == MSG_BYE)
			reboot(RB_POWER_OFF);
	}
}
