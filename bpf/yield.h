/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_YIELD_H
#define MMSCOPE_YIELD_H

/*
 * What fault-around would gain: of the pages that it maps besides the one that faulted,
 * how many are touched later?
 *
 * The accessed bits do not tell: x86 sets them already when it maps around a fault, and
 * there is no way to clear those of one window (the kernels of the matrix are built
 * without idle page tracking). So fault-around is off meanwhile, and each page that is
 * touched takes a fault of its own. The windows are those that do_fault_around() (6.1 to
 * 7.3) would have mapped at such a fault.
 */
#define YIELD_SHIFT	9	/* log2 of the PTEs of a table: only with pages of 4 KiB */
#define YIELD_PTES	(1u << YIELD_SHIFT)
#define YIELD_WORDS	(YIELD_PTES / 64)

struct yield_key {
	u64 mm, table;
};

struct yield_table {
	u64 around[YIELD_WORDS];	/* would be mapped, and was not touched yet */
	u64 seen[YIELD_WORDS];		/* has faulted */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);		/* the loader sets more when they are asked for */
	__type(key, struct yield_key);
	__type(value, struct yield_table);
} yield_tables SEC(".maps");

/* Bits [first, end) of the table that are in its word w. */
static __always_inline u64 yield_mask(u32 w, u32 first, u32 end)
{
	u32 low = w * 64, high = low + 64;

	low = low > first ? low : first;
	high = high < end ? high : end;
	return low < high ? ~0ULL >> (64 - (high - low)) << (low & 63) : 0;
}

static __always_inline u32 ones(u64 v)
{
	v -= v >> 1 & 0x5555555555555555ULL;
	v = (v & 0x3333333333333333ULL) + (v >> 2 & 0x3333333333333333ULL);
	v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return v * 0x0101010101010101ULL >> 56;
}

/* A fault starts: where could its window lie? */
static __always_inline void yield_start(const bool typed, struct task_state *st,
					struct vm_area_struct *vma,
					const struct vm_operations_struct *ops, u64 address)
{
	u64 page = address >> page_shift, start, end;
	u32 slot = page & (YIELD_PTES - 1);

	st->yield_mm = 0;
	if (!ops || !READ(ops, map_pages))
		return;
	st->yield_mm = (u64)READ(vma, vm_mm);
	start = READ(vma, vm_start) >> page_shift;
	end = READ(vma, vm_end) >> page_shift;
	st->yield_first = page - start < slot ? slot - (u32)(page - start) : 0;
	st->yield_end = end - page < YIELD_PTES - slot ? slot + (u32)(end - page) : YIELD_PTES;
}

static __always_inline struct yield_table *yield_table(const struct yield_key *key)
{
	struct yield_table none = { 0 }, *t = bpf_map_lookup_elem(&yield_tables, key);

	if (t)
		return t;
	bpf_map_update_elem(&yield_tables, key, &none, BPF_NOEXIST);
	t = bpf_map_lookup_elem(&yield_tables, key);
	if (!t)
		count_trust(TRUST_MAP_FULL);
	return t;
}

/* A fault succeeded: was its page in a window, or does it open one? */
static __always_inline void yield_fault(struct task_state *st)
{
	struct yield_key key = { st->yield_mm, st->address >> page_shift >> YIELD_SHIFT };
	u32 slot = st->address >> page_shift & (YIELD_PTES - 1), first, end, n = 0, w;
	u64 bit = 1ULL << (slot & 63), word = clamp(slot >> 6, YIELD_WORDS);
	struct yield_table *t;

	if (!st->yield_mm)
		return;
	t = yield_table(&key);
	if (!t || t->seen[word] & bit)
		return;
	__sync_fetch_and_or(&t->seen[word], bit);
	if (t->around[word] & bit) {
		__sync_fetch_and_and(&t->around[word], ~bit);
		count(METRIC_FAULT_AROUND_TOUCHED, backing_slot(st->backing), 1);
		count_by(st, METRIC_FAULT_AROUND_TOUCHED, 1, 1);
		return;
	}
	/* Writes open no window; nor is it known what a folio mapped as a whole would. */
	if (st->write || st->attempt_ptes > 1 || st->pmd)
		return;
	first = slot & ~(yield_pages - 1);
	end = first > st->yield_first ? first : st->yield_first;
	first = end;
	end += yield_pages;
	end = end < st->yield_end ? end : st->yield_end;
#pragma unroll
	for (w = 0; w < YIELD_WORDS; w++) {
		u64 mask = yield_mask(w, first, end) & ~t->seen[w] & ~t->around[w];

		if (!mask)
			continue;
		__sync_fetch_and_or(&t->around[w], mask);
		n += ones(mask);
	}
	count(METRIC_FAULT_AROUND_EXTRA, backing_slot(st->backing), n);
	count_by(st, METRIC_FAULT_AROUND_EXTRA, n, n);
}

struct yield_range {
	u64 mm, first, end;	/* pages */
};

static long yield_forget(u32 i, struct yield_range *r)
{
	u64 table = (r->first >> YIELD_SHIFT) + i, base = table << YIELD_SHIFT;
	struct yield_key key = { r->mm, table };
	struct yield_table *t = bpf_map_lookup_elem(&yield_tables, &key);
	u32 first = r->first > base ? r->first - base : 0, end, w;

	if (!t)
		return 0;
	end = r->end - base < YIELD_PTES ? r->end - base : YIELD_PTES;
	if (!first && end == YIELD_PTES) {
		bpf_map_delete_elem(&yield_tables, &key);
		return 0;
	}
#pragma unroll
	for (w = 0; w < YIELD_WORDS; w++) {
		u64 mask = yield_mask(w, first, end);

		__sync_fetch_and_and(&t->around[w], ~mask);
		__sync_fetch_and_and(&t->seen[w], ~mask);
	}
	return 0;
}

/* (tlb, vma, start, end, ...): the range has no pages any more. */
ENTRY_BODY(YIELD_ZAP)
{
	struct vm_area_struct *vma = (void *)a1;
	struct yield_range r = { (u64)READ(vma, vm_mm), a2 >> page_shift, a3 >> page_shift };

	if (r.first < r.end)
		bpf_loop(((r.end - 1) >> YIELD_SHIFT) - (r.first >> YIELD_SHIFT) + 1,
			 yield_forget, &r, 0);
}
ENTRY_PROGRAMS(YIELD_ZAP)

#endif
