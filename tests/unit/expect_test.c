// SPDX-License-Identifier: GPL-2.0-only
/* Expectations: what is malformed and where, and what an interval can decide. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/expect.h"
#include "render/ktap.h"
#include "unit/caught.h"
#include "unit/samples.h"


/* ---- the language ---- */

static const struct {
	const char *text, *where, *why;
} malformed[] = {
	{ "", "", "no expectation" },
	{ "# only this\n\n", "", "no expectation" },
	{ "x <= 1", "line 1, column 1:", "'x' is no metric" },
	{ "\n\n  fault_complete <= 1", "line 3, column 3:", "'fault_complete' is no metric" },
	{ "fault_completed", "line 1, column 16:", "not the end of the line" },
	{ "fault_completed = 1", "line 1, column 17:", "expected, not '='" },
	{ "fault_completed <=", "line 1, column 19:", "a metric or a number expected" },
	{ "fault_completed <= 1 2", "line 1, column 22:", "one word too many" },
	{ "fault_completed <= 1 <= 2", "line 1, column 22:", "one word too many" },
	{ "fault_completed{} <= 1", "line 1, column 17:", "no label" },
	{ "fault_completed{method} <= 1", "line 1, column 23:", "'='" },
	{ "fault_completed{reason=uffd} <= 1", "line 1, column 17:", "no label 'reason'" },
	{ "fault_completed{method=magic} <= 1", "line 1, column 24:", "no value of the label" },
	{ "fault_completed{method=cow,method=cow} <= 1", "line 1, column 28:", "comes twice" },
	{ "fault_completed{method=cow <= 1", "line 1, column 28:", "'}' expected" },
	{ "fault_completed.p50 <= 1", "line 1, column 17:", "is a counter" },
	{ "ptes_per_hold.p0 <= 1", "line 1, column 15:", "p1 to p99" },
	{ "ptes_per_hold.p100 <= 1", "line 1, column 15:", "p1 to p99" },
	{ "ptes_per_hold.median <= 1", "line 1, column 15:", "p1 to p99" },
	{ "ptes_per_hold. <= 1", "line 1, column 15:", "p1 to p99" },
	{ "fault_completed <= 1 parsec", "line 1, column 22:", "no unit" },
	{ "fault_completed <= 1 ms", "line 1, column 17:", "a number meets a time" },
	{ "fault_latency.p50 <= 1 KiB", "line 1, column 19:", "a time meets a size" },
	{ "fault_latency.count <= 1 ms", "line 1, column 21:", "a number meets a time" },
	{ "wall_ns + maxrss_kib <= 1", "line 1, column 9:", "a time meets a size" },
	{ "wall_ns * sys_ns <= 1", "line 1, column 9:", "a time times a time" },
	{ "wall_ns <= 1 s slack 1 KiB", "line 1, column 22:", "a time meets a size" },
	{ "fault_completed != 1 slack 1", "line 1, column 22:", "takes no slack" },
	{ "fault_completed == 1 slack", "line 1, column 27:", "a number expected" },
	{ "fault_completed == 1 slack fault_failed", "line 1, column 28:", "a number expected" },
	{ "(fault_completed <= 1", "line 1, column 18:", "')' expected" },
	{ "fault_completed) <= 1", "line 1, column 16:", "expected, not ')'" },
	{ "fault_completed <= 1.2.3", "line 1, column 20:", "not a number" },
	{ "fault_completed <= .", "line 1, column 20:", "not a number" },
	{ "fault_completed <= -1", "line 1, column 20:", "expected, not '-'" },
	{ "value. <= 1", "line 1, column 7:", "name of a value" },
	{ "base. <= 1", "line 1, column 6:", "a metric or a number" },
	{ "base.base.fault_failed <= 1", "line 1, column 6:", "no metric" },
	{ "fault_failed <= 1\001", "line 1, column 18:", "0x01" },
};

static void test_malformed(void **state)
{
	struct expectations *e;
	const char *said;
	size_t i;

	for (i = 0; i < sizeof(malformed) / sizeof(*malformed); i++) {
		catch_errors();
		e = expect_parse("E", malformed[i].text, strlen(malformed[i].text));
		said = caught();
		if (e || !strstr(said, malformed[i].where) || !strstr(said, malformed[i].why) ||
		    strchr(said, '\n') != said + strlen(said) - 1)
			fail_msg("'%s'\n  want: %s %s\n  got:  %s", malformed[i].text,
				 malformed[i].where, malformed[i].why, e ? "expectations" : said);
	}
}

