// SPDX-License-Identifier: GPL-2.0-only
/*
 * Both renderers against tests/golden/NAME.{txt,json}, for recordings made by
 * hand. UPDATE_GOLDEN=1 writes the files anew: read the difference before it is
 * committed. tests/cli/recording.py puts the JSON through a strict parser.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "render/fault.h"
#include "render/json.h"
#include "render/list.h"
#include "unit/recordings.h"

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = NULL, part[4096];
	size_t size = 0, n;
	FILE *mem;

	if (!f)
		return NULL;
	mem = open_memstream(&text, &size);
	assert_non_null(mem);
	while ((n = fread(part, 1, sizeof(part), f)))
		fwrite(part, 1, n, mem);
	fclose(f);
	fclose(mem);
	return text;
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void compare(const char *path, const char *got)
{
	const char *update = getenv("UPDATE_GOLDEN"), *a, *b;
	char *want;
	int line = 1;

	if (update && *update) {
		write_file(path, got);
		return;
	}
	want = read_file(path);
	if (!want)
		fail_msg("%s is missing: make it with UPDATE_GOLDEN=1", path);
	for (a = want, b = got; *a && *a == *b; a++, b++)
		line += *a == '\n';
	if (*a != *b) {
		while (a > want && a[-1] != '\n') {
			a--;
			b--;
		}
		print_message("%s:%d\n  want: %.*s\n  got:  %.*s\n", path, line,
			      (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
		free(want);
		fail_msg("%s differs", path);
	}
	free(want);
}

static void golden_path(char *path, size_t size, const char *name, const char *suffix)
{
	const char *tree = getenv("MMSCOPE_TREE");

	snprintf(path, size, "%s/tests/golden/%s%s", tree ? tree : ".", name, suffix);
}

static void golden_text(struct recording *rec, const char *name, const struct view *view)
{
	char path[512], *text = NULL;
	size_t size = 0;
	FILE *mem = open_memstream(&text, &size);
	const char *p;

	text_fault(mem, rec, view);
	fclose(mem);
	golden_path(path, sizeof(path), name, ".txt");
	compare(path, text);
	for (p = text; *p && !view->colour; p += strcspn(p, "\n") + 1) {
		char line[4096];
		size_t n = strcspn(p, "\n");

		assert_true(n < sizeof(line));
		memcpy(line, p, n);
		line[n] = 0;
		assert_true(text_columns(line) <= TEXT_WIDTH);
		assert_true(!n || line[n - 1] != ' ');
		assert_null(strchr(line, '\033'));
	}
	free(text);
}

static void golden_json(struct recording *rec, const char *name)
{
	char path[512], *text = NULL, *line = NULL;
	size_t size = 0;
	FILE *mem = open_memstream(&text, &size);

	assert_int_equal(json_write(mem, rec, false), 0);
	fclose(mem);
	golden_path(path, sizeof(path), name, ".json");
	compare(path, text);

	mem = open_memstream(&line, &size);
	assert_int_equal(json_write(mem, rec, true), 0);
	fclose(mem);
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
	free(text);
	free(line);
}

static void golden(struct recording *rec, const char *name)
{
	const struct view plain = { 0 };

	golden_text(rec, name, &plain);
	golden_json(rec, name);
	recording_free(rec);
}

static void test_lazy(void **state)
{
	golden(make_lazy(), "lazy");
}

static void test_eager(void **state)
{
	golden(make_eager(), "eager");
}

static void test_around(void **state)
{
	golden(make_around(), "around");
	golden(make_paths(), "paths");
}

static void test_thp(void **state)
{
	golden(make_thp(), "thp");
}

static void test_resident(void **state)
{
	golden(make_resident(), "resident");
}

static void test_inferred(void **state)
{
	golden(make_inferred(), "inferred");
}

static void test_misses(void **state)
{
	golden(make_misses(), "misses");
}

static void test_missing(void **state)
{
	golden(make_missing(), "missing");
}

static void test_empty(void **state)
{
	golden(make_empty(), "empty");
}

static void test_hostile(void **state)
{
	golden(make_hostile(), "hostile");
}

static void test_large(void **state)
{
	golden(make_large(), "large");
}

static void test_runs(void **state)
{
	golden(make_runs(), "runs");
}

static void test_views(void **state)
{
	static const char *const by[] = { "backing", "method", "trigger", "vm_ops" };
	struct view colours = { .colour = true, .utf8 = true };
	struct recording *rec;
	char name[32];
	size_t i;

	for (i = 0; i < sizeof(by) / sizeof(*by); i++) {
		struct view view = { .by = by[i] };

		rec = make_lazy();
		snprintf(name, sizeof(name), "lazy-by-%s", by[i]);
		golden_text(rec, name, &view);
		recording_free(rec);
	}
	rec = make_around();
	golden_text(rec, "around-colour", &colours);
	recording_free(rec);
	rec = make_hostile();
	golden_text(rec, "hostile-by-vm_ops", &(struct view){ .by = "vm_ops", .width = 60 });
	recording_free(rec);
}

/* A reader that went away and a full disk are the caller's to report. */
static void test_write_errors(void **state)
{
	struct recording *rec = make_large();
	FILE *full = fopen("/dev/full", "we");

	assert_non_null(full);
	assert_int_equal(json_write(full, rec, false), -ENOSPC);
	fclose(full);
	full = fopen("/dev/full", "we");
	assert_int_equal(json_write_tables(full), -ENOSPC);
	fclose(full);
	full = fopen("/dev/full", "we");
	assert_int_equal(list_markdown(full), -ENOSPC);
	fclose(full);
	recording_free(rec);
}

