// SPDX-License-Identifier: GPL-2.0-only
/* Several observed runs of one command. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "data/status.h"
#include "data/err.h"
#include "session/observe.h"
#include "session/plan.h"
#include "session/series.h"
#include "session/session.h"

#define SURVIVOR_TRIES	50

struct series {
	const struct series_options *opts;
	struct series_result *result;
	struct recording *rec;
	struct plan plan;	/* the session's as long as it lives */
	struct session *session;
	double end;		/* on the monotonic clock; 0: no limit */
	struct run *run;	/* the one that was reported last */
	bool survivors;		/* has been warned of */
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int keep(struct run *run, bool last, void *arg)
{
	struct series *s = arg;

	run_free(s->run);
	s->run = run;
	return 0;
}

/* ---- what a command leaves behind ---- */

/* Those of the dead become our children (PR_SET_CHILD_SUBREAPER). */
static bool reap_survivors(void)
{
	pid_t pid;

	do {
		pid = waitpid(-1, NULL, WNOHANG);
	} while (pid > 0 || (pid < 0 && errno == EINTR));
	return !pid;
}

static bool is_child(const char *pid)
{
	char path[64], line[512], *end;
	int parent;
	FILE *f;

	if (!isdigit((unsigned char)*pid))
		return false;
	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	line[fread(line, 1, sizeof(line) - 1, f)] = 0;
	fclose(f);
	/* The name may hold anything; the last parenthesis ends it. */
	end = strrchr(line, ')');
	return end && sscanf(end, ") %*c %d", &parent) == 1 && parent == getpid();
}

static void kill_survivors(void)
{
	struct timespec pause = { .tv_nsec = 20000000 };
	int tries;

	/* Each round may bring the children of the killed. */
	for (tries = 0; tries < SURVIVOR_TRIES && reap_survivors(); tries++) {
		DIR *dir = opendir("/proc");
		struct dirent *d;

		while (dir && (d = readdir(dir)))
			if (is_child(d->d_name))
				kill(atoi(d->d_name), SIGKILL);
		if (dir)
			closedir(dir);
		nanosleep(&pause, NULL);
	}
}

static void check_survivors(struct series *s, bool killed)
{
	if (!reap_survivors())
		return;
	if (killed) {
		kill_survivors();
	} else if (!s->survivors) {
		s->survivors = true;
		warn("%s", "it left processes behind that still run: what they do counts in the "
		     "runs that follow", s->opts->command[0]);
	}
}

/* ---- one run ---- */

static void describe(char *text, size_t size, int status)
{
	if (status == EXIT_TIMEOUT)
		snprintf(text, size, "was killed: the time limit");
	else if (status > 128 && status < 128 + NSIG)
		snprintf(text, size, "was killed: %s", strsignal(status - 128));
	else
		snprintf(text, size, "ended with status %d", status);
}

static void add_run(struct series *s, size_t number)
{
	struct series_result *r = s->result;
	struct run *run = s->run;
	char text[80];

	r->finished++;
	if (!run->exit_status)
		return;
	describe(text, sizeof(text), run->exit_status);
	warn("run %zu", "the command %s", number, text);
	if (!r->failed++)
		r->status = run->exit_status;
}

/* Time for the next run; *whole: the limit of the series is the nearer one. */
static double time_left(const struct series *s, bool *whole)
{
	double left = s->end ? s->end - now() : 0;

	*whole = s->end && (!s->opts->run_timeout || left < s->opts->run_timeout);
	if (*whole)
		return left > 0.001 ? left : 0.001;
	return s->opts->run_timeout;
}

