// SPDX-License-Identifier: GPL-2.0-only
/* mmscope trace, and fault and lock, which are the same with one domain. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/domains.h"
#include "cmd/options.h"
#include "cmd/output.h"
#include "cmd/target_options.h"
#include "data/err.h"
#include "render/json.h"
#include "render/report.h"
#include "render/text.h"
#include "session/observe.h"
#include "session/plan.h"
#include "session/session.h"

#define FAULT	DOMAIN_FAULT
#define LOCK	DOMAIN_LOCK
#define BOTH	(FAULT | LOCK)

#define STACKS_SHOWN	10

struct trace_options {
	struct target_options target;
	bool json, exact, yield, reconcile, folded, user_stacks;
	uint64_t stacks;
	double duration, interval;
	const char *format, *by, *control, *output, *list, *in;
	const char *name;	/* of the command */
	unsigned int domains;
};

struct report {
	struct output out;
	struct view view;
	bool json, one_line, folded, printed, closed;
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
	if (r->folded) {
		text_folded(r->out.f, run);
	} else if (r->json) {
		e = json_write(r->out.f, r->rec, r->one_line);
		if (e)
			output_error(&r->out, -e);
	} else {
		text_screen(r->out.f, r->rec, &r->view);
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

static int check_options(const struct trace_options *o, bool dashes, char **command)
{
	if (target_options_check(&o->target, dashes, command))
		return EXIT_USAGE;
	if (!*command && !target_options_given(&o->target)) {
		err(o->name, "nothing to observe: give -- CMD, -p PID, -t TID, --cgroup PATH, "
		    "--comm NAME, or -a for the whole system");
		return EXIT_USAGE;
	}
	if ((o->stacks || o->folded || o->user_stacks) && !(o->domains & LOCK)) {
		err(o->folded ? "--folded" : o->stacks ? "--stacks" : "--user-stacks",
		    "needs locks: -e lock, or fault,lock");
		return EXIT_USAGE;
	}
	if (o->folded && (o->json || o->interval)) {
		err("--folded", "is a format of its own, of one report: not with %s",
		    o->json ? "--json" : "-i");
		return EXIT_USAGE;
	}
	if (o->interval && o->duration && o->interval > o->duration) {
		err("-i", "the interval is longer than the duration (-d)");
		return EXIT_USAGE;
	}
	return 0;
}

/* Of --in: without its start and end no wait is within it. An error line if not. */
static bool path_is_seen(const struct plan *plan)
{
	enum event_id id = plan->opts.in;
	unsigned int i;

	for (i = 0; id && EVENT_IN_PATH(id + i) && i < 2; i++) {
		if (plan->event[id + i].mech != MECH_NONE)
			continue;
		err("--in", "cannot be told here: %s", plan->event[id + i].reason);
		return false;
	}
	return true;
}

static int run_trace(const struct trace_options *o, struct target *target, char **command,
		     int control, int ack)
{
	struct session_options so = { .target = target, .interrupted = observe_interrupted,
				      .yield = o->yield,
				      .by = o->by ? label_by_name(o->by) : 0,
				      .stacks = o->stacks ?: o->folded ? LOCK_STACKS_USER :
						o->user_stacks ? STACKS_SHOWN : 0,
				      .user_stacks = o->user_stacks };
	struct report r = { .json = o->json, .one_line = o->interval > 0, .folded = o->folded };
	struct observe_options oo = {
		.command = *command ? command : NULL, .target = target,
		.duration = o->duration, .interval = o->interval,
		.control = control, .ack = ack,
		.stdout_to_stderr = *command && o->output && !strcmp(o->output, "-"),
		.report = print, .arg = &r,
	};
	struct plan_options po = { .domains = o->domains, .exact = o->exact, .quick = true,
				   .yield = o->yield, .reconcile = o->reconcile,
				   .by = o->by && label_domains(label_by_name(o->by)) & LOCK,
				   .unforked = !target_follows(target) &&
					       (!*command || target->everyone) };
	static const struct {
		const char *word;
		enum event_id event;
	} paths[] = { { "fault", EVENT_IN_FAULT }, { "munmap", EVENT_IN_MUNMAP },
		      { "populate", EVENT_IN_POPULATE } };
	struct session *s = NULL;
	struct plan plan;
	size_t i;
	const char *why;
	int status = EXIT_INTERNAL;

	for (i = 0; o->in && i < sizeof(paths) / sizeof(*paths); i++)
		if (!strcmp(o->in, paths[i].word))
			po.in = paths[i].event;
	observe_prepare();
	if (plan_make(&plan, &po))
		return EXIT_INTERNAL;
	if (!plan_essential(&plan, &why)) {
		err(o->name, "cannot observe here: %s; see mmscope probes", why);
		return EXIT_UNOBSERVED;
	}
	if (!path_is_seen(&plan))
		return EXIT_UNOBSERVED;
	r.rec = recording_new();
	if (!r.rec) {
		err(o->name, "out of memory");
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
	/* Attaching may have shown that a function cannot be probed after all. */
	if (s && !path_is_seen(&plan))
		status = EXIT_UNOBSERVED;
	else if (s)
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

#define ANY	0
#define ROW(...)	{ ANY, __VA_ARGS__ }
#define WITH_LOCKS(...)	{ LOCK, { __VA_ARGS__ } }, { BOTH, { __VA_ARGS__ } }

static const struct {
	const char *usage, *about;
} texts[] = {
	[FAULT] = { "fault [TARGET] [OPTIONS] [-- CMD [ARGS]]",
		"Count page faults, fault-around and PTE installs of CMD and all that it\n"
		"starts, or of others: how many PTEs per hold of the page-table lock, and what\n"
		"was refused." },
	[LOCK] = { "lock [TARGET] [OPTIONS] [-- CMD [ARGS]]",
		"Count what CMD and all that it starts, or others, waited for: locks of memory\n"
		"management by their class, and for how long." },
	[BOTH] = { "trace [-e DOMAIN,...] [TARGET] [OPTIONS] [-- CMD [ARGS]]",
		"Observe several things at once: what `mmscope fault` counts, and what\n"
		"`mmscope lock` does." },
};

static int command(const char *name, unsigned int domains, int argc, char **argv)
{
	struct trace_options o = { .format = "text", .list = "fault", .name = name,
				   .domains = domains };
	/* The domains that an option is for; ANY: all. Without -e, those of both need it. */
	const struct {
		unsigned int domains;
		struct option_def def;
	} rows[] = {
		{ BOTH, { "events", 'e', OPT_STRING, "DOMAIN,...", "what: fault, lock, or both",
		  &o.list } },
		TARGET_OPTIONS(ROW, &o.target),
		{ ANY, { "duration", 'd', OPT_SECONDS, "SECONDS", "stop observing after this time",
		  &o.duration } },
		{ ANY, { "interval", 'i', OPT_SECONDS, "SECONDS",
		  "report what is new, again and again", &o.interval } },
		{ FAULT, { "by", 0, OPT_CHOICE, "LABEL", "rows by one label", &o.by,
		  .choices = "backing|method|trigger|vm_ops|pid|comm|file|map|order" } },
		{ LOCK, { "by", 0, OPT_CHOICE, "LABEL",
		  "who waited, whose mm it was, who held it", &o.by,
		  .choices = "pid|comm|owner|holder" } },
		{ LOCK, { "in", 0, OPT_CHOICE, "PATH", "only waits within it", &o.in,
		  .choices = "fault|munmap|populate" } },
		{ BOTH, { "by", 0, OPT_CHOICE, "LABEL", "rows by one label", &o.by,
		  .choices = "pid|comm|owner|vm_ops|file|map|order" } },
		WITH_LOCKS("stacks", 0, OPT_COUNT, "[=N]", "the N stacks (10) that waited longest",
			   &o.stacks, .min = 1, .max = LOCK_STACKS_USER,
			   .absent = STACKS_SHOWN),
		WITH_LOCKS("user-stacks", 0, OPT_FLAG, NULL,
			   "stacks that go on in user space, by frame pointers", &o.user_stacks),
		WITH_LOCKS("folded", 0, OPT_FLAG, NULL, "only stacks, for flame graphs, with ns",
			   &o.folded),
		{ FAULT, { "yield", 0, OPT_FLAG, NULL,
		  "what fault-around would gain, while it is off", &o.yield } },
		{ FAULT, { "reconcile", 0, OPT_FLAG, NULL,
		  "what RSS grew by, munmap, exit, fork (starts slower)", &o.reconcile } },
		{ FAULT, { "exact", 0, OPT_FLAG, NULL,
		  "kprobes, which are not preempted (they cost more)", &o.exact } },
		{ ANY, { "control", 0, OPT_STRING, "fd:CTL[,ACK]",
		  "read enable and disable from CTL, answer ack on ACK", &o.control } },
		{ ANY, { "format", 0, OPT_CHOICE, "FORMAT", "how to report", &o.format,
		  .choices = "text|json" } },
		{ ANY, { "json", 0, OPT_FLAG, NULL, "the same as --format json", &o.json } },
		{ ANY, { "output", 'o', OPT_STRING, "FILE",
		  "report to FILE, - for standard output", &o.output } },
	};
	struct option_def defs[sizeof(rows) / sizeof(*rows) + 1] = { { 0 } };
	const struct option_set set = { texts[domains].usage, texts[domains].about, defs };
	int control = -1, ack = -1, rest, status = EXIT_USAGE;
	struct target target;
	size_t i, n = 0;
	bool dashes;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].domains == ANY || rows[i].domains == domains)
			defs[n++] = rows[i].def;
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
	if (domains == BOTH &&
	    (domains_parse(o.list, &o.domains) || domains_allow(o.domains, o.by, false, false)))
		goto cleanup;
	if (check_options(&o, dashes, argv + rest))
		goto cleanup;
	if (o.control && control_option(o.control, &control, &ack))
		goto cleanup;
	if (target_options_open(&o.target, &target))
		goto cleanup;
	status = run_trace(&o, &target, argv + rest, control, ack);
	target_close(&target);
cleanup:
	target_options_free(&o.target);
	return status;
}

int cmd_fault(int argc, char **argv)
{
	return command("fault", FAULT, argc, argv);
}

int cmd_lock(int argc, char **argv)
{
	return command("lock", LOCK, argc, argv);
}

int cmd_trace(int argc, char **argv)
{
	return command("trace", BOTH, argc, argv);
}
