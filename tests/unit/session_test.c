// SPDX-License-Identifier: GPL-2.0-only
/* What a session does without BPF: control words, symbol files, reasons. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "session/control.h"
#include "session/kallsyms.h"
#include "session/lock_stacks.h"
#include "session/observe.h"
#include "session/plan.h"

/* ---- stderr into a file, and what came ---- */

static int real_stderr;
static FILE *captured;

static void capture(void)
{
	fflush(stderr);
	captured = tmpfile();
	assert_non_null(captured);
	real_stderr = dup(STDERR_FILENO);
	dup2(fileno(captured), STDERR_FILENO);
}

/* The number of lines since capture(); the text if it is wanted. */
static unsigned int release(char *text, size_t size)
{
	unsigned int lines = 0;
	char buffer[4096];
	size_t n;

	dup2(real_stderr, STDERR_FILENO);
	close(real_stderr);
	rewind(captured);
	n = fread(buffer, 1, sizeof(buffer) - 1, captured);
	fclose(captured);
	buffer[n] = 0;
	if (text)
		snprintf(text, size, "%.*s", (int)size - 1, buffer);
	while (n--)
		lines += buffer[n] == '\n';
	return lines;
}

/* ---- control ---- */

struct channel {
	struct control c;
	int to, from;		/* the peer's ends */
};

static void channel_open(struct channel *ch)
{
	int in[2], ack[2];

	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(ack), 0);
	control_init(&ch->c, in[0], ack[1]);
	ch->to = in[1];
	ch->from = ack[0];
}

static void channel_close(struct channel *ch)
{
	control_close(&ch->c);
	close(ch->to);
	close(ch->from);
}

static void say(struct channel *ch, const char *words, size_t len)
{
	assert_int_equal(write(ch->to, words, len), len);
}

#define SAY(ch, words)	say(ch, words, sizeof(words) - 1)

static void words_in_any_pieces(void **state)
{
	static const char text[] = "enable\ndisable\nping\n";
	struct channel ch;
	size_t i, actions = 0;

	channel_open(&ch);
	assert_int_equal(control_next(&ch.c), CONTROL_WAIT);
	for (i = 0; i < sizeof(text) - 1; i++) {
		say(&ch, text + i, 1);
		if (text[i] != '\n')
			assert_int_equal(control_next(&ch.c), CONTROL_WAIT);
		else if (++actions == 1)
			assert_int_equal(control_next(&ch.c), CONTROL_RESTART);
		else if (actions == 2)
			assert_int_equal(control_next(&ch.c), CONTROL_OFF);
		else
			assert_int_equal(control_next(&ch.c), CONTROL_NOTHING);
	}
	assert_int_equal(actions, 3);
	channel_close(&ch);
}

static void several_words_and_zero_bytes(void **state)
{
	struct channel ch;

	channel_open(&ch);
	/* Zero bytes end a word as well, alone or after the line feed; empty ones are none. */
	SAY(&ch, "enable\0disable\n\0\n\nenable\n\0disable\0");
	assert_int_equal(control_next(&ch.c), CONTROL_RESTART);
	assert_int_equal(control_next(&ch.c), CONTROL_OFF);
	assert_int_equal(control_next(&ch.c), CONTROL_ON);
	assert_int_equal(control_next(&ch.c), CONTROL_OFF);
	assert_int_equal(control_next(&ch.c), CONTROL_WAIT);
	channel_close(&ch);
}

static void regions_overlap(void **state)
{
	struct channel ch;

	channel_open(&ch);
	SAY(&ch, "enable\nenable\nenable\ndisable\ndisable\ndisable\n");
	assert_int_equal(control_next(&ch.c), CONTROL_RESTART);
	assert_int_equal(control_next(&ch.c), CONTROL_NOTHING);
	assert_int_equal(control_next(&ch.c), CONTROL_NOTHING);
	assert_int_equal(control_next(&ch.c), CONTROL_NOTHING);
	assert_int_equal(control_next(&ch.c), CONTROL_NOTHING);
	assert_int_equal(control_next(&ch.c), CONTROL_OFF);
	/* One too many does no harm: the next region opens. */
	SAY(&ch, "disable\nenable\n");
	assert_int_equal(control_next(&ch.c), CONTROL_OFF);
	assert_int_equal(control_next(&ch.c), CONTROL_ON);
	channel_close(&ch);
}

/* "disable" first means what was counted before is kept: nothing to forget later. */
static void disable_comes_first(void **state)
{
	struct channel ch;

	channel_open(&ch);
	SAY(&ch, "disable\nenable\n");
	assert_int_equal(control_next(&ch.c), CONTROL_OFF);
	assert_int_equal(control_next(&ch.c), CONTROL_ON);
	channel_close(&ch);
}

