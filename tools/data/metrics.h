/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_METRICS_H
#define MMSCOPE_METRICS_H

/*
 * The metrics, one row each: the only place that knows them. Text columns,
 * JSON, `mmscope list`, the metric reference and the BPF storage derive from
 * the row. Includable from BPF: no libc.
 *
 * X(id, name, domain, kind, unit, shape, better, exact, primary, align, margin, events, named,
 *   help)
 *   domain  FAULT, LOCK; ALL: where all of them are observed
 *   kind    COUNTER, TIME (histogram of nanoseconds), BATCH (histogram of
 *           small whole numbers), RATIO (derived: see metrics.c)
 *   better  LOWER, HIGHER or NEITHER: the direction that diff calls better
 *   exact   1 when a workload of known work must always give the same value
 *   primary 1 when it decides a comparison unless the user names others
 *   align   what may differ between runs of the same work because fault-around's
 *           windows lie otherwise: NONE, FAULTS (one for the window, one for each
 *           page table) or PAGES (as many windows)
 *   margin  per cent: a smaller change is no change when it is compared with
 *           statistics, which exact counts are not
 *   events  the events (data/events.h) whose runs count it: all are needed, and
 *           their lost runs widen the value to an interval
 *   named   further events that only tell its labels: a lost run of theirs leaves
 *           the sum right but may put a count under another label
 */
#define EVENT_BIT(e)	((event_set)1 << (e))
#define EV(x)	EVENT_BIT(EVENT_##x)

/* set_pte_range(), and its like for pages that no page cache has. */
#define EV_INSTALL	(EV(PTE_INSTALL) | EV(RUN_INSTALL))

#define NAMES_TRIGGER	(EV(POPULATE) | EV(POPULATE_END))
#define NAMES_METHOD	(NAMES_TRIGGER | EV_INSTALL | EV(ANON_INSTALL) | EV(MAP_PAGES) | \
			 EV(MAP_PAGES_END) | EV(COW_FAULT) | EV(PMD_FILE) | EV(PMD_ANON) | \
			 EV(BPF_MMAP) | EV(BPF_MMAP_END) | EV(ARRAY_MMAP) | \
			 EV(COW_HUGE) | EV(SWAP_IN) | EV(SWAP_INSTALL) | EV(UFFD_WAIT) | \
			 EV(NUMA_HINT) | EV(HUGETLB_PTE) | EV(PFN_INSTALL))

/* Installs in faults, and those that mmap() makes. */
#define SEES_IN_FAULTS	(EV(FAULT_ENTRY) | EV(FAULT_EXIT) | EV_INSTALL | EV(ANON_INSTALL) | \
			 EV(PTE_LOCK) | EV(SWAP_INSTALL) | EV(PFN_INSTALL))
#define SEES_EAGER	(EV(EAGER_PAGE) | EV(EAGER_PAGE_END) | EV(EAGER_PAGES) | \
			 EV(EAGER_PAGES_END) | EV(INSERT_RMAP) | EV(REMAP) | \
			 EV(REMAP_ACTION) | EV(REMAP_END))

/* Address spaces that are observed, and their counters. */
#define RESIDENT	(EV(RSS_WALK) | EV(MAP_PAGES_READ))

#define WAITS_BEGIN	(EV(LOCK_EVENT) | EV(READ_WAIT) | EV(WRITE_WAIT) | EV(FOLIO_WAIT) | \
			 EV(FOLIO_RETRY) | EV(FOLIO_BIT) | EV(FOLIO_SLEEP) | EV(VMA_WAIT) | \
			 EV(SPIN_WAIT))
#define WAITS_END	(EV(LOCK_EVENT_END) | EV(READ_WAIT_END) | EV(WRITE_WAIT_END) | \
			 EV(FOLIO_WAIT_END) | EV(FOLIO_RETRY_END) | EV(FOLIO_BIT_END) | \
			 EV(FOLIO_SLEEP_END) | EV(VMA_WAIT_END) | EV(SPIN_WAIT_END))

