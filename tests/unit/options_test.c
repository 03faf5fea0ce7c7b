// SPDX-License-Identifier: GPL-2.0-only
/* Option tables and their strict parsers; one-line errors. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cmd/options.h"
#include "data/err.h"

/* What was written to a descriptor between capture() and captured(). */
static struct {
	int fd, saved;
	FILE *file;
	char text[16384];
} cap;

static void capture(int fd)
{
	fflush(NULL);
	cap.fd = fd;
	cap.file = tmpfile();
	assert_non_null(cap.file);
	cap.saved = dup(fd);
	assert_true(cap.saved >= 0);
	assert_true(dup2(fileno(cap.file), fd) >= 0);
}

static const char *captured(void)
{
	size_t n;

	fflush(NULL);
	assert_true(dup2(cap.saved, cap.fd) >= 0);
	close(cap.saved);
	rewind(cap.file);
	n = fread(cap.text, 1, sizeof(cap.text) - 1, cap.file);
	cap.text[n] = 0;
	fclose(cap.file);
	return cap.text;
}

static void assert_one_line(const char *text)
{
	const char *end = strchr(text, '\n');

	assert_non_null(end);
	assert_string_equal(end, "\n");
}

/* The numbers */

static void test_count(void **state)
{
	static const char *const bad[] = {
		"", " ", "-1", "+1", " 1", "1 ", "1x", "0x10", "1.0", "1e3", "x", "1K",
		"18446744073709551616", "99999999999999999999999", "1\n",
	};
	uint64_t v = 77;
	size_t i;

	assert_int_equal(parse_count("0", &v), 0);
	assert_int_equal(v, 0);
	assert_int_equal(parse_count("007", &v), 0);
	assert_int_equal(v, 7);	/* decimal, never octal */
	assert_int_equal(parse_count("18446744073709551615", &v), 0);
	assert_true(v == UINT64_MAX);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		v = 77;
		if (!parse_count(bad[i], &v))
			fail_msg("'%s' taken as %" PRIu64, bad[i], v);
		assert_int_equal(v, 77);
	}
}

static void test_size(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "0", 0 }, { "1", 1 }, { "4096", 4096 }, { "8M", 8 << 20 }, { "8m", 8 << 20 },
		{ "4k", 4096 }, { "1G", 1 << 30 }, { "0G", 0 },
		{ "18446744073709551615", UINT64_MAX },
		{ "17179869183G", 17179869183ULL << 30 },
		{ "18014398509481983K", 18014398509481983ULL << 10 },
	};
	static const char *const bad[] = {
		"", "K", "-1", "-8M", "+8M", " 8M", "8M ", "8 M", "8MB", "8KiB", "8Mi", "8T",
		"8MM", "0x8", "1.5M", "M8", "18446744073709551616", "17179869184G",
		"18014398509481984K", "18446744073709551615K", "36893488147419103232M",
	};
	uint64_t v;
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(*good); i++) {
		if (parse_size(good[i].text, &v))
			fail_msg("'%s' refused", good[i].text);
		assert_true(v == good[i].bytes);
	}
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		v = 77;
		if (!parse_size(bad[i], &v))
			fail_msg("'%s' taken as %" PRIu64, bad[i], v);
		assert_int_equal(v, 77);
	}
}

static void test_seconds(void **state)
{
	static const struct {
		const char *text;
		double seconds;
	} good[] = {
		{ "1", 1 }, { "0.5", .5 }, { ".5", .5 }, { "2.", 2 }, { "3s", 3 }, { "2m", 120 },
		{ "1.5m", 90 }, { "250ms", .25 }, { "1000000000", 1e9 },
	};
	static const char *const bad[] = {
		"", "0", "0s", "0.0", "-1", "+1", " 1", "1 ", ".", "s", "ms", "1x", "1S", "1h",
		"1 s", "1mss", "1.2.3", "0x10", "1e3", "inf", "nan", "1n", "1000000001",
		"99999999999999999999",
	};
	char huge[512];
	double v;
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(*good); i++) {
		if (parse_seconds(good[i].text, &v))
			fail_msg("'%s' refused", good[i].text);
		assert_true(v > good[i].seconds * .999999 && v < good[i].seconds * 1.000001);
	}
	memset(huge, '9', sizeof(huge));
	huge[sizeof(huge) - 1] = 0;
	v = 77;
	assert_int_equal(parse_seconds(huge, &v), -1);
	/* Too small for a double to tell from 0. */
	memset(huge, '0', sizeof(huge));
	huge[1] = '.';
	huge[sizeof(huge) - 2] = '1';
	huge[sizeof(huge) - 1] = 0;
	assert_int_equal(parse_seconds(huge, &v), -1);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (!parse_seconds(bad[i], &v))
			fail_msg("'%s' taken as %g", bad[i], v);
	assert_true(v == 77);
}

