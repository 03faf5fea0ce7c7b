// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads pieces of kernel memory for the loader, which knows their addresses
 * from the symbols. It is run by hand (BPF_PROG_TEST_RUN, 5.14), attached to
 * nothing.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "memory.h"

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 piece_bytes;		/* at most sizeof(word[0]) */

__u64 address[MEMORY_PIECES];		/* 0 ends the list */
__u64 word[MEMORY_PIECES][MEMORY_WORDS];
bool failed[MEMORY_PIECES];		/* not readable */

SEC("syscall")
int read_pieces(void *ctx)
{
	u32 bytes = piece_bytes, i;

	if (bytes > sizeof(word[0]))
		return 1;
	for (i = 0; i < MEMORY_PIECES && address[i]; i++)
		failed[i] = bpf_probe_read_kernel(word[i], bytes, (void *)address[i]) != 0;
	return 0;
}
