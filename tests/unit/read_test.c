// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reader: what the writer writes comes back equal, and whatever else it is
 * given ends in a recording or in one line, within bounded memory. time-limit: 300
 */
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/read.h"
#include "render/json.h"
#include "render/text.h"
#include "unit/caught.h"
#include "unit/recordings.h"

#define FLIPS	10000

static size_t lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* ---- files ---- */

static char *load(const char *path, size_t *len)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t n;
	FILE *mem;
	char part[4096];

	assert_non_null(f);
	mem = open_memstream(&text, len);
	while ((n = fread(part, 1, sizeof(part), f)))
		fwrite(part, 1, n, mem);
	fclose(f);
	fclose(mem);
	return text;
}

static char *write_back(const struct recording *rec, bool one_line)
{
	char *text = NULL;
	size_t len;
	FILE *mem = open_memstream(&text, &len);

	assert_int_equal(json_write(mem, rec, one_line), 0);
	fclose(mem);
	return text;
}

static char *show(const struct recording *rec, const char *by)
{
	const struct view view = { .by = by };
	char *text = NULL;
	size_t len;
	FILE *mem = open_memstream(&text, &len);

	text_fault(mem, rec, &view);
	fclose(mem);
	return text;
}

static void golden_glob(glob_t *g)
{
	const char *tree = getenv("MMSCOPE_TREE");
	char pattern[512];

	snprintf(pattern, sizeof(pattern), "%s/tests/golden/*.json", tree ? tree : ".");
	assert_int_equal(glob(pattern, 0, NULL, g), 0);
	assert_true(g->gl_pathc >= 10);
	/* And one that a kernel's counts were written to. */
	snprintf(pattern, sizeof(pattern), "%s/tests/data/*.json", tree ? tree : ".");
	assert_int_equal(glob(pattern, GLOB_APPEND, NULL, g), 0);
}

/* ---- equal ---- */

static void test_round_trip(void **state)
{
	glob_t g;
	size_t i, len;

	golden_glob(&g);
	for (i = 0; i < g.gl_pathc; i++) {
		char *text = load(g.gl_pathv[i], &len), *again, *line;
		struct recording *rec = recording_read(g.gl_pathv[i]), *rec2;

		assert_non_null(rec);
		again = write_back(rec, false);
		assert_string_equal(again, text);
		line = write_back(rec, true);
		rec2 = recording_read_memory("one line", line, strlen(line));
		assert_non_null(rec2);
		free(again);
		again = write_back(rec2, false);
		assert_string_equal(again, text);
		recording_free(rec);
		recording_free(rec2);
		free(text);
		free(again);
		free(line);
	}
	globfree(&g);
}

/* From the file as from the counts themselves, in every view. */
static void test_same_report(void **state)
{
	static struct recording *(*const make[])(void) = {
		make_lazy, make_eager, make_around, make_paths, make_thp, make_resident,
		make_inferred, make_misses, make_missing, make_empty, make_runs,
	};
	static const char *const by[] = { NULL, "backing", "method", "trigger", "vm_ops" };
	size_t i, j;

	for (i = 0; i < sizeof(make) / sizeof(*make); i++) {
		struct recording *live = make[i](), *rec;
		char *json = write_back(live, true);

		rec = recording_read_memory("live", json, strlen(json));
		assert_non_null(rec);
		for (j = 0; j < sizeof(by) / sizeof(*by); j++) {
			char *a = show(live, by[j]), *b = show(rec, by[j]);

			assert_string_equal(a, b);
			free(a);
			free(b);
		}
		free(json);
		recording_free(live);
		recording_free(rec);
	}
}

/* What cannot be kept as it is (numbers beyond 2^63-1, bytes that are no text) settles at once. */
static void test_settles(void **state)
{
	struct recording *const made[] = { make_large(), make_hostile() };
	size_t i;

	for (i = 0; i < 2; i++) {
		char *first = write_back(made[i], false), *second;
		struct recording *rec = recording_read_memory("first", first, strlen(first));

		assert_non_null(rec);
		second = write_back(rec, false);
		assert_string_equal(first, second);
		free(first);
		free(second);
		recording_free(rec);
		recording_free(made[i]);
	}
}

