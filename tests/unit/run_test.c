// SPDX-License-Identifier: GPL-2.0-only
/* Runs: samples, texts, and sums over labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/cost.h"
#include "unit/samples.h"

static const char *const *want(enum label a, const char *av, enum label b, const char *bv)
{
	static const char *w[LABEL_MAX];

	memset(w, 0, sizeof(w));
	w[a] = av;
	if (b != LABEL_MAX)
		w[b] = bv;
	return w;
}

static void test_total(void **state)
{
	struct run *r = run_new();
	const char *reason = NULL;
	struct total t;

	count(r, METRIC_FAULT_COMPLETED, "anon per_page access minor", 1);
	struct sample *s = count(r, METRIC_FAULT_COMPLETED, "anon cow access minor", 20);

	s->max = 23;
	s->moved = 30;
	count(r, METRIC_FAULT_COMPLETED, "file cow gup major", 300)->flags = SAMPLE_INFERRED;
	count(r, METRIC_FAULT_ATTEMPTS, "anon access", 4000);
	sample_set_label(count(r, METRIC_FAULT_COMPLETED, "file cow gup major", 300), LABEL_VM_OPS,
			 "x_ops");

	assert_true(run_total(r, METRIC_FAULT_COMPLETED, NULL, &t, &reason));
	assert_int_equal(t.value, 321);
	assert_int_equal(t.max, 324);
	assert_int_equal(t.min, 321);	/* under whatever label, it is in the sum */
	assert_int_equal(t.flags, SAMPLE_INFERRED);
	assert_true(run_total(r, METRIC_FAULT_COMPLETED,
			      want(LABEL_METHOD, "cow", LABEL_MAX, NULL), &t, NULL));
	assert_int_equal(t.value, 320);
	assert_int_equal(t.min, 300);	/* the 20, not 30, may all be others' */
	assert_true(run_total(r, METRIC_FAULT_COMPLETED,
			      want(LABEL_BACKING, "anon", LABEL_MAX, NULL), &t, &reason));
	assert_int_equal(t.value, 21);
	assert_int_equal(t.flags, 0);
	assert_true(run_total(r, METRIC_FAULT_COMPLETED,
			      want(LABEL_METHOD, "cow", LABEL_KIND, "major"), &t, &reason));
	assert_int_equal(t.value, 300);
	assert_true(run_total(r, METRIC_FAULT_COMPLETED,
			      want(LABEL_VM_OPS, "x_ops", LABEL_MAX, NULL), &t, &reason));
	assert_int_equal(t.value, 300);
	/* Five lost runs of any of three combinations are five, not fifteen. */
	count(r, METRIC_FAULT_FAILED, "anon access", 10)->max = 15;
	count(r, METRIC_FAULT_FAILED, "file access", 20)->max = 25;
	count(r, METRIC_FAULT_FAILED, "shmem access", 0)->max = 5;
	assert_true(run_total(r, METRIC_FAULT_FAILED, NULL, &t, &reason));
	assert_int_equal(t.value, 30);
	assert_int_equal(t.max, 35);
	/* A label that the metric does not have matches nothing. */
	assert_true(run_total(r, METRIC_FAULT_ATTEMPTS,
			      want(LABEL_METHOD, "cow", LABEL_MAX, NULL), &t, &reason));
	assert_int_equal(t.value, 0);
	/* No sample at all is a zero. */
	assert_true(run_total(r, METRIC_PMD_MAPS, NULL, &t, &reason));
	assert_int_equal(t.value + t.max + t.flags, 0);
	assert_null(reason);

	/* max forgotten: the value itself; beyond the largest number: marked. */
	add(r, METRIC_PMD_MAPS, "anon access")->value = 7;
	assert_true(run_total(r, METRIC_PMD_MAPS, NULL, &t, &reason));
	assert_int_equal(t.max, 7);
	count(r, METRIC_PMD_MAPS, "file access", UINT64_MAX);
	assert_true(run_total(r, METRIC_PMD_MAPS, NULL, &t, &reason));
	assert_int_equal(t.value, INT64_MAX);
	assert_int_equal(t.flags, SAMPLE_SATURATED);
	run_free(r);
}

