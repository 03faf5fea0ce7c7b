// SPDX-License-Identifier: GPL-2.0-only
/* The tables: label slots, metrics, events; and what each may say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/shared.h"
#include "data/run.h"

/* What the BPF side indexes slot_of[] with: base plus the row-major raw index. */
static size_t raw_index(enum shape shape, const unsigned int *v)
{
	switch (shape) {
	case SHAPE_COMPLETED:
		return SLOT_BASE_COMPLETED +
		       ((v[0] * METHOD_MAX + v[1]) * TRIGGER_MAX + v[2]) * KIND_MAX + v[3];
	case SHAPE_FAULT:
		return SLOT_BASE_FAULT + (v[0] * METHOD_MAX + v[1]) * TRIGGER_MAX + v[2];
	case SHAPE_INSTALL:
		return SLOT_BASE_INSTALL + (v[0] * METHOD_MAX + v[1]) * TRIGGER_MAX + v[2];
	case SHAPE_ATTEMPT:
		return SLOT_BASE_ATTEMPT + v[0] * TRIGGER_MAX + v[1];
	case SHAPE_REFUSED:
		return SLOT_BASE_REFUSED + v[0] * REASON_MAX + v[1];
	case SHAPE_REASON:
		return SLOT_BASE_REASON + v[0];
	case SHAPE_OUTCOME:
		return SLOT_BASE_OUTCOME + v[0] * OUTCOME_MAX + v[1];
	case SHAPE_BACKING:
		return SLOT_BASE_BACKING + v[0];
	case SHAPE_LOCK:
		return SLOT_BASE_LOCK + (v[0] * MODE_MAX + v[1]) * SPACE_MAX + v[2];
	case SHAPE_CLASS:
		return SLOT_BASE_CLASS + v[0];
	case SHAPE_MODE:
		return SLOT_BASE_MODE + v[0];
	case SHAPE_PART:
		return SLOT_BASE_PART + v[0];
	case SHAPE_NONE:
		return SLOT_BASE_NONE;
	case SHAPE_MAX:
		break;
	}
	return SIZE_MAX;
}

static void test_slots(void **state)
{
	static uint16_t slot_of[SLOT_TOTAL];
	unsigned int value[SHAPE_LABELS_MAX];
	size_t used = 0, seen = 0, i;
	enum shape shape;

	memset(slot_of, 0x55, sizeof(slot_of));
	shape_fill_slots(slot_of);
	for (shape = 0; shape < SHAPE_MAX; shape++) {
		for (i = 0; i < shape_slots(shape); i++) {
			shape_combination(shape, i, value);
			assert_true(shape_can_occur(shape, value));
			assert_true(raw_index(shape, value) < SLOT_TOTAL);
			assert_int_equal(slot_of[raw_index(shape, value)], i);
			used++;
		}
	}
	for (i = 0; i < SLOT_TOTAL; i++)
		seen += slot_of[i] != SLOT_NONE;
	assert_int_equal(seen, used);
}

/* By hand from the methods of each backing: a table that grew by itself is an error. */
static void test_counts(void **state)
{
	/* Methods that complete faults: 10+8+9+7+5+3+2+2+2+4+8. */
	assert_int_equal(shape_slots(SHAPE_FAULT), 60 * 3);
	assert_int_equal(shape_slots(SHAPE_COMPLETED), 60 * 3 * 2);
	/* That install PTEs: 5+4+4+2+0+2+1+1+1+2+4; and 4 backings populated by mmap. */
	assert_int_equal(shape_slots(SHAPE_INSTALL), 26 * 3 + 4);
	assert_int_equal(shape_slots(SHAPE_ATTEMPT), 11 * 3);
	assert_int_equal(shape_slots(SHAPE_REFUSED), 11 * 5 + 1);
	assert_int_equal(shape_slots(SHAPE_OUTCOME), 11 * 4);
	assert_int_equal(shape_slots(SHAPE_BACKING), 11);
	assert_int_equal(shape_slots(SHAPE_NONE), 1);
}

static bool occurs(enum shape shape, unsigned int a, unsigned int b, unsigned int c)
{
	return shape_can_occur(shape, (unsigned int[]){ a, b, c, KIND_MINOR });
}

static void test_can_occur(void **state)
{
	assert_true(occurs(SHAPE_INSTALL, BACKING_BPF_ARRAY, METHOD_EAGER, TRIGGER_MMAP));
	assert_false(occurs(SHAPE_INSTALL, BACKING_BPF_ARRAY, METHOD_EAGER, TRIGGER_ACCESS));
	assert_false(occurs(SHAPE_INSTALL, BACKING_BPF_ARRAY, METHOD_PER_PAGE, TRIGGER_MMAP));
	assert_false(occurs(SHAPE_INSTALL, BACKING_ANON, METHOD_EAGER, TRIGGER_MMAP));
	assert_false(occurs(SHAPE_INSTALL, BACKING_ANON, METHOD_FAULT_AROUND, TRIGGER_ACCESS));
	assert_false(occurs(SHAPE_INSTALL, BACKING_FILE, METHOD_PMD, TRIGGER_ACCESS));
	assert_false(occurs(SHAPE_INSTALL, BACKING_HUGETLB, METHOD_COW, TRIGGER_ACCESS));
	assert_false(occurs(SHAPE_INSTALL, BACKING_ANON, METHOD_REUSE, TRIGGER_ACCESS));
	assert_true(occurs(SHAPE_INSTALL, BACKING_ANON, METHOD_SWAP_IN, TRIGGER_GUP));
	assert_true(occurs(SHAPE_FAULT, BACKING_SHMEM, METHOD_UFFD, TRIGGER_ACCESS));
	assert_false(occurs(SHAPE_INSTALL, BACKING_FILE, METHOD_NONE, TRIGGER_ACCESS));
	assert_true(occurs(SHAPE_COMPLETED, BACKING_FILE, METHOD_PMD, TRIGGER_POPULATE));
	assert_true(occurs(SHAPE_FAULT, BACKING_FILE, METHOD_NONE, TRIGGER_GUP));
	assert_false(occurs(SHAPE_FAULT, BACKING_BPF_ARRAY, METHOD_EAGER, TRIGGER_MMAP));
	assert_false(occurs(SHAPE_ATTEMPT, BACKING_FILE, TRIGGER_MMAP, 0));
	assert_true(occurs(SHAPE_REFUSED, BACKING_OTHER, REASON_NO_VMA, 0));
	assert_false(occurs(SHAPE_REFUSED, BACKING_FILE, REASON_NO_VMA, 0));
	assert_false(occurs(SHAPE_REFUSED, BACKING_FILE, REASON_RETRIED, 0));
	assert_true(occurs(SHAPE_REASON, REASON_RETRIED, 0, 0));
	assert_false(occurs(SHAPE_REASON, REASON_OTHER, 0, 0));
	assert_false(occurs(SHAPE_BACKING, BACKING_MAX, 0, 0));
	assert_false(occurs(SHAPE_REFUSED, BACKING_FILE, REASON_MAX, 0));
}

