// SPDX-License-Identifier: GPL-2.0-only
/* mmscope record: observe a command several times, and save the runs. */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/domains.h"
#include "cmd/output.h"
#include "cmd/record.h"
#include "cmd/target_options.h"
#include "data/err.h"
#include "data/read.h"
#include "render/json.h"
#include "session/series.h"

#define RUNS_MAX	100000

struct record_options {
	struct target_options target;
	const char *output, *primary, *domains, *by;
	uint64_t runs, warmup, times;
	double duration, run_timeout, timeout;
	unsigned int mask;	/* of the domains */
	bool append, exact, reconcile;
};

/* ---- what is recorded ---- */

int record_command(struct recording *rec, char **argv)
{
	size_t n = 0;

	while (argv[n])
		n++;
	rec->command = calloc(n + 1, sizeof(*rec->command));
	for (n = 0; rec->command && argv[n]; n++) {
		rec->command[n] = strdup(argv[n]);
		if (!rec->command[n])
			return -1;
	}
	return rec->command ? 0 : -1;
}

/* "label=value,..." of a metric; prints its own error. */
static int check_labels(const struct metric *m, const char *text, size_t len)
{
	const char *end = text + len, *equals, *const *value;
	const enum label *list;
	size_t n = shape_labels(m->shape, &list), i, part;

	for (; text < end; text += part + 1) {
		part = strcspn(text, ",}");
		equals = memchr(text, '=', part);
		for (i = 0; equals && i < n; i++)
			if (strlen(label_name(list[i])) == (size_t)(equals - text) &&
			    !memcmp(label_name(list[i]), text, equals - text))
				break;
		if (!equals || i == n) {
			err("--primary", "%s: '%.*s' is not one of its labels with a value; see "
			    "mmscope list", m->name, (int)part, text);
			return -1;
		}
		equals++;
		for (value = label_values(list[i]); value && *value; value++)
			if (strlen(*value) == (size_t)(text + part - equals) &&
			    !memcmp(*value, equals, text + part - equals))
				break;
		if (value && !*value) {
			err("--primary", "%s: '%.*s' is no value of a label; see mmscope list",
			    m->name, (int)part, text);
			return -1;
		}
	}
	return 0;
}

static int add_primary(struct recording *rec, const char *text, size_t len)
{
	size_t name = strcspn(text, "{,"), i;
	const char *kept;

	if (!len) {
		err("--primary", "an empty name");
		return -1;
	}
	if (rec->primaries == PRIMARIES_MAX) {
		err("--primary", "more than %d metrics: with each, a boot proves less",
		    PRIMARIES_MAX);
		return -1;
	}
	for (i = 0; i < METRIC_MAX; i++)
		if (strlen(metrics[i].name) == name && !memcmp(metrics[i].name, text, name))
			break;
	if (text[name] == '{') {
		if (i == METRIC_MAX || text[len - 1] != '}') {
			err("--primary", "'%.*s' is not METRIC or METRIC{label=value,...}",
			    (int)len, text);
			return -1;
		}
		if (check_labels(&metrics[i], text + name + 1, len - name - 2))
			return -1;
	}
	kept = recording_text(rec, text, len);
	if (!kept) {
		err("record", "out of memory");
		return -1;
	}
	for (i = 0; i < rec->primaries; i++) {
		if (!strcmp(rec->primary[i], kept)) {
			err("--primary", "'%s' is named twice", kept);
			return -1;
		}
	}
	rec->primary[rec->primaries++] = kept;
	return 0;
}

int record_primary(struct recording *rec, const char *list)
{
	size_t len;
	bool inside;

	for (;; list += len + 1) {
		for (len = 0, inside = false; list[len] && (inside || list[len] != ','); len++)
			inside = list[len] == '{' || (inside && list[len] != '}');
		if (add_primary(rec, list, len))
			return -1;
		if (!list[len])
			return 0;
	}
}

