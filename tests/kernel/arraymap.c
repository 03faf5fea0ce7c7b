// SPDX-License-Identifier: GPL-2.0-only
/*
 * arraymap eager|fault|window|ramp [NAME...]: test mapped BPF arrays on the running
 * kernel, KTAP on standard output. Status 0: all passed, 1: not, 2: usage.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arraymap.h"

#define TIME_LIMIT	120	/* of a test, in seconds: the machine may be emulated */
#define STATUS_SKIP	4

enum behaviour behaviour;

static const char *const behaviours[] = { "eager", "fault", "window", "ramp" };
static const struct test *const tables[] = { touch_tests, bits_tests, vma_tests, limit_tests,
					     map_tests, process_tests, race_tests, writer_tests,
					     poison_tests };
#define TABLES (sizeof(tables) / sizeof(*tables))

static int failures_seen;
/* Shared with the process of the test. */
static char *reason;

void failed(const char *file, int line, const char *format, ...)
{
	const char *slash = strrchr(file, '/');
	va_list ap;

	/* One that goes wrong in a loop says enough soon. */
	if (failures_seen++ >= 5)
		return;
	printf("# %s:%d: ", slash ? slash + 1 : file, line);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
}

int failures(void)
{
	return failures_seen;
}

void give_up(const char *file, int line, const char *what)
{
	failed(file, line, "%s: %m", what);
	exit(1);
}

void skip(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(reason, PAGE, format, ap);
	va_end(ap);
	exit(STATUS_SKIP);
}

void check_child(void (*fn)(void *arg), void *arg)
{
	int status;
	pid_t pid = fork();

	need(pid >= 0);
	if (!pid) {
		failures_seen = 0;
		fn(arg);
		exit(failures_seen != 0);
	}
	need(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status))
		failed(__FILE__, __LINE__, "a child died of signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status))
		failed(__FILE__, __LINE__, "in a child");
}

/* What a test runs and uses is there, so that the faults it counts are of its arrays. */
static void prefault(void)
{
	volatile char stack[256 << 10];
	size_t i;

	for (i = 0; i < sizeof(stack); i += PAGE)
		stack[i] = 0;
	if (mlockall(MCL_CURRENT) || munlockall())
		give_up(__FILE__, __LINE__, "mlockall");
}

/* True: passed or skipped. */
static bool run(const struct test *t, unsigned int number)
{
	int status;
	pid_t pid;

	*reason = 0;
	pid = fork();
	if (!pid) {
		alarm(TIME_LIMIT);
		prefault();
		t->run();
		exit(failures_seen != 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		printf("# cannot run it: %m\nnot ok %u %s\n", number, t->name);
		return false;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_SKIP) {
		printf("ok %u %s # SKIP %s\n", number, t->name, reason);
		return true;
	}
	if (WIFSIGNALED(status))
		printf("# died of signal %d (%s)\n", WTERMSIG(status),
		       strsignal(WTERMSIG(status)));
	printf("%sok %u %s\n", status ? "not " : "", number, t->name);
	return !status;
}

static int usage(void)
{
	fprintf(stderr, "usage: arraymap eager|fault|window|ramp [NAME...]\n");
	return 2;
}

static bool is_chosen(const struct test *t, char **names)
{
	bool all = !*names;

	for (; *names; names++)
		if (!strcmp(*names, t->name))
			return true;
	return all;
}

int main(int argc, char **argv)
{
	unsigned int i, number = 0, bad = 0, chosen = 0;
	const struct test *t;

	if (argc < 2)
		return usage();
	for (i = 0; i < 4 && strcmp(argv[1], behaviours[i]); i++)
		;
	if (i == 4)
		return usage();
	behaviour = i;
	reason = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (reason == MAP_FAILED || sysconf(_SC_PAGESIZE) != PAGE) {
		fprintf(stderr, "arraymap: these tests know pages of %lu bytes\n", PAGE);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < TABLES; i++)
		for (t = tables[i]; t->name; t++)
			chosen += is_chosen(t, argv + 2);
	if (!chosen || (argc > 2 && chosen != (unsigned int)argc - 2))
		return usage();
	/* Its hinting faults would be counted with those of the arrays. */
	write_file("/proc/sys/kernel/numa_balancing", "0");
	printf("KTAP version 1\n1..%u\n", chosen);
	for (i = 0; i < TABLES; i++)
		for (t = tables[i]; t->name; t++)
			if (is_chosen(t, argv + 2))
				bad += !run(t, ++number);
	printf("# %s: %u of %u failed\n", argv[1], bad, chosen);
	return bad ? 1 : 0;
}