#define METRICS(X)								\
	X(FAULT_ATTEMPTS, "fault_attempts", FAULT, COUNTER, "calls", ATTEMPT,	\
	  LOWER, 1, 0, FAULTS, 1, EV(FAULT_ENTRY), NAMES_TRIGGER,	\
	  "calls of handle_mm_fault")						\
	X(FAULT_COMPLETED, "fault_completed", FAULT, COUNTER, "faults", COMPLETED, \
	  LOWER, 1, 1, FAULTS, 1, EV(FAULT_ENTRY) | EV(FAULT_EXIT), NAMES_METHOD,	\
	  "logical faults that succeeded, after all their attempts")		\
	X(FAULT_FAILED, "fault_failed", FAULT, COUNTER, "faults", ATTEMPT,	\
	  LOWER, 1, 0, NONE, 1, EV(FAULT_ENTRY) | EV(FAULT_EXIT), NAMES_TRIGGER,	\
	  "faults that ended in an error (SIGBUS, SIGSEGV, out of memory)")	\
	X(FAULT_RETRIED, "fault_retried", FAULT, COUNTER, "calls", ATTEMPT,	\
	  LOWER, 0, 0, NONE, 3, EV(FAULT_ENTRY) | EV(FAULT_EXIT), NAMES_TRIGGER,	\
	  "attempts that dropped their lock to wait (I/O, userfaultfd) and ran again") \
	X(FAULT_REFUSED, "fault_refused", FAULT, COUNTER, "calls", REFUSED,	\
	  LOWER, 1, 0, NONE, 1, EV(FAULT_ENTRY) | EV(FAULT_EXIT) | EV(VMA_FIND) | \
	  EV(VMA_FIND_END), EV(UFFD_WAIT) | EV(SWAP_IN) | EV(COW_FAULT),	\
	  "attempts refused under the per-VMA lock, by reason")			\
	X(FAULT_LATENCY, "fault_latency", FAULT, TIME, "ns", FAULT,		\
	  LOWER, 0, 0, NONE, 3, EV(FAULT_ENTRY) | EV(FAULT_EXIT), NAMES_METHOD,	\
	  "first attempt to completion of a logical fault")			\
	X(FAULT_ATTEMPT_LATENCY, "fault_attempt_latency", FAULT, TIME, "ns", OUTCOME, \
	  LOWER, 0, 0, NONE, 3, EV(FAULT_ENTRY) | EV(FAULT_EXIT), 0,	\
	  "one call of handle_mm_fault, of faults that took several or failed, by outcome") \
	X(PTES_INSTALLED, "ptes_installed", FAULT, COUNTER, "ptes", INSTALL,	\
	  NEITHER, 1, 0, PAGES, 1, SEES_IN_FAULTS | SEES_EAGER, NAMES_METHOD, \
	  "page-table entries installed by faults and at mmap time")		\
	X(PTES_PER_HOLD, "ptes_per_hold", FAULT, BATCH, "ptes", INSTALL,	\
	  HIGHER, 1, 1, FAULTS, 1, SEES_IN_FAULTS | SEES_EAGER, NAMES_METHOD, \
	  "PTEs installed per acquisition of the page-table lock")		\
	X(PTES_PER_FAULT, "ptes_per_fault", FAULT, BATCH, "ptes", INSTALL,	\
	  HIGHER, 1, 0, FAULTS, 1, SEES_IN_FAULTS, NAMES_METHOD,	\
	  "PTEs installed per logical fault that installed any")		\
	X(PMD_MAPS, "pmd_maps", FAULT, COUNTER, "maps", ATTEMPT,		\
	  HIGHER, 1, 0, NONE, 1, EV(FAULT_ENTRY) | EV(PMD_FILE) | EV(PMD_ANON) | \
	  EV(ANON_INSTALL) | EV(HUGETLB_PTE), NAMES_TRIGGER,			\
	  "huge pages mapped by one entry of a higher table")					\
	X(PAGE_MKWRITE, "page_mkwrite", FAULT, COUNTER, "calls", BACKING,	\
	  LOWER, 1, 0, NONE, 1, EV(FAULT_ENTRY) | EV(MKWRITE), 0,		\
	  "calls of ->page_mkwrite: a file system told of a page's first write")	\
	X(FAULT_AROUND_ASKED, "fault_around_asked", FAULT, COUNTER, "pages", BACKING, \
	  NEITHER, 1, 0, PAGES, 1, EV(FAULT_ENTRY) | EV(MAP_PAGES) | EV(RUN_INSTALL), 0, \
	  "pages of the windows that fault-around was asked for")		\
	X(FAULT_AROUND_MAPPED, "fault_around_mapped", FAULT, COUNTER, "ptes", BACKING, \
	  HIGHER, 1, 0, PAGES, 1, EV(FAULT_ENTRY) | EV(MAP_PAGES) | EV(MAP_PAGES_END) | \
	  EV_INSTALL, 0,	\
	  "PTEs that fault-around installed (a large folio may exceed its window)") \
	X(FAULT_AROUND_PRESENT, "fault_around_present", FAULT, COUNTER, "ptes", BACKING, \
	  NEITHER, 1, 0, PAGES, 1, EV(FAULT_ENTRY) | EV(MAP_PAGES) | EV(MAP_PAGES_END) | \
	  EV_INSTALL | EV(MAP_PAGES_READ), 0,	\
	  "PTEs of the windows that were present already")			\
	X(FAULT_AROUND_EXTRA, "fault_around_extra", FAULT, COUNTER, "pages", BACKING, \
	  NEITHER, 1, 0, PAGES, 1, EV(FAULT_ENTRY) | EV(FAULT_EXIT) | EV(YIELD_ZAP), 0, \
	  "pages that fault-around would map besides those that fault (--yield)") \
	X(FAULT_AROUND_TOUCHED, "fault_around_touched", FAULT, COUNTER, "pages", BACKING, \
	  NEITHER, 1, 0, PAGES, 1, EV(FAULT_ENTRY) | EV(FAULT_EXIT) | EV(YIELD_ZAP), 0, \
	  "of these, those that were touched before they were unmapped (--yield)") \
	X(PTES_RSS_UNCHANGED, "ptes_rss_unchanged", FAULT, COUNTER, "ptes", NONE,	\
	  NEITHER, 1, 0, NONE, 1, EV(FAULT_ENTRY) | EV(FAULT_EXIT) | EV(COW_FAULT) | \
	  EV(ANON_INSTALL) | EV(PTE_LOCK) | EV(PMD_ANON), 0,				\
	  "of ptes_installed, those that left RSS as it was: zero page, copy of a page") \
	X(RSS_BEFORE, "rss_before", FAULT, COUNTER, "pages", NONE,			\
	  NEITHER, 0, 0, NONE, 3, RESIDENT, 0,		\
	  "resident set of all targets when observing started")			\
	X(RSS_AFTER, "rss_after", FAULT, COUNTER, "pages", NONE,			\
	  NEITHER, 0, 0, NONE, 3, RESIDENT | EV(EXIT_MMAP) | EV(EXEC) | EV(FORK), 0,	\
	  "the same when it ended, or before that at the end of each address space")	\
	X(RSS_FORK_COPY, "rss_fork_copy", FAULT, COUNTER, "pages", NONE,		\
	  LOWER, 1, 0, NONE, 3, EV(FORK) | RESIDENT, 0,	\
	  "pages mapped into new address spaces by fork")				\
	X(RSS_UFFD, "rss_uffd_copy", FAULT, COUNTER, "pages", NONE,			\
	  NEITHER, 1, 0, NONE, 3, RESIDENT | EV(UFFD_INSTALL) | EV(UFFD_INSTALL_END), 0,	\
	  "pages that UFFDIO_COPY or UFFDIO_CONTINUE mapped")				\
	X(RSS_KHUGEPAGED, "rss_khugepaged", FAULT, COUNTER, "pages", NONE,		\
	  NEITHER, 0, 0, NONE, 3, RESIDENT | EV(COLLAPSE_SCAN) | EV(COLLAPSE) |		\
	  EV(HUGE_FILE) | EV(HUGE_FILE_END), 0,						\
	  "pages that came when khugepaged or MADV_COLLAPSE made or mapped a huge page") \
	X(RSS_SWAPOFF, "rss_swapoff", FAULT, COUNTER, "pages", NONE,			\
	  NEITHER, 0, 0, NONE, 3, EV(UNUSE) | EV(UNUSE_END) | RESIDENT, 0,	\
	  "pages that swapoff brought back")						\
	X(RSS_ZAPPED, "rss_zapped", FAULT, COUNTER, "pages", NONE,			\
	  NEITHER, 1, 0, NONE, 3, RESIDENT | EV(ZAP) | EV(ZAP_END) | EV(ZAP_PMD) | \
	  EV(RMAP_PMD) | EV(PTE_LOCK), EV(EXIT_MMAP) | EV(EXIT_MMAP_END),	\
	  "pages taken out of address spaces that live on (munmap, MADV_DONTNEED, ...)") \
	X(RSS_UNMAPPED, "rss_unmapped", FAULT, COUNTER, "pages", NONE,		\
	  LOWER, 0, 0, NONE, 3, RESIDENT | EV(UNMAP) | EV(UNMAP_END) |			\
	  EV(COLLAPSE_PTES) | EV(COLLAPSE_PTES_END) | EV(COLLAPSE_RMAP), 0,		\
	  "pages taken away by reclaim, MADV_PAGEOUT, a file's huge page, failing memory") \
	X(PAGES_MOVED, "pages_moved", FAULT, COUNTER, "pages", NONE,			\
	  NEITHER, 1, 0, NONE, 3, EV(MOVE_TABLES), 0,					\
	  "pages, present or not, of the ranges that mremap moved, and exec for its stack") \
	X(PAGES_MIGRATED, "pages_migrated", FAULT, COUNTER, "pages", NONE,		\
	  LOWER, 0, 0, NONE, 3, RESIDENT | EV(MIGRATE) | EV(MIGRATE_PTE) | \
	  EV(MIGRATE_PMD), 0,							\
	  "pages mapped again after migration, or when a large folio was split")	\
	X(PTES_ZAPPED, "ptes_zapped", FAULT, COUNTER, "ptes", BACKING,		\
	  NEITHER, 1, 0, NONE, 1, EV(ZAP) | EV(ZAP_END) | EV(PTE_LOCK) | EV(ZAP_HOLD), 0, \
	  "page-table entries removed by munmap, exit, exec, madvise, truncation")	\
	X(PTES_PER_ZAP_HOLD, "ptes_per_zap_hold", FAULT, BATCH, "ptes", BACKING,	\
	  HIGHER, 1, 0, NONE, 1, EV(ZAP) | EV(ZAP_END) | EV(PTE_LOCK) | EV(ZAP_HOLD), 0, \
	  "PTEs removed per acquisition of the page-table lock that removed any")	\
	X(PMDS_ZAPPED, "pmds_zapped", FAULT, COUNTER, "maps", BACKING,		\
	  NEITHER, 1, 0, NONE, 1, EV(ZAP) | EV(ZAP_END) | EV(ZAP_PMD) | EV(ZAP_HOLD) | \
	  EV(RMAP_PMD), 0, "huge pages removed whole")				\
	X(MUNMAP_LATENCY, "munmap_latency", FAULT, TIME, "ns", NONE,			\
	  LOWER, 0, 0, NONE, 3, EV(MUNMAP) | EV(MUNMAP_END), 0,			\
	  "one munmap(2)")								\
	X(EXIT_LATENCY, "exit_mmap_latency", FAULT, TIME, "ns", NONE,			\
	  LOWER, 0, 0, NONE, 3, EV(EXIT_MMAP) | EV(EXIT_MMAP_END), 0,			\
	  "tearing down one address space, at exit or exec")				\
	X(LOCK_CONTENDED, "lock_contended", LOCK, COUNTER, "waits", LOCK,		\
	  LOWER, 0, 1, NONE, 3, WAITS_BEGIN | WAITS_END, WITHIN,				\
	  "locks that were not had at once: waits that began")			\
	X(LOCK_WAIT, "lock_wait", LOCK, TIME, "ns", LOCK,				\
	  LOWER, 0, 1, NONE, 3, WAITS_BEGIN | WAITS_END, WITHIN,				\
	  "how long they took, of those that ended")					\
	X(LOCK_EVENTS, "lock_events", LOCK, COUNTER, "waits", MODE,			\
	  NEITHER, 0, 0, NONE, 3, WAITS_BEGIN, WITHIN,					\
	  "the same waits, counted before it is known for what lock")			\
	X(LOCK_NESTED, "lock_nested", LOCK, COUNTER, "waits", NONE,			\
	  NEITHER, 0, 0, NONE, 3, WAITS_BEGIN, WITHIN,					\
	  "waits that began within another one, whose time holds theirs")		\
	X(LOCK_RELEASED, "lock_released", LOCK, COUNTER, "calls", CLASS,			\
	  LOWER, 0, 0, NONE, 3, EV(LOCK_RELEASE), WITHIN,				\
	  "locks given back while others waited, which slept or were to: by who held them")	\
	X(FAULT_WAITED, "fault_waited", ALL, COUNTER, "ns", PART,			\
	  LOWER, 0, 0, NONE, 3, EV(FAULT_ENTRY) | EV(FAULT_EXIT) | WAITS_BEGIN | WAITS_END, 0, \
	  "of fault_latency, what was spent in waits: with both domains only")	\
	X(LOCK_INTERRUPT, "lock_interrupt_wait", LOCK, TIME, "ns", NONE,		\
	  LOWER, 0, 0, NONE, 3, EV(SPIN_WAIT) | EV(SPIN_WAIT_END) | EV(MAP_PAGES_READ), 0, \
	  "waits for spinlocks in interrupts, of the whole system: no task's")	\
	X(LOCK_PROGRAMS, "lock_programs", LOCK, TIME, "ns", NONE,			\
	  NEITHER, 0, 0, NONE, 3, WAITS_BEGIN | WAITS_END, 0,				\
	  "what our programs took for one wait, timed in a quarter of the run") \
	X(LOCK_MMAP_FAULTS, "lock_mmap_faults", LOCK, COUNTER, "calls", REASON,		\
	  LOWER, 0, 0, NONE, 3, EV(VMA_FIND) | EV(VMA_FIND_END), WAITS_BEGIN,			\
	  "attempts of faults from user space that took mmap_lock, by the reason")

