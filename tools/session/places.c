// SPDX-License-Identifier: GPL-2.0-only
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/memory.h"
#include "memory.skel.h"
#include "session/places.h"

#define PIECE_BYTES	(MEMORY_WORDS * sizeof(uint64_t))
#define CPUS_READ	((MEMORY_PIECES - 2) * MEMORY_WORDS)	/* of 8192 that are possible */

/*
 * Behind the variables of each CPU there is room for modules' and for what is allocated,
 * at least so much of it (PERCPU_MODULE_RESERVE and PERCPU_DYNAMIC_EARLY_SIZE of
 * include/linux/percpu.h, the same from 6.1 to 7.3). What is allocated later lies elsewhere.
 */
#define PERCPU_BEHIND	((8 << 10) + (20 << 10))

static uint64_t address_of(const struct symbols *s, const char *name)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (!strcmp(s->sym[i].name, name) && !s->sym[i].module)
			return s->sym[i].address;
	return 0;
}

/* One address after the other is read, PIECE_BYTES of each. NULL: it does not work. */
static struct memory *read_pieces(const uint64_t *address, size_t n)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	struct memory *skel = memory__open();

	if (!skel)
		return NULL;
	skel->rodata->piece_bytes = PIECE_BYTES;
	if (!memory__load(skel)) {
		memcpy(skel->bss->address, address, n * sizeof(*address));
		if (!bpf_prog_test_run_opts(bpf_program__fd(skel->progs.read_pieces), &run) &&
		    !run.retval)
			return skel;
	}
	memory__destroy(skel);
	return NULL;
}

static bool take_offsets(struct places *p, const struct memory *skel)
{
	unsigned int i;

	p->offset = calloc(p->cpus, sizeof(*p->offset));
	for (i = 0; p->offset && i < p->cpus; i++) {
		if (skel->bss->failed[i / MEMORY_WORDS])
			return false;
		p->offset[i] = skel->bss->word[i / MEMORY_WORDS][i % MEMORY_WORDS];
	}
	return p->offset;
}

void places_read(struct places *p, const struct symbols *s)
{
	uint64_t address[MEMORY_PIECES] = { 0 };
	uint64_t table = address_of(s, "__per_cpu_offset");
	/* Where each mapping of the kernel starts; behind that of vmalloc() is that of pages. */
	uint64_t vmalloc = address_of(s, "vmalloc_base"), pages = address_of(s, "vmemmap_base");
	int cpus = libbpf_num_possible_cpus();
	struct memory *skel;
	size_t n = 0;

	*p = (struct places){ .symbols = s };
	if (!table || cpus < 1 || cpus > (int)CPUS_READ)
		return;
	for (; n * MEMORY_WORDS < (size_t)cpus; n++)
		address[n] = table + n * PIECE_BYTES;
	if (vmalloc && pages) {
		address[n] = vmalloc;
		address[n + 1] = pages;
	}
	skel = read_pieces(address, MEMORY_PIECES);
	if (!skel)
		return;
	if (address[n] && !skel->bss->failed[n] && !skel->bss->failed[n + 1]) {
		p->vmalloc = skel->bss->word[n][0];
		p->vmalloc_end = skel->bss->word[n + 1][0];
	}
	p->cpus = cpus;
	/* Small numbers before 6.15 (x86-64), from 0 on; where they are hidden, all are 0. */
	if (take_offsets(p, skel)) {
		p->percpu_start = address_of(s, "__per_cpu_start");
		p->percpu_end = address_of(s, "__per_cpu_end");
	}
	memory__destroy(skel);
}

void places_free(struct places *p)
{
	free(p->offset);
	*p = (struct places){ 0 };
}

/* NULL: no symbol is near. */
static const char *symbol_text(const struct places *p, uint64_t address, const char *mark,
			       char *text, size_t size)
{
	const struct symbol *sym = symbols_over(p->symbols, address);

	if (!sym)
		return NULL;
	if (sym->address == address)
		snprintf(text, size, "%s%s", sym->name, mark);
	else
		snprintf(text, size, "%s+%#" PRIx64 "%s", sym->name, address - sym->address, mark);
	return text;
}

const char *place_text(const struct places *p, uint64_t address, char *text, size_t size)
{
	uint64_t length = p->percpu_end - p->percpu_start, at;
	const char *found = NULL;
	unsigned int cpu;

	for (cpu = 0; length && cpu < p->cpus && !found; cpu++) {
		at = address - p->offset[cpu];
		if (at - p->percpu_start < length)
			found = symbol_text(p, at, " (per CPU)", text, size);
		else if (at - p->percpu_start < length + PERCPU_BEHIND)
			found = "(per-CPU memory)";
	}
	if (!found && address - p->vmalloc < p->vmalloc_end - p->vmalloc)
		found = "(vmalloc memory)";
	/* Where addresses are hidden nobody is told one. */
	return found ?: symbol_text(p, address, "", text, size) ?: "(no name)";
}
