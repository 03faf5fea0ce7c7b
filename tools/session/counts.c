// SPDX-License-Identifier: GPL-2.0-only
/* From per-CPU arrays to samples: driven by the metrics table alone. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "data/err.h"
#include "session/counts.h"
#include "session/kallsyms.h"

/* All of it at one moment; arrays of 64-bit words. */
struct reading {
	uint64_t *counters;	/* [COUNTERS_MAX] */
	uint64_t *batches;	/* [n][sum, bucket...] */
	uint64_t *times;
	uint64_t *by;		/* [BY_SLOTS][struct by_counts] */
};

struct counts {
	struct counts_maps maps;
	uint32_t base[METRIC_MAX];	/* in a reading */
	uint32_t element[METRIC_MAX];	/* in the programs' maps */
	unsigned int cpus, batches, times, pairs;
	struct reading now, start;
	void *percpu;
	struct batch_pair *pair;	/* [pairs], as the programs keep them */
	struct time_kinds *time;	/* [times] */
	struct by_key by_key[BY_SLOTS];
	struct by_value by_value[BY_SLOTS];
};

#define DEV_MINOR_BITS	20	/* of the kernel's own dev_t (include/linux/kdev_t.h) */
#define BATCH_WORDS	(1 + HIST_BATCH_BUCKETS)
#define TIME_WORDS	(1 + HIST_TIME_BUCKETS)
#define PAIR_WORDS	(sizeof(struct batch_pair) / sizeof(uint64_t))
#define KINDS_WORDS	(sizeof(struct time_kinds) / sizeof(uint64_t))
#define BY_WORDS	(sizeof(struct by_counts) / sizeof(uint64_t))

static void reading_free(struct reading *r)
{
	free(r->counters);
	free(r->batches);
	free(r->times);
	free(r->by);
}

static int reading_alloc(const struct counts *c, struct reading *r)
{
	r->counters = calloc(COUNTERS_MAX, sizeof(uint64_t));
	r->batches = calloc(c->batches * BATCH_WORDS, sizeof(uint64_t));
	r->times = calloc(c->times * TIME_WORDS, sizeof(uint64_t));
	r->by = calloc(BY_SLOTS * BY_WORDS, sizeof(uint64_t));
	return r->counters && r->batches && r->times && r->by ? 0 : -1;
}

struct counts *counts_new(const struct counts_maps *maps)
{
	struct counts *c = calloc(1, sizeof(*c));
	unsigned int counters;
	size_t words;

	if (!c)
		goto fail;
	c->maps = *maps;
	c->cpus = libbpf_num_possible_cpus();
	plan_elements(maps->plan, c->element, &c->pairs, &c->times);
	plan_storage(maps->plan, c->base, &counters, &c->batches, &c->times);
	words = COUNTERS_MAX > PAIR_WORDS ? COUNTERS_MAX : PAIR_WORDS;
	if (BY_WORDS > words)
		words = BY_WORDS;
	c->percpu = calloc(c->cpus, words * sizeof(uint64_t));
	c->pair = calloc(c->pairs ?: 1, sizeof(*c->pair));
	c->time = calloc(c->times ?: 1, sizeof(*c->time));
	if (!c->percpu || !c->pair || !c->time || reading_alloc(c, &c->now) ||
	    reading_alloc(c, &c->start))
		goto fail;
	return c;

fail:
	err("counts", "out of memory");
	counts_free(c);
	return NULL;
}

void counts_free(struct counts *c)
{
	if (!c)
		return;
	reading_free(&c->now);
	reading_free(&c->start);
	free(c->percpu);
	free(c->pair);
	free(c->time);
	free(c);
}

/*
 * Sum n elements of a per-CPU array of `words` 64-bit words each: those of `at`, or all if
 * it is NULL. What has no element yet is 0, and is not read: a read copies it for every CPU.
 */
static int read_array(struct counts *c, int map, const uint32_t *at, uint32_t n, size_t words,
		      uint64_t *to)
{
	const uint64_t *cpu_words = c->percpu;
	uint32_t i, key, cpu;
	size_t w;

	memset(to, 0, n * words * sizeof(*to));
	for (i = 0; i < n; i++, to += words) {
		key = at ? __atomic_load_n(&at[i], __ATOMIC_ACQUIRE) : i + 1;
		if (!key--)
			continue;
		if (bpf_map_lookup_elem(map, &key, c->percpu)) {
			err("counts", "a map cannot be read: %s", strerror(errno));
			return -1;
		}
		for (cpu = 0; cpu < c->cpus; cpu++)
			for (w = 0; w < words; w++)
				to[w] += cpu_words[cpu * words + w];
	}
	return 0;
}