static void default_primary(struct recording *rec, unsigned int domains)
{
	size_t i;

	/* Where nothing is observed there are times only. */
	if (!domains)
		rec->primary[rec->primaries++] = "wall_ns";

	for (i = 0; i < METRIC_MAX && rec->primaries < PRIMARIES_MAX; i++)
		if (metrics[i].primary && !(metrics[i].domain & ~domains))
			rec->primary[rec->primaries++] = metrics[i].name;
}

/* A primary that is neither a metric nor in the runs can decide nothing. */
static void check_primaries(const struct recording *rec)
{
	static const char *const facts[] = { "wall_ns", "user_ns", "sys_ns", "minflt", "majflt",
					     "maxrss_kib" };
	size_t p, i, k;

	for (p = 0; p < rec->primaries; p++) {
		const char *name = rec->primary[p];
		bool known = strchr(name, '{') || metric_by_name(name);

		for (i = 0; i < sizeof(facts) / sizeof(*facts); i++)
			known |= !strcmp(facts[i], name);
		for (i = 0; i < rec->runs; i++)
			for (k = 0; k < rec->run[i]->values; k++)
				known |= !strcmp(rec->run[i]->value[k].name, name);
		if (!known)
			warn("--primary", "'%s' is no metric, and the command gave no such value: "
			     "it can decide nothing", name);
	}
}

/* ---- appending ---- */

static bool same_command(char **a, char **b)
{
	for (; a && b && *a && *b; a++, b++)
		if (strcmp(*a, *b))
			return false;
	return (!a || !*a) && (!b || !*b);
}

static const char *machine_difference(const struct machine *a, const struct machine *b)
{
	double least = a->memory_kib < b->memory_kib ? a->memory_kib : b->memory_kib;
	double apart = a->memory_kib < b->memory_kib ? b->memory_kib - a->memory_kib :
		       a->memory_kib - b->memory_kib;

#define TEXT(member, name)	if (strcmp(a->member, b->member)) return name
#define FACT(member, name)	if (a->member != b->member) return name
	TEXT(release, "kernel release");
	TEXT(version, "kernel version");
	TEXT(arch, "architecture");
	TEXT(thp, "transparent huge pages");
	TEXT(shmem_thp, "huge pages of shmem");
	TEXT(mthp, "sizes of huge pages");
	TEXT(virt, "virtualisation");
	TEXT(config, "kernel configuration");
	FACT(cpus_possible, "number of CPUs");
	FACT(cpus_online, "number of CPUs");
	FACT(page_size, "page size");
	FACT(fault_around_bytes, "fault_around_bytes");
	FACT(numa_balancing, "NUMA balancing");
#undef TEXT
#undef FACT
	return apart > 0.01 * least ? "memory" : NULL;
}

/* Only more of the same belongs into one file. Returns 0, or -1 after an error line. */
static int check_same(const char *path, const struct recording *old,
		      const struct recording *rec, bool primary_given)
{
	const char *what = machine_difference(&old->machine, &rec->machine);
	size_t i;

	if (what) {
		err("%s", "cannot append: its runs are of another %s; record into a new file",
		    path, what);
		return -1;
	}
	if (!same_command(old->command, rec->command)) {
		err("%s", "cannot append: its runs are of another command", path);
		return -1;
	}
	if (!primary_given)
		return 0;
	for (i = 0; i < old->primaries && i < rec->primaries; i++)
		if (strcmp(old->primary[i], rec->primary[i]))
			break;
	if (i < old->primaries || i < rec->primaries) {
		err("%s", "cannot append: its primary metrics are fixed, and not these", path);
		return -1;
	}
	return 0;
}

/* Move the runs to the end of another recording. */
static int move_runs(struct recording *to, struct recording *from)
{
	size_t i;

	for (i = 0; i < from->runs; i++) {
		if (recording_add(to, from->run[i])) {
			err("record", "out of memory");
			from->runs -= i;
			memmove(from->run, from->run + i, from->runs * sizeof(*from->run));
			return -1;
		}
	}
	from->runs = 0;
	return 0;
}

/* One at a time for each directory: a file is replaced, so that it cannot be the lock. */
static int lock_directory(const char *path)
{
	char *copy = strdup(path);
	int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	free(copy);
	if (fd >= 0)
		flock(fd, LOCK_EX);
	return fd;
}

