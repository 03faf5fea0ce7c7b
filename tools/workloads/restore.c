// SPDX-License-Identifier: GPL-2.0-only
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workloads/restore.h"

/* Two switches for each folio size that a kernel can have, the global ones, a file. */
#define MAX_UNDO 48

static struct undo {
	char path[PATH_MAX];
	char value[32];		/* empty: remove the file */
} undo[MAX_UNDO];
static volatile sig_atomic_t undos;
static pid_t owner;

void restore_all(void)
{
	struct undo *u;
	ssize_t n;
	int fd;

	/* Only calls that are safe in a signal handler; a forked child owns nothing. */
	if (getpid() != owner)
		return;
	while (undos > 0) {
		u = &undo[undos - 1];
		if (!u->value[0]) {
			unlink(u->path);
		} else {
			fd = open(u->path, O_WRONLY | O_CLOEXEC);
			if (fd >= 0) {
				n = write(fd, u->value, strlen(u->value));
				(void)n;	/* nobody is left to be told */
				close(fd);
			}
		}
		undos--;
	}
}

static void on_signal(int sig)
{
	restore_all();
	/* SA_RESETHAND: the default action now ends the process as it should look. */
	raise(sig);
}

static int add(const char *path, const char *value)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND }, old;
	size_t i;

	if (undos == MAX_UNDO || strlen(path) >= PATH_MAX || strlen(value) >= sizeof(undo->value))
		return -1;
	if (!owner) {
		owner = getpid();
		atexit(restore_all);
		for (i = 0; i < sizeof(signals) / sizeof(*signals); i++)
			/* nohup and shells' background jobs ignore some: keep that. */
			if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN)
				sigaction(signals[i], &sa, NULL);
	}
	strcpy(undo[undos].path, path);
	strcpy(undo[undos].value, value);
	undos++;
	return 0;
}

int restore_write(const char *path, const char *value)
{
	return add(path, value);
}

int restore_unlink(const char *path)
{
	return add(path, "");
}
