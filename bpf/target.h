/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_TARGET_H
#define MMSCOPE_TARGET_H

/* Who is observed, and the state of each task. */

#include "count.h"

/* ---- set by the loader before the programs are verified ---- */

const volatile __u16 slot_of[SLOT_TOTAL];		/* raw label combination -> dense slot */
const volatile __u64 known_ops[KNOWN_OPS_MAX];	/* addresses of vm_operations_structs */
const volatile __u8 known_ops_backing[KNOWN_OPS_MAX];
const volatile bool observe_all;		/* every task that fits, not only marked ones */
const volatile bool observe_cgroup;		/* fits: it is in the cgroup, or below */
const volatile bool observe_comm;		/* fits: it has this name */
const volatile __u64 target_comm[2];
const volatile bool read_memory;		/* bpf_probe_read_kernel() is permitted */
const volatile bool have_pte_lock;		/* PTE_LOCK is attached */
const volatile bool swap_install_has_nr;	/* folio_add_anon_rmap_ptes() */
const volatile bool have_insert_rmap;	/* INSERT_RMAP is attached */
const volatile bool rmap_has_nr;	/* folio_add_file_rmap_ptes(), not page_add_file_rmap() */
const volatile bool unmap_has_nr;	/* folio_remove_rmap_ptes(), not page_remove_rmap() */
const volatile bool pte_install_has_nr;		/* set_pte_range(), not do_set_pte() */
const volatile __u32 by_label = LABEL_MAX;	/* the open label that is counted, too */
const volatile __u64 pid_ns_dev, pid_ns_inode;	/* of whoever reads the numbers; 0: the initial */
const volatile __u32 yield_pages;	/* of a fault-around window that is only thought; 0: none */
const volatile bool fault_parts;		/* ... and faults: what of them is waiting */
const volatile bool lock_domain;		/* waits for locks are counted */
const volatile bool reconcile;			/* resident sets are read */
const volatile bool uffd_vma_third;	/* argument of mfill_atomic_install_pte(), not second */
const volatile bool zap_scan;			/* page tables are read before they are emptied */
const volatile __u32 page_shift = 12;
const volatile __u32 pmd_order = 9;

/* ---- changed while running ---- */

__u32 observing;			/* 0: nothing is counted; a number of its own each time */
__u8 inferred[METRIC_MAX * SLOT_BASE_FAULT];	/* [metric][slot]: at least one was inferred */
__u64 array_ops;			/* vm_ops of a BPF array that was mapped */
__u32 by_used;				/* slots of the open label in use */
__u32 collapsing;			/* tasks that may be in COLLAPSE_PTES */

struct task_state {
	struct task_mark mark;	/* first */
	u32 run;		/* the value of `observing` that the rest is of */
	/* the attempt in progress */
	u8 active, backing, trigger;
	u32 flags;		/* FAULT_FLAG_ */
	u64 vma, address, attempt_start;
	u32 attempt_ptes, attempt_locks, wp_locks;
	/* one store clears each of these */
	u8 skip_anon, pmd;
	u8 paths;		/* PATH_ bits: rare functions that it came through */
	u8 lock_empty;		/* a lock was taken and the PTE was none */
	/* the logical fault */
	u8 retrying, method, fault_inferred, uffd_waited;
	u8 write, private_write;
	u8 waited;		/* for locks: waited_ns is of this fault */
	u8 refusal;		/* the reason if the VMA lock does not do; REASON_MAX: none */
	u8 finding;		/* in the mmap_lock path, from user space */
	u32 fault_ptes;
	u64 fault_start;
	u64 waited_ns[PART_MAX];
	/* the page-table-lock hold */
	u32 hold_ptes, hold_slot;
	u32 locks;
	/* the fault-around window, while in it */
	u32 window_ptes, window_inside;
	u64 window_start, window_end, vmf;
	/* of a window that is only thought: the address space, and where it could lie */
	u64 yield_mm;
	u32 yield_first, yield_end;
	/* where a hugetlb page goes, and what was there */
	u64 huge_pte, huge_before;
	/* scopes */
	u64 populate_start, populate_end;
	u64 eager_vma, insert_vma, insert_num;
	u32 insert_locks, insert_pages;
	u8 eager_backing, insert_backing;
	u8 insert_counts;	/* INSERT_RMAP adds to insert_pages */
	u8 scoped;		/* one of these may be in progress: see leave_scopes() */
	u8 ops_backing;
	u64 ops, ops_file;	/* the vm_ops and file that ops_backing is of */
	u32 by_slot;		/* of the open label, from 1; 0: none */
	u64 by_word[2];		/* it is the slot of these */
	/* an address space or a part of it that is torn down */
	u64 exit_mm, exit_start, munmap_start;
	u64 zap_mm, zap_start, zap_end;		/* zap_end 0: none is */
	u64 zap_table;
	s64 zap_before;
	u32 zap_present, zap_resident;
	u8 zap_seen, zap_pmd, zap_rss, zap_backing;
	/* work on an address space, maybe of somebody else */
	u8 uffd_install, migrating, mapping_huge;
	u32 collapse_new, collapse_left;
	u64 unuse_mm, unmap_folio;
	s64 unuse_before, unmap_before;
};

