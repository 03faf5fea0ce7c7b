/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_RSS_H
#define MMSCOPE_RSS_H

/*
 * What the resident set of the observed address spaces grew by, and the ways that
 * are not faults. The counters of an address space are read where it starts and ends,
 * and where counting is switched. On a fault only one program runs, if it takes a page
 * away, as a copy does: COLLAPSE_RMAP, which returns at once.
 */

/* ---- the counters of an address space ---- */

/* include/linux/mm_types_task.h: the same in all releases. */
#define MM_FILEPAGES	0
#define MM_ANONPAGES	1
#define MM_SWAPENTS	2
#define MM_SHMEMPAGES	3

#define MEMBERS_RSS	(1u << MM_FILEPAGES | 1u << MM_ANONPAGES | 1u << MM_SHMEMPAGES)
#define MEMBERS_SWAP	(1u << MM_SWAPENTS)

#define CPUS_MAX	8192	/* CONFIG_NR_CPUS of the largest machines */

/* Its value is the offset of the per-CPU area that it is in. */
extern const unsigned long this_cpu_off __ksym __weak;

struct member_sum {
	u64 percpu[MM_SHMEMPAGES + 1];	/* 0: not asked for */
	s64 sum;
};

static long add_cpu(u64 cpu, struct member_sum *m)
{
	const unsigned long *offset = bpf_per_cpu_ptr(&this_cpu_off, cpu);
	s32 n;
	u32 i;

	if (!offset)
		return 1;	/* no such CPU: that was the last one */
	for (i = 0; i <= MM_SHMEMPAGES; i++) {
		if (m->percpu[i] &&
		    !bpf_probe_read_kernel(&n, sizeof(n), (void *)(m->percpu[i] + *offset)))
			m->sum += n;
	}
	return 0;
}

/* Before 6.2 one word each. A function of its own: its offset exists only there. */
static __noinline s64 mm_words(u64 mm, u32 members)
{
	s64 sum = 0, n;
	u32 i;

	mm += bpf_core_field_offset(struct mm_struct___old, rss_stat);
	for (i = 0; i <= MM_SHMEMPAGES; i++)
		if (members & (1u << i) &&
		    !bpf_probe_read_kernel(&n, sizeof(n), (void *)(mm + i * sizeof(n))))
			sum += n;
	return sum;
}

/* Since then a word, and a part for each CPU. */
static __noinline s64 mm_counters(u64 mm, u32 members)
{
	struct member_sum m = { 0 };
	u32 i;

	mm += bpf_core_field_offset(struct mm_struct, rss_stat);
	for (i = 0; i <= MM_SHMEMPAGES; i++) {
		u64 at = mm + i * bpf_core_type_size(struct percpu_counter);
		s64 n = 0;

		if (!(members & (1u << i)))
			continue;
		bpf_probe_read_kernel(&n, sizeof(n), (void *)
				      (at + bpf_core_field_offset(struct percpu_counter, count)));
		m.sum += n;
		at += bpf_core_field_offset(struct percpu_counter, counters);
		bpf_probe_read_kernel(&m.percpu[i], sizeof(m.percpu[i]), (void *)at);
	}
	if (&this_cpu_off)
		bpf_loop(CPUS_MAX, add_cpu, &m, 0);
	return m.sum;
}

/* Sum of some counters of an address space, in pages. Needs read_memory. */
static __always_inline s64 mm_members(u64 mm, u32 members)
{
	/*
	 * Not whether the type of the words exists: for one that the kernel has not,
	 * libbpf looks through the modules, which takes more than CAP_BPF.
	 */
	return bpf_core_field_exists(((struct task_struct *)0)->rss_stat) ?
		       mm_words(mm, members) : mm_counters(mm, members);
}

static __always_inline u64 mm_rss(u64 mm)
{
	return read_memory && mm ? mm_members(mm, MEMBERS_RSS) : 0;
}

/* Before 6.2 each thread keeps what it has not passed on yet. */
static __always_inline s64 task_kept(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->rss_stat))
		return 0;
	return (s64)task->rss_stat.count[MM_FILEPAGES] + task->rss_stat.count[MM_ANONPAGES] +
	       task->rss_stat.count[MM_SHMEMPAGES];
}

/* ---- the observed address spaces ---- */

#define MMS_MAX		16384

