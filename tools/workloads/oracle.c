// SPDX-License-Identifier: GPL-2.0-only
/* The kernel's own account of a mapping: pagemap, smaps, fault-around windows. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <unistd.h>

#include "workloads/memory.h"
#include "workloads/oracle.h"

#define CHUNK			(64 * 1024)
#define PAGEMAP_PRESENT		(1ull << 63)
#define FAULT_AROUND_FILE	"/sys/kernel/debug/fault_around_bytes"
#define FAULT_AROUND_DEFAULT	65536

struct oracle {
	int pagemap, smaps, status, vmstat;
	size_t page_size;
	char chunk[CHUNK] __attribute__((aligned(8)));
};

struct oracle *oracle_open(void)
{
	struct oracle *o = memory_alloc(sizeof(*o));

	if (!o)
		return NULL;
	o->page_size = sysconf(_SC_PAGESIZE);
	o->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	o->smaps = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
	o->status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	o->vmstat = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
	if (o->pagemap >= 0 && o->smaps >= 0 && o->status >= 0 && o->vmstat >= 0)
		return o;
	oracle_close(o);
	return NULL;
}

void oracle_close(struct oracle *o)
{
	int saved = errno;

	if (!o)
		return;
	if (o->pagemap >= 0)
		close(o->pagemap);
	if (o->smaps >= 0)
		close(o->smaps);
	if (o->status >= 0)
		close(o->status);
	if (o->vmstat >= 0)
		close(o->vmstat);
	memory_free(o, sizeof(*o));
	errno = saved;
}

static int read_pagemap(struct oracle *o, uint64_t addr, size_t len, struct lap_oracle *sum)
{
	uint64_t *entry = (uint64_t *)o->chunk, page = addr / o->page_size;
	uint64_t left = len / o->page_size;
	ssize_t n, i;

	while (left) {
		n = pread(o->pagemap, entry, MIN(left * sizeof(*entry), CHUNK),
			  page * sizeof(*entry));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < (ssize_t)sizeof(*entry)) {
			if (n >= 0)
				errno = EIO;
			return -1;
		}
		n /= sizeof(*entry);
		for (i = 0; i < n; i++)
			sum->present += !!(entry[i] & PAGEMAP_PRESENT);
		page += n;
		left -= n;
	}
	return 0;
}

static int read_smaps(struct oracle *o, uint64_t addr, size_t len, struct lap_oracle *sum)
{
	struct smaps s = { .start = addr, .end = addr + len, .sum = sum };
	ssize_t n;

	if (lseek(o->smaps, 0, SEEK_SET) < 0)
		return -1;
	while ((n = read(o->smaps, o->chunk, CHUNK))) {
		if (n > 0)
			smaps_feed(&s, o->chunk, n);
		else if (errno != EINTR)
			return -1;
	}
	return 0;
}

int oracle_read(struct oracle *o, const void *addr, size_t len, struct lap_oracle *sum)
{
	if (!sum->addr)
		sum->addr = (uintptr_t)addr;
	if (oracle_rss(o, &sum->rss))
		return -1;
	if (read_pagemap(o, (uintptr_t)addr, len, sum))
		return -1;
	return read_smaps(o, (uintptr_t)addr, len, sum);
}

/* A file of "key number" lines, whole, as a string. */
static int read_text(struct oracle *o, int fd)
{
	size_t len = 0;
	ssize_t n;

	while (len < CHUNK - 1) {
		n = pread(fd, o->chunk + len, CHUNK - 1 - len, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (!n)
			break;
		len += n;
	}
	o->chunk[len] = '\0';
	return 0;
}

/* The number after "\nKEY"; -1 when there is none. */
static int64_t number_after(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	return p ? strtoll(p + strlen(key), NULL, 10) : -1;
}

int oracle_rss(struct oracle *o, struct oracle_rss *rss)
{
	if (read_text(o, o->status))
		return -1;
	rss->anon = number_after(o->chunk, "\nRssAnon:");
	rss->file = number_after(o->chunk, "\nRssFile:");
	rss->shmem = number_after(o->chunk, "\nRssShmem:");
	if (rss->anon >= 0 && rss->file >= 0 && rss->shmem >= 0)
		return 0;
	errno = ENODATA;
	return -1;
}

#define TRIAL_PAGES 5

bool oracle_rss_is_exact(struct oracle *o)
{
	size_t len = TRIAL_PAGES * o->page_size, i;
	struct oracle_rss before, now;
	bool exact = false;
	char *p;

	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return false;
	madvise(p, len, MADV_NOHUGEPAGE);
	exact = !oracle_rss(o, &before);
	for (i = 0; i < TRIAL_PAGES && exact; i++) {
		*(volatile char *)(p + i * o->page_size) = 1;
		exact = !oracle_rss(o, &now) &&
			now.anon - before.anon == (int64_t)((i + 1) * o->page_size / 1024);
	}
	munmap(p, len);
	return exact;
}

int oracle_pgfault(struct oracle *o, uint64_t *faults)
{
	int64_t n;

	if (read_text(o, o->vmstat))
		return -1;
	n = number_after(o->chunk, "\npgfault ");
	if (n < 0) {
		errno = ENODATA;
		return -1;
	}
	*faults = n;
	return 0;
}

static void smaps_line(struct smaps *s)
{
	static const struct {
		const char *key;
		size_t offset;
	} fields[] = {
		{ "Rss:", offsetof(struct lap_oracle, rss_kib) },
		{ "AnonHugePages:", offsetof(struct lap_oracle, anon_huge_kib) },
		{ "ShmemPmdMapped:", offsetof(struct lap_oracle, shmem_pmd_kib) },
		{ "FilePmdMapped:", offsetof(struct lap_oracle, file_pmd_kib) },
		{ "Private_Hugetlb:", offsetof(struct lap_oracle, hugetlb_kib) },
		{ "Shared_Hugetlb:", offsetof(struct lap_oracle, hugetlb_kib) },
	};
	char *end, *next;
	uint64_t start, stop;
	size_t i, n;

	/* "START-END perms ..." opens a mapping; keys have no '-' after hex digits. */
	start = strtoull(s->line, &end, 16);
	if (end != s->line && *end == '-') {
		stop = strtoull(end + 1, &next, 16);
		if (next != end + 1 && *next == ' ') {
			s->inside = start < s->end && stop > s->start;
			return;
		}
	}
	if (!s->inside)
		return;
	for (i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		n = strlen(fields[i].key);
		if (strncmp(s->line, fields[i].key, n))
			continue;
		*(uint64_t *)((char *)s->sum + fields[i].offset) +=
			strtoull(s->line + n, NULL, 10);
		return;
	}
}

void smaps_feed(struct smaps *s, const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (text[i] == '\n') {
			s->line[s->len] = '\0';
			smaps_line(s);
			s->len = 0;
		} else if (s->len < sizeof(s->line) - 1) {
			/* The rest of a long line is a file's name. */
			s->line[s->len++] = text[i];
		}
	}
}

