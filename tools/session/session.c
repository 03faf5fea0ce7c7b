// SPDX-License-Identifier: GPL-2.0-only
/* Load, attach, switch: the only code that handles BPF programs. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "data/err.h"
#include "fault.skel.h"
#include "session/around.h"
#include "session/attempt.h"
#include "session/calibrate.h"
#include "session/counts.h"
#include "session/locks.h"
#include "session/mark.h"
#include "session/resident.h"
#include "session/session.h"

#define PROGRAMS_MAX	(EVENT_MAX * EVENT_SYMBOLS)

struct attached {
	enum event_id event;
	char symbol[48];
	struct bpf_program *prog;
	struct bpf_link *link;
};

struct session {
	struct plan *plan;
	struct session_options opts;
	struct fault *skel;
	struct attached prog[PROGRAMS_MAX];
	size_t progs;
	struct counts *counts;
	struct lock_views locks;
	/* Misses where what was read ends, where the next starts, and where this started. */
	uint64_t misses[PROGRAMS_MAX], misses_next[PROGRAMS_MAX], misses_base[PROGRAMS_MAX];
	bool unsure;			/* ftrace was off */
	int pidfd;
	uint32_t run;			/* what `observing` was last, on */
	uint64_t program_ps;		/* what a run of a program takes; 0: not known */
	unsigned long around_bytes;	/* to be written back; 0: nothing to restore */
};

/* ---- what libbpf and the verifier have to say goes to a file ---- */

static FILE *load_log;

static int log_print(enum libbpf_print_level level, const char *format, va_list args)
{
	return load_log && level != LIBBPF_DEBUG ? vfprintf(load_log, format, args) : 0;
}

/* ---- loading ---- */

static void program_name(char *name, size_t size, const struct event *e,
			 enum mechanism mech, unsigned int i)
{
	/* A kprobe program attaches any number of times; a trampoline's has one target. */
	snprintf(name, size, "%s__%s%s", event_program(e->id), mechanism_name(mech, e->point),
		 mech == MECH_FENTRY && i ? "2" : "");
}

static int choose_programs(struct session *s)
{
	struct bpf_program *prog;
	char name[64];
	size_t e;
	unsigned int i;

	bpf_object__for_each_program(prog, s->skel->obj)
		bpf_program__set_autoload(prog, false);
	if (s->opts.target && s->opts.target->tasks)
		bpf_program__set_autoload(s->skel->progs.mark_tasks, true);

	for (e = 0; e < EVENT_MAX; e++) {
		struct plan_event *pe = &s->plan->event[e];

		for (i = 0; i < pe->symbols; i++) {
			struct attached *a = &s->prog[s->progs];

			program_name(name, sizeof(name), &events[e], pe->mech, i);
			prog = bpf_object__find_program_by_name(s->skel->obj, name);
			if (!prog) {
				err("session", "no program %s in this build", name);
				return -1;
			}
			bpf_program__set_autoload(prog, true);
			if (pe->mech == MECH_FENTRY &&
			    bpf_program__set_attach_target(prog, 0, pe->symbol[i])) {
				err("session", "%s: not in BTF after all", pe->symbol[i]);
				return -1;
			}
			a->event = e;
			a->prog = prog;
			snprintf(a->symbol, sizeof(a->symbol), "%s", pe->symbol[i]);
			s->progs++;
		}
	}
	return 0;
}

static bool observe_all(const struct session *s)
{
	return s->opts.target && s->opts.target->everyone;
}

/* The initial one has a fixed inode (include/linux/proc_ns.h: PROC_PID_INIT_INO). */
#define INITIAL_PID_NS	0xeffffffcU

static void pid_namespace(struct fault *skel)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) || st.st_ino == INITIAL_PID_NS)
		return;
	skel->rodata->pid_ns_dev = st.st_dev;
	skel->rodata->pid_ns_inode = st.st_ino;
}

