// SPDX-License-Identifier: GPL-2.0-only
/* mmscope list: metrics and labels, from the tables that define them. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/options.h"
#include "data/err.h"
#include "render/json.h"
#include "render/list.h"
#include "render/text.h"

int cmd_list(int argc, char **argv)
{
	bool json = false, markdown = false, dashes;
	const struct option_def defs[] = {
		{ .name = "json", .type = OPT_FLAG, .help = "as one JSON object", .dest = &json },
		{ .name = "markdown", .type = OPT_FLAG, .help = "as the metric reference",
		  .dest = &markdown },
		{ 0 }
	};
	const struct option_set set = {
		"list [--json | --markdown]",
		"Prints the metrics that mmscope measures and the values of their labels.",
		defs
	};
	struct view view;
	int rest, error;

	switch (options_parse(&set, argc, argv, &rest, &dashes)) {
	case OPTIONS_OK:
		break;
	case OPTIONS_HELP:
		return EXIT_OK;
	case OPTIONS_BAD:
		return EXIT_USAGE;
	}
	if (rest < argc) {
		err("list", "'%s' is one word too many; list takes options only", argv[rest]);
		return EXIT_USAGE;
	}
	if (json && markdown) {
		err("list", "--json and --markdown exclude each other; give one");
		return EXIT_USAGE;
	}

	if (json) {
		error = json_write_tables(stdout);
	} else if (markdown) {
		error = list_markdown(stdout);
	} else {
		view_init(&view, stdout);
		error = list_text(stdout, &view);
	}
	if (error && error != -EPIPE) {
		err("list", "cannot write to stdout: %s", strerror(-error));
		return EXIT_INTERNAL;
	}
	return EXIT_OK;
}