uint64_t oracle_fault_around_bytes(void)
{
	FILE *f = fopen(FAULT_AROUND_FILE, "re");
	uint64_t bytes = FAULT_AROUND_DEFAULT;

	if (f) {
		if (fscanf(f, "%" SCNu64, &bytes) != 1)
			bytes = FAULT_AROUND_DEFAULT;
		fclose(f);
	}
	return bytes;
}

uint64_t oracle_windows(uint64_t addr, uint64_t page_size, uint64_t vma_pages, uint64_t window,
			uint64_t table, const struct order *order)
{
	/* Page numbers counted from the start of the page table that holds addr. */
	uint64_t base = addr / page_size % table;
	uint64_t k, page, slot, from, to, windows = 0;
	unsigned char *mapped = calloc(vma_pages ? vma_pages : 1, 1);

	if (!mapped)
		return UINT64_MAX;
	window = MAX(MIN(window, table), 1);
	for (k = 0; k < order->n; k++) {
		page = order_page(order, k);
		if (mapped[page])
			continue;
		windows++;
		slot = base + page;
		from = MAX(slot - slot % window, base);
		to = MIN(from + window, slot - slot % table + table);
		to = MIN(to, base + vma_pages);
		memset(mapped + (from - base), 1, to - from);
	}
	free(mapped);
	return windows;
}