static void expect_refused(char *text, const char *why)
{
	const char *said;

	catch_errors();
	assert_null(expect_parse("E", text, strlen(text)));
	said = caught();
	if (!strstr(said, why))
		fail_msg("want: %s\n  got:  %s", why, said);
	free(text);
}

static char *repeat(const char *before, const char *piece, size_t n, const char *after)
{
	char *text = NULL;
	size_t len;
	FILE *mem = open_memstream(&text, &len);

	fputs(before, mem);
	while (n--)
		fputs(piece, mem);
	fputs(after, mem);
	fclose(mem);
	return text;
}

static void test_limits(void **state)
{
	expect_refused(repeat("", "(", 65, "1 <= 1"), "more than 64 parentheses");
	expect_refused(repeat("1", "+1", 200, "<= 1"), "more than 256 operands");
	expect_refused(repeat("1 <= ", "1", 41, ""), "more than 40 digits");
	expect_refused(repeat("1 <= 1", " ", 4096, ""), "more than 4096 bytes");
	expect_refused(repeat("", "1 <= 1\n", 4097, ""), "more than 4096 expectations");
}

/* ---- judging ---- */

static const struct expect_options no_options = { 0 };

static enum expect_verdict judge_with(const struct recording *rec, const struct recording *base,
				      const char *text, char *reason, size_t size)
{
	struct expectations *e = expect_parse("E", text, strlen(text));
	struct expect_result r;
	enum expect_verdict verdict;

	assert_non_null(e);
	assert_int_equal(expect_count(e), 1);
	assert_int_equal(expect_judge(e, 0, rec, base, &no_options, &r), 0);
	verdict = r.verdict;
	if (reason)
		snprintf(reason, size, "%s", r.reason);
	assert_true((verdict == EXPECT_SKIP) == !!*r.reason);
	expect_result_free(&r);
	expect_free(e);
	return verdict;
}

static void expect_is(const struct recording *rec, enum expect_verdict want, const char *text)
{
	static const char *const names[] = { "ok", "not ok", "skip" };
	char reason[300];
	enum expect_verdict got = judge_with(rec, NULL, text, reason, sizeof(reason));

	if (got != want)
		fail_msg("%s\n  want: %s\n  got:  %s (%s)", text, names[want], names[got], reason);
}

static struct recording *make(void)
{
	struct recording *rec = new_recording("7.3.4-cloud-amd64", "none");
	struct run *r = new_run(rec);

	count(r, METRIC_FAULT_COMPLETED, "bpf_array fault_around access minor", 128);
	count(r, METRIC_FAULT_COMPLETED, "anon per_page access minor", 12);
	count(r, METRIC_PTES_INSTALLED, "bpf_array fault_around access", 2048);
	observe(r, METRIC_PTES_PER_HOLD, "bpf_array fault_around access", 16, 127);
	observe(r, METRIC_PTES_PER_HOLD, "bpf_array fault_around access", 15, 1);
	observe(r, METRIC_FAULT_LATENCY, "bpf_array fault_around access", 3100, 100);
	observe(r, METRIC_FAULT_LATENCY, "bpf_array fault_around access", 40000, 28);
	r->has_command = true;
	r->sys_ns = 250000000;
	r->maxrss_kib = 9000;
	assert_int_equal(run_add_value(r, "touch_us", 12.5, "us", true), 0);
	return rec;
}