static void configure(struct session *s)
{
	struct fault__rodata *ro = s->skel->rodata;
	const struct target *target = s->opts.target;
	const struct plan *plan = s->plan;
	unsigned int pairs, times;
	uint32_t base[METRIC_MAX] = { 0 };

	plan_elements(&plan->opts, base, &pairs, &times);
	memcpy((void *)ro->metric_base, base, sizeof(base));
	shape_fill_slots((uint16_t *)ro->slot_of);
	memcpy((void *)ro->known_ops, plan->known_ops, sizeof(plan->known_ops));
	memcpy((void *)ro->known_ops_backing, plan->known_ops_backing,
	       sizeof(plan->known_ops_backing));
	ro->observe_all = observe_all(s);
	ro->observe_cgroup = target && target->cgroup >= 0;
	if (target && target->comm) {
		ro->observe_comm = true;
		/* The kernel keeps 15 bytes of a name (TASK_COMM_LEN). */
		memcpy((void *)ro->target_comm, target->comm, strnlen(target->comm, 15));
	}
	if (plan_by(&s->plan->opts, s->opts.by, DOMAIN_FAULT)) {
		ro->by_label = s->opts.by;
		bpf_map__set_max_entries(s->skel->maps.by_counts, BY_SLOTS);
		bpf_map__set_max_entries(s->skel->maps.by_slots, BY_SLOTS);
	}
	pid_namespace(s->skel);
	ro->read_memory = plan->can_read;
	ro->have_pte_lock = plan->event[EVENT_PTE_LOCK].mech != MECH_NONE;
	ro->swap_install_has_nr = !strcmp(plan->event[EVENT_SWAP_INSTALL].symbol[0],
					  "folio_add_anon_rmap_ptes");
	ro->reconcile = plan->event[EVENT_RSS_WALK].mech != MECH_NONE;
	ro->uffd_vma_third = plan->uffd_vma_third;
	ro->zap_scan = plan->event[EVENT_ZAP_HOLD].mech != MECH_NONE;
	ro->pte_install_has_nr = !strcmp(plan->event[EVENT_PTE_INSTALL].symbol[0], "set_pte_range");
	ro->have_insert_rmap = plan->event[EVENT_INSERT_RMAP].mech != MECH_NONE;
	ro->rmap_has_nr = !strcmp(plan->event[EVENT_INSERT_RMAP].symbol[0],
				  "folio_add_file_rmap_ptes");
	ro->unmap_has_nr = !strcmp(plan->event[EVENT_COLLAPSE_RMAP].symbol[0],
				   "folio_remove_rmap_ptes");
	ro->page_shift = __builtin_ctzl(sysconf(_SC_PAGESIZE));
	ro->pmd_order = ro->page_shift - 3;

	plan_room(&pairs, &times);
	bpf_map__set_max_entries(s->skel->maps.batches, ro->pairs_room = pairs);
	bpf_map__set_max_entries(s->skel->maps.times, ro->times_room = times);
}

/* 0, or -1 after an error line. */
static int open_counts(struct session *s)
{
	s->counts = counts_new(&(struct counts_maps){
		.plan = &s->plan->opts,
		.counters = bpf_map__fd(s->skel->maps.counters),
		.batches = bpf_map__fd(s->skel->maps.batches),
		.times = bpf_map__fd(s->skel->maps.times),
		.by = plan_by(&s->plan->opts, s->opts.by, DOMAIN_FAULT),
		.by_counts = bpf_map__fd(s->skel->maps.by_counts),
		.by_slots = bpf_map__fd(s->skel->maps.by_slots),
		.by_used = &s->skel->bss->by_used,
		.pair_at = s->skel->bss->pair_at, .time_at = s->skel->bss->time_at,
		.inferred = s->skel->bss->inferred,
	});
	return s->counts ? lock_views_open(&s->locks, s->skel, s->plan, &s->opts) : -1;
}

static int attach_one(struct attached *a, enum mechanism mech)
{
	LIBBPF_OPTS(bpf_kprobe_opts, kopts, .retprobe = events[a->event].point == POINT_EXIT);

	if (mech == MECH_KPROBE)
		a->link = bpf_program__attach_kprobe_opts(a->prog, a->symbol, &kopts);
	else
		a->link = bpf_program__attach(a->prog);
	return a->link ? 0 : -errno;
}

