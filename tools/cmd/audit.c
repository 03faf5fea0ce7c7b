// SPDX-License-Identifier: GPL-2.0-only
/* mmscope audit: which mappings of a kernel can never batch. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/options.h"
#include "data/err.h"
#include "render/audit.h"
#include "session/audit.h"
#include "vm/vm.h"

static int audit_here(bool json)
{
	char reason[200];
	struct audit a;
	struct view view;
	int status = EXIT_UNOBSERVED, e;

	switch (audit_kernel(&a, reason, sizeof(reason))) {
	case AUDIT_OK:
		break;
	case AUDIT_UNAVAILABLE:
		err("audit", "unavailable (%s)", reason);
		goto cleanup;
	default:
		status = EXIT_INTERNAL;
		goto cleanup;
	}
	view_init(&view, stdout);
	e = json ? audit_json(stdout, &a) : audit_text(stdout, &a, &view);
	status = EXIT_OK;
	if (e && e != -EPIPE) {
		err("audit", "cannot write to stdout: %s", strerror(-e));
		status = EXIT_INTERNAL;
	}

cleanup:
	audit_free(&a);
	return status;
}

int cmd_audit(int argc, char **argv)
{
	struct vm_options vo = VM_OPTIONS_DEFAULT;
	bool json = false, dashes;
	const struct option_def defs[] = {
		{ "kernel", 0, OPT_STRING, "K", "ask kernel K in a VM (see mmscope vm)",
		  &vo.kernel },
		{ "module", 0, OPT_LIST, "NAME", "with --kernel: load this module there",
		  &vo.module },
		{ "json", 0, OPT_FLAG, NULL, "as one JSON object, with the functions", &json },
		{ 0 }
	};
	const struct option_set set = {
		"audit [--kernel K [--module NAME]...] [--json]",
		"Tell of each vm_operations_struct of a kernel which methods it has, and what\n"
		"follows for the mappings that use it: those that can never batch come first.",
		defs,
	};
	int rest, status;

	switch (options_parse(&set, argc, argv, &rest, &dashes)) {
	case OPTIONS_HELP:
		status = EXIT_OK;
		goto cleanup;
	case OPTIONS_BAD:
		status = EXIT_USAGE;
		goto cleanup;
	default:
		break;
	}
	status = EXIT_USAGE;
	if (rest < argc) {
		err("%s", "audit takes no argument", argv[rest]);
		goto cleanup;
	}
	if (vo.module.n && !vo.kernel) {
		err("--module", "goes with --kernel; here it is for modprobe");
		goto cleanup;
	}
	err_json(json);
	if (vo.kernel) {
		char *command[] = { "mmscope", "audit", json ? "--json" : NULL, NULL };

		status = vm_run(&vo, command);
	} else {
		status = audit_here(json);
	}

cleanup:
	option_list_free(&vo.module);
	return status;
}
