/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_LOCK_ROWS_BPF_H
#define MMSCOPE_LOCK_ROWS_BPF_H

/* ---- rows: by the lock itself, or by an open label ---- */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct lock_row);
} lock_rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct lock_row_counts);
} lock_counts SEC(".maps");

#define ROW_TRIES	8

static __always_inline u64 mix(u64 a, u64 b)
{
	a = (a ^ (a >> 29)) * 0x9e3779b97f4a7c15ULL;
	b = (b ^ (b >> 31)) * 0xc2b2ae3d27d4eb4fULL;
	return (a ^ (b << 17 | b >> 47)) | 1;	/* 0 is an empty row */
}

/* A process's name changes when it becomes another program. Rarely: who reads shares. */
static __always_inline void row_name(struct lock_row *row, const u64 name[2], u32 pid)
{
	u64 *to = (u64 *)row->name;

	if (to[0] != name[0])
		to[0] = name[0];
	if (to[1] != name[1])
		to[1] = name[1];
	if (row->pid != pid)
		row->pid = pid;
}

#define PID_LEVELS	8	/* namespaces within namespaces that are looked through */

/* The number of another's process as whoever reads it knows it: see process_key(). */
static __noinline u32 pid_of(u64 leader)
{
	u64 pid, number, ns;
	u32 i;

	pid = pid_ns_inode ? word_at(leader + OFFSET(task_struct, thread_pid)) : 0;
#pragma unroll
	for (i = 0; i < PID_LEVELS; i++) {
		if (!pid || i > half_at(pid + OFFSET(pid, level)))
			break;
		number = pid + OFFSET(pid, numbers) + i * bpf_core_type_size(struct upid);
		ns = word_at(number + OFFSET(upid, ns));
		if (half_at(ns + OFFSET(pid_namespace, ns.inum)) == pid_ns_inode)
			return half_at(number + OFFSET(upid, nr));
	}
	return half_at(leader + OFFSET(task_struct, tgid));
}

/* The address space that a lock is of; 0: of none that is known. */
static __always_inline u64 lock_space(u64 lock, struct lock_id id)
{
	if (id.class == CLASS_MMAP_LOCK && id.mode != MODE_SPIN)
		return lock - OFFSET(mm_struct___lock, mmap_lock);
	return id.space == SPACE_OTHER ? 0 : current_mm();
}

/* The first thread of the process that it is the address space of; 0: not known. */
static __always_inline u64 space_leader(u64 mm)
{
	u64 task = mm ? mm_owner(mm) : 0;

	if (!task && mm && mm == current_mm())
		task = (u64)bpf_get_current_task();
	return task ? word_at(task + OFFSET(task_struct, group_leader)) : 0;
}

/*
 * kernel/locking/rwsem.c and mutex.c (5.3 to 7.3): what else the word of the owner holds,
 * and the count of a rwsem: a bit of its writer, and its readers. Other bits than these are
 * of who waits, and a lock that nobody holds is not had at once while they are set.
 */
#define RWSEM_READER_OWNED	1ULL
#define OWNER_FLAGS		7ULL
#define RWSEM_WRITER		1ULL
#define RWSEM_READER		(1ULL << 8)
#define RWSEM_HELD		(RWSEM_WRITER | ((1ULL << 63) - RWSEM_READER))

/* Is it a task? Its process's first thread is its own, and has the process's number. */
static __always_inline bool is_task(u64 task)
{
	u64 leader = task ? word_at(task + OFFSET(task_struct, group_leader)) : 0;

	return leader && word_at(leader + OFFSET(task_struct, group_leader)) == leader &&
	       half_at(leader + OFFSET(task_struct, pid)) ==
	       half_at(task + OFFSET(task_struct, tgid));
}

/* Instead of a task. */
enum holder { HELD_UNKNOWN, HELD_BY_READERS, HELD_BY_NOBODY };

/*
 * The first thread of the process that holds a lock, or enum holder. A rwsem's owner is
 * written behind its count: a writer that has come and not said so yet, or that has said
 * that it goes, is not known.
 */
static __always_inline u64 lock_holder(u64 lock, struct lock_id id)
{
	u64 owner, count;

	if (id.holder == HOLDER_READERS)
		return HELD_BY_READERS;
	if (id.holder == HOLDER_UNTOLD)
		return HELD_UNKNOWN;
	if (id.holder == HOLDER_SELF)
		return word_at((u64)bpf_get_current_task() + OFFSET(task_struct, group_leader));
	if (id.mode == MODE_MUTEX) {
		if (!bpf_core_field_exists(((struct mutex *)0)->owner))
			return HELD_UNKNOWN;
		owner = word_at(lock + OFFSET(mutex, owner));
		if (!(owner & ~OWNER_FLAGS))
			return HELD_BY_NOBODY;	/* the word is the lock itself */
	} else {
		if (!bpf_core_field_exists(((struct rw_semaphore *)0)->owner))
			return HELD_UNKNOWN;
		count = word_at(lock + OFFSET(rw_semaphore, count));
		owner = word_at(lock + OFFSET(rw_semaphore, owner));
		if (id.holder == HOLDER_RWSEM && id.mode == MODE_READ)
			count -= RWSEM_READER;
		if (!(count & RWSEM_HELD))
			return HELD_BY_NOBODY;
		if (!(count & RWSEM_WRITER))
			return owner & RWSEM_READER_OWNED ? HELD_BY_READERS : HELD_UNKNOWN;
		if (owner & RWSEM_READER_OWNED)
			return HELD_UNKNOWN;
	}
	owner &= ~OWNER_FLAGS;
	return is_task(owner) ? word_at(owner + OFFSET(task_struct, group_leader)) : HELD_UNKNOWN;
}