static bool interrupted(const struct session *s)
{
	return s->opts.interrupted && s->opts.interrupted();
}

static int attach_all(struct session *s)
{
	size_t i;
	int e;

	/* Exits first: an entry that is seen has its exit seen. */
	for (i = s->progs; i-- > 0;) {
		struct attached *a = &s->prog[i];
		struct plan_event *pe = &s->plan->event[a->event];

		if (interrupted(s))
			return -EINTR;
		e = attach_one(a, pe->mech);
		if (!e)
			continue;
		if (!s->plan->opts.quick)
			err("session", "cannot attach to %s: %s", a->symbol, strerror(-e));
		return e;
	}
	return 0;
}

static int load(struct session *s)
{
	char path[] = "/tmp/mmscope-load.XXXXXX";
	int fd, e;

	fd = mkstemp(path);
	load_log = fd >= 0 ? fdopen(fd, "w") : NULL;
	libbpf_set_print(log_print);
	e = fault__load(s->skel);
	if (load_log)
		fclose(load_log);
	load_log = NULL;
	if (fd >= 0 && (!e || s->plan->opts.quick))
		unlink(path);
	if (!e || s->plan->opts.quick)
		return e;
	if (fd >= 0)
		err("session", "the BPF programs do not load: %s; the verifier's log is in %s",
		    strerror(-e), path);
	else
		err("session", "the BPF programs do not load: %s", strerror(-e));
	return -1;
}

static struct marker marker(const struct session *s)
{
	return (struct marker){
		.map = bpf_map__fd(s->skel->maps.tasks),
		.value_size = bpf_map__value_size(s->skel->maps.tasks),
		.visit = s->skel->progs.mark_tasks,
		.only = &s->skel->bss->mark_only,
		.marked = &s->skel->bss->marked,
	};
}

static int choose_targets(struct session *s)
{
	struct target *t = s->opts.target;
	struct marker m = marker(s);
	uint32_t zero = 0;

	if (!t)
		return 0;
	if (t->cgroup >= 0 && bpf_map_update_elem(bpf_map__fd(s->skel->maps.cgroup), &zero,
						  &t->cgroup, BPF_ANY)) {
		err("--cgroup", "the kernel does not take it: %s", strerror(errno));
		return -1;
	}
	return t->tasks ? mark_targets(&m, t) : 0;
}

/* As session_open(); with a quick plan, *refused when it needs a thorough one. */
static struct session *try_open(struct plan *plan, const struct session_options *opts,
				bool *refused)
{
	struct session *s = calloc(1, sizeof(*s));
	unsigned long around = 0;
	struct marker m;
	uint64_t bare;

	if (!s) {
		err("session", "out of memory");
		return NULL;
	}
	s->plan = plan;
	s->opts = *opts;
	s->pidfd = -1;
	resident_plan(plan, opts->target);
	libbpf_set_print(log_print);
	s->skel = fault__open();
	if (!s->skel) {
		err("session", "the BPF object does not open: %s", strerror(errno));
		goto fail;
	}
	if (choose_programs(s))
		goto fail;
	configure(s);
	locks_configure(s->skel, plan, opts);
	if (opts->yield) {
		if (around_read(&around))
			goto fail;
		s->skel->rodata->yield_pages = around / sysconf(_SC_PAGESIZE);
		bpf_map__set_max_entries(s->skel->maps.yield_tables, YIELD_TABLES);
	}
	bare = interrupted(s) ? 0 : calibrate_fault();
	if (interrupted(s) || load(s) || attach_all(s)) {
		*refused = plan->opts.quick && !interrupted(s);
		goto fail;
	}
	if (open_counts(s))
		goto fail;
	m = marker(s);
	s->program_ps = calibrate_program(plan, &m, &s->pidfd, &s->skel->bss->observing,
					  observe_all(s), bare);
	if (counts_forget_values(s->counts) || choose_targets(s) || session_reset(s) ||
	    (opts->yield && around_off()))
		goto fail;
	s->around_bytes = around;
	return s;

fail:
	session_close(s);
	return NULL;
}

