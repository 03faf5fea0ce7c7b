// SPDX-License-Identifier: GPL-2.0-only
/*
 * Page faults, fault-around and PTE installs.
 *
 * A logical fault is all its attempts: calls of handle_mm_fault() by one task
 * for one address until one does not return VM_FAULT_RETRY. Nothing relies on
 * seeing every exit: an attempt that starts discards what an earlier one left.
 */
#include "kernel.h"
#include "probe.h"
#include "shared.h"
#include "target.h"
#include "install.h"
#include "rss.h"
#include "teardown.h"
#include "yield.h"
#include "eager.h"
#include "lock_fault.h"
#include "lock.h"

char LICENSE[] SEC("license") = "GPL";

/* ---- fault-around ---- */

/* filemap_map_pages(vmf, start_pgoff, end_pgoff) and its like. */
ENTRY_BODY(MAP_PAGES)
{
	struct task_state *st = state_find();
	struct vm_fault *vmf = (void *)a0;
	u64 start;

	if (!st || !attempt_of(typed, st, vmf))
		return;
	if (!have_pte_lock)
		close_hold(st);
	start = READ(vmf, address) - ((READ(vmf, pgoff) - a1) << page_shift);
	start &= ~((1ULL << page_shift) - 1);
	st->vmf = a0;
	st->window_start = start;
	st->window_end = start + ((a2 - a1 + 1) << page_shift);
	st->window_ptes = 0;
	st->window_inside = 0;
	count(METRIC_FAULT_AROUND_ASKED, backing_slot(st->backing), a2 - a1 + 1);
}
ENTRY_PROGRAMS(MAP_PAGES)
FENTRY(MAP_PAGES, 2)

/*
 * PTEs of the window that are present now. vmf->pte still points into the page
 * table, and a table is one page, so its start is the pointer's page.
 */
static __always_inline u32 window_present(struct task_state *st)
{
	struct vm_fault *vmf = (void *)st->vmf;
	u64 table, first;

	table = (u64)BPF_CORE_READ(vmf, pte);
	if (!table)
		return 0;
	table &= ~((1ULL << page_shift) - 1);
	first = (st->window_start >> page_shift) & ((1u << (page_shift - 3)) - 1);
	return read_ptes(table + first * 8,
			 (st->window_end - st->window_start) >> page_shift).present;
}

EXIT_BODY(MAP_PAGES_END)
{
	struct task_state *st = state_find();
	u32 slot, present;

	if (!st || !st->active || !st->window_end)
		return;
	close_hold(st);
	slot = backing_slot(st->backing);
	count(METRIC_FAULT_AROUND_MAPPED, slot, st->window_ptes);
	if (read_memory) {
		present = window_present(st);
		if (present > st->window_inside)
			count(METRIC_FAULT_AROUND_PRESENT, slot, present - st->window_inside);
	}
	st->window_end = 0;
}
EXIT_PROGRAMS(MAP_PAGES_END)
FEXIT(MAP_PAGES_END, 2)

/* ---- populate ---- */

/* (vma or mm, start, end, ...) */
ENTRY_BODY(POPULATE)
{
	struct task_state *st = state_get();

	if (!st)
		return;
	st->populate_start = a1;
	st->populate_end = a2;
	st->scoped = 1;
}
ENTRY_PROGRAMS(POPULATE)
FENTRY(POPULATE, 2)

EXIT_BODY(POPULATE_END)
{
	struct task_state *st = state_find();

	if (st)
		st->populate_end = 0;
}
EXIT_PROGRAMS(POPULATE_END)
FEXIT(POPULATE_END, 2)

/* ---- the fault itself ---- */

static __always_inline void refuse(struct task_state *st, u32 backing, u32 reason)
{
	count(METRIC_FAULT_REFUSED, refused_slot(backing, reason), 1);
	count_by(st, METRIC_FAULT_REFUSED, 1, 1);
}

/*
 * lock_mm_and_find_vma(mm, address, regs): the mmap_lock path of a fault. From
 * user space it is taken first only where the per-VMA lock could not be had.
 */
ENTRY_BODY(VMA_FIND)
{
	struct pt_regs *regs = (void *)a2;
	struct task_state *st;

	if (!USER_REGS(regs))
		return;		/* the kernel's own accesses never try the per-VMA lock */
	st = state_get();
	if (!st)
		return;
	st->finding = 1;
}
ENTRY_PROGRAMS(VMA_FIND)

/* Since 6.7 userfaultfd waits under the VMA lock: its RETRY is no refusal. */
static __always_inline bool uffd_armed(const bool typed, struct vm_area_struct *vma)
{
	return bpf_core_field_exists(vma->vm_userfaultfd_ctx.ctx) &&
	       READ(vma, vm_userfaultfd_ctx.ctx);
}

