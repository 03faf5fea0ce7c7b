// SPDX-License-Identifier: GPL-2.0-only
/*
 * Comparisons of recordings made by hand, and golden files of their renderers in
 * tests/golden/diff/ (UPDATE_GOLDEN=1 writes them anew). tests/cli/diff.py has the
 * cases that a user meets.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "data/compare.h"
#include "render/diff.h"
#include "unit/samples.h"

/* ---- the core ---- */

static struct evidence *evidence(struct evidence *e, const double *v, size_t n)
{
	size_t i;

	*e = (struct evidence){ .boots = n, .certain = true, .least = INFINITY };
	e->low = calloc(n, sizeof(*e->low));
	e->high = calloc(n, sizeof(*e->high));
	for (i = 0; i < n; i++) {
		e->low[i] = e->high[i] = v[i];
		e->least = fmin(e->least, v[i]);
		e->most = fmax(e->most, v[i]);
	}
	e->median = v[n / 2];
	return e;
}

static enum verdict verdict_of(const double *base, size_t nb, const double *new, size_t nn,
			       enum evidence_kind kind, enum metric_better better, double margin,
			       double alpha)
{
	struct evidence b, n;
	struct pairing p = { .kind = kind, .pairs = nb };
	struct shift *s = shift_new(evidence(&b, base, nb), evidence(&n, new, nn), &p, better,
				    margin);
	enum verdict v;

	assert_non_null(s);
	v = shift_verdict(s, alpha);
	/* The p-value of the margin says the same as the interval. */
	if (kind != EVIDENCE_LAYOUTS)
		assert_int_equal(shift_p_margin(s) <= alpha,
				 v == VERDICT_WORSE || v == VERDICT_BETTER || v == VERDICT_CHANGED);
	shift_free(s);
	evidence_free(&b);
	evidence_free(&n);
	return v;
}

/*
 * Every verdict has its mirror image: sides swapped, and direction turned. Values
 * are powers of 1.01, so that the expected verdict follows from the exponents.
 */
