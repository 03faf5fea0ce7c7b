/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TESTS_KERNEL_TEST_PROGS_H
#define TESTS_KERNEL_TEST_PROGS_H

/*
 * As much of the harness of the kernel's BPF selftests as a test of mapped maps
 * calls: its macros by their names, counted and printed as KTAP by selftest.c. Each
 * test is a program of its own.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))
#endif
#define ENOTSUPP	524	/* of the kernel; no header of user space has it */

/* True if ok. The message is printed where it is not. */
bool selftest_check(bool ok, const char *file, int line, const char *name,
		    const char *format, ...) __attribute__((format(printf, 5, 6)));
bool test__start_subtest(const char *name);
void test__skip(void);
void test__fail(void);

#define SELFTEST_CHECK(ok, name, ...)						\
	selftest_check(ok, __FILE__, __LINE__, name, __VA_ARGS__)

/* True if it failed, unlike the others. */
#define CHECK(condition, tag, ...)						\
	({ bool bad_ = !!(condition); (void)duration;				\
	   SELFTEST_CHECK(!bad_, tag, __VA_ARGS__); bad_; })
#define CHECK_FAIL(condition)							\
	({ bool bad_ = !!(condition); SELFTEST_CHECK(!bad_, #condition, " "); bad_; })
#define PRINT_FAIL(...)	selftest_check(false, __FILE__, __LINE__, "failure", __VA_ARGS__)

#define SELFTEST_COMPARE(a, operator, b, name)					\
	({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b);			\
	   SELFTEST_CHECK(a_ operator b_, name, "%lld, not %s %lld", (long long)a_, \
			  #operator, (long long)b_); })
#define ASSERT_EQ(a, b, name)	SELFTEST_COMPARE(a, ==, b, name)
#define ASSERT_NEQ(a, b, name)	SELFTEST_COMPARE(a, !=, b, name)
#define ASSERT_LT(a, b, name)	SELFTEST_COMPARE(a, <, b, name)
#define ASSERT_LE(a, b, name)	SELFTEST_COMPARE(a, <=, b, name)
#define ASSERT_GT(a, b, name)	SELFTEST_COMPARE(a, >, b, name)
#define ASSERT_GE(a, b, name)	SELFTEST_COMPARE(a, >=, b, name)
#define ASSERT_OK(a, name)	SELFTEST_COMPARE((long long)(a), ==, 0, name)
#define ASSERT_ERR(a, name)	SELFTEST_COMPARE((long long)(a), <, 0, name)
#define ASSERT_OK_FD(a, name)	SELFTEST_COMPARE((long long)(a), >=, 0, name)
#define ASSERT_TRUE(a, name)	SELFTEST_CHECK(!!(a), name, "it is false")
#define ASSERT_FALSE(a, name)	SELFTEST_CHECK(!(a), name, "it is true")
/* With errno set, as libbpf does since 1.0. */
#define ASSERT_OK_PTR(p, name)							\
	({ const void *p_ = (p); SELFTEST_CHECK(!libbpf_get_error(p_) && p_, name, \
						"errno %d", errno); })
#define ASSERT_ERR_PTR(p, name)							\
	({ const void *p_ = (p); SELFTEST_CHECK(!!libbpf_get_error(p_), name, "no error"); })
#define ASSERT_HAS_SUBSTR(text, part, name)					\
	({ const char *t_ = (text); SELFTEST_CHECK(!!strstr(t_, part), name, "%s", t_); })

/* libbpf 1.2; Debian 12 has 1.1. */
#if LIBBPF_MAJOR_VERSION == 1 && LIBBPF_MINOR_VERSION < 2
#define bpf_map_get_info_by_fd(fd, info, len)	bpf_obj_get_info_by_fd(fd, info, len)
#endif

#endif