static void test_unavailable(void **state)
{
	struct run *r = run_new();
	const char *reason = NULL;
	struct total t = { 9, 9, 9, 9 };
	struct hist h;
	unsigned int flags;

	count(r, METRIC_FAULT_AROUND_PRESENT, "file", 5);
	unavailable(r, METRIC_FAULT_AROUND_PRESENT, "shmem", "lockdown");
	assert_false(run_total(r, METRIC_FAULT_AROUND_PRESENT, NULL, &t, &reason));
	assert_string_equal(reason, "lockdown");
	assert_int_equal(t.value, 0);
	assert_false(run_total(r, METRIC_FAULT_AROUND_PRESENT,
			       want(LABEL_BACKING, "shmem", LABEL_MAX, NULL), &t, NULL));
	assert_true(run_total(r, METRIC_FAULT_AROUND_PRESENT,
			      want(LABEL_BACKING, "file", LABEL_MAX, NULL), &t, NULL));
	assert_int_equal(t.value, 5);

	/* Without labels it holds for every combination. */
	observe(r, METRIC_PTES_PER_HOLD, "anon per_page access", 1, 1);
	unavailable(r, METRIC_PTES_PER_HOLD, "", "inlined");
	assert_false(run_hist(r, METRIC_PTES_PER_HOLD,
			      want(LABEL_BACKING, "anon", LABEL_METHOD, "per_page"), &h, &flags,
			      &reason));
	assert_string_equal(reason, "inlined");
	assert_int_equal(h.count, 0);
	run_free(r);
}

static void test_hists(void **state)
{
	struct run *r = run_new();
	const char *reason = NULL;
	struct hist h;
	unsigned int flags;

	observe(r, METRIC_PTES_PER_HOLD, "anon per_page access", 1, 10);
	observe(r, METRIC_PTES_PER_HOLD, "anon large_folio access", 16, 2)->flags =
		SAMPLE_LOWER_BOUND;
	add(r, METRIC_PTES_PER_HOLD, "file per_page access");	/* no histogram: empty */
	assert_true(run_hist(r, METRIC_PTES_PER_HOLD, NULL, &h, &flags, &reason));
	assert_int_equal(h.kind, HIST_BATCH);
	assert_int_equal(h.count, 12);
	assert_int_equal(h.sum, 42);
	assert_int_equal(flags, SAMPLE_LOWER_BOUND);
	assert_true(run_hist(r, METRIC_PTES_PER_HOLD,
			     want(LABEL_METHOD, "per_page", LABEL_MAX, NULL), &h, &flags, &reason));
	assert_int_equal(h.count, 10);
	assert_int_equal(flags, 0);
	assert_true(run_hist(r, METRIC_FAULT_LATENCY, NULL, &h, &flags, &reason));
	assert_int_equal(h.kind, HIST_TIME);
	assert_int_equal(h.count, 0);
	run_free(r);
}

static void test_zero(void **state)
{
	struct run *r = run_new();

	assert_true(sample_is_zero(count(r, METRIC_PMD_MAPS, "anon access", 0)));
	assert_false(sample_is_zero(count(r, METRIC_PMD_MAPS, "anon access", 1)));
	count(r, METRIC_PMD_MAPS, "anon access", 0)->max = 2;
	assert_false(sample_is_zero(&r->sample[r->samples - 1]));
	count(r, METRIC_PMD_MAPS, "anon access", 0)->flags = SAMPLE_LOWER_BOUND;
	assert_false(sample_is_zero(&r->sample[r->samples - 1]));
	unavailable(r, METRIC_PMD_MAPS, "", "x");
	assert_false(sample_is_zero(&r->sample[r->samples - 1]));
	assert_true(sample_is_zero(observe(r, METRIC_PTES_PER_HOLD, "anon cow access", 1, 0)));
	run_free(r);
}

