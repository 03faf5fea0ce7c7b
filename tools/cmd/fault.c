// SPDX-License-Identifier: GPL-2.0-only
/* mmscope fault: observe page faults and PTE installs. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/output.h"
#include "data/err.h"
#include "render/json.h"
#include "render/text.h"
#include "session/observe.h"
#include "session/plan.h"
#include "session/session.h"

struct fault_options {
	bool all, json, exact, yield, reconcile;
	struct option_list pids, tids;
	const char *cgroup, *comm;
	double duration, interval;
	const char *format, *by, *control, *output;
};

struct report {
	struct output out;
	struct view view;
	bool json, one_line, printed, closed;
	struct recording *rec;
};

static int print(struct run *run, bool last, void *arg)
{
	struct report *r = arg;
	int e;

	r->printed = true;
	if (recording_add(r->rec, run)) {
		run_free(run);
		err("report", "out of memory");
		return -1;
	}
	if (r->json) {
		e = json_write(r->out.f, r->rec, r->one_line);
		if (e)
			output_error(&r->out, -e);
	} else {
		text_fault(r->out.f, r->rec, &r->view);
	}
	/* An interval's recording holds that interval as its run. */
	while (r->rec->runs)
		run_free(r->rec->run[--r->rec->runs]);
	/* Complete now, though the command may go on (-d, a signal). */
	r->closed = last;
	return last ? output_close(&r->out) : output_flush(&r->out);
}

static char **copy_command(char **argv)
{
	size_t n = 0;
	char **copy;

	while (argv[n])
		n++;
	copy = calloc(n + 1, sizeof(*copy));
	for (n = 0; copy && argv[n]; n++)
		copy[n] = strdup(argv[n]);
	return copy;
}

static int check_options(const struct fault_options *o, bool dashes, char **command)
{
	if (!*command && dashes) {
		err("--", "no command follows");
		return EXIT_USAGE;
	}
	if (*command && !dashes) {
		err("%s", "put -- before the command", *command);
		return EXIT_USAGE;
	}
	if (*command && (o->pids.n || o->tids.n)) {
		err("%s", "does not go with a command: observe one or the other",
		    o->pids.n ? "-p" : "-t");
		return EXIT_USAGE;
	}
	if (!*command && !o->all && !o->pids.n && !o->tids.n && !o->cgroup && !o->comm) {
		err("fault", "nothing to observe: give -- CMD, -p PID, -t TID, --cgroup PATH, "
		    "--comm NAME, or -a for the whole system");
		return EXIT_USAGE;
	}
	if (o->interval && o->duration && o->interval > o->duration) {
		err("-i", "the interval is longer than the duration (-d)");
		return EXIT_USAGE;
	}
	return 0;
}

static int run_fault(const struct fault_options *o, struct target *target, char **command,
		     int control, int ack)
{
	struct session_options so = { .target = target, .interrupted = observe_interrupted,
				      .yield = o->yield,
				      .by = o->by ? label_by_name(o->by) : 0 };
	struct report r = { .json = o->json, .one_line = o->interval > 0 };
	struct observe_options oo = {
		.command = *command ? command : NULL, .target = target,
		.duration = o->duration, .interval = o->interval,
		.control = control, .ack = ack,
		.stdout_to_stderr = *command && o->output && !strcmp(o->output, "-"),
		.report = print, .arg = &r,
	};
	struct plan_options po = { .exact = o->exact, .quick = true, .yield = o->yield,
				   .reconcile = o->reconcile,
				   .unforked = !target_follows(target) &&
					       (!*command || target->everyone) };
	struct session *s = NULL;
	struct plan plan;
	const char *why;
	int status = EXIT_INTERNAL;

	observe_prepare();
	if (plan_make(&plan, &po))
		return EXIT_INTERNAL;
	if (!plan_essential(&plan, &why)) {
		err("fault", "cannot observe here: %s; see mmscope probes", why);
		return EXIT_UNOBSERVED;
	}
	r.rec = recording_new();
	if (!r.rec) {
		err("fault", "out of memory");
		return EXIT_INTERNAL;
	}
	machine_read(&r.rec->machine);
	if (*command)
		r.rec->command = copy_command(command);
	if (output_open(&r.out, o->output, *command ? stderr : stdout)) {
		status = EXIT_USAGE;
		goto cleanup;
	}
	view_init(&r.view, r.out.f);
	r.view.by = o->by;
	r.view.brief = o->interval > 0;

	s = session_open(&plan, &so);
	if (s)
		status = observe(s, &oo);
	else if (observe_interrupted())
		status = 128 + observe_interrupted();
	else if (!plan_essential(&plan, &why))
		status = EXIT_UNOBSERVED;
	/* A file that appears holds a report. */
	if (!r.printed)
		output_discard(&r.out);
	else if (!r.closed)
		output_close(&r.out);
	if (r.out.gone && !*command)
		status = 128 + SIGPIPE;
	else if (r.out.failed && !r.out.gone)
		status = EXIT_INTERNAL;

cleanup:
	session_close(s);
	recording_free(r.rec);
	return status;
}