/* What can be observed together or apart, as -e names it: X(id, bit, name). */
#define DOMAINS(X)	X(FAULT, 1, "fault") X(LOCK, 2, "lock")

#define DOMAIN_ENUM(id, bit, name)	DOMAIN_##id = bit,
#define DOMAIN_OR(id, bit, name)	| bit
enum metric_domain { DOMAINS(DOMAIN_ENUM) DOMAIN_ALL = 0 DOMAINS(DOMAIN_OR) };
enum metric_kind { KIND_COUNTER, KIND_TIME, KIND_BATCH, KIND_RATIO };
enum metric_better { BETTER_LOWER, BETTER_HIGHER, BETTER_NEITHER };
enum metric_align { ALIGN_NONE, ALIGN_FAULTS, ALIGN_PAGES };

#define METRIC_ENUM(id, ...)	METRIC_##id,
enum metric_id { METRICS(METRIC_ENUM) METRIC_MAX };

/*
 * Storage in BPF, per CPU: all counters are one array element; a histogram is
 * one element of its kind's map. metric_base[] says where a metric's slot 0 is.
 */
#define COUNTERS_MAX	2048	/* power of two: BPF masks the index */

/*
 * What a fault counts is counted together, by few look-ups: ptes_per_fault lies beside
 * ptes_per_hold, whose slots are the same; fault_completed, kind by kind, in the element
 * of fault_latency; and ptes_installed is the sum of ptes_per_hold.
 */
#define METRIC_LANE(id)	((id) == METRIC_PTES_PER_FAULT)

#endif
