/* SPDX-License-Identifier: GPL-2.0-only */
/* What the cases of paths.c share: the region that is observed, and the kernel's account. */
#ifndef PATHS_H
#define PATHS_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE		4096UL
#define HUGE		(2UL << 20)
#define PM_PRESENT	(1ULL << 63)
#define PM_SWAPPED	(1ULL << 62)
#define PM_FRAME	((1ULL << 55) - 1)

/* Ends with the line that the suite shows; 3: this kernel has no such thing. */
#define DIE(status, ...)							\
	do {									\
		printf("paths: " __VA_ARGS__);					\
		printf(": %s\n", strerror(errno));				\
		exit(status);							\
	} while (0)
#define CHECK(cond, what)	do { if (!(cond)) DIE(1, "%s", what); } while (0)
#define NEED(cond, what)	do { if (!(cond)) DIE(3, "%s", what); } while (0)

static inline void touch(char *p, bool write)
{
	if (write)
		*(volatile char *)p = 1;
	else
		(void)*(volatile char *)p;
}

static inline void touch_all(char *p, size_t n, bool write)
{
	for (size_t i = 0; i < n; i++)
		touch(p + i * PAGE, write);
}

char *map(size_t len, int flags, int fd);
char *map_aligned(size_t len, size_t align, int flags);

/* Pages of [p, p + n) whose pagemap entry has any of the bits. */
uint64_t pagemap(const char *p, size_t n, uint64_t bits);

/* Everything else that we may use is present and writable, also after a fork. */
void settle(const char *except, size_t len);

/* A child that is gone again: what it shared is ours alone, but write-protected. */
void fork_once(void);

/* A number of /proc/vmstat; 0: it has none of that name. */
uint64_t vmstat(const char *name);

void region_begin(void);
void region_end(void);

/* Of the mapping at the end: prints the JSON line. n: of the touches. */
void report(const char *name, const char *p, size_t pages, uint64_t n, const char *more);

void device_case(int argc, char **argv);
void uffd_case(const char *kind);

#endif
