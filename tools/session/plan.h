/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_PLAN_H
#define MMSCOPE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "data/run.h"

#define KALLSYMS	"/proc/kallsyms"
#define BTF_PATH	"/sys/kernel/btf/vmlinux"

#define EVENT_SYMBOLS	3	/* most symbols that one event attaches to */

enum mechanism { MECH_NONE, MECH_FENTRY, MECH_KPROBE, MECH_TP_BTF, MECH_ITER };

struct plan_event {
	enum mechanism mech;
	unsigned int symbols;		/* chosen ones; 0 with MECH_NONE */
	char symbol[EVENT_SYMBOLS][48];
	bool unasked;			/* only with an option that was not given */
	bool absent;			/* this kernel has no such events: nothing to see */
	bool partial;			/* a copy of the function is not seen */
	char reason[160];		/* MECH_NONE: why; else a caveat, or "" */
};

struct plan_options {
	const char *btf;	/* NULL: the running kernel's */
	const char *kallsyms;	/* NULL: the running kernel's, or none with btf */
	unsigned int domains;	/* DOMAIN_ bits; 0: faults alone */
	bool yield;		/* follow what fault-around would gain */
	bool reconcile;		/* what RSS grew by; teardown and fork */
	bool by;		/* rows of locks by an open label */
	enum event_id in;	/* EVENT_IN_...: only waits in this path; 0: all */
	bool exact;		/* only mechanisms without observed loss */
	bool unforked;		/* no target's children are followed */
	/*
	 * Do not try what session_open() will try anyway: attaching to twenty
	 * functions twice is what starting costs. It plans again, with the tests,
	 * if something is refused.
	 */
	bool quick;
};

struct plan {
	struct plan_options opts;	/* what it was made with */
	struct plan_event event[EVENT_MAX];
	bool live;			/* of the running kernel: mechanisms were tried */
	bool can_read;			/* bpf_probe_read_kernel() is permitted */
	bool refused;			/* BPF is not permitted at all */
	char refusal[160];
	uint64_t known_ops[KNOWN_OPS_MAX];
	uint8_t known_ops_backing[KNOWN_OPS_MAX];
	uint64_t vmemmap_at, page_offset_at;	/* of variables; 0: not known */
	uint64_t folio_wait_at, folio_wake_at, exc_page_fault_at;	/* of functions */
	/* Of types that 6.1 lacks: a program that asks for one makes libbpf look into all
	 * modules, which needs CAP_SYS_ADMIN. 0: not known. */
	uint32_t table_lock, table_left, type_of_table, type_of_slab;
	/* Before 6.4, which brought a type for their flags, functions of userfaultfd had
	 * an mm as their first argument. */
	bool uffd_vma_third;
	uint64_t memcg_locks[MEMCG_LOCKS], memcg_subsys;
	uint32_t memcg_members[MEMCG_MEMBERS];
};

bool plan_has(const struct plan_options *opts, enum metric_domain domain);
/* The label itself where the domain has rows by it, and is observed; else 0. */
enum label plan_by(const struct plan_options *opts, enum label by, enum metric_domain domain);

/*
 * Decide for each event how it is observed. Everything that is tried on the
 * running kernel is detached again. Returns 0, or -1 after an error line: the
 * files named in the options cannot be used (exit status 4). A kernel where
 * nothing can be observed is a plan like any other, with reasons.
 */
int plan_make(struct plan *plan, const struct plan_options *opts);

/* Is every essential event observed? If not, *reason of the first is set. */
bool plan_essential(const struct plan *plan, const char **reason);

/* NULL when the metric can be observed; else why not. */
const char *plan_metric_missing(const struct plan *plan, const struct metric *m);

const char *mechanism_name(enum mechanism mech, enum event_point point);

/* "FAULT_ENTRY": the programs of an event are named after it. */
const char *event_program(enum event_id id);

/* Bytes that the maps take, the part of it per possible CPU; what stacks take beside it. */
struct plan_memory {
	uint64_t total, per_cpu, stacks;
	unsigned int cpus;
	unsigned int counters, pairs, times;	/* pairs, times: elements */
};
void plan_memory(struct plan_memory *mem, const struct plan_options *opts, bool by);

/*
 * Where each metric's slot 0 is in what was read, counters and histograms
 * apart; those of other domains have none.
 */
void plan_storage(const struct plan_options *opts, uint32_t base[METRIC_MAX],
		  unsigned int *counters, unsigned int *batches, unsigned int *times);

/* The same in the programs' maps, whose elements may hold two metrics (shared.h). */
void plan_elements(const struct plan_options *opts, uint32_t base[METRIC_MAX],
		   unsigned int *pairs, unsigned int *times);

/* Elements that the maps have for so many: what a run is likely to use, at least 1 each. */
void plan_room(unsigned int *pairs, unsigned int *times);

/* Is the running kernel locked down so far that programs may not read its memory? */
bool plan_locked_down(void);

/*
 * Why a trampoline on a function was refused: err is the positive errno of
 * loading or attaching, params the number of the function's parameters.
 */
void fentry_refusal(char *reason, size_t size, int err, unsigned int params);

#endif