/* Slots that may hold counts; all when some had no room. */
static unsigned int by_used(const struct counts *c)
{
	uint32_t used = __atomic_load_n(c->maps.by_used, __ATOMIC_SEQ_CST);

	return used < BY_OTHER ? used : BY_SLOTS;
}

int counts_forget_values(struct counts *c)
{
	uint32_t used = by_used(c), i;
	struct by_key key;
	int ret = 0;

	while (!ret && !bpf_map_get_next_key(c->maps.by_slots, NULL, &key))
		ret = bpf_map_delete_elem(c->maps.by_slots, &key);
	memset(c->percpu, 0, c->cpus * BY_WORDS * sizeof(uint64_t));
	for (i = 0; i < used && !ret; i++)
		ret = bpf_map_update_elem(c->maps.by_counts, &i, c->percpu, BPF_ANY);
	if (ret)
		err("counts", "a map cannot be written: %s", strerror(errno));
	__atomic_store_n(c->maps.by_used, 0, __ATOMIC_SEQ_CST);
	return ret;
}

static int read_by(struct counts *c)
{
	struct by_key key, *prev = NULL;
	struct by_value value;

	if (c->maps.by < LABEL_OPEN)
		return 0;
	while (!bpf_map_get_next_key(c->maps.by_slots, prev, &key)) {
		if (!bpf_map_lookup_elem(c->maps.by_slots, &key, &value) &&
		    value.slot < BY_OTHER) {
			c->by_key[value.slot] = key;
			c->by_value[value.slot] = value;
		}
		prev = &key;
	}
	return read_array(c, c->maps.by_counts, NULL, by_used(c), BY_WORDS, c->now.by);
}

static int read_all(struct counts *c)
{
	if (read_array(c, c->maps.counters, NULL, 1, COUNTERS_MAX, c->now.counters) ||
	    read_array(c, c->maps.batches, c->maps.pair_at, c->pairs, PAIR_WORDS,
		       c->pair[0].sum) ||
	    read_array(c, c->maps.times, c->maps.time_at, c->times, KINDS_WORDS,
		       c->time[0].kind))
		return -1;
	return read_by(c);
}

/* What lies in one element, metric by metric. */
static void take_apart(struct counts *c)
{
	uint64_t *counter = c->now.counters + c->base[METRIC_FAULT_COMPLETED];
	const struct metric *m;
	uint32_t slot, slots, i;
	uint64_t *to;

	for (m = metrics; m < metrics + METRIC_MAX; m++) {
		slots = m->kind == KIND_BATCH && plan_has(c->maps.plan, m->domain) ?
			shape_slots(m->shape) : 0;
		to = c->now.batches + c->base[m->id] * BATCH_WORDS;
		for (slot = 0; slot < slots; slot++) {
			const struct batch_pair *pair = &c->pair[c->element[m->id] + slot];

			*to++ = pair->sum[METRIC_LANE(m->id)];
			for (i = 0; i < HIST_BATCH_BUCKETS; i++)
				*to++ = pair->bucket[i][METRIC_LANE(m->id)];
		}
	}
	for (i = 0, to = c->now.times; i < c->times; i++, to += TIME_WORDS)
		memcpy(to, &c->time[i].sum, TIME_WORDS * sizeof(*to));

	if (!plan_has(c->maps.plan, DOMAIN_FAULT))
		return;
	slots = shape_slots(SHAPE_FAULT);
	for (slot = 0; slot < slots; slot++)
		for (i = 0; i < KIND_MAX; i++)
			*counter++ = c->time[c->element[METRIC_FAULT_LATENCY] + slot].kind[i];
	slots = shape_slots(SHAPE_INSTALL);
	for (slot = 0; slot < slots; slot++)
		c->now.counters[c->base[METRIC_PTES_INSTALLED] + slot] =
			c->now.batches[(c->base[METRIC_PTES_PER_HOLD] + slot) * BATCH_WORDS];
}

/*
 * While bpf(2) reads a map the kernel runs no kprobe program on that CPU
 * (bpf_disable_instrumentation()). With lazy preemption the target may get the
 * CPU meanwhile, and all its events are lost until we run again: 137 in a row were
 * seen. A real-time task is not preempted by an ordinary one. Without the
 * permission we go on: what is lost is in the programs' misses.
 */