static void test_mirror(void **state)
{
	static const struct {
		int base[6], new[6];
		size_t n;
		double margin, alpha;
		enum verdict boots, blocks, layouts;
	} t[] = {
		/* 4 of 1.01 are beyond 3 %. */
		{ { 0, 1, 2, 3, 4, 5 }, { 10, 11, 12, 13, 14, 15 }, 6, .03, .05,
		  VERDICT_WORSE, VERDICT_WORSE, VERDICT_WORSE },
		{ { 0, 0, 0, 0, 0, 0 }, { 1, 1, 1, 1, 1, 1 }, 6, .03, .05,
		  VERDICT_SAME, VERDICT_SAME, VERDICT_SAME },
		{ { 0, 0, 0, 0, 0, 0 }, { 4, 4, 4, 4, 4, 4 }, 6, .03, .05,
		  VERDICT_WORSE, VERDICT_WORSE, VERDICT_WORSE },
		/* Less than 3 % more. */
		{ { 0, 0, 0, 0, 0, 0 }, { 2, 2, 2, 2, 2, 2 }, 6, .03, .05,
		  VERDICT_SAME, VERDICT_SAME, VERDICT_SAME },
		{ { 0, 10, 20, 30, 40, 50 }, { 5, 15, 25, 35, 45, 55 }, 6, .03, .05,
		  VERDICT_UNDECIDED, VERDICT_WORSE, VERDICT_WORSE },
		{ { 0, 10, 20, 30, 40, 50 }, { 5, 15, 25, 35, 45, 50 }, 6, .03, .05,
		  VERDICT_UNDECIDED, VERDICT_UNDECIDED, VERDICT_UNDECIDED },
		/* The sample's least alpha: 2/70 and 2/16 of four, 2/924 and 2/64 of six. */
		{ { 0, 0, 0, 0 }, { 50, 50, 50, 50 }, 4, .03, .05,
		  VERDICT_WORSE, VERDICT_UNDECIDED, VERDICT_WORSE },
		{ { 0, 0, 0, 0 }, { 50, 50, 50, 50 }, 4, .03, .01,
		  VERDICT_UNDECIDED, VERDICT_UNDECIDED, VERDICT_WORSE },
		{ { 0, 0, 0 }, { 50, 50, 50 }, 3, .03, .05,
		  VERDICT_UNDECIDED, VERDICT_UNDECIDED, VERDICT_WORSE },
		/* "Same" needs three boots a side, five blocks. */
		{ { 0, 0, 0 }, { 0, 0, 0 }, 3, .03, .05,
		  VERDICT_SAME, VERDICT_UNDECIDED, VERDICT_SAME },
		{ { 0, 0 }, { 0, 0 }, 2, .03, .05,
		  VERDICT_UNDECIDED, VERDICT_UNDECIDED, VERDICT_SAME },
		{ { 0, 0, 0, 0, 0 }, { 0, 0, 0, 0, 0 }, 5, .03, .05,
		  VERDICT_SAME, VERDICT_SAME, VERDICT_SAME },
	};
	static const enum verdict mirror[VERDICT_MAX] = {
		[VERDICT_WORSE] = VERDICT_BETTER, [VERDICT_CHANGED] = VERDICT_CHANGED,
		[VERDICT_UNDECIDED] = VERDICT_UNDECIDED, [VERDICT_BETTER] = VERDICT_WORSE,
		[VERDICT_SAME] = VERDICT_SAME,
	};
	size_t i, k;
	int kind;

	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		const enum verdict want[] = { t[i].boots, t[i].blocks, 0, t[i].layouts };
		double a[6], b[6];
		size_t n = t[i].n;

		for (k = 0; k < n; k++) {
			a[k] = 1e6 * pow(1.01, t[i].base[k]);
			b[k] = 1e6 * pow(1.01, t[i].new[k]);
		}
		for (kind = EVIDENCE_BOOTS; kind <= EVIDENCE_LAYOUTS; kind++) {
			enum verdict w = want[kind];
			double m = t[i].margin, al = t[i].alpha;

			if (kind == EVIDENCE_EXACT)
				continue;
			if (verdict_of(a, n, b, n, kind, BETTER_LOWER, m, al) != w)
				fail_msg("row %zu, %s", i, evidence_name(kind));
			assert_int_equal(verdict_of(b, n, a, n, kind, BETTER_LOWER, m, al),
					 mirror[w]);
			assert_int_equal(verdict_of(a, n, b, n, kind, BETTER_HIGHER, m, al),
					 mirror[w]);
			assert_int_equal(verdict_of(b, n, a, n, kind, BETTER_HIGHER, m, al), w);
			assert_int_equal(verdict_of(a, n, b, n, kind, BETTER_NEITHER, m, al),
					 w == VERDICT_WORSE ? VERDICT_CHANGED : w);
		}
	}
}

/* Lost events: the whole interval must agree. */
static void test_uncertain(void **state)
{
	static const double low[] = { 100, 100, 100, 100, 100 };
	static const double high[] = { 110, 110, 110, 110, 110 };
	struct evidence b, n;
	struct pairing p = { .kind = EVIDENCE_BOOTS };
	struct shift *s;
	double from, to;
	size_t i;

	evidence(&b, low, 5);
	evidence(&n, high, 5);
	n.certain = false;
	for (i = 0; i < 5; i++)
		n.high[i] = 130;
	s = shift_new(&b, &n, &p, BETTER_LOWER, .03);
	assert_int_equal(shift_verdict(s, .05), VERDICT_WORSE);
	assert_true(shift_interval(s, .05, &from, &to));
	assert_true(fabs(from - log(1.1)) < 1e-9 && fabs(to - log(1.3)) < 1e-9);
	shift_free(s);
	s = shift_new(&b, &n, &p, BETTER_HIGHER, .03);
	assert_int_equal(shift_verdict(s, .05), VERDICT_BETTER);
	assert_true(shift_interval(s, .05, &from, &to));
	assert_true(fabs(from + log(1.3)) < 1e-9 && fabs(to + log(1.1)) < 1e-9);
	shift_free(s);
	s = shift_new(&b, &n, &p, BETTER_LOWER, .15);
	assert_int_equal(shift_verdict(s, .05), VERDICT_UNDECIDED);
	shift_free(s);
	/* At the base it widens to the other side. */
	s = shift_new(&n, &b, &p, BETTER_LOWER, .03);
	assert_true(shift_interval(s, .05, &from, &to));
	assert_true(fabs(from + log(1.3)) < 1e-9 && fabs(to + log(1.1)) < 1e-9);
	shift_free(s);
	evidence_free(&b);
	evidence_free(&n);
}

