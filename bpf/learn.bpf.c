// SPDX-License-Identifier: GPL-2.0-only
/* Tells the vm_operations_structs of the mappings of one process. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

/* ctx: meta, task, vma */
SEC("iter/task_vma")
int mapping(u64 *ctx)
{
	struct bpf_iter_meta *meta = (void *)ctx[0];
	struct vm_area_struct *vma = (void *)ctx[2];
	u64 pair[2];

	if (!vma)
		return 0;
	pair[0] = vma->vm_start;
	pair[1] = (u64)vma->vm_ops;
	bpf_seq_write(meta->seq, pair, sizeof(pair));
	return 0;
}
