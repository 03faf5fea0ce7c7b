/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_LOCK_H
#define MMSCOPE_LOCK_H

/*
 * Waits for locks, by the class of the lock.
 *
 * contention_begin and contention_end see mutexes whole, but of spinlocks only the
 * queue and of rwsems only who sleeps (6.1 to 7.3): these are seen where their slow
 * paths start and end, and so are folio locks and the per-VMA lock of 7.x, which
 * have no such events.
 *
 * A lock that can be waited for anywhere is no place to take one: no map is updated
 * and nothing is created where a spinlock is waited for, and where a task may sleep
 * only its own storage is. Whose lock it is, is told by what surrounds it: the
 * object that it would be part of points back at itself.
 */
#include "lock_class.h"
#include "lock_rows.h"
#include "lock_stack.h"

/* ---- set by the loader ---- */

const volatile bool lock_slow_rwsem;	/* the slow paths of rwsems are attached */

/* Who spins cannot leave its CPU, and an interrupt that spins as well ends first. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct task_waits);
} spins SEC(".maps");

static __always_inline u32 lock_slot(struct lock_id id)
{
	return slot_at(SLOT_BASE_LOCK +
		       (clamp(id.class, CLASS_MAX) * MODE_MAX + clamp(id.mode, MODE_MAX)) *
		       SPACE_MAX + clamp(id.space, SPACE_MAX));
}

/* An address on the kernel stack that the program runs on. Needs read_memory. */
static __always_inline u64 stack_of(void *ctx)
{
	u64 sp = 0;

	if (read_memory)
		bpf_probe_read_kernel(&sp, sizeof(sp), &ctx);
	return sp;
}

/*
 * Stacks are 16 KiB, with KASAN 32; they are mapped with a gap behind, so that no other
 * one is within 32 KiB. Interrupts have their own (x86 and arm64).
 */
#define STACK_SPAN	32768

static __always_inline bool on_task_stack(u64 sp)
{
	return !sp || sp - (u64)bpf_get_current_task_btf()->stack < STACK_SPAN;
}

static __always_inline bool lock_target(void)
{
	if (!observing)
		return false;
	if (!observe_all)
		return state_find();
	return !(observe_cgroup || observe_comm) || task_fits();
}

#include "lock_within.h"

/*
 * What our programs take is measured as they run: of waits that begin in every fourth
 * jiffy, the program where one begins and most of that where it ends. 0: not this one.
 */
static __always_inline u64 cost_begins(void)
{
	return bpf_jiffies64() & 3 ? 0 : bpf_ktime_get_ns();
}

static __always_inline void cost_ends(const struct wait *w, u64 began)
{
	if (w->cost)
		count_time(METRIC_LOCK_PROGRAMS, slot_at(SLOT_BASE_NONE),
			   w->cost + bpf_ktime_get_ns() - began);
}

/* Before it is known what it waits for. */
static __always_inline void wait_seen(u32 mode)
{
	count(METRIC_LOCK_EVENTS, slot_at(SLOT_BASE_MODE + clamp(mode, MODE_MAX)), 1);
}

static __always_inline void wait_counted(u32 slot, bool nested)
{
	count(METRIC_LOCK_CONTENDED, slot, 1);
	if (nested)
		count(METRIC_LOCK_NESTED, slot_at(SLOT_BASE_NONE), 1);
}

static __always_inline void wait_over(const struct wait *w, u64 now)
{
	u64 ns = now - w->start;

	if (w->slot == SLOT_NONE)
		return;
	if (w->site == SITE_SPIN && w->slot == SLOT_NONE - 1) {
		count_time(METRIC_LOCK_INTERRUPT, slot_at(SLOT_BASE_NONE), ns);
		return;
	}
	count_time(METRIC_LOCK_WAIT, w->slot, ns);
	row_time(w->row, ns);
	stack_time(w->stack, ns);
}

/* ---- waits of a task that may sleep ---- */