static void unknown_and_long_words(void **state)
{
	struct channel ch;
	char text[256], lengthy[5001];

	channel_open(&ch);
	SAY(&ch, "enables\n");
	capture();
	assert_int_equal(control_next(&ch.c), CONTROL_NOTHING);
	assert_int_equal(release(text, sizeof(text)), 1);
	assert_non_null(strstr(text, "'enables'"));

	memset(lengthy, 'e', sizeof(lengthy));
	lengthy[sizeof(lengthy) - 1] = '\n';
	say(&ch, lengthy, sizeof(lengthy));
	SAY(&ch, "enable\n");
	capture();
	assert_int_equal(control_next(&ch.c), CONTROL_NOTHING);
	assert_int_equal(release(NULL, 0), 1);
	assert_int_equal(control_next(&ch.c), CONTROL_RESTART);

	/* A forged second line stays one line. */
	SAY(&ch, "\x1b[31m\rx\n");
	capture();
	assert_int_equal(control_next(&ch.c), CONTROL_NOTHING);
	assert_int_equal(release(text, sizeof(text)), 1);
	assert_null(strchr(text, '\x1b'));
	channel_close(&ch);
}

static void acknowledgements(void **state)
{
	struct channel ch;
	char answer[16];

	channel_open(&ch);
	control_ack(&ch.c);
	assert_int_equal(read(ch.from, answer, sizeof(answer)), 4);
	assert_memory_equal(answer, "ack\n", 4);
	/* A peer that is gone is no error, and does not kill us. */
	signal(SIGPIPE, SIG_IGN);
	close(ch.from);
	control_ack(&ch.c);
	assert_int_equal(ch.c.ack, -1);
	control_ack(&ch.c);
	ch.from = -1;
	channel_close(&ch);
}

static void acknowledgements_nobody_reads(void **state)
{
	struct channel ch;
	char page[4096] = { 0 };
	int flags;

	channel_open(&ch);
	flags = fcntl(ch.c.ack, F_GETFL);
	fcntl(ch.c.ack, F_SETFL, flags | O_NONBLOCK);
	while (write(ch.c.ack, page, sizeof(page)) > 0)
		;
	fcntl(ch.c.ack, F_SETFL, flags);
	capture();
	control_ack(&ch.c);	/* must not block */
	assert_int_equal(release(NULL, 0), 1);
	channel_close(&ch);
}

/* The flags of a descriptor that a shell shares with us are the shell's. */
static void flags_are_left_alone(void **state)
{
	struct channel ch;

	channel_open(&ch);
	SAY(&ch, "ping\n");
	assert_int_equal(control_next(&ch.c), CONTROL_NOTHING);
	assert_false(fcntl(ch.c.in, F_GETFL) & O_NONBLOCK);
	assert_false(fcntl(ch.c.ack, F_GETFL) & O_NONBLOCK);
	channel_close(&ch);
}

static void peer_leaves_within_a_word(void **state)
{
	struct channel ch;

	channel_open(&ch);
	SAY(&ch, "enable\nena");
	close(ch.to);
	assert_int_equal(control_next(&ch.c), CONTROL_RESTART);
	assert_int_equal(control_next(&ch.c), CONTROL_WAIT);
	assert_int_equal(ch.c.in, -1);
	assert_int_equal(control_next(&ch.c), CONTROL_WAIT);
	ch.to = -1;
	channel_close(&ch);
}

static void control_option_is_strict(void **state)
{
	static const char *const bad[] = { "", "fd:", "fd", "3", "fd:3,", "fd:,3", "fd:x", "fd:3 ",
					   "fifo:3", "fd:-1", "fd:0,1,2", "fd:4294967299", "FD:0" };
	char text[256], good[32];
	int control, ack, p[2];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		capture();
		assert_int_equal(control_option(bad[i], &control, &ack), -1);
		assert_int_equal(release(text, sizeof(text)), 1);
		/* The whole of what was given, not a rest of it. */
		snprintf(good, sizeof(good), "'%s'", bad[i]);
		assert_non_null(strstr(text, good));
	}

	assert_int_equal(pipe(p), 0);
	snprintf(good, sizeof(good), "fd:%d,%d", p[0], p[1]);
	assert_int_equal(control_option(good, &control, &ack), 0);
	assert_true(control == p[0] && ack == p[1]);
	snprintf(good, sizeof(good), "fd:%d", p[0]);
	assert_int_equal(control_option(good, &control, &ack), 0);
	assert_true(control == p[0] && ack == -1);

	/* The wrong way round, and closed. */
	snprintf(good, sizeof(good), "fd:%d,%d", p[1], p[0]);
	capture();
	assert_int_equal(control_option(good, &control, &ack), -1);
	assert_int_equal(release(text, sizeof(text)), 1);
	assert_non_null(strstr(text, "for reading"));
	snprintf(good, sizeof(good), "fd:%d,%d", p[0], p[1]);
	capture();	/* first: its files would take the number that is closed */
	close(p[1]);
	assert_int_equal(control_option(good, &control, &ack), -1);
	assert_int_equal(release(text, sizeof(text)), 1);
	assert_non_null(strstr(text, "not open"));
	close(p[0]);
}