/* The table */

static struct {
	bool flag, other;
	const char *name, *touch;
	uint64_t most, count, size;
	double seconds;
	struct option_list list;
	int called;
} opt;

static int call(const char *arg, void *dest)
{
	*(int *)dest += 1;
	if (!strcmp(arg, "bad")) {
		err("--call", "'%s' is bad", arg);
		return -1;
	}
	return 0;
}

static const struct option_def defs[] = {
	{ "flag", 'f', OPT_FLAG, NULL, "a switch", &opt.flag },
	{ "other", 'x', OPT_FLAG, NULL, "a switch", &opt.other },
	{ "name", 'n', OPT_STRING, "NAME", "a string", &opt.name },
	{ "count", 'c', OPT_COUNT, "N", "a number", &opt.count, NULL, 1, 64 },
	{ "size", 's', OPT_SIZE, "SIZE", "bytes", &opt.size, NULL, 4096 },
	{ "seconds", 'd', OPT_SECONDS, "SECONDS", "time", &opt.seconds },
	{ "touch", 't', OPT_CHOICE, "HOW", "what to do", &opt.touch, "none|read|write" },
	{ "item", 'i', OPT_LIST, "ITEM", "repeatable", &opt.list },
	{ "call", 0, OPT_CALL, "X", "by a function", &opt.called, NULL, 0, 0, call },
	{ "most", 0, OPT_COUNT, "[=N]", "a number, or 10", &opt.most, NULL, 1, 64, .absent = 10 },
	{ 0 }
};

static const struct option_set set = { "test [OPTIONS]", "A table for tests.", defs };

/* Parse the words of a NULL-terminated list; what is printed is in cap.text. */
static enum options_result parse(char **argv, int *rest, bool *dashes)
{
	enum options_result result;
	int argc;

	option_list_free(&opt.list);
	memset(&opt, 0, sizeof(opt));
	for (argc = 0; argv[argc]; argc++)
		;
	*rest = -1;
	*dashes = false;
	capture(STDERR_FILENO);
	result = options_parse(&set, argc, argv, rest, dashes);
	captured();
	if (result == OPTIONS_OK)
		assert_string_equal(cap.text, "");
	return result;
}

#define ARGV(...)	((char *[]){ "test", ##__VA_ARGS__, NULL })

static void good(char **argv, int want_rest, bool want_dashes)
{
	bool dashes;
	int rest;

	if (parse(argv, &rest, &dashes) != OPTIONS_OK)
		fail_msg("%s ...: %s", argv[1], cap.text);
	assert_int_equal(rest, want_rest);
	assert_int_equal(dashes, want_dashes);
}

static void bad(char **argv, const char *want)
{
	bool dashes;
	int rest;

	assert_int_equal(parse(argv, &rest, &dashes), OPTIONS_BAD);
	assert_one_line(cap.text);
	if (!strstr(cap.text, want))
		fail_msg("'%s' not in: %s", want, cap.text);
}

static void test_forms(void **state)
{
	good(ARGV(), 1, false);
	good(ARGV("--size=8M", "--name", "a b", "-c3", "-t", "read", "-d", "50ms"), 9, false);
	assert_true(opt.size == 8 << 20 && opt.count == 3 && opt.seconds == .05);
	assert_string_equal(opt.name, "a b");
	assert_string_equal(opt.touch, "read");
	assert_false(opt.flag);
	good(ARGV("-fxc", "4"), 3, false);
	assert_true(opt.flag && opt.other && opt.count == 4);
	good(ARGV("--cou=5", "--fl"), 3, false);
	assert_true(opt.flag && opt.count == 5);
	good(ARGV("-c1", "-c2", "--count=3"), 4, false);
	assert_int_equal(opt.count, 3);
	good(ARGV("-i", "a", "--item=b", "-ic"), 5, false);
	assert_int_equal(opt.list.n, 3);
	assert_string_equal(opt.list.item[2], "c");
	good(ARGV("--call", "x", "--call=y"), 4, false);
	assert_int_equal(opt.called, 2);
	good(ARGV("--name", "-f"), 3, false);
	assert_string_equal(opt.name, "-f");
	assert_false(opt.flag);
}

static void test_optional_value(void **state)
{
	good(ARGV("-f"), 2, false);
	assert_int_equal(opt.most, 0);
	good(ARGV("--most", "-f"), 3, false);
	assert_true(opt.most == 10 && opt.flag);
	good(ARGV("--most=7", "cmd"), 2, false);
	assert_int_equal(opt.most, 7);
	/* What follows is no value of it. */
	good(ARGV("--most", "7"), 2, false);
	assert_int_equal(opt.most, 10);
	bad(ARGV("--most=0"), "--most: '0' is not within 1 to 64");
	bad(ARGV("--most="), "--most: '' is not a whole number");
}