/* A semaphore of each CPU has no owner, and begins as others do where those are not probed. */
static __always_inline u8 holder_from(u32 site, struct lock_id id)
{
	if (site == SITE_READ || site == SITE_WRITE)
		return HOLDER_RWSEM;
	if (site == SITE_VMA || site == SITE_VMA_OTHER)
		return HOLDER_READERS;
	if (site == SITE_EVENT && (id.mode == MODE_MUTEX || id.class != CLASS_OTHER))
		return HOLDER_WORD;
	return HOLDER_UNTOLD;
}

/* A wait for a lock begins; `mode` is a read, a write, or what has only one. */
static __noinline void task_wait(void *ctx, u64 lock, u32 site, u32 mode)
{
	u64 sp = stack_of(ctx), began = cost_begins();
	struct task_waits *t;
	struct lock_id id;
	struct wait *w;
	bool again = false;
	u32 depth, i;

	if (!lock_target())
		return;
	t = bpf_task_storage_get(&waits, bpf_get_current_task_btf(), 0,
				 lock_within && lock_within != EVENT_IN_FAULT ? 0 :
				 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!is_within(t, sp))
		return;
	if (!t) {
		count_trust(TRUST_LOST);
		return;
	}
	waits_fresh(t);
	if (site >= SITE_FOLIO && site <= SITE_SLEEP)
		fault_waits(t);
	depth = t->depth;
	/* A mutex says that it begins when it spins, and again when it sleeps. */
	if (site == SITE_EVENT && depth && depth <= WAITS_MAX) {
		w = &t->wait[(depth - 1) & (WAITS_MAX - 1)];
		if (w->site == site && w->lock == lock)
			return;
	}
	/* Whose frame is not above ours has returned: its end was lost. */
	for (i = 0; i < WAITS_MAX; i++) {
		if (!depth || depth > WAITS_MAX)
			break;
		w = &t->wait[(depth - 1) & (WAITS_MAX - 1)];
		if (!sp || w->sp > sp)
			break;
		count_trust(TRUST_UNMATCHED);
		depth--;
	}
	if (depth >= WAITS_MAX) {
		t->depth = depth = 0;
		count_trust(TRUST_LOST);
	}
	for (i = 0; i < WAITS_MAX; i++) {
		if (i >= depth || t->wait[i].lock != lock)
			continue;
		if (t->wait[i].site != site) {
			again = true;
			continue;
		}
		/* It does not wait for the same twice at a time: that end was lost, too. */
		count_at(TRUST_UNMATCHED, depth - i);
		depth = i;
	}
	w = &t->wait[depth & (WAITS_MAX - 1)];
	w->lock = lock;
	w->sp = sp;
	w->site = site;
	w->row = w->stack = ROW_NONE;
	w->slot = SLOT_NONE;
	w->part = PART_FOLIO;	/* of what is not counted: folios that are written */
	t->depth = depth + 1;
	if (!again && mode < MODE_MAX) {
		wait_seen(mode);
		id = site == SITE_VMA ? (struct lock_id){ CLASS_VMA_LOCK, mode, SPACE_OWN } :
		     site == SITE_VMA_OTHER ?
			(struct lock_id){ CLASS_VMA_LOCK, mode, SPACE_OTHER } :
		     site >= SITE_FOLIO ? (struct lock_id){ CLASS_FOLIO, mode, SPACE_NONE } :
		     lock_identify(lock, mode);
		id.holder = holder_from(site, id);
		w->slot = lock_slot(id);
		w->row = row_count(lock, id);
		w->stack = stack_count(ctx, id);
		w->part = fault_parts && id.class == CLASS_FOLIO && lock != SLEEP_LOCK &&
			  folio_is_read(lock) ? PART_IO : part_of(id.class);
		wait_counted(w->slot, depth);
	}
	w->start = bpf_ktime_get_ns();
	w->cost = began && w->slot != SLOT_NONE ? w->start - began : 0;
}

