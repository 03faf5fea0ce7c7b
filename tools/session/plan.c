// SPDX-License-Identifier: GPL-2.0-only
/*
 * The planner: from BTF, kallsyms and real attach tests, never from a version
 * number, decide how each logical event is observed.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "data/err.h"
#include "session/attempt.h"
#include "session/kallsyms.h"
#include "session/learn.h"
#include "session/limit.h"
#include "session/names.h"
#include "session/plan.h"

static const char *const program_names[EVENT_MAX] = {
#define PROGRAM_NAME(eid, ...)	[EVENT_##eid] = #eid,
	EVENTS(PROGRAM_NAME)
};

/* vm_operations_structs that tell the backing by themselves. */
static const struct {
	const char *symbol;
	enum backing backing;
} ops_table[] = {
	{ "shmem_vm_ops", BACKING_SHMEM },
	{ "shmem_anon_vm_ops", BACKING_SHMEM },
	{ "shm_vm_ops", BACKING_SYSV_SHM },
	{ "hugetlb_vm_ops", BACKING_HUGETLB },
	{ "bpf_map_lazy_vmops", BACKING_BPF_ARRAY },
	{ "bpf_map_default_vmops", BACKING_BPF_ARRAY },
	{ "array_map_vmops", BACKING_BPF_ARRAY },
	{ "arena_vm_ops", BACKING_BPF_ARENA },
	{ "kvm_gmem_vm_ops", BACKING_GUEST_MEMFD },
	{ "special_mapping_vmops", BACKING_DEVICE },
	{ "legacy_special_mapping_vmops", BACKING_DEVICE },
};

#define OPS_KNOWN	(sizeof(ops_table) / sizeof(ops_table[0]))
_Static_assert(OPS_KNOWN <= KNOWN_OPS_MAX, "more vm_ops than the programs compare");

/* Variables that tell where pages are described and where they are mapped. */
#define VMEMMAP		"vmemmap_base"
#define PAGE_OFFSET	"page_offset_base"
#define MEMCG		"memory_cgrp_subsys"
/* Where a task sleeps that waits for a folio. */
#define FOLIO_WAIT	"folio_wait_bit_common"
#define PAGE_FAULT	"exc_page_fault"
/* ... and what wakes it. */
#define FOLIO_WAKE	"wake_page_function"

/* The last one is part of MEMCG. What is only ever tried, as percpu_charge_mutex, is not here. */
static const char *const memcg_table[MEMCG_LOCKS - 1] = {
	"objcg_lock", "memcg_oom_lock", "memcg_max_mutex",
};

/*
 * thresholds_lock, event_list_lock and in 6.1 move_lock are of version 1, which may be left
 * out since 6.11; 6.12 brought peaks_lock, and 7.3 has no events_lock.
 */
static const char *const memcg_member[MEMCG_MEMBERS] = {
	"mem_cgroup.peaks_lock", "mem_cgroup.vmpressure.sr_lock",
	"mem_cgroup.vmpressure.events_lock", "mem_cgroup.thresholds_lock",
	"mem_cgroup.event_list_lock", "mem_cgroup.move_lock",
};

#define SYMBOLS_MAX	(EVENT_MAX * EVENT_SYMBOLS + OPS_KNOWN + MEMCG_LOCKS + 5)

struct planner {
	struct plan *plan;
	const struct plan_options *opts;
	struct btf *btf;
	struct names *names;	/* of btf */
	struct ksym sym[SYMBOLS_MAX];
	size_t syms;
	bool have_kallsyms;
	bool lossless;	/* kprobes: slower, but no run of theirs is lost to preemption */
	char text[EVENT_MAX][160];	/* symbols, split */
	/* what the attach tests said, per entry of sym[]; 0 not tried, 1 works, -errno */
	int fentry[SYMBOLS_MAX], kprobe[SYMBOLS_MAX];
};

const char *event_program(enum event_id id)
{
	return program_names[id];
}

