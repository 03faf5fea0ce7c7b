// SPDX-License-Identifier: GPL-2.0-only
/* mmscope check: hold expectations against a recording. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/output.h"
#include "cmd/record.h"
#include "data/err.h"
#include "data/expect.h"
#include "data/read.h"
#include "render/ktap.h"
#include "session/series.h"

#define EXPECT_BYTES	(1 << 20)
#define RUNS_MAX	100000

struct check_options {
	const char *expect, *base, *file, *output;
	uint64_t runs, warmup;
	double run_timeout, timeout;
	bool exact, ignore_state;
};

/* The whole file; NULL after an error line. */
static char *load(const char *path, size_t *len)
{
	char *text = malloc(EXPECT_BYTES + 1);
	FILE *f = strcmp(path, "-") ? fopen(path, "re") : stdin;

	*len = 0;
	if (f && text) {
		errno = 0;
		*len = fread(text, 1, EXPECT_BYTES + 1, f);
	}
	if (!f || !text || ferror(f)) {
		err("%s", "cannot be read: %s", path, strerror(errno ?: ENOMEM));
		goto fail;
	}
	if (*len > EXPECT_BYTES) {
		err("%s", "more than %d bytes: that is no list of expectations", path,
		    EXPECT_BYTES);
		goto fail;
	}
	if (f != stdin)
		fclose(f);
	return text;

fail:
	if (f && f != stdin)
		fclose(f);
	free(text);
	return NULL;
}

/* Observe the command now. Returns the recording, or NULL and a status after an error line. */
static struct recording *observe_command(const struct check_options *o, char **command,
					 int *status)
{
	struct series_options so = {
		.command = command, .runs = o->runs, .warmup = o->warmup,
		.run_timeout = o->run_timeout, .timeout = o->timeout, .exact = o->exact,
		.stdout_to_stderr = !o->output || !strcmp(o->output, "-"),
	};
	struct recording *rec = recording_new();
	struct series_result result;
	int e;

	*status = EXIT_VERDICT_USAGE;
	if (!rec || record_command(rec, command)) {
		err("check", "out of memory");
		goto fail;
	}
	machine_read(&rec->machine);
	e = series_record(rec, &so, &result);
	if (e) {
		*status = e == EXIT_INTERNAL ? EXIT_VERDICT_USAGE : EXIT_NO_VERDICT;
		goto fail;
	}
	if (result.signal) {
		/* Whoever interrupts a bisection does not want the next step. */
		err("check", "interrupted: %s", strsignal(result.signal));
		goto fail;
	}
	if (result.timed_out) {
		err("check", "the time limit came before the last run had finished");
		*status = EXIT_NO_VERDICT;
		goto fail;
	}
	return rec;

fail:
	recording_free(rec);
	return NULL;
}

/* Judge and print; returns the exit status. */
static int judge(const struct expectations *e, const struct recording *rec,
		 const struct recording *base, const struct check_options *o, FILE *f)
{
	const struct expect_options eo = { .ignore_state = o->ignore_state };
	size_t count[3] = { 0 }, i;
	struct expect_result r;

	ktap_plan(f, expect_count(e));
	for (i = 0; i < expect_count(e); i++) {
		if (expect_judge(e, i, rec, base, &eo, &r)) {
			err("check", "out of memory");
			fputs("Bail out! out of memory\n", f);
			return EXIT_VERDICT_USAGE;
		}
		ktap_result(f, i + 1, &r);
		count[r.verdict]++;
		expect_result_free(&r);
	}
	fprintf(f, "# %zu held, %zu did not, %zu cannot be told\n", count[EXPECT_OK],
		count[EXPECT_NOT_OK], count[EXPECT_SKIP]);
	return count[EXPECT_NOT_OK] ? EXIT_WORSE : count[EXPECT_SKIP] ? EXIT_NO_VERDICT : EXIT_OK;
}