#define PATH_WP		0x1	/* a write to what may not be written */
#define PATH_SWAP	0x2	/* the PTE is neither empty nor present */
#define PATH_NUMA	0x4	/* NUMA balancing had taken access away */
#define PATH_WP_ZERO	0x8	/* ... and the PTE was of the zero page, or of a frame */

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} cgroup SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct by_counts);
} by_counts SEC(".maps");

/* Value of the open label -> its slot. Looked up when a task's value changes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct by_key);
	__type(value, struct by_value);
} by_slots SEC(".maps");

/* ---- label arithmetic ---- */

/* Of values that are in range: slot_at() checks what comes of them. */
static __always_inline u32 fault_index(u32 backing, u32 method, u32 trigger)
{
	return (backing * METHOD_MAX + method) * TRIGGER_MAX + trigger;
}

/* The dense slot of a raw index, base included. */
static __always_inline u32 slot_at(u64 raw)
{
	return slot_of[clamp(raw, SLOT_TOTAL)];
}

static __always_inline u32 attempt_slot(u32 backing, u32 trigger)
{
	return slot_at(SLOT_BASE_ATTEMPT + backing * TRIGGER_MAX + trigger);
}

static __always_inline u32 refused_slot(u32 backing, u32 reason)
{
	return slot_at(SLOT_BASE_REFUSED + backing * REASON_MAX + reason);
}

static __always_inline u32 reason_slot(u32 reason)
{
	return slot_at(SLOT_BASE_REASON + reason);
}

static __always_inline u32 outcome_slot(u32 backing, u32 outcome)
{
	return slot_at(SLOT_BASE_OUTCOME + backing * OUTCOME_MAX + outcome);
}

static __always_inline u32 backing_slot(u32 backing)
{
	return slot_at(SLOT_BASE_BACKING + backing);
}

static __always_inline void mark_inferred(enum metric_id metric, u32 slot)
{
	u64 index = clamp(metric * SLOT_BASE_FAULT + slot, sizeof(inferred));

	/* Written once: no shared line is dirtied per event. */
	if (slot != SLOT_NONE && !inferred[index])
		inferred[index] = 1;
}

/* The process's number as whoever reads it knows it, and when it started. */
static __always_inline void process_key(struct by_key *key, u32 *pid)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct bpf_pidns_info ns;

	*pid = bpf_get_current_pid_tgid() >> 32;
	key->word[0] = *pid;
	key->word[1] = task->group_leader->start_time;
	if (pid_ns_inode && !bpf_get_ns_current_pid_tgid(pid_ns_dev, pid_ns_inode, &ns, sizeof(ns)))
		*pid = ns.tgid;
}

/* Find or make the slot of an open label's value: only when the task's has changed. */
static __noinline void by_find(struct task_state *st, u64 a, u64 b, u64 name)
{
	struct by_key key = { { a, b } };
	struct by_value fresh = { 0 }, *found;

	st->by_word[0] = a;
	st->by_word[1] = b;
	if (by_label == LABEL_PID)
		process_key(&key, &fresh.pid);
	found = bpf_map_lookup_elem(&by_slots, &key);
	if (!found && by_used < BY_OTHER) {
		if (name && read_memory)
			bpf_probe_read_kernel_str(fresh.name, sizeof(fresh.name), (void *)name);
		fresh.slot = __sync_fetch_and_add(&by_used, 1);
		if (fresh.slot < BY_OTHER)
			bpf_map_update_elem(&by_slots, &key, &fresh, BPF_NOEXIST);
		found = bpf_map_lookup_elem(&by_slots, &key);
	}
	if (found && by_label == LABEL_PID)
		bpf_get_current_comm(found->name, 16);
	st->by_slot = (found ? found->slot : BY_OTHER) + 1;
}

