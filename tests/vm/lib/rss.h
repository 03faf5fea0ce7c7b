/* SPDX-License-Identifier: GPL-2.0-only */
/* What smaps says, the region that is observed, and areas of memory; for rss.c alone. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif

#define PAGE	4096UL
#define HUGE	(2UL << 20)
#define FILE_PATH	"/dev/shm/rss"

static int control = -1, ack = -1;
static long before, after, copied, expect, extra, switches;
static const char *skip;
static char smaps[1 << 20];

static void die(const char *what)
{
	printf("{\"error\": \"%s: %s\"}\n", what, strerror(errno));
	exit(1);
}

/* ---- what the kernel says ---- */

static size_t slurp(const char *path)
{
	size_t len = 0;
	ssize_t n;
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		die(path);
	while ((n = read(fd, smaps + len, sizeof(smaps) - 1 - len)) > 0)
		len += n;
	close(fd);
	smaps[len] = 0;
	return len;
}

static long field(const char *area, const char *end, const char *name)
{
	const char *p = strstr(area, name);

	return p && p < end ? atol(p + strlen(name)) / 4 : 0;
}

/*
 * Pages resident; with `forked`, of those areas only that fork copies: the ones that
 * have pages of their own, and those whose pages have no other way back.
 */
static long resident(int pid, bool forked)
{
	char path[64];
	const char *p = smaps, *next;
	long sum = 0;

	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	slurp(path);
	while ((next = strstr(p, "VmFlags:"))) {
		const char *end = strchr(next, '\n');
		const char *mixed = strstr(next, " mm"), *frames = strstr(next, " pf");

		if (!end)
			break;
		if (!forked || field(p, next, "\nAnonymous:") || (mixed && mixed < end) ||
		    (frames && frames < end))
			sum += field(p, next, "\nRss:");
		p = end;
	}
	return sum;
}

/* ---- the region ---- */

static void tell(const char *word)
{
	char answer[8];

	if (control < 0)
		return;
	if (write(control, word, strlen(word)) < 0 || read(ack, answer, sizeof(answer)) < 4)
		die("control");
}

/* How often this thread had to make way for another one. */
static long made_way(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nivcsw;
}

/* What it takes to look is there before it looks. */
static void begin(void)
{
	resident(getpid(), false);
	made_way();
	tell("ping\n");
	before = resident(getpid(), false);
	tell("enable\n");
	switches = made_way();
}

static void end(void)
{
	switches = made_way() - switches;
	tell("disable\n");
	after = resident(getpid(), false);
}

static char *map_at(void *at, size_t size, int flags, int fd)
{
	char *p = mmap(at, size, PROT_READ | PROT_WRITE, flags | (at ? MAP_FIXED : 0), fd, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

/* Aligned to huge pages, but without them unless asked for. */
static char *area(size_t size, int flags, int fd)
{
	char *p = map_at(NULL, size + HUGE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);

	p = (char *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));
	map_at(p, size, flags, fd);
	madvise(p, size, MADV_NOHUGEPAGE);
	return p;
}

static char *anon(size_t pages)
{
	return area(pages * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void touch(volatile char *p, size_t pages)
{
	while (pages--) {
		*p = 1;
		p += PAGE;
	}
}

static void peek(const volatile char *p, size_t pages)
{
	for (; pages--; p += PAGE)
		(void)*p;
}

static int shm_file(size_t pages)
{
	int fd = open(FILE_PATH, O_RDWR | O_CREAT | O_TRUNC, 0600);
	char page[PAGE];

	memset(page, 1, sizeof(page));
	while (fd >= 0 && pages--)
		if (write(fd, page, sizeof(page)) != sizeof(page))
			die("write");
	if (fd < 0)
		die(FILE_PATH);
	return fd;
}

static void set_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd >= 0) {
		if (write(fd, text, strlen(text)) < 0)
			skip = path;
		close(fd);
	}
}