static __noinline void task_waited(u64 lock, u32 site)
{
	struct task_waits *t;
	struct wait *w;
	u64 now;
	u32 i, at;

	if (!observing)
		return;
	t = bpf_task_storage_get(&waits, bpf_get_current_task_btf(), 0, 0);
	/* No wait of it has begun since observing is on: this one began before. */
	if (!t || !waits_valid(t))
		return;
	for (i = 0; i < WAITS_MAX; i++) {
		at = t->depth - 1 - i;
		if (at >= WAITS_MAX)
			break;
		w = &t->wait[at & (WAITS_MAX - 1)];
		/* A sleep ends that is the innermost: which folio it was for is not seen now. */
		if (w->site != site || (w->lock != lock && site != SITE_SLEEP))
			continue;
		now = bpf_ktime_get_ns();
		wait_over(w, now);
		if (fault_parts && !at)
			parts_wait(w->part, now - w->start);
		if (i)
			count_at(TRUST_UNMATCHED, i);
		t->depth = at;
		cost_ends(w, now);
		return;
	}
	/* Spinlocks end by the same event, and not every call of the others waits. */
	if (!lock_within && site != SITE_EVENT && site < SITE_SLEEP && lock_target())
		count_trust(TRUST_UNMATCHED);
}

/* include/trace/events/lock.h, the same since 5.19. */
#define LCB_F_READ	0x2
#define LCB_F_WRITE	0x4
#define LCB_F_RT	0x8
#define LCB_F_PERCPU	0x10
#define LCB_F_MUTEX	0x20

/* contention_begin(lock, flags) */
SEC("tp_btf/contention_begin")
int LOCK_EVENT__tp_btf(u64 *ctx)
{
	u32 flags = ctx[1], mode;

	/* Spinlocks first: nothing is looked up while one is waited for. */
	if (!(flags & ~1u))
		return 0;
	if (flags & LCB_F_MUTEX)
		mode = MODE_MUTEX;
	else if (flags & LCB_F_RT)
		mode = MODE_RT;
	else if (flags & LCB_F_PERCPU || !lock_slow_rwsem)
		mode = flags & LCB_F_READ ? MODE_READ : MODE_WRITE;
	else
		return 0;
	task_wait(ctx, ctx[0], SITE_EVENT, mode);
	return 0;
}

SEC("tp_btf/contention_end")
int LOCK_EVENT_END__tp_btf(u64 *ctx)
{
	task_waited(ctx[0], SITE_EVENT);
	return 0;
}

/*
 * The entry and exit of a function whose first argument is the lock: matched by it,
 * which at an exit only a trampoline sees.
 */
/* As a number: with a typed pointer there is no arithmetic. */
static __always_inline u64 lock_of(u64 *ctx)
{
	u64 lock = 0;

	bpf_get_func_arg(ctx, 0, &lock);
	return lock;
}

#define WAIT_PROGRAMS(event, suffix, site, mode)				\
	SEC("fentry")								\
	int event##__fentry##suffix(u64 *ctx)					\
	{									\
		task_wait(ctx, lock_of(ctx), site, mode);		\
		return 0;							\
	}									\
	SEC("fexit")								\
	int event##_END__fexit##suffix(u64 *ctx)				\
	{									\
		task_waited(lock_of(ctx), site);				\
		return 0;							\
	}

WAIT_PROGRAMS(READ_WAIT, , SITE_READ, MODE_READ)
WAIT_PROGRAMS(WRITE_WAIT, , SITE_WRITE, MODE_WRITE)
WAIT_PROGRAMS(FOLIO_WAIT, , SITE_FOLIO, MODE_WAIT)
WAIT_PROGRAMS(FOLIO_WAIT, 2, SITE_FOLIO, MODE_WAIT)
WAIT_PROGRAMS(FOLIO_RETRY, , SITE_RETRY, MODE_WAIT)

/*
 * folio_wait_bit(folio, bit): PG_locked is 0 in all releases. A wait for another bit,
 * as for writeback, is noted for io_schedule() below, and not counted.
 */