/* mm_struct -> the walk that saw it last. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MMS_MAX);
	__type(key, u64);
	__type(value, u32);
} mms SEC(".maps");

__u32 rss_walk;			/* number of the walk, from 1 */
__u8 rss_walk_ends;		/* it is the end of an observation, not its start */
__u64 rss_walk_pages;		/* what it found */

static __always_inline void count_one(enum metric_id metric, u64 n)
{
	count(metric, slot_at(SLOT_BASE_NONE), n);
}

static __always_inline void mm_mark(u64 mm)
{
	u32 walk = rss_walk;

	if (!observe_all && bpf_map_update_elem(&mms, &mm, &walk, BPF_ANY))
		count_trust(TRUST_LOST);
}

static __always_inline bool mm_marked(u64 mm)
{
	return observe_all || bpf_map_lookup_elem(&mms, &mm);
}

/*
 * State of whoever works on an observed address space: khugepaged, a thread that
 * serves userfaultfd, swapoff. It is no target by that.
 */
static __always_inline struct task_state *worker_get(void)
{
	struct task_state *st = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0,
						     BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (st)
		state_fresh(st);
	return st;
}

static __always_inline struct task_state *worker_find(void)
{
	struct task_state *st;

	if (!observing)
		return 0;
	st = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	if (st)
		state_fresh(st);
	return st;
}

/* Once for each task, when observing starts and when it ends. */
SEC("iter/task")
int RSS_WALK__iter(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_state *st;
	u64 mm, pages = 0;
	u32 *seen;

	if (!task || task->flags & PF_KTHREAD)
		return 0;
	mm = (u64)task->mm;
	/* Ours, which a command shares until it executes. */
	if (!mm || mm == (u64)bpf_get_current_task_btf()->mm)
		return 0;
	if (!observe_all) {
		st = bpf_task_storage_get(&tasks, task, 0, 0);
		if (!st || st->mark.role != ROLE_TARGET)
			return 0;
	}
	seen = bpf_map_lookup_elem(&mms, &mm);
	if (!seen || *seen != rss_walk) {
		u32 walk = rss_walk;

		if (bpf_map_update_elem(&mms, &mm, &walk, BPF_ANY)) {
			count_trust(TRUST_LOST);
			return 0;
		}
		pages = mm_rss(mm);
	}
	pages += task_kept(task);
	rss_walk_pages += pages;
	count_one(rss_walk_ends ? METRIC_RSS_AFTER : METRIC_RSS_BEFORE, pages);
	return 0;
}

/* sched_process_exec(task, old_pid, bprm): the address space is a new one. */
SEC("tp_btf/sched_process_exec")
int EXEC__tp_btf(u64 *ctx)
{
	if (state_find())
		mm_mark((u64)bpf_get_current_task_btf()->mm);
	return 0;
}

/* A child was made, and has an address space of its own: what it has is a copy. */
static __always_inline void fork_copied(struct task_struct *parent, struct task_struct *child)
{
	u64 mm = (u64)child->mm;

	if (!reconcile || !observing || !mm || mm == (u64)parent->mm)
		return;
	mm_mark(mm);
	count_one(METRIC_RSS_FORK_COPY, mm_rss(mm));
}

/* exit_mmap(mm): the last user is gone. An exec that failed leaves one behind as well. */
ENTRY_BODY(EXIT_MMAP)
{
	struct task_state *st = state_find();
	u64 mm = a0;	/* before 6.2 a pointer loses its type where its address is taken */
	bool ours = !observe_all && !bpf_map_delete_elem(&mms, &mm);

	if (!observing)
		return;
	if (st) {
		collapse_over(st);
		st->exit_mm = a0;
		st->exit_start = bpf_ktime_get_ns();
		ours |= (u64)READ((struct mm_struct *)a0, owner) ==
			(u64)bpf_get_current_task_btf();
	}
	if (ours || observe_all)
		count_one(METRIC_RSS_AFTER, mm_rss(a0));
}
ENTRY_PROGRAMS(EXIT_MMAP)

EXIT_BODY(EXIT_MMAP_END)
{
	struct task_state *st = state_find();

	if (!st || !st->exit_mm)
		return;
	st->exit_mm = 0;
	count_time(METRIC_EXIT_LATENCY, slot_at(SLOT_BASE_NONE),
		   bpf_ktime_get_ns() - st->exit_start);
}
EXIT_PROGRAMS(EXIT_MMAP_END)

/* ---- the ways that are not faults ---- */