static bool exists(const char *path)
{
	struct stat st;

	return !stat(path, &st) || errno != ENOENT;
}

/* ---- the end ---- */

/* keep: runs that the file does not take any more are left beside it. */
static int save(const struct record_options *o, struct output *out, struct recording *rec,
		bool keep)
{
	struct recording *old = NULL;
	int lock = -1, status = EXIT_INTERNAL, e;

	if (o->append && strcmp(o->output, "-")) {
		lock = lock_directory(o->output);
		/* Another may have appended meanwhile: what counts is the file as it is now. */
		if (exists(o->output)) {
			old = recording_read(o->output);
			if (!old || check_same(o->output, old, rec, o->primary)) {
				status = EXIT_INPUT;
				if (keep && !json_write(out->f, rec, false))
					output_keep(out);
				else
					output_discard(out);
				goto unlock;
			}
			if (move_runs(old, rec))
				goto cleanup;
		}
	}
	e = json_write(out->f, old ? old : rec, false);
	output_error(out, -e);
	if (!out->failed)
		status = EXIT_OK;
cleanup:
	if (status)
		output_discard(out);
	else if (output_close(out))
		status = out->gone ? EXIT_OK : EXIT_INTERNAL;
unlock:
	if (lock >= 0)
		close(lock);
	recording_free(old);
	return status;
}

int record_append(const char *path, struct recording *rec)
{
	const struct record_options o = { .append = true, .output = path, .primary = "" };
	struct output out = { 0 };

	if (output_open(&out, path, stdout))
		return EXIT_USAGE;
	return save(&o, &out, rec, false);
}

static int finish(const struct record_options *o, struct output *out, struct recording *rec,
		  const struct series_result *r, int error)
{
	const char *place = strcmp(o->output, "-") ? o->output : "the output";
	const char *why = r->signal ? "interrupted" : r->gone ? "the target has ended" :
			  "the time limit came";
	int status = error;

	if (!rec->runs) {
		output_discard(out);
		if (!error)
			err("record", "%s before a run had finished: nothing is saved", why);
	} else {
		check_primaries(rec);
		status = save(o, out, rec, true) ?: error;
		if (r->finished < o->runs + o->times && !status)
			warn("record", "%s: %zu of %" PRIu64 " runs are in %s", why, r->finished,
			     o->runs + o->times, place);
	}
	if (status)
		return status;
	if (r->signal)
		return 128 + r->signal;
	return r->timed_out ? EXIT_TIMEOUT : r->status;
}

static int run_record(const struct record_options *o, struct target *target, char **command)
{
	struct series_options so = {
		.command = *command ? command : NULL, .target = target,
		.duration = o->duration, .runs = o->runs, .warmup = o->warmup,
		.times = o->times, .run_timeout = o->run_timeout, .timeout = o->timeout,
		.domains = o->mask, .exact = o->exact, .reconcile = o->reconcile,
		.by = o->by ? label_by_name(o->by) : 0,
		.stdout_to_stderr = !strcmp(o->output, "-"),
		.progress = isatty(STDERR_FILENO),
	};
	struct recording *rec = recording_new(), *old;
	struct series_result result = { 0 };
	struct output out = { 0 };
	int status;

	if (!rec || (*command && record_command(rec, command))) {
		err("record", "out of memory");
		recording_free(rec);
		return EXIT_INTERNAL;
	}
	machine_read(&rec->machine);
	status = EXIT_USAGE;
	if (o->primary && record_primary(rec, o->primary))
		goto cleanup;
	if (!o->primary)
		default_primary(rec, o->runs ? o->mask : 0);
	/* What can be refused is refused before the work, not after it. */
	if (o->append && exists(o->output)) {
		old = recording_read(o->output);
		status = !old ? EXIT_INPUT :
			 check_same(o->output, old, rec, o->primary) ? EXIT_USAGE : 0;
		recording_free(old);
		if (status)
			goto cleanup;
	}
	status = EXIT_USAGE;
	if (output_open(&out, o->output, stdout))
		goto cleanup;
	status = series_record(rec, &so, &result);
	status = finish(o, &out, rec, &result, status);

cleanup:
	recording_free(rec);
	return status;
}

