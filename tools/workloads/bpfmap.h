/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_BPFMAP_H
#define MMSCOPE_BPFMAP_H

/* The one line for a bpf(2) that failed with errno; returns EXIT_UNOBSERVED. */
int bpfmap_failed(const char *bench, const char *what);

#endif