int counts_read(struct counts *c, bool observing)
{
	struct sched_param fifo = { .sched_priority = 1 }, param;
	int policy = sched_getscheduler(0), ret;
	bool boosted;

	/* Programs are readers of RCU: those that had begun before it was switched off end. */
	if (!observing)
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	boosted = observing && policy >= 0 && policy != SCHED_FIFO && policy != SCHED_RR &&
		  policy != SCHED_DEADLINE && !sched_getparam(0, &param) &&
		  !sched_setscheduler(0, SCHED_FIFO, &fifo);
	ret = read_all(c);
	if (boosted)
		sched_setscheduler(0, policy, &param);
	take_apart(c);
	return ret;
}

void counts_lap(struct counts *c)
{
	/* What is inferred later is marked again. */
	memset(c->maps.inferred, 0, METRIC_MAX * SLOT_BASE_FAULT);
	memcpy(c->start.counters, c->now.counters, COUNTERS_MAX * sizeof(uint64_t));
	memcpy(c->start.batches, c->now.batches, c->batches * BATCH_WORDS * sizeof(uint64_t));
	memcpy(c->start.times, c->now.times, c->times * TIME_WORDS * sizeof(uint64_t));
	memcpy(c->start.by, c->now.by, BY_SLOTS * BY_WORDS * sizeof(uint64_t));
}

void counts_carry(struct counts *c, enum metric_id metric, uint64_t n)
{
	c->start.counters[c->base[metric]] -= n;
}

uint64_t counts_trust(const struct counts *c, enum trust_counter which)
{
	return c->now.counters[which] - c->start.counters[which];
}

/* ---- samples ---- */

static void label_sample(struct sample *s, const struct metric *m, size_t slot)
{
	const enum label *label;
	unsigned int value[LABEL_MAX];
	size_t n = shape_labels(m->shape, &label), i;

	shape_combination(m->shape, slot, value);
	for (i = 0; i < n; i++)
		s->label[label[i]] = label_values(label[i])[value[i]];
}

static int fill_hist(struct sample *s, enum hist_kind kind, const uint64_t *now,
		     const uint64_t *start)
{
	struct hist *h = sample_hist(s);
	size_t i;

	if (!h)
		return -1;
	hist_init(h, kind);
	for (i = 0; i < hist_buckets(kind); i++)
		if (now[1 + i] != start[1 + i])
			hist_add(h, i, now[1 + i] - start[1 + i]);
	hist_add_sum(h, now[0] - start[0]);
	if (h->saturated)
		s->flags |= SAMPLE_SATURATED;
	return 0;
}

static bool is_time(const struct metric *m)
{
	return !strcmp(m->unit, "ns");
}

/*
 * Can one lost run hide more than one of what the counter counts? Windows have many
 * pages, a large folio or vm_insert_pages() installs many PTEs at once, a wait has
 * many nanoseconds.
 */
static bool is_sum(const struct metric *m, const struct sample *s)
{
	const char *const *methods = label_values(LABEL_METHOD), *method = s->label[LABEL_METHOD];

	if (is_time(m))
		return true;
	return (!strcmp(m->unit, "pages") || !strcmp(m->unit, "ptes")) &&
	       method != methods[METHOD_PER_PAGE] && method != methods[METHOD_COW] &&
	       method != methods[METHOD_ZERO_PAGE];
}

/*
 * What lost runs may mean for one metric. How many counts they may have put under
 * a wrong label: the run of a fault's probe names that fault alone, the lost start
 * or end of a populate or of an mmap all that happens meanwhile.
 */
struct missed {
	uint64_t runs;
	bool all_moved;
};

/* More lost runs than this: a kernel that cannot tell how many. */
#define LOST_MAX	UINT32_MAX

/* One event installs at most a page table's worth of PTEs in one go. */
#define PTES_OF_RUN	(sysconf(_SC_PAGESIZE) / sizeof(uint64_t))

static uint64_t moved(const struct missed *missed, const struct metric *m, bool sum)
{
	bool cut = false;
	uint64_t n = missed->runs;

	if (missed->all_moved || n > LOST_MAX || (n && sum && is_time(m)))
		return UINT64_MAX;
	return sum ? sat_add(n * PTES_OF_RUN, 0, &cut) : n;
}