/* ---- parts that are not as they should be ---- */

#define MACHINE	"\"machine\":{\"release\":\"x\"}"
#define TRUST	"\"trust\":{\"probes\":[],\"unmatched\":0,\"map_full\":0,\"events_lost\":0}"
#define HEAD	"{\"schema\":1," MACHINE ",\"command\":null,\"primary\":[],\"runs\":["
#define RUN_(s)	"{\"start_ns\":1,\"wall_ns\":2,\"metrics\":[" s "]," TRUST "}"
#define WITH(s)	HEAD RUN_(s) "]}"
#define ANON	"\"labels\":{\"backing\":\"anon\",\"trigger\":\"access\"}"
#define HOLD	"\"name\":\"ptes_per_hold\",\"labels\":{\"backing\":\"anon\"," \
		"\"method\":\"per_page\",\"trigger\":\"access\"}"

static struct recording *read_text(const char *text)
{
	return recording_read_memory("test", text, strlen(text));
}

static const struct {
	const char *text, *why;
} damaged[] = {
	{ "", "the file is empty" },
	{ " \n", "ends before" },
	{ "[]", "the recording is an array" },
	{ "1 ", "not a recording, but a number" },
	{ "null", "not a recording, but null" },
	{ "{}", "lacks 'schema'" },
	{ "nonsense", "not JSON" },
	{ "{\"schema\":2}", "schema 2 is of a newer mmscope" },
	{ "{\"schema\":0}", "no schema 0" },
	{ "{\"schema\":-1}", "schema is not a whole number" },
	{ "{\"schema\":1.5}", "schema is not a whole number" },
	{ "{\"schema\":\"1\"}", "schema is a text" },
	{ "{\"schema\":1,\"schema\":1}", "'schema' comes twice" },
	{ "{\"schema\":1}", "lacks 'machine'" },
	{ "{\"schema\":1,\"machine\":[]}", "machine is an array" },
	{ "{\"machine\":{\"cpus_online\":4294967296}}", "cpus_online is too large" },
	{ "{\"machine\":{\"memory_kib\":9223372036854775808}}", "above 2^63-1" },
	{ "{\"machine\":{\"memory_kib\":1e3}}", "not a whole number" },
	{ "{\"machine\":{\"page_size\":{}}}", "page_size is an object" },
	{ "{\"machine\":{\"config\":{\"HZ\":\"1\",\"HZ\":\"2\"}}}", "'HZ' comes twice" },
	{ "{\"machine\":{\"config\":{\"H Z\":\"1\"}}}", "not the name of a setting" },
	{ "{\"machine\":{\"config\":{\"HZ\":250}}}", "a number in the settings" },
	{ "{\"command\":[1]}", "a number in command" },
	{ "{\"command\":\"true\"}", "command is a text" },
	{ "{\"command\":[\"a\\u0000b\"]}", "zero character" },
	{ "{\"primary\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\"]}", "more than 5 primary" },
	{ "{\"primary\":null}", "primary is null" },
	{ HEAD "]}x", "something follows" },
	{ HEAD "]}" HEAD "]}", "something follows" },
	{ HEAD "1]}", "a number in runs" },
	{ HEAD "{}]}", "a run lacks 'start_ns'" },
	{ HEAD "{\"start_ns\":1,\"wall_ns\":1,\"metrics\":[]}]}", "a run lacks 'trust'" },
	{ HEAD "{\"start_ns\":1,\"wall_ns\":1,\"metrics\":[],\"exit_status\":0," TRUST "}]}",
	  "exit_status and rusage go together" },
	{ HEAD "{\"rusage\":{\"user_ns\":1}}]}", "rusage lacks 'sys_ns'" },
	{ HEAD "{\"exit_status\":3000000000}]}", "exit_status is too large" },
	{ HEAD "{\"trust\":{\"probes\":[{}]}}]}", "a probe without an event" },
	{ HEAD "{\"trust\":{\"probes\":[{\"event\":\"fork\"}]}}]}",
	  "either a mechanism or missing" },
	{ HEAD "{\"values\":[{\"name\":\"x\"}]}]}", "needs name and value" },
	{ HEAD "{\"values\":[{\"name\":\"x\",\"value\":1e999}]}]}", "value is too large" },
	{ HEAD "{\"values\":[{\"name\":\"x\",\"value\":1,\"better\":\"up\"}]}]}",
	  "not lower or higher" },
	{ WITH("{}"), "a sample without a name" },
	{ WITH("{\"name\":\"pmd_maps\"," ANON "}"), "needs a value" },
	{ WITH("{\"name\":\"pmd_maps\"," ANON ",\"value\":-1}"), "not a whole number" },
	{ WITH("{\"name\":\"pmd_maps\"," ANON ",\"value\":true}"), "value is true or false" },
	{ WITH("{\"name\":\"pmd_maps\"," ANON ",\"value\":5,\"max\":4}"), "max is below value" },
	{ WITH("{\"name\":\"pmd_maps\"," ANON ",\"value\":5,\"count\":4}"), "has a histogram" },
	{ WITH("{\"name\":\"pmd_maps\"," ANON ",\"value\":5,\"unavailable\":\"x\"}"),
	  "unavailable, and has a value" },
	{ WITH("{\"name\":\"pmd_maps\",\"value\":5}"), "lacks its label 'backing'" },
	{ WITH("{\"name\":\"pmd_maps\",\"labels\":{\"reason\":\"uffd\"},\"unavailable\":\"x\"}"),
	  "has no label 'reason'" },
	{ WITH("{\"name\":\"pmd_maps\",\"labels\":{\"backing\":\"anon\",\"backing\":\"x\"}}"),
	  "'backing' comes twice" },
	{ WITH("{\"name\":\"pmd_maps\"," ANON ",\"value\":1},{\"name\":\"pmd_maps\"," ANON
	       ",\"value\":1}"), "comes twice in this run" },
	{ WITH("{" HOLD ",\"value\":1}"), "needs count, sum and buckets" },
	{ WITH("{" HOLD ",\"unit\":\"ns\",\"count\":0,\"sum\":0,\"buckets\":[]}"), "is in ptes" },
	{ WITH("{" HOLD ",\"unit\":\"ptes\",\"count\":2,\"sum\":2,\"buckets\":[[1,2,1]]}"),
	  "its buckets hold 1 values, count says 2" },
	{ WITH("{" HOLD ",\"unit\":\"ptes\",\"count\":1,\"sum\":2,\"buckets\":[[1,3,1]]}"),
	  "has no bucket [1, 3)" },
	{ WITH("{" HOLD ",\"unit\":\"ptes\",\"count\":1,\"sum\":2,\"buckets\":[[1,null,1]]}"),
	  "has no bucket" },
	{ WITH("{" HOLD ",\"unit\":\"ptes\",\"count\":2,\"sum\":3,\"buckets\":[[2,3,1],[1,2,1]]}"),
	  "out of order" },
	{ WITH("{" HOLD ",\"unit\":\"ptes\",\"count\":0,\"sum\":0,\"buckets\":[[1,2,0]]}"),
	  "an empty bucket" },
	{ WITH("{" HOLD ",\"buckets\":[[1,2]]}"), "a bucket needs three numbers" },
	{ WITH("{" HOLD ",\"buckets\":[[1,2,3,4]]}"), "a bucket is three numbers" },
	{ WITH("{" HOLD ",\"buckets\":[[null,2,3]]}"), "a bucket is three numbers" },
	{ WITH("{" HOLD ",\"buckets\":[1]}"), "a number in buckets" },
	{ WITH("{" HOLD ",\"buckets\":{}}"), "buckets is an object" },
	{ "{\"x\":\"\xff\"}", "not JSON" },
};