const char *mechanism_name(enum mechanism mech, enum event_point point)
{
	switch (mech) {
	case MECH_FENTRY:
		return point == POINT_EXIT ? "fexit" : "fentry";
	case MECH_KPROBE:
		return point == POINT_EXIT ? "kretprobe" : "kprobe";
	case MECH_TP_BTF:
		return "tp_btf";
	case MECH_ITER:
		return "iter";
	default:
		return NULL;
	}
}

/* ---- choosing ---- */

static unsigned int func_params(const struct btf *btf, int func)
{
	const struct btf_type *t = btf__type_by_id(btf, func);

	t = t ? btf__type_by_id(btf, t->type) : NULL;
	return t && btf_is_func_proto(t) ? btf_vlen(t) : 0;
}

/* Has the kernel "struct.member[.member...]" or "function()"? "" asks for nothing. */
static bool kernel_has(const struct planner *p, const char *what)
{
	int len = strcspn(what, "(");
	uint32_t offset;
	char name[64];

	if (!what[len])
		return !*what || names_member(p->names, what, &offset);
	snprintf(name, sizeof(name), "%.*s", len, what);
	return names_find(p->names, name, BTF_KIND_FUNC) > 0;
}

/*
 * How `symbol` can be probed: the mechanism, or MECH_NONE and the reason. There is
 * a reason as well when it can, but not all of the calls are seen.
 */
static enum mechanism try_symbol(struct planner *p, const struct event *e, const char *symbol,
				 char *reason, size_t size)
{
	struct ksym *k = ksym_get(p->sym, p->syms, symbol);
	size_t i = k - p->sym;
	int id = names_find(p->names, symbol, BTF_KIND_FUNC);
	bool matches = EVENT_MATCHES(e->id), lossless = p->lossless && !matches;
	char why[96];

	*reason = 0;
	if (p->have_kallsyms && !k->exact && k->clones) {
		snprintf(reason, size, "only as %s: the compiler changed its arguments", k->clone);
		return MECH_NONE;
	}
	if (p->have_kallsyms ? !k->exact : !id) {
		snprintf(reason, size, "no symbol: inlined or not built");
		return MECH_NONE;
	}
	if (p->have_kallsyms && k->exact > 1) {
		snprintf(reason, size, "%u functions of this name", k->exact);
		return MECH_NONE;
	}
	if (k->clones)
		snprintf(reason, size, "also as %s, which is not seen: lower bounds", k->clone);
	if (matches && !id) {
		snprintf(reason, size, "not in BTF: a kprobe's exit does not see the lock");
		return MECH_NONE;
	}
	if (!p->plan->live) {
		if (!lossless && id > 0) {
			if (func_params(p->btf, id) > 6)
				snprintf(reason, size, "%u arguments: a kprobe before 6.6",
					 func_params(p->btf, id));
			return MECH_FENTRY;
		}
		return MECH_KPROBE;
	}
	/* More arguments than some trampolines take: known to fail is tried at once. */
	if (p->opts->quick && (lossless || id <= 0 || func_params(p->btf, id) <= 6))
		return !lossless && id > 0 ? MECH_FENTRY : MECH_KPROBE;
	if (!lossless && id > 0) {
		if (!p->fentry[i])
			p->fentry[i] = try_fentry(id) ?: 1;
		if (p->fentry[i] == 1)
			return MECH_FENTRY;
		fentry_refusal(why, sizeof(why), -p->fentry[i], func_params(p->btf, id));
	} else {
		snprintf(why, sizeof(why), "%s", lossless ? "" : "not in BTF");
	}
	if (matches) {
		snprintf(reason, size, "%s", why);
		return MECH_NONE;
	}
	if (!p->kprobe[i])
		p->kprobe[i] = try_kprobe(symbol) ?: 1;
	if (p->kprobe[i] == 1)
		return MECH_KPROBE;
	if (plan_locked_down())
		snprintf(reason, size, "%s%slockdown forbids kprobes", why, *why ? "; " : "");
	else if (p->kprobe[i] == -EINVAL)
		snprintf(reason, size, "notrace: the function cannot be patched");
	else
		snprintf(reason, size, "%s%skprobe: %s", why, *why ? "; " : "",
			 strerror(-p->kprobe[i]));
	return MECH_NONE;
}

