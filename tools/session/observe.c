// SPDX-License-Identifier: GPL-2.0-only
/* One observation: the command, signals, timers, and the control of a region. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "data/status.h"
#include "data/control.h"
#include "data/err.h"
#include "session/control.h"
#include "session/images.h"
#include "session/limit.h"
#include "session/observe.h"
#include "session/values.h"

#define KILL_GRACE_NS	2000000000ULL	/* between SIGTERM and SIGKILL */
#define CONTROL_FD_MIN	10	/* out of the way of the command's own redirections */

static sigset_t old_mask;
static bool sigpipe_ignored;	/* by whoever started us: the command inherits it */

struct observation {
	struct session *s;
	const struct observe_options *opts;
	struct control control;
	struct values values;
	int child_control, child_ack;	/* the command's ends of our own pipes */
	int child_values;
	int signals, timer;
	pid_t child;
	bool running;		/* the command */
	bool done;
	bool uncollected;	/* a report could not be had, after an error line */
	int status;		/* exit status of the command */
	int ending, endings;	/* the last signal that asked us to end, and how many */
	int ended_by;		/* the first such signal */
	struct rusage usage;
	uint64_t start_ns, start_boot_ns, deadline;
	uint64_t kill_at;	/* the command's time is over then; 0: it has all the time */
	bool timed_out;
};

static void count_now(const struct observation *o, bool on)
{
	if (o->s)
		session_observe(o->s, on);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static const int endings[] = { SIGINT, SIGTERM, SIGHUP };

#define ENDINGS		(sizeof(endings) / sizeof(endings[0]))

static void ending_signals(sigset_t *set)
{
	struct sigaction sa;
	size_t i;

	sigemptyset(set);
	for (i = 0; i < ENDINGS; i++) {
		/* nohup means it; SIGINT is ignored by every background job of a script. */
		if (endings[i] == SIGHUP && !sigaction(SIGHUP, NULL, &sa) &&
		    sa.sa_handler == SIG_IGN)
			continue;
		sigaddset(set, endings[i]);
	}
}

void observe_prepare(void)
{
	sigset_t set;

	ending_signals(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &old_mask);
	/* A report that nobody reads any more is an error of write(), not the end. */
	sigpipe_ignored = signal(SIGPIPE, SIG_IGN) == SIG_IGN;
	/* Ignored, it would take the status of the command with it. */
	signal(SIGCHLD, SIG_DFL);
}

int observe_interrupted(void)
{
	sigset_t pending, set;
	size_t i;

	ending_signals(&set);
	if (sigpending(&pending))
		return 0;
	for (i = 0; i < ENDINGS; i++)
		if (sigismember(&set, endings[i]) && sigismember(&pending, endings[i]))
			return endings[i];
	return 0;
}

/* ---- the command ---- */

static void close_fds(int a, int b)
{
	if (a >= 0)
		close(a);
	if (b >= 0)
		close(b);
}

/* The command's ends of the pipes: only it must hold them, to end them. */
static void close_child_fds(struct observation *o)
{
	close_fds(o->child_control, o->child_ack);
	close_fds(o->child_values, -1);
	o->child_control = o->child_ack = o->child_values = -1;
}

/* Pipes for a command that controls the observation by itself. */
static void own_control(struct observation *o)
{
	int control[2] = { -1, -1 }, ack[2] = { -1, -1 };

	o->child_control = o->child_ack = -1;
	if (o->opts->control >= 0 || !o->opts->command)
		return;
	if (pipe2(control, O_CLOEXEC) || pipe2(ack, O_CLOEXEC))
		goto fail;
	o->child_control = fcntl(control[1], F_DUPFD_CLOEXEC, CONTROL_FD_MIN);
	o->child_ack = fcntl(ack[0], F_DUPFD_CLOEXEC, CONTROL_FD_MIN);
	if (o->child_control < 0 || o->child_ack < 0)
		goto fail;
	close(control[1]);
	close(ack[0]);
	control_init(&o->control, control[0], ack[1]);
	return;

fail:
	warn("control", "%s: the command cannot choose its region", strerror(errno));
	close_fds(control[0], control[1]);
	close_fds(ack[0], ack[1]);
	close_fds(o->child_control, o->child_ack);
	o->child_control = o->child_ack = -1;
	control_init(&o->control, -1, -1);
}

static int spawn(struct observation *o)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t defaults;
	char value[32];
	int e;

	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	if (o->opts->stdout_to_stderr)
		posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
	if (o->child_control >= 0) {
		/* Onto itself: this is how a close-on-exec descriptor is passed. */
		posix_spawn_file_actions_adddup2(&files, o->child_control, o->child_control);
		posix_spawn_file_actions_adddup2(&files, o->child_ack, o->child_ack);
		snprintf(value, sizeof(value), "%d,%d", o->child_control, o->child_ack);
		setenv(CONTROL_ENV, value, 1);
	} else {
		unsetenv(CONTROL_ENV);
	}
	if (o->child_values >= 0) {
		posix_spawn_file_actions_adddup2(&files, o->child_values, o->child_values);
		snprintf(value, sizeof(value), "%d", o->child_values);
		setenv(VALUES_ENV, value, 1);
	} else {
		unsetenv(VALUES_ENV);
	}
	sigemptyset(&defaults);
	if (!sigpipe_ignored)
		sigaddset(&defaults, SIGPIPE);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawnattr_setsigmask(&attr, &old_mask);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);

	/*
	 * It shares our memory until it executes the command (CLONE_VFORK), so that
	 * it takes no copy-on-write faults of its own, and is a target from its
	 * first instruction: a short command is seen whole.
	 */
	e = o->s ? session_adopt(o->s, true) : 0;
	if (!e) {
		limit_restore();
		e = posix_spawnp(&o->child, o->opts->command[0], &files, &attr,
				 o->opts->command, environ);
		limit_again();
		if (o->s)
			session_adopt(o->s, false);
		if (e) {
			err("%s", "%s", o->opts->command[0], strerror(e));
			o->status = e == ENOENT ? EXIT_NOT_FOUND : EXIT_NO_EXEC;
		}
	} else {
		o->status = EXIT_INTERNAL;
	}
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	close_child_fds(o);
	o->running = !e;
	return e ? -1 : 0;
}

