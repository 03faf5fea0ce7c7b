/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_VM_H
#define MMSCOPE_VM_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/options.h"

struct vm_cpus {
	unsigned int n, max;
};

/* What to boot, and what to carry in and out (docs/mmscope-vm.1). All pointers are borrowed. */
struct vm_options {
	const char *kernel;		/* K; NULL: the newest pinned */
	const char *tree;		/* where kernel/build is; NULL: to be found */
	struct vm_cpus cpus;
	uint64_t memory;		/* bytes */
	uint64_t numa;			/* nodes */
	bool icount;
	double timeout;			/* seconds of the command's run; 0: none */
	const char *append;		/* more of a kernel command line, or NULL */
	const char *log;		/* keep the console's log there in any case, or NULL */
	struct option_list copy;	/* FILE or FILE:DEST */
	struct option_list get;		/* FILE or FILE:LOCAL */
	bool get_of_success;		/* a command that fails writes none of these files */
	struct option_list disk, module, env;
	int out, err;			/* where the command's stdout and stderr go */
};

#define VM_OPTIONS_DEFAULT                                                                       \
	{                                                                                          \
		.cpus = { 2, 2 }, .memory = 1ULL << 30, .numa = 1, .out = 1, .err = 2,             \
	}

/*
 * What is wrong with them that needs neither kernel nor guest to be found: 0, or
 * EXIT_USAGE after an error line. argv as for vm_run(), which looks for itself.
 */
int vm_check(const struct vm_options *opt, char **argv);

/*
 * Boots the kernel, runs argv (NULL: a shell on the terminal) in it and passes
 * its output on as it comes. argv's words may be replaced by paths that hold
 * in the guest. Returns the command's exit status, or after an error line one
 * of EXIT_USAGE, EXIT_GUEST, EXIT_TIMEOUT, EXIT_NO_EXEC, EXIT_NOT_FOUND.
 * Dies of SIGINT, SIGTERM or SIGHUP if one comes, after the guest is gone.
 */
int vm_run(const struct vm_options *opt, char **argv);

#endif
