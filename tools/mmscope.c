// SPDX-License-Identifier: GPL-2.0-only
/* mmscope: how memory was populated, per page or in batches. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "data/err.h"
#include "vm/guest.h"

static const struct command commands[] = {
	{ "fault", cmd_fault, "page faults, fault-around and PTE installs of a command" },
	{ "lock", cmd_lock, "waits for locks of memory management, by the lock's class" },
	{ "trace", cmd_trace, "both at once" },
	{ "record", cmd_record, "save what a command did, run by run" },
	{ "report", cmd_report, "print what was saved, on any machine" },
	{ "diff", cmd_diff, "compare two recordings, with a verdict" },
	{ "ab", cmd_ab, "boot two kernels in turns, record, compare" },
	{ "check", cmd_check, "hold expectations against a recording or a command" },
	{ "probes", cmd_probes, "what can be observed on a kernel, and why not" },
	{ "audit", cmd_audit, "which mappings of a kernel can never batch" },
	{ "bench", cmd_bench, "run a built-in workload of exactly known work" },
	{ "vm", cmd_vm, "run a command under another kernel in a VM" },
	{ "list", cmd_list, "metrics and labels" },
	{ 0 }
};

static void usage(FILE *to)
{
	const struct command *c;

	fprintf(to, "Usage: mmscope COMMAND [OPTIONS]\n\n");
	for (c = commands; c->name; c++)
		fprintf(to, "  %-8s %s\n", c->name, c->summary);
	fprintf(to, "\nmmscope COMMAND --help tells the options of each.\n");
}

int main(int argc, char **argv)
{
	static char help[] = "--help";
	const struct command *c;

	/*
	 * Packed into an initramfs this binary is also the guest's init, which the kernel
	 * starts by that name. The first process of a container is an ordinary one.
	 */
	if (getpid() == 1 && argc && !strcmp(argv[0], "/init"))
		return guest_init();

	if (argc < 2) {
		err("command", "none given; see mmscope --help");
		return EXIT_USAGE;
	}
	/* "help CMD" is "CMD --help". */
	if (!strcmp(argv[1], "help") && argc > 2) {
		memmove(argv + 1, argv + 2, (argc - 2) * sizeof(*argv));
		argv[argc - 1] = help;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return EXIT_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("mmscope %s\n", MMSCOPE_VERSION);
		return EXIT_OK;
	}
	for (c = commands; c->name; c++)
		if (!strcmp(argv[1], c->name))
			return c->run(argc - 1, argv + 1);
	err("%s", "no such command; see mmscope --help", argv[1]);
	return EXIT_USAGE;
}
