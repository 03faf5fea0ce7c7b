/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_LOCK_RELEASE_H
#define MMSCOPE_LOCK_RELEASE_H

/*
 * contended_release(lock): still held by who runs, and asked for by who sleeps; of mutexes
 * and all kinds of semaphores. Where it is called nothing may be waited for.
 */
SEC("tp_btf/contended_release")
int LOCK_RELEASE__tp_btf(u64 *ctx)
{
	u64 lock = ctx[0], sp = stack_of(ctx);
	struct lock_id id;

	if (!on_task_stack(sp) || !lock_target())
		return 0;
	if (lock_within && !is_within(bpf_task_storage_get(&waits, bpf_get_current_task_btf(),
							   0, 0), sp))
		return 0;
	id = lock_identify(lock, MODE_WRITE);
	if (id.class == CLASS_OTHER)
		id = lock_identify(lock, MODE_MUTEX);
	id.holder = HOLDER_SELF;
	count(METRIC_LOCK_RELEASED, slot_at(SLOT_BASE_CLASS + clamp(id.class, CLASS_MAX)), 1);
	row_release(lock, id);
	return 0;
}

#endif