/* Zeros have no logarithm: plain differences, and no margin from a base of zero. */
static void test_zero(void **state)
{
	static const double zero[] = { 0, 0, 0, 0, 0 }, one[] = { 1, 1, 1, 1, 1 };
	static const double some[] = { 0, 3, 1, 0, 2 };

	assert_int_equal(verdict_of(zero, 5, one, 5, EVIDENCE_BOOTS, BETTER_LOWER, .03, .05),
			 VERDICT_WORSE);
	assert_int_equal(verdict_of(one, 5, zero, 5, EVIDENCE_BOOTS, BETTER_LOWER, .03, .05),
			 VERDICT_BETTER);
	assert_int_equal(verdict_of(zero, 5, zero, 5, EVIDENCE_BOOTS, BETTER_LOWER, .03, .05),
			 VERDICT_SAME);
	assert_int_equal(verdict_of(some, 5, some, 5, EVIDENCE_BOOTS, BETTER_LOWER, .03, .05),
			 VERDICT_UNDECIDED);
	assert_int_equal(verdict_of(zero, 5, some, 5, EVIDENCE_BOOTS, BETTER_LOWER, .03, .05),
			 VERDICT_UNDECIDED);
}

static void test_needed(void **state)
{
	struct pairing boots = { .kind = EVIDENCE_BOOTS }, blocks = { .kind = EVIDENCE_BLOCKS };

	assert_int_equal(pairing_boots_needed(&boots, 1), 4);
	assert_int_equal(pairing_boots_needed(&boots, 5), 5);
	assert_int_equal(pairing_boots_needed(&blocks, 1), 6);
	assert_int_equal(pairing_boots_needed(&blocks, 5), 8);
}

/* ---- recordings ---- */

static struct run *boot_run(struct recording *rec, int boot, int start)
{
	struct run *r = new_run(rec);

	snprintf(r->boot_id, sizeof(r->boot_id), "00000000-0000-4000-8000-%012d", boot);
	r->start_ns = 1790000000000000000ULL + start * 1000000000ULL;
	r->has_command = true;
	r->maxrss_kib = 10000;
	r->user_ns = 5000000;
	r->sys_ns = 250000000 + boot % 7 * 1000000;
	return r;
}

static void value(struct run *r, const char *name, double v, const char *unit, bool lower)
{
	assert_int_equal(run_add_value(r, name, v, unit, lower), 0);
}

/* Eight boots of two runs each; what `slower` is slower by varies a little. */
static struct recording *times(int first, int start, double slower)
{
	struct recording *rec = new_recording(first ? "7.3.4-cloud-amd64" : "7.2.12-cloud-amd64",
					      "tcg");
	int boot, i;

	rec->primaries = 0;
	rec->primary[rec->primaries++] = "ptes_per_hold";
	rec->primary[rec->primaries++] = "touch_ns";
	for (boot = 0; boot < 8; boot++) {
		for (i = 0; i < 2; i++) {
			struct run *r = boot_run(rec, first + boot, start + 2 * boot + i);
			uint64_t t = (uint64_t)(1e6 * slower * (1 + boot * .002 + i * .001));

			r->wall_ns = 1000 * t;
			value(r, "touch_ns", t, "ns", true);
			value(r, "rate", 1e12 / t, "pages/s", false);
			count(r, METRIC_FAULT_COMPLETED, "file fault_around access minor", 128);
			count(r, METRIC_FAULT_COMPLETED, "anon per_page access minor",
			      7 + boot % 3);
			observe(r, METRIC_PTES_PER_HOLD, "file fault_around access", 16, 128);
			observe(r, METRIC_FAULT_LATENCY, "file fault_around access", t / 300, 100);
			observe(r, METRIC_FAULT_LATENCY, "file fault_around access", t / 30, 28);
		}
	}
	return rec;
}

static struct recording *counts(int first, bool lazy, int boots)
{
	struct recording *rec = new_recording(lazy ? "7.3.4-cloud-amd64" : "7.2.12-cloud-amd64",
					      "none");
	int boot;