int cmd_fault(int argc, char **argv)
{
	struct fault_options o = { .format = "text" };
	const struct option_def defs[] = {
		{ "pid", 'p', OPT_LIST, "PID", "a process that runs (repeatable)", &o.pids },
		{ "tid", 't', OPT_LIST, "TID", "a single thread (repeatable)", &o.tids },
		{ "cgroup", 'c', OPT_STRING, "PATH", "who is in a cgroup, or in one below",
		  &o.cgroup },
		{ "comm", 0, OPT_STRING, "NAME", "threads while they have this name", &o.comm },
		{ "all", 'a', OPT_FLAG, NULL, "the whole system", &o.all },
		{ "duration", 'd', OPT_SECONDS, "SECONDS", "stop observing after this time",
		  &o.duration },
		{ "interval", 'i', OPT_SECONDS, "SECONDS", "report what is new, again and again",
		  &o.interval },
		{ "by", 0, OPT_CHOICE, "LABEL", "rows by one label", &o.by,
		  .choices = "backing|method|trigger|vm_ops|pid|comm|file|map|order" },
		{ "yield", 0, OPT_FLAG, NULL,
		  "what fault-around would gain, while it is off", &o.yield },
		{ "reconcile", 0, OPT_FLAG, NULL,
		  "what RSS grew by, munmap, exit, fork (starts slower)", &o.reconcile },
		{ "exact", 0, OPT_FLAG, NULL,
		  "kprobes, which are not preempted (they cost more)", &o.exact },
		{ "control", 0, OPT_STRING, "fd:CTL[,ACK]",
		  "read enable and disable from CTL, answer ack on ACK", &o.control },
		{ "format", 0, OPT_CHOICE, "FORMAT", "how to report", &o.format,
		  .choices = "text|json" },
		{ "json", 0, OPT_FLAG, NULL, "the same as --format json", &o.json },
		{ "output", 'o', OPT_STRING, "FILE", "report to FILE, - for standard output",
		  &o.output },
		{ 0 }
	};
	const struct option_set set = {
		"fault [TARGET] [OPTIONS] [-- CMD [ARGS]]",
		"Count page faults, fault-around and PTE installs of CMD and all that it\n"
		"starts, or of others: how many PTEs per hold of the page-table lock, and what\n"
		"was refused.",
		defs,
	};
	int control = -1, ack = -1, rest, status = EXIT_USAGE;
	struct target target;
	bool dashes;

	switch (options_parse(&set, argc, argv, &rest, &dashes)) {
	case OPTIONS_HELP:
		status = EXIT_OK;
		goto cleanup;
	case OPTIONS_BAD:
		goto cleanup;
	default:
		break;
	}
	if (!strcmp(o.format, "json"))
		o.json = true;
	err_json(o.json);
	if (check_options(&o, dashes, argv + rest))
		goto cleanup;
	if (o.control && control_option(o.control, &control, &ack))
		goto cleanup;
	if (target_open(&target, &(struct target_names){
			.pid = o.pids.item, .pids = o.pids.n, .tid = o.tids.item,
			.tids = o.tids.n, .cgroup = o.cgroup, .comm = o.comm, .all = o.all }))
		goto cleanup;
	status = run_fault(&o, &target, argv + rest, control, ack);
	target_close(&target);
cleanup:
	option_list_free(&o.pids);
	option_list_free(&o.tids);
	return status;
}
