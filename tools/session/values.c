// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/err.h"
#include "session/values.h"

#define OUT_MIN	10	/* out of the way of the command's own redirections */

void values_open(struct values *v, int *out)
{
	int fd[2];

	*v = (struct values){ .in = -1 };
	*out = -1;
	if (pipe2(fd, O_CLOEXEC)) {
		warn("values", "%s: those of the command are not recorded", strerror(errno));
		return;
	}
	*out = fcntl(fd[1], F_DUPFD_CLOEXEC, OUT_MIN);
	v->run = run_new();
	if (*out < 0 || !v->run) {
		warn("values", "%s: those of the command are not recorded", strerror(errno));
		if (*out >= 0)
			close(*out);
		*out = -1;
		run_free(v->run);
		v->run = NULL;
		close(fd[0]);
	} else {
		v->in = fd[0];
		fcntl(v->in, F_SETFL, O_NONBLOCK);
	}
	close(fd[1]);
}

/* "name value unit lower|higher", words apart by one or more spaces. */
static bool take_line(struct values *v)
{
	char *word[5], *save = NULL, *end;
	double value;
	size_t n;

	for (n = 0; n < 5; n++) {
		word[n] = strtok_r(n ? NULL : v->line, " \t", &save);
		if (!word[n])
			break;
	}
	if (n != 4 || (strcmp(word[3], "lower") && strcmp(word[3], "higher")))
		return false;
	value = strtod(word[1], &end);
	if (end == word[1] || *end || !isfinite(value) || v->run->values == VALUES_MAX)
		return false;
	return !run_add_value(v->run, word[0], value, word[2], !strcmp(word[3], "lower"));
}

static void end_of_line(struct values *v)
{
	char shown[48];
	bool ok;

	v->line[v->len] = 0;
	snprintf(shown, sizeof(shown), "%.40s%s", v->line, v->len > 40 ? "..." : "");
	ok = !v->overlong && (!v->len || take_line(v));
	v->len = 0;
	v->overlong = false;
	if (!ok && !v->warned) {
		warn(VALUES_ENV, "'%s' is not 'NAME VALUE UNIT lower' or higher: left out", shown);
		v->warned = true;
	}
}

void values_read(struct values *v)
{
	char part[4096];
	ssize_t n, i;

	while (v->in >= 0) {
		n = read(v->in, part, sizeof(part));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			close(v->in);
			v->in = -1;
			return;
		}
		for (i = 0; i < n; i++) {
			if (part[i] == '\n')
				end_of_line(v);
			else if (v->len < sizeof(v->line) - 1)
				v->line[v->len++] = part[i] ? part[i] : '?';
			else
				v->overlong = true;
		}
	}
}

void values_give(struct values *v, struct run *run)
{
	values_read(v);
	if (!v->run)
		return;
	if (v->len)
		end_of_line(v);
	run->value = v->run->value;
	run->values = v->run->values;
	v->run->value = NULL;
	v->run->values = 0;
}

void values_close(struct values *v)
{
	if (v->in >= 0)
		close(v->in);
	run_free(v->run);
	*v = (struct values){ .in = -1 };
}