static int check_options(const struct record_options *o, bool dashes, char **command)
{
	if (target_options_check(&o->target, dashes, command))
		return EXIT_USAGE;
	if (!*command && !target_options_given(&o->target)) {
		err("record", "no command: mmscope record -o FILE -- CMD");
		return EXIT_USAGE;
	}
	if (!*command && !o->duration) {
		err("record", "for how long? Give -d SECONDS, the time of each run");
		return EXIT_USAGE;
	}
	if (*command && o->duration) {
		err("-d", "does not go with a command, whose end ends a run");
		return EXIT_USAGE;
	}
	if (!*command && (o->timeout || o->run_timeout || o->times)) {
		err(o->times ? "--times" : o->timeout ? "--timeout" : "--run-timeout",
		    "is of a command: give -d SECONDS alone");
		return EXIT_USAGE;
	}
	if (!o->runs && !o->times) {
		err("--runs", "'0' leaves nothing to run; with 0, --times says how often");
		return EXIT_USAGE;
	}
	if (!o->output) {
		err("record", "where to? Give -o FILE, or -o - for standard output");
		return EXIT_USAGE;
	}
	if (o->append && !strcmp(o->output, "-")) {
		err("--append", "needs a file, not standard output");
		return EXIT_USAGE;
	}
	return 0;
}

#define ROW(...)	__VA_ARGS__

int cmd_record(int argc, char **argv)
{
	struct record_options o = { .runs = 1, .domains = "fault" };
	const struct option_def defs[] = {
		TARGET_OPTIONS(ROW, &o.target),
		{ "duration", 'd', OPT_SECONDS, "SECONDS", "of a run without a command",
		  &o.duration },
		{ "output", 'o', OPT_STRING, "FILE", "where to save, - for standard output",
		  &o.output },
		{ "runs", 'n', OPT_COUNT, "RUNS", "how often to run the command (default 1)",
		  &o.runs, .max = RUNS_MAX },
		{ "times", 0, OPT_COUNT, "RUNS", "and without observation, for times", &o.times,
		  .max = RUNS_MAX },
		{ "warmup", 0, OPT_COUNT, "N", "runs before these that are not kept", &o.warmup,
		  .max = RUNS_MAX },
		{ "events", 'e', OPT_STRING, "DOMAIN,...", "what to observe (default fault)",
		  &o.domains },
		{ "primary", 0, OPT_STRING, "METRIC,...",
		  "at most 5 metrics that decide a comparison", &o.primary },
		{ "run-timeout", 0, OPT_SECONDS, "SECONDS", "kill a run that takes longer",
		  &o.run_timeout },
		{ "timeout", 0, OPT_SECONDS, "SECONDS", "end after this time, keep finished runs",
		  &o.timeout },
		{ "append", 0, OPT_FLAG, NULL, "add to the runs that FILE holds", &o.append },
		{ "exact", 0, OPT_FLAG, NULL,
		  "kprobes, which are not preempted (they cost more)", &o.exact },
		{ "reconcile", 0, OPT_FLAG, NULL,
		  "what RSS grew by, munmap, exit, fork (starts slower)", &o.reconcile },
		{ "by", 0, OPT_CHOICE, "LABEL", "count by this label, too", &o.by,
		  .choices = "vm_ops|pid|comm|file|map|order|owner" },
		{ 0 }
	};
	const struct option_set set = {
		"record -o FILE [TARGET] [OPTIONS] [-- CMD [ARGS]]",
		"Observe CMD, or others for a time, and save what was counted, for report,\n"
		"diff and check.",
		defs,
	};
	int rest, status = EXIT_USAGE;
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
	if (check_options(&o, dashes, argv + rest) || domains_parse(o.domains, &o.mask) ||
	    domains_allow(o.mask, o.by, o.exact, o.reconcile) ||
	    target_options_open(&o.target, &target))
		goto cleanup;
	status = run_record(&o, &target, argv + rest);
	target_close(&target);
cleanup:
	target_options_free(&o.target);
	return status;
}