	rec->primaries = 0;
	for (boot = 0; boot < boots; boot++) {
		struct run *r = boot_run(rec, first + boot, first + boot);

		if (lazy) {
			count(r, METRIC_FAULT_ATTEMPTS, "bpf_array access", 4096);
			count(r, METRIC_FAULT_COMPLETED, "bpf_array per_page access minor", 2048);
			count(r, METRIC_FAULT_REFUSED, "bpf_array no_map_pages", 2048);
			count(r, METRIC_PTES_INSTALLED, "bpf_array per_page access", 2048);
			observe(r, METRIC_PTES_PER_HOLD, "bpf_array per_page access", 1, 2048);
		} else {
			count(r, METRIC_PTES_INSTALLED, "bpf_array eager mmap", 2048);
			observe(r, METRIC_PTES_PER_HOLD, "bpf_array eager mmap", 1, 2048);
		}
	}
	return rec;
}

static const struct comparison_item *item(const struct comparison *c, const char *name)
{
	size_t i;

	for (i = 0; i < c->items; i++)
		if (!strcmp(c->item[i].name, name) && !*c->item[i].labels)
			return &c->item[i];
	fail_msg("no %s", name);
	return NULL;
}

static int status_of(struct recording *a, struct recording *b, bool ignore)
{
	struct comparison *c = comparison_new(a, b, &(struct compare_options){ ignore });
	int status;

	assert_non_null(c);
	status = c->status;
	assert_true(*c->reason);
	comparison_free(c);
	return status;
}

static void test_counts(void **state)
{
	struct recording *eager = counts(0, false, 5), *lazy = counts(100, true, 5);
	struct comparison *c;

	assert_int_equal(status_of(eager, lazy, false), 1);
	assert_int_equal(status_of(lazy, eager, false), 0);
	assert_int_equal(status_of(eager, eager, false), 0);
	c = comparison_new(eager, lazy, NULL);
	assert_int_equal(item(c, "fault_completed")->kind, EVIDENCE_EXACT);
	assert_false(item(c, "fault_completed")->has_change);
	assert_int_equal(item(c, "ptes_per_hold")->verdict, VERDICT_SAME);
	comparison_free(c);
	lazy->machine.memory_kib *= 2;
	assert_int_equal(status_of(eager, lazy, false), 125);
	assert_int_equal(status_of(eager, lazy, true), 1);
	recording_free(eager);
	recording_free(lazy);
	/* Four boots of one side are too few to take a count for exact. */
	eager = counts(0, false, 4);
	lazy = counts(100, true, 6);
	c = comparison_new(eager, lazy, NULL);
	assert_int_equal(item(c, "fault_completed")->kind, EVIDENCE_BOOTS);
	comparison_free(c);
	c = comparison_new(lazy, eager, NULL);
	assert_int_equal(item(c, "fault_completed")->kind, EVIDENCE_BOOTS);
	comparison_free(c);
	recording_free(eager);
	recording_free(lazy);
	eager = counts(0, false, 1);
	lazy = counts(100, true, 1);
	c = comparison_new(eager, lazy, NULL);
	assert_int_equal(c->status, 125);
	assert_non_null(strstr(c->reason, "the unit is the boot"));
	comparison_free(c);
	recording_free(eager);
	recording_free(lazy);
}

/* Labels in a primary's name; what does not exist is said. */
static void test_selectors(void **state)
{
	static const struct { const char *name; int status; } t[] = {
		{ "fault_completed{backing=bpf_array}", 1 },
		{ "fault_completed{backing=bpf_array,kind=minor}", 1 },
		{ "fault_completed{backing=anon}", 0 },
		{ "fault_completed{kind=major}", 0 },
		{ "fault_completed{kind=maybe}", 125 },
		{ "fault_completed{reason=uffd}", 125 },
		{ "fault_completed{backing}", 125 },
		{ "fault_completed{}", 125 },
		{ "fault_completed{backing=bpf_array", 125 },
		{ "fault_completed{=}", 125 },
		{ "fault_completed{,}", 125 },
		{ "", 125 },
		{ "minflt", 0 },
		{ "ptes_per_hold{method=eager}", 125 },	/* no events on one side */
	};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct recording *eager = counts(0, false, 5), *lazy = counts(100, true, 5);
		int got;

		eager->primary[0] = lazy->primary[0] = t[i].name;
		eager->primaries = lazy->primaries = 1;
		got = status_of(eager, lazy, false);
		if (got != t[i].status)
			fail_msg("%s: %d", t[i].name, got);
		recording_free(eager);
		recording_free(lazy);
	}
}