struct session *session_open(struct plan *plan, const struct session_options *opts)
{
	struct plan_options thorough = plan->opts;
	bool refused = false;
	struct session *s = try_open(plan, opts, &refused);
	const char *why;

	if (!refused)
		return s;
	thorough.quick = false;
	if (plan_make(plan, &thorough))
		return NULL;
	if (!plan_essential(plan, &why)) {
		err("session", "cannot observe here: %s; see mmscope probes", why);
		return NULL;
	}
	return try_open(plan, opts, &refused);
}

void session_close(struct session *s)
{
	size_t i;

	if (!s)
		return;
	if (s->around_bytes && around_write(s->around_bytes))
		err("--yield", "fault-around stays off: write %lu to " AROUND_FILE,
		    s->around_bytes);
	for (i = 0; i < s->progs; i++)
		bpf_link__destroy(s->prog[i].link);
	fault__destroy(s->skel);
	counts_free(s->counts);
	lock_views_free(&s->locks);
	if (s->pidfd >= 0)
		close(s->pidfd);
	free(s);
}

/* ---- running ---- */

static bool observing(const struct session *s)
{
	return __atomic_load_n(&s->skel->bss->observing, __ATOMIC_SEQ_CST);
}

/* Add the resident sets of all targets to where they stood, or to where they end. */
static void walk_resident(struct session *s, bool ends)
{
	struct attached *a = NULL;
	size_t i;

	for (i = 0; i < s->progs; i++)
		if (s->prog[i].event == EVENT_RSS_WALK && s->prog[i].link)
			a = &s->prog[i];
	if (!a)
		return;
	s->skel->bss->rss_walk_ends = ends;
	s->skel->bss->rss_walk_pages = 0;
	s->skel->bss->rss_walk++;
	if (!resident_walk(s->plan, bpf_link__fd(a->link)))
		return;
	bpf_link__destroy(a->link);
	a->link = NULL;
}

void session_observe(struct session *s, bool on)
{
	if (on == observing(s))
		return;
	if (!on)
		walk_resident(s, true);
	else
		s->skel->bss->collapsing = 0;	/* states of an older run are void */
	__atomic_store_n(&s->skel->bss->observing, on ? ++s->run : 0, __ATOMIC_SEQ_CST);
	if (on)
		walk_resident(s, false);
}

int session_adopt(struct session *s, bool on)
{
	struct marker m = marker(s);

	if (observe_all(s))
		return 0;
	if (on)
		return mark_self(&m, &s->pidfd, ROLE_PARENT);
	unmark_self(&m, s->pidfd);
	return 0;
}

/* bpf_link_info of a perf event, as far as needed: since 6.7 it tells misses. */
struct kprobe_link_info {
	uint32_t type, id, prog_id, pad;
	uint32_t perf_type, pad2;
	uint64_t func_name;
	uint32_t name_len, offset;
	uint64_t addr, missed, room[8];
};

/*
 * Runs that were lost, or UINT64_MAX when this kernel cannot tell: those of the
 * program, if `whole`, and those of this probe of it.
 */
static uint64_t program_misses(const struct attached *a, enum mechanism mech, bool whole)
{
	struct bpf_prog_info info = { 0 };
	struct kprobe_link_info link = { 0 };
	uint32_t len = sizeof(info);
	uint64_t own;

	if (bpf_obj_get_info_by_fd(bpf_program__fd(a->prog), &info, &len) ||
	    len < offsetof(struct bpf_prog_info, recursion_misses) + sizeof(uint64_t))
		return UINT64_MAX;
	own = whole ? info.recursion_misses : 0;
	if (mech != MECH_KPROBE)
		return own;
	len = sizeof(link);
	if (bpf_obj_get_info_by_fd(bpf_link__fd(a->link), &link, &len) || !link.perf_type ||
	    len < offsetof(struct kprobe_link_info, missed) + sizeof(uint64_t))
		return UINT64_MAX;
	return own + link.missed;
}

