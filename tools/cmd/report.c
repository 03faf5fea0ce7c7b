// SPDX-License-Identifier: GPL-2.0-only
/* mmscope report: print a recording. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/output.h"
#include "data/err.h"
#include "data/read.h"
#include "render/json.h"
#include "render/report.h"

struct report_options {
	const char *by, *format, *output;
	uint64_t run;
	bool json, each;
};

/* Leave only run n (from 1). Returns 0, or -1 after an error line. */
static int choose_run(struct recording *rec, const char *path, uint64_t n)
{
	struct run *kept;

	if (n > rec->runs) {
		err("--run", "'%" PRIu64 "' is not within the %zu run%s of %s", n, rec->runs,
		    rec->runs == 1 ? "" : "s", path);
		return -1;
	}
	kept = rec->run[n - 1];
	rec->run[n - 1] = rec->run[0];
	rec->run[0] = kept;
	while (rec->runs > 1)
		run_free(rec->run[--rec->runs]);
	return 0;
}

/* Were the runs counted by this label? Those with a fixed set of values always are. */
static bool has_label(const struct recording *rec, const char *by)
{
	size_t l, r, i;

	for (l = 0; l < LABEL_MAX && strcmp(label_name(l), by); l++)
		;
	if (l == LABEL_MAX || label_values(l))
		return true;
	for (r = 0; r < rec->runs; r++)
		for (i = 0; i < rec->run[r]->samples; i++)
			if (sample_label(&rec->run[r]->sample[i], l))
				return true;
	return false;
}

static int print(const struct report_options *o, const struct recording *rec)
{
	struct output out;
	struct view view;

	if (output_open(&out, o->output, stdout))
		return EXIT_USAGE;
	view_init(&view, out.f);
	view.by = o->by;
	if (o->json)
		output_error(&out, -json_write(out.f, rec, false));
	else if (o->each)
		text_screen(out.f, rec, &view);
	else
		text_report(out.f, rec, &view);
	if (output_close(&out))
		return out.gone ? 128 + SIGPIPE : EXIT_INTERNAL;
	return EXIT_OK;
}

int cmd_report(int argc, char **argv)
{
	struct report_options o = { .format = "text" };
	const struct option_def defs[] = {
		{ "by", 0, OPT_CHOICE, "LABEL", "rows by one label", &o.by,
		  .choices = "backing|method|trigger|vm_ops|pid|comm|file|map|order|owner" },
		{ "run", 0, OPT_COUNT, "N", "only run N, in full (from 1)", &o.run, .min = 1 },
		{ "each", 0, OPT_FLAG, NULL, "every run by itself, not their medians", &o.each },
		{ "format", 0, OPT_CHOICE, "FORMAT", "how to report", &o.format,
		  .choices = "text|json" },
		{ "json", 0, OPT_FLAG, NULL, "the same as --format json", &o.json },
		{ "output", 'o', OPT_STRING, "FILE", "report to FILE, - for standard output",
		  &o.output },
		{ 0 }
	};
	const struct option_set set = {
		"report [OPTIONS] FILE",
		"Print what record saved: one run as it was, several as medians, boots apart.\n"
		"FILE may come from any kernel; - is standard input.",
		defs
	};
	const char *file = NULL;
	struct recording *rec;
	int rest, status;
	bool dashes;

	/* Options may follow the file. */
	for (;;) {
		switch (options_parse(&set, argc, argv, &rest, &dashes)) {
		case OPTIONS_OK:
			break;
		case OPTIONS_HELP:
			return EXIT_OK;
		case OPTIONS_BAD:
			return EXIT_USAGE;
		}
		if (rest == argc)
			break;
		if (file) {
			err("report", "'%s' is one word too many; give one recording", argv[rest]);
			return EXIT_USAGE;
		}
		file = argv[rest];
		argv[rest] = argv[0];
		argv += rest;
		argc -= rest;
	}
	if (!strcmp(o.format, "json"))
		o.json = true;
	err_json(o.json);
	if (!file) {
		err("report", "which recording? mmscope report FILE, - for standard input");
		return EXIT_USAGE;
	}
	rec = recording_read(file);
	if (!rec)
		return EXIT_INPUT;
	status = EXIT_INPUT;
	if (!rec->runs && !o.json) {
		err("%s", "there are no runs in it", file);
	} else if (o.run && choose_run(rec, file, o.run)) {
		status = EXIT_USAGE;
	} else if (o.by && !has_label(rec, o.by)) {
		err("--by", "%s was not recorded by %s; record with --by %s", file, o.by, o.by);
		status = EXIT_USAGE;
	} else {
		status = print(&o, rec);
	}
	recording_free(rec);
	return status;
}