static void plan_tracepoint(struct planner *p, const struct event *e, struct plan_event *pe)
{
	char name[96];

	snprintf(name, sizeof(name), "btf_trace_%s", e->symbols);
	if (!names_find(p->names, name, BTF_KIND_TYPEDEF)) {
		snprintf(pe->reason, sizeof(pe->reason), "no such tracepoint");
		return;
	}
	pe->mech = MECH_TP_BTF;
	pe->symbols = 1;
	snprintf(pe->symbol[0], sizeof(pe->symbol[0]), "%s", e->symbols);
}

/* A walk over all objects of a kind. */
static void plan_iterator(struct planner *p, const struct event *e, struct plan_event *pe)
{
	char name[96];

	snprintf(name, sizeof(name), "bpf_iter_%s", e->symbols);
	if (!names_find(p->names, name, BTF_KIND_FUNC)) {
		snprintf(pe->reason, sizeof(pe->reason), "no such iterator");
		return;
	}
	/* The counters of an address space are spread over the CPUs since 6.2. */
	if (!names_find(p->names, "mm_rss_stat", BTF_KIND_STRUCT) &&
	    !names_find(p->names, "this_cpu_off", BTF_KIND_VAR)) {
		snprintf(pe->reason, sizeof(pe->reason), "no this_cpu_off in BTF");
		return;
	}
	pe->mech = MECH_ITER;
	pe->symbols = 1;
	snprintf(pe->symbol[0], sizeof(pe->symbol[0]), "%s", e->symbols);
}

/*
 * Not a probe of its own but what others can do: read memory that has no type; see
 * at which address a page-table lock is taken, which only a trampoline does.
 */
static void plan_ability(const struct planner *p, const struct event *e, struct plan_event *pe)
{
	const struct plan_event *lock = &p->plan->event[EVENT_PTE_LOCK];

	if (!p->plan->can_read)
		snprintf(pe->reason, sizeof(pe->reason), "lockdown forbids reading memory");
	else if (e->id == EVENT_ZAP_HOLD && lock->mech == MECH_NONE)
		snprintf(pe->reason, sizeof(pe->reason), "%.159s", lock->reason);
	else if (e->id == EVENT_ZAP_HOLD && lock->mech != MECH_FENTRY)
		snprintf(pe->reason, sizeof(pe->reason),
			 "a kretprobe does not see the address that is locked");
	else if (e->id == EVENT_ZAP_HOLD && p->plan->event[EVENT_RMAP_PMD].mech == MECH_NONE)
		snprintf(pe->reason, sizeof(pe->reason), "%.159s",
			 p->plan->event[EVENT_RMAP_PMD].reason);
	else if (e->id == EVENT_IN_FAULT && !p->plan->exc_page_fault_at)
		snprintf(pe->reason, sizeof(pe->reason), "no address of " PAGE_FAULT);
	else if (e->id == EVENT_IN_FAULT && p->plan->live && cpu_has("fred"))
		snprintf(pe->reason, sizeof(pe->reason), "faults come by FRED");
	else
		pe->mech = MECH_FENTRY;
}

/* Does a metric that is asked for need it? */
static bool of_domains(const struct planner *p, const struct event *e)
{
	const struct metric *m;

	for (m = metrics; m < metrics + METRIC_MAX; m++)
		if (plan_has(p->opts, m->domain) && (m->events | m->named) & EVENT_BIT(e->id))
			return true;
	return false;
}

/* The option that it is only loaded for, which was not given; NULL: it is loaded. */
static const char *not_asked(const struct plan_options *opts, const struct event *e)
{
	if (EVENT_IN_PATH(e->id))
		return opts->in && e->id >= opts->in && e->id <= opts->in + 1 ? NULL : "in";
	if (e->id == EVENT_LOCK_RELEASE)
		return opts->by ? NULL : "by";
	if (EVENT_RECONCILES(e->id))
		return opts->reconcile ? NULL : "reconcile";
	return e->need != NEED_ASKED || opts->yield ? NULL : "yield";
}