static void read_misses(struct session *s, uint64_t *misses)
{
	size_t i;

	/* Switched off meanwhile: nobody counts what did not run, even if it is on again. */
	s->unsure |= ftrace_is_off();
	for (i = 0; i < s->progs; i++) {
		const struct attached *a = &s->prog[i];
		/* Kprobes of one event share their program. */
		bool whole = !i || a[-1].prog != a->prog;

		if (a->link && s->unsure && events[a->event].point <= POINT_EXIT)
			misses[i] = UINT64_MAX;
		else if (a->link)
			misses[i] = program_misses(a, s->plan->event[a->event].mech, whole);
	}
}

/*
 * A run that is lost while the counts are read belongs to both sides, so that
 * neither is told too little; to none, if nothing was observed meanwhile.
 */
static int read_all(struct session *s)
{
	bool on = observing(s);

	read_misses(s, on ? s->misses_next : s->misses);
	if (counts_read(s->counts, on) || lock_views_read(&s->locks))
		return -1;
	read_misses(s, on ? s->misses : s->misses_next);
	return 0;
}

int session_reset(struct session *s)
{
	if (read_all(s))
		return -1;
	session_lap(s);
	return 0;
}

void session_lap(struct session *s)
{
	counts_lap(s->counts);
	lock_views_lap(&s->locks);
	memcpy(s->misses_base, s->misses_next, sizeof(s->misses_next));
	/* What was resident at the end of an interval is so at the start of the next. */
	if (observing(s))
		counts_carry(s->counts, METRIC_RSS_BEFORE, s->skel->bss->rss_walk_pages);
}

static int add_trust(struct session *s, struct run *run, uint64_t *lost)
{
	struct trust *t = &run->trust;
	bool cut;	/* an unknown number of misses stays above any other */
	size_t i, n = 0;

	t->probe = calloc(s->progs + EVENT_MAX, sizeof(*t->probe));
	if (!t->probe)
		goto no_memory;
	for (i = 0; i < s->progs; i++) {
		const struct plan_event *pe = &s->plan->event[s->prog[i].event];
		struct probe_state *ps = &t->probe[n];

		if (!s->prog[i].link)
			continue;
		n++;
		ps->event = s->prog[i].event;
		ps->mechanism = mechanism_name(pe->mech, events[ps->event].point);
		ps->symbol = run_text(run, s->prog[i].symbol);
		if (!ps->symbol)
			goto no_memory;
		ps->misses = s->misses[i] == UINT64_MAX || s->misses_base[i] == UINT64_MAX ?
			     UINT64_MAX : s->misses[i] - s->misses_base[i];
		/* It is on the way of all that takes pages away, nearly always for nothing. */
		if (ps->event == EVENT_COLLAPSE_RMAP && !counts_trust(s->counts, TRUST_COLLAPSES))
			ps->misses = 0;
		lost[ps->event] = sat_add(lost[ps->event], ps->misses, &cut);
	}
	for (i = 0; i < EVENT_MAX; i++) {
		const struct plan_event *pe = &s->plan->event[i];

		if (pe->mech != MECH_NONE || pe->absent)
			continue;
		t->probe[n].event = i;
		t->probe[n].reason = run_text(run, pe->reason);
		if (!t->probe[n++].reason)
			goto no_memory;
	}
	t->probes = n;
	t->unmatched = counts_trust(s->counts, TRUST_UNMATCHED);
	t->map_full = counts_trust(s->counts, TRUST_MAP_FULL) +
		      counts_trust(s->counts, TRUST_BY_FULL);
	t->lost = counts_trust(s->counts, TRUST_LOST);
	t->program_ps = s->program_ps;
	t->program_least = observe_all(s);
	return 0;

no_memory:
	err("session", "out of memory");
	return -1;
}

struct images *session_images(const struct session *s)
{
	return s->locks.images;
}

int session_collect(struct session *s, struct run *run)
{
	uint64_t lost[EVENT_MAX] = { 0 };

	if (observing(s))
		walk_resident(s, true);
	if (read_all(s))
		return -1;
	if (add_trust(s, run, lost))
		return -1;
	if (counts_samples(s->counts, s->plan, lost, run))
		return -1;
	return lock_views_samples(&s->locks, run);
}