static void expect_headline(struct recording *rec, const char *want)
{
	char got[1024];

	fault_headline(rec->run[0], got, sizeof(got));
	assert_string_equal(got, want);
	fault_headline(rec->run[0], got, 12);
	assert_int_equal(strlen(got), 11);
	recording_free(rec);
}

static void test_headlines(void **state)
{
	struct recording *rec;
	struct run *r;

	expect_headline(make_lazy(), "bpf_array: 2048 PTEs in 2048 page-table-lock holds, 1.00 per "
			"hold; every fault taken twice: 2048 refused under the per-VMA lock, "
			"no map_pages");
	expect_headline(make_eager(), "bpf_array: 2048 PTEs installed at mmap time in 2048 "
			"page-table-lock holds, 1.00 per hold; no faults");
	expect_headline(make_empty(), "no faults and no PTEs installed while observed");
	expect_headline(make_misses(), "bpf_array: 2041 to 2053 PTEs in at least 2041 "
			"page-table-lock holds, about 1.00 per hold; 2041 to 2053 of 4089 to 4101 "
			"attempts refused under the per-VMA lock, no map_pages");

	rec = new_recording("x", "none");	/* one of each: singular */
	r = new_run(rec);
	count(r, METRIC_FAULT_COMPLETED, "file per_page access minor", 1);
	count(r, METRIC_FAULT_ATTEMPTS, "file access", 1);
	count(r, METRIC_PTES_INSTALLED, "file per_page access", 1);
	observe(r, METRIC_PTES_PER_HOLD, "file per_page access", 1, 1);
	expect_headline(rec, "file: 1 PTE in 1 page-table-lock hold, 1.00 per hold, by 1 fault");

	rec = new_recording("x", "none");
	r = new_run(rec);
	count(r, METRIC_FAULT_COMPLETED, "file none access minor", 3);
	expect_headline(rec, "file: 3 faults that installed no PTE");

	/* Nothing of it was seen: no claim about PTEs. */
	rec = new_recording("x", "none");
	r = new_run(rec);
	unavailable(r, METRIC_PTES_INSTALLED, "", "inlined");
	expect_headline(rec, "no faults while observed, PTEs unavailable (inlined)");

	/* Nothing seen, but not for certain. */
	rec = new_recording("x", "none");
	count(new_run(rec), METRIC_FAULT_ATTEMPTS, "anon access", 0)->max = 2;
	expect_headline(rec, "no faults and no PTEs seen, but runs of the probes were lost");

	rec = make_eager();	/* the same backing by faults as well */
	count(rec->run[0], METRIC_PTES_INSTALLED, "bpf_array per_page access", 5);
	count(rec->run[0], METRIC_FAULT_COMPLETED, "bpf_array per_page access minor", 5);
	count(rec->run[0], METRIC_PTES_INSTALLED, "anon per_page access", 37);
	expect_headline(rec, "bpf_array: 2048 PTEs installed at mmap time in 2048 page-table-lock "
			"holds, 1.00 per hold; 5 faults; and 5 more by its faults; and 37 more by "
			"other backings");
}

