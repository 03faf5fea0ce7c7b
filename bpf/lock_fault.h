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
	u32 row;
	u8 site, part;
};

struct task_waits {
	u32 run;		/* the value of `observing` that the rest is of */
	u32 depth;
	u32 in_fault;
	struct wait wait[WAITS_MAX];
	u64 fault_ns[PART_MAX];
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
	t->in_fault = 0;
}

static __always_inline u32 waits_depth(const struct task_waits *t)
{
	return t && waits_valid(t) ? t->depth : 0;
}

/* A logical fault starts: what an earlier one left is void. */
static __always_inline void parts_start(void)
{
	struct task_waits *t;
	u32 i;

	t = bpf_task_storage_get(&waits, bpf_get_current_task_btf(), 0,
				 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t) {
		count_trust(TRUST_LOST);
		return;
	}
	waits_fresh(t);
	for (i = 0; i < PART_MAX; i++)
		t->fault_ns[i] = 0;
	t->in_fault = 1;
}

/* It is completed: its latency is counted, and this is part of it. */
static __always_inline void parts_count(void)
{
	struct task_waits *t;
	u32 i;

	t = bpf_task_storage_get(&waits, bpf_get_current_task_btf(), 0, 0);
	if (!t || !t->in_fault)
		return;
	t->in_fault = 0;
	for (i = 0; i < PART_MAX; i++)
		if (t->fault_ns[i])
			count(METRIC_FAULT_WAITED, slot_at(SLOT_BASE_PART + i), t->fault_ns[i]);
}

/* A wait within no other one ended. */
static __always_inline void parts_wait(struct task_waits *t, u32 part, u64 ns)
{
	if (t && t->in_fault)
		t->fault_ns[clamp(part, PART_MAX)] += ns;
}

static __always_inline u8 part_of(u32 class)
{
	switch (class) {
	case CLASS_MMAP_LOCK:
		return PART_MMAP_LOCK;
	case CLASS_VMA_LOCK:
		return PART_VMA_LOCK;
	case CLASS_PAGE_TABLE:
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
