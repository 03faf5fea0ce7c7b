// SPDX-License-Identifier: GPL-2.0-only
/* Make targets of tasks that run already. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "data/err.h"
#include "session/mark.h"

/* A process that makes threads faster than they are visited is no process to wait for. */
#define ROUNDS_MAX	100

int mark_process(const struct marker *m, int pidfd, const struct task_mark *mark)
{
	char *state = calloc(1, m->value_size);
	int e;

	if (!state)
		return ENOMEM;
	memcpy(state, mark, sizeof(*mark));
	e = bpf_map_update_elem(m->map, &pidfd, state, BPF_NOEXIST) ? errno : 0;
	free(state);
	/* ENOENT: the number has no task any more (kernel/bpf/bpf_task_storage.c). */
	return e == EEXIST ? 0 : e == ENOENT ? ESRCH : e;
}

int mark_self(const struct marker *m, int *pidfd, enum task_role role)
{
	const struct task_mark mark = { .role = role };
	int e;

	if (*pidfd < 0)
		*pidfd = syscall(SYS_pidfd_open, getpid(), 0);
	if (*pidfd < 0) {
		err("session", "pidfd_open: %s", strerror(errno));
		return -1;
	}
	e = mark_process(m, *pidfd, &mark);
	if (e)
		err("session", "cannot mark this process: %s", strerror(e));
	return e ? -1 : 0;
}

void unmark_self(const struct marker *m, int pidfd)
{
	bpf_map_delete_elem(m->map, &pidfd);
}

/* Let the program visit the thread tid, or all tasks (0). Returns 0 or an errno. */
static int visit(const struct marker *m, pid_t tid)
{
	union bpf_iter_link_info info = { .task.tid = tid };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info,
		    .link_info_len = sizeof(info));
	struct bpf_link *link;
	char text[64];
	ssize_t n;
	int fd, e;

	link = bpf_program__attach_iter(m->visit, tid ? &opts : NULL);
	if (!link)
		return errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0) {
		e = errno;
	} else {
		do {
			n = read(fd, text, sizeof(text));
		} while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
		e = n < 0 ? errno : 0;
		close(fd);
	}
	bpf_link__destroy(link);
	return e;
}

/*
 * A task that is not marked when a round starts is visited in it, unless its
 * parent makes it meanwhile and it gets a number that was passed already. So a
 * round that finds none leaves none behind.
 */
static int mark_threads(const struct marker *m, const struct target *t)
{
	const struct task_mark mark = { .role = ROLE_TARGET, .whole = 1 };
	unsigned int round;
	size_t i;
	int e;

	for (round = 0; round < ROUNDS_MAX; round++) {
		/* Again in each: a thread that executes a program becomes the first one. */
		for (i = 0; i < t->tasks; i++) {
			e = t->task[i].thread ? 0 : mark_process(m, t->task[i].fd, &mark);
			if (e && e != ESRCH)
				return e;
		}
		*m->marked = 0;
		e = visit(m, 0);
		if (e || !*m->marked)
			return e;
	}
	return EAGAIN;
}

int mark_targets(const struct marker *m, struct target *t)
{
	bool threads = false;
	size_t i;
	int e = 0;

	if (target_follows(t))
		e = mark_threads(m, t);
	*m->only = 1;
	for (i = 0; i < t->tasks && !e; i++) {
		if (!t->task[i].thread || !target_lives(&t->task[i]))
			continue;
		e = visit(m, t->task[i].id);
		threads = true;
		/* ENOENT, ESRCH: it has just ended. */
		if (e == ENOENT || e == ESRCH)
			e = 0;
	}
	*m->only = 0;
	if (!e)
		return 0;
	if (threads && e == EINVAL)
		err("-t", "this kernel cannot visit a single thread (it can since 6.1)");
	else
		err("target", "its tasks cannot be marked: %s", strerror(e));
	return -1;
}
