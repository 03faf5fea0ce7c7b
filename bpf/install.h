/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_INSTALL_H
#define MMSCOPE_INSTALL_H

/* PTEs that are installed, by which method, and the holds of the page-table lock. */

static __always_inline void close_hold(struct task_state *st)
{
	u32 slot = st->hold_slot;

	if (!st->hold_ptes)
		return;
	count_batch(METRIC_PTES_PER_HOLD, slot, st->hold_ptes);
	if (!have_pte_lock)
		mark_inferred(METRIC_PTES_PER_HOLD, slot);
	count_by(st, METRIC_PTES_PER_HOLD, 1, st->hold_ptes);
	st->hold_ptes = 0;
}

static __always_inline void install(struct task_state *st, u32 method, u32 trigger, u32 backing,
				    u32 nr, bool inferred)
{
	u32 slot = slot_at(SLOT_BASE_INSTALL + fault_index(backing, method, trigger));

	count(METRIC_PTES_INSTALLED, slot, nr);
	if (inferred)
		mark_inferred(METRIC_PTES_INSTALLED, slot);
	count_by(st, METRIC_PTES_INSTALLED, 1, nr);
	st->hold_slot = slot;
	st->hold_ptes += nr;
}

static __always_inline void install_in_fault(struct task_state *st, u32 method, u32 nr,
					     bool inferred)
{
	install(st, method, st->trigger, st->backing, nr, inferred);
	st->method = method;
	st->attempt_ptes += nr;
	st->fault_ptes += nr;
	st->fault_inferred |= inferred;
	/* Without the lock's probe each install outside a window is a hold of its own. */
	if (!have_pte_lock && !st->window_end)
		close_hold(st);
}

EXIT_BODY(PTE_LOCK)
{
	struct task_state *st = state_find();

	if (!st || !ret || !(st->active || st->insert_vma))
		return;
	close_hold(st);
	st->locks++;
	/* Only a read of anonymous memory may install what nothing else shows. */
	if (st->active && st->backing == BACKING_ANON && !st->write && read_memory) {
		u64 pte = 1;

		bpf_probe_read_kernel(&pte, sizeof(pte), (void *)ret);
		st->lock_empty |= !pte;
	}
}
EXIT_PROGRAMS(PTE_LOCK)

/* A large folio may reach beyond the window. */
static __always_inline void install_in_window(struct task_state *st, u64 start, u32 nr)
{
	u64 end = start + ((u64)nr << page_shift);

	start = start > st->window_start ? start : st->window_start;
	end = end < st->window_end ? end : st->window_end;
	if (start < end)
		st->window_inside += (end - start) >> page_shift;
	st->window_ptes += nr;
}

/* set_pte_range(vmf, folio, page, nr, addr); before 6.6 do_set_pte(vmf, page, addr). */
ENTRY_BODY_5(PTE_INSTALL)
{
	struct task_state *st = state_find();
	u32 nr = pte_install_has_nr ? (u32)a3 : 1;
	u32 method = METHOD_PER_PAGE;

	if (!st)
		return;
	if (!st->active) {
		count_trust(TRUST_UNMATCHED);
		return;
	}
	if (st->window_end) {
		method = METHOD_FAULT_AROUND;
		install_in_window(st, pte_install_has_nr ? a4 : a2, nr);
	} else if (st->private_write) {
		method = METHOD_COW;
		st->skip_anon = 1;	/* the new page's rmap call that follows is this one */
	} else if (nr > 1) {
		method = METHOD_LARGE_FOLIO;
	}
	install_in_fault(st, method, nr, false);
}
ENTRY_PROGRAMS_5(PTE_INSTALL)

/*
 * vmf_set_run(vmf, pages, nr, addr) of kernels with the series arraymap: part of
 * what vmf_map_pages() maps. It may go on beyond the window that was asked for, and
 * a write comes without ->map_pages(): what it installs there it has asked for itself.
 */
ENTRY_BODY(RUN_INSTALL)
{
	struct task_state *st = state_find();
	u64 end = a3 + (a2 << page_shift);
	u32 slot;

	if (!st)
		return;
	if (!st->active) {
		count_trust(TRUST_UNMATCHED);
		return;
	}
	slot = backing_slot(st->backing);
	if (!st->window_end) {
		count(METRIC_FAULT_AROUND_ASKED, slot, a2);
		count(METRIC_FAULT_AROUND_MAPPED, slot, a2);
	} else {
		if (end > st->window_end) {
			count(METRIC_FAULT_AROUND_ASKED, slot,
			      (end - st->window_end) >> page_shift);
			st->window_end = end;
		}
		install_in_window(st, a3, a2);
	}
	install_in_fault(st, METHOD_FAULT_AROUND, a2, false);
}
ENTRY_PROGRAMS(RUN_INSTALL)

static __always_inline void pmd_mapped(struct task_state *st, bool inferred)
{
	u32 slot = attempt_slot(st->backing, st->trigger);

	count(METRIC_PMD_MAPS, slot, 1);
	if (inferred)
		mark_inferred(METRIC_PMD_MAPS, slot);
	count_by(st, METRIC_PMD_MAPS, 1, 1);
	st->method = METHOD_PMD;
	st->pmd = 1;
}

static __always_inline u32 folio_pages(const bool typed, struct folio *folio)
{
	struct folio___old *old = (void *)folio;
	bool word = bpf_core_field_exists(old->flags) &&
		    !bpf_core_field_exists(((struct folio *)0)->flags.f);
	u64 flags = word ? READ(old, flags) : READ(folio, flags.f);
	u32 order;

	if (!(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
		return 1;
	if (bpf_core_field_exists(old->_folio_order))
		order = pmd_order;	/* 6.1: an anonymous compound page is a huge page */
	else
		order = READ(folio, _flags_1) & 0xff;
	return 1u << (order & 31);
}

/* folio_add_new_anon_rmap(folio, vma, ...); before 6.8 page_add_new_anon_rmap(page, vma, ...). */
ENTRY_BODY(ANON_INSTALL)
{
	struct task_state *st = state_find();
	u32 nr;

	if (!st || !st->active || st->vma != a1)
		return;
	if (st->skip_anon) {
		st->skip_anon = 0;
		return;
	}
	nr = folio_pages(typed, (void *)a0);
	if (nr >= 1u << pmd_order) {
		pmd_mapped(st, false);
		return;
	}
	install_in_fault(st, st->wrprotect ? METHOD_COW :
			     nr > 1 ? METHOD_LARGE_FOLIO : METHOD_PER_PAGE, nr, false);
}
ENTRY_PROGRAMS(ANON_INSTALL)

ENTRY_BODY(COW_FAULT)
{
	struct task_state *st = state_find();

	if (st && st->active)
		st->wrprotect = 1;
}
ENTRY_PROGRAMS(COW_FAULT)

EXIT_BODY(PMD_FILE)
{
	struct task_state *st = state_find();

	if (st && st->active && !(u32)ret)
		pmd_mapped(st, false);
}
EXIT_PROGRAMS(PMD_FILE)

/* The huge zero page, which has no rmap; success may also be another task's. */
EXIT_BODY(PMD_ANON)
{
	struct task_state *st = state_find();

	if (st && st->active && !(u32)ret && !st->write && !st->pmd)
		pmd_mapped(st, true);
}
EXIT_PROGRAMS(PMD_ANON)

#endif
