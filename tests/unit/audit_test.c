// SPDX-License-Identifier: GPL-2.0-only
/* vm_operations_structs: what follows from their methods, their order, and how they print. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/audit.h"
#include "render/audit.h"
#include "session/kallsyms.h"

#define M(...)	((const char *const[VM_METHOD_MAX]){ __VA_ARGS__ })
#define HAS(id)	[VM_##id] = "f"

static void test_classes(void **state)
{
	static const struct {
		const char *name;
		const char *const method[VM_METHOD_MAX];
		enum vm_class class;
	} rows[] = {
		{ "a", { HAS(FAULT) }, CLASS_SINGLE },
		{ "a", { HAS(FAULT), HAS(HUGE_FAULT), HAS(PAGE_MKWRITE) }, CLASS_SINGLE },
		{ "a", { HAS(FAULT), HAS(MAP_PAGES) }, CLASS_BATCHED },
		{ "a", { HAS(MAP_PAGES) }, CLASS_BATCHED },
		{ "a", { HAS(MAP_PAGES), HAS(PFN_MKWRITE) }, CLASS_BATCHED },
		{ "a", { HAS(PAGE_MKWRITE) }, CLASS_NOTIFIED },
		{ "a", { HAS(PFN_MKWRITE) }, CLASS_NOTIFIED },
		{ "a", { HAS(ACCESS) }, CLASS_NO_FAULT },
		{ "a", { HAS(HUGE_FAULT) }, CLASS_NO_FAULT },
		{ "a", { NULL }, CLASS_NO_FAULT },
		{ "hugetlb_vm_ops", { HAS(FAULT) }, CLASS_HUGETLB },
	};
	struct audit a = { 0 };
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct vm_ops *o = audit_add(&a, rows[i].name, NULL, rows[i].method);

		assert_non_null(o);
		assert_int_equal(o->class, rows[i].class);
	}
	assert_int_equal(audit_count(&a, CLASS_SINGLE), 2);
	assert_int_equal(audit_count(&a, CLASS_BATCHED), 3);
	audit_free(&a);
	assert_int_equal(a.n, 0);
	audit_sort(&a);
}

static void sample(struct audit *a)
{
	*a = (struct audit){ .release = "7.3.4", .vma_lock = true, .looked_at = 2586,
			     .unreadable = 2 };
	assert_non_null(audit_add(a, "shmem_vm_ops", NULL,
				  M([VM_FAULT] = "shmem_fault",
				    [VM_MAP_PAGES] = "filemap_map_pages")));
	assert_non_null(audit_add(a, "vm_ops", "mod",
				  M([VM_FAULT] = "f", [VM_ACCESS] = "generic_access_phys")));
	assert_non_null(audit_add(a, "perf_mmap_vmops", NULL, M([VM_PFN_MKWRITE] = "p")));
	assert_non_null(audit_add(a, "shm_vm_ops", NULL, M([VM_FAULT] = "shm_fault")));
	audit_add(a, "gate_vma_ops", NULL, M(NULL))->by_name = true;
	assert_int_equal(audit_rule_out(a, "tcp_vm_ops", NULL, "all members are NULL"), 0);
	assert_int_equal(audit_rule_out(a, "x_vmops", "mod", "its memory cannot be read"), 0);
	audit_sort(a);
}

static void test_order(void **state)
{
	static const char *const order[] = { "shm_vm_ops", "vm_ops", "perf_mmap_vmops",
					     "shmem_vm_ops", "gate_vma_ops" };
	struct audit a;
	size_t i;

	sample(&a);
	assert_int_equal(a.n, 5);
	for (i = 0; i < a.n; i++)
		assert_string_equal(a.ops[i].name, order[i]);
	audit_free(&a);
}

static void golden(const char *name, const char *got)
{
	const char *tree = getenv("MMSCOPE_TREE"), *update = getenv("UPDATE_GOLDEN");
	char path[512], want[8192];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/golden/%s", tree ?: ".", name);
	f = fopen(path, update && *update ? "w" : "r");
	assert_non_null(f);
	if (update && *update) {
		fputs(got, f);
		fclose(f);
		return;
	}
	n = fread(want, 1, sizeof(want) - 1, f);
	fclose(f);
	want[n] = 0;
	assert_string_equal(got, want);
}

static void test_print(void **state)
{
	struct view view = { .width = TEXT_WIDTH };
	char *text = NULL;
	struct audit a;
	size_t size;
	FILE *f;

	sample(&a);
	f = open_memstream(&text, &size);
	assert_int_equal(audit_text(f, &a, &view), 0);
	fclose(f);
	golden("audit/text.txt", text);
	free(text);

	f = open_memstream(&text, &size);
	assert_int_equal(audit_json(f, &a), 0);
	fclose(f);
	golden("audit/json.json", text);
	free(text);

	/* Without the lock there is nothing to be refused under. */
	a.vma_lock = false;
	f = open_memstream(&text, &size);
	assert_int_equal(audit_text(f, &a, &view), 0);
	fclose(f);
	assert_null(strstr(text, "refused"));
	free(text);
	audit_free(&a);
}

static void test_full_device(void **state)
{
	struct view view = { .width = TEXT_WIDTH };
	struct audit a;
	FILE *f;

	sample(&a);
	f = fopen("/dev/full", "w");
	assert_int_equal(audit_text(f, &a, &view), -ENOSPC);
	fclose(f);
	f = fopen("/dev/full", "w");
	assert_int_equal(audit_json(f, &a), -ENOSPC);
	fclose(f);
	audit_free(&a);
}

static void test_symbols(void **state)
{
	static const char text[] =
		"ffffffff81000020 t later\n"
		"ffffffff81000000 T first\n"
		"garbage\n"
		"ffffffff81000000 t alias\n"
		"\n"
		"ffffffffc0000000 d vm_ops\t[mod]\n"
		"ffffffffc0000040 d last [other]";
	char path[] = "/tmp/symbols.XXXXXX";
	const struct symbol *s;
	struct symbols all;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	assert_int_equal(symbols_read(&all, path), 0);
	assert_int_equal(all.n, 5);
	s = symbols_at(&all, 0xffffffff81000000);
	assert_non_null(s);
	assert_string_equal(s[0].name, "alias");
	assert_string_equal(s[1].name, "first");
	assert_int_equal(s[1].type, 'T');
	assert_null(s[1].module);
	assert_null(symbols_at(&all, 0xffffffff81000001));
	assert_null(symbols_at(&all, UINT64_MAX));
	s = symbols_at(&all, 0xffffffffc0000040);
	assert_string_equal(s->name, "last");
	assert_string_equal(s->module, "other");
	assert_string_equal(s[-1].module, "mod");
	symbols_free(&all);

	assert_int_equal(ftruncate(fd, 0), 0);
	close(fd);
	assert_int_equal(symbols_read(&all, path), -1);
	assert_int_equal(errno, EINVAL);
	symbols_free(&all);
	unlink(path);
	assert_int_equal(symbols_read(&all, path), -1);
	assert_int_equal(errno, ENOENT);
	symbols_free(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_print),
		cmocka_unit_test(test_full_device),
		cmocka_unit_test(test_symbols),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
