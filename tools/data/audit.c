// SPDX-License-Identifier: GPL-2.0-only
/* The vm_operations_structs of a kernel. */
#include <stdlib.h>
#include <string.h>

#include "data/audit.h"

#define NAME(id, name)	name,
const char *const vm_method_names[VM_METHOD_MAX] = { VM_METHODS(NAME) };
const char *const vm_class_names[VM_CLASS_MAX] = { VM_CLASSES(NAME) };

static enum vm_class classify(const char *name, const char *const method[VM_METHOD_MAX])
{
	/* Faults there go to hugetlb_fault(); ->fault is a BUG() (mm/hugetlb.c). */
	if (!strcmp(name, "hugetlb_vm_ops"))
		return CLASS_HUGETLB;
	if (method[VM_MAP_PAGES])
		return CLASS_BATCHED;
	if (method[VM_FAULT])
		return CLASS_SINGLE;
	return method[VM_PAGE_MKWRITE] || method[VM_PFN_MKWRITE] ? CLASS_NOTIFIED : CLASS_NO_FAULT;
}

/* A copy; NULL for NULL. *failed: no memory. */
static char *copy(const char *text, bool *failed)
{
	char *s = text ? strdup(text) : NULL;

	*failed |= text && !s;
	return s;
}

static void ops_free(struct vm_ops *o)
{
	size_t i;

	free(o->name);
	free(o->module);
	for (i = 0; i < VM_METHOD_MAX; i++)
		free(o->method[i]);
}

static void not_free(struct vm_not_ops *o)
{
	free(o->name);
	free(o->module);
	free(o->reason);
}

struct vm_ops *audit_add(struct audit *a, const char *name, const char *module,
			 const char *const method[VM_METHOD_MAX])
{
	struct vm_ops *o, *grown = realloc(a->ops, (a->n + 1) * sizeof(*grown));
	bool failed = false;
	size_t i;

	if (!grown)
		return NULL;
	a->ops = grown;
	o = &grown[a->n];
	*o = (struct vm_ops){
		.name	= copy(name, &failed),
		.module	= copy(module, &failed),
		.class	= classify(name, method),
	};
	for (i = 0; i < VM_METHOD_MAX; i++)
		o->method[i] = copy(method[i], &failed);
	if (failed) {
		ops_free(o);
		return NULL;
	}
	a->n++;
	return o;
}

int audit_rule_out(struct audit *a, const char *name, const char *module, const char *reason)
{
	struct vm_not_ops *o, *grown = realloc(a->not, (a->nots + 1) * sizeof(*grown));
	bool failed = false;

	if (!grown)
		return -1;
	a->not = grown;
	o = &grown[a->nots];
	*o = (struct vm_not_ops){ copy(name, &failed), copy(module, &failed),
				  copy(reason, &failed) };
	if (failed) {
		not_free(o);
		return -1;
	}
	a->nots++;
	return 0;
}

static int by_class(const void *pa, const void *pb)
{
	const struct vm_ops *a = pa, *b = pb;

	if (a->class != b->class)
		return a->class < b->class ? -1 : 1;
	return strcmp(a->module ?: "", b->module ?: "") ?: strcmp(a->name, b->name);
}

void audit_sort(struct audit *a)
{
	if (a->n)
		qsort(a->ops, a->n, sizeof(*a->ops), by_class);
}

size_t audit_count(const struct audit *a, enum vm_class class)
{
	size_t i, n = 0;

	for (i = 0; i < a->n; i++)
		n += a->ops[i].class == class;
	return n;
}

void audit_free(struct audit *a)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		ops_free(&a->ops[i]);
	for (i = 0; i < a->nots; i++)
		not_free(&a->not[i]);
	free(a->ops);
	free(a->not);
	*a = (struct audit){ 0 };
}
