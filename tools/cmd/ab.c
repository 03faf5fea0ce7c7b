// SPDX-License-Identifier: GPL-2.0-only
/* mmscope ab: boot two kernels in turns, record a command on each, compare. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/record.h"
#include "cmd/vm.h"
#include "data/compare_parts.h"
#include "data/err.h"
#include "data/read.h"
#include "data/stats.h"
#include "vm/host.h"
#include "vm/kernel.h"

#define DEFAULT_DIR	"mmscope-ab"
#define GUEST_FILE	"/tmp/mmscope-ab.json"
#define DIFF_ARGS	8

struct ab {
	struct vm_options vm;
	const char *spec[2], *dir, *primary, *format;
	uint64_t boots, runs, times, warmup;
	bool exact, resume, all, ignore_state, json;
	char **command;
	char *kernel[2], *append[2];	/* what the SPECs say */
	char *file[2];			/* the recordings */
	int lock;
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* A B B A A B ...: what drifts meanwhile falls on both, and neighbours are a block. */
static int side_of(size_t boot)
{
	return (boot + 1) / 2 & 1;
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

/* ---- the directory ---- */

static void plan_line(FILE *f, const char *key, const char *value)
{
	fprintf(f, "%s ", key);
	for (; *value; value++) {
		if (*value == '\\' || iscntrl((unsigned char)*value))
			fprintf(f, "\\x%02x", (unsigned char)*value);
		else
			fputc(*value, f);
	}
	fputc('\n', f);
}

static void plan_list(FILE *f, const char *key, const struct option_list *list)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		plan_line(f, key, list->item[i]);
}

/* All that boots must have in common, a line each; to be freed. */
static char *plan_text(const struct ab *ab)
{
	char *data = NULL, **word;
	size_t len;
	FILE *f = open_memstream(&data, &len);

	if (!f)
		return NULL;
	plan_line(f, "-A", ab->spec[0]);
	plan_line(f, "-B", ab->spec[1]);
	fprintf(f, "--boots %" PRIu64 "\n--runs %" PRIu64 "\n--times %" PRIu64 "\n--warmup %"
		PRIu64 "\n", ab->boots, ab->runs, ab->times, ab->warmup);
	plan_line(f, "--primary", ab->primary ? ab->primary : "");
	fprintf(f, "--exact %d\n--cpus %u,max=%u\n--memory %" PRIu64 "\n--numa %" PRIu64
		"\n--icount %d\n", ab->exact, ab->vm.cpus.n, ab->vm.cpus.max, ab->vm.memory,
		ab->vm.numa, ab->vm.icount);
	plan_line(f, "--append", ab->vm.append ? ab->vm.append : "");
	plan_list(f, "--copy", &ab->vm.copy);
	plan_list(f, "--module", &ab->vm.module);
	plan_list(f, "--env", &ab->vm.env);
	for (word = ab->command; *word; word++)
		plan_line(f, "command", *word);
	if (fclose(f)) {
		free(data);
		return NULL;
	}
	return data;
}

/* Go on with that comparison only if it is this one. */
static int check_plan(const struct ab *ab, const char *old, const char *plan)
{
	const char *other, *line;
	size_t len;

	for (; *old && *plan; old += len, plan += len) {
		len = strcspn(plan, "\n") + 1;
		if (strncmp(old, plan, len))
			break;
	}
	if (!*old && !*plan)
		return 0;
	other = *plan ? plan : old;
	line = *old ? old : "nothing";
	err("--resume", "%s holds another comparison: there %.*s, here %.*s; -o names another "
	    "directory", ab->dir, (int)strcspn(line, "\n"), line,
	    *plan ? (int)strcspn(other, "\n") : 7, *plan ? other : "nothing");
	return EXIT_VERDICT_USAGE;
}

static bool is_empty(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *d;
	bool empty = true;

	while (dir && (d = readdir(dir)))
		empty &= !strcmp(d->d_name, ".") || !strcmp(d->d_name, "..");
	if (dir)
		closedir(dir);
	return empty;
}

static int open_dir(struct ab *ab)
{
	char *path = text("%s/plan", ab->dir), *lock = text("%s/lock", ab->dir);
	char *old = read_file(path, NULL), *plan = plan_text(ab);
	int ret = EXIT_VERDICT_USAGE;

	if (!plan) {
		err("ab", "out of memory");
	} else if (ab->resume && !old) {
		err("--resume", "%s holds no comparison to go on with", ab->dir);
	} else if (!ab->resume && old) {
		err("%s", "holds a comparison: --resume goes on with it, -o names another directory",
		    ab->dir);
	} else if (!ab->resume && !is_empty(ab->dir)) {
		err("%s", "is not empty; -o names another directory", ab->dir);
	} else if (make_dirs(ab->dir)) {
		err("%s", "cannot be made: %s", ab->dir, strerror(errno));
	} else {
		ab->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
		if (ab->lock < 0)
			err("%s", "cannot be written: %s", lock, strerror(errno));
		else if (flock(ab->lock, LOCK_EX | LOCK_NB))
			err("%s", "is in use by another mmscope ab", ab->dir);
		else if (old)
			ret = check_plan(ab, old, plan);
		else if (write_file(path, plan, strlen(plan)))
			err("%s", "cannot be written: %s", path, strerror(errno));
		else
			ret = 0;
	}
	free(path);
	free(lock);
	free(old);
	free(plan);
	return ret;
}