/* ---- kallsyms ---- */

static char *write_file(const char *text, size_t len)
{
	static char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/session-test.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
	return path;
}

static int find(const char *text, size_t len, struct ksym *sym, size_t n)
{
	const char *path = write_file(text, len);
	int ret = kallsyms_find(path, sym, n);
	int e = errno;

	unlink(path);
	errno = e;
	return ret;
}

#define FIND(text, sym)	find(text, sizeof(text) - 1, sym, sizeof(sym) / sizeof(*(sym)))

static void plain_and_copies(void **state)
{
	struct ksym sym[] = { { "plain" }, { "clones" }, { "both" }, { "twice" }, { "cold" },
			      { "part" }, { "absent" }, { "prefix" } };
	struct ksym *k;

	assert_int_equal(FIND("ffffffff81000000 T plain\n"
			      "ffffffff81000010 t clones.isra.0\n"
			      "ffffffff81000020 t clones.constprop.1\n"
			      "ffffffff81000030 t both.part.0\n"
			      "ffffffff81000040 T both\n"
			      "ffffffff81000050 t twice\n"
			      "ffffffff81000060 t twice\t[module]\n"
			      "ffffffff81000070 T cold\n"
			      "ffffffff81000080 t cold.cold\n"
			      "ffffffff81000090 t part.part.0.cold\n"
			      "ffffffff810000a0 t prefixed\n"
			      "ffffffff810000b0 t .prefix\n"
			      "ffffffff810000c0 t prefi\n", sym), 0);
	k = ksym_get(sym, 8, "plain");
	assert_true(k->exact == 1 && k->clones == 0 && k->address == 0xffffffff81000000);
	k = ksym_get(sym, 8, "clones");
	assert_true(k->exact == 0 && k->clones == 2 && k->address == 0);
	assert_string_equal(k->clone, "clones.isra.0");
	k = ksym_get(sym, 8, "both");
	assert_true(k->exact == 1 && k->clones == 1);
	k = ksym_get(sym, 8, "twice");
	assert_true(k->exact == 2 && k->address == 0xffffffff81000050);
	k = ksym_get(sym, 8, "cold");
	assert_true(k->exact == 1 && k->clones == 0);
	k = ksym_get(sym, 8, "part");
	assert_true(k->exact == 0 && k->clones == 0);
	k = ksym_get(sym, 8, "absent");
	assert_true(k->exact == 0 && k->clones == 0);
	k = ksym_get(sym, 8, "prefix");
	assert_true(k->exact == 0 && k->clones == 0);
	assert_null(ksym_get(sym, 8, "nobody"));
}

static void damaged_lines_are_passed_over(void **state)
{
	struct ksym sym[] = { { "good" }, { "last" } };
	static const char binary[] = "\0\xff\n0 T good\n\0\0 T good\n";
	static char text[70000];
	size_t n;

	/* A name of 60000 characters, then binary data, then what is wanted. */
	n = sprintf(text, "ffffffff81000000 T ");
	memset(text + n, 'n', 60000);
	n += 60000;
	n += sprintf(text + n, ".good\n\n \nT good\nzz T good\nffffffff81000000\n"
			       "ffffffff81000000 T\nffffffff81000000 Tgood\n");
	memcpy(text + n, binary, sizeof(binary) - 1);
	n += sizeof(binary) - 1;
	n += sprintf(text + n, "\n00000010 T last");	/* no line feed at the end */
	assert_int_equal(find(text, n, sym, 2), 0);
	assert_int_equal(ksym_get(sym, 2, "good")->exact, 1);
	assert_int_equal(ksym_get(sym, 2, "last")->address, 0x10);
}