static void test_stops(void **state)
{
	good(ARGV("-f", "--", "cmd", "-x", "--"), 3, true);
	assert_true(opt.flag && !opt.other);
	good(ARGV("-f", "--"), 3, true);
	good(ARGV("--"), 2, true);
	good(ARGV("--", "--"), 2, true);
	good(ARGV("-f", "cmd", "-x"), 2, false);
	assert_false(opt.other);
	good(ARGV("cmd", "--", "-x"), 1, false);
	assert_false(opt.other);
	good(ARGV("-", "-x"), 1, false);
	assert_false(opt.other);
	good(ARGV("--name=--", "cmd"), 2, false);
	assert_string_equal(opt.name, "--");
	good(ARGV("-i", "x", "--", "y"), 4, true);
}

static void test_missing_value(void **state)
{
	bad(ARGV("--size"), "--size: needs a value");
	bad(ARGV("-s"), "-s: needs a value");
	bad(ARGV("-fs"), "-fs: needs a value");
	bad(ARGV("--name", "--", "cmd"), "--name: needs a value");
	bad(ARGV("-n", "--"), "-n: needs a value");
	bad(ARGV("--size="), "--size: '' is not a size");
	bad(ARGV("--count", ""), "--count: '' is not a whole number");
	bad(ARGV("--name="), "--name: '' is empty");
	bad(ARGV("-i", ""), "--item: '' is empty");
	bad(ARGV("--seconds="), "--seconds: '' is not a time");
	bad(ARGV("--touch="), "--touch: '' is not one of none|read|write");
}

static void test_bad_values(void **state)
{
	bad(ARGV("-c", "0"), "'0' is not within 1 to 64");
	bad(ARGV("-c", "65"), "'65' is not within 1 to 64");
	bad(ARGV("-c", "-1"), "'-1' is not a whole number");
	bad(ARGV("-c", "18446744073709551617"), "not a whole number");
	good(ARGV("-c", "64", "-s", "4096"), 5, false);
	bad(ARGV("--size", "4095"), "'4095' is below 4096");
	bad(ARGV("--size", "17179869184G"), "not a size");
	bad(ARGV("--size", "-8M"), "not a size");
	bad(ARGV("--seconds", "0"), "not a time above 0");
	bad(ARGV("--call", "bad"), "--call: 'bad' is bad");
	bad(ARGV("--flag=yes"), "--flag=yes: takes no value");
	bad(ARGV("--help=yes"), "--help=yes: takes no value");
	bad(ARGV("--name", "x", "-c", "\n\033[31m"), "'\\x0a\\x1b[31m' is not");
}

static void test_choices(void **state)
{
	static char *words[] = { "re", "r", "rea", "reads", "ead", "ite", "write ", "READ", "|",
				 "none|read", "read|", "|read", "none|read|write", "read write" };
	size_t i;

	good(ARGV("-t", "none"), 3, false);
	assert_string_equal(opt.touch, "none");
	good(ARGV("-twrite"), 2, false);
	assert_string_equal(opt.touch, "write");
	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		bad(ARGV("--touch", words[i]), "is not one of none|read|write");
}

static void test_unknown(void **state)
{
	bad(ARGV("--nothing"), "--nothing: unknown or ambiguous option; see mmscope test --help");
	bad(ARGV("--nothing=3"), "--nothing=3: unknown");
	bad(ARGV("-q"), "-q: unknown option; see mmscope test --help");
	bad(ARGV("-fq"), "-q: unknown option");
	bad(ARGV("--s"), "--s: unknown or ambiguous");	/* size, seconds */
	bad(ARGV("-:"), "unknown option");
	bad(ARGV("-\303\251"), "unknown option");
}

static void test_help(void **state)
{
	bool dashes;
	int rest;

	capture(STDOUT_FILENO);
	assert_int_equal(options_parse(&set, 2, ARGV("--help"), &rest, &dashes), OPTIONS_HELP);
	captured();
	assert_non_null(strstr(cap.text, "Usage: mmscope test [OPTIONS]"));
	assert_non_null(strstr(cap.text, "-s, --size SIZE"));
	assert_non_null(strstr(cap.text, "one of none|read|write"));
	capture(STDOUT_FILENO);
	assert_int_equal(options_parse(&set, 2, ARGV("-h"), &rest, &dashes), OPTIONS_HELP);
	captured();
	assert_non_null(strstr(cap.text, "Usage: "));
}

/* Errors */

static void check_err(const char *text, const char *want_text, const char *want_json)
{
	char want[512];

	capture(STDERR_FILENO);
	err("%s", "cause", text);
	snprintf(want, sizeof(want), "mmscope: %s: cause\n", want_text);
	assert_string_equal(captured(), want);

	err_json(true);
	capture(STDERR_FILENO);
	err("%s", "cause", text);
	err_json(false);
	snprintf(want, sizeof(want), "{\"error\": \"%s: cause\"}\n", want_json);
	assert_string_equal(captured(), want);
}

