/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_SHARED_H
#define MMSCOPE_SHARED_H

/*
 * What the programs and the loader agree on beyond the tables of tools/data.
 * Includable from both.
 */
#include "data/events.h"
#include "data/hist.h"
#include "data/labels.h"
#include "data/metrics.h"

/* Trust counters, kept behind the metrics' counters. */
enum trust_counter {
	TRUST_UNMATCHED = COUNTERS_MAX - 5,
	TRUST_LOST,		/* no memory for the task: what it did is not counted */
	TRUST_MAP_FULL,		/* a combination of labels without a slot: not counted */
	TRUST_BY_FULL,		/* counted, but under BY_OTHER */
	TRUST_COLLAPSES,	/* COLLAPSE_PTES began: else no run of COLLAPSE_RMAP matters */
};

/* task_state.role */
enum task_role {
	ROLE_NONE,
	ROLE_PARENT,	/* not observed itself, but what it forks is */
	ROLE_TARGET,
};

/* Starts a task's state; the loader writes it. */
struct task_mark {
	unsigned char role;
	unsigned char whole;	/* of a process's first thread: the others are targets, too */
	unsigned char alone;	/* its children are not */
	unsigned char pad;
};

/* task_state.zap_rss: how much the resident set shrinks */
enum zap_rss {
	ZAP_RSS_NONE,		/* not, or it is not known */
	ZAP_RSS_SEEN,		/* by what is found in the page tables */
	ZAP_RSS_COUNTED,	/* by the counters before and after */
};

#define MEMCG_LOCKS	4	/* static locks of memory cgroups */
#define MEMCG_MEMBERS	6	/* locks of each of them */
#define LOCK_ROWS	1024	/* power of two */
#define LOCK_ROW_REST	(LOCK_ROWS - 1)
#define ROW_NONE	0xffffffffU

/* A lock that has no class of its own, or a value of the open label. */
struct lock_row {
	hist_u64 key;		/* 0: not in use */
	hist_u64 lock;		/* its address, if it is no part of a slab object */
	unsigned int offset, pid;
	char name[32];		/* of the slab cache, or of the process */
};

/* Room for the waits of interrupts: of each CPU, struct task_waits. */
#define LOCK_SPINS_SIZE	512

struct lock_row_counts {
	hist_u64 begun, ended, ns;
	hist_u64 released;	/* given back while others waited; of stacks never */
};

/*
 * Where a task waits: compared as a whole. Frames that it has not are 0, the innermost is
 * the first. Those of user space are a row of another map, with the process that alone
 * gives their addresses a meaning.
 */
#define STACK_FRAMES	48

struct lock_trace {
	union {
		struct {	/* of the kernel */
			unsigned char class, mode, pad[2];
			unsigned int user;	/* 1 + the row of its part in user space; 0: none */
			char comm[16];
		};
		struct {	/* of user space */
			unsigned int pid, exec;
			hist_u64 started, zero;	/* nanoseconds since boot, without suspend */
		};
	};
	hist_u64 frame[STACK_FRAMES];
};

/* Powers of two; the last one is of all that have none. */
#define LOCK_STACKS	4096
#define LOCK_STACKS_USER	16384	/* with user space: each process has its own */

struct lock_stack {
	hist_u64 key;		/* 0: not in use */
	hist_u64 ready;		/* CLOCK_MONOTONIC when its trace was written; 0: not yet */
	struct lock_trace trace;
};

/*
 * Where a trace is made. Who runs may be preempted by who needs one as well, and need not
 * end after it.
 */
#define STACK_ROOMS	4

struct stack_room {
	hist_u64 taken;
	struct lock_trace trace;
};

/*
 * Storage on one CPU: of the histograms of a metric of batches and of the one beside it
 * (METRIC_LANE()), and of one of times. The count is the sum of the buckets.
 */
struct batch_pair {
	hist_u64 sum[2];
	hist_u64 bucket[HIST_BATCH_BUCKETS][2];
};

struct time_kinds {
	hist_u64 kind[KIND_MAX];	/* of fault_latency: fault_completed */
	hist_u64 sum;
	hist_u64 bucket[HIST_TIME_BUCKETS];
};

/*
 * Of all combinations of labels few occur in one run, and the histogram of one takes
 * kilobytes for every CPU that there may be: those that occur take an element of the
 * map when they first do. PAIRS_MAX, TIMES_MAX: combinations at most; _ROOM: elements.
 */
#define PAIRS_MAX	128
#define PAIRS_ROOM	40
#define TIMES_MAX	512
#define TIMES_ROOM	96

#define YIELD_TABLES	16384	/* page tables whose windows are followed at a time */
#define KNOWN_OPS_MAX	16	/* vm_operations_struct symbols with a backing */
#define BY_SLOTS	OPEN_VALUES_MAX
#define BY_OTHER	(BY_SLOTS - 1)	/* for what comes when the others are taken */

/* An open label's value: an address, a name, or a process and when it started. */
struct by_key {
	hist_u64 word[2];
};

struct by_value {
	unsigned int slot, pid;
	char name[32];		/* of a process: its latest; of a file or a BPF map */
};

/* Per CPU and slot of an open label: number and sum of what each metric counted. */
struct by_counts {
	hist_u64 count[METRIC_MAX];
	hist_u64 sum[METRIC_MAX];
};

#endif