/* A stack that grows has no VMA at the address until it has grown. */
static __always_inline bool has_grown(const bool typed, struct vm_area_struct *vma, u64 vm_flags,
				      u64 address)
{
	return vm_flags & VM_GROWSDOWN && address - READ(vma, vm_start) < 1u << page_shift;
}

/* Why its vm_ops let no attempt under the VMA lock succeed; REASON_MAX: they let it. */
static __always_inline u32 ops_refusal(const bool typed, struct vm_area_struct *vma,
				       const struct vm_operations_struct *ops, u64 vm_flags)
{
	return uffd_armed(typed, vma) || vm_flags & VM_HUGETLB || READ(ops, map_pages) ?
	       REASON_MAX : REASON_NO_MAP_PAGES;
}

/*
 * The last that wrote to the address space before mmap_lock was taken had write-locked
 * this VMA. Also told of one that is new: nothing else has been written since.
 */
static __always_inline bool written_last(const bool typed, struct vm_area_struct *vma)
{
	struct mm_struct *mm = READ(vma, vm_mm);

	return bpf_core_field_exists(mm->mm_lock_seq.sequence) &&
	       READ(mm, mm_lock_seq.sequence) == READ(vma, vm_lock_seq) + 1;
}

/*
 * Why a fault has taken mmap_lock, of what is seen when it has: the attempt that was
 * refused, if there was one, is not. What can be read is what it met, or may have met.
 */
static __always_inline u32 find_reason(const bool typed, struct vm_area_struct *vma,
				       u64 address)
{
	const struct vm_operations_struct *ops = READ(vma, vm_ops);
	u64 vm_flags = READ(vma, vm_flags);

	if (fault_has_waited())
		return REASON_RETRIED;
	/* The address is 0 where it is not seen, which is in no stack. */
	if (has_grown(typed, vma, vm_flags, address))
		return REASON_NO_VMA;
	if (ops && ops_refusal(typed, vma, ops, vm_flags) == REASON_NO_MAP_PAGES)
		return REASON_NO_MAP_PAGES;
	if (uffd_armed(typed, vma))
		return REASON_UFFD;
	/* Its anon_vma cannot be made while somebody writes to the address space (6.10). */
	if (!ops && !(u64)READ(vma, anon_vma) && !written_last(typed, vma))
		return REASON_ANON_VMA;
	return REASON_VMA_WRITE_LOCKED;
}

static __always_inline void vma_found(const bool typed, struct task_state *st, u64 ret,
				      struct vm_area_struct *vma, u64 address)
{
	u32 reason = REASON_NO_VMA, slot;

	if (lock_domain) {
		if (ret)
			reason = find_reason(typed, vma, address);
		slot = reason_slot(reason);
		count(METRIC_LOCK_MMAP_FAULTS, slot, 1);
		if (reason != REASON_NO_VMA && reason != REASON_RETRIED)
			mark_inferred(METRIC_LOCK_MMAP_FAULTS, slot);
		if (!fault_parts) {
			st->finding = 0;
			return;
		}
	}
	if (ret)
		return;		/* handle_mm_fault() follows and tells */
	st->finding = 0;
	if (!st->retrying) {
		by_select_none(st);
		refuse(st, BACKING_OTHER, REASON_NO_VMA);
	}
}

/* What is returned has a type behind the three arguments. */
SEC("fexit")
int VMA_FIND_END__fexit(u64 *ctx)
{
	struct task_state *st;
	u64 ret = 0;

	bpf_get_func_ret(ctx, &ret);
	if (ret && !lock_domain)
		return 0;
	st = state_find();
	if (st && st->finding)
		vma_found(true, st, ret, (void *)ctx[3], ctx[1]);
	return 0;
}

SEC("kretprobe")
int VMA_FIND_END__kretprobe(struct pt_regs *ctx)
{
	struct task_state *st = state_find();
	u64 ret = PT_REGS_RC(ctx);

	if (st && st->finding)
		vma_found(false, st, ret, (void *)ret, 0);
	return 0;
}

/*
 * Why an attempt under the VMA lock was refused, if not for what its vm_ops lack. Seen
 * at its end, and not by a probe on __vmf_anon_prepare(), through which every anonymous
 * fault goes (6.12 to 7.3): where an anon_vma is needed and there is none still, that
 * was it. A VMA that is gone meanwhile reads as any other.
 */