/* One slot of one metric. */
static int add_slot(const struct counts *c, const struct metric *m, size_t slot,
		    const struct missed *missed, struct run *run)
{
	struct sample *s = run_add(run, m->id);
	size_t at = c->base[m->id] + slot;
	uint64_t lost = missed->runs;
	bool cut = false;

	if (!s)
		return -1;
	label_sample(s, m, slot);
	s->moved = moved(missed, m, m->kind == KIND_COUNTER && is_sum(m, s));
	if (c->maps.inferred[m->id * SLOT_BASE_FAULT + slot])
		s->flags |= SAMPLE_INFERRED;
	switch (m->kind) {
	case KIND_COUNTER:
		s->value = sat_add(c->now.counters[at] - c->start.counters[at], 0, &cut);
		if (missed->all_moved || lost > LOST_MAX || (lost && is_sum(m, s))) {
			s->flags |= SAMPLE_LOWER_BOUND;
			lost = 0;
		}
		s->max = sat_add(s->value, lost, &cut);
		if (cut)
			s->flags |= SAMPLE_SATURATED;
		return 0;
	case KIND_BATCH:
		s->flags |= lost ? SAMPLE_LOWER_BOUND : 0;
		return fill_hist(s, HIST_BATCH, c->now.batches + at * BATCH_WORDS,
				 c->start.batches + at * BATCH_WORDS);
	case KIND_TIME:
		s->flags |= lost ? SAMPLE_LOWER_BOUND : 0;
		return fill_hist(s, HIST_TIME, c->now.times + at * TIME_WORDS,
				 c->start.times + at * TIME_WORDS);
	default:
		return 0;
	}
}

static bool any_inferred(const struct counts *c, const struct metric *m)
{
	size_t slot, slots = shape_slots(m->shape);

	for (slot = 0; slot < slots; slot++)
		if (c->maps.inferred[m->id * SLOT_BASE_FAULT + slot])
			return true;
	return false;
}

/* The open label: counts only, and the histograms' number and sum. */
static int add_by(const struct counts *c, const struct metric *m, unsigned int slot,
		  const char *text, bool inferred, const struct missed *missed,
		  struct run *run)
{
	const struct by_counts *now = (void *)(c->now.by + slot * BY_WORDS);
	const struct by_counts *start = (void *)(c->start.by + slot * BY_WORDS);
	uint64_t n = now->count[m->id] - start->count[m->id];
	uint64_t sum = now->sum[m->id] - start->sum[m->id];
	uint64_t lost = missed->runs;
	struct sample *s;
	struct hist *h;
	bool cut = false;

	if (!n)
		return 0;
	s = run_add(run, m->id);
	if (!s)
		return -1;
	sample_set_label(s, c->maps.by, text);
	if (inferred)
		s->flags |= SAMPLE_INFERRED;
	if (m->kind == KIND_COUNTER) {
		bool sums = is_sum(m, s);

		if (missed->all_moved || lost > LOST_MAX || (lost && sums))
			s->flags |= SAMPLE_LOWER_BOUND;
		s->moved = moved(missed, m, sums);
		s->value = sum;
		s->max = sat_add(sum, s->flags & SAMPLE_LOWER_BOUND ? 0 : lost, &cut);
		return 0;
	}
	h = sample_hist(s);
	if (!h)
		return -1;
	hist_init(h, m->kind == KIND_TIME ? HIST_TIME : HIST_BATCH);
	s->moved = moved(missed, m, false);
	h->count = n;
	h->sum = sum;
	s->flags |= lost ? SAMPLE_LOWER_BOUND : 0;
	return 0;
}

/* Text of a slot's value; `symbol` is that of an address, or NULL. */
static void by_text(const struct counts *c, unsigned int slot, const char *symbol, char *text,
		    size_t size)
{
	const struct by_value *value = &c->by_value[slot];
	const struct by_key *key = &c->by_key[slot];

	if (slot == BY_OTHER)
		snprintf(text, size, "(others)");
	else if (c->maps.by == LABEL_PID)	/* the form of ftrace: names repeat */
		snprintf(text, size, "%.16s-%u", value->name, value->pid);
	else if (c->maps.by == LABEL_COMM)
		snprintf(text, size, "%.16s", (const char *)key->word);
	else if (symbol)
		snprintf(text, size, "%s", symbol);
	else if (c->maps.by == LABEL_FILE && key->word[0])	/* names repeat */
		snprintf(text, size, "%.32s (%u:%u %" PRIu64 ")", value->name,
			 (unsigned int)(key->word[1] >> DEV_MINOR_BITS),
			 (unsigned int)(key->word[1] & ((1u << DEV_MINOR_BITS) - 1)),
			 (uint64_t)key->word[0]);
	else if (c->maps.by == LABEL_MAP && key->word[0])
		snprintf(text, size, "%.32s (id %" PRIu64 ")", value->name, (uint64_t)key->word[0]);
	else if (c->maps.by == LABEL_ORDER && key->word[0])
		snprintf(text, size, "%" PRIu64, (uint64_t)key->word[0] - 1);
	else if (key->word[0])
		snprintf(text, size, "%#" PRIx64, (uint64_t)key->word[0]);
	else
		snprintf(text, size, "none");
}