/*
 * Claimed by one compare-and-exchange; what else is in a row, only the reader reads. A
 * process is known by when it started as well: numbers and addresses are used again.
 */
static __noinline u32 row_find(u64 lock, u32 packed)
{
	struct lock_id id = { packed, packed >> 8, packed >> 16, packed >> 24 };
	u64 word[2] = { 0 }, name[2] = { 0 }, key, old, cache = 0, leader = 0;
	struct lock_row *row = 0;
	u32 offset = 0, pid = 0, i, at;

	if (lock_by == LABEL_COMM) {
		bpf_get_current_comm(word, sizeof(word));
		name[0] = word[0];
		name[1] = word[1];
	} else if (lock_by == LABEL_PID) {
		struct by_key process;

		process_key(&process, &pid);
		word[0] = process.word[0];
		word[1] = process.word[1];
		leader = word_at((u64)bpf_get_current_task() +
				 OFFSET(task_struct, group_leader));
	} else if (lock_by == LABEL_OWNER) {
		word[0] = lock_space(lock, id);
		leader = space_leader(word[0]);
		if (leader) {
			word[1] = word_at(leader + OFFSET(task_struct, start_time));
			pid = pid_of(leader);
		}
	} else if (lock_by == LABEL_HOLDER) {
		word[0] = leader = lock_holder(lock, id);
		if (leader == HELD_BY_READERS)
			__builtin_memcpy(name, "(readers)", 10);
		else if (leader == HELD_BY_NOBODY)
			__builtin_memcpy(name, "(nobody)", 9);
		if (leader <= HELD_BY_NOBODY) {
			leader = 0;
		} else {
			word[1] = word_at(leader + OFFSET(task_struct, start_time));
			pid = pid_of(leader);
		}
	} else {
		cache = slab_of(lock, &offset);
		word[0] = cache ?: lock;
		word[1] = cache ? offset : 0;
	}
	if (leader)
		bpf_probe_read_kernel_str(name, sizeof(name),
					  (void *)(leader + OFFSET(task_struct, comm)));
	key = mix(word[0], word[1]);
	at = key >> 32;
	/* Unrolled: how the compiler lays it out is no loop to the verifier of 6.1. */
#pragma unroll
	for (i = 0; i < ROW_TRIES; i++) {
		at = (at + i) & (LOCK_ROWS - 1);
		/* The last one is of all that have none. */
		if (at == LOCK_ROW_REST)
			continue;
		row = bpf_map_lookup_elem(&lock_rows, &at);
		if (!row)
			return ROW_NONE;
		old = row->key ?: __sync_val_compare_and_swap(&row->key, 0, key);
		if (old == key && lock_by == LABEL_MAX)
			return at;
		if (old && old != key)
			continue;
		if (lock_by != LABEL_MAX) {
			row_name(row, name, pid);
			return at;
		}
		row->lock = cache ? 0 : word[0];
		row->offset = offset;
		if (cache)
			bpf_probe_read_kernel_str(row->name, sizeof(row->name), (void *)
						  word_at(cache + OFFSET(kmem_cache, name)));
		return at;
	}
	count_trust(TRUST_BY_FULL);
	return LOCK_ROW_REST;
}

/* Of rows of locks or of stacks: a wait that began, and that ended. */
static __always_inline void row_begun(void *counts, u32 row)
{
	struct lock_row_counts *c = bpf_map_lookup_elem(counts, &row);

	if (c)
		__sync_fetch_and_add(&c->begun, 1);
}

static __always_inline void row_ended(void *counts, u32 row, u64 ns)
{
	struct lock_row_counts *c = bpf_map_lookup_elem(counts, &row);

	if (!c)
		return;
	__sync_fetch_and_add(&c->ended, 1);
	__sync_fetch_and_add(&c->ns, ns);
}

/* The row of a lock; ROW_NONE: it is in none. */
static __always_inline u32 row_of(u64 lock, struct lock_id id)
{
	if (!read_memory || (lock_by == LABEL_MAX && id.class != CLASS_OTHER))
		return ROW_NONE;
	return row_find(lock, id.class | (u32)id.mode << 8 | (u32)id.space << 16 |
			(u32)id.holder << 24);
}

/* A wait for a lock that begins, in its row. */
static __always_inline u32 row_count(u64 lock, struct lock_id id)
{
	u32 row = row_of(lock, id);

	if (row != ROW_NONE)
		row_begun(&lock_counts, row);
	return row;
}

/* A lock that is given back while others wait. */
static __always_inline void row_release(u64 lock, struct lock_id id)
{
	u32 row = row_of(lock, id);
	struct lock_row_counts *c;

	c = row == ROW_NONE ? 0 : bpf_map_lookup_elem(&lock_counts, &row);
	if (c)
		__sync_fetch_and_add(&c->released, 1);
}

static __always_inline void row_time(u32 row, u64 ns)
{
	if (row != ROW_NONE)
		row_ended(&lock_counts, row, ns);
}

#endif
