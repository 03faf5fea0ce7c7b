// SPDX-License-Identifier: GPL-2.0-only
/* Names of locks that have no class of their own, and of who waited. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/err.h"
#include "session/kallsyms.h"
#include "session/lock_rows.h"
#include "session/lock_stacks.h"
#include "session/places.h"
#include "session/plan.h"

struct lock_rows {
	struct lock_rows_maps maps;
	unsigned int cpus, n;		/* the last row is of all that have none */
	struct lock_row_counts *percpu;
	struct lock_row *row;		/* [n], or */
	struct lock_stack *stack;
	struct lock_row_counts *now, *start;
};

static bool of_stacks(const struct lock_rows *l)
{
	return l->maps.by == LABEL_STACK;
}

static const hist_u64 *row_key(const struct lock_rows *l, size_t i)
{
	return of_stacks(l) ? &l->stack[i].key : &l->row[i].key;
}

struct lock_rows *lock_rows_new(const struct lock_rows_maps *maps)
{
	struct lock_rows *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->maps = *maps;
	l->cpus = libbpf_num_possible_cpus();
	l->n = maps->n;
	l->percpu = calloc(l->cpus, sizeof(*l->percpu));
	l->now = calloc(l->n, sizeof(*l->now));
	l->start = calloc(l->n, sizeof(*l->start));
	if (of_stacks(l))
		l->stack = calloc(l->n, sizeof(*l->stack));
	else
		l->row = calloc(l->n, sizeof(*l->row));
	if (l->percpu && l->now && l->start && (l->row || l->stack))
		return l;
	lock_rows_free(l);
	return NULL;
}

void lock_rows_free(struct lock_rows *l)
{
	if (!l)
		return;
	free(l->percpu);
	free(l->now);
	free(l->start);
	free(l->row);
	free(l->stack);
	free(l);
}

int lock_rows_read(struct lock_rows *l)
{
	unsigned int i, cpu;

	for (i = 0; i < l->n; i++) {
		struct lock_row_counts *to = &l->now[i];

		/*
		 * Read again: a name may have come after the row was claimed, or have changed.
		 * A stack that is whole stays.
		 */
		if (!(of_stacks(l) && l->stack[i].ready) &&
		    bpf_map_lookup_elem(l->maps.rows, &i, (void *)row_key(l, i)))
			goto fail;
		if (!*row_key(l, i) && i != l->n - 1)
			continue;
		if (bpf_map_lookup_elem(l->maps.counts, &i, l->percpu))
			goto fail;
		memset(to, 0, sizeof(*to));
		for (cpu = 0; cpu < l->cpus; cpu++) {
			to->begun += l->percpu[cpu].begun;
			to->ended += l->percpu[cpu].ended;
			to->ns += l->percpu[cpu].ns;
			to->released += l->percpu[cpu].released;
		}
	}
	return 0;

fail:
	err("counts", "the rows of locks cannot be read: %s", strerror(errno));
	return -1;
}

void lock_rows_lap(struct lock_rows *l)
{
	memcpy(l->start, l->now, l->n * sizeof(*l->start));
}

static bool in_use(const struct lock_rows *l, size_t i)
{
	return memcmp(&l->now[i], &l->start[i], sizeof(l->now[i]));
}

#define OTHERS	"(others)"

