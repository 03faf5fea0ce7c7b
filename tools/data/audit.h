/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_AUDIT_H
#define MMSCOPE_AUDIT_H

#include <stdbool.h>
#include <stddef.h>

/* The methods that decide how a mapping is populated: X(id, member). */
#define VM_METHODS(X)				\
	X(FAULT,	"fault")		\
	X(MAP_PAGES,	"map_pages")		\
	X(HUGE_FAULT,	"huge_fault")		\
	X(PAGE_MKWRITE,	"page_mkwrite")		\
	X(PFN_MKWRITE,	"pfn_mkwrite")		\
	X(ACCESS,	"access")

enum vm_method {
#define METHOD_ID(mid, mname)	VM_##mid,
	VM_METHODS(METHOD_ID)
#undef METHOD_ID
	VM_METHOD_MAX
};

extern const char *const vm_method_names[VM_METHOD_MAX];

/*
 * What follows from them, worst first: X(id, name). vmf_can_call_fault() of
 * mm/memory.c (since 6.7) refuses a fault under the per-VMA lock that would call
 * ->fault, ->page_mkwrite or ->pfn_mkwrite unless there is a ->map_pages.
 */
#define VM_CLASSES(X)				\
	X(SINGLE,	"no_fault_around")	\
	X(NOTIFIED,	"write_refused")	\
	X(BATCHED,	"fault_around")		\
	X(HUGETLB,	"hugetlb")		\
	X(NO_FAULT,	"no_fault")

enum vm_class {
#define CLASS_ID(cid, cname)	CLASS_##cid,
	VM_CLASSES(CLASS_ID)
#undef CLASS_ID
	VM_CLASS_MAX
};

extern const char *const vm_class_names[VM_CLASS_MAX];

struct vm_ops {
	char *name;			/* symbol */
	char *module;			/* NULL: the kernel itself */
	char *method[VM_METHOD_MAX];	/* function; NULL: it has none */
	enum vm_class class;
	bool by_name;			/* told by its name alone: BTF has none of its functions */
};

/* A symbol that is named as if it were one, and is none. */
struct vm_not_ops {
	char *name, *module, *reason;
};

struct audit {
	char release[65];
	bool vma_lock;			/* this kernel tries faults under the per-VMA lock */
	struct vm_ops *ops;
	size_t n;
	struct vm_not_ops *not;
	size_t nots;
	size_t looked_at, unreadable;	/* symbols */
};

/*
 * Add one, with its class; what it points to is copied. NULL: no memory. The
 * entry is valid until the next is added.
 */
struct vm_ops *audit_add(struct audit *a, const char *name, const char *module,
			 const char *const method[VM_METHOD_MAX]);
/* Add one that was ruled out. -1: no memory. */
int audit_rule_out(struct audit *a, const char *name, const char *module, const char *reason);
/* By class, then those of the kernel itself before those of modules, then by name. */
void audit_sort(struct audit *a);
size_t audit_count(const struct audit *a, enum vm_class class);
void audit_free(struct audit *a);	/* what it points to */

#endif
