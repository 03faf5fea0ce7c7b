// SPDX-License-Identifier: GPL-2.0-only
/* Names of what was executed in user space. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "session/elf_symbols.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
