/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_LOCK_STACK_H
#define MMSCOPE_LOCK_STACK_H

/*
 * Where the tasks wait, stack by stack. A hash map would take locks of its own where
 * somebody waits for one, and a map of stacks tells only hashes apart: rows are claimed
 * by one compare-and-exchange, as those of locks are, and found by all of their frames.
 * A row that is still being written is nobody else's: its like gets a second row, and
 * the reader makes one of both.
 */

const volatile bool lock_stacks, lock_user_stacks;	/* they are asked for */
const volatile __u32 lock_stack_rows;	/* power of two, of both */

#define STACK_REST	(lock_stack_rows - 1)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct lock_stack);
} stacks SEC(".maps"), user_stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct lock_row_counts);
} stack_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STACK_ROOMS);
	__type(key, u32);
	__type(value, struct stack_room);
} stack_rooms SEC(".maps");

#define TRACE_WORDS	(sizeof(struct lock_trace) / sizeof(u64))

/* Global: the verifier looks at each once, and not at every call of every program. */
__noinline u64 trace_key(const struct lock_trace *trace)
{
	const u64 *word = (const u64 *)trace;
	u64 h = TRACE_WORDS;
	u32 i;

	if (!trace)
		return 0;
	for (i = 0; i < TRACE_WORDS; i++)
		h = mix(h, word[i]);
	return h;
}

__noinline int trace_same(const struct lock_trace *a, const struct lock_trace *b)
{
	const u64 *left = (const u64 *)a, *right = (const u64 *)b;
	u32 i;

	if (!a || !b)
		return 0;
	for (i = 0; i < TRACE_WORDS; i++)
		if (left[i] != right[i])
			return 0;
	return 1;
}

static __always_inline bool trace_take(void *ctx, u32 packed, u32 user, struct lock_trace *t)
{
	t->class = packed;
	t->mode = packed >> 8;
	t->pad[0] = t->pad[1] = 0;
	t->user = user;
	__builtin_memset(t->comm, 0, sizeof(t->comm));	/* before 6.2 the helper does not */
	bpf_get_current_comm(t->comm, sizeof(t->comm));
	/* What is behind the last frame is cleared. */
	return bpf_get_stack(ctx, t->frame, sizeof(t->frame), 0) > 0;
}

/* The row of a trace in one of the maps of them, claimed if it is its first. */
static __always_inline u32 trace_row(void *map, const struct lock_trace *trace)
{
	u64 key = trace_key(trace), old;
	struct lock_stack *row;
	u32 i, at = key >> 32;

#pragma unroll
	for (i = 0; i < ROW_TRIES; i++) {
		at = (at + i) & STACK_REST;
		if (at == STACK_REST)
			continue;
		row = bpf_map_lookup_elem(map, &at);
		if (!row)
			break;
		old = row->key;
		if (!old) {
			old = __sync_val_compare_and_swap(&row->key, 0, key);
			if (!old) {
				row->trace = *trace;
				__sync_fetch_and_add(&row->ready, bpf_ktime_get_ns());
				return at;
			}
		}
		if (old == key && row->ready && trace_same(&row->trace, trace))
			return at;
	}
	return STACK_REST;
}

/*
 * Global as well, as the ways through one would be multiplied by those through the other.
 * Where nobody asks the maps are not there: the verifier of 6.1 looks at what is not called.
 */
__noinline u32 kernel_row(const struct lock_trace *trace)
{
	return trace && lock_stacks ? trace_row(&stacks, trace) : STACK_REST;
}

__noinline u32 user_row(const struct lock_trace *trace)
{
	return trace && lock_user_stacks ? trace_row(&user_stacks, trace) : STACK_REST;
}

/*
 * The row of what the task does in user space, + 1; 0: it has none, or nobody asked. Frames
 * are found by frame pointers and memory that is not there is not waited for
 * (perf_callchain_user()), so that it does as well where a spinlock is waited for.
 */
static __noinline u32 user_find(void *ctx, struct lock_trace *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct by_key process;
	u32 pid;

	if (!lock_user_stacks || bpf_get_stack(ctx, t->frame, sizeof(t->frame),
					       BPF_F_USER_STACK) <= 0)
		return 0;
	process_key(&process, &pid);
	/* Who is not in the reader's namespace has no number there, and 0 is nobody's. */
	t->pid = pid_ns_inode && pid == (u32)process.word[0] ? 0 : pid;
	t->exec = task->self_exec_id;
	t->started = process.word[1];
	t->zero = 0;
	return user_row(t) + 1;
}

static __noinline u32 stack_find(void *ctx, u32 packed)
{
	struct stack_room *room;
	u32 i, at, user = 0, found = STACK_REST;

#pragma unroll
	for (i = 0; i < STACK_ROOMS; i++) {
		at = i;
		room = bpf_map_lookup_elem(&stack_rooms, &at);
		if (!room)
			break;
		if (__sync_val_compare_and_swap(&room->taken, 0, 1))
			continue;
		user = user_find(ctx, &room->trace);
		if (trace_take(ctx, packed, user, &room->trace))
			found = kernel_row(&room->trace);
		__sync_fetch_and_and(&room->taken, 0);
		break;
	}
	if (found == STACK_REST || user == lock_stack_rows)
		count_trust(TRUST_BY_FULL);
	return found;
}

/* A wait that begins, at the stack of the current task; ROW_NONE: nobody asked. */
static __always_inline u32 stack_count(void *ctx, struct lock_id id)
{
	u32 row;

	if (!lock_stacks)
		return ROW_NONE;
	row = stack_find(ctx, id.class | (u32)id.mode << 8);
	row_begun(&stack_counts, row);
	return row;
}

static __always_inline void stack_time(u32 row, u64 ns)
{
	if (lock_stacks && row != ROW_NONE)
		row_ended(&stack_counts, row, ns);
}

#endif