/* Percentiles get a verdict only where the bounds do not overlap. */
static void test_percentiles(void **state)
{
	struct recording *a = times(0, 0, 1), *b = times(100, 1000, 1.005);
	struct recording *d = times(200, 2000, 3);
	struct comparison *c = comparison_new(a, b, NULL);

	assert_int_equal(item(c, "fault_latency.p50")->verdict, VERDICT_UNDECIDED);
	comparison_free(c);
	c = comparison_new(a, d, NULL);
	assert_int_equal(item(c, "fault_latency.p50")->verdict, VERDICT_WORSE);
	assert_int_equal(item(c, "fault_latency.p99")->verdict, VERDICT_WORSE);
	assert_true(item(c, "fault_latency.p50")->look);
	comparison_free(c);
	c = comparison_new(d, a, NULL);
	assert_int_equal(item(c, "fault_latency.p50")->verdict, VERDICT_BETTER);
	comparison_free(c);
	recording_free(a);
	recording_free(b);
	recording_free(d);
}

/* Nothing that a recording holds may crash a comparison. */
static void test_odd(void **state)
{
	struct recording *a = recording_new(), *b = counts(0, true, 5);
	struct run *r;
	size_t i;

	assert_int_equal(status_of(a, a, true), 125);
	assert_int_equal(status_of(a, b, true), 125);
	assert_int_equal(recording_add(a, run_new()), 0);
	assert_int_equal(status_of(a, a, true), 125);
	assert_int_equal(status_of(a, b, true), 125);
	assert_int_equal(status_of(b, a, true), 125);
	r = a->run[0];
	value(r, "nan", NAN, "", true);
	value(r, "inf", INFINITY, "ns", true);
	value(r, "huge", 1e308, "ns", false);
	value(r, "huge", -1e308, "ns", false);
	observe(r, METRIC_FAULT_LATENCY, "", 5, 0);
	a->primary[a->primaries++] = "nan";
	a->primary[a->primaries++] = "nan";
	a->primary[a->primaries++] = "inf";
	a->primary[a->primaries++] = "huge";
	assert_int_equal(status_of(a, a, true), 125);
	/* More boots than are compared. */
	for (i = 0; i < 1002; i++)
		boot_run(b, 1000 + (int)i, (int)i);
	assert_int_equal(status_of(b, b, true), 125);
	recording_free(a);
	recording_free(b);
}

/* ---- golden files ---- */

