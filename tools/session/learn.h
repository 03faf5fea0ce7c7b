/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_LEARN_H
#define MMSCOPE_LEARN_H

#include <stdint.h>

#include "bpf/shared.h"

/*
 * Where the kernel hides its symbols: make mappings whose backing we know, and see
 * which vm_operations_struct each has. Fills the front of both arrays; what cannot
 * be made here stays unknown. Everything is undone.
 */
void learn_ops(uint64_t ops[KNOWN_OPS_MAX], uint8_t backing[KNOWN_OPS_MAX]);

#endif
