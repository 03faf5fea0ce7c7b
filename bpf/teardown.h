/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_TEARDOWN_H
#define MMSCOPE_TEARDOWN_H

/* Page tables that are emptied: by munmap, exit, exec, MADV_DONTNEED, truncation. */

#define PTES_AT_ONCE	16

struct ptes_seen {
	u32 present, resident;	/* the second without the zero page and plain frames */
};

/*
 * Read `pages` entries of one page table from the one at `first`. Without branches,
 * each of which would double the states that the verifier follows: the top bits of
 * v | -v, of k - pages and of ~k tell whether v is not 0 and k is in [0, pages).
 */
static __always_inline struct ptes_seen read_ptes(u64 first, u64 pages)
{
	u64 from = first & ~(u64)(PTES_AT_ONCE * 8 - 1), skip = (first - from) / 8;
	struct ptes_seen seen = { 0 };
	u64 pte[PTES_AT_ONCE];
	u32 i, j;

	for (i = 0; i < HIST_EXACT; i += PTES_AT_ONCE) {
		if (i >= pages + skip)
			break;
		if (bpf_probe_read_kernel(pte, sizeof(pte), (void *)(from + i * 8)))
			break;
		for (j = 0; j < PTES_AT_ONCE; j++) {
			u64 v = pte[j] & PTE_PRESENT, k = i + j - skip, in = (k - pages) & ~k;
			u64 special = ((pte[j] & PTE_SPECIAL) - 1) & ~(pte[j] & PTE_SPECIAL);
			u64 here = (v | -v) & in;

			seen.present += here >> 63;
			seen.resident += (here & special) >> 63;
		}
	}
	return seen;
}

/* Removing pages passes on what the thread has kept: that is there before as well. */
static __always_inline s64 zap_resident(u64 mm)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return mm_members(mm, MEMBERS_RSS) + ((u64)task->mm == mm ? task_kept(task) : 0);
}

static __always_inline void count_zapped(struct task_state *st, u32 present, u32 resident)
{
	u32 slot = backing_slot(st->zap_backing);

	if (present) {
		count(METRIC_PTES_ZAPPED, slot, present);
		count_batch(METRIC_PTES_PER_ZAP_HOLD, slot, present);
		if (st->zap_rss == ZAP_RSS_COUNTED) {	/* some stay */
			mark_inferred(METRIC_PTES_ZAPPED, slot);
			mark_inferred(METRIC_PTES_PER_ZAP_HOLD, slot);
		}
	}
	if (st->zap_rss == ZAP_RSS_SEEN)
		count_one(METRIC_RSS_ZAPPED, resident);
}

/*
 * The page-table lock was taken to empty part of a table from `address` on. A hold
 * may end early and the next one go on in the same table: what that one finds
 * is not what this one removed.
 */
static __always_inline void zap_hold(struct task_state *st, u64 pte, u64 address)
{
	u64 table = address >> (page_shift + pmd_order);
	u64 end = (table + 1) << (page_shift + pmd_order);
	struct ptes_seen seen;

	if (address < st->zap_start || address >= st->zap_end) {
		st->zap_end = 0;	/* its end was lost */
		return;
	}
	if (end > st->zap_end)
		end = st->zap_end;
	seen = read_ptes(pte, (end - address) >> page_shift);
	if (st->zap_table == table && st->zap_seen)
		count_zapped(st, st->zap_present - seen.present,
			     st->zap_resident - seen.resident);
	else if (st->zap_seen)
		count_zapped(st, st->zap_present, st->zap_resident);
	st->zap_table = table;
	st->zap_present = seen.present;
	st->zap_resident = seen.resident;
	st->zap_seen = 1;
	st->zap_pmd = 0;	/* a huge page was split, not removed */
}

/* (tlb, vma, start, end, details) */
ENTRY_BODY_5(ZAP)
{
	struct task_state *st = state_find();
	struct vm_area_struct *vma = (void *)a1;
	struct zap_details *details = (void *)a4;
	struct zap_details___old *old = (void *)a4;
	u64 mm;

	if (!st)
		return;
	collapse_over(st);
	mm = (u64)READ(vma, vm_mm);
	st->zap_mm = mm;
	st->zap_start = a2;
	st->zap_end = a3;
	st->zap_seen = 0;
	st->zap_pmd = 0;
	st->zap_backing = classify(typed, st, vma, READ(vma, vm_ops), READ(vma, vm_flags));
	/* What exits takes its pages along: that is no shrinking. */
	st->zap_rss = mm == st->exit_mm || !mm_marked(mm) ? ZAP_RSS_NONE : ZAP_RSS_SEEN;
	if (st->zap_rss == ZAP_RSS_NONE || !read_memory)
		return;
	/* Copies of a private file mapping may stay while the file's pages go. */
	if (zap_scan && !(details && !(READ(vma, vm_flags) & VM_SHARED) &&
			  (bpf_core_field_exists(details->skip_cows) ?
			   BPF_CORE_READ(details, skip_cows) : !BPF_CORE_READ(old, even_cows))))
		return;
	st->zap_rss = ZAP_RSS_COUNTED;
	st->zap_before = zap_resident(mm);
}
ENTRY_PROGRAMS_5(ZAP)

EXIT_BODY(ZAP_END)
{
	struct task_state *st = state_find();
	struct mm_struct *mm;
	s64 gone;

	if (!st || !st->zap_end)
		return;
	st->zap_end = 0;
	if (st->zap_seen)
		count_zapped(st, st->zap_present, st->zap_resident);
	st->zap_seen = 0;
	if (st->zap_rss != ZAP_RSS_COUNTED || !read_memory)
		return;
	gone = st->zap_before - zap_resident(st->zap_mm);
	if (gone > 0)
		count_one(METRIC_RSS_ZAPPED, gone);
	/* The faults of other threads meanwhile are in the difference. */
	mm = (void *)st->zap_mm;
	if (BPF_CORE_READ(mm, mm_users.counter) > 1)
		mark_inferred(METRIC_RSS_ZAPPED, slot_at(SLOT_BASE_NONE));
}
EXIT_PROGRAMS(ZAP_END)

/* folio_remove_rmap_pmd(): a huge page is removed, or split before a part of it is. */
ENTRY_BODY(RMAP_PMD)
{
	struct task_state *st = state_find();

	if (st && st->zap_end)
		st->zap_pmd = 1;
}
ENTRY_PROGRAMS(RMAP_PMD)

EXIT_BODY(ZAP_PMD)
{
	struct task_state *st = state_find();

	if (!st || !st->zap_end || !st->zap_pmd)
		return;
	st->zap_pmd = 0;
	count(METRIC_PMDS_ZAPPED, backing_slot(st->zap_backing), 1);
	if (st->zap_rss == ZAP_RSS_SEEN)
		count_one(METRIC_RSS_ZAPPED, 1u << pmd_order);
}
EXIT_PROGRAMS(ZAP_PMD)

/* __vm_munmap(start, len, ...), which munmap(2) calls */
ENTRY_BODY(MUNMAP)
{
	struct task_state *st = state_find();

	if (st)
		st->munmap_start = bpf_ktime_get_ns();
}
ENTRY_PROGRAMS(MUNMAP)

EXIT_BODY(MUNMAP_END)
{
	struct task_state *st = state_find();

	if (!st || !st->munmap_start)
		return;
	count_time(METRIC_MUNMAP_LATENCY, slot_at(SLOT_BASE_NONE),
		   bpf_ktime_get_ns() - st->munmap_start);
	st->munmap_start = 0;
}
EXIT_PROGRAMS(MUNMAP_END)

#endif