/* Returns 0, or an exit status after an error line; *stop: no more runs. */
static int run_once(struct series *s, size_t number, bool *stop)
{
	struct observe_result ended = { 0 };
	struct observe_options oo = {
		.command = s->opts->command, .target = s->opts->target,
		.duration = s->opts->duration, .control = -1, .ack = -1,
		.stdout_to_stderr = s->opts->stdout_to_stderr,
		.report = keep, .arg = s, .result = &ended,
	};
	bool whole;
	int status;

	oo.timeout = time_left(s, &whole);
	if (s->session && session_reset(s->session))
		return EXIT_INTERNAL;
	status = observe(s->session, &oo);
	if (s->opts->command)
		check_survivors(s, ended.timed_out || ended.ending);
	*stop = true;
	if (ended.ending) {
		s->result->signal = ended.ending;
		return 0;
	}
	if (ended.timed_out && whole) {
		s->result->timed_out = true;
		return 0;
	}
	if (!s->run)		/* the error has been told: not started, or not collected */
		return status ?: EXIT_INTERNAL;
	*stop = false;
	if (!number)
		return 0;
	if (recording_add(s->rec, s->run)) {
		err("record", "out of memory");
		return EXIT_INTERNAL;
	}
	add_run(s, number);
	s->run = NULL;
	return 0;
}

/* Runs that are numbered from `first`; *stop is left alone unless there shall be no more. */
static int run_all(struct series *s, size_t warmup, size_t runs, size_t first, bool *stop)
{
	const struct series_options *o = s->opts;
	size_t i;
	int e = 0;

	for (i = 0; i < warmup + runs && !*stop && !e; i++) {
		s->result->signal = observe_interrupted();
		if (s->result->signal)
			break;
		s->result->gone = o->target && target_ended(o->target);
		if (s->result->gone)
			break;
		if (s->end && now() >= s->end) {
			s->result->timed_out = true;
			break;
		}
		if (o->progress && i < warmup)
			fprintf(stderr, "mmscope: warm-up %zu of %zu\n", i + 1, warmup);
		else if (o->progress)
			fprintf(stderr, "mmscope: run %zu of %zu\n", i - warmup + first,
				o->runs + o->times);
		e = run_once(s, i < warmup ? 0 : i - warmup + first, stop);
		run_free(s->run);
		s->run = NULL;
	}
	return e;
}

/* Load the programs; *s->session NULL with 0: interrupted. */
static int open_session(struct series *s)
{
	const struct series_options *o = s->opts;
	struct target *t = o->target;
	struct session_options so = { .target = t, .interrupted = observe_interrupted,
				      .by = o->by };
	struct plan_options po = { .domains = o->domains, .exact = o->exact, .quick = true,
				   .reconcile = o->reconcile,
				   .by = o->by && label_domains(o->by) & DOMAIN_LOCK,
				   .unforked = t && !target_follows(t) &&
					       (!o->command || t->everyone) };
	const char *why;

	if (plan_make(&s->plan, &po))
		return EXIT_INTERNAL;
	if (!plan_essential(&s->plan, &why)) {
		err("observe", "cannot observe here: %s; see mmscope probes", why);
		return EXIT_UNOBSERVED;
	}
	s->session = session_open(&s->plan, &so);
	if (s->session)
		return 0;
	s->result->signal = observe_interrupted();
	if (s->result->signal)
		return 0;
	return plan_essential(&s->plan, &why) ? EXIT_INTERNAL : EXIT_UNOBSERVED;
}

int series_record(struct recording *rec, const struct series_options *opts,
		  struct series_result *result)
{
	struct series s = { .opts = opts, .result = result, .rec = rec };
	size_t warmup = opts->warmup;
	bool stop = false;
	int status = 0;

	memset(result, 0, sizeof(*result));
	observe_prepare();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (opts->timeout)
		s.end = now() + opts->timeout;
	if (opts->runs) {
		status = open_session(&s);
		if (status || result->signal)
			return status;
		status = run_all(&s, warmup, opts->runs, 1, &stop);
		session_close(s.session);
		s.session = NULL;
		warmup = 0;
		stop |= result->signal || result->timed_out || result->gone;
	}
	/* With nothing attached. */
	if (!status && !stop)
		status = run_all(&s, warmup, opts->times, opts->runs + 1, &stop);
	return status;
}