static void test_texts(void **state)
{
	struct run *r = run_new();
	const char *first, *again;
	char name[32];
	size_t i;

	first = run_text(r, "shm_vm_ops");
	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "ops%zu", i);
		assert_non_null(run_text(r, name));
	}
	strcpy(name, "shm_vm_ops");
	again = run_text(r, name);
	assert_ptr_equal(first, again);
	assert_string_equal(first, "shm_vm_ops");
	assert_int_equal(r->texts, 101);
	run_free(r);
}

static void test_growth(void **state)
{
	struct recording *rec = recording_new();
	struct run *r;
	size_t i, n;

	for (n = 0; n < 3; n++) {
		r = run_new();
		for (i = 0; i < 1000; i++)
			count(r, i % METRIC_MAX, "", i);
		for (i = 0; i < 1000; i++)
			assert_int_equal(r->sample[i].value, i);
		assert_int_equal(recording_add(rec, r), 0);
	}
	assert_int_equal(rec->runs, 3);
	assert_ptr_equal(rec->run[2], r);
	recording_free(rec);
	recording_free(NULL);
	run_free(NULL);
}

/* Of what attach() attaches, three programs run for an anonymous page, 20 for a window of 16. */
static void test_cost(void **state)
{
	struct run *r = run_new();
	struct cost c;

	count(r, METRIC_FAULT_ATTEMPTS, "anon access", 100);
	count(r, METRIC_FAULT_COMPLETED, "anon per_page access minor", 100);
	count(r, METRIC_PTES_INSTALLED, "anon per_page access", 100);
	observe(r, METRIC_PTES_PER_HOLD, "anon per_page access", 1, 100);
	assert_int_equal(cost_of(r).runs, 0);	/* nothing was attached */
	attach(r);
	r->trust.program_ps = 0;
	c = cost_of(r);
	assert_int_equal(c.runs, 300);
	assert_int_equal(c.ns, 0);
	r->trust.program_ps = 61500;
	assert_int_equal(cost_of(r).ns, 18450);

	count(r, METRIC_FAULT_ATTEMPTS, "file access", 2);
	count(r, METRIC_PTES_INSTALLED, "file fault_around access", 32);
	observe(r, METRIC_PTES_PER_HOLD, "file fault_around access", 16, 2);
	assert_int_equal(cost_of(r).runs, 300 + 2 * 20);
	miss_probe(r, EVENT_PTE_LOCK, "inlined");
	assert_int_equal(cost_of(r).runs, 200 + 2 * 19);
	/* Another view of the same events. */
	sample_set_label(count(r, METRIC_FAULT_ATTEMPTS, "anon access", 7), LABEL_PID, "x-1");
	assert_int_equal(cost_of(r).runs, 200 + 2 * 19);

	/* Waits have two programs each, and a price of their own: the median of what was timed. */
	probe(r, EVENT_FORK)->event = EVENT_LOCK_EVENT;
	count(r, METRIC_LOCK_EVENTS, "spin", 50);
	c = cost_of(r);
	assert_int_equal(c.wait_runs, 100);
	assert_int_equal(c.wait_ns, 0);
	assert_int_equal(c.runs, 200 + 2 * 19);
	observe(r, METRIC_LOCK_PROGRAMS, "", 1000, 9);
	observe(r, METRIC_LOCK_PROGRAMS, "", 1 << 20, 1);	/* an interrupt came */
	c = cost_of(r);
	assert_in_range(c.wait_ns, 50 * 960, 50 * 1024);
	assert_int_equal(c.ns, c.runs * 61500 / 1000);
	run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_total), cmocka_unit_test(test_unavailable),
		cmocka_unit_test(test_hists), cmocka_unit_test(test_zero),
		cmocka_unit_test(test_texts), cmocka_unit_test(test_growth),
		cmocka_unit_test(test_cost),
	};

	return cmocka_run_group_tests_name("runs", tests, NULL, NULL);
}
