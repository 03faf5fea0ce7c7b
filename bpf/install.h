/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_INSTALL_H
#define MMSCOPE_INSTALL_H

/* PTEs that are installed, by which method, and the holds of the page-table lock. */

/* Counts from here on are of the order of this folio; 0 pages: unknown. */
static __always_inline void by_order(struct task_state *st, u32 pages)
{
	if (by_label == LABEL_ORDER)
		by_pick(st, pages ? hist_log2(pages) + 1 : 0, 0, 0);
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

/* The same of any of its pages, before 6.6: 0 where that cannot be read. */
static __always_inline u32 page_pages(u64 page)
{
	struct folio___old *head = (void *)page;
	u64 link;

	if (!read_memory || !bpf_core_field_exists(head->_folio_order) ||
	    !bpf_core_field_exists(((struct page *)0)->compound_head))
		return 0;
	link = BPF_CORE_READ((struct page *)page, compound_head);
	if (link & 1)
		head = (void *)(link - 1);
	else if (!(BPF_CORE_READ(head, flags) >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
		return 1;
	return 1u << (BPF_CORE_READ(head, _folio_order) & 31);
}

static __always_inline void hold_counted(struct task_state *st, u32 slot)
{
	if (!have_pte_lock)
		mark_inferred(METRIC_PTES_PER_HOLD, slot);
	count_by(st, METRIC_PTES_PER_HOLD, 1, st->hold_ptes);
	st->hold_ptes = 0;
}

/* The page-table lock was let go, and ptes_installed is the sum of all holds. */
static __noinline void hold_ends(struct task_state *st)
{
	u32 slot = st->hold_slot;

	count_batch(METRIC_PTES_PER_HOLD, slot, st->hold_ptes);
	hold_counted(st, slot);
}

static __always_inline void close_hold(struct task_state *st)
{
	if (st->hold_ptes)
		hold_ends(st);
}

/*
 * The fault is done: of most the only hold is open still and holds all that they
 * installed, which is counted with it.
 */
static __always_inline void count_fault_ptes(struct task_state *st, u32 slot)
{
	if (!st->fault_ptes)
		return;
	if (st->hold_ptes == st->fault_ptes && st->hold_slot == slot) {
		count_batch_both(METRIC_PTES_PER_HOLD, slot, st->fault_ptes);
		hold_counted(st, slot);
	} else {
		count_batch(METRIC_PTES_PER_FAULT, slot, st->fault_ptes);
	}
	if (st->fault_inferred)
		mark_inferred(METRIC_PTES_PER_FAULT, slot);
}

/* An attempt whose exit was lost: its last hold was not. */
static __noinline void leave_attempt(struct task_state *st)
{
	count_trust(TRUST_UNMATCHED);
	close_hold(st);
	st->active = 0;
	st->window_end = 0;
}

/*
 * Is the attempt in progress the one that this is part of? If its exit and the entry of
 * the next were both lost, it is not, and what it was of is another mapping.
 */
static __always_inline bool attempt_of(const bool typed, struct task_state *st,
				       struct vm_fault *vmf)
{
	if (!st->active)
		return false;
	if (typed && (u64)vmf->vma != st->vma)	/* kprobes lose no runs */
		leave_attempt(st);
	return st->active;
}

static __always_inline void install(struct task_state *st, u32 method, u32 trigger, u32 backing,
				    u32 nr, bool inferred)
{
	u32 slot = slot_at(SLOT_BASE_INSTALL + fault_index(backing, method, trigger));

	/* One hold installs by one method: the lock's run was lost. */
	if (st->hold_slot != slot)
		close_hold(st);
	if (inferred)
		mark_inferred(METRIC_PTES_INSTALLED, slot);
	count_by(st, METRIC_PTES_INSTALLED, 1, nr);
	st->hold_slot = slot;
	st->hold_ptes += nr;
}

static __always_inline void install_in_fault(struct task_state *st, u32 method, u32 nr,
					     bool inferred)
{
	/* Without the lock's probe each install outside a window is a hold of its own. */
	if (!have_pte_lock && !st->window_end)
		close_hold(st);
	install(st, method, st->trigger, st->backing, nr, inferred);
	st->method = method;
	st->attempt_ptes += nr;
	st->fault_ptes += nr;
	st->fault_inferred |= inferred;
}

/*
 * Must the entry be read when its table is locked? The page of zeroes and page
 * frames have no rmap call that shows their installs: an entry was empty, or not.
 */
static __always_inline bool reads_entry(const struct task_state *st)
{
	return have_pte_lock && read_memory &&
	       (st->backing == BACKING_ANON ? !st->write : st->backing >= BACKING_DEVICE);
}

/* Entries that are installed while the resident set stays as it was. */
static __always_inline void rss_unchanged(u64 n)
{
	count(METRIC_PTES_RSS_UNCHANGED, slot_at(SLOT_BASE_NONE), n);
}

static __always_inline void zap_hold(struct task_state *st, u64 pte, u64 address);

/* pte_offset_map_lock(mm, pmd, address, ...); the address is 0 where it is not seen. */
static __always_inline void pte_locked(struct task_state *st, u64 ret, u64 address)
{
	if (!ret)
		return;
	if (!(st->active || st->insert_vma)) {
		if (zap_scan && st->zap_end)
			zap_hold(st, ret, address);
		return;
	}
	close_hold(st);
	st->locks++;
	if (st->active && reads_entry(st)) {
		u64 pte = 1;

		bpf_probe_read_kernel(&pte, sizeof(pte), (void *)ret);
		st->lock_empty |= !pte;
	}
}

SEC("fexit")
int PTE_LOCK__fexit(u64 *ctx)
{
	struct task_state *st = state_find();
	u64 ret = 0;

	if (!st)
		return 0;
	bpf_get_func_ret(ctx, &ret);
	pte_locked(st, ret, ctx[2]);
	return 0;
}

SEC("kretprobe")
int PTE_LOCK__kretprobe(struct pt_regs *ctx)
{
	struct task_state *st = state_find();

	if (st)
		pte_locked(st, PT_REGS_RC(ctx), 0);
	return 0;
}

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
	if (!attempt_of(typed, st, (void *)a0)) {
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
	if (by_label == LABEL_ORDER)
		by_order(st, pte_install_has_nr ? folio_pages(typed, (void *)a1) : page_pages(a1));
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
	if (!attempt_of(typed, st, (void *)a0)) {
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
	if (by_label == LABEL_ORDER)
		by_order(st, 1);	/* vmalloc() splits what it allocates */
	install_in_fault(st, METHOD_FAULT_AROUND, a2, false);
}
ENTRY_PROGRAMS(RUN_INSTALL)

static __always_inline void pmd_mapped(struct task_state *st, bool inferred)
{
	u32 slot = attempt_slot(st->backing, st->trigger);

	by_order(st, 1u << pmd_order);
	count(METRIC_PMD_MAPS, slot, 1);
	if (inferred)
		mark_inferred(METRIC_PMD_MAPS, slot);
	count_by(st, METRIC_PMD_MAPS, 1, 1);
	st->method = METHOD_PMD;
	st->pmd = 1;
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
	by_order(st, nr);
	if ((st->paths & (PATH_WP | PATH_WP_ZERO)) == PATH_WP)
		rss_unchanged(nr);
	install_in_fault(st, st->paths & PATH_WP ? METHOD_COW :
			     st->paths & PATH_SWAP ? METHOD_SWAP_IN :
			     nr > 1 ? METHOD_LARGE_FOLIO : METHOD_PER_PAGE, nr, false);
}
ENTRY_PROGRAMS(ANON_INSTALL)

/* The entry's lock is held: whoever copies the page lets it go and takes it again. */
static __always_inline void write_protected(struct task_state *st)
{
	st->paths |= PATH_WP;
	st->wp_locks = st->locks;
}

/* do_wp_page(vmf) */
ENTRY_BODY(COW_FAULT)
{
	struct task_state *st = state_find();
	struct vm_fault *vmf = (void *)a0;

	if (!st || !attempt_of(typed, st, vmf))
		return;
	write_protected(st);
	/* What is copied may be the zero page, which is resident nowhere. */
	if (READ(vmf, orig_pte.pte) & PTE_SPECIAL)
		st->paths |= PATH_WP_ZERO;
}
ENTRY_PROGRAMS(COW_FAULT)

ENTRY_BODY(COW_HUGE)
{
	struct task_state *st = state_find();

	if (st && st->active)
		write_protected(st);
}
ENTRY_PROGRAMS(COW_HUGE)

ENTRY_BODY(MKWRITE)
{
	struct task_state *st = state_find();

	if (!st || !st->active)
		return;
	count(METRIC_PAGE_MKWRITE, backing_slot(st->backing), 1);
	count_by(st, METRIC_PAGE_MKWRITE, 1, 1);
}
ENTRY_PROGRAMS(MKWRITE)

ENTRY_BODY(SWAP_IN)
{
	struct task_state *st = state_find();

	if (st && attempt_of(typed, st, (void *)a0))
		st->paths |= PATH_SWAP;
}
ENTRY_PROGRAMS(SWAP_IN)

/*
 * folio_add_anon_rmap_ptes(folio, page, nr, ...); before 6.8 page_add_anon_rmap(page, ...).
 * A page that comes back from swap and was not dropped meanwhile is not a new one.
 */
ENTRY_BODY(SWAP_INSTALL)
{
	struct task_state *st = state_find();

	if (!st || !st->active || !(st->paths & PATH_SWAP))
		return;
	if (by_label == LABEL_ORDER)
		by_order(st, swap_install_has_nr ? folio_pages(typed, (void *)a0) : page_pages(a0));
	install_in_fault(st, METHOD_SWAP_IN, swap_install_has_nr ? (u32)a2 : 1, false);
}
ENTRY_PROGRAMS(SWAP_INSTALL)

ENTRY_BODY(UFFD_WAIT)
{
	struct task_state *st = state_find();

	if (st && attempt_of(typed, st, (void *)a0))
		st->uffd_waited = 1;
}
ENTRY_PROGRAMS(UFFD_WAIT)

/* Called at the end of each fault on a page that NUMA balancing watches. */
ENTRY_BODY(NUMA_HINT)
{
	struct task_state *st = state_find();

	if (st && st->active)
		st->paths |= PATH_NUMA;
}
ENTRY_PROGRAMS(NUMA_HINT)

/* insert_pfn() succeeds, too, where a frame is mapped already. */
EXIT_BODY(PFN_INSTALL)
{
	struct task_state *st = state_find();
	bool seen;

	if (!st || !st->active || (u32)ret != VM_FAULT_NOPAGE)
		return;
	seen = reads_entry(st);
	if (seen && !st->lock_empty)
		return;
	st->lock_empty = 0;
	rss_unchanged(1);
	install_in_fault(st, METHOD_PER_PAGE, 1, !seen);
}
EXIT_PROGRAMS(PFN_INSTALL)

/*
 * huge_pte_alloc(): under the mutex that all faults on this page take (6.1 to 7.3), so
 * what the entry holds now is what this fault finds.
 */
EXIT_BODY(HUGETLB_PTE)
{
	struct task_state *st = state_find();

	if (!st || !ret || !st->active || st->backing != BACKING_HUGETLB)
		return;
	st->huge_pte = ret;
	if (read_memory)
		bpf_probe_read_kernel(&st->huge_before, sizeof(st->huge_before), (void *)ret);
}
EXIT_PROGRAMS(HUGETLB_PTE)

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

	if (st && st->active && !(u32)ret && !st->write && !st->pmd) {
		pmd_mapped(st, true);
		rss_unchanged(1u << pmd_order);
	}
}
EXIT_PROGRAMS(PMD_ANON)

/* A hugetlb fault succeeded: what did it do to the entry? */
static __always_inline void hugetlb_done(struct task_state *st)
{
	u64 now = st->huge_before;

	if (!st->huge_pte)
		return;
	if (!read_memory || !st->huge_before) {
		/* Where memory may not be read, success is the sign. */
		pmd_mapped(st, !read_memory);
		return;
	}
	bpf_probe_read_kernel(&now, sizeof(now), (void *)st->huge_pte);
	if ((now ^ st->huge_before) & PTE_FRAME) {
		pmd_mapped(st, false);
		st->method = METHOD_COW;
	} else if (st->write && PTE_READ_ONLY(st->huge_before) && !PTE_READ_ONLY(now)) {
		st->method = METHOD_REUSE;
	}
}

/* What a fault did that succeeded and installed nothing. */
static __always_inline u32 empty_method(const struct task_state *st)
{
	bool shared = st->write && !st->private_write && st->backing != BACKING_ANON;

	if (st->paths & PATH_NUMA)
		return METHOD_NUMA_HINT;
	/* Somebody else may have copied a private page while the lock was let go. */
	if (st->paths & PATH_WP && (shared || st->locks == st->wp_locks))
		return METHOD_REUSE;
	return st->uffd_waited ? METHOD_UFFD : METHOD_NONE;
}

#endif
