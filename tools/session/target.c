// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes, threads and cgroups by name, held so that a number that comes back
 * is not taken for the one that was meant.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "data/err.h"
#include "session/target.h"

#define THREAD_LOOK_NS	100000000	/* how often a thread is looked after: see watch() */

static int parse_id(const char *option, const char *text, pid_t *id)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || v < 1 || v > INT_MAX) {
		err("%s", "'%s' is not the number of a %s", option, text,
		    option[1] == 'p' ? "process" : "thread");
		return -1;
	}
	*id = v;
	return 0;
}

/* Is /proc of our own PID namespace, so that its numbers are what the user meant? */
static bool proc_is_ours(void)
{
	char text[16] = "";

	return readlink("/proc/self", text, sizeof(text) - 1) > 0 && atoi(text) == getpid();
}

static int open_process(struct target_task *task)
{
	task->fd = syscall(SYS_pidfd_open, task->id, 0);
	if (task->fd >= 0)
		return 0;
	if (errno == ESRCH)
		err("-p", "there is no process %d", task->id);
	else if (errno == EINVAL || errno == ENOENT)
		/* Of a thread that is not the first: which errno depends on the release. */
		err("-p", "%d is a thread, not a process; give -t %d", task->id, task->id);
	else
		err("-p", "process %d: %s", task->id, strerror(errno));
	return -1;
}

static int open_thread(struct target_task *task)
{
	char path[32];

	if (!proc_is_ours()) {
		err("-t", "/proc is not mounted here, or shows another PID namespace");
		return -1;
	}
	snprintf(path, sizeof(path), "/proc/%d", task->id);
	task->thread = true;
	task->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (task->fd >= 0)
		return 0;
	if (errno == ENOENT)
		err("-t", "there is no thread %d", task->id);
	else
		err("-t", "thread %d: %s", task->id, strerror(errno));
	return -1;
}

static int open_cgroup(struct target *t, const char *path)
{
	char full[PATH_MAX];
	struct statfs fs;

	/* "docker/x" as well as a path: where the hierarchy is by convention. */
	snprintf(full, sizeof(full), "%s", path);
	t->cgroup = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->cgroup < 0 && errno == ENOENT && *path != '/' && *path != '.') {
		snprintf(full, sizeof(full), "/sys/fs/cgroup/%s", path);
		t->cgroup = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (t->cgroup < 0) {
		err("--cgroup", "%s: %s", path, strerror(errno));
		return -1;
	}
	if (fstatfs(t->cgroup, &fs) || fs.f_type != CGROUP2_SUPER_MAGIC) {
		err("--cgroup", "%s is not a cgroup of version 2", path);
		return -1;
	}
	return 0;
}

/*
 * A process's descriptor tells its end. That of a thread would too, but only
 * since 6.9: threads are looked after by a clock.
 */
static int watch(struct target *t)
{
	struct itimerspec it = { .it_interval.tv_nsec = THREAD_LOOK_NS,
				 .it_value.tv_nsec = THREAD_LOOK_NS };
	struct epoll_event event = { .events = EPOLLIN };
	bool threads = false;
	size_t i;

	t->watch = epoll_create1(EPOLL_CLOEXEC);
	if (t->watch < 0)
		return -1;
	for (i = 0; i < t->tasks; i++) {
		threads |= t->task[i].thread;
		/* The same process may be named twice. */
		if (!t->task[i].thread &&
		    epoll_ctl(t->watch, EPOLL_CTL_ADD, t->task[i].fd, &event))
			return -1;
	}
	if (!threads)
		return 0;
	t->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return t->timer < 0 || timerfd_settime(t->timer, 0, &it, NULL) ||
	       epoll_ctl(t->watch, EPOLL_CTL_ADD, t->timer, &event) ? -1 : 0;
}

int target_open(struct target *t, const struct target_names *names)
{
	size_t i, n = names->pids + names->tids;

	*t = (struct target){ .cgroup = -1, .watch = -1, .timer = -1, .comm = names->comm,
			      .everyone = names->all || names->cgroup || names->comm };
	if (n && t->everyone) {
		err("%s", "does not go with -a, --cgroup or --comm", names->pids ? "-p" : "-t");
		return -1;
	}
	if (names->all && (names->cgroup || names->comm)) {
		err("-a", "does not go with %s", names->cgroup ? "--cgroup" : "--comm");
		return -1;
	}
	if (names->cgroup && open_cgroup(t, names->cgroup))
		goto fail;
	if (!n)
		return 0;
	t->task = calloc(n, sizeof(*t->task));
	if (!t->task) {
		err("target", "out of memory");
		goto fail;
	}
	for (i = 0; i < n; i++) {
		struct target_task *task = &t->task[i];
		bool process = i < names->pids;

		task->fd = -1;
		t->tasks++;
		if (parse_id(process ? "-p" : "-t", process ? names->pid[i] :
			     names->tid[i - names->pids], &task->id) ||
		    (process ? open_process(task) : open_thread(task)))
			goto fail;
	}
	if (!watch(t))
		return 0;
	err("target", "cannot be watched: %s", strerror(errno));
fail:
	target_close(t);
	return -1;
}

void target_close(struct target *t)
{
	size_t i;

	for (i = 0; i < t->tasks; i++)
		if (t->task[i].fd >= 0)
			close(t->task[i].fd);
	free(t->task);
	if (t->cgroup >= 0)
		close(t->cgroup);
	if (t->timer >= 0)
		close(t->timer);
	if (t->watch >= 0)
		close(t->watch);
	*t = (struct target){ .cgroup = -1, .watch = -1, .timer = -1 };
}

bool target_follows(const struct target *t)
{
	return t->tasks && !t->task[0].thread;
}

int target_watch(const struct target *t)
{
	return t->watch;
}

/* The state is the word after the name, which may hold anything. */
static bool thread_lives(int directory)
{
	int fd = openat(directory, "stat", O_RDONLY | O_CLOEXEC);
	char text[256] = "", *end;
	ssize_t n;

	if (fd < 0)
		return errno != ENOENT && errno != ESRCH;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	end = n > 0 ? strrchr(text, ')') : NULL;
	return end && end[1] && !strchr("ZX", end[2]);
}

bool target_lives(struct target_task *task)
{
	struct pollfd p = { .fd = task->fd, .events = POLLIN };

	if (!task->gone)
		task->gone = task->thread ? !thread_lives(task->fd) : poll(&p, 1, 0) > 0;
	return !task->gone;
}

bool target_ended(struct target *t)
{
	uint64_t ticks;
	bool any = false;
	size_t i;

	if (t->timer >= 0 && read(t->timer, &ticks, sizeof(ticks)) < 0 && errno != EAGAIN)
		return false;
	for (i = 0; i < t->tasks; i++) {
		struct target_task *task = &t->task[i];
		bool before = task->gone;

		any |= target_lives(task);
		/* It stays readable. */
		if (!before && task->gone && !task->thread)
			epoll_ctl(t->watch, EPOLL_CTL_DEL, task->fd, NULL);
	}
	return t->tasks && !any;
}
