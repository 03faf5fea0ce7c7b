// SPDX-License-Identifier: GPL-2.0-only
/* Names of locks that have no class of their own, and of who waited. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/err.h"
#include "session/kallsyms.h"
#include "session/lock_rows.h"
#include "session/plan.h"

struct lock_rows {
	struct lock_rows_maps maps;
	unsigned int cpus;
	struct lock_row_counts *percpu;
	struct lock_row row[LOCK_ROWS];
	struct lock_row_counts now[LOCK_ROWS], start[LOCK_ROWS];
};

struct lock_rows *lock_rows_new(const struct lock_rows_maps *maps)
{
	struct lock_rows *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->maps = *maps;
	l->cpus = libbpf_num_possible_cpus();
	l->percpu = calloc(l->cpus, sizeof(*l->percpu));
	if (l->percpu)
		return l;
	free(l);
	return NULL;
}

void lock_rows_free(struct lock_rows *l)
{
	if (!l)
		return;
	free(l->percpu);
	free(l);
}

int lock_rows_read(struct lock_rows *l)
{
	unsigned int i, cpu;

	for (i = 0; i < LOCK_ROWS; i++) {
		struct lock_row_counts *to = &l->now[i];

		/* Read again: a name may have come after the row was claimed, or have changed. */
		if (bpf_map_lookup_elem(l->maps.rows, &i, &l->row[i]))
			goto fail;
		if (!l->row[i].key && i != LOCK_ROW_REST)
			continue;
		if (bpf_map_lookup_elem(l->maps.counts, &i, l->percpu))
			goto fail;
		memset(to, 0, sizeof(*to));
		for (cpu = 0; cpu < l->cpus; cpu++) {
			to->begun += l->percpu[cpu].begun;
			to->ended += l->percpu[cpu].ended;
			to->ns += l->percpu[cpu].ns;
		}
	}
	return 0;

fail:
	err("counts", "the rows of locks cannot be read: %s", strerror(errno));
	return -1;
}

void lock_rows_lap(struct lock_rows *l)
{
	memcpy(l->start, l->now, sizeof(l->start));
}

static bool in_use(const struct lock_rows *l, size_t i)
{
	return l->now[i].begun != l->start[i].begun || l->now[i].ended != l->start[i].ended;
}

/* The symbol that an address lies in: "rq_lock", "init_mm+0x68"; NULL: in none. */
static const char *symbol_text(const struct symbols *s, uint64_t address, char *text, size_t size)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (s->sym[mid].address <= address)
			low = mid + 1;
		else
			high = mid;
	}
	/* The last symbol has no end, and what is allocated lies behind no symbol. */
	if (!low || low == s->n || address - s->sym[low - 1].address > 1 << 20)
		return NULL;
	low--;
	if (s->sym[low].address == address)
		snprintf(text, size, "%s", s->sym[low].name);
	else
		snprintf(text, size, "%s+%#" PRIx64, s->sym[low].name,
			 address - s->sym[low].address);
	return text;
}

static const char *row_text(const struct lock_rows *l, size_t i, const struct symbols *s,
			    char *text, size_t size)
{
	const struct lock_row *row = &l->row[i];

	if (i == LOCK_ROW_REST)
		return "(others)";
	switch (l->maps.by) {
	case LABEL_COMM:
		snprintf(text, size, "%.16s", row->name);
		return text;
	case LABEL_PID:
	case LABEL_OWNER:
		if (!*row->name)
			return "none";
		snprintf(text, size, "%.16s-%u", row->name, row->pid);
		return text;
	default:
		break;
	}
	if (*row->name) {
		snprintf(text, size, "%.32s+%u", row->name, row->offset);
		return text;
	}
	if (symbol_text(s, row->lock, text, size))
		return text;
	/* Where addresses are hidden nobody is told one. */
	return "(no name)";
}

/* Of a metric's classes, before the rows: lost runs hide waits of any. */
static unsigned int flags_of(const struct run *run, size_t first, enum metric_id metric)
{
	unsigned int flags = 0;
	size_t i;

	for (i = 0; i < first; i++) {
		const struct sample *s = &run->sample[i];

		if (s->metric->id == metric)
			flags |= s->flags | (s->max > s->value ? SAMPLE_LOWER_BOUND : 0);
	}
	return flags & (SAMPLE_LOWER_BOUND | SAMPLE_INFERRED);
}

static int add(struct run *run, enum metric_id metric, enum label label, const char *text,
	       unsigned int flags, struct sample **sample)
{
	struct sample *s = run_add(run, metric);

	if (!s)
		return -1;
	sample_set_label(s, label, text);
	s->flags = flags;
	*sample = s;
	return 0;
}

/* Rows that have the same text are one: what has no name, processes of one name. */
static struct sample *find(struct run *run, size_t first, enum metric_id metric,
			   enum label label, const char *text)
{
	for (; first < run->samples; first++)
		if (run->sample[first].metric->id == metric &&
		    sample_label(&run->sample[first], label) == text)
			return &run->sample[first];
	return NULL;
}

static int add_row(const struct lock_rows *l, size_t i, const char *text, size_t first,
		   struct run *run)
{
	uint64_t begun = l->now[i].begun - l->start[i].begun;
	enum label label = l->maps.by;
	struct sample *s = find(run, first, METRIC_LOCK_CONTENDED, label, text);
	struct hist *h;

	if (!s && add(run, METRIC_LOCK_CONTENDED, label, text,
		      flags_of(run, first, METRIC_LOCK_CONTENDED), &s))
		return -1;
	s->value += begun;
	s->max = s->value;
	s = find(run, first, METRIC_LOCK_WAIT, label, text);
	if (!s && add(run, METRIC_LOCK_WAIT, label, text,
		      flags_of(run, first, METRIC_LOCK_WAIT), &s))
		return -1;
	h = sample_hist(s);
	if (!h)
		return -1;
	h->kind = HIST_TIME;
	h->count += l->now[i].ended - l->start[i].ended;
	h->sum += l->now[i].ns - l->start[i].ns;
	return 0;
}

static bool unavailable(const struct run *run, enum metric_id metric)
{
	size_t i;

	for (i = 0; i < run->samples; i++)
		if (run->sample[i].metric->id == metric)
			return run->sample[i].unavailable;
	return false;
}

int lock_rows_samples(const struct lock_rows *l, struct run *run)
{
	size_t i, first = run->samples;
	struct symbols s = { 0 };
	int ret = 0;

	if (unavailable(run, METRIC_LOCK_CONTENDED))
		return 0;
	for (i = 0; i < LOCK_ROWS && !s.n; i++)
		if (l->maps.by == LABEL_LOCK && in_use(l, i) && !*l->row[i].name &&
		    symbols_read(&s, KALLSYMS))
			break;
	for (i = 0; i < LOCK_ROWS && !ret; i++) {
		const char *text;
		char room[96];

		if (!in_use(l, i))
			continue;
		text = run_text(run, row_text(l, i, &s, room, sizeof(room)));
		ret = text ? add_row(l, i, text, first, run) : -1;
	}
	symbols_free(&s);
	return ret;
}