static void compare_golden(const char *name, const char *suffix, const char *got)
{
	const char *tree = getenv("MMSCOPE_TREE"), *update = getenv("UPDATE_GOLDEN"), *a, *b;
	char path[512], want[65536];
	size_t n;
	FILE *f;
	int line = 1;

	snprintf(path, sizeof(path), "%s/tests/golden/diff/%s%s", tree ? tree : ".", name, suffix);
	if (update && *update) {
		f = fopen(path, "we");
		assert_non_null(f);
		fputs(got, f);
		assert_int_equal(fclose(f), 0);
		return;
	}
	f = fopen(path, "re");
	if (!f)
		fail_msg("%s is missing: make it with UPDATE_GOLDEN=1", path);
	n = fread(want, 1, sizeof(want) - 1, f);
	fclose(f);
	want[n] = 0;
	for (a = want, b = got; *a && *a == *b; a++, b++)
		line += *a == '\n';
	if (*a != *b) {
		while (a > want && a[-1] != '\n') {
			a--;
			b--;
		}
		print_message("%s:%d\n  want: %.*s\n  got:  %.*s\n", path, line,
			      (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
		fail_msg("%s differs", path);
	}
}

static void check_width(const char *text, size_t width)
{
	char line[1024];
	const char *p;

	for (p = text; *p; p += strcspn(p, "\n") + 1) {
		size_t n = strcspn(p, "\n");

		assert_true(n < sizeof(line));
		memcpy(line, p, n);
		line[n] = 0;
		if (text_columns(line) > width)
			fail_msg("wider than %zu: %s", width, line);
		assert_true(!n || line[n - 1] != ' ');
	}
}

static void golden(const char *name, struct recording *a, struct recording *b, bool all,
		   const char *metric)
{
	struct comparison *c = comparison_new(a, b, NULL);
	struct diff_view d = { .comparison = c, .name = { "base.json", "new.json" },
			       .machine = { &a->machine, &b->machine }, .all = all,
			       .metric = metric };
	static const char *const suffix[] = { ".txt", ".lkml", ".json" };
	size_t i;

	for (i = 0; i < 3; i++) {
		char *text = NULL;
		size_t size = 0;
		FILE *mem = open_memstream(&text, &size);

		if (i == 0)
			diff_text(mem, &d);
		else if (i == 1)
			diff_lkml(mem, &d);
		else
			assert_int_equal(diff_json(mem, &d), 0);
		fclose(mem);
		compare_golden(name, suffix[i], text);
		if (i < 2)
			check_width(text, i ? LKML_WIDTH : TEXT_WIDTH);
		free(text);
	}
	comparison_free(c);
	recording_free(a);
	recording_free(b);
}

/* Observed runs and others in each boot: counts are of the former, times of the latter. */
static void test_passes(void **state)
{
	struct recording *a = counts(100, false, 5), *b = counts(100, false, 5), *rec;
	struct comparison *c;
	size_t i, side, boots = a->runs;
	struct run *r;

	for (side = 0; side < 2; side++) {
		rec = side ? b : a;
		for (i = 0; i < boots; i++) {
			/* What probes cost must not show. */
			rec->run[i]->wall_ns = side ? 9000000 : 3000000;
			assert_int_equal(run_add_value(rec->run[i], "touch", side ? 900 : 300, "us",
						       true), 0);
			r = run_new();
			assert_non_null(r);
			memcpy(r->boot_id, rec->run[i]->boot_id, sizeof(r->boot_id));
			r->start_ns = rec->run[i]->start_ns + 1;
			r->wall_ns = 2000000;
			assert_int_equal(run_add_value(r, "touch", 200, "us", true), 0);
			assert_int_equal(recording_add(rec, r), 0);
			assert_false(run_observed(r));
			assert_true(run_observed(rec->run[i]));
		}
	}
	c = comparison_new(a, b, NULL);
	assert_non_null(c);
	assert_int_equal(c->base.runs, 2 * boots);
	assert_true(item(c, "wall_ns")->base.median == 2000000);
	assert_true(item(c, "wall_ns")->new.median == 2000000);
	assert_true(item(c, "touch")->new.median == 200);
	assert_string_equal(item(c, "fault_completed")->base.unavailable, "");
	assert_int_equal(item(c, "fault_completed")->verdict, VERDICT_SAME);
	assert_int_equal(item(c, "fault_completed")->kind, EVIDENCE_EXACT);
	comparison_free(c);
	recording_free(a);
	recording_free(b);
}

static void test_golden(void **state)
{
	struct recording *a, *b;

	golden("counts", counts(0, false, 5), counts(100, true, 5), false, NULL);
	golden("one-boot", counts(0, false, 1), counts(100, true, 1), false, NULL);
	golden("times", times(0, 0, 1), times(100, 1000, 1.08), true, NULL);
	golden("metric", times(0, 0, 1), times(100, 1000, 1.08), false, "fault_latency");
	/* In turns: blocks. */
	a = times(0, 0, 1.08);
	b = times(100, 0, 1);
	for (size_t i = 0; i < b->runs; i++)
		b->run[i]->start_ns += 500000000;
	golden("blocks", a, b, false, NULL);
	a = times(0, 0, 1);
	b = times(100, 1000, 1.08);
	strcpy(b->machine.thp, "never");
	b->machine.fault_around_bytes = -1;
	b->command[1][0] = 'B';
	b->run[3]->trust.probe[0].misses = UINT64_MAX;
	a->run[1]->trust.probe[1].misses = 12;
	a->run[1]->trust.unmatched = 3;
	golden("unlike", a, b, false, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mirror),	  cmocka_unit_test(test_uncertain),
		cmocka_unit_test(test_zero),	  cmocka_unit_test(test_needed),
		cmocka_unit_test(test_counts),	  cmocka_unit_test(test_selectors),
		cmocka_unit_test(test_percentiles), cmocka_unit_test(test_odd),
		cmocka_unit_test(test_passes),	  cmocka_unit_test(test_golden),
	};

	return cmocka_run_group_tests_name("comparisons", tests, NULL, NULL);
}