static __always_inline void by_pick(struct task_state *st, u64 a, u64 b, u64 name)
{
	if (!st->by_slot || st->by_word[0] != a || st->by_word[1] != b)
		by_find(st, a, b, name);
	if (st->by_slot == BY_OTHER + 1)
		count_trust(TRUST_BY_FULL);
}

/* Whose the task's next counts are, of no mapping. */
static __always_inline void by_select_none(struct task_state *st)
{
	u64 word[2] = { 0 };

	if (by_label == LABEL_MAX)
		return;
	if (by_label == LABEL_VM_OPS) {
		st->by_slot = 0;
		return;
	}
	/* A process's name changes when it becomes another program. */
	if (by_label == LABEL_PID || by_label == LABEL_COMM)
		bpf_get_current_comm(word, sizeof(word));
	by_pick(st, word[0], word[1], 0);
}

/*
 * Whose or what the task's next counts are. The mapping is not compared with NULL: the
 * verifier of 6.1 would follow the branch in which a typed pointer is none.
 */
static __always_inline void by_select(const bool typed, struct task_state *st,
				      struct vm_area_struct *vma, u32 backing)
{
	u64 word[2] = { 0 }, name = 0;
	struct file *file;

	if (by_label == LABEL_VM_OPS) {
		word[0] = (u64)READ(vma, vm_ops);
	} else if (by_label == LABEL_FILE) {
		file = READ(vma, vm_file);
		if (file) {
			struct inode *inode = READ(file, f_inode);
			struct super_block *sb = READ(inode, i_sb);
			struct dentry *dentry = READ(file, f_path.dentry);

			word[0] = READ(inode, i_ino);
			word[1] = READ(sb, s_dev);
			name = (u64)READ(dentry, d_name.name);
		}
	} else if (by_label == LABEL_MAP) {
		/* private_data has no type of its own: not under lockdown. */
		if (read_memory && backing >= BACKING_BPF_ARRAY && backing <= BACKING_BPF_ARENA) {
			struct bpf_map *map = BPF_CORE_READ(vma, vm_file, private_data);

			word[0] = BPF_CORE_READ(map, id);
			name = (u64)map + bpf_core_field_offset(map->name);
		}
	} else if (by_label != LABEL_ORDER) {	/* known when something is installed */
		by_select_none(st);
		return;
	}
	by_pick(st, word[0], word[1], name);
}

static __always_inline void count_by(struct task_state *st, enum metric_id metric, u64 n, u64 sum)
{
	struct by_counts *c;
	u32 slot;

	if (by_label == LABEL_MAX || !st->by_slot)
		return;
	slot = st->by_slot - 1;
	c = bpf_map_lookup_elem(&by_counts, &slot);
	if (!c) {
		count_trust(TRUST_MAP_FULL);
		return;
	}
	__sync_fetch_and_add(&c->count[metric], n);
	__sync_fetch_and_add(&c->sum[metric], sum);
}

/* ---- tasks ---- */

/* What began before observing was switched off does not end after it is on again. */
static __noinline void state_void(struct task_state *st, u32 run)
{
	struct task_mark mark = st->mark;

	__builtin_memset(st, 0, sizeof(*st));
	st->mark = mark;
	st->run = run;
}

static __always_inline void state_fresh(struct task_state *st)
{
	u32 run = observing;

	if (st->run != run)
		state_void(st, run);
}

/* It does not collapse, or no longer: whatever it does now comes after that. */
static __always_inline void collapse_over(struct task_state *st)
{
	if (!st->collapse_left)
		return;
	st->collapse_left = 0;
	__sync_fetch_and_add(&collapsing, -1);
}

/*
 * State of the current task if it is observed. Most of the others have no storage of
 * any program: that is one load, and the look-up a call.
 */
static __always_inline struct task_state *state_find(void)
{
	struct task_struct *task;
	struct task_state *st;

	if (!observing)
		return 0;
	task = bpf_get_current_task_btf();
	if (bpf_core_field_exists(task->bpf_storage) && !(u64)task->bpf_storage)
		return 0;
	st = bpf_task_storage_get(&tasks, task, 0, 0);
	if (!st || st->mark.role != ROLE_TARGET)
		return 0;
	state_fresh(st);
	return st;
}

