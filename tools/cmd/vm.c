// SPDX-License-Identifier: GPL-2.0-only
/* mmscope vm: run a command under another kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/vm.h"
#include "data/err.h"
#include "vm/kernel.h"
#include "vm/vm.h"

#define MAX_CPUS 255

int vm_parse_cpus(const char *arg, void *dest)
{
	const char *comma = strchrnul(arg, ',');
	struct vm_cpus *cpus = dest;
	uint64_t n, max;
	char first[16];

	snprintf(first, sizeof(first), "%.*s", (int)(comma - arg), arg);
	if (comma - arg >= (int)sizeof(first) || parse_count(first, &n) || !n || n > MAX_CPUS)
		goto bad;
	max = n;
	if (*comma && (strncmp(comma, ",max=", 5) || parse_count(comma + 5, &max)))
		goto bad;
	if (max < n || max > MAX_CPUS) {
		err("--cpus", "'%s': max is not within %u to %u", arg, (unsigned int)n, MAX_CPUS);
		return -1;
	}
	*cpus = (struct vm_cpus){ n, max };
	return 0;
bad:
	err("--cpus", "'%s' is not N or N,max=M with N within 1 to %u", arg, MAX_CPUS);
	return -1;
}

void vm_default_cpus(struct vm_options *opt)
{
	if (!opt->cpus.n)
		opt->cpus = opt->icount ? (struct vm_cpus){ 1, 1 } : (struct vm_cpus){ 2, 2 };
}

static int print_source(void)
{
	char *dir;
	int ret = source_get(&dir);

	if (!ret)
		puts(dir);
	free(dir);
	return ret;
}

int cmd_vm(int argc, char **argv)
{
	struct vm_options opt = VM_OPTIONS_DEFAULT;
	bool dashes, source = false;
	const struct option_def defs[] = {
		{ "kernel", 'k', OPT_STRING, "K", "6.1, ..., a version, vanilla, patched, a bzImage or a tree",
		  .dest = &opt.kernel },
		VM_OPTION_ROWS(opt),
		{ "get", 0, OPT_LIST, "FILE[:LOCAL]", "file to bring back afterwards",
		  .dest = &opt.get },
		{ "disk", 0, OPT_LIST, "FILE", "disk image (raw): /dev/vda, ...",
		  .dest = &opt.disk },
		{ "append", 0, OPT_STRING, "STRING", "more of a kernel command line",
		  .dest = &opt.append },
		{ "log", 0, OPT_STRING, "FILE", "keep the guest's console log there",
		  .dest = &opt.log },
		{ "source", 0, OPT_FLAG, NULL, "print where vanilla's source is; boot nothing",
		  .dest = &source },
		{ 0 }
	};
	const struct option_set set = {
		"vm [OPTIONS] [-- CMD [ARGS]]",
		"Boots kernel K in a virtual machine, runs CMD in it and passes on its output\n"
		"and exit status. Without CMD: a shell on this terminal (Ctrl-A x ends it).",
		defs,
	};
	int rest, ret;

	opt.cpus.n = 0;
	switch (options_parse(&set, argc, argv, &rest, &dashes)) {
	case OPTIONS_OK:
		break;
	case OPTIONS_HELP:
		ret = EXIT_OK;
		goto cleanup;
	default:
		ret = EXIT_USAGE;
		goto cleanup;
	}
	vm_default_cpus(&opt);
	if (source) {
		ret = print_source();
	} else if (rest < argc && !dashes) {
		err("%s", "what is this? A command comes after --: mmscope vm -- CMD", argv[rest]);
		ret = EXIT_USAGE;
	} else if (rest == argc && dashes) {
		err("--", "no command follows");
		ret = EXIT_USAGE;
	} else {
		ret = vm_run(&opt, rest < argc ? argv + rest : NULL);
	}
cleanup:
	option_list_free(&opt.copy);
	option_list_free(&opt.get);
	option_list_free(&opt.disk);
	option_list_free(&opt.module);
	option_list_free(&opt.env);
	return ret;
}
