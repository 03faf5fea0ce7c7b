/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_LOCK_FAULT_H
#define MMSCOPE_LOCK_FAULT_H

/* The waits of a task, and what of the fault in progress is waiting. */

#define WAITS_MAX	4	/* waits inside waits that are told apart */

/* Where a wait is seen: its end is matched by that and the lock. */
enum wait_site {
	SITE_EVENT,		/* contention_begin */
	SITE_READ, SITE_WRITE,	/* rwsem_down_read_slowpath() and its like */
	SITE_FOLIO, SITE_RETRY, SITE_BIT,
	SITE_SLEEP,
	SITE_VMA, SITE_VMA_OTHER,
	SITE_SPIN,
};

struct wait {
	u64 lock, start;
	u64 sp;			/* of the probe's frame: what lies deeper has returned */
	u32 slot;		/* SLOT_NONE: not counted, an outer one is */
	u32 row, stack;
	u32 cost;		/* ns that our program took; 0: it was not timed */
	u8 site, part;
};

struct task_waits {
	u32 run;		/* the value of `observing` that the rest is of */
	u32 depth;
	u64 fault;		/* number of the fault that waited for a folio; 0: none did */
	u64 within;		/* of the path that waits are asked for: its frame; 0: not in it */
	struct wait wait[WAITS_MAX];
};

_Static_assert(sizeof(struct task_waits) <= LOCK_SPINS_SIZE, "what probes tells");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_waits);
} waits SEC(".maps");

/* Waits that began before observing was switched off are void. */
static __always_inline bool waits_valid(const struct task_waits *t)
{
	return t->run == observing;
}

static __always_inline void waits_fresh(struct task_waits *t)
{
	if (waits_valid(t))
		return;
	t->run = observing;
	t->depth = 0;
	t->fault = 0;
}

static __always_inline u32 waits_depth(const struct task_waits *t)
{
	return t && waits_valid(t) ? t->depth : 0;
}

/* Faults of the task that are done, and 1: the one that it is in, if it is in one. */
static __always_inline u64 fault_number(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return task->min_flt + task->maj_flt + 1;
}

/* A wait for a folio: is it that of a fault, which may give up its lock for it? */
static __always_inline void fault_waits(struct task_waits *t)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());

	if (EXCEPTION_REGS(regs))
		t->fault = fault_number();
}

static __always_inline bool fault_has_waited(void)
{
	struct task_waits *t;

	t = bpf_task_storage_get(&waits, bpf_get_current_task_btf(), 0, 0);
	return t && waits_valid(t) && t->fault == fault_number();
}

/*
 * A wait within no other one ended. What was there of an earlier fault is void: a fault
 * starts without a look at this, and has none of it when nothing was waited for.
 */
static __always_inline void parts_wait(u32 part, u64 ns)
{
	struct task_state *st = state_find();
	u32 i;

	if (!st)
		return;
	if (!st->waited)
		for (i = 0; i < PART_MAX; i++)
			st->waited_ns[i] = 0;
	st->waited = 1;
	st->waited_ns[clamp(part, PART_MAX)] += ns;
}

/* A fault that waited is completed: its latency is counted, and this is part of it. */
static __always_inline void parts_count(struct task_state *st)
{
	u32 i;

	st->waited = 0;
	for (i = 0; i < PART_MAX; i++)
		if (st->waited_ns[i])
			count(METRIC_FAULT_WAITED, slot_at(SLOT_BASE_PART + i), st->waited_ns[i]);
}

static __always_inline u8 part_of(u32 class)
{
	switch (class) {
	case CLASS_MMAP_LOCK:
		return PART_MMAP_LOCK;
	case CLASS_VMA_LOCK:
		return PART_VMA_LOCK;
	case CLASS_PAGE_TABLE:
	case CLASS_PAGE_TABLE_PMD:
		return PART_PAGE_TABLE;
	case CLASS_I_PAGES:
		return PART_I_PAGES;
	case CLASS_FOLIO:
		return PART_FOLIO;
	default:
		return PART_OTHER;
	}
}

#endif