static int run_check(const struct check_options *o, char **command)
{
	struct recording *rec = NULL, *base = NULL;
	struct expectations *e = NULL;
	struct output out;
	unsigned int line;
	char *text;
	size_t len;
	int status = EXIT_VERDICT_USAGE;

	text = load(o->expect, &len);
	if (text)
		e = expect_parse(o->expect, text, len);
	if (!e)
		goto cleanup;
	line = expect_base_line(e);
	if (line && !o->base) {
		err("%s", "line %u: it refers to base; give --base FILE", o->expect, line);
		goto cleanup;
	}
	status = EXIT_NO_VERDICT;
	if (o->base) {
		base = recording_read(o->base);
		if (!base)
			goto cleanup;
	}
	rec = command ? observe_command(o, command, &status) : recording_read(o->file);
	if (!rec)
		goto cleanup;
	status = EXIT_VERDICT_USAGE;
	if (output_open(&out, o->output, stdout))
		goto cleanup;
	status = judge(e, rec, base, o, out.f);
	/* A verdict that could not be told in full is none: stop a bisection. */
	if (output_close(&out))
		status = out.gone ? 128 + SIGPIPE : EXIT_VERDICT_USAGE;

cleanup:
	recording_free(rec);
	recording_free(base);
	expect_free(e);
	free(text);
	return status;
}

static int check_words(const struct check_options *o, size_t words, bool dashes, bool command)
{
	unsigned int from_stdin = 0;

	if (!words) {
		err("check", "no expectations: mmscope check EXPECT FILE, or EXPECT -- CMD");
		return -1;
	}
	if (dashes && !command) {
		err("--", "no command follows");
		return -1;
	}
	if (dashes && o->file) {
		err("%s", "a recording and a command; give one of them", o->file);
		return -1;
	}
	if (!dashes && !o->file) {
		err("check", "nothing to check: give a recording, or -- CMD");
		return -1;
	}
	if (!dashes && (o->warmup || o->runs != 1 || o->run_timeout || o->timeout || o->exact)) {
		err("check", "runs, limits and --exact are for a command; FILE is what it is");
		return -1;
	}
	from_stdin = !strcmp(o->expect, "-") + (o->base && !strcmp(o->base, "-")) +
		     (o->file && !strcmp(o->file, "-"));
	if (from_stdin > 1) {
		err("check", "standard input can be one of the files only");
		return -1;
	}
	return 0;
}

int cmd_check(int argc, char **argv)
{
	struct check_options o = { .runs = 1 };
	const struct option_def defs[] = {
		{ "base", 0, OPT_STRING, "FILE", "the recording that base.METRIC refers to",
		  &o.base },
		{ "ignore-state", 0, OPT_FLAG, NULL,
		  "use the base although the machines' states differ", &o.ignore_state },
		{ "runs", 'n', OPT_COUNT, "RUNS", "how often to run CMD (default 1)", &o.runs,
		  .min = 1, .max = RUNS_MAX },
		{ "warmup", 0, OPT_COUNT, "N", "runs before these that do not count", &o.warmup,
		  .max = RUNS_MAX },
		{ "run-timeout", 0, OPT_SECONDS, "SECONDS", "kill a run that takes longer",
		  &o.run_timeout },
		{ "timeout", 0, OPT_SECONDS, "SECONDS", "give up after this time", &o.timeout },
		{ "exact", 0, OPT_FLAG, NULL,
		  "kprobes, which are not preempted (they cost more)", &o.exact },
		{ "output", 'o', OPT_STRING, "FILE", "results to FILE, - for standard output",
		  &o.output },
		{ 0 }
	};
	const struct option_set set = {
		"check EXPECT [OPTIONS] FILE | -- CMD [ARGS]",
		"Hold the expectations in EXPECT against a recording, or against CMD. Exits\n"
		"with 0 when all hold, 1 when one does not, 125 when that cannot be told, 129 on\n"
		"wrong usage or a malformed EXPECT.",
		defs,
	};
	const char **word[] = { &o.expect, &o.file };
	size_t words = 0;
	bool dashes = false;
	int rest;

	/* Options may stand between the words. */
	for (;;) {
		switch (options_parse(&set, argc, argv, &rest, &dashes)) {
		case OPTIONS_HELP:
			return EXIT_OK;
		case OPTIONS_BAD:
			return EXIT_VERDICT_USAGE;
		default:
			break;
		}
		if (dashes || rest == argc)
			break;
		if (words == sizeof(word) / sizeof(*word)) {
			err("check", "'%s' is one word too many", argv[rest]);
			return EXIT_VERDICT_USAGE;
		}
		*word[words++] = argv[rest];
		argv[rest] = argv[0];
		argv += rest;
		argc -= rest;
	}
	if (check_words(&o, words, dashes, rest < argc))
		return EXIT_VERDICT_USAGE;
	return run_check(&o, dashes ? argv + rest : NULL);
}