/* The boots of each side; 0, or -1 after an error line. rec and boots are the caller's. */
static int read_sides(const struct ab *ab, struct recording **rec, struct boots *boots)
{
	int side;

	for (side = 0; side < 2; side++) {
		rec[side] = NULL;
		boots[side] = (struct boots){ 0 };
	}
	for (side = 0; side < 2; side++) {
		if (access(ab->file[side], F_OK))
			continue;
		rec[side] = recording_read(ab->file[side]);
		if (!rec[side])
			return -1;
		if (boots_of(rec[side], &boots[side])) {
			err("ab", "out of memory");
			return -1;
		}
	}
	return 0;
}

/* In which order they were booted, for people; made anew each time from what is there. */
static int write_order(const struct ab *ab, const struct boots *boots, size_t done)
{
	char *path = text("%s/order", ab->dir), *data = NULL;
	size_t len, i, at[2] = { 0 };
	FILE *f = open_memstream(&data, &len);
	int ret = -1;

	for (i = 0; f && i < done; i++) {
		int side = side_of(i);
		const struct boots *b = &boots[side];
		time_t start = b->start[at[side]] / 1000000000;
		char when[32] = "?";
		struct tm tm;

		if (gmtime_r(&start, &tm))
			strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
		fprintf(f, "%zu %c %s %s %s\n", i + 1, "AB"[side], b->id[at[side]], when,
			ab->spec[side]);
		at[side]++;
	}
	if (f && !fclose(f) && !write_file(path, data, len))
		ret = 0;
	else
		err("%s", "cannot be written: %s", path, strerror(errno));
	free(data);
	free(path);
	return ret;
}

/* How many boots there are, which must be the first ones in turn. -1 after an error line. */
static int count_done(const struct ab *ab, size_t *done)
{
	struct recording *rec[2];
	struct boots boots[2];
	size_t i, want[2] = { 0 };
	int side, ret = read_sides(ab, rec, boots);

	*done = boots[0].n + boots[1].n;
	for (i = 0; i < *done; i++)
		want[side_of(i)]++;
	if (!ret && (want[0] != boots[0].n || *done > 2 * ab->boots)) {
		err("%s", "its recordings hold %zu boots of A and %zu of B, which were not taken in "
		    "turns; -o names another directory", ab->dir, boots[0].n, boots[1].n);
		ret = -1;
	}
	if (!ret)
		ret = write_order(ab, boots, *done);
	for (side = 0; side < 2; side++) {
		boots_free(&boots[side]);
		recording_free(rec[side]);
	}
	return ret;
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
	argv = calloc(n + words + 5, sizeof(*argv));
	if (!argv)
		return NULL;
	memcpy(argv, fixed, sizeof(fixed));
	if (ab->exact)
		argv[n++] = "--exact";
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
	int side = side_of(i), status, out = -1;
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
	if (!status) {
		unlink(console);
		unlink(log);
		goto cleanup;
	}
	said = last_line(log);
	err("ab", "boot %zu, %c (%s), has no result: status %d%s%s; %zu boot%s kept in %s, "
	    "--resume goes on", i + 1, "AB"[side], ab->spec[side], status, *said ? ", " : "", said,
	    kept, kept == 1 ? " is" : "s are", ab->dir);
	free(said);
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

/* Nothing to go on with: as if we had not begun. */
static void remove_empty(const struct ab *ab)
{
	static const char *const file[] = { "plan", "lock", "order" };
	size_t i;

	for (i = 0; i < sizeof(file) / sizeof(*file); i++) {
		char *path = text("%s/%s", ab->dir, file[i]);

		unlink(path);
		free(path);
	}
	rmdir(ab->dir);
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
		"AB"[side_of(i)], ab->spec[side_of(i)], seconds, rest);
}

static int boot_all(struct ab *ab)
{
	size_t done, first, i;
	double begun, last;
	int status;

	status = open_dir(ab);
	if (status)
		return status;
	if (count_done(ab, &done))
		return EXIT_NO_VERDICT;
	if (done == 2 * ab->boots)
		return 0;
	status = have_kernels(ab);
	if (status && !done)
		remove_empty(ab);
	begun = now();
	for (i = first = done; i < 2 * ab->boots && !status && !interrupted(); i++) {
		last = now();
		status = boot(ab, i, i);
		if (!status && !interrupted())
			tell_progress(ab, i, now() - last, (now() - begun) / (i + 1 - first));
	}
	if (!interrupted() && !status)
		return count_done(ab, &done) ? EXIT_NO_VERDICT : 0;
	if (interrupted() && !count_done(ab, &done)) {
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
	if (check(&ab, dashes))
		goto cleanup;
	vm_default_cpus(&ab.vm);
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