static void test_damaged(void **state)
{
	struct recording *rec;
	const char *said;
	size_t i;

	for (i = 0; i < sizeof(damaged) / sizeof(*damaged); i++) {
		catch_errors();
		rec = read_text(damaged[i].text);
		said = caught();
		if (rec || lines(said) != 1 || !strstr(said, damaged[i].why) ||
		    (!strstr(said, "newer mmscope") && !strstr(said, "damaged at byte ")))
			fail_msg("%s\n  want: %s\n  got:  %s", damaged[i].text, damaged[i].why,
				 rec ? "a recording" : said);
	}
}

/* The offset that is named is where it is wrong. */
static void test_offset(void **state)
{
	const char *said;
	char text[512];
	unsigned long at;

	snprintf(text, sizeof(text), "{\"schema\":1,%*s\"machine\":7,", 200, "");
	catch_errors();
	assert_null(read_text(text));
	said = strstr(caught(), "byte ");
	assert_non_null(said);
	at = strtoul(said + 5, NULL, 10);
	assert_true(at >= 220 && at <= 224);
}

/* What another version may have added is no damage. */
static void test_unknown(void **state)
{
	struct recording *rec;
	const char *said;
	struct total t;

	catch_errors();
	rec = read_text("{\"new\":{\"a\":[{\"b\":[1,2,{}]}],\"a\":null},\"schema\":1," MACHINE
			",\"command\":[],\"primary\":[\"of_later\"],\"runs\":["
			RUN_("{\"name\":\"pmd_maps\"," ANON ",\"value\":3,\"note\":[[]]}")
			"],\"more\":1}");
	assert_string_equal(caught(), "");
	assert_non_null(rec);
	assert_string_equal(rec->primary[0], "of_later");
	assert_true(run_total(rec->run[0], METRIC_PMD_MAPS, NULL, &t, NULL));
	assert_int_equal(t.value, 3);
	recording_free(rec);

	catch_errors();
	rec = read_text(WITH("{\"name\":\"of_later\",\"labels\":{\"x\":\"y\"},\"value\":1},"
			     "{\"name\":\"of_later\",\"points\":[]},"
			     "{\"name\":\"pmd_maps\",\"labels\":{\"backing\":\"anon\",\"trigger\":"
			     "\"access\",\"depth\":\"4\"},\"value\":1},"
			     "{\"name\":\"pmd_maps\"," ANON ",\"value\":3}"));
	said = caught();
	assert_non_null(rec);
	assert_int_equal(lines(said), 1);
	assert_non_null(strstr(said, "warning"));
	assert_non_null(strstr(said, "metric of_later, and more"));
	assert_int_equal(rec->run[0]->samples, 1);
	recording_free(rec);
}