static void reap(struct observation *o)
{
	int status;

	if (!o->running || wait4(o->child, &status, WNOHANG, &o->usage) != o->child)
		return;
	o->running = false;
	o->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	if (o->timed_out)
		o->status = EXIT_TIMEOUT;
}

/* ---- reports ---- */

static uint64_t timeval_ns(struct timeval tv)
{
	return tv.tv_sec * 1000000000ULL + tv.tv_usec * 1000ULL;
}

static uint64_t anon_huge_of(const char *path)
{
	FILE *f = fopen(path, "re");
	unsigned long long kib = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "AnonHugePages: %llu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

/* Of the machine, without our own: how many the kernel gave us says nothing of it. */
static uint64_t anon_huge_kib(void)
{
	uint64_t all = anon_huge_of("/proc/meminfo"), own = anon_huge_of("/proc/self/smaps_rollup");

	return all > own ? all - own : 0;
}

static void boot_id(struct run *run)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (f && fgets(run->boot_id, sizeof(run->boot_id), f))
		run->boot_id[strcspn(run->boot_id, "\n")] = 0;
	if (f)
		fclose(f);
}

static int report(struct observation *o, bool last)
{
	struct run *run;

	if (o->uncollected)
		return -1;
	run = run_new();
	if (!run)
		err("report", "out of memory");
	if (!run || (o->s && session_collect(o->s, run))) {
		run_free(run);
		o->uncollected = true;
		return -1;
	}
	if (o->s)
		session_lap(o->s);
	boot_id(run);
	run->start_ns = o->start_ns;
	run->start_boot_ns = o->start_boot_ns;
	run->wall_ns = now_ns(CLOCK_BOOTTIME) - o->start_boot_ns;
	run->anon_huge_kib = anon_huge_kib();
	values_give(&o->values, run);
	if (last && o->opts->command && !o->running) {
		run->has_command = true;
		run->exit_status = o->status;
		run->user_ns = timeval_ns(o->usage.ru_utime);
		run->sys_ns = timeval_ns(o->usage.ru_stime);
		run->minflt = o->usage.ru_minflt;
		run->majflt = o->usage.ru_majflt;
		run->maxrss_kib = o->usage.ru_maxrss;
	}
	o->start_ns = now_ns(CLOCK_REALTIME);
	o->start_boot_ns = now_ns(CLOCK_BOOTTIME);
	return o->opts->report(run, last, o->opts->arg);
}

