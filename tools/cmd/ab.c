// SPDX-License-Identifier: GPL-2.0-only
/* mmscope ab: boot two kernels in turns, record a command on each, compare. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/ab.h"
#include "cmd/cmd.h"
#include "cmd/domains.h"
#include "cmd/options.h"
#include "cmd/record.h"
#include "cmd/vm.h"
#include "data/err.h"
#include "data/read.h"
#include "data/stats.h"
#include "vm/host.h"
#include "vm/kernel.h"

#define DEFAULT_DIR	"mmscope-ab"
#define GUEST_FILE	"/tmp/mmscope-ab.json"
#define DIFF_ARGS	8

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* "K" or "K OPTIONS OF THE KERNEL"; a file may have spaces in its name. */
static void split_spec(struct ab *ab, int side)
{
	const char *spec = ab->spec[side], *more = ab->vm.append;
	size_t n = access(spec, F_OK) ? strcspn(spec, " ") : strlen(spec);
	const char *own = spec + n + strspn(spec + n, " ");

	ab->kernel[side] = text("%.*s", (int)n, spec);
	ab->append[side] = text("%s%s%s", more ? more : "", more && *own ? " " : "", own);
	ab->file[side] = text("%s/%c.json", ab->dir, "AB"[side]);
}

/* ---- one boot ---- */

/* mmscope record ... -- CMD, as the guest runs it; the array is to be freed, not its words. */
static char **guest_command(const struct ab *ab, char *number[3])
{
	char *fixed[] = { "mmscope", "record", "-o", GUEST_FILE, "--runs", number[0], "--times",
			  number[1], "--warmup", number[2] };
	size_t n = sizeof(fixed) / sizeof(*fixed), words = 0;
	char **argv;

	while (ab->command[words])
		words++;
	argv = calloc(n + words + 7, sizeof(*argv));
	if (!argv)
		return NULL;
	memcpy(argv, fixed, sizeof(fixed));
	if (ab->exact)
		argv[n++] = "--exact";
	if (ab->events) {
		argv[n++] = "--events";
		argv[n++] = (char *)ab->events;
	}
	if (ab->primary) {
		argv[n++] = "--primary";
		argv[n++] = (char *)ab->primary;
	}
	argv[n++] = "--";
	memcpy(argv + n, ab->command, words * sizeof(*argv));
	return argv;
}

/* The last line of what the guest's command said, "" if nothing. To be freed. */
static char *last_line(const char *path)
{
	char *data = read_file(path, NULL), *line, *start;
	size_t n = data ? strlen(data) : 0;

	while (n && isspace((unsigned char)data[n - 1]))
		data[--n] = 0;
	start = data ? strrchr(data, '\n') : NULL;
	line = text("%.300s", start ? start + 1 : data ? data : "");
	free(data);
	return line;
}

/*
 * Into the recording of its side. EXIT_OK, or another status after an error line.
 * Blocks are known by the order in which boots began, and the clock of an emulated
 * guest may be minutes off when this machine was busy while it was calibrated: ours
 * says when that was, its own only how the runs follow each other.
 */
static int add_boot(const struct ab *ab, int side, const char *file, uint64_t began_ns)
{
	struct recording *rec = recording_read(file);
	uint64_t first = rec && rec->runs ? rec->run[0]->start_ns : 0;
	int status = EXIT_INPUT;
	size_t i;

	for (i = 0; rec && i < rec->runs; i++)
		rec->run[i]->start_ns = began_ns + (rec->run[i]->start_ns - first);
	if (rec)
		status = record_append(ab->file[side], rec);
	recording_free(rec);
	return status;
}

