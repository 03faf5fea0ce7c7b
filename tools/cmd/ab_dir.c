// SPDX-License-Identifier: GPL-2.0-only
/* What mmscope ab keeps: the plan, the order of boots, the recordings of both sides. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "cmd/ab.h"
#include "data/compare_parts.h"
#include "data/err.h"
#include "data/read.h"
#include "data/status.h"
#include "vm/host.h"

int ab_side(size_t boot)
{
	return (boot + 1) / 2 & 1;
}

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
	plan_line(f, "--events", ab->events ? ab->events : "");
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

int ab_open(struct ab *ab)
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
		int side = ab_side(i);
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

int ab_count(const struct ab *ab, size_t *done)
{
	struct recording *rec[2];
	struct boots boots[2];
	size_t i, want[2] = { 0 };
	int side, ret = read_sides(ab, rec, boots);

	*done = boots[0].n + boots[1].n;
	for (i = 0; i < *done; i++)
		want[ab_side(i)]++;
	if (!ret && (want[0] != boots[0].n || *done > 2 * ab->boots)) {
		err("%s", "its recordings hold boots, %zu of A and %zu of B, that were not taken in "
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

void ab_remove(const struct ab *ab)
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
