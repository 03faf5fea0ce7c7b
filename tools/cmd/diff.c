// SPDX-License-Identifier: GPL-2.0-only
/* mmscope diff: compare two recordings. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/output.h"
#include "data/compare.h"
#include "data/err.h"
#include "data/read.h"
#include "render/diff.h"

struct diff_options {
	bool all, ignore_state, json;
	const char *metric, *format, *output;
};

static int print(const struct diff_options *o, struct diff_view *d)
{
	struct output out;
	int status = d->comparison->status;

	if (output_open(&out, o->output, stdout))
		return EXIT_VERDICT_USAGE;
	view_init(&d->view, out.f);
	if (!strcmp(o->format, "json"))
		output_error(&out, -diff_json(out.f, d));
	else if (!strcmp(o->format, "lkml"))
		diff_lkml(out.f, d);
	else
		diff_text(out.f, d);
	/* A verdict that could not be told in full is none: stop a bisection. */
	if (output_close(&out))
		status = out.gone ? 128 + SIGPIPE : EXIT_VERDICT_USAGE;
	return status;
}

int cmd_diff(int argc, char **argv)
{
	struct diff_options o = { .format = "text" };
	const struct option_def defs[] = {
		{ "all", 0, OPT_FLAG, NULL, "show what stayed the same, too", &o.all },
		{ "metric", 0, OPT_STRING, "METRIC", "show this one only", &o.metric },
		{ "ignore-state", 0, OPT_FLAG, NULL,
		  "decide although the machines' states differ", &o.ignore_state },
		{ "format", 0, OPT_CHOICE, "FORMAT", "how to report", &o.format,
		  .choices = "text|lkml|json" },
		{ "json", 0, OPT_FLAG, NULL, "the same as --format json", &o.json },
		{ "output", 'o', OPT_STRING, "FILE", "report to FILE, - for standard output",
		  &o.output },
		{ 0 }
	};
	const struct option_set set = {
		"diff [OPTIONS] BASE NEW",
		"Compare two recordings. Exits with 0 when all primary metrics are the same or\n"
		"better, 1 when one is worse, 125 when that cannot be told, 129 on wrong usage.",
		defs
	};
	struct recording *rec[2] = { NULL, NULL };
	struct comparison *c = NULL;
	struct diff_view d = { 0 };
	int rest, status = EXIT_NO_VERDICT;
	bool dashes;

	switch (options_parse(&set, argc, argv, &rest, &dashes)) {
	case OPTIONS_OK:
		break;
	case OPTIONS_HELP:
		return EXIT_OK;
	case OPTIONS_BAD:
		return EXIT_VERDICT_USAGE;
	}
	if (o.json)
		o.format = "json";
	err_json(!strcmp(o.format, "json"));
	if (argc - rest != 2) {
		err("diff", "give two recordings, BASE and NEW; %d were given", argc - rest);
		return EXIT_VERDICT_USAGE;
	}
	if (!strcmp(argv[rest], "-") && !strcmp(argv[rest + 1], "-")) {
		err("diff", "standard input can be one of the recordings, not both");
		return EXIT_VERDICT_USAGE;
	}
	rec[0] = recording_read(argv[rest]);
	if (rec[0])
		rec[1] = recording_read(argv[rest + 1]);
	if (!rec[1])
		goto cleanup;
	c = comparison_new(rec[0], rec[1],
			   &(struct compare_options){ .ignore_state = o.ignore_state });
	if (!c) {
		err("diff", "out of memory");
		status = EXIT_VERDICT_USAGE;
		goto cleanup;
	}
	d.comparison = c;
	d.name[0] = argv[rest];
	d.name[1] = argv[rest + 1];
	d.machine[0] = &rec[0]->machine;
	d.machine[1] = &rec[1]->machine;
	d.metric = o.metric;
	d.all = o.all;
	status = print(&o, &d);
cleanup:
	comparison_free(c);
	recording_free(rec[0]);
	recording_free(rec[1]);
	return status;
}
