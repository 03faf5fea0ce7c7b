/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_TEST_CAUGHT_H
#define MMSCOPE_TEST_CAUGHT_H

/* What is written to stderr, to look at it. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static int caught_stderr;

static void catch_errors(void)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC);

	assert_true(fd >= 0);
	fflush(stderr);
	caught_stderr = dup(STDERR_FILENO);
	assert_true(caught_stderr >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	close(fd);
}

/* What was written since catch_errors(), in a static buffer. */
static const char *caught(void)
{
	static char text[65536];
	ssize_t n = pread(STDERR_FILENO, text, sizeof(text) - 1, 0);

	assert_true(n >= 0);
	text[n] = 0;
	assert_true(dup2(caught_stderr, STDERR_FILENO) >= 0);
	close(caught_stderr);
	return text;
}

#endif
