// SPDX-License-Identifier: GPL-2.0-only
/* Runs the one test that it is linked with (-DTEST=test_mmap), and counts. */
#include <stdarg.h>
#include <time.h>

#include "test_progs.h"

void TEST(void);

static unsigned int checks, bad, subtests;
static bool skipped;

bool selftest_check(bool ok, const char *file, int line, const char *name,
		    const char *format, ...)
{
	int error = errno;
	va_list ap;

	checks++;
	if (ok)
		return true;
	bad++;
	printf("# %s:%d: %s: ", strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line, name);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	printf("\n");
	errno = error;
	return false;
}

bool test__start_subtest(const char *name)
{
	printf("# subtest %s\n", name);
	subtests++;
	return true;
}

void test__skip(void)
{
	skipped = true;
}

void test__fail(void)
{
	bad++;
}

/* By the system call that programs of the tests wait for: the C library takes another. */
int usleep(useconds_t us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	return syscall(__NR_nanosleep, &t, NULL);
}

#define STRING_(x)	#x
#define STRING(x)	STRING_(x)

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("KTAP version 1\n1..1\n");
	TEST();
	printf("# %u checks, %u failed, %u subtests\n", checks, bad, subtests);
	/* A test that checked nothing has told nothing. */
	printf("%sok 1 %s%s\n", bad || (!checks && !skipped) ? "not " : "", STRING(TEST),
	       skipped ? " # SKIP by the test" : "");
	return bad || (!checks && !skipped);
}