static const char *row_text(const struct lock_rows *l, size_t i, struct stack_names *names,
			    const struct places *places, char *text, size_t size)
{
	const struct lock_row *row;

	if (i == l->n - 1)
		return OTHERS;
	if (of_stacks(l)) {
		stack_text(&l->stack[i].trace, names, text, size);
		return text;
	}
	row = &l->row[i];
	switch (l->maps.by) {
	case LABEL_COMM:
		snprintf(text, size, "%.16s", row->name);
		return text;
	case LABEL_PID:
	case LABEL_OWNER:
	case LABEL_HOLDER:
		if (!*row->name)
			return l->maps.by == LABEL_HOLDER ? "(not known)" : "none";
		if (*row->name == '(' && !row->pid)
			return row->name;
		snprintf(text, size, "%.16s-%u", row->name, row->pid);
		return text;
	default:
		break;
	}
	if (*row->name) {
		snprintf(text, size, "%.32s+%u", row->name, row->offset);
		return text;
	}
	return place_text(places, row->lock, text, size);
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

/* What a text was counted as, or several rows of the same text. */
struct named_row {
	char *text;
	struct lock_row_counts counts;
};

static struct sample *add(struct run *run, enum metric_id metric, enum label label,
			  const char *text, size_t first)
{
	struct sample *s = run_add(run, metric);

	if (!s)
		return NULL;
	sample_set_label(s, label, text);
	s->flags = flags_of(run, first, metric);
	return s;
}

static bool unavailable(const struct run *run, enum metric_id metric)
{
	size_t i;

	for (i = 0; i < run->samples; i++)
		if (run->sample[i].metric->id == metric)
			return run->sample[i].unavailable;
	return false;
}

static int add_row(const struct lock_rows *l, const struct named_row *row, size_t first,
		   struct run *run)
{
	const char *text = run_text(run, row->text);
	struct sample *s = text ? add(run, METRIC_LOCK_CONTENDED, l->maps.by, text, first) : NULL;
	struct hist *h;

	if (!s)
		return -1;
	s->value = s->max = row->counts.begun;
	s = add(run, METRIC_LOCK_WAIT, l->maps.by, text, first);
	h = s ? sample_hist(s) : NULL;
	if (!h)
		return -1;
	h->kind = HIST_TIME;
	h->count = row->counts.ended;
	h->sum = row->counts.ns;
	if (!row->counts.released || unavailable(run, METRIC_LOCK_RELEASED))
		return 0;
	s = add(run, METRIC_LOCK_RELEASED, l->maps.by, text, first);
	if (!s)
		return -1;
	s->value = s->max = row->counts.released;
	return 0;
}

/* Are symbols of the kernel needed to name what was waited for? */
static bool want_symbols(const struct lock_rows *l)
{
	size_t i;

	if (l->maps.by != LABEL_LOCK && !of_stacks(l))
		return false;
	for (i = 0; i < l->n; i++)
		if (in_use(l, i) && (of_stacks(l) || !*l->row[i].name))
			return true;
	return false;
}

static int by_text(const void *pa, const void *pb)
{
	const struct named_row *a = pa, *b = pb;

	return strcmp(a->text, b->text);
}

/* What has no row of its own is the last of those that took as long. */
static int by_time(const void *pa, const void *pb)
{
	const struct named_row *a = pa, *b = pb;

	if (a->counts.ns != b->counts.ns)
		return a->counts.ns > b->counts.ns ? -1 : 1;
	return strcmp(a->text, b->text);
}

static void add_counts(struct lock_row_counts *to, const struct lock_row_counts *more)
{
	to->begun += more->begun;
	to->ended += more->ended;
	to->ns += more->ns;
	to->released += more->released;
}

/* Rows that have the same text are one: what has no name, processes of one name. */
static size_t merge(struct named_row *row, size_t n)
{
	size_t i, kept = 0;

	if (n)
		qsort(row, n, sizeof(*row), by_text);
	for (i = 0; i < n; i++) {
		if (kept && !strcmp(row[kept - 1].text, row[i].text)) {
			add_counts(&row[kept - 1].counts, &row[i].counts);
			free(row[i].text);
		} else {
			row[kept++] = row[i];
		}
	}
	return kept;
}

/* Those that took longest keep their rows; the others are one, which may be there already. */
static size_t keep_most(struct named_row *row, size_t n, unsigned int most)
{
	size_t i;

	if (n)
		qsort(row, n, sizeof(*row), by_time);
	for (i = most; most && i < n; i++)
		strcpy(row[i].text, OTHERS);
	return most && n > most ? merge(row, n) : n;
}

/* Names of all that is in use: their number, or -1 without memory. */
static ssize_t name_rows(const struct lock_rows *l, struct named_row *row, struct run *run)
{
	struct symbols s = { 0 };
	struct stack_names names = { .s = &s, .images = l->maps.images,
				     .user_rows = l->maps.n };
	struct places places = { .symbols = &s };
	char *room = malloc(STACK_TEXT);
	const char *text;
	ssize_t n = 0;
	size_t i;

	if (room && want_symbols(l))
		symbols_read(&s, KALLSYMS);
	if (s.n && !of_stacks(l))
		places_read(&places, &s);
	for (i = 0; room && i < l->n; i++) {
		if (!in_use(l, i))
			continue;
		text = row_text(l, i, &names, &places, room, STACK_TEXT);
		/* Room for another text that it may get. */
		row[n].text = malloc(strlen(text) + sizeof(OTHERS));
		if (!row[n].text)
			break;
		strcpy(row[n].text, text);
		row[n++].counts = (struct lock_row_counts){
			l->now[i].begun - l->start[i].begun, l->now[i].ended - l->start[i].ended,
			l->now[i].ns - l->start[i].ns,
			l->now[i].released - l->start[i].released };
	}
	run->trust.user_frames += names.named + names.unnamed;
	run->trust.user_unnamed += names.unnamed;
	places_free(&places);
	symbols_free(&s);
	free(room);
	if (room && i == l->n)
		return n;
	while (n > 0)
		free(row[--n].text);
	return -1;
}

int lock_rows_samples(const struct lock_rows *l, struct run *run)
{
	struct named_row *row;
	size_t i, first = run->samples;
	ssize_t n;
	int ret = 0;

	if (unavailable(run, METRIC_LOCK_CONTENDED))
		return 0;
	row = calloc(l->n, sizeof(*row));
	n = row ? name_rows(l, row, run) : -1;
	if (n < 0) {
		free(row);
		return -1;
	}
	n = keep_most(row, merge(row, n), l->maps.most);
	if (n)
		qsort(row, n, sizeof(*row), by_time);
	for (i = 0; i < (size_t)n; i++) {
		if (!ret)
			ret = add_row(l, &row[i], first, run);
		free(row[i].text);
	}
	free(row);
	return ret;
}
