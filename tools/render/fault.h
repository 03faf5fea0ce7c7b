/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_RENDER_FAULT_H
#define MMSCOPE_RENDER_FAULT_H

#include "render/text.h"

/*
 * The sentence that a person can quote, without a newline, cut to size: the
 * backing (at mmap time or by faults) that PTEs went to most, how many per hold
 * of the page-table lock, what the faults cost, and how much there was besides.
 */
void fault_headline(const struct run *run, char *out, size_t size);

/* A refusal for a VMA that is write-locked or missing never reaches handle_mm_fault. */
bool fault_is_attempt(enum reason reason);

/*
 * Refusals that were attempts; want[LABEL_REASON] must be NULL. False: unavailable.
 */
bool fault_refused_attempts(const struct run *run, const char *const *want, struct total *refused);

/* Parts of the screen; each prints nothing when it has nothing to say. */
void fault_refusals(FILE *f, const struct run *run, const struct view *view);
void fault_around(FILE *f, const struct run *run, const struct view *view);
void fault_batches(FILE *f, const struct run *run, const struct view *view);
void fault_teardown(FILE *f, const struct run *run, const struct view *view);
void fault_resident(FILE *f, const struct recording *rec, const struct run *run,
		    const struct view *view);
void fault_latencies(FILE *f, const struct run *run, const struct view *view);

/* One row's labels: the values that its samples must have, NULL for any. */
struct row {
	const char *want[LABEL_MAX];
};

/*
 * The rows that view->by asks for (backing and method by default), zero ones
 * too. *rows is the caller's to free. False: no memory.
 */
bool fault_rows(const struct run *run, const struct view *view, struct row **rows, size_t *n,
		enum label *first, enum label *second);

#endif
