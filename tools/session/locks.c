// SPDX-License-Identifier: GPL-2.0-only
/* What the programs of locks are told before they are loaded, and what they count. */
#include <bpf/libbpf.h>
#include <string.h>

#include "data/err.h"
#include "fault.skel.h"
#include "session/locks.h"

void locks_configure(struct fault *skel, const struct plan *plan,
		     const struct session_options *opts)
{
	struct fault__rodata *ro = skel->rodata;

	if (!opts->stacks) {
		bpf_map__set_autocreate(skel->maps.stacks, false);
		bpf_map__set_autocreate(skel->maps.stack_counts, false);
		bpf_map__set_autocreate(skel->maps.stack_rooms, false);
	}
	if (!opts->user_stacks)
		bpf_map__set_autocreate(skel->maps.user_stacks, false);
	if (!plan_has(&plan->opts, DOMAIN_LOCK)) {
		bpf_map__set_autocreate(skel->maps.waits, false);
		bpf_map__set_autocreate(skel->maps.spins, false);
		bpf_map__set_autocreate(skel->maps.lock_rows, false);
		bpf_map__set_autocreate(skel->maps.lock_counts, false);
		return;
	}
	ro->lock_domain = true;
	ro->fault_parts = plan_has(&plan->opts, DOMAIN_FAULT);
	ro->lock_slow_rwsem = plan->event[EVENT_READ_WAIT].mech != MECH_NONE &&
			      plan->event[EVENT_WRITE_WAIT].mech != MECH_NONE;
	ro->table_lock = plan->table_lock;
	ro->table_left = plan->table_left;
	ro->type_of_table = plan->type_of_table;
	ro->type_of_slab = plan->type_of_slab;
	ro->vmemmap_at = plan->vmemmap_at;
	ro->page_offset_at = plan->page_offset_at;
	ro->folio_wait_at = plan->folio_wait_at;
	ro->exc_page_fault_at = plan->exc_page_fault_at;
	ro->memcg_subsys = plan->memcg_subsys;
	ro->folio_wake_at = plan->folio_wake_at;
	memcpy((void *)ro->memcg_locks, plan->memcg_locks, sizeof(plan->memcg_locks));
	memcpy((void *)ro->memcg_members, plan->memcg_members, sizeof(plan->memcg_members));
	ro->lock_by = plan_by(&plan->opts, opts->by, DOMAIN_LOCK) ?: LABEL_MAX;
	ro->lock_within = plan->opts.in;
	ro->lock_stacks = opts->stacks;
	ro->lock_user_stacks = opts->user_stacks;
	ro->lock_stack_rows = opts->user_stacks ? LOCK_STACKS_USER : LOCK_STACKS;
	if (opts->stacks) {
		bpf_map__set_max_entries(skel->maps.stacks, ro->lock_stack_rows);
		bpf_map__set_max_entries(skel->maps.stack_counts, ro->lock_stack_rows);
	}
	if (opts->user_stacks)
		bpf_map__set_max_entries(skel->maps.user_stacks, ro->lock_stack_rows);
	bpf_map__set_max_entries(skel->maps.lock_rows, LOCK_ROWS);
	bpf_map__set_max_entries(skel->maps.lock_counts, LOCK_ROWS);
}

int lock_views_open(struct lock_views *v, const struct fault *skel, const struct plan *plan,
		    const struct session_options *opts)
{
	if (!plan_has(&plan->opts, DOMAIN_LOCK))
		return 0;
	if (opts->user_stacks) {
		v->images = images_new(bpf_map__fd(skel->maps.user_stacks), LOCK_STACKS_USER);
		if (!v->images || images_follow(v->images))
			return -1;
	}
	v->rows = lock_rows_new(&(struct lock_rows_maps){
		.rows = bpf_map__fd(skel->maps.lock_rows),
		.counts = bpf_map__fd(skel->maps.lock_counts),
		.n = LOCK_ROWS,
		.by = plan_by(&plan->opts, opts->by, DOMAIN_LOCK) ?: LABEL_LOCK,
	});
	if (opts->stacks)
		v->stacks = lock_rows_new(&(struct lock_rows_maps){
			.rows = bpf_map__fd(skel->maps.stacks),
			.counts = bpf_map__fd(skel->maps.stack_counts),
			.n = skel->rodata->lock_stack_rows,
			.by = LABEL_STACK,
			.images = v->images,
			.most = opts->stacks,
		});
	if (v->rows && (v->stacks || !opts->stacks))
		return 0;
	err("session", "out of memory");
	return -1;
}

int lock_views_read(struct lock_views *v)
{
	return (v->rows && lock_rows_read(v->rows)) || (v->stacks && lock_rows_read(v->stacks)) ?
	       -1 : 0;
}

int lock_views_samples(const struct lock_views *v, struct run *run)
{
	if (v->rows && lock_rows_samples(v->rows, run))
		return -1;
	/* Names are of all that was mapped until the stacks were read. */
	if (v->images && images_tend(v->images, true))
		return -1;
	return v->stacks ? lock_rows_samples(v->stacks, run) : 0;
}

void lock_views_lap(struct lock_views *v)
{
	if (v->rows)
		lock_rows_lap(v->rows);
	if (v->stacks)
		lock_rows_lap(v->stacks);
}

void lock_views_free(struct lock_views *v)
{
	lock_rows_free(v->rows);
	lock_rows_free(v->stacks);
	images_free(v->images);
}
