// SPDX-License-Identifier: GPL-2.0-only
/* Which runs belong to which boot, and which boots of two files to each other. */
#include <stdlib.h>
#include <string.h>

#include "data/compare_parts.h"
#include "data/stats.h"

static const char *boot_of(const struct recording *rec, size_t run)
{
	const char *id = rec->run[run]->boot_id;

	/* Runs whose boot nobody knows may all be of one. */
	return *id ? id : rec->machine.boot_id;
}

int boots_of(const struct recording *rec, struct boots *b)
{
	size_t i, k, boot, first[STATS_BOOTS_MAX + 2] = { 0 };

	*b = (struct boots){ 0 };
	b->of_run = calloc(rec->runs + 1, sizeof(*b->of_run));
	b->order = calloc(rec->runs + 1, sizeof(*b->order));
	b->id = calloc(rec->runs + 1, sizeof(*b->id));
	b->start = calloc(rec->runs + 1, sizeof(*b->start));
	if (!b->of_run || !b->order || !b->id || !b->start) {
		boots_free(b);
		return -1;
	}
	for (i = 0; i < rec->runs; i++) {
		const char *id = boot_of(rec, i);

		/* From the end: runs of a boot follow each other. */
		for (k = b->n; k && strcmp(b->id[k - 1], id); k--)
			;
		if (!k) {
			if (b->n > STATS_BOOTS_MAX)
				return 0;
			b->id[b->n] = id;
			b->start[b->n] = rec->run[i]->start_ns;
			k = ++b->n;
		}
		b->of_run[i] = k - 1;
		first[k]++;
	}
	for (boot = 1; boot <= b->n; boot++)
		first[boot] += first[boot - 1];
	for (i = 0; i < rec->runs; i++)
		b->order[first[b->of_run[i]]++] = i;
	return 0;
}

void boots_free(struct boots *b)
{
	free(b->of_run);
	free(b->order);
	free(b->id);
	free(b->start);
	*b = (struct boots){ 0 };
}

static size_t find_boot(const struct boots *b, const char *id)
{
	size_t i;

	for (i = 0; i < b->n; i++)
		if (*id && !strcmp(b->id[i], id))
			break;
	return i;
}

struct moment {
	uint64_t start;
	size_t boot;
	bool is_new;
};

static int by_start(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Both sides have as many boots; true when they were recorded in turns. */
static bool pair_by_time(const struct boots *base, const struct boots *new,
			 struct moment *m, struct plan_pairs *plan)
{
	size_t i, n = base->n;

	for (i = 0; i < n; i++) {
		m[i] = (struct moment){ base->start[i], i, false };
		m[n + i] = (struct moment){ new->start[i], i, true };
	}
	qsort(m, 2 * n, sizeof(*m), by_start);
	for (i = 0; i < n; i++) {
		const struct moment *a = &m[2 * i], *b = a + 1;

		/* Without times there is no order. */
		if (a->is_new == b->is_new || !a->start || a->start == b->start)
			return false;
		plan->base[i] = a->is_new ? b->boot : a->boot;
		plan->new[i] = a->is_new ? a->boot : b->boot;
	}
	return true;
}

int pair_boots(const struct boots *base, const struct boots *new, struct plan_pairs *plan)
{
	struct moment *m = NULL;
	size_t i, k;

	*plan = (struct plan_pairs){ .pairing.kind = EVIDENCE_BOOTS };
	plan->base = calloc(base->n + 1, sizeof(*plan->base));
	plan->new = calloc(base->n + 1, sizeof(*plan->new));
	m = calloc(2 * base->n + 1, sizeof(*m));
	if (!plan->base || !plan->new || !m) {
		free(m);
		pairs_free(plan);
		return -1;
	}
	for (i = 0; i < base->n; i++) {
		k = find_boot(new, base->id[i]);
		if (k < new->n) {
			plan->base[plan->shared] = i;
			plan->new[plan->shared++] = k;
		}
	}
	if (plan->shared)
		plan->entangled = plan->shared != base->n || plan->shared != new->n;
	if ((plan->shared && !plan->entangled) ||
	    (!plan->shared && base->n > 1 && base->n == new->n &&
	     pair_by_time(base, new, m, plan))) {
		plan->pairing.kind = EVIDENCE_BLOCKS;
		plan->pairing.pairs = base->n;
		plan->pairing.base = plan->base;
		plan->pairing.new = plan->new;
	}
	free(m);
	return 0;
}

void pairs_free(struct plan_pairs *plan)
{
	free(plan->base);
	free(plan->new);
	plan->base = plan->new = NULL;
}