/* mfill_atomic_install_pte(pmd, vma, ...); before 6.4 with the mm before them. */
ENTRY_BODY(UFFD_INSTALL)
{
	struct vm_area_struct *vma;
	struct task_state *st;

	/* Both are loaded before one is chosen: the verifier knows no address that varies. */
	barrier_var(a1);
	barrier_var(a2);
	vma = (void *)(uffd_vma_third ? a2 : a1);
	if (!observing || !mm_marked((u64)READ(vma, vm_mm)))
		return;
	st = worker_get();
	if (st)
		st->uffd_install = 1;
}
ENTRY_PROGRAMS(UFFD_INSTALL)

EXIT_BODY(UFFD_INSTALL_END)
{
	struct task_state *st = worker_find();

	if (!st || !st->uffd_install)
		return;
	st->uffd_install = 0;
	if (!(u32)ret)
		count_one(METRIC_RSS_UFFD, 1);
}
EXIT_PROGRAMS(UFFD_INSTALL_END)

/* unuse_pte_range(vma, ...): every page that comes back takes a swap entry away. */
ENTRY_BODY(UNUSE)
{
	u64 mm = (u64)READ((struct vm_area_struct *)a0, vm_mm);
	struct task_state *st;

	if (!observing || !read_memory || !mm_marked(mm))
		return;
	st = worker_get();
	if (!st)
		return;
	st->unuse_mm = mm;
	st->unuse_before = mm_members(mm, MEMBERS_SWAP);
}
ENTRY_PROGRAMS(UNUSE)

EXIT_BODY(UNUSE_END)
{
	struct task_state *st = worker_find();
	s64 came;

	if (!st || !st->unuse_mm)
		return;
	came = st->unuse_before - mm_members(st->unuse_mm, MEMBERS_SWAP);
	st->unuse_mm = 0;
	if (came > 0)
		count_one(METRIC_RSS_SWAPOFF, came);
}
EXIT_PROGRAMS(UNUSE_END)

/* mm_collapse_huge_page_isolate(folio, none_or_zero, ...) */
SEC("tp_btf/mm_collapse_huge_page_isolate")
int COLLAPSE_SCAN__tp_btf(u64 *ctx)
{
	struct task_state *st = observing ? worker_get() : 0;

	if (st)
		st->collapse_new = ctx[1];
	return 0;
}

/* mm_collapse_huge_page(mm, isolated, status, ...): each hole became a page. */
SEC("tp_btf/mm_collapse_huge_page")
int COLLAPSE__tp_btf(u64 *ctx)
{
	struct task_state *st = worker_find();

	if (!st || (u32)ctx[2] != bpf_core_enum_value(enum scan_result, SCAN_SUCCEED))
		return 0;
	if (mm_marked(ctx[0]))
		count_one(METRIC_RSS_KHUGEPAGED, st->collapse_new);
	st->collapse_new = 0;
	return 0;
}

/* set_huge_pmd(vma, ...): MADV_COLLAPSE maps a huge page of a file that is new or was there. */
ENTRY_BODY(HUGE_FILE)
{
	struct task_state *st;

	if (!observing || !mm_marked((u64)READ((struct vm_area_struct *)a0, vm_mm)))
		return;
	st = worker_get();
	if (st)
		st->mapping_huge = 1;
}
ENTRY_PROGRAMS(HUGE_FILE)

EXIT_BODY(HUGE_FILE_END)
{
	struct task_state *st = worker_find();

	if (!st || !st->mapping_huge)
		return;
	st->mapping_huge = 0;
	if ((u32)ret != bpf_core_enum_value(enum scan_result, SCAN_SUCCEED))
		return;
	count_one(METRIC_RSS_KHUGEPAGED, 1u << pmd_order);
}
EXIT_PROGRAMS(HUGE_FILE_END)

/*
 * try_collapse_pte_mapped_thp(mm, ...): what is mapped one by one of a huge page goes.
 * Others may work on the same pages, khugepaged beside MADV_COLLAPSE: what the counters
 * of the address space change by meanwhile is not this task's, so it is counted where
 * this task takes pages away.
 */
ENTRY_BODY(COLLAPSE_PTES)
{
	struct task_state *st;

	if (!observing || !mm_marked(a0))
		return;
	st = worker_get();
	if (!st)
		return;
	count_trust(TRUST_COLLAPSES);
	if (!st->collapse_left)
		__sync_fetch_and_add(&collapsing, 1);
	st->collapse_left = (1u << pmd_order) + 1;
}
ENTRY_PROGRAMS(COLLAPSE_PTES)