static void files_without_symbols(void **state)
{
	struct ksym sym[] = { { "good" } };

	assert_int_equal(FIND("", sym), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(FIND("what is this\nand this\n", sym), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(kallsyms_find("/nowhere/kallsyms", sym, 1), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(kallsyms_find("/tmp", sym, 1), -1);
	assert_int_equal(errno, EISDIR);
}

static void names_of_addresses(void **state)
{
	static const uint64_t address[] = { 0x20, 0, 0x99 };
	static const char text[] = "0 A zero\n0000000000000020 d ops\n20 d second\n30 d other\n";
	const char *path = write_file(text, sizeof(text) - 1);
	char *name[3] = { NULL };

	assert_int_equal(kallsyms_names(path, address, name, 3), 0);
	unlink(path);
	assert_string_equal(name[0], "ops");
	assert_null(name[1]);	/* hidden addresses are all 0: they name nobody */
	assert_null(name[2]);
	free(name[0]);
	assert_int_equal(kallsyms_names("/nowhere", address, name, 3), -1);
}

/* ---- reasons ---- */

#define ENOTSUPP	524	/* the kernel's own; no libc has a text for it */

static void refusals(void **state)
{
	static const struct {
		int error;
		unsigned int params;
		const char *says;
	} rows[] = {
		{ ENOTSUPP, 7, "7 arguments" }, { EINVAL, 8, "8 arguments" },
		{ ENOTSUP, 9, "9 arguments" }, { EINVAL, 6, "notrace" }, { EBUSY, 3, "notrace" },
		{ EPERM, 7, "no permission" }, { EACCES, 2, "no permission" },
		{ ENOTSUPP, 4, "no trampolines" }, { ENOMEM, 7, "Cannot allocate memory" },
	};
	char reason[96], small[8];
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		fentry_refusal(reason, sizeof(reason), rows[i].error, rows[i].params);
		assert_non_null(strstr(reason, rows[i].says));
		assert_null(strstr(reason, "524"));
	}
	fentry_refusal(small, sizeof(small), EINVAL, 6);
	assert_int_equal(strlen(small), sizeof(small) - 1);
}

static void expect_stack(const struct lock_trace *trace, const struct symbols *s, const char *want)
{
	struct stack_names names = { .s = s };
	char text[STACK_TEXT];

	stack_text(trace, &names, text, sizeof(text));
	assert_string_equal(text, want);
}

static void test_stacks(void **state)
{
	struct symbol sym[] = {
		{ 0x1000, "outer" }, { 0x2000, "bpf_inside" }, { 0x3000, "inner" },
		{ 0x4000, "slowpath" }, { 0x5000, "bpf_trampoline_1" },
		{ 0x6000, "bpf_prog_2" }, { 0x7000, "last" },
	};
	const struct symbols s = { sym, 7, NULL }, none = { NULL, 0, NULL };
	struct lock_trace t = { .class = CLASS_MMAP_LOCK, .mode = MODE_WRITE, .comm = "a;b c" };
	size_t i;

	/* Innermost first: the program and its trampoline, and what they interrupted. */
	t.frame[0] = 0x6010;
	t.frame[1] = 0x5010;
	t.frame[2] = 0x4005;
	t.frame[3] = 0x2010;
	/* A call that does not return is the last thing of its function. */
	t.frame[4] = 0x4000;
	t.frame[5] = 0x10;
	t.frame[6] = 0x1010;
	expect_stack(&t, &s, "a:b c;outer;[unknown];inner;bpf_inside;slowpath;[mmap_lock write]");
	expect_stack(&t, &none, "a:b c;[unknown];[mmap_lock write]");
	/* Of another probe on the path: called, the function is there twice; jumped to, once. */
	t.frame[3] = 0x3010;
	t.frame[4] = 0x5020;
	t.frame[5] = 0x3005;
	expect_stack(&t, &s, "a:b c;outer;inner;slowpath;[mmap_lock write]");
	t.frame[5] = 0x2010;
	expect_stack(&t, &s, "a:b c;outer;bpf_inside;inner;slowpath;[mmap_lock write]");
	/* Without one between them they are two calls. */
	t.frame[4] = 0x3010;
	expect_stack(&t, &s, "a:b c;outer;bpf_inside;inner;inner;slowpath;[mmap_lock write]");
	for (i = 0; i < STACK_FRAMES; i++)
		t.frame[i] = 0x1001;
	assert_int_equal(symbols_over(&s, 0x6fff)->address, 0x6000);
	assert_null(symbols_over(&s, 0xfff));
	assert_null(symbols_over(&s, 0x7000));	/* the last one has no end */
	{
		struct stack_names names = { .s = &s };
		char text[STACK_TEXT];

		stack_text(&t, &names, text, sizeof(text));
		assert_int_equal(strncmp(text, "a:b c;[cut];outer;", 18), 0);
		stack_text(&t, &names, text, 20);
		assert_string_equal(text, "a:b c;[cut];outer;o");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(words_in_any_pieces),
		cmocka_unit_test(several_words_and_zero_bytes),
		cmocka_unit_test(regions_overlap),
		cmocka_unit_test(disable_comes_first),
		cmocka_unit_test(unknown_and_long_words),
		cmocka_unit_test(acknowledgements),
		cmocka_unit_test(acknowledgements_nobody_reads),
		cmocka_unit_test(flags_are_left_alone),
		cmocka_unit_test(peer_leaves_within_a_word),
		cmocka_unit_test(control_option_is_strict),
		cmocka_unit_test(plain_and_copies),
		cmocka_unit_test(damaged_lines_are_passed_over),
		cmocka_unit_test(files_without_symbols),
		cmocka_unit_test(names_of_addresses),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