/* Keys in any order: some tools sort them. */
static void test_order(void **state)
{
	struct recording *rec = read_text(
		"{\"command\":null," MACHINE ",\"primary\":[],\"runs\":[{\"metrics\":[{\"buckets\":"
		"[[16,17,4]],\"count\":4," "\"labels\":{\"trigger\":\"access\",\"method\":"
		"\"per_page\",\"backing\":\"anon\"},\"sum\":64,\"unit\":\"ptes\",\"name\":"
		"\"ptes_per_hold\"}],\"start_ns\":1," TRUST ",\"wall_ns\":1}],\"schema\":1}");
	unsigned int flags;
	struct hist h;

	assert_non_null(rec);
	assert_true(run_hist(rec->run[0], METRIC_PTES_PER_HOLD, NULL, &h, &flags, NULL));
	assert_int_equal(h.count, 4);
	assert_int_equal(h.bucket[16], 4);
	recording_free(rec);
}

/* ---- limits ---- */

static void expect_refused(char *text, size_t len, const char *why)
{
	const char *said;
	struct recording *rec;

	catch_errors();
	rec = recording_read_memory("test", text, len);
	said = caught();
	if (rec || lines(said) != 1 || !strstr(said, why))
		fail_msg("want: %s\n  got:  %s", why, rec ? "a recording" : said);
	free(text);
}