static void test_verdicts(void **state)
{
	struct recording *rec = make();

	expect_is(rec, EXPECT_OK, "fault_completed == 140");
	expect_is(rec, EXPECT_NOT_OK, "fault_completed != 140");
	expect_is(rec, EXPECT_OK, "fault_completed{backing=bpf_array} <= 128");
	expect_is(rec, EXPECT_NOT_OK, "fault_completed{backing=bpf_array} < 128");
	expect_is(rec, EXPECT_NOT_OK, "fault_completed{backing=bpf_array} <= 10");
	expect_is(rec, EXPECT_OK, "fault_completed { backing = anon , kind = minor } >= 12");
	expect_is(rec, EXPECT_NOT_OK, "fault_completed{backing=anon} > 12");
	expect_is(rec, EXPECT_OK, "fault_completed{backing=file} == 0");
	expect_is(rec, EXPECT_OK, "ptes_installed / fault_completed{backing=bpf_array} == 16");
	expect_is(rec, EXPECT_OK, "10 >= fault_completed{backing=anon} - 2");
	expect_is(rec, EXPECT_OK, "(1 + 2) * 3 == 9");
	expect_is(rec, EXPECT_OK, "1 + 2 * 3 == 7");
	expect_is(rec, EXPECT_OK, "12 / 2 / 3 == 2");
	expect_is(rec, EXPECT_OK, "7 - 2 - 3 == 2");
	/* Not exact in binary, yet equal. */
	expect_is(rec, EXPECT_OK, "fault_completed <= 1.05 * 140 - 7");
	expect_is(rec, EXPECT_OK, "0.1 + 0.2 == 0.3");
	expect_is(rec, EXPECT_NOT_OK, "900719925474099 == 900719925474098");
	/* Slack widens what holds; beyond it nothing changes. */
	expect_is(rec, EXPECT_OK, "fault_completed == 141 slack 1");
	expect_is(rec, EXPECT_NOT_OK, "fault_completed == 142 slack 1");
	expect_is(rec, EXPECT_OK, "fault_completed <= 139 slack 1");
	expect_is(rec, EXPECT_NOT_OK, "fault_completed <= 138 slack 1");
	expect_is(rec, EXPECT_OK, "fault_completed >= 141 slack 1");
	expect_is(rec, EXPECT_NOT_OK, "fault_completed >= 142 slack 1");
	/* Units. */
	expect_is(rec, EXPECT_OK, "sys_ns == 250 ms");
	expect_is(rec, EXPECT_OK, "sys_ns == 0.25s");
	expect_is(rec, EXPECT_OK, "maxrss_kib < 9 MiB");
	expect_is(rec, EXPECT_NOT_OK, "maxrss_kib < 8MiB");
	expect_is(rec, EXPECT_OK, "value.touch_us == 12500 ns");
	expect_is(rec, EXPECT_OK, "sys_ns / 2 == 125 ms");
	expect_is(rec, EXPECT_SKIP, "value.other == 1");
	expect_is(rec, EXPECT_SKIP, "fault_completed / fault_failed > 1");
	recording_free(rec);
}

static void test_histograms(void **state)
{
	struct recording *rec = make();

	expect_is(rec, EXPECT_OK, "ptes_per_hold.count == 128");
	expect_is(rec, EXPECT_OK, "ptes_per_hold.sum == 2047");
	expect_is(rec, EXPECT_OK, "ptes_per_hold.mean == 2047 / 128");
	expect_is(rec, EXPECT_OK, "ptes_per_hold == ptes_per_hold.sum / ptes_per_hold.count");
	expect_is(rec, EXPECT_OK, "ptes_per_hold{method=fault_around}.p50 >= 16");
	expect_is(rec, EXPECT_OK, "ptes_per_hold.p50 == 16");
	expect_is(rec, EXPECT_OK, "ptes_per_hold.p1 == 16");
	expect_is(rec, EXPECT_OK, "ptes_per_hold.max == 16");
	expect_is(rec, EXPECT_SKIP, "ptes_per_hold{backing=file}.p50 >= 16");
	expect_is(rec, EXPECT_OK, "ptes_per_hold{backing=file}.count == 0");
	/* A bucket of times is an interval: [3072, 3328). */
	expect_is(rec, EXPECT_OK, "fault_latency.p50 >= 3072 ns");
	expect_is(rec, EXPECT_OK, "fault_latency.p50 < 3328 ns");
	expect_is(rec, EXPECT_SKIP, "fault_latency.p50 < 3327 ns");
	expect_is(rec, EXPECT_SKIP, "fault_latency.p50 <= 3.2 us");
	expect_is(rec, EXPECT_NOT_OK, "fault_latency.p50 < 3072 ns");
	expect_is(rec, EXPECT_NOT_OK, "fault_latency.p99 < 10 us");
	recording_free(rec);

	rec = make();	/* beyond the last bucket there is no upper bound */
	observe(rec->run[0], METRIC_FAULT_LATENCY, "anon per_page access", 1ULL << 41, 1);
	expect_is(rec, EXPECT_OK, "fault_latency.max > 1000 s");
	expect_is(rec, EXPECT_SKIP, "fault_latency.max < 10000 s");
	recording_free(rec);
}