static __always_inline u32 refusal(const bool typed, const struct task_state *st,
				   struct vm_area_struct *vma)
{
	bool private = !(READ(vma, vm_flags) & VM_SHARED);
	/* Without ->map_pages it comes to that only for a page that is there. */
	bool comes = st->refusal != REASON_NO_MAP_PAGES || st->paths & PATH_WP;
	bool needs = st->backing == BACKING_ANON || st->private_write ||
		     (st->backing == BACKING_HUGETLB && private);

	if (comes && needs && !(u64)READ(vma, anon_vma) && !st->uffd_waited &&
	    !(st->paths & PATH_SWAP))
		return REASON_ANON_VMA;
	return st->backing == BACKING_ANON && uffd_armed(typed, vma) ? REASON_MAX : st->refusal;
}

/*
 * Whoever faults in user space is in no system call, and so neither populates nor
 * maps: if it seems so, the end of that was lost.
 */
static __always_inline void leave_scopes(struct task_state *st)
{
	st->scoped = 0;
	st->populate_end = 0;
	st->eager_vma = 0;
	st->insert_vma = 0;
}

/* handle_mm_fault(vma, address, flags, regs) */
ENTRY_BODY(FAULT_ENTRY)
{
	struct task_state *st = state_get();
	struct vm_area_struct *vma = (void *)a0;
	const struct vm_operations_struct *ops;
	const bool by = by_label != LABEL_MAX;	/* a look at a switch is two instructions */
	u32 flags = a2;
	u64 vm_flags;
	bool write;

	if (!st)
		return;
	if (st->active)
		leave_attempt(st);
	if (st->scoped && a3 && flags & FAULT_FLAG_USER)
		leave_scopes(st);

	ops = READ(vma, vm_ops);
	vm_flags = READ(vma, vm_flags);
	write = flags & (FAULT_FLAG_WRITE | FAULT_FLAG_UNSHARE);

	st->backing = classify(typed, st, vma, ops, vm_flags);
	st->trigger = a3 ? TRIGGER_ACCESS :
		      a1 >= st->populate_start && a1 < st->populate_end ? TRIGGER_POPULATE :
		      TRIGGER_GUP;
	st->write = write;
	st->private_write = write && !(vm_flags & VM_SHARED) && ops;
	st->flags = flags;
	st->vma = a0;
	st->hold_ptes = 0;
	st->attempt_ptes = 0;
	st->attempt_locks = st->locks;
	st->lock_empty = 0;
	st->skip_anon = 0;
	st->paths = 0;
	st->huge_pte = st->huge_before = 0;
	st->pmd = 0;
	st->window_end = 0;
	st->active = 1;
	st->attempt_start = bpf_ktime_get_ns();
	if (by)
		by_select(typed, st, vma, st->backing);
	if (yield_pages)
		yield_start(typed, st, vma, ops, a1);

	if (!st->retrying || st->address != a1) {
		st->fault_start = st->attempt_start;
		st->fault_ptes = 0;
		st->fault_inferred = 0;
		st->retrying = 0;
		st->uffd_waited = 0;
		st->method = METHOD_NONE;
		st->waited = 0;
	}
	st->address = a1;

	/*
	 * The VMA may be gone when an attempt under its lock was refused: what
	 * the reason would be is read now.
	 */
	if (flags & FAULT_FLAG_VMA_LOCK) {
		st->refusal = REASON_OTHER;
		if (ops)
			st->refusal = ops_refusal(typed, vma, ops, vm_flags);
	} else if (st->finding && flags & FAULT_FLAG_USER && !st->retrying) {
		bool grown = has_grown(typed, vma, vm_flags, a1);

		refuse(st, grown ? BACKING_OTHER : st->backing,
		       grown ? REASON_NO_VMA : REASON_VMA_WRITE_LOCKED);
	}
	st->finding = 0;
	count(METRIC_FAULT_ATTEMPTS, attempt_slot(st->backing, st->trigger), 1);
	if (by && by_label != LABEL_ORDER)
		count_by(st, METRIC_FAULT_ATTEMPTS, 1, 1);
}
ENTRY_PROGRAMS(FAULT_ENTRY)

/*
 * The zero page has no rmap: a read that took the lock, found the entry empty and
 * succeeded installed it. A spurious fault, a NUMA hint, a page that comes back
 * from swap or migration and the loser of a race find it filled. Where the lock
 * is not seen (6.1) or memory may not be read, the read alone is the sign.
 */
static __always_inline bool zero_page(const struct task_state *st)
{
	if (st->write || st->attempt_ptes || st->pmd || st->paths)
		return false;
	if (!have_pte_lock)
		return !st->uffd_waited;
	return read_memory ? st->lock_empty : st->locks != st->attempt_locks;
}

