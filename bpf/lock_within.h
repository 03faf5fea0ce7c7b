/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_LOCK_WITHIN_H
#define MMSCOPE_LOCK_WITHIN_H

/* Waits within a path alone. */

const volatile __u32 lock_within;		/* event_id of its start; 0: anywhere */

const volatile __u64 exc_page_fault_at;

#define CALL_LENGTH	5	/* of x86-64: 0xe8 and how far it is from what follows */
#define CALL_OPCODE	0xe8
#define ENDBR_LENGTH	4	/* may be left out by who calls directly */

__u64 fault_returns_to;		/* once it was seen */

/*
 * Did the task come into the kernel by a page fault? The function that handles one is not to
 * be probed. What enters the kernel puts the registers at the end of the stack, and calls
 * what handles it: where that returns to lies next to them. idtentry of
 * arch/x86/entry/entry_64.S is as it is since 5.8; by FRED there is another way in.
 */
static __noinline bool in_user_fault(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 ret = word_at((u64)bpf_task_pt_regs(task) - sizeof(u64)), call;

	if (ret == fault_returns_to)
		return ret;
	call = word_at(ret - CALL_LENGTH);
	if ((call & 0xff) != CALL_OPCODE || !task->mm ||
	    ret + (s32)(call >> 8) - exc_page_fault_at > ENDBR_LENGTH)
		return false;
	fault_returns_to = ret;
	return true;
}

/* Is a wait that begins at this frame one that is asked for? */
static __always_inline bool is_within(const struct task_waits *t, u64 sp)
{
	if (lock_within == EVENT_IN_FAULT)
		return in_user_fault();
	return !lock_within || (t && t->within && sp <= t->within);
}

static __noinline void path_enter(void *ctx)
{
	struct task_waits *t;
	u64 sp = stack_of(ctx);

	if (!lock_target())
		return;
	t = bpf_task_storage_get(&waits, bpf_get_current_task_btf(), 0,
				 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t) {
		count_trust(TRUST_LOST);
		return;
	}
	/* One within another one, as populating in populating, ends first. */
	if (!t->within || sp >= t->within)
		t->within = sp ?: ~0ULL;
}

static __noinline void path_leave(void *ctx)
{
	struct task_waits *t;
	u64 sp = stack_of(ctx);

	t = bpf_task_storage_get(&waits, bpf_get_current_task_btf(), 0, 0);
	if (t && (!sp || sp >= t->within))
		t->within = 0;
}

#define PATH_PROGRAMS(event, suffix)						\
	SEC("fentry")								\
	int event##__fentry##suffix(u64 *ctx)					\
	{									\
		path_enter(ctx);						\
		return 0;							\
	}									\
	SEC("fexit")								\
	int event##_END__fexit##suffix(u64 *ctx)				\
	{									\
		path_leave(ctx);						\
		return 0;							\
	}

PATH_PROGRAMS(IN_MUNMAP, )
PATH_PROGRAMS(IN_POPULATE, )
PATH_PROGRAMS(IN_POPULATE, 2)

#endif