static int boot(const struct ab *ab, size_t i, size_t kept)
{
	int side = ab_side(i), status, out = -1;
	char *number[3] = { text("%" PRIu64, ab->runs), text("%" PRIu64, ab->times),
			    text("%" PRIu64, ab->warmup) };
	char *file = text("%s/boot.json", ab->dir), *get = text(GUEST_FILE ":%s", file);
	char *log = text("%s/boot-%zu-%c.log", ab->dir, i + 1, "AB"[side]);
	char *console = text("%s/boot-%zu-%c.console", ab->dir, i + 1, "AB"[side]), *said;
	char **argv = guest_command(ab, number);
	const char *gets[] = { get };
	struct vm_options vm = ab->vm;
	struct timespec began;
	bool usage;

	unlink(file);
	out = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (out < 0 || !argv) {
		err("%s", "cannot be written: %s", log, strerror(errno));
		status = EXIT_VERDICT_USAGE;
		goto cleanup;
	}
	vm.kernel = ab->kernel[side];
	vm.append = *ab->append[side] ? ab->append[side] : NULL;
	vm.get = (struct option_list){ gets, 1 };
	vm.get_of_success = true;
	vm.log = console;
	vm.out = vm.err = out;
	clock_gettime(CLOCK_REALTIME, &began);
	status = vm_run(&vm, argv);
	if (interrupted())
		goto cleanup;
	/* The same number from the command is its own matter. */
	usage = status == EXIT_USAGE && access(file, F_OK);
	if (!status)
		status = add_boot(ab, side, file,
				  began.tv_sec * 1000000000ULL + (uint64_t)began.tv_nsec);
	said = last_line(log);
	if (!status || (usage && !kept)) {
		unlink(console);
		unlink(log);
	}
	if (usage && !kept) {
		/* What the guest's own line says, if it was not this side that refused. */
		if (*said)
			err("ab", "nothing is kept, as record refuses this: %s", said);
	} else if (status) {
		err("ab", "boot %zu, %c (%s), has no result: status %d%s%s; %zu boot%s kept in "
		    "%s, --resume goes on", i + 1, "AB"[side], ab->spec[side], status,
		    *said ? ", " : "", said, kept, kept == 1 ? " is" : "s are", ab->dir);
	}
	free(said);
	if (status)
		status = usage ? EXIT_VERDICT_USAGE : EXIT_NO_VERDICT;
cleanup:
	unlink(file);
	if (out >= 0)
		close(out);
	for (i = 0; i < 3; i++)
		free(number[i]);
	free(file);
	free(get);
	free(log);
	free(console);
	free(argv);
	return status;
}

/* ---- all of them ---- */

/* Both, before the first boot: what cannot be had is told at once. */
static int have_kernels(const struct ab *ab)
{
	int side, status = 0;

	for (side = 0; side < 2 && !status && !interrupted(); side++) {
		struct kernel *kernel = NULL;

		status = kernel_get(ab->kernel[side], ab->vm.tree, &kernel);
		kernel_put(kernel);
	}
	return status == EXIT_USAGE ? EXIT_VERDICT_USAGE : status ? EXIT_NO_VERDICT : 0;
}

static void tell_progress(const struct ab *ab, size_t i, double seconds, double mean)
{
	size_t all = 2 * ab->boots;
	double left = mean * (double)(all - i - 1);
	char rest[48] = "";

	if (i + 1 < all)
		snprintf(rest, sizeof(rest), left < 90 ? "; about %.0f s left" :
			 "; about %.0f min left", left < 90 ? left : left / 60);
	progress_clear();
	fprintf(stderr, "mmscope: ab: boot %zu of %zu, %c (%s): %.1f s%s\n", i + 1, all,
		"AB"[ab_side(i)], ab->spec[ab_side(i)], seconds, rest);
}

static int boot_all(struct ab *ab)
{
	size_t done, first, i;
	double begun, last;
	int status;

	status = ab_open(ab);
	if (status)
		return status;
	if (ab_count(ab, &done))
		return EXIT_NO_VERDICT;
	if (done == 2 * ab->boots)
		return 0;
	status = have_kernels(ab);
	if (status && !done)
		ab_remove(ab);
	begun = now();
	for (i = first = done; i < 2 * ab->boots && !status && !interrupted(); i++) {
		last = now();
		status = boot(ab, i, i);
		/* What is corrected is another comparison, which may have this directory. */
		if (status == EXIT_VERDICT_USAGE && !i)
			ab_remove(ab);
		if (!status && !interrupted())
			tell_progress(ab, i, now() - last, (now() - begun) / (i + 1 - first));
	}
	if (!interrupted() && !status)
		return ab_count(ab, &done) ? EXIT_NO_VERDICT : 0;
	if (interrupted() && !ab_count(ab, &done)) {
		progress_clear();
		err("ab", "interrupted: %zu of %" PRIu64 " boots are in %s, --resume goes on", done,
		    2 * ab->boots, ab->dir);
	}
	return status ? status : EXIT_NO_VERDICT;
}

static int compare(const struct ab *ab)
{
	char *argv[DIFF_ARGS] = { "diff" };
	int n = 1;

	if (ab->all)
		argv[n++] = "--all";
	if (ab->ignore_state)
		argv[n++] = "--ignore-state";
	argv[n++] = "--format";
	argv[n++] = (char *)(ab->json ? "json" : ab->format);
	argv[n++] = ab->file[0];
	argv[n++] = ab->file[1];
	return cmd_diff(n, argv);
}

