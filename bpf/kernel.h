/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_KERNEL_H
#define MMSCOPE_KERNEL_H

/*
 * Kernel types, written by hand: only what the programs read, relocated by
 * name against the running kernel's BTF. A name with ___old is a layout that
 * later releases changed; the comment says when.
 */
#include <linux/bpf.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0

/* The register frame of a kprobe: an ABI, not relocated (asm/ptrace.h). */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
	unsigned long orig_rax, rip, cs, eflags, rsp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31], sp, pc, pstate;
};
struct pt_regs;
#else
#error "no register layout for this machine"
#endif

/* Does the frame say that user space was running? */
#if defined(__TARGET_ARCH_x86)
#define USER_REGS(regs)		(READ(regs, cs) & 3)
/* ... and came into the kernel by an exception: the number of a system call is there else. */
#define EXCEPTION_REGS(regs)	((s64)(regs)->orig_rax < 0)
#else
#define USER_REGS(regs)		(!(READ((struct user_pt_regs *)(regs), pstate) & 0xf))
#define EXCEPTION_REGS(regs)	false	/* not told: no fault is known to have waited */
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct;

/* Before 6.2: what a thread has not added to its mm yet. */
struct task_rss_stat {
	int count[4];
};

struct bpf_local_storage;

struct task_struct {
	void *stack;
	unsigned int flags;
	char comm[16];
	int pid;
	int tgid;
	struct task_struct *group_leader;
	u64 start_time;
	unsigned long min_flt, maj_flt;
	struct pid *thread_pid;
	struct mm_struct *mm;
	u64 self_exec_id;	/* so often it has become another program; 64 bits since 5.7 */
	struct task_rss_stat rss_stat;
	struct bpf_local_storage *bpf_storage;	/* since 5.11 */
};

typedef struct {
	int counter;
} atomic_t;

struct percpu_counter {
	s64 count;
	s32 *counters;
};

/* Before 6.2: rss_stat is of this type, a word for each. */
struct mm_rss_stat {
	s64 count[4];
};

typedef struct seqcount {
	unsigned int sequence;
} seqcount_t;

struct mm_struct {
	atomic_t mm_users;
	seqcount_t mm_lock_seq;		/* a number until 6.12; before 6.4 none */
	struct task_struct *owner;	/* with memory cgroups only */
	struct percpu_counter rss_stat[4];
};

struct mm_struct___old {
	struct mm_rss_stat rss_stat;
};

struct zap_details {
	bool skip_cows;
};

/* Before 7.1 the other way round. */
struct zap_details___old {
	bool even_cows;
};

struct bpf_iter__task {
	struct task_struct *task;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct super_block {
	unsigned int s_dev;
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	struct super_block *i_sb;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
	void *private_data;
};

struct userfaultfd_ctx;

struct vm_userfaultfd_ctx {
	struct userfaultfd_ctx *ctx;
};

struct vm_operations_struct {
	void *fault;
	void *map_pages;
};

struct anon_vma;

struct mm_struct;

typedef struct refcount_struct {
	atomic_t refs;
} refcount_t;

struct vm_area_struct {
	refcount_t vm_refcnt;	/* since 6.15 */
	unsigned long vm_start;
	unsigned long vm_end;
	struct mm_struct *vm_mm;
	unsigned long vm_flags;
	unsigned int vm_lock_seq;	/* since 6.4 */
	struct anon_vma *anon_vma;
	const struct vm_operations_struct *vm_ops;
	struct file *vm_file;
	struct vm_userfaultfd_ctx vm_userfaultfd_ctx;
};

/* Since 7.0. */
struct vma_exclude_readers_state {
	struct vm_area_struct *vma;
	bool detaching;
};

typedef struct {
	unsigned long pte;
} pte_t;

struct vm_fault {
	struct vm_area_struct *vma;
	unsigned long pgoff;
	unsigned long address;
	pte_t orig_pte;
	pte_t *pte;
};

/* Since 6.18 the flags word is a struct (memdesc_flags_t). */
typedef struct {
	unsigned long f;
} memdesc_flags_t;

struct folio {
	memdesc_flags_t flags;
	atomic_t _mapcount;
	unsigned long _flags_1;
	atomic_t _large_mapcount;	/* since 6.10 */
	atomic_t _entire_mapcount;
};

/* Before 6.18: a plain word; before 6.6 the order had a byte of its own. */
struct folio___old {
	unsigned long flags;
	unsigned char _folio_order;
};

/* Since 6.17. */
struct mmap_action {
	struct {
		unsigned long start, size;
	} remap;
};

/* Before 6.18, where the programs follow a tail page to its head. */
struct page {
	unsigned long compound_head;
};

struct bpf_map {
	enum bpf_map_type map_type;
	u32 id;
	char name[16];
};

#pragma clang attribute pop

/* Its place in the flags word moved in 6.12 (16 before). */
enum pageflags {
	PG_head = 6,
};

enum scan_result {
	SCAN_SUCCEED = 1,
};

/* include/linux/mm_types.h: enum vm_fault_reason, the same in all releases. */
#define VM_FAULT_ERROR		0x73	/* OOM, SIGBUS, HWPOISON, HWPOISON_LARGE, SIGSEGV */
#define VM_FAULT_MAJOR		0x4
#define VM_FAULT_NOPAGE		0x100
#define VM_FAULT_RETRY		0x400
#define VM_FAULT_FALLBACK	0x800

/* include/linux/mm_types.h: enum fault_flag, the same in all releases. */
#define FAULT_FLAG_WRITE	0x1
#define FAULT_FLAG_TRIED	0x20
#define FAULT_FLAG_USER		0x40
#define FAULT_FLAG_UNSHARE	0x400
#define FAULT_FLAG_VMA_LOCK	0x1000	/* since 6.4 */

/* include/linux/mm.h: vm_flags. */
/*
 * Bits of a PTE: present, or PROT_NONE; special, of which the kernel keeps no count,
 * as the zero page and plain frames (arch pgtable headers).
 */
#if defined(__TARGET_ARCH_x86)
#define PTE_PRESENT		0x101
#define PTE_SPECIAL		0x200
#else
#define PTE_PRESENT		0x1
#define PTE_SPECIAL		(1ULL << 56)
#endif

#define PF_KTHREAD		0x200000

#define VM_SHARED		0x8
#define VM_GROWSDOWN		0x100
#define VM_PFNMAP		0x400
#define VM_IO			0x4000
#define VM_HUGETLB		0x400000

/* A PTE's frame, and whether it forbids writing (arch pgtable headers; 52 bits of address). */
#define PTE_FRAME		0x000ffffffffff000ULL
#if defined(__TARGET_ARCH_x86)
#define PTE_READ_ONLY(pte)	(!((pte) & 0x2))
#else
#define PTE_READ_ONLY(pte)	((pte) & 0x80)
#endif

#define S_IFMT			0170000
#define S_IFREG			0100000
#define TMPFS_MAGIC		0x01021994
#define GUEST_MEMFD_MAGIC	0x474d454d	/* seen on 7.2; older ones show no such memory */

#endif