static void plan_one(struct planner *p, const struct event *e)
{
	struct plan_event *pe = &p->plan->event[e->id];
	char reason[160], first[224] = "", *save, *symbol, list[160];
	const char *option;

	if (e->id != EVENT_FORK && !of_domains(p, e)) {
		pe->absent = pe->unasked = true;
		snprintf(pe->reason, sizeof(pe->reason), "of another domain");
		return;
	}
	if (e->id == EVENT_FORK && p->opts->unforked) {
		pe->absent = true;
		snprintf(pe->reason, sizeof(pe->reason), "no children are followed");
		return;
	}
	option = not_asked(p->opts, e);
	if (option) {
		pe->absent = pe->unasked = true;
		snprintf(pe->reason, sizeof(pe->reason), "only with --%s", option);
		return;
	}
	if (e->id == EVENT_INSERT_RMAP && p->plan->can_read) {
		pe->absent = true;
		snprintf(pe->reason, sizeof(pe->reason), "their number is read");
		return;
	}
	if (!kernel_has(p, e->exists)) {
		pe->absent = true;
		snprintf(pe->reason, sizeof(pe->reason), "this kernel has none (no %s)", e->exists);
		return;
	}
	if (e->point == POINT_NONE) {
		plan_ability(p, e, pe);
		return;
	}
	if (e->point == POINT_ITER) {
		plan_iterator(p, e, pe);
		return;
	}
	if (e->point == POINT_TP) {
		plan_tracepoint(p, e, pe);
		return;
	}
	snprintf(list, sizeof(list), "%s", e->symbols);
	for (symbol = strtok_r(list, ",", &save); symbol; symbol = strtok_r(NULL, ",", &save)) {
		enum mechanism mech = try_symbol(p, e, symbol, reason, sizeof(reason));

		if (mech == MECH_NONE) {
			/* A symbol that exists and fails says more than one that does not. */
			if (!*first || !strncmp(first, "no symbol", 9))
				snprintf(first, sizeof(first), "%s: %s", symbol, reason);
			continue;
		}
		if (pe->symbols && pe->mech != mech)
			continue;	/* one mechanism per event */
		pe->mech = mech;
		snprintf(pe->symbol[pe->symbols++], sizeof(pe->symbol[0]), "%s", symbol);
		if (*reason) {
			struct ksym *k = ksym_get(p->sym, p->syms, symbol);

			pe->partial |= k->clones > 0;
			snprintf(pe->reason, sizeof(pe->reason), "%s", reason);
		}
		if (e->how == HOW_FIRST || pe->symbols == 2)
			break;
	}
	if (!pe->symbols)
		snprintf(pe->reason, sizeof(pe->reason), "%.159s", first);
}

static void collect_symbols(struct planner *p)
{
	size_t e, i, j;
	char *save, *s;

	for (e = 0; e < EVENT_MAX; e++) {
		if (events[e].point > POINT_EXIT || !of_domains(p, &events[e]))
			continue;
		snprintf(p->text[e], sizeof(p->text[e]), "%s", events[e].symbols);
		for (s = strtok_r(p->text[e], ",", &save); s; s = strtok_r(NULL, ",", &save)) {
			for (j = 0; j < p->syms && strcmp(p->sym[j].name, s); j++)
				;
			if (j == p->syms)
				p->sym[p->syms++].name = s;
		}
	}
	for (i = 0; i < OPS_KNOWN; i++)
		p->sym[p->syms++].name = ops_table[i].symbol;
	if (!plan_has(p->opts, DOMAIN_LOCK))
		return;
	for (i = 0; i < MEMCG_LOCKS - 1; i++)
		p->sym[p->syms++].name = memcg_table[i];
	p->sym[p->syms++].name = MEMCG;
	p->sym[p->syms++].name = VMEMMAP;
	p->sym[p->syms++].name = PAGE_OFFSET;
	p->sym[p->syms++].name = FOLIO_WAIT;
	p->sym[p->syms++].name = PAGE_FAULT;
	p->sym[p->syms++].name = FOLIO_WAKE;
}