/* When every task is asked: is the current one meant? It may be so from now on only. */
static __always_inline bool task_fits(void)
{
	u64 comm[2] = { 0 };	/* before 6.2 the helper does not fill it */

	if (observe_cgroup && bpf_current_task_under_cgroup(&cgroup, 0) != 1)
		return false;
	if (!observe_comm)
		return true;
	bpf_get_current_comm(comm, sizeof(comm));
	return comm[0] == target_comm[0] && comm[1] == target_comm[1];
}

/* The same, made when every task is a target. For events that start something. */
static __always_inline struct task_state *state_get(void)
{
	struct task_state *st;

	if (!observe_all)
		return state_find();
	if (!observing)
		return 0;
	if ((observe_cgroup || observe_comm) && !task_fits()) {
		/* It did before: what it starts now has no end that counts. */
		st = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
		if (st)
			st->mark.role = ROLE_NONE;
		return 0;
	}
	st = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0,
				  BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!st) {
		count_trust(TRUST_LOST);
		return 0;
	}
	st->mark.role = ROLE_TARGET;
	state_fresh(st);
	return st;
}

static __always_inline void fork_copied(struct task_struct *parent, struct task_struct *child);

/*
 * task_newtask(task, clone_flags), in the parent before the child runs; unlike
 * sched_process_fork it sees io_uring's workers as well.
 */
SEC("tp_btf/task_newtask")
int FORK__tp_btf(u64 *ctx)
{
	struct task_struct *parent = bpf_get_current_task_btf(), *child = (void *)ctx[0];
	struct task_state *st;

	if (observe_all) {
		fork_copied(parent, child);
		return 0;
	}
	st = bpf_task_storage_get(&tasks, parent, 0, 0);
	if (!st || st->mark.role == ROLE_NONE || st->mark.alone)
		return 0;
	fork_copied(parent, child);
	st = bpf_task_storage_get(&tasks, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (st)
		st->mark.role = ROLE_TARGET;
	else
		count_trust(TRUST_LOST);
	return 0;
}

__u32 mark_only;	/* mark who is visited, and not its children */
__u32 marked;

/* Visits tasks that run already: each, or one that the loader names. */
SEC("iter/task")
int mark_tasks(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[1];
	struct task_state *st;

	if (!task)
		return 0;	/* the end */
	if (!mark_only) {
		st = bpf_task_storage_get(&tasks, task->group_leader, 0, 0);
		if (!st || !st->mark.whole)
			return 0;
	}
	st = bpf_task_storage_get(&tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!st) {
		count_trust(TRUST_LOST);
	} else if (st->mark.role != ROLE_TARGET) {
		st->mark.role = ROLE_TARGET;
		st->mark.alone = mark_only;
		marked++;
	}
	return 0;
}

/* ---- what a mapping is backed by ---- */

static __always_inline u32 classify_slow(const bool typed, struct vm_area_struct *vma,
					 const struct vm_operations_struct *ops, u64 vm_flags)
{
	struct super_block *sb;
	struct inode *inode;
	struct file *file;
	u32 i;

	if (vm_flags & VM_HUGETLB)
		return BACKING_HUGETLB;
	if (array_ops && array_ops == (u64)ops)
		return BACKING_BPF_ARRAY;
	for (i = 0; i < KNOWN_OPS_MAX; i++)
		if (known_ops[i] && known_ops[i] == (u64)ops)
			return known_ops_backing[i];
	if (vm_flags & (VM_PFNMAP | VM_IO))
		return BACKING_DEVICE;
	file = READ(vma, vm_file);
	if (!file)
		return BACKING_OTHER;
	inode = READ(file, f_inode);
	sb = READ(inode, i_sb);
	if (READ(sb, s_magic) == TMPFS_MAGIC)
		return BACKING_SHMEM;
	if (READ(sb, s_magic) == GUEST_MEMFD_MAGIC)
		return BACKING_GUEST_MEMFD;	/* its vm_ops are a module's, loaded at any time */
	return (READ(inode, i_mode) & S_IFMT) == S_IFREG ? BACKING_FILE : BACKING_OTHER;
}

static __always_inline u32 classify(const bool typed, struct task_state *st,
				    struct vm_area_struct *vma,
				    const struct vm_operations_struct *ops, u64 vm_flags)
{
	u64 file;

	if (!ops)
		return BACKING_ANON;
	file = (u64)READ(vma, vm_file);
	if (st->ops != (u64)ops || st->ops_file != file) {
		st->ops = (u64)ops;
		st->ops_file = file;
		st->ops_backing = classify_slow(typed, vma, ops, vm_flags);
	}
	return st->ops_backing;
}

#endif
