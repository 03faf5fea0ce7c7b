/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_COST_H
#define MMSCOPE_COST_H

#include <stdint.h>

#include "data/run.h"

/*
 * How many programs ran for what was counted: the one place that knows. Of a histogram
 * the number of values counts (holds), of a counter its value (PTEs). A row counts only
 * where its event was attached.
 *
 * X(metric, method, event, runs)
 *   method  of the samples that count; METHOD_MAX: all
 */
#define COST_ROWS(X)								\
	X(FAULT_ATTEMPTS, METHOD_MAX,		FAULT_ENTRY,	1)		\
	X(FAULT_ATTEMPTS, METHOD_MAX,		FAULT_EXIT,	1)		\
	X(PTES_PER_HOLD, METHOD_MAX,		PTE_LOCK,	1)		\
	X(PTES_PER_HOLD, METHOD_FAULT_AROUND,	MAP_PAGES,	1)		\
	X(PTES_PER_HOLD, METHOD_FAULT_AROUND,	MAP_PAGES_END,	1)		\
	X(PTES_INSTALLED, METHOD_FAULT_AROUND,	PTE_INSTALL,	1)		\
	X(PTES_PER_HOLD, METHOD_PER_PAGE,	ANON_INSTALL,	1)		\
	X(PTES_PER_HOLD, METHOD_LARGE_FOLIO,	ANON_INSTALL,	1)		\
	X(PTES_PER_HOLD, METHOD_COW,		ANON_INSTALL,	1)		\
	X(PTES_PER_HOLD, METHOD_COW,		COW_FAULT,	1)		\
	X(PTES_PER_HOLD, METHOD_SWAP_IN,	SWAP_IN,	1)		\
	X(PTES_PER_HOLD, METHOD_SWAP_IN,	SWAP_INSTALL,	1)		\
	X(PTES_PER_HOLD, METHOD_EAGER,		EAGER_PAGE,	1)		\
	X(PTES_PER_HOLD, METHOD_EAGER,		EAGER_PAGE_END,	1)		\
	X(FAULT_COMPLETED, METHOD_REUSE,	COW_FAULT,	1)		\
	X(FAULT_COMPLETED, METHOD_NUMA_HINT,	NUMA_HINT,	1)		\
	X(FAULT_COMPLETED, METHOD_UFFD,		UFFD_WAIT,	1)		\
	X(FAULT_REFUSED, METHOD_MAX,		VMA_FIND,	1)		\
	X(FAULT_REFUSED, METHOD_MAX,		VMA_FIND_END,	1)		\
	X(PMD_MAPS,	METHOD_MAX,		PMD_ANON,	1)		\
	X(PAGE_MKWRITE,	METHOD_MAX,		MKWRITE,	1)		\
	X(LOCK_EVENTS,	METHOD_MAX,		LOCK_EVENT,	2)	/* and the end */ \
	X(LOCK_RELEASED, METHOD_MAX,		LOCK_RELEASE,	1)

/* Programs that run for a fault that maps one anonymous page, with which a run is timed. */
#define COST_OF_ANON(X)	X(FAULT_ENTRY) X(FAULT_EXIT) X(PTE_LOCK) X(ANON_INSTALL)

struct cost {
	uint64_t runs, wait_runs;	/* of programs, for the targets' faults and waits */
	uint64_t ns, wait_ns;	/* that they added: runs times what one took; 0: not known */
};

/* What observing added to a run; windows of large folios are counted page by page. */
struct cost cost_of(const struct run *run);

#endif