/* ---- the loop ---- */

static void on_signal(struct observation *o)
{
	struct signalfd_siginfo info;

	while (read(o->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			reap(o);
			if (!o->running && o->opts->command)
				o->done = true;
			continue;
		}
		o->ending = info.ssi_signo;
		o->endings++;
		if (!o->ended_by)
			o->ended_by = o->ending;
		o->done = true;
		/* A terminal sends it to both; whoever sent it to us alone means both. */
		if (o->running)
			kill(o->child, info.ssi_signo);
	}
}

static void on_control(struct observation *o)
{
	enum control_action action;

	while ((action = control_next(&o->control)) != CONTROL_WAIT) {
		switch (action) {
		case CONTROL_RESTART:
			count_now(o, false);
			if (o->s && session_reset(o->s))
				o->done = true;
			o->start_ns = now_ns(CLOCK_REALTIME);
			o->start_boot_ns = now_ns(CLOCK_BOOTTIME);
			/* fall through */
		case CONTROL_ON:
			count_now(o, true);
			break;
		case CONTROL_OFF:
			count_now(o, false);
			break;
		default:
			break;
		}
		control_ack(&o->control);
	}
}

static int arm_timer(struct observation *o)
{
	double s = o->opts->interval ?: o->opts->duration;
	struct itimerspec it = { 0 };

	o->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (o->timer < 0)
		return -1;
	it.it_value.tv_sec = s;
	it.it_value.tv_nsec = (s - (double)it.it_value.tv_sec) * 1e9;
	if (o->opts->interval)
		it.it_interval = it.it_value;
	return timerfd_settime(o->timer, 0, &it, NULL);
}

static void on_timer(struct observation *o)
{
	uint64_t ticks;

	if (read(o->timer, &ticks, sizeof(ticks)) != sizeof(ticks))
		return;
	if (o->deadline && now_ns(CLOCK_MONOTONIC) + 1000000 >= o->deadline)
		o->done = true;		/* the last report follows */
	else if (o->opts->interval && report(o, false))
		o->done = true;
}

/* The command's time is over: ask it to end, then make it. */
static void on_timeout(struct observation *o)
{
	kill(o->child, o->timed_out ? SIGKILL : SIGTERM);
	o->kill_at = o->timed_out ? 0 : now_ns(CLOCK_MONOTONIC) + KILL_GRACE_NS;
	o->timed_out = true;
}

/* Milliseconds from now to the earlier of both that is set, for poll(). */
static int poll_timeout(uint64_t a, uint64_t b)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), first = a && (a < b || !b) ? a : b, ms;

	if (!first)
		return -1;
	ms = first <= now ? 0 : (first - now) / 1000000 + 1;
	return ms > INT_MAX ? INT_MAX : ms;
}

static void loop(struct observation *o)
{
	struct images *images = o->s ? session_images(o->s) : NULL;

	while (!o->done) {
		struct pollfd fd[6] = {
			{ .fd = o->control.in, .events = POLLIN },
			{ .fd = o->signals, .events = POLLIN },
			{ .fd = o->timer, .events = POLLIN },
			{ .fd = o->values.in, .events = POLLIN },
			{ .fd = o->opts->target ? target_watch(o->opts->target) : -1,
			  .events = POLLIN },
			{ .fd = images ? images_fd(images) : -1, .events = POLLIN },
		};

		if (poll(fd, 6, poll_timeout(o->deadline, o->kill_at)) < 0 && errno != EINTR)
			break;
		if (fd[3].revents)
			values_read(&o->values);
		/* What the command said comes before its end. */
		if (fd[0].revents)
			on_control(o);
		if (fd[1].revents)
			on_signal(o);
		if (fd[2].revents)
			on_timer(o);
		if (fd[5].revents && images_tend(images, false))
			o->done = o->uncollected = true;
		if (fd[4].revents && target_ended(o->opts->target))
			o->done = true;
		if (o->deadline && now_ns(CLOCK_MONOTONIC) >= o->deadline)
			o->done = true;
		if (o->running && o->kill_at && now_ns(CLOCK_MONOTONIC) >= o->kill_at)
			on_timeout(o);
	}
}

