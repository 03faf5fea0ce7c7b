// SPDX-License-Identifier: GPL-2.0-only
/* mmscope probes: what can be observed on a kernel, and why not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/options.h"
#include "data/err.h"
#include "render/text.h"
#include "session/plan.h"
#include "vm/vm.h"

/* "set_pte_range, bpf_map_mmap_pages" */
static void symbols_text(const struct plan_event *pe, const struct event *e, char *out, size_t size)
{
	unsigned int i;
	size_t n = 0;

	if (e->point == POINT_NONE) {
		snprintf(out, size, "%s", e->id == EVENT_MAP_PAGES_READ ?
			 "bpf_probe_read_kernel" : "-");
		return;
	}
	if (!pe->symbols) {
		snprintf(out, size, "-");
		return;
	}
	for (i = 0; i < pe->symbols; i++)
		n += snprintf(out + n, size - n, "%s%s", i ? ", " : "", pe->symbol[i]);
}

static const char *mechanism_text(const struct plan_event *pe, const struct event *e)
{
	if (pe->absent)
		return "none here";
	if (e->point == POINT_NONE)
		return pe->mech == MECH_NONE ? "refused" : "possible";
	return mechanism_name(pe->mech, e->point) ?: "unavailable";
}

static void print_events(FILE *f, const struct plan *plan, const struct view *view)
{
	struct table t = { .columns = 4, .left = 4, .keep = 4 };
	char symbols[160];
	size_t i;

	table_cell(&t, "EVENT");
	table_cell(&t, "MECHANISM");
	table_cell(&t, "SYMBOL");
	table_cell(&t, "NOTE");
	for (i = 0; i < EVENT_MAX; i++) {
		const struct plan_event *pe = &plan->event[i];

		symbols_text(pe, &events[i], symbols, sizeof(symbols));
		table_cell(&t, "%s", events[i].name);
		table_cell(&t, "%s", mechanism_text(pe, &events[i]));
		table_cell(&t, "%s", symbols);
		table_cell(&t, "%s%s", pe->reason,
			   pe->mech != MECH_NONE || pe->absent || plan->refused ? "" :
			   events[i].need == NEED_QUIET ? "; inferred instead" :
			   events[i].need == NEED_PART ? "; lower bounds without it" : "");
	}
	table_print(f, view, &t);
	table_free(&t);
}

static void print_lost(FILE *f, const struct plan *plan, const struct view *view)
{
	const struct metric *m;
	const char *why;
	bool any = false;

	for (m = metrics; m < metrics + METRIC_MAX; m++) {
		why = plan_metric_missing(plan, m);
		if (!why)
			continue;
		if (!any)
			fprintf(f, "\nMetrics lost:\n");
		any = true;
		fprintf(f, "  %-24s %s\n", m->name, why);
	}
	if (!any)
		fprintf(f, "\nMetrics lost: none\n");
}

static void print_memory(FILE *f, const struct plan_options *opts)
{
	struct plan_memory mem;

	plan_memory(&mem, opts, false);
	fprintf(f, "Memory of the maps: %.1f MiB, %.0f KiB for each of %u possible CPUs "
		   "(%u counters, room for %u pairs of batch histograms and %u of times); "
		   "lock --stacks: %.1f MiB more\n",
		mem.total / 1048576.0, mem.per_cpu / 1024.0, mem.cpus, mem.counters, mem.pairs,
		mem.times, mem.stacks / 1048576.0);
}

static int print_plan(const struct plan *plan)
{
	struct view view;
	const char *why;

	view_init(&view, stdout);
	view.width = 160;	/* symbols are not cut; a narrow terminal wraps them */
	print_events(stdout, plan, &view);
	print_lost(stdout, plan, &view);
	print_memory(stdout, &plan->opts);
	if (!plan->live)
		printf("From files: what may not be patched (notrace) shows only on the kernel itself.\n");
	if (fflush(stdout)) {
		err("output", "cannot be written");
		return EXIT_INTERNAL;
	}
	if (plan_essential(plan, &why))
		return EXIT_OK;
	err("probes", "nothing can be observed here: %s", why);
	return EXIT_UNOBSERVED;
}

/* A kernel that is not running here is asked in a VM. */
static int ask_kernel(const char *kernel, bool exact)
{
	char *argv[] = { "mmscope", "probes", exact ? "--exact" : NULL, NULL };
	struct vm_options vo = VM_OPTIONS_DEFAULT;

	vo.kernel = kernel;
	return vm_run(&vo, argv);
}

int cmd_probes(int argc, char **argv)
{
	const char *kernel = NULL;
	struct plan_options po = { .yield = true, .reconcile = true, .by = true,
				   .domains = DOMAIN_ALL };
	const struct option_def defs[] = {
		{ "btf", 0, OPT_STRING, "FILE", "BTF of another kernel (a vmlinux, or its raw BTF)",
		  &po.btf },
		{ "kallsyms", 0, OPT_STRING, "FILE", "symbols of that kernel (System.map)",
		  &po.kallsyms },
		{ "kernel", 0, OPT_STRING, "K", "ask kernel K in a VM (see mmscope vm)", &kernel },
		{ "exact", 0, OPT_FLAG, NULL, "as `fault --exact` would choose", &po.exact },
		{ 0 }
	};
	const struct option_set set = {
		"probes [OPTIONS]",
		"Tell for each logical event how it can be observed on the running kernel, or\n"
		"on another one; the mechanisms are tried, not guessed.",
		defs,
	};
	struct plan plan;
	bool dashes;
	int rest;

	switch (options_parse(&set, argc, argv, &rest, &dashes)) {
	case OPTIONS_HELP:
		return EXIT_OK;
	case OPTIONS_BAD:
		return EXIT_USAGE;
	default:
		break;
	}
	if (rest < argc) {
		err("%s", "probes takes no argument", argv[rest]);
		return EXIT_USAGE;
	}
	if (kernel && (po.btf || po.kallsyms)) {
		err("--kernel", "does not go with --btf and --kallsyms");
		return EXIT_USAGE;
	}
	if (po.kallsyms && !po.btf) {
		err("--kallsyms", "goes with --btf");
		return EXIT_USAGE;
	}
	if (kernel)
		return ask_kernel(kernel, po.exact);
	if (plan_make(&plan, &po))
		return EXIT_INPUT;
	return print_plan(&plan);
}