/* Lost runs make an interval of a count, and lower bounds of the rest. */
static void test_lost(void **state)
{
	struct recording *rec = make();
	struct run *r = rec->run[0];
	size_t i;

	for (i = 0; i < r->samples; i++) {
		if (r->sample[i].hist)
			r->sample[i].flags |= SAMPLE_LOWER_BOUND;
		else
			r->sample[i].max = r->sample[i].value + 5;
		r->sample[i].moved = 5;
	}
	probe(r, EVENT_FAULT_ENTRY)->misses = 5;
	/* Of one label, some may be another's; a histogram's sum then says nothing. */
	expect_is(rec, EXPECT_OK, "fault_completed{method=fault_around} >= 123");
	expect_is(rec, EXPECT_SKIP, "fault_completed{method=fault_around} >= 128");
	expect_is(rec, EXPECT_NOT_OK, "fault_completed{method=fault_around} <= 122");
	expect_is(rec, EXPECT_OK, "ptes_per_hold{method=fault_around}.count >= 123");
	expect_is(rec, EXPECT_SKIP, "ptes_per_hold{method=fault_around}.count >= 124");
	expect_is(rec, EXPECT_SKIP, "ptes_per_hold{method=fault_around}.sum >= 1");
	expect_is(rec, EXPECT_OK, "fault_completed <= 145");
	expect_is(rec, EXPECT_SKIP, "fault_completed <= 144");
	expect_is(rec, EXPECT_SKIP, "fault_completed == 140");
	expect_is(rec, EXPECT_NOT_OK, "fault_completed == 139");
	expect_is(rec, EXPECT_NOT_OK, "fault_completed <= 139");
	expect_is(rec, EXPECT_OK, "fault_completed >= 140");
	expect_is(rec, EXPECT_OK, "ptes_per_hold.count >= 128");
	expect_is(rec, EXPECT_SKIP, "ptes_per_hold.count >= 129");
	expect_is(rec, EXPECT_SKIP, "ptes_per_hold.count <= 1000");
	expect_is(rec, EXPECT_OK, "ptes_per_hold.mean >= 15");
	expect_is(rec, EXPECT_SKIP, "ptes_per_hold.mean >= 15.5");
	expect_is(rec, EXPECT_SKIP, "ptes_per_hold.mean <= 100");
	/* 15 ranks away from the 64th is 16 still; from the first or last nothing is known. */
	expect_is(rec, EXPECT_OK, "ptes_per_hold.p50 == 16");
	expect_is(rec, EXPECT_SKIP, "ptes_per_hold.p1 >= 1");
	expect_is(rec, EXPECT_SKIP, "ptes_per_hold.p99 <= 16");
	expect_is(rec, EXPECT_SKIP, "ptes_per_hold.max <= 16");

	/* A kernel that cannot tell: anything may be missing. */
	probe(r, EVENT_FAULT_ENTRY)->misses = UINT64_MAX;
	expect_is(rec, EXPECT_SKIP, "fault_completed <= 1000000");
	expect_is(rec, EXPECT_OK, "fault_completed >= 140");
	expect_is(rec, EXPECT_NOT_OK, "fault_completed < 140");
	expect_is(rec, EXPECT_SKIP, "ptes_per_hold.p50 == 16");

	/* Tasks that found no room were not counted, either: who knows how often. */
	probe(r, EVENT_FAULT_ENTRY)->misses = 0;
	for (i = 0; i < r->samples; i++)
		r->sample[i].flags |= SAMPLE_LOWER_BOUND;
	expect_is(rec, EXPECT_SKIP, "fault_completed <= 1000000");
	expect_is(rec, EXPECT_OK, "fault_completed >= 140");
	recording_free(rec);
}

static void test_unavailable(void **state)
{
	struct recording *rec = make();
	char reason[300];

	unavailable(rec->run[0], METRIC_FAULT_REFUSED, "", "no per-VMA lock on this kernel");
	assert_int_equal(judge_with(rec, NULL, "fault_refused == 0", reason, sizeof(reason)),
			 EXPECT_SKIP);
	assert_non_null(strstr(reason, "no per-VMA lock on this kernel"));
	expect_is(rec, EXPECT_OK, "fault_completed == 140");
	rec->run[0]->exit_status = 3;
	assert_int_equal(judge_with(rec, NULL, "fault_completed == 140", reason, sizeof(reason)),
			 EXPECT_SKIP);
	assert_non_null(strstr(reason, "status 3"));
	recording_free(rec);
	rec = new_recording("x", "none");
	expect_is(rec, EXPECT_SKIP, "1 == 1");
	recording_free(rec);
}

static struct recording *make_boots(const uint64_t *value, size_t runs, size_t per_boot)
{
	struct recording *rec = new_recording("7.3.4-cloud-amd64", "none");
	size_t i;

	for (i = 0; i < runs; i++) {
		struct run *r = new_run(rec);

		snprintf(r->boot_id, sizeof(r->boot_id), "boot %zu", i / per_boot);
		count(r, METRIC_FAULT_COMPLETED, "anon per_page access minor", value[i]);
	}
	return rec;
}