#define BIT_PROGRAMS(suffix)							\
	SEC("fentry")								\
	int FOLIO_BIT__fentry##suffix(u64 *ctx)					\
	{									\
		task_wait(ctx, lock_of(ctx), SITE_BIT,		\
			  (u32)ctx[1] ? MODE_MAX : MODE_WAIT);			\
		return 0;							\
	}									\
	SEC("fexit")								\
	int FOLIO_BIT_END__fexit##suffix(u64 *ctx)				\
	{									\
		task_waited(lock_of(ctx), SITE_BIT);				\
		return 0;							\
	}

BIT_PROGRAMS()
BIT_PROGRAMS(2)

/*
 * Within mm/filemap.c these functions are inlined: what is left is that a task sleeps
 * in folio_wait_bit_common(), which cannot be probed itself (6.1 to 7.3). Its folio is
 * in what it has queued, which lies on the stack and names the function that wakes it.
 */
const volatile __u64 folio_wait_at;	/* 0: not known */

#define FOLIO_WAIT_SHIFT	11	/* its size is below; nothing else near it sleeps */
#define SLEEP_FRAMES	12

static __noinline bool sleeps_in_folio_wait(u64 *ctx)
{
	u64 frame[SLEEP_FRAMES] = { 0 };
	struct task_waits *t;
	struct wait *w;
	u64 found = 0;
	u32 i;

	if (!folio_wait_at || !lock_target())
		return false;
	t = bpf_task_storage_get(&waits, bpf_get_current_task_btf(), 0, 0);
	if (t && t->depth && t->depth <= WAITS_MAX) {
		w = &t->wait[(t->depth - 1) & (WAITS_MAX - 1)];
		if (w->site >= SITE_FOLIO && w->site <= SITE_BIT)
			return false;
	}
	bpf_get_stack(ctx, frame, sizeof(frame), 0);
	/* Without a branch, as the verifier would follow all ways through twelve: the top bit. */
	for (i = 0; i < SLEEP_FRAMES; i++)
		found |= ((frame[i] - folio_wait_at) >> FOLIO_WAIT_SHIFT) - 1;
	return found >> 63;
}

SEC("fentry")
int FOLIO_SLEEP__fentry(u64 *ctx)
{
	u64 folio = SLEEP_LOCK, queued;
	u32 bit = 0;

	if (!sleeps_in_folio_wait(ctx))
		return 0;
	queued = folio_queued(stack_of(ctx));
	if (queued) {
		folio = word_at(queued + OFFSET(wait_page_queue, folio));
		bit = half_at(queued + OFFSET(wait_page_queue, bit_nr));
	}
	task_wait(ctx, folio, SITE_SLEEP, bit ? MODE_MAX : MODE_WAIT);
	return 0;
}

SEC("fexit")
int FOLIO_SLEEP_END__fexit(u64 *ctx)
{
	task_waited(SLEEP_LOCK, SITE_SLEEP);
	return 0;
}

/*
 * __vma_start_exclude_readers(ves): every writer comes here; it waits if there are
 * readers beside the reference that an attached mapping has.
 */
SEC("fentry")
int VMA_WAIT__fentry(u64 *ctx)
{
	const bool typed = true;
	struct vma_exclude_readers_state *ves = (void *)ctx[0];
	struct vm_area_struct *vma = READ(ves, vma);

	/* Matched by its argument, which no other wait has. */
	if (READ(vma, vm_refcnt.refs.counter) > (READ(ves, detaching) ? 0 : 1))
		task_wait(ctx, lock_of(ctx),
			  READ(vma, vm_mm) == bpf_get_current_task_btf()->mm ?
			  SITE_VMA : SITE_VMA_OTHER, MODE_WRITE);
	return 0;
}

SEC("fexit")
int VMA_WAIT_END__fexit(u64 *ctx)
{
	const bool typed = true;
	struct vma_exclude_readers_state *ves = (void *)ctx[0];
	struct vm_area_struct *vma = READ(ves, vma);

	task_waited(lock_of(ctx), READ(vma, vm_mm) == bpf_get_current_task_btf()->mm ?
		    SITE_VMA : SITE_VMA_OTHER);
	return 0;
}

/* ---- spinlocks ---- */