static void test_labels(void **state)
{
	const enum label *label;
	enum shape shape;
	size_t i, l, n;

	for (l = 0; l < LABEL_MAX; l++)
		assert_true(strlen(label_name(l)) > 0);
	for (l = 0; l < LABEL_MAX; l++) {
		assert_true(!label_values(l) == (l >= LABEL_OPEN));
		assert_int_equal(label_by_name(label_name(l)), l);
	}
	assert_int_equal(label_by_name("none of them"), LABEL_MAX);
	assert_string_equal(label_values(LABEL_BACKING)[BACKING_GUEST_MEMFD], "guest_memfd");
	assert_null(label_values(LABEL_BACKING)[BACKING_MAX]);
	assert_string_equal(label_values(LABEL_METHOD)[METHOD_EAGER], "eager");
	assert_string_equal(label_values(LABEL_REASON)[REASON_NO_MAP_PAGES], "no_map_pages");
	for (shape = 0; shape < SHAPE_MAX; shape++) {
		n = shape_labels(shape, &label);
		assert_true(n <= SHAPE_LABELS_MAX && (n || shape == SHAPE_NONE));
		for (i = 0; i < n; i++)
			assert_non_null(label_values(label[i]));
	}
}

static void test_metrics(void **state)
{
	size_t i, counters = 0, batches = 0, times = 0;

	for (i = 0; i < METRIC_MAX; i++) {
		assert_int_equal(metrics[i].id, i);
		assert_ptr_equal(metric_by_name(metrics[i].name), &metrics[i]);
		assert_true(metrics[i].events != 0);
		assert_true(!(metrics[i].events >> EVENT_MAX));
		assert_true(strlen(metrics[i].help) > 0 && strlen(metrics[i].unit) > 0);
		if (metrics[i].kind == KIND_COUNTER)
			counters += shape_slots(metrics[i].shape);
		if (metrics[i].kind == KIND_TIME)
			times += shape_slots(metrics[i].shape);
		if (metrics[i].kind == KIND_BATCH && !METRIC_LANE(i))
			batches += shape_slots(metrics[i].shape);
	}
	assert_null(metric_by_name("ptes"));
	assert_true(counters <= COUNTERS_MAX);
	assert_true(batches <= PAIRS_MAX);
	assert_true(times <= TIMES_MAX);
	assert_int_equal(COUNTERS_MAX & (COUNTERS_MAX - 1), 0);
}

static void test_events(void **state)
{
	size_t i, essential = 0;

	for (i = 0; i < EVENT_MAX; i++) {
		assert_int_equal(events[i].id, i);
		assert_true(strlen(events[i].name) > 0);
		assert_true(events[i].point == POINT_NONE || strlen(events[i].symbols) > 0);
		essential += events[i].need == NEED_ESSENTIAL;
	}
	assert_true(essential >= 2);
	assert_int_equal(events[EVENT_FAULT_ENTRY].need, NEED_ESSENTIAL);
	assert_int_equal(events[EVENT_FAULT_EXIT].need, NEED_ESSENTIAL);
}

static void test_machine(void **state)
{
	struct machine m;

	/* MMSCOPE_VM is believed only when it is one of the names. */
	setenv("MMSCOPE_VM", "icount", 1);
	machine_read(&m);
	assert_string_equal(m.virt, "icount");
	setenv("MMSCOPE_VM", "tcg kvm", 1);
	machine_read(&m);
	assert_string_not_equal(m.virt, "tcg kvm");
	unsetenv("MMSCOPE_VM");
	assert_true(strlen(m.release) > 0 && strlen(m.arch) > 0);
	assert_true(m.page_size >= 4096 && !(m.page_size & (m.page_size - 1)));
	assert_true(m.memory_kib > 0);
	assert_true(m.cpus_online >= 1 && m.cpus_possible >= m.cpus_online);
	assert_int_equal(strlen(m.boot_id), 36);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots),	cmocka_unit_test(test_counts),
		cmocka_unit_test(test_can_occur), cmocka_unit_test(test_labels),
		cmocka_unit_test(test_metrics), cmocka_unit_test(test_events),
		cmocka_unit_test(test_machine),
	};

	return cmocka_run_group_tests_name("tables", tests, NULL, NULL);
}