/* What is wrong without looking at any kernel; prints its error line. */
static int check(struct ab *ab, bool dashes)
{
	struct recording *rec;
	unsigned int domains = DOMAIN_FAULT;
	int side, ret = 0;

	for (side = 0; side < 2; side++) {
		if (!ab->spec[side] || !ab->spec[side][strspn(ab->spec[side], " ")]) {
			err("ab", "which kernels? Give -A SPEC and -B SPEC");
			return -1;
		}
		if (*ab->spec[side] == ' ') {
			err("-%c", "'%s' does not begin with a kernel", "AB"[side], ab->spec[side]);
			return -1;
		}
	}
	if (!*ab->command) {
		err(dashes ? "--" : "ab", dashes ? "no command follows" :
		    "no command: mmscope ab -A SPEC -B SPEC -- CMD");
		return -1;
	}
	if (!dashes) {
		err("%s", "put -- before the command", *ab->command);
		return -1;
	}
	if (!ab->runs && !ab->times) {
		err("--runs", "'0' leaves nothing to run: --times is 0, too");
		return -1;
	}
	if (strchr(ab->dir, ':')) {
		err("-o", "'%s' has a colon in it, which --get of mmscope vm takes for its own",
		    ab->dir);
		return -1;
	}
	if ((ab->events && domains_parse(ab->events, &domains)) ||
	    domains_allow(domains, NULL, ab->exact, false))
		return -1;
	if (vm_check(&ab->vm, ab->command))
		return -1;
	rec = recording_new();
	if (rec && ab->primary)
		ret = record_primary(rec, ab->primary);
	recording_free(rec);
	return ret;
}

int cmd_ab(int argc, char **argv)
{
	struct ab ab = { .vm = VM_OPTIONS_DEFAULT, .boots = 10, .runs = 1, .times = 3,
			 .dir = DEFAULT_DIR, .format = "text", .lock = -1 };
	const struct option_def defs[] = {
		{ "base", 'A', OPT_STRING, "SPEC", "the kernel to compare with, of vm --kernel",
		  &ab.spec[0] },
		{ "new", 'B', OPT_STRING, "SPEC", "the one that is judged; \"K OPTION...\" has its "
		  "own command line", &ab.spec[1] },
		{ "boots", 'n', OPT_COUNT, "BOOTS", "boots of each (default 10)", &ab.boots,
		  .min = 1, .max = STATS_BOOTS_MAX },
		{ "runs", 0, OPT_COUNT, "RUNS", "observed runs of a boot (default 1)", &ab.runs,
		  .max = 1000 },
		{ "times", 0, OPT_COUNT, "RUNS", "and without observation, for times (default 3)",
		  &ab.times, .max = 1000 },
		{ "warmup", 0, OPT_COUNT, "N", "runs before these that are not kept", &ab.warmup,
		  .max = 1000 },
		{ "events", 'e', OPT_STRING, "DOMAIN,...", "what to observe, as record has it",
		  &ab.events },
		{ "primary", 0, OPT_STRING, "METRIC,...", "at most 5 metrics that decide",
		  &ab.primary },
		{ "exact", 0, OPT_FLAG, NULL, "kprobes, which are not preempted", &ab.exact },
		{ "output", 'o', OPT_STRING, "DIR", "what is kept (default " DEFAULT_DIR ")",
		  &ab.dir },
		{ "resume", 0, OPT_FLAG, NULL, "go on with what DIR holds", &ab.resume },
		VM_OPTION_ROWS(ab.vm),
		{ "append", 0, OPT_STRING, "STRING", "command line of both kernels",
		  &ab.vm.append },
		{ "all", 0, OPT_FLAG, NULL, "show what stayed the same, too", &ab.all },
		{ "ignore-state", 0, OPT_FLAG, NULL,
		  "decide although the machines' states differ", &ab.ignore_state },
		{ "format", 0, OPT_CHOICE, "FORMAT", "how to report", &ab.format,
		  .choices = "text|lkml|json" },
		{ "json", 0, OPT_FLAG, NULL, "the same as --format json", &ab.json },
		{ 0 }
	};
	const struct option_set set = {
		"ab -A SPEC -B SPEC [OPTIONS] -- CMD [ARGS]",
		"Boots two kernels in turns (A B B A ...), records CMD on each boot and compares:\n"
		"exits as diff does, and with 125 when a boot failed.",
		defs
	};
	bool dashes;
	int rest, status = EXIT_VERDICT_USAGE, side;

	ab.vm.cpus.n = 0;
	switch (options_parse(&set, argc, argv, &rest, &dashes)) {
	case OPTIONS_HELP:
		status = EXIT_OK;
		goto cleanup;
	case OPTIONS_BAD:
		goto cleanup;
	default:
		break;
	}
	ab.json |= !strcmp(ab.format, "json");
	err_json(ab.json);
	ab.command = argv + rest;
	vm_default_cpus(&ab.vm);
	if (check(&ab, dashes))
		goto cleanup;
	for (side = 0; side < 2; side++)
		split_spec(&ab, side);
	signals_hold();
	status = boot_all(&ab);
	if (ab.lock >= 0)
		close(ab.lock);
	/* Ends us if a signal came. */
	signals_release();
	if (!status)
		status = compare(&ab);
cleanup:
	for (side = 0; side < 2; side++) {
		free(ab.kernel[side]);
		free(ab.append[side]);
		free(ab.file[side]);
	}
	option_list_free(&ab.vm.copy);
	option_list_free(&ab.vm.module);
	option_list_free(&ab.vm.env);
	return status;
}