static void test_numbers(void **state)
{
	char out[16];

	assert_string_equal(text_count(9999999).s, "9999999");
	assert_string_equal(text_count(10000000).s, "10000000");
	assert_string_equal(text_count(10000001).s, "10.0M");
	assert_string_equal(text_count(999499999).s, "999M");
	assert_string_equal(text_count(999500000).s, "1.00G");
	assert_string_equal(text_count(UINT64_MAX).s, "18.4E");
	assert_string_equal(text_ratio(16, 1).s, "16.0");
	assert_string_equal(text_ratio(512, 1).s, "512");
	assert_string_equal(text_ratio(1, 0).s, "-");
	assert_string_equal(text_time(0).s, "0 ns");
	assert_string_equal(text_time(999).s, "999 ns");
	assert_string_equal(text_time(1000).s, "1.00 us");
	assert_string_equal(text_time(999999).s, "1.00 ms");
	assert_string_equal(text_time(90000000000).s, "90.0 s");
	assert_string_equal(text_time_bounds(3072, 3328).s, "3.07 .. 3.33 us");
	assert_string_equal(text_time_bounds(960, 1024).s, "0.96 .. 1.02 us");
	assert_string_equal(text_time_bounds(5, 6).s, "5 ns");
	assert_string_equal(text_time_bounds(1ULL << 40, 0).s, ">= 18.3 min");
	assert_string_equal(text_percent(1, 3).s, "33 %");
	assert_string_equal(text_percent(0, 3).s, "0 %");
	assert_string_equal(text_percent(1, 0).s, "-");

	text_escape(out, sizeof(out), "a\n\xff\xc3\xa9");
	assert_string_equal(out, "a\\x0a\\xff\xc3\xa9");
	text_escape(out, sizeof(out), "0123456789abcde");
	assert_string_equal(out, "0123456789abcde");
	text_escape(out, sizeof(out), "0123456789abcdef");
	assert_string_equal(out, "0123456789ab...");
	text_escape(out, sizeof(out), "0123456789a\xc3\xa9\xc3\xa9\xc3\xa9");
	assert_string_equal(out, "0123456789a...");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lazy),	 cmocka_unit_test(test_eager),
		cmocka_unit_test(test_around),	 cmocka_unit_test(test_thp),
		cmocka_unit_test(test_inferred), cmocka_unit_test(test_misses),
		cmocka_unit_test(test_missing),	 cmocka_unit_test(test_empty),
		cmocka_unit_test(test_hostile),	 cmocka_unit_test(test_large),
		cmocka_unit_test(test_runs),	 cmocka_unit_test(test_views),
		cmocka_unit_test(test_write_errors), cmocka_unit_test(test_headlines),
		cmocka_unit_test(test_numbers),	 cmocka_unit_test(test_resident),
	};

	/* Times of day in the reports. */
	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests_name("renderers", tests, NULL, NULL);
}