static uint64_t address_of(struct planner *p, const char *name)
{
	return ksym_get(p->sym, p->syms, name)->address;
}

/* Locks of memory cgroups: static ones, and members of what points at their subsystem. */
static void known_memcg_locks(struct planner *p)
{
	uint64_t subsys = address_of(p, MEMCG);
	uint32_t ss, at;
	size_t i;

	for (i = 0; i < MEMCG_LOCKS - 1; i++)
		p->plan->memcg_locks[i] = address_of(p, memcg_table[i]);
	if (!subsys)
		return;
	p->plan->memcg_subsys = subsys;
	/* Of the statistics: 6.1 and 6.12 have one for all subsystems, 7.2 and 7.3 one for each. */
	if (names_member(p->names, "cgroup_subsys.rstat_ss_lock", &at))
		p->plan->memcg_locks[i] = subsys + at;
	if (!names_member(p->names, "mem_cgroup.css.ss", &ss))
		return;
	for (i = 0; i < MEMCG_MEMBERS; i++)
		if (names_member(p->names, memcg_member[i], &at))
			p->plan->memcg_members[i] = at - ss;
}

static void known_variables(struct planner *p)
{
	p->plan->uffd_vma_third = !names_find(p->names, "uffd_flags_t", BTF_KIND_TYPEDEF);
	if (!plan_has(p->opts, DOMAIN_LOCK))
		return;
	/* Before 6.6 page tables had no struct of their own. */
	if (!names_member(p->names, "ptdesc.ptl", &p->plan->table_lock))
		names_member(p->names, "page.ptl", &p->plan->table_lock);
	if (!names_member(p->names, "ptdesc.pmd_huge_pte", &p->plan->table_left))
		names_member(p->names, "page.pmd_huge_pte", &p->plan->table_left);
	p->plan->type_of_table = names_value(p->names, "pagetype", "PGTY_table");
	p->plan->type_of_slab = names_value(p->names, "pagetype", "PGTY_slab");
	p->plan->vmemmap_at = address_of(p, VMEMMAP);
	p->plan->page_offset_at = address_of(p, PAGE_OFFSET);
	p->plan->folio_wait_at = address_of(p, FOLIO_WAIT);
	p->plan->exc_page_fault_at = address_of(p, PAGE_FAULT);
	p->plan->folio_wake_at = address_of(p, FOLIO_WAKE);
	known_memcg_locks(p);
}

static void known_ops(struct planner *p)
{
	size_t i, n = 0;

	for (i = 0; i < OPS_KNOWN; i++) {
		struct ksym *k = ksym_get(p->sym, p->syms, ops_table[i].symbol);

		if (!k->address)
			continue;
		p->plan->known_ops[n] = k->address;
		p->plan->known_ops_backing[n++] = ops_table[i].backing;
	}
	/* Hidden (kptr_restrict, or no CAP_SYSLOG): what we map ourselves tells some. */
	if (!n && p->plan->live && !p->plan->refused)
		learn_ops(p->plan->known_ops, p->plan->known_ops_backing);
}