static int add_all_by(const struct counts *c, const struct plan *plan, const struct missed *missed,
		      struct run *run)
{
	char *name[BY_SLOTS] = { NULL }, value[128];
	unsigned int used = by_used(c), i, m;
	uint64_t address[BY_SLOTS] = { 0 };
	bool inferred[METRIC_MAX];
	int ret = 0;

	if (c->maps.by < LABEL_OPEN)
		return 0;
	for (m = 0; m < METRIC_MAX; m++)
		inferred[m] = any_inferred(c, &metrics[m]);
	for (i = 0; i < used; i++)
		address[i] = c->by_key[i].word[0];
	if (c->maps.by == LABEL_VM_OPS)
		kallsyms_names("/proc/kallsyms", address, name, used);
	for (i = 0; i < used && !ret; i++) {
		const char *text;

		by_text(c, i, name[i], value, sizeof(value));
		text = run_text(run, value);
		if (!text)
			ret = -1;
		for (m = 0; m < METRIC_MAX && !ret; m++)
			if (plan_has(&plan->opts, metrics[m].domain) &&
			    !plan_metric_missing(plan, &metrics[m]))
				ret = add_by(c, &metrics[m], i, text, inferred[m],
					     &missed[m], run);
	}
	for (i = 0; i < used; i++)
		free(name[i]);
	return ret;
}

/* Is there a copy of a function that no probe is on? */
static bool partly_seen(const struct plan *plan, const struct metric *m)
{
	const struct plan_event *pe = plan->event;
	size_t e;

	for (e = 0; e < EVENT_MAX; e++, pe++)
		if (m->events & EVENT_BIT(e) &&
		    (pe->partial || (events[e].need == NEED_PART && pe->mech == MECH_NONE &&
				     !pe->absent)))
			return true;
	return false;
}

/* May pages of vm_insert_pages() be known and not counted? */
static bool uncounted_inserts(const struct plan *plan)
{
	return !plan->can_read && plan->event[EVENT_INSERT_RMAP].mech == MECH_NONE;
}

int counts_samples(const struct counts *c, const struct plan *plan,
		   const uint64_t lost[EVENT_MAX], struct run *run)
{
	struct missed missed[METRIC_MAX] = { 0 };
	const struct metric *m;
	size_t slot, slots, e, first;
	bool incomplete, cut;
	const char *why;
	struct sample *s;

	/* Tasks that never became targets, events that are known and not counted. */
	incomplete = lost[EVENT_FORK] || counts_trust(c, TRUST_MAP_FULL) ||
		     counts_trust(c, TRUST_LOST) ||
		     (uncounted_inserts(plan) && counts_trust(c, TRUST_UNMATCHED));
	first = run->samples;
	for (m = metrics; m < metrics + METRIC_MAX; m++) {
		for (e = 0; e < EVENT_MAX; e++)
			if (lost[e] && (m->events | m->named) & EVENT_BIT(e)) {
				missed[m->id].runs = sat_add(missed[m->id].runs, lost[e], &cut);
				missed[m->id].all_moved |= (EVENTS_OF_SCOPE >> e) & 1;
			}
		if (!plan_has(&plan->opts, m->domain))
			continue;
		why = plan_metric_missing(plan, m);
		if (why) {
			s = run_add(run, m->id);
			if (!s || !(s->unavailable = run_text(run, why)))
				goto no_memory;
			continue;
		}
		slots = shape_slots(m->shape);
		for (slot = 0; slot < slots; slot++)
			if (add_slot(c, m, slot, &missed[m->id], run))
				goto no_memory;
	}
	if (add_all_by(c, plan, missed, run))
		goto no_memory;
	for (; first < run->samples; first++)
		if (!run->sample[first].unavailable &&
		    (incomplete || partly_seen(plan, run->sample[first].metric)))
			run->sample[first].flags |= SAMPLE_LOWER_BOUND;
	return 0;

no_memory:
	err("counts", "out of memory");
	return -1;
}