/* The report is out; what is left is the command's exit status. */
static void wait_for_command(struct observation *o)
{
	struct pollfd fd[3] = {
		{ .fd = o->signals, .events = POLLIN },
		{ .fd = o->control.in, .events = POLLIN },
		{ .fd = o->values.in, .events = POLLIN },
	};

	/* The first signal went to the command, which may take its time; the next one ends us. */
	while (o->running && o->endings < 2) {
		if (poll(fd, 3, poll_timeout(0, o->kill_at)) < 0 && errno != EINTR)
			break;
		if (o->kill_at && now_ns(CLOCK_MONOTONIC) >= o->kill_at)
			on_timeout(o);
		if (fd[2].revents) {
			/* Nobody records it any more, but it must not block. */
			values_read(&o->values);
			fd[2].fd = o->values.in;
		}
		if (fd[1].revents) {
			/* A region that starts now is not observed any more, but must not hang. */
			while (control_next(&o->control) != CONTROL_WAIT)
				control_ack(&o->control);
			fd[1].fd = o->control.in;
		}
		on_signal(o);
	}
	if (o->running)
		o->status = 128 + o->ending;
}

int observe(struct session *s, const struct observe_options *opts)
{
	struct observation o = {
		.s = s, .opts = opts, .signals = -1, .timer = -1,
		.child_control = -1, .child_ack = -1, .child_values = -1, .values.in = -1,
	};
	sigset_t set;

	control_init(&o.control, opts->control, opts->ack);
	ending_signals(&set);
	sigaddset(&set, SIGCHLD);
	o.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (o.signals < 0) {
		err("observe", "signalfd: %s", strerror(errno));
		return EXIT_INTERNAL;
	}
	own_control(&o);
	if (opts->command)
		values_open(&o.values, &o.child_values);
	if (opts->command && opts->timeout)
		o.kill_at = now_ns(CLOCK_MONOTONIC) + (uint64_t)(opts->timeout * 1e9);
	if (opts->duration)
		o.deadline = now_ns(CLOCK_MONOTONIC) + (uint64_t)(opts->duration * 1e9);
	if ((opts->interval || opts->duration) && arm_timer(&o)) {
		err("observe", "timer: %s", strerror(errno));
		o.status = EXIT_INTERNAL;
		goto cleanup;
	}
	o.start_ns = now_ns(CLOCK_REALTIME);
	o.start_boot_ns = now_ns(CLOCK_BOOTTIME);
	if (opts->command && observe_interrupted()) {
		o.status = 128 + observe_interrupted();
		goto cleanup;
	}
	count_now(&o, true);
	if (opts->command && spawn(&o))
		goto cleanup;
	loop(&o);
	count_now(&o, false);
	reap(&o);
	report(&o, true);
	if (o.running)
		wait_for_command(&o);
	if (o.uncollected)
		o.status = EXIT_INTERNAL;
	if (opts->result)
		*opts->result = (struct observe_result){ .ending = o.ended_by,
							 .timed_out = o.timed_out };

cleanup:
	close_child_fds(&o);
	control_close(&o.control);
	values_close(&o.values);
	if (o.timer >= 0)
		close(o.timer);
	close(o.signals);
	return o.status;
}

static int check_fd(int fd, int unwanted)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && (flags & O_ACCMODE) != unwanted)
		return 0;
	err("--control", "descriptor %d is not open%s", fd,
	    flags < 0 ? "" : unwanted == O_WRONLY ? " for reading" : " for writing");
	return -1;
}

int control_option(const char *text, int *control, int *ack)
{
	if (strncmp(text, "fd:", 3) || control_parse(text + 3, control, ack)) {
		err("--control", "'%s' is not fd:CTL or fd:CTL,ACK (numbers of descriptors)", text);
		return -1;
	}
	if (check_fd(*control, O_WRONLY) || (*ack >= 0 && check_fd(*ack, O_RDONLY)))
		return -1;
	return 0;
}