/* It succeeded, and no call was seen that installs a PTE. */
static __noinline void nothing_seen(struct task_state *st)
{
	if (st->backing == BACKING_ANON && zero_page(st)) {
		by_order(st, 1);
		install_in_fault(st, METHOD_ZERO_PAGE, 1, !(have_pte_lock && read_memory));
		rss_unchanged(1);
	} else if (st->backing == BACKING_HUGETLB) {
		hugetlb_done(st);
	}
	if (st->method == METHOD_NONE)
		st->method = empty_method(st);
}

/* It failed, or goes on in another attempt. */
static __noinline void attempt_ends(struct task_state *st, u32 result, u64 now)
{
	u32 attempt = attempt_slot(st->backing, st->trigger), outcome;

	if (result & VM_FAULT_ERROR) {
		outcome = OUTCOME_FAILED;
		count(METRIC_FAULT_FAILED, attempt, 1);
		count_by(st, METRIC_FAULT_FAILED, 1, 1);
	} else if (st->flags & FAULT_FLAG_VMA_LOCK && st->refusal != REASON_MAX) {
		outcome = OUTCOME_REFUSED;
		refuse(st, st->backing, st->refusal);
	} else {
		/* With ->map_pages the VMA lock was dropped to wait for I/O: a retry. */
		outcome = OUTCOME_RETRIED;
		count(METRIC_FAULT_RETRIED, attempt, 1);
		count_by(st, METRIC_FAULT_RETRIED, 1, 1);
	}
	st->retrying = outcome != OUTCOME_FAILED;
	count_time(METRIC_FAULT_ATTEMPT_LATENCY, outcome_slot(st->backing, outcome),
		   now - st->attempt_start);
}

/* The mapping and the address, which a kretprobe does not know and need not: none is lost. */
static __always_inline void fault_exit(const bool known, struct task_state *st, u32 result,
				       u64 vma, u64 address)
{
	const bool by = by_label != LABEL_MAX;
	struct time_kinds *faults;
	u32 kind, index;
	u64 now;

	if (known && st->active && (st->vma != vma || st->address != address))
		leave_attempt(st);
	if (!st->active) {
		count_trust(TRUST_UNMATCHED);
		return;
	}
	now = bpf_ktime_get_ns();
	/* An attempt is of the order of what it installed, known only now. */
	if (by && by_label == LABEL_ORDER)
		count_by(st, METRIC_FAULT_ATTEMPTS, 1, 1);
	st->active = 0;
	st->window_end = 0;
	if (result & (VM_FAULT_ERROR | VM_FAULT_RETRY)) {
		attempt_ends(st, result, now);
	} else {
		kind = result & VM_FAULT_MAJOR || st->flags & FAULT_FLAG_TRIED ?
		       KIND_MAJOR : KIND_MINOR;
		if (!st->attempt_ptes)
			nothing_seen(st);
		if (yield_pages)
			yield_fault(st);
		index = fault_index(st->backing, st->method, st->trigger);
		faults = count_time(METRIC_FAULT_LATENCY, slot_at(SLOT_BASE_FAULT + index),
				    now - st->fault_start);
		if (faults)
			__sync_fetch_and_add(&faults->kind[clamp(kind, KIND_MAX)], 1);
		if (by)
			count_by(st, METRIC_FAULT_COMPLETED, 1, 1);
		if (fault_parts && st->waited)
			parts_count(st);
		/* A fault of one attempt is in fault_latency alone. */
		if (st->retrying)
			count_time(METRIC_FAULT_ATTEMPT_LATENCY,
				   outcome_slot(st->backing, OUTCOME_COMPLETED),
				   now - st->attempt_start);
		st->retrying = 0;
		count_fault_ptes(st, slot_at(SLOT_BASE_INSTALL + index));
	}
	close_hold(st);
}

/* What is returned is read for targets only: most runs are of others. */
SEC("fexit")
int FAULT_EXIT__fexit(u64 *ctx)
{
	struct task_state *st = state_find();
	u64 ret = 0;

	if (!st)
		return 0;
	bpf_get_func_ret(ctx, &ret);
	if (ret & VM_FAULT_RETRY && st->active && st->flags & FAULT_FLAG_VMA_LOCK)
		st->refusal = refusal(true, st, (void *)ctx[0]);
	fault_exit(true, st, ret, ctx[0], ctx[1]);
	return 0;
}

SEC("kretprobe")
int FAULT_EXIT__kretprobe(struct pt_regs *ctx)
{
	struct task_state *st = state_find();
	u64 ret = PT_REGS_RC(ctx);

	if (!st)
		return 0;
	if (ret & VM_FAULT_RETRY && st->active && st->flags & FAULT_FLAG_VMA_LOCK)
		st->refusal = refusal(false, st, (void *)st->vma);
	fault_exit(false, st, ret, 0, 0);
	return 0;
}
