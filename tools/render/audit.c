// SPDX-License-Identifier: GPL-2.0-only
/* The vm_operations_structs of a kernel, those that can never batch first. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#include "render/audit.h"

#define AUDIT_SCHEMA	1

/* What a class means on this kernel. */
static const char *meaning(enum vm_class class, bool vma_lock)
{
	switch (class) {
	case CLASS_SINGLE:
		return vma_lock ? "No ->map_pages: no fault-around, and a fault is refused under the "
				  "per-VMA lock, then taken again under mmap_lock" :
				  "No ->map_pages: no fault-around";
	case CLASS_NOTIFIED:
		return vma_lock ? "No ->map_pages and no ->fault: a write that ->pfn_mkwrite or "
				  "->page_mkwrite is asked about is refused under the per-VMA lock" :
				  "No ->map_pages and no ->fault, but asked about writes";
	case CLASS_BATCHED:
		return "->map_pages: fault-around";
	case CLASS_HUGETLB:
		return "Huge pages: faults go to hugetlb_fault(), ->fault is never called";
	default:
		return "No ->fault: populated by mmap(), or anonymous";
	}
}

static void full_name(char *out, size_t size, const char *name, const char *module)
{
	snprintf(out, size, module ? "%s [%s]" : "%s", name, module);
}

static void print_class(FILE *f, const struct audit *a, const struct view *view,
			enum vm_class class)
{
	struct table t = { .columns = 1 + VM_METHOD_MAX, .left = 1 + VM_METHOD_MAX, .keep = 1 };
	char name[160], title[200];
	size_t i, m;

	snprintf(title, sizeof(title), "%s (%zu)", meaning(class, a->vma_lock),
		 audit_count(a, class));
	fputc('\n', f);
	text_wrap(f, view, class <= CLASS_NOTIFIED ? "1" : NULL, 0, title);
	table_cell(&t, "object");
	for (m = 0; m < VM_METHOD_MAX; m++)
		table_cell(&t, "%s", vm_method_names[m]);
	for (i = 0; i < a->n; i++) {
		const struct vm_ops *o = &a->ops[i];

		if (o->class != class)
			continue;
		full_name(name, sizeof(name), o->name, o->module);
		table_cell(&t, "%s%s", name, o->by_name ? " *" : "");
		for (m = 0; m < VM_METHOD_MAX; m++)
			table_cell(&t, "%s", o->method[m] ? "yes" : "-");
	}
	table_print(f, view, &t);
	table_free(&t);
}

static size_t named_only(const struct audit *a)
{
	size_t i, n = 0;

	for (i = 0; i < a->n; i++)
		n += a->ops[i].by_name;
	return n;
}

static size_t in_modules(const struct audit *a)
{
	size_t i, n = 0;

	for (i = 0; i < a->n; i++)
		n += a->ops[i].module != NULL;
	return n;
}

static int finish(FILE *f)
{
	errno = 0;
	if (fflush(f) || ferror(f))
		return errno ? -errno : -EIO;
	return 0;
}

int audit_text(FILE *f, const struct audit *a, const struct view *view)
{
	char line[400], name[160];
	size_t i;

	snprintf(line, sizeof(line), "%zu of %zu vm_operations_structs have ->fault and no "
		 "->map_pages: what they map is never populated in batches",
		 audit_count(a, CLASS_SINGLE), a->n);
	text_wrap(f, view, "1", 0, line);
	fprintf(f, "kernel %s, %zu in modules, %s\n", a->release, in_modules(a),
		a->vma_lock ? "faults are tried under the per-VMA lock" : "no per-VMA lock");
	for (i = 0; i < VM_CLASS_MAX; i++)
		if (audit_count(a, i))
			print_class(f, a, view, i);
	if (a->nots)
		fputs("\nNamed like one, and not taken for one\n", f);
	for (i = 0; i < a->nots; i++) {
		full_name(name, sizeof(name), a->not[i].name, a->not[i].module);
		fprintf(f, "%s: %s\n", name, a->not[i].reason);
	}
	fputc('\n', f);
	snprintf(line, sizeof(line), "trust: %zu symbols of data read, %zu not readable; %zu of "
		 "the objects told by name alone%s; not seen: modules that are not loaded, and "
		 "objects that a driver makes at run time", a->looked_at, a->unreadable,
		 named_only(a), named_only(a) ? " (*)" : "");
	text_wrap(f, view, NULL, 0, line);
	return finish(f);
}

/* ---- JSON ---- */

struct out {
	FILE *f;
	int error;
};

static void print_file(void *arg, const char *text, size_t len)
{
	struct out *o = arg;

	errno = 0;
	if (!o->error && fwrite(text, 1, len, o->f) != len)
		o->error = errno ? -errno : -EIO;
}

static void put_text(yajl_gen g, const char *text)
{
	if (text)
		yajl_gen_string(g, (const unsigned char *)text, strlen(text));
	else
		yajl_gen_null(g);
}

static void key_text(yajl_gen g, const char *key, const char *text)
{
	put_text(g, key);
	put_text(g, text);
}

static void key_number(yajl_gen g, const char *key, size_t n)
{
	put_text(g, key);
	yajl_gen_integer(g, n);
}

static void put_ops(yajl_gen g, const struct vm_ops *o)
{
	size_t m;

	yajl_gen_map_open(g);
	key_text(g, "name", o->name);
	key_text(g, "module", o->module);
	key_text(g, "class", vm_class_names[o->class]);
	put_text(g, "methods");
	yajl_gen_map_open(g);
	for (m = 0; m < VM_METHOD_MAX; m++)
		key_text(g, vm_method_names[m], o->method[m]);
	yajl_gen_map_close(g);
	put_text(g, "by_name");
	yajl_gen_bool(g, o->by_name);
	yajl_gen_map_close(g);
}

int audit_json(FILE *f, const struct audit *a)
{
	struct out out = { .f = f };
	yajl_gen g = yajl_gen_alloc(NULL);
	size_t i;

	if (!g)
		return -ENOMEM;
	yajl_gen_config(g, yajl_gen_print_callback, print_file, &out);
	yajl_gen_config(g, yajl_gen_beautify, 1);
	yajl_gen_map_open(g);
	key_number(g, "schema", AUDIT_SCHEMA);
	key_text(g, "release", a->release);
	put_text(g, "vma_lock");
	yajl_gen_bool(g, a->vma_lock);
	put_text(g, "objects");
	yajl_gen_array_open(g);
	for (i = 0; i < a->n; i++)
		put_ops(g, &a->ops[i]);
	yajl_gen_array_close(g);
	put_text(g, "ruled_out");
	yajl_gen_array_open(g);
	for (i = 0; i < a->nots; i++) {
		yajl_gen_map_open(g);
		key_text(g, "name", a->not[i].name);
		key_text(g, "module", a->not[i].module);
		key_text(g, "reason", a->not[i].reason);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
	put_text(g, "classes");
	yajl_gen_map_open(g);
	for (i = 0; i < VM_CLASS_MAX; i++)
		key_number(g, vm_class_names[i], audit_count(a, i));
	yajl_gen_map_close(g);
	key_number(g, "symbols_read", a->looked_at);
	key_number(g, "symbols_unreadable", a->unreadable);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	return out.error ?: finish(f);
}
