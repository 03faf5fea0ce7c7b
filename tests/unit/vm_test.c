// SPDX-License-Identifier: GPL-2.0-only
/* The parts of vm that need no guest: kernel log, pins, initramfs. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "vm/console.h"
#include "vm/cpio.h"
#include "vm/host.h"
#include "vm/kernel.h"
#include "vm/proto.h"
#include "vm/splat.h"

static void splats(void **state)
{
	static const struct {
		enum splat splat;
		const char *line;
	} rows[] = {
		{ SPLAT_PANIC, "[    2.171785] Kernel panic - not syncing: VFS: Unable to mount" },
		{ SPLAT_CUT, "[   12.000001] ------------[ cut here ]------------" },
		{ SPLAT_REPORT, "[   12.000001][  T123] WARNING: CPU: 0 PID: 1 at mm/gup.c:12 f+0x1/0x2" },
		{ SPLAT_REPORT, "[    1.5] WARNING: mm/gup.c:12 at f+0x1/0x2, CPU#1: sh/12" },
		{ SPLAT_REPORT, "[    1.5] WARNING: possible circular locking dependency detected" },
		{ SPLAT_REPORT, "[    1.5] WARNING: inconsistent lock state" },
		{ SPLAT_REPORT, "WARNING: suspicious RCU usage" },
		{ SPLAT_REPORT, "[    1.5][   C1] BUG: KASAN: slab-out-of-bounds in f+0x1/0x2" },
		{ SPLAT_REPORT, "[    1.5] BUG: Bad page state in process sh  pfn:12345" },
		{ SPLAT_REPORT, "[    1.5] BUG: unable to handle page fault for address: 0" },
		{ SPLAT_REPORT, "[    1.5] BUG kmalloc-64 (Not tainted): Redzone overwritten" },
		{ SPLAT_REPORT, "[    1.5] kernel BUG at mm/slub.c:1!" },
		{ SPLAT_REPORT, "[    1.5] Oops: general protection fault, probably for" },
		{ SPLAT_REPORT, "[    1.5] UBSAN: array-index-out-of-bounds in mm/x.c:1:2" },
		{ SPLAT_STALL, "[   30.5] watchdog: BUG: soft lockup - CPU#0 stuck for 23s!" },
		{ SPLAT_STALL, "[   30.5] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:" },
		{ SPLAT_STALL, "[   30.5] INFO: task sh:12 blocked for more than 120 seconds." },
		{ SPLAT_OOM, "[    3.5] Out of memory: Killed process 101 (tail) total-vm:1kB" },
		/* What boots and runs without fault says as well. */
		{ SPLAT_NONE, "[    0.000000] Command line: console=ttyS0 panic=-1 oops=panic" },
		{ SPLAT_NONE, "[    0.035495] Kernel command line: panic_on_warn BUG: WARNING: CPU: " },
		{ SPLAT_NONE, "[    0.1] Spectre V2 : WARNING: Unprivileged eBPF is enabled" },
		{ SPLAT_NONE, "[    0.1] debug: unmapping init [mem 0x0-0x1]" },
		{ SPLAT_NONE, "[    0.1] DEBUG_LOCKS_WARN is off, BUGs welcome" },
		{ SPLAT_NONE, "[    0.1] WARNING: this is an unsupported configuration" },
		{ SPLAT_NONE, "[    3.5] Memory cgroup out of memory: Killed process 1 (a)" },
		{ SPLAT_NONE, "[    3.5] sh[12]: segfault at 0 ip 0 sp 0 error 4" },
		{ SPLAT_NONE, "[    3.5] traps: a[1] general protection fault ip:1 sp:2" },
		{ SPLAT_NONE, "[    0.1] rcu: \tRCU CPU stall warnings timeout set to 21" },
		{ SPLAT_NONE, "[    0.1] rcu: Hierarchical RCU implementation." },
		{ SPLAT_NONE, "" },
		{ SPLAT_NONE, "[" },
		{ SPLAT_NONE, "[  ] BUG" },
	};
	const char *message;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (splat_classify(rows[i].line, NULL) != rows[i].splat)
			fail_msg("%s: %d, not %d", rows[i].line,
				 splat_classify(rows[i].line, NULL), rows[i].splat);
	splat_classify("[    1.5][   C1] BUG: x", &message);
	assert_string_equal(message, "BUG: x");
}

static void feed(struct console *c, const char *s)
{
	console_feed(c, s, strlen(s));
}