/* Runs of a boot are one value; boots must agree. */
static void test_boots(void **state)
{
	static const uint64_t one[] = { 10, 500, 11 }, six[] = { 10, 900, 12, 20, 21, 900 };
	struct recording *rec = make_boots(one, 3, 3);
	char reason[300];

	expect_is(rec, EXPECT_OK, "fault_completed == 11");
	recording_free(rec);
	rec = make_boots(six, 6, 3);
	expect_is(rec, EXPECT_OK, "fault_completed <= 21");
	expect_is(rec, EXPECT_NOT_OK, "fault_completed < 12");
	assert_int_equal(judge_with(rec, NULL, "fault_completed <= 20", reason, sizeof(reason)),
			 EXPECT_SKIP);
	assert_non_null(strstr(reason, "holds in 1, and not in 1"));
	recording_free(rec);
}

static void test_base(void **state)
{
	static const uint64_t base_of[] = { 100, 110, 120, 200, 210, 220 }, new_of[] = { 111 };
	struct recording *base = make_boots(base_of, 6, 3), *rec = make_boots(new_of, 1, 1);
	char reason[300];

	/* The base is from 110 to 210. */
	assert_int_equal(judge_with(rec, base, "fault_completed <= 1.05 * base.fault_completed",
				    NULL, 0), EXPECT_OK);
	assert_int_equal(judge_with(rec, base, "fault_completed <= base.fault_completed",
				    NULL, 0), EXPECT_SKIP);
	assert_int_equal(judge_with(rec, base, "fault_completed < base.fault_completed / 2",
				    NULL, 0), EXPECT_NOT_OK);
	assert_int_equal(judge_with(rec, base, "fault_completed <= base.value.x", reason,
				    sizeof(reason)), EXPECT_SKIP);
	strcpy(base->machine.thp, "never");
	assert_int_equal(judge_with(rec, base, "fault_completed <= 2 * base.fault_completed",
				    reason, sizeof(reason)), EXPECT_SKIP);
	assert_non_null(strstr(reason, "unlike machines"));
	/* Without the base it does not matter. */
	assert_int_equal(judge_with(rec, base, "fault_completed <= 111", NULL, 0), EXPECT_OK);
	recording_free(base);
	recording_free(rec);
}

/* ---- KTAP ---- */

static void test_ktap(void **state)
{
	static const char text[] =
		"fault_completed{backing=bpf_array} <= 10	# a comment\n"
		"\n"
		"ptes_per_hold{method=fault_around}.p50 >= 16\r\n"
		"fault_latency.p50 <= 3.2 us\n"
		"ptes_installed == 2050 slack 16\n"
		"fault_refused == 0\n";
	static const char want[] =
		"KTAP version 1\n"
		"1..5\n"
		"# value 128, bound <= 10\n"
		"not ok 1 - fault_completed{backing=bpf_array} <= 10\n"
		"# value 16, bound >= 16\n"
		"ok 2 - ptes_per_hold{method=fault_around}.p50 >= 16\n"
		"# value 3072 to 3327 ns, bound <= 3200 ns\n"
		"ok 3 - fault_latency.p50 <= 3.2 us # SKIP the bound lies within what is known of "
		"the value\n"
		"# value 2048, bound == 2050 slack 16\n"
		"ok 4 - ptes_installed == 2050 slack 16\n"
		"# no value: fault_refused is unavailable: no\\x0asuch lock\n"
		"ok 5 - fault_refused == 0 # SKIP fault_refused is unavailable: no\\x0asuch lock\n";
	struct recording *rec = make();
	struct expectations *e = expect_parse("E", text, strlen(text));
	struct expect_result r;
	char *got = NULL;
	size_t len, i;
	FILE *mem = open_memstream(&got, &len);

	unavailable(rec->run[0], METRIC_FAULT_REFUSED, "", "no\nsuch lock");
	assert_non_null(e);
	assert_int_equal(expect_base_line(e), 0);
	ktap_plan(mem, expect_count(e));
	for (i = 0; i < expect_count(e); i++) {
		assert_int_equal(expect_judge(e, i, rec, NULL, &no_options, &r), 0);
		ktap_result(mem, i + 1, &r);
		expect_result_free(&r);
	}
	fclose(mem);
	assert_string_equal(got, want);
	free(got);
	expect_free(e);
	recording_free(rec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_malformed), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_verdicts),  cmocka_unit_test(test_histograms),
		cmocka_unit_test(test_lost),	  cmocka_unit_test(test_unavailable),
		cmocka_unit_test(test_boots),	  cmocka_unit_test(test_base),
		cmocka_unit_test(test_ktap),
	};

	return cmocka_run_group_tests_name("expectations", tests, NULL, NULL);
}