static void test_err_text(void **state)
{
	check_err("plain", "plain", "plain");
	check_err("", "", "");
	check_err("a\"b\\c", "a\"b\\c", "a\\\"b\\\\c");
	check_err("a\nmmscope: forged", "a\\x0ammscope: forged", "a\\u000ammscope: forged");
	check_err("\033[31m\177\t\001", "\\x1b[31m\\x7f\\x09\\x01",
		  "\\u001b[31m\\u007f\\u0009\\u0001");
	check_err("100%s %n", "100%s %n", "100%s %n");
#define GOOD "\303\251 \342\202\254 \360\237\230\200"
	check_err(GOOD, GOOD, GOOD);
}

static void test_err_not_utf8(void **state)
{
#define FFFD "\357\277\275"
	check_err("a\377b", "a\\xffb", "a" FFFD "b");
	check_err("\233" "31m", "\\x9b31m", FFFD "31m");
	check_err("\302\233" "31m", "\\xc2\\x9b31m", "\\u009b31m");
	check_err("\300\257", "\\xc0\\xaf", FFFD FFFD);				/* overlong */
	check_err("\340\200\257", "\\xe0\\x80\\xaf", FFFD FFFD FFFD);
	check_err("\355\240\200", "\\xed\\xa0\\x80", FFFD FFFD FFFD);		/* surrogate */
	check_err("\364\220\200\200", "\\xf4\\x90\\x80\\x80", FFFD FFFD FFFD FFFD);
	check_err("\342\202", "\\xe2\\x82", FFFD FFFD);				/* cut short */
	check_err("\342\202x", "\\xe2\\x82x", FFFD FFFD "x");
	check_err("\360\237\230\200\303", "\360\237\230\200\\xc3", "\360\237\230\200" FFFD);
}

/* The longest expansion, in every form of output: bounded, ended, one line. */
static void test_err_long(void **state)
{
	static const char *const unit[] = { "a", "\n", "\"", "\377", "\303\251", "\302\233",
					    "\342\202\254", "\360\237\230\200" };
	char text[8192];
	size_t i, n, len;
	int json;

	for (i = 0; i < sizeof(unit) / sizeof(*unit); i++) {
		len = strlen(unit[i]);
		/* Every remainder, so that the cut falls on each byte of a character. */
		for (n = 0; n < 8; n++) {
			size_t at = n;

			memset(text, 'x', n);
			for (; at + len < sizeof(text); at += len)
				memcpy(text + at, unit[i], len);
			text[at] = 0;
			for (json = 0; json < 2; json++) {
				const char *end = json ? "...\"}\n" : "...\n";

				err_json(json);
				capture(STDERR_FILENO);
				err("%s", "cause", text);
				err_json(false);
				captured();
				assert_one_line(cap.text);
				assert_true(strlen(cap.text) <= PIPE_BUF);
				assert_true(strlen(cap.text) > 2000);
				assert_string_equal(cap.text + strlen(cap.text) - strlen(end), end);
				/* A cut never makes a bad character of a good one. */
				if (len > 1 && unit[i][0] != '\302') {
					assert_null(strstr(cap.text, FFFD));
					assert_null(strstr(cap.text, "\\x"));
				}
			}
		}
	}
}

static void test_err_errno(void **state)
{
	capture(STDERR_FILENO);
	errno = ENOENT;
	err("x", "y");
	assert_int_equal(errno, ENOENT);
	warn("%s", "%d left", "space", 3);
	captured();
	assert_string_equal(cap.text, "mmscope: x: y\nmmscope: warning: space: 3 left\n");
	err_json(true);
	capture(STDERR_FILENO);
	warn("x", "y");
	err_json(false);
	assert_string_equal(captured(), "{\"warning\": \"x: y\"}\n");
}

static void test_err_closed(void **state)
{
	int saved = dup(STDERR_FILENO);

	/* Nothing to assert but that it returns: there is nowhere to complain. */
	close(STDERR_FILENO);
	errno = 0;
	err("x", "y");
	assert_int_equal(errno, 0);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_seconds),
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_optional_value),
		cmocka_unit_test(test_stops),
		cmocka_unit_test(test_missing_value),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_choices),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_err_text),
		cmocka_unit_test(test_err_not_utf8),
		cmocka_unit_test(test_err_long),
		cmocka_unit_test(test_err_errno),
		cmocka_unit_test(test_err_closed),
	};
	int failed = cmocka_run_group_tests_name("options and errors", tests, NULL, NULL);

	option_list_free(&opt.list);
	return failed;
}
