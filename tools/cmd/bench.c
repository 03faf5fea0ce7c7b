// SPDX-License-Identifier: GPL-2.0-only
/* mmscope bench: the table of built-in workloads. */
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"
#include "data/err.h"
#include "workloads/workload.h"

static const struct workload workloads[] = {
	{ "arraymap", workload_arraymap, "map a BPF array, touch its pages" },
	{ "touch", workload_touch, "touch anonymous, file or shared memory in some order" },
	{ "ringbuf", workload_ringbuf, "map a BPF ring buffer (PTEs installed by mmap)" },
	{ "io_uring", workload_io_uring, "map an io_uring (PTEs installed by mmap)" },
	{ "contend", workload_contend, "let threads collide on one lock" },
	{ 0 }
};

static void usage(void)
{
	const struct workload *w;

	printf("Usage: mmscope bench NAME [OPTIONS]\n\n"
	       "Run a workload that does an exactly known amount of work.\n\n");
	for (w = workloads; w->name; w++)
		printf("  %-10s %s\n", w->name, w->summary);
	printf("\nmmscope bench NAME --help tells the options of each.\n");
}

int cmd_bench(int argc, char **argv)
{
	const struct workload *w;
	char name[32];

	if (argc < 2) {
		err("bench", "no workload given; see mmscope bench --help");
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		usage();
		return EXIT_OK;
	}
	for (w = workloads; w->name; w++) {
		if (strcmp(argv[1], w->name))
			continue;
		/* Errors of the options name the command with its workload. */
		snprintf(name, sizeof(name), "bench %s", w->name);
		argv[1] = name;
		return w->run(argc - 1, argv + 1);
	}
	err("%s", "no such workload; see mmscope bench --help", argv[1]);
	return EXIT_USAGE;
}
