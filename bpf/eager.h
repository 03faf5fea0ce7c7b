/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_EAGER_H
#define MMSCOPE_EAGER_H

/* What is populated at mmap() time, without a fault, and what drivers insert. */

/* bpf_map_mmap(file, vma) */
ENTRY_BODY(BPF_MMAP)
{
	struct task_state *st = state_get();
	struct file *file = (void *)a0;
	struct bpf_map *map;
	u32 type;

	if (!st)
		return;
	st->eager_vma = a1;
	st->eager_backing = BACKING_OTHER;
	st->scoped = 1;
	if (!read_memory)
		return;
	/* private_data has no type of its own, so a typed read cannot follow it. */
	map = BPF_CORE_READ(file, private_data);
	type = BPF_CORE_READ(map, map_type);
	if (type == BPF_MAP_TYPE_RINGBUF)
		st->eager_backing = BACKING_BPF_RINGBUF;
	else if (type == BPF_MAP_TYPE_ARRAY)
		st->eager_backing = BACKING_BPF_ARRAY;
}
ENTRY_PROGRAMS(BPF_MMAP)

EXIT_BODY(BPF_MMAP_END)
{
	struct task_state *st = state_find();

	if (st)
		st->eager_vma = 0;
}
EXIT_PROGRAMS(BPF_MMAP_END)

/* array_map_mmap(map, vma) */
ENTRY_BODY(ARRAY_MMAP)
{
	struct task_state *st = state_find();

	if (st && st->eager_vma == a1)
		st->eager_backing = BACKING_BPF_ARRAY;
	/* Where symbols are hidden, this tells the backing of its faults. */
	array_ops = (u64)READ((struct vm_area_struct *)a1, vm_ops);
}
ENTRY_PROGRAMS(ARRAY_MMAP)

static __always_inline void insert_start(const bool typed, struct task_state *st, u64 vma_arg)
{
	struct vm_area_struct *vma = (void *)vma_arg;
	const struct vm_operations_struct *ops = READ(vma, vm_ops);

	st->insert_vma = vma_arg;
	st->insert_counts = 0;
	st->scoped |= !st->active;
	st->insert_locks = st->locks;
	st->insert_backing = st->eager_vma == vma_arg ? st->eager_backing :
			     classify(typed, st, vma, ops, READ(vma, vm_flags));
	/* A file's driver may do so too (tracefs): it has no label of its own. */
	if (slot_at(SLOT_BASE_INSTALL +
		    fault_index(st->insert_backing, METHOD_EAGER, TRIGGER_MMAP)) == SLOT_NONE)
		st->insert_backing = BACKING_OTHER;
	if (!st->active)
		by_select(typed, st, vma, st->insert_backing);
}

/* The batch that insert_pages() uses per lock hold (mm/memory.c, since 5.8). */
#define INSERT_BATCH	8

/* nr pages were inserted in `locks` acquisitions of the page-table lock. */
static __always_inline void insert_done(struct task_state *st, u32 nr, u32 locks, bool guessed)
{
	u32 slot, each, rest;

	if (nr && st->active && st->vma == st->insert_vma) {
		install_in_fault(st, METHOD_PER_PAGE, nr, false);
	} else if (nr) {
		install(st, METHOD_EAGER, TRIGGER_MMAP, st->insert_backing, nr, false);
		st->hold_ptes = 0;
		slot = st->hold_slot;
		/* Only the number of holds is seen: spread the pages evenly over them. */
		each = nr / locks;
		rest = nr - each * locks;
		count_batch_n(METRIC_PTES_PER_HOLD, slot, each + 1, rest);
		count_batch_n(METRIC_PTES_PER_HOLD, slot, each, locks - rest);
		count_by(st, METRIC_PTES_PER_HOLD, locks, nr);
		/* What is known: one page, or full batches. */
		if (guessed || (locks > 1 && nr != locks * INSERT_BATCH))
			mark_inferred(METRIC_PTES_PER_HOLD, slot);
	}
	st->insert_vma = 0;
}

/* vm_insert_page(vma, addr, page) */
ENTRY_BODY(EAGER_PAGE)
{
	struct task_state *st = state_get();

	if (st)
		insert_start(typed, st, a0);
}
ENTRY_PROGRAMS(EAGER_PAGE)

EXIT_BODY(EAGER_PAGE_END)
{
	struct task_state *st = state_find();

	if (st && st->insert_vma)
		insert_done(st, !(u32)ret, 1, st->locks == st->insert_locks);
}
EXIT_PROGRAMS(EAGER_PAGE_END)

