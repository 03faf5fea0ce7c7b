// SPDX-License-Identifier: GPL-2.0-only
/* Names of what was executed in user space. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "session/elf_symbols.h"
#include "session/images.h"

/* Its own: what a mapping of it is told as, and where a function of it is. */
static void functions_of_a_file(void **state)
{
	uint64_t start, end, offset = 0, at = (uintptr_t)functions_of_a_file;
	struct file_id id, other;
	struct elf_symbols *s;
	char line[4200], path[4096];
	FILE *f = fopen("/proc/self/maps", "r");

	assert_non_null(f);
	do {
		assert_non_null(fgets(line, sizeof(line), f));
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %x:%x %" SCNu64 " %4095s",
			   &start, &end, &offset, &id.major, &id.minor, &id.inode, path) < 7)
			start = end = 0;
	} while (at < start || at >= end);
	fclose(f);
	offset += at - start;
	s = elf_symbols_read(path, &id);
	assert_non_null(s);
	assert_string_equal(elf_symbols_name(s, offset, UINT64_MAX), "functions_of_a_file");
	/* It was written since; code at no function's place; nothing of the file. */
	assert_null(elf_symbols_name(s, offset, 1));
	assert_null(elf_symbols_name(s, 0, UINT64_MAX));
	assert_null(elf_symbols_name(s, UINT64_MAX / 2, UINT64_MAX));
	elf_symbols_free(s);
	elf_symbols_free(NULL);

	other = id;
	other.inode++;
	assert_null(elf_symbols_read(path, &other));
	other = id;
	other.minor++;
	assert_null(elf_symbols_read(path, &other));
	assert_null(elf_symbols_read("/proc/self", &id));
	assert_null(elf_symbols_read("/proc/self/maps", &id));
	assert_null(elf_symbols_read("/nowhere", &id));
}

/* ---- what the kernel tells, as it does ---- */

struct told {
	struct perf_event_header header;
	uint32_t pid, other, tid, ptid;
};

static void tell_task(struct images *im, uint32_t type, uint64_t time, uint32_t pid,
		      uint32_t parent)
{
	struct told t = { { type, 0, sizeof(t) }, pid, parent, pid, parent };
	struct ring_record record = { time, &t.header };

	if (type == PERF_RECORD_COMM)
		t.header.misc = PERF_RECORD_MISC_COMM_EXEC;
	images_take(im, &record);
}

#define EXEC(time, pid)			tell_task(im, PERF_RECORD_COMM, time, pid, 0)
#define FORK(time, pid, parent)		tell_task(im, PERF_RECORD_FORK, time, pid, parent)

/* Of one page, at no offset of a file that is nowhere; inode 0: of none. */
static void tell_map(struct images *im, uint64_t time, uint32_t pid, uint64_t start,
		     uint64_t inode, const char *name)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		uint64_t start, size, offset;
		uint32_t major, minor;
		uint64_t inode, generation;
		uint32_t prot, flags;
		char name[32];
		uint64_t time;
	} t = { { PERF_RECORD_MMAP2, 0, sizeof(t) }, pid, pid, start, 0x1000, 0, 1, 2, inode };
	struct ring_record record = { time, &t.header };

	strcpy(t.name, name);
	images_take(im, &record);
}

#define MAP(time, pid, start, name)	tell_map(im, time, pid, start, strlen(name), name)

static void expect_name(struct images *im, uint64_t time, uint32_t pid, uint64_t address,
			const char *want)
{
	struct lock_stack row = { .ready = time, .trace = { .pid = pid, .frame = { address } } };
	char text[64];

	assert_false(images_name(im, &row, 0, text, sizeof(text)));
	assert_string_equal(text, want);
}

#define IS(time, pid, address, want)	expect_name(im, time, pid, address, want)

static void programs_and_processes(void **state)
{
	struct images *im = images_new(-1, 0);
	struct lock_stack row = { .ready = 15, .trace = { .pid = 7, .frame = { 1, 0x2000 } } };
	char text[64];

	assert_non_null(im);
	EXEC(10, 7);
	MAP(11, 7, 0x1000, "/no/one");
	MAP(12, 7, 0x2000, "/no/second");
	IS(15, 7, 0x1010, "[one+0x10]");
	IS(15, 7, 0x2fff, "[second+0xfff]");
	IS(15, 7, 0x3000, "[unknown]");
	IS(15, 8, 0x1010, "[unknown]");
	IS(9, 7, 0x1010, "[unknown]");
	/* Behind a call that was the last thing of what is before. */
	assert_false(images_name(im, &row, 1, text, sizeof(text)));
	assert_string_equal(text, "[one+0x1000]");

	/* A child has the same, until it is another program; a thread is no process. */
	FORK(20, 8, 7);
	FORK(21, 7, 7);
	IS(22, 8, 0x1010, "[one+0x10]");
	IS(19, 8, 0x1010, "[unknown]");
	EXEC(23, 8);
	MAP(24, 8, 0x1000, "/no/other");
	IS(22, 8, 0x1010, "[one+0x10]");
	IS(25, 8, 0x1010, "[other+0x10]");
	IS(25, 8, 0x2010, "[unknown]");
	IS(25, 7, 0x2010, "[second+0x10]");

	/* Its number is used again. */
	FORK(30, 7, 8);
	IS(29, 7, 0x2010, "[second+0x10]");
	IS(31, 7, 0x1010, "[other+0x10]");
	/* What comes late is of what was before. */
	MAP(29, 7, 0x5000, "/no/late");
	IS(31, 7, 0x5000, "[unknown]");
	images_free(im);
}

static void mappings_that_change(void **state)
{
	struct images *im = images_new(-1, 0);

	assert_non_null(im);
	EXEC(10, 7);
	MAP(11, 7, 0x1000, "/no/one");
	/* A change of protection tells the same once more. */
	MAP(12, 7, 0x1000, "/no/one");
	IS(11, 7, 0x1010, "[one+0x10]");
	/* What was seen before may have been seen again since: it is either. */
	MAP(20, 7, 0x1000, "/no/second");
	IS(15, 7, 0x1010, "[unknown]");
	IS(21, 7, 0x1010, "[second+0x10]");
	/* Where only the second of two was ever seen. */
	IS(25, 7, 0x1010, "[second+0x10]");

	tell_map(im, 30, 7, 0x6000, 0, "//anon");
	tell_map(im, 31, 7, 0x7000, 0, "[vdso]");
	IS(32, 7, 0x6010, "[anon]");
	IS(32, 7, 0x7010, "[vdso+0x10]");
	/* Nobody's number: of who is in no namespace of ours. */
	EXEC(10, 0);
	MAP(11, 0, 0x1000, "/no/one");
	IS(12, 0, 0x1010, "[unknown]");
	images_free(im);
	images_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_a_file),
		cmocka_unit_test(programs_and_processes),
		cmocka_unit_test(mappings_that_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
