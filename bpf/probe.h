/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_PROBE_H
#define MMSCOPE_PROBE_H

/*
 * One body per event; these macros make its programs. The loader names them
 * by event and mechanism: EVENT__fentry, EVENT__kprobe (entry), EVENT__fexit,
 * EVENT__kretprobe (exit). An event that may stand for two functions at once
 * has EVENT__fentry2 or __fexit2 as well: a trampoline program has one target.
 *
 * `typed` is a constant in each program: pointers of a trampoline carry their
 * BTF type and are read directly, which lockdown permits; those of a kprobe are
 * plain numbers and go through bpf_probe_read_kernel().
 */
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define READ(p, field)	(typed ? (p)->field : BPF_CORE_READ(p, field))

#define FENTRY(event, suffix)							\
	SEC("fentry")								\
	int event##__fentry##suffix(u64 *ctx)					\
	{									\
		event##_body(true, ctx[0], ctx[1], ctx[2], ctx[3]);		\
		return 0;							\
	}

/*
 * For a function that has a fourth and fifth argument only in newer kernels: a
 * plain load could be moved before the check that they are there.
 */
#define ENTRY_PROGRAMS_5(event)							\
	SEC("fentry")								\
	int event##__fentry(u64 *ctx)						\
	{									\
		u64 a3 = 0, a4 = 0;						\
										\
		bpf_get_func_arg(ctx, 3, &a3);					\
		bpf_get_func_arg(ctx, 4, &a4);					\
		event##_body(true, ctx[0], ctx[1], ctx[2], a3, a4);		\
		return 0;							\
	}									\
	SEC("kprobe")								\
	int event##__kprobe(struct pt_regs *ctx)				\
	{									\
		event##_body(false, PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx),	\
			     PT_REGS_PARM3(ctx), PT_REGS_PARM4(ctx),		\
			     PT_REGS_PARM5(ctx));				\
		return 0;							\
	}

#define FEXIT(event, suffix)							\
	SEC("fexit")								\
	int event##__fexit##suffix(u64 *ctx)					\
	{									\
		u64 ret = 0;							\
										\
		bpf_get_func_ret(ctx, &ret);					\
		event##_body(ret);						\
		return 0;							\
	}

/* The arguments that a body does not use are not even loaded. */
#define ENTRY_BODY(event)							\
	static __always_inline void event##_body(const bool typed, u64 a0, u64 a1, u64 a2, u64 a3)

#define KPROBE(event)								\
	SEC("kprobe")								\
	int event##__kprobe(struct pt_regs *ctx)				\
	{									\
		event##_body(false, PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx),	\
			     PT_REGS_PARM3(ctx), PT_REGS_PARM4(ctx));		\
		return 0;							\
	}

#define ENTRY_BODY_5(event)							\
	static __always_inline void event##_body(const bool typed, u64 a0, u64 a1, u64 a2,	\
						 u64 a3, u64 a4)

#define ENTRY_PROGRAMS(event)							\
	FENTRY(event, )								\
	KPROBE(event)

#define EXIT_BODY(event)							\
	static __always_inline void event##_body(u64 ret)

#define EXIT_PROGRAMS(event)							\
	FEXIT(event, )								\
	SEC("kretprobe")							\
	int event##__kretprobe(struct pt_regs *ctx)				\
	{									\
		event##_body(PT_REGS_RC(ctx));					\
		return 0;							\
	}

#endif