static void test_limits(void **state)
{
	const size_t big = 8 << 20;
	char *text = malloc(big);
	size_t len, i;
	FILE *mem;

	assert_non_null(text);
	memset(text, '[', big);
	memcpy(text, "{\"x\":", 5);
	expect_refused(text, big, "nested deeper than 32");

	text = malloc(big);
	memset(text, 'a', big);
	memcpy(text, "{\"x\":\"", 6);
	expect_refused(text, big, "more than 1048576 bytes");

	mem = open_memstream(&text, &len);
	fputs(HEAD "{\"metrics\":[", mem);
	for (i = 0; i <= 65536; i++)
		fputs("{\"name\":\"pmd_maps\"," ANON ",\"value\":1},", mem);
	fclose(mem);
	expect_refused(text, len, "more than 65536 samples");

	mem = open_memstream(&text, &len);
	fputs(HEAD "{\"metrics\":[{\"buckets\":[", mem);
	for (i = 0; i <= 1024; i++)
		fputs("[1,2,3],", mem);
	fclose(mem);
	expect_refused(text, len, "more than 1024 buckets");

	mem = open_memstream(&text, &len);
	fputs("{\"machine\":{\"memory_kib\":", mem);
	for (i = 0; i < 100000; i++)
		fputc('9', mem);
	fputs("}}", mem);
	fclose(mem);
	expect_refused(text, len, "above 2^63-1");
}

/* ---- any damage at all ---- */

/* A recording or one line, and never anything else. */
static void survive(const char *text, size_t len, bool *read)
{
	/* Of the exact size: a byte too far is an error that the sanitizer sees. */
	char *copy = malloc(len ? len : 1);
	struct recording *rec;
	char *json;

	assert_non_null(copy);
	memcpy(copy, text, len);
	rec = recording_read_memory("damaged", copy, len);
	free(copy);
	*read = rec;
	if (!rec)
		return;
	/* What was accepted can be shown and written. */
	free(show(rec, NULL));
	json = write_back(rec, true);
	free(json);
	recording_free(rec);
}

static void test_truncations(void **state)
{
	const char *tree = getenv("MMSCOPE_TREE");
	char path[512], *text;
	const char *said;
	size_t len, i;
	bool read;

	snprintf(path, sizeof(path), "%s/tests/data/6.1-touch.json", tree ? tree : ".");
	text = load(path, &len);
	while (len && text[len - 1] == '\n')
		len--;
	assert_true(len > 3000);
	for (i = 0; i < len; i++) {
		catch_errors();
		survive(text, i, &read);
		said = caught();
		if (read || lines(said) != 1)
			fail_msg("cut at byte %zu: %s", i, read ? "accepted" : said);
	}
	free(text);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void test_flips(void **state)
{
	uint64_t seed = 0x6d6d73636f706531ULL;
	size_t i, len, accepted = 0;
	const char *said;
	glob_t g;
	bool read;

	golden_glob(&g);
	for (i = 0; i < FLIPS; i++) {
		char *text = load(g.gl_pathv[i % g.gl_pathc], &len), old;
		size_t at = next_random(&seed) % len;

		old = text[at];
		do {
			text[at] = next_random(&seed);
		} while (text[at] == old);
		catch_errors();
		survive(text, len, &read);
		said = caught();
		if (lines(said) > 1 || (!read && lines(said) != 1))
			fail_msg("%s, byte %zu is %#x: %s", g.gl_pathv[i % g.gl_pathc], at,
				 (unsigned char)text[at], said);
		accepted += read;
		free(text);
	}
	globfree(&g);
	/* A digit or a letter of a text may change without a trace, structure not. */
	assert_true(accepted > FLIPS / 100 && accepted < FLIPS * 9 / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_same_report),
		cmocka_unit_test(test_settles),	   cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_offset),
		cmocka_unit_test(test_unknown),	   cmocka_unit_test(test_order),
		cmocka_unit_test(test_limits),	   cmocka_unit_test(test_truncations),
		cmocka_unit_test(test_flips),
	};

	return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