EXIT_BODY(COLLAPSE_PTES_END)
{
	struct task_state *st = worker_find();

	if (st)
		collapse_over(st);
}
EXIT_PROGRAMS(COLLAPSE_PTES_END)

/* folio_remove_rmap_ptes(folio, page, nr, vma); before 6.8 page_remove_rmap(page, ...). */
ENTRY_BODY(COLLAPSE_RMAP)
{
	u32 nr = unmap_has_nr ? (u32)a2 : 1;
	struct task_state *st;

	if (!collapsing)
		return;
	st = worker_find();
	/* 0: it does not collapse; and no more than a page table has, if the end was lost. */
	if (!st || nr >= st->collapse_left)
		return;
	st->collapse_left -= nr;
	count_one(METRIC_RSS_UNMAPPED, nr);
}
ENTRY_PROGRAMS(COLLAPSE_RMAP)

/* remove_migration_pte(folio, vma, ...): the tracepoints inside know no address space. */
ENTRY_BODY(MIGRATE)
{
	struct vm_area_struct *vma = (void *)a1;
	struct task_state *st;
	bool ours;

	if (!observing)
		return;
	ours = mm_marked((u64)READ(vma, vm_mm)) && !(READ(vma, vm_flags) & VM_HUGETLB);
	st = ours ? worker_get() : worker_find();
	if (st)
		st->migrating = ours;
}
ENTRY_PROGRAMS(MIGRATE)

static __always_inline void migrated(u64 pages)
{
	struct task_state *st = worker_find();

	if (st && st->migrating)
		count_one(METRIC_PAGES_MIGRATED, pages);
}

SEC("tp_btf/remove_migration_pte")
int MIGRATE_PTE__tp_btf(u64 *ctx)
{
	migrated(1);
	return 0;
}

SEC("tp_btf/remove_migration_pmd")
int MIGRATE_PMD__tp_btf(u64 *ctx)
{
	migrated(1u << pmd_order);
	return 0;
}

/* Pages that a folio adds to the resident sets of all who map it. */
static __always_inline s64 folio_resident(const bool typed, struct folio *folio)
{
	s64 whole;

	if (folio_pages(typed, folio) == 1)
		return (s32)BPF_CORE_READ(folio, _mapcount.counter) + 1;
	if (!bpf_core_field_exists(folio->_large_mapcount))
		return -1;	/* each page has its own before 6.10 */
	whole = (s32)BPF_CORE_READ(folio, _entire_mapcount.counter) + 1;
	return (s32)BPF_CORE_READ(folio, _large_mapcount.counter) + 1 +
	       whole * ((1 << pmd_order) - 1);
}

/* try_to_unmap_one(folio, vma, ...), of reclaim above all. */
ENTRY_BODY(UNMAP)
{
	struct vm_area_struct *vma = (void *)a1;
	struct task_state *st;

	if (!observing || !read_memory || !mm_marked((u64)READ(vma, vm_mm)) ||
	    READ(vma, vm_flags) & VM_HUGETLB)
		return;
	st = worker_get();
	if (!st)
		return;
	collapse_over(st);
	st->unmap_folio = a0;
	st->unmap_before = folio_resident(typed, (void *)a0);
}
ENTRY_PROGRAMS(UNMAP)

EXIT_BODY(UNMAP_END)
{
	struct task_state *st = worker_find();
	struct folio *folio;
	s64 gone;

	if (!st || !st->unmap_folio || !read_memory)
		return;
	folio = (void *)st->unmap_folio;
	st->unmap_folio = 0;
	if (st->unmap_before < 0) {
		gone = ret & 1 ? folio_pages(false, folio) : 0;
		if (gone)
			mark_inferred(METRIC_RSS_UNMAPPED, slot_at(SLOT_BASE_NONE));
	} else {
		gone = st->unmap_before - folio_resident(false, folio);
	}
	if (gone > 0)
		count_one(METRIC_RSS_UNMAPPED, gone);
}
EXIT_PROGRAMS(UNMAP_END)

/* move_page_tables() returns the bytes that were moved: by mremap, and by exec its stack. */
EXIT_BODY(MOVE_TABLES)
{
	if (state_find())
		count_one(METRIC_PAGES_MOVED, ret >> page_shift);
}
EXIT_PROGRAMS(MOVE_TABLES)

#endif