static void refuse_all(struct plan *plan, const char *why)
{
	size_t i;

	plan->refused = true;
	snprintf(plan->refusal, sizeof(plan->refusal), "%s", why);
	for (i = 0; i < EVENT_MAX; i++) {
		plan->event[i].mech = MECH_NONE;
		plan->event[i].symbols = 0;
		snprintf(plan->event[i].reason, sizeof(plan->event[i].reason), "%s", why);
	}
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

int plan_make(struct plan *plan, const struct plan_options *opts)
{
	const char *kallsyms = opts->kallsyms ?: opts->btf ? NULL : KALLSYMS;
	struct planner *p = calloc(1, sizeof(*p));
	int ret = -1, probe, id;
	unsigned long have, need;
	char why[96];
	size_t i;

	if (!p) {
		err("plan", "out of memory");
		return -1;
	}
	libbpf_set_print(quiet);
	memset(plan, 0, sizeof(*plan));
	plan->opts = *opts;
	plan->live = !opts->btf;
	plan->can_read = true;
	p->plan = plan;
	p->opts = opts;

	if (plan->live && limit_raise(&have, &need)) {
		snprintf(why, sizeof(why), "%lu descriptors may be needed, and ulimit -n is %lu",
			 need, have);
		refuse_all(plan, why);
		ret = 0;
		goto cleanup;
	}
	if (plan->live && ftrace_is_off()) {
		refuse_all(plan, "no probe runs: kernel.ftrace_enabled is 0 (sysctl sets it to 1)");
		ret = 0;
		goto cleanup;
	}
	p->btf = opts->btf ? btf__parse(opts->btf, NULL) : btf__parse(BTF_PATH, NULL);
	if (!p->btf) {
		if (opts->btf) {
			err("%s", "cannot be read as BTF: %s", opts->btf,
			    errno == EINVAL ? "damaged, or not BTF" : strerror(errno));
			goto cleanup;
		}
		refuse_all(plan, errno == ENOENT ? "no BTF: " BTF_PATH " does not exist" :
						   "no BTF: " BTF_PATH " cannot be read");
		ret = 0;
		goto cleanup;
	}

	p->names = names_make(p->btf);
	if (!p->names) {
		err("plan", "out of memory");
		goto cleanup;
	}
	collect_symbols(p);
	if (kallsyms) {
		if (!kallsyms_find(kallsyms, p->sym, p->syms)) {
			p->have_kallsyms = true;
		} else if (opts->kallsyms) {
			err("%s", "%s", opts->kallsyms, errno == EINVAL ?
			    "no symbols: neither a kallsyms nor a System.map" : strerror(errno));
			goto cleanup;
		}
	}
	if (!p->have_kallsyms)
		kallsyms_find("/dev/null", p->sym, p->syms);	/* only sorts */

	/* Before 6.7 nobody counts what kprobes lose; the trampolines' losses are counted. */
	p->lossless = opts->exact && kernel_has(p, "bpf_link_info.perf_event.kprobe.missed");

	if (plan->live) {
		id = names_find(p->names, "handle_mm_fault", BTF_KIND_FUNC);
		probe = id > 0 ? try_fentry(id) : 0;
		if (probe == -EPERM || probe == -EACCES) {
			refuse_all(plan, geteuid() ?
				   "no permission: BPF needs root, or CAP_BPF and CAP_PERFMON" :
				   "no permission: BPF is refused here even to root");
			ret = 0;
			goto cleanup;
		}
		plan->can_read = try_read();
	}
	known_ops(p);
	known_variables(p);
	for (i = 0; i < EVENT_MAX; i++)
		plan_one(p, &events[i]);
	ret = 0;

cleanup:
	names_free(p->names);
	btf__free(p->btf);
	free(p);
	return ret;
}

bool plan_essential(const struct plan *plan, const char **reason)
{
	size_t i;

	for (i = 0; i < EVENT_MAX; i++)
		if (events[i].need == NEED_ESSENTIAL && plan->event[i].mech == MECH_NONE &&
		    !plan->event[i].absent) {
			*reason = plan->event[i].reason;
			return false;
		}
	return true;
}

const char *plan_metric_missing(const struct plan *plan, const struct metric *m)
{
	size_t i;

	for (i = 0; i < EVENT_MAX; i++)
		if (m->events & EVENT_BIT(i) && plan->event[i].mech == MECH_NONE &&
		    (plan->event[i].unasked || events[i].need == NEED_ASKED ||
		     (events[i].need <= NEED_USEFUL && !plan->event[i].absent)))
			return plan->event[i].reason;
	return NULL;
}
