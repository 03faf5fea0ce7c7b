/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_COUNT_H
#define MMSCOPE_COUNT_H

/*
 * Where the counts go: counters, and histograms, which few combinations of labels need.
 *
 * They are per CPU, but a trampoline program can be preempted on kernels with
 * lazy preemption, and another task's program may then add to the same word:
 * hence the (uncontended) atomic adds.
 */

const volatile __u32 metric_base[METRIC_MAX];	/* counters or histogram of slot 0 */
const volatile __u32 pairs_room, times_room;	/* elements of the maps */

__u32 pair_at[PAIRS_MAX], pairs_used;	/* 1 + the element of a combination; 0: none yet */
__u32 time_at[TIMES_MAX], times_used;

struct counters {
	u64 value[COUNTERS_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counters);
} counters SEC(".maps");

/* The loader sets max_entries of these to what the options need. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct batch_pair);
} batches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct time_kinds);
} times SEC(".maps");

/*
 * For the verifier: values are always in range, which the compiler knows and
 * would not check, and it must be checked in the register that is the index.
 */
static __always_inline u64 clamp(u64 v, u64 max)
{
	barrier_var(v);
	if (v >= max)
		v = max - 1;
	barrier_var(v);
	return v;
}

static __always_inline void count_at(u32 index, u64 n)
{
	u32 zero = 0;
	struct counters *c = bpf_map_lookup_elem(&counters, &zero);

	if (c)
		__sync_fetch_and_add(&c->value[index & (COUNTERS_MAX - 1)], n);
}

static __always_inline void count_trust(enum trust_counter which)
{
	count_at(which, 1);
}

/* A slot that cannot occur but did is a fault of the tables: it shows as map full. */
static __always_inline bool slot_ok(u32 slot)
{
	if (slot != SLOT_NONE)
		return true;
	count_trust(TRUST_MAP_FULL);
	return false;
}

static __always_inline void count(enum metric_id metric, u32 slot, u64 n)
{
	if (slot_ok(slot))
		count_at(metric_base[metric] + slot, n);
}

/* The first of a combination; of two CPUs at once one wins, and one element is lost. */
static __noinline u32 take_element(u32 *at, u32 *used, u32 room)
{
	u32 n = room, before;

	if (*used < room)
		n = __sync_fetch_and_add(used, 1);
	if (n >= room) {
		count_trust(TRUST_MAP_FULL);
		return room;	/* no look-up finds it */
	}
	before = __sync_val_compare_and_swap(at, 0, n + 1);
	return before ? before - 1 : n;
}

/* Where a metric of batches and the one beside it are counted, or NULL. */
static __always_inline struct batch_pair *batch_at(enum metric_id metric, u32 slot)
{
	u32 *at, key;

	if (!slot_ok(slot))
		return 0;
	at = &pair_at[clamp(metric_base[metric] + slot, PAIRS_MAX)];
	key = *at ? *at - 1 : take_element(at, &pairs_used, pairs_room);
	return bpf_map_lookup_elem(&batches, &key);
}

static __always_inline void count_batch_n(enum metric_id metric, u32 slot, u64 value, u64 n)
{
	const u32 lane = METRIC_LANE(metric);
	struct batch_pair *h = n ? batch_at(metric, slot) : 0;

	if (!h)
		return;
	__sync_fetch_and_add(&h->bucket[clamp(hist_batch_bucket(value), HIST_BATCH_BUCKETS)][lane],
			     n);
	__sync_fetch_and_add(&h->sum[lane], value * n);
}

static __always_inline void count_batch(enum metric_id metric, u32 slot, u64 value)
{
	count_batch_n(metric, slot, value, 1);
}

/* The same value of both metrics of a pair. */
static __always_inline void count_batch_both(enum metric_id metric, u32 slot, u64 value)
{
	struct batch_pair *h = batch_at(metric, slot);
	u64 bucket = clamp(hist_batch_bucket(value), HIST_BATCH_BUCKETS);

	if (!h)
		return;
	__sync_fetch_and_add(&h->bucket[bucket][0], 1);
	__sync_fetch_and_add(&h->bucket[bucket][1], 1);
	__sync_fetch_and_add(&h->sum[0], value);
	__sync_fetch_and_add(&h->sum[1], value);
}

static __always_inline struct time_kinds *count_time(enum metric_id metric, u32 slot, u64 value)
{
	struct time_kinds *h;
	u32 *at, key;

	if (!slot_ok(slot))
		return 0;
	at = &time_at[clamp(metric_base[metric] + slot, TIMES_MAX)];
	key = *at ? *at - 1 : take_element(at, &times_used, times_room);
	h = bpf_map_lookup_elem(&times, &key);
	if (!h)
		return 0;
	__sync_fetch_and_add(&h->bucket[clamp(hist_time_bucket(value), HIST_TIME_BUCKETS)], 1);
	__sync_fetch_and_add(&h->sum, value);
	return h;
}

#endif