static void console(void **state)
{
	struct console *c = console_new();
	char path[] = "/tmp/mmscope-console.XXXXXX", got[64] = "";
	FILE *f;
	int fd;

	feed(c, "[    1.0] hello\r\n[    2.0] ------------[ cut he");
	assert_int_equal(console_worst(c), SPLAT_NONE);
	assert_string_equal(console_latest(c), "hello");
	/* Lines in pieces; a report that only its first line gives away. */
	feed(c, "re ]------------\n[    2.1] something never seen before at mm/x.c\n");
	assert_int_equal(console_worst(c), SPLAT_CUT);
	assert_string_equal(console_report(c), "something never seen before at mm/x.c");
	feed(c, "[    2.2] BUG: KASAN: first\n[    2.3] BUG: second\n");
	assert_string_equal(console_report(c), "BUG: KASAN: first");
	feed(c, "[    3.0] Kernel panic - not syncing: last\n");
	assert_int_equal(console_worst(c), SPLAT_PANIC);
	assert_string_equal(console_report(c), "Kernel panic - not syncing: last");
	assert_false(console_ended(c));
	feed(c, "[    4.0] not " END_MARKER "\n");
	assert_false(console_ended(c));
	feed(c, "[    4.0] " END_MARKER "\n");
	assert_true(console_ended(c));

	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	free(console_save(c, path, "x"));
	f = fopen(path, "r");
	assert_non_null(fgets(got, sizeof(got), f));
	fclose(f);
	unlink(path);
	assert_string_equal(got, "[    1.0] hello\r\n");
	assert_null(console_save(c, "/nonexistent/x", "x"));
	console_free(c);
}

/* A log without end: the beginning and the end are kept. */
static void console_flood(void **state)
{
	struct console *c = console_new();
	static char block[1 << 20];
	char path[] = "/tmp/mmscope-console.XXXXXX", head[6] = "", tail[6] = "";
	struct stat st;
	FILE *f;
	int i;

	memset(block, 'x', sizeof(block));
	block[sizeof(block) - 1] = '\n';
	feed(c, "first\n");
	for (i = 0; i < 100; i++)
		console_feed(c, block, sizeof(block));
	feed(c, "last\n");
	close(mkstemp(path));
	free(console_save(c, path, "x"));
	f = fopen(path, "r");
	fstat(fileno(f), &st);
	assert_in_range(st.st_size, 16 << 20, 34 << 20);
	assert_int_equal(fread(head, 1, 5, f), 5);
	fseek(f, -5, SEEK_END);
	assert_int_equal(fread(tail, 1, 5, f), 5);
	fclose(f);
	unlink(path);
	assert_string_equal(head, "first");
	assert_string_equal(tail, "last\n");
	console_free(c);
}

static void pins(void **state)
{
	const struct pin *pin;
	size_t i;

	for (i = 0; (pin = pin_get(i)); i++) {
		size_t n = strlen(pin->series);

		assert_int_equal(strncmp(pin->version, pin->series, n), 0);
		assert_int_equal(pin->version[n], '.');
		assert_non_null(strstr(pin->release, "-cloud-amd64"));
		assert_int_equal(strncmp(pin->release, pin->series, n), 0);
	}
	assert_int_equal(i, 4);
	/* The source is none of them, and of one of their versions. */
	assert_string_equal(pin_source()->version, pin_get(2)->version);
	assert_non_null(strstr(pin_source()->release, pin_get(2)->series));
	assert_true(kernel_is_built("vanilla") && kernel_is_built("patched:x@2+debug"));
	assert_false(kernel_is_built("patch") || kernel_is_built("vanillas"));
}

static void archive(void **state)
{
	struct archive *ar = archive_new();
	char got[8192], *p;
	ssize_t n;
	int fd;

	assert_null(archive_find(ar, "/bin"));
	assert_int_equal(archive_link(ar, "/bin", "usr/bin"), 0);
	assert_string_equal(archive_find(ar, "/bin"), "usr/bin");
	assert_int_equal(archive_data(ar, "/a/b/c", 0644, "12345", 5), 0);
	/* The first one counts, and every parent is there. */
	assert_int_equal(archive_data(ar, "/a/b/c", 0600, "other", 5), 0);
	assert_string_equal(archive_find(ar, "/a"), "");
	assert_string_equal(archive_find(ar, "/a/b"), "");
	fd = archive_finish(ar);
	assert_true(fd >= 0);
	n = pread(fd, got, sizeof(got), 0);
	assert_in_range(n, 500, sizeof(got));
	assert_int_equal(n % 4, 0);
	assert_memory_equal(got, "070701", 6);
	assert_null(memmem(got, n, "other", 5));
	/* Name and data start at multiples of 4. */
	p = memmem(got, n, "12345", 5);
	assert_non_null(p);
	assert_int_equal((p - got) % 4, 0);
	assert_non_null(memmem(got, n, "a/b/c", 6));
	assert_non_null(memmem(got, n, "TRAILER!!!", 11));
	archive_free(ar);
}

/* A child ignores a hang-up if we were told to (nohup), and no other signal for that. */
static void hang_up(void **state)
{
	char *hup[] = { "sh", "-c", "kill -HUP $$; echo lives", NULL };
	char *term[] = { "sh", "-c", "kill -TERM $$; echo lives", NULL }, *out;

	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	assert_int_equal(run_program(hup, NULL, 0, &out, NULL, NULL, NULL, NULL), 0);
	assert_string_equal(out, "lives\n");
	free(out);
	assert_int_equal(run_program(term, NULL, 0, NULL, NULL, NULL, NULL, NULL), 128 + SIGTERM);
	signal(SIGHUP, SIG_DFL);
	assert_int_equal(run_program(hup, NULL, 0, NULL, NULL, NULL, NULL, NULL), 128 + SIGHUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splats), cmocka_unit_test(console),
		cmocka_unit_test(console_flood), cmocka_unit_test(pins),
		cmocka_unit_test(archive), cmocka_unit_test(hang_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