/* vm_insert_pages(vma, addr, pages, num): *num comes back as what was left. */
ENTRY_BODY(EAGER_PAGES)
{
	struct task_state *st = state_get();

	if (!st)
		return;
	insert_start(typed, st, a0);
	st->insert_num = a3;
	/* A pointer to a number has no type to read it by. */
	st->insert_counts = !read_memory && have_insert_rmap;
	if (st->insert_counts)
		st->insert_pages = 0;
	else if (!read_memory ||
		 bpf_probe_read_kernel(&st->insert_pages, sizeof(u32), (void *)a3)) {
		st->insert_vma = 0;
		count_trust(TRUST_UNMATCHED);
	}
}
ENTRY_PROGRAMS(EAGER_PAGES)

/*
 * folio_add_file_rmap_ptes(folio, page, nr, vma); before 6.8
 * page_add_file_rmap(page, vma, compound).
 */
ENTRY_BODY_5(INSERT_RMAP)
{
	struct task_state *st = state_find();

	if (!st || !st->insert_counts || st->insert_vma != (rmap_has_nr ? a3 : a1))
		return;
	st->insert_pages += rmap_has_nr ? (u32)a2 : 1;
}
ENTRY_PROGRAMS_5(INSERT_RMAP)

EXIT_BODY(EAGER_PAGES_END)
{
	struct task_state *st = state_find();
	u32 left = 0, nr, locks;

	if (!st || !st->insert_vma)
		return;
	nr = st->insert_pages;
	/* On success nothing is left; a failure says how much was not done. */
	if ((u32)ret && !st->insert_counts) {
		if (!read_memory ||
		    bpf_probe_read_kernel(&left, sizeof(left), (void *)st->insert_num))
			left = nr;
		nr = left < nr ? nr - left : 0;
	}
	locks = st->locks - st->insert_locks;
	insert_done(st, nr, locks ?: (nr + INSERT_BATCH - 1) / INSERT_BATCH, !locks);
}
EXIT_PROGRAMS(EAGER_PAGES_END)

/* ---- page frames that a driver maps at mmap time ---- */

static __always_inline void remap_start(const bool typed, struct task_state *st, u64 vma_arg,
					u64 start, u64 size)
{
	struct vm_area_struct *vma = (void *)vma_arg;

	st->insert_vma = vma_arg;
	st->insert_num = start;
	st->insert_pages = (size + (1u << page_shift) - 1) >> page_shift;
	st->insert_locks = st->locks;
	st->insert_backing = BACKING_DEVICE;	/* 6.1 and 6.12 set VM_PFNMAP only in it */
	if (!st->active)
		by_select(typed, st, vma, st->insert_backing);
}

/* remap_pfn_range(vma, addr, pfn, size, prot) */
ENTRY_BODY(REMAP)
{
	struct task_state *st = state_get();

	if (st)
		remap_start(typed, st, a0, a1, a3);
}
ENTRY_PROGRAMS(REMAP)

/* remap_pfn_range_complete(vma, action) */
ENTRY_BODY(REMAP_ACTION)
{
	struct task_state *st = state_get();
	struct mmap_action *action = (void *)a1;

	if (st)
		remap_start(typed, st, a0, READ(action, remap.start), READ(action, remap.size));
}
ENTRY_PROGRAMS(REMAP_ACTION)

/* remap_pte_range() fills the part of each page table in one hold. */
EXIT_BODY(REMAP_END)
{
	struct task_state *st = state_find();
	u32 table = 1u << (page_shift - 3), nr, first, full, slot;

	if (!st || !st->insert_vma)
		return;
	nr = st->insert_pages;
	if ((u32)ret || !nr || st->active) {
		insert_done(st, (u32)ret ? 0 : nr, 1, true);
		return;
	}
	rss_unchanged(nr);	/* frames have no pages to count */
	install(st, METHOD_EAGER, TRIGGER_MMAP, st->insert_backing, nr, false);
	st->hold_ptes = 0;
	slot = st->hold_slot;
	first = table - ((st->insert_num >> page_shift) & (table - 1));
	if (first > nr)
		first = nr;
	full = (nr - first) >> (page_shift - 3);
	nr -= first + full * table;
	count_batch(METRIC_PTES_PER_HOLD, slot, first);
	count_batch_n(METRIC_PTES_PER_HOLD, slot, table, full);
	count_batch_n(METRIC_PTES_PER_HOLD, slot, nr, !!nr);
	count_by(st, METRIC_PTES_PER_HOLD, 1 + full + !!nr, st->insert_pages);
	if (st->locks - st->insert_locks != 1 + full + !!nr)
		mark_inferred(METRIC_PTES_PER_HOLD, slot);
	st->insert_vma = 0;
}
EXIT_PROGRAMS(REMAP_END)
FEXIT(REMAP_END, 2)

#endif
