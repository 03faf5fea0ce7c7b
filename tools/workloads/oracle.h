/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_ORACLE_H
#define MMSCOPE_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workloads/order.h"

/* RssAnon, RssFile and RssShmem of /proc/self/status, in KiB. */
struct oracle_rss {
	int64_t anon, file, shmem;
};

/* What the kernel itself says of a mapping. */
struct lap_oracle {
	uint64_t addr;			/* of the (first) mapping */
	uint64_t present;		/* PTEs present, from pagemap */
	uint64_t rss_kib;		/* from smaps: Rss, ... */
	uint64_t anon_huge_kib;		/* AnonHugePages */
	uint64_t shmem_pmd_kib;		/* ShmemPmdMapped */
	uint64_t file_pmd_kib;		/* FilePmdMapped */
	uint64_t hugetlb_kib;		/* Private_Hugetlb and Shared_Hugetlb, not in Rss */
	struct oracle_rss rss;		/* what the process has more than before the laps */
};

/* /proc/self/pagemap and smaps, opened, with buffers that are present. */
struct oracle;

struct oracle *oracle_open(void);	/* NULL with errno */
void oracle_close(struct oracle *o);

/*
 * Add what is mapped in [addr, addr + len) to *sum (addr: of the first call, so
 * that several mappings of one lap add up). Takes no page fault. -1 with errno.
 */
int oracle_read(struct oracle *o, const void *addr, size_t len, struct lap_oracle *sum);

/* The process's counters now. -1 with errno. */
int oracle_rss(struct oracle *o, struct oracle_rss *rss);

/*
 * Are those counters exact on this kernel? They are kept per CPU or per task, and
 * many releases show the total without what is pending there. Found out by trial:
 * each of a few pages must be seen as it comes.
 */
bool oracle_rss_is_exact(struct oracle *o);

/* pgfault of /proc/vmstat: page faults of the whole system since boot. -1 with errno. */
int oracle_pgfault(struct oracle *o, uint64_t *faults);

/* Bytes; the kernel's default where debugfs does not show it. */
uint64_t oracle_fault_around_bytes(void);

/*
 * smaps as a stream: feed it text in any pieces, it sums the fields of the
 * mappings that overlap [start, end).
 */
struct smaps {
	uint64_t start, end;
	bool inside;		/* the current mapping overlaps */
	size_t len;
	char line[128];		/* the beginning of the current line */
	struct lap_oracle *sum;
};

void smaps_feed(struct smaps *s, const char *text, size_t len);

/*
 * The fault-around windows that the read touches of `order` ask for in a file
 * mapping of `vma_pages` pages at `addr`, if all of the file is cached in small
 * folios: each touch of a page that is not yet mapped asks for one window, which
 * starts at a multiple of `window` pages or at the mapping's start, and ends
 * `window` pages later, at the mapping's end or at the end of the page table,
 * whichever comes first. window and table are pages, window a power of two.
 * UINT64_MAX if there is no memory to compute it.
 */
uint64_t oracle_windows(uint64_t addr, uint64_t page_size, uint64_t vma_pages, uint64_t window,
			uint64_t table, const struct order *order);

#endif