static __always_inline void spin_inferred(u32 slot)
{
	mark_inferred(METRIC_LOCK_CONTENDED, slot);
	mark_inferred(METRIC_LOCK_WAIT, slot);
	mark_inferred(METRIC_LOCK_EVENTS, slot_at(SLOT_BASE_MODE + MODE_SPIN));
}

static __noinline void spin_wait(void *ctx, u64 lock)
{
	u64 sp = stack_of(ctx), began = cost_begins();
	struct task_waits *s, *t;
	u32 zero = 0, depth, slot, row = ROW_NONE, stack = ROW_NONE;
	struct lock_id id = { 0 };
	struct wait *w;

	if (!observing)
		return;
	if (!on_task_stack(sp)) {
		if (lock_within)
			return;
		slot = SLOT_NONE - 1;	/* no task waits */
	} else {
		if (!lock_target())
			return;
		t = bpf_task_storage_get(&waits, bpf_get_current_task_btf(), 0, 0);
		if (!is_within(t, sp))
			return;
		wait_seen(MODE_SPIN);
		id = lock_identify(lock, MODE_SPIN);
		slot = lock_slot(id);
		row = row_count(lock, id);
		stack = stack_count(ctx, id);
		wait_counted(slot, waits_depth(t));
		/* It may be that of an interrupt. */
		if (!read_memory)
			spin_inferred(slot);
	}
	s = bpf_map_lookup_elem(&spins, &zero);
	if (!s)
		return;
	waits_fresh(s);
	depth = s->depth;
	/* No task begins to spin while another one does on its CPU: the ends were lost. */
	if (depth && slot != SLOT_NONE - 1 && sp) {
		count_at(TRUST_UNMATCHED, depth);
		depth = 0;
	}
	if (depth >= WAITS_MAX) {
		depth = 0;
		count_trust(TRUST_LOST);
	}
	/* An interrupt that comes now finds its place behind ours. */
	s->depth = depth + 1;
	barrier();
	w = &s->wait[depth & (WAITS_MAX - 1)];
	w->lock = lock;
	w->site = SITE_SPIN;
	w->part = slot == SLOT_NONE - 1 ? PART_OTHER : part_of(id.class);
	w->slot = slot;
	w->row = row;
	w->stack = stack;
	w->start = bpf_ktime_get_ns();
	w->cost = began && slot != SLOT_NONE - 1 ? w->start - began : 0;
}

static __noinline void spin_waited(u64 lock)
{
	struct task_waits *s, *t;
	struct wait *w;
	u32 zero = 0, i, at;
	u64 now;

	if (!observing)
		return;
	now = bpf_ktime_get_ns();
	s = bpf_map_lookup_elem(&spins, &zero);
	if (!s || !waits_valid(s))
		return;
	for (i = 0; i < WAITS_MAX; i++) {
		at = s->depth - 1 - i;
		if (at >= WAITS_MAX)
			break;
		w = &s->wait[at & (WAITS_MAX - 1)];
		if (w->lock != lock)
			continue;
		wait_over(w, now);
		if (fault_parts && w->slot != SLOT_NONE - 1) {
			t = bpf_task_storage_get(&waits, bpf_get_current_task_btf(), 0, 0);
			if (!waits_depth(t))
				parts_wait(w->part, now - w->start);
		}
		if (i)
			count_at(TRUST_UNMATCHED, i);
		s->depth = at;
		cost_ends(w, now);
		return;
	}
}

#define SPIN_PROGRAMS(suffix)							\
	SEC("fentry")								\
	int SPIN_WAIT__fentry##suffix(u64 *ctx)					\
	{									\
		spin_wait(ctx, lock_of(ctx));					\
		return 0;							\
	}									\
	SEC("fexit")								\
	int SPIN_WAIT_END__fexit##suffix(u64 *ctx)				\
	{									\
		spin_waited(lock_of(ctx));					\
		return 0;							\
	}

SPIN_PROGRAMS()
SPIN_PROGRAMS(2)

#include "lock_release.h"

#endif
