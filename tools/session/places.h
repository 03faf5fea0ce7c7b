/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_PLACES_H
#define MMSCOPE_PLACES_H

#include "session/kallsyms.h"

/*
 * What is at an address of the running kernel's data. Not only symbols tell that: a
 * variable that each CPU has lies elsewhere for each.
 */
struct places {
	const struct symbols *symbols;
	uint64_t percpu_start, percpu_end;	/* of the addresses that symbols have */
	uint64_t *offset;			/* [cpus], from there to a CPU's own */
	unsigned int cpus;
	uint64_t vmalloc, vmalloc_end;
};

/*
 * Reads what the symbols alone do not tell, by a program, once; where that is forbidden
 * or there is no memory for it, less is told. To be freed in any case; the symbols are
 * borrowed until then.
 */
void places_read(struct places *p, const struct symbols *s);
void places_free(struct places *p);

/*
 * "rq_lock", "init_mm+0x68", "runqueues (per CPU)"; or "(per-CPU memory)",
 * "(vmalloc memory)" or "(no name)". Returns the text.
 */
const char *place_text(const struct places *p, uint64_t address, char *text, size_t size);

#endif
