// SPDX-License-Identifier: GPL-2.0-only
/* Finding vm_operations_structs in the memory of the running kernel. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bpf/memory.h"
#include "data/err.h"
#include "memory.skel.h"
#include "session/audit.h"
#include "session/kallsyms.h"
#include "session/plan.h"

#define STRUCT	"vm_operations_struct"

/* A member of the structure; its place is counted in words. */
struct member {
	const char *name;
	uint32_t word;
	uint32_t proto;			/* BTF's type of the function; 0: it points to data */
	int method;			/* enum vm_method, or -1 */
};

/* A function that has the type of some members. */
struct function {
	const char *name, *module;
	uint32_t members;		/* bit by bit */
};

/* BTF of the kernel (module NULL) or of a module. */
struct part {
	const char *module;
	struct btf *btf;		/* NULL: a module without any */
	uint32_t first;			/* type of its own */
};

struct auditor {
	struct audit *audit;
	struct symbols symbols;
	struct memory *skel;
	struct part *part;
	size_t parts;
	struct member member[MEMORY_WORDS];
	size_t members;
	uint32_t bytes;
	struct function *function;
	size_t functions;
	size_t at[MEMORY_PIECES];	/* what is read next, as indices of symbols.sym */
	size_t pieces;
	char *reason;
	size_t reason_size;
};

/* What an object turned out to be. */
enum verdict { NOT_OPS, OPS, OPS_BY_NAME, VERDICT_ERROR };

static enum audit_result unavailable(struct auditor *t, const char *reason)
{
	snprintf(t->reason, t->reason_size, "%s", reason);
	return AUDIT_UNAVAILABLE;
}

static enum audit_result no_memory(void)
{
	err("audit", "out of memory");
	return AUDIT_ERROR;
}

/* ---- types ---- */

static const struct btf_type *plain_type(const struct btf *btf, uint32_t *id)
{
	const struct btf_type *t = btf__type_by_id(btf, *id);

	while (t && (btf_is_mod(t) || btf_is_typedef(t))) {
		*id = t->type;
		t = btf__type_by_id(btf, *id);
	}
	return t;
}

/*
 * Do two types say the same? Structures by their names: a module's BTF may hold
 * the kernel's types once more.
 */
static bool same_type(const struct btf *ba, uint32_t a, const struct btf *bb, uint32_t b)
{
	const struct btf_type *ta = plain_type(ba, &a), *tb = plain_type(bb, &b);

	if (!a || !b)
		return a == b;
	if (!ta || !tb)
		return false;
	if (btf_is_ptr(ta) && btf_is_ptr(tb))
		return same_type(ba, ta->type, bb, tb->type);
	if (btf_is_fwd(ta) || btf_is_fwd(tb)) {
		if (!btf_is_fwd(ta) && !btf_is_composite(ta))
			return false;
		if (!btf_is_fwd(tb) && !btf_is_composite(tb))
			return false;
	} else if (btf_kind(ta) != btf_kind(tb) || btf_is_func_proto(ta)) {
		return false;
	}
	return !strcmp(btf__name_by_offset(ba, ta->name_off),
		       btf__name_by_offset(bb, tb->name_off));
}

static bool same_proto(const struct btf *ba, uint32_t a, const struct btf *bb, uint32_t b)
{
	const struct btf_type *ta = btf__type_by_id(ba, a), *tb = btf__type_by_id(bb, b);
	int i;

	if (!ta || !tb || !btf_is_func_proto(ta) || !btf_is_func_proto(tb) ||
	    btf_vlen(ta) != btf_vlen(tb) || !same_type(ba, ta->type, bb, tb->type))
		return false;
	for (i = 0; i < btf_vlen(ta); i++)
		if (!same_type(ba, btf_params(ta)[i].type, bb, btf_params(tb)[i].type))
			return false;
	return true;
}

static int method_of(const char *member)
{
	int i;

	for (i = 0; i < VM_METHOD_MAX; i++)
		if (!strcmp(vm_method_names[i], member))
			return i;
	return -1;
}

static enum audit_result read_members(struct auditor *t)
{
	const struct btf *btf = t->part[0].btf;
	int id = btf__find_by_name_kind(btf, STRUCT, BTF_KIND_STRUCT), i;
	const struct btf_type *s = id > 0 ? btf__type_by_id(btf, id) : NULL;
	uint32_t has = 0;

	if (!s)
		return unavailable(t, "no " STRUCT " in this kernel's BTF");
	t->bytes = s->size;
	if (t->bytes % sizeof(uint64_t) || t->bytes > MEMORY_WORDS * sizeof(uint64_t))
		return unavailable(t, STRUCT " has an unknown layout here");
	for (i = 0; i < btf_vlen(s); i++) {
		const struct btf_member *bm = &btf_members(s)[i];
		struct member *m = &t->member[t->members];
		uint32_t to = bm->type;
		const struct btf_type *ptr = plain_type(btf, &to), *pointee;

		/* Distributions reserve room by members that are plain numbers. */
		if (!ptr || !btf_is_ptr(ptr) || bm->offset % 64)
			continue;
		to = ptr->type;
		pointee = plain_type(btf, &to);
		*m = (struct member){
			.name	= btf__name_by_offset(btf, bm->name_off),
			.word	= bm->offset / 64,
			.proto	= pointee && btf_is_func_proto(pointee) ? to : 0,
		};
		m->method = m->proto ? method_of(m->name) : -1;
		if (m->method >= 0)
			has |= 1u << m->method;
		t->members++;
	}
	if (has != (1u << VM_METHOD_MAX) - 1)
		return unavailable(t, STRUCT " lacks a member here that decides");
	t->audit->vma_lock = false;
	for (id = 1; id < (int)btf__type_cnt(btf) && !t->audit->vma_lock; id++) {
		const struct btf_type *e = btf__type_by_id(btf, id);

		if (!btf_is_enum(e) ||
		    strcmp(btf__name_by_offset(btf, e->name_off), "fault_flag"))
			continue;
		for (i = 0; i < btf_vlen(e); i++)
			t->audit->vma_lock |= !strcmp(btf__name_by_offset(btf,
					btf_enum(e)[i].name_off), "FAULT_FLAG_VMA_LOCK");
	}
	return AUDIT_OK;
}

/* ---- functions ---- */

static int same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static int by_module_and_name(const void *pa, const void *pb)
{
	const struct function *a = pa, *b = pb;

	return same_text(a->module, b->module) ?: strcmp(a->name, b->name);
}

/* Take the functions of one BTF whose types are those of members. -1: no memory. */
static int collect_functions(struct auditor *t, const struct part *p)
{
	const struct btf *base = t->part[0].btf;
	uint32_t id, n = btf__type_cnt(p->btf);
	size_t i;

	for (id = p->first; id < n; id++) {
		const struct btf_type *f = btf__type_by_id(p->btf, id);
		struct function found = { .module = p->module }, *grown;

		if (!btf_is_func(f))
			continue;
		for (i = 0; i < t->members; i++)
			if (t->member[i].proto &&
			    same_proto(base, t->member[i].proto, p->btf, f->type))
				found.members |= 1u << i;
		if (!found.members)
			continue;
		if (!(t->functions & (t->functions + 1))) {
			grown = realloc(t->function, (2 * t->functions + 2) * sizeof(*grown));
			if (!grown)
				return -1;
			t->function = grown;
		}
		found.name = btf__name_by_offset(p->btf, f->name_off);
		t->function[t->functions++] = found;
	}
	qsort(t->function, t->functions, sizeof(*t->function), by_module_and_name);
	return 0;
}

/* BTF of a symbol's module, read when it is first asked for. NULL: no memory. */
static const struct part *part_of(struct auditor *t, const char *module)
{
	struct part *grown, *p;
	size_t i;

	for (i = 0; i < t->parts; i++)
		if (!same_text(t->part[i].module, module))
			return &t->part[i];
	grown = realloc(t->part, (t->parts + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	t->part = grown;
	p = &grown[t->parts++];
	*p = (struct part){ .module = module };
	p->first = btf__type_cnt(t->part[0].btf);
	p->btf = btf__load_module_btf(module, t->part[0].btf);
	return p->btf && collect_functions(t, p) ? NULL : p;
}

/* Members whose type the function has; 0: none. */
static uint32_t members_of(const struct auditor *t, const struct symbol *s)
{
	struct function key = { s->name, s->module }, *f = NULL;
	uint32_t members = 0;

	if (t->functions)
		f = bsearch(&key, t->function, t->functions, sizeof(key), by_module_and_name);
	/* Several functions of one name: which of them this is does not show. */
	while (f && f > t->function && !by_module_and_name(f - 1, &key))
		f--;
	for (; f && f < t->function + t->functions && !by_module_and_name(f, &key); f++)
		members |= f->members;
	return members;
}

/* Does BTF tell the type of this very function? Of several of a name it has one or none. */
static bool type_known(const struct auditor *t, const struct part *p, const struct symbol *s)
{
	uint32_t id, n = p->btf ? btf__type_cnt(p->btf) : 0;
	size_t i, same = 0;

	for (i = 0; i < t->symbols.n; i++)
		same += strchr("tT", t->symbols.sym[i].type) &&
			!strcmp(t->symbols.sym[i].name, s->name);
	for (id = p->first; same == 1 && id < n; id++) {
		const struct btf_type *f = btf__type_by_id(p->btf, id);

		if (btf_is_func(f) && !strcmp(btf__name_by_offset(p->btf, f->name_off), s->name))
			return true;
	}
	return false;
}

/* ---- objects ---- */

static bool is_text(const struct symbol *s)
{
	return strchr("tTwW", s->type);
}

static bool is_data(const struct symbol *s)
{
	return s->address && strchr("dDrRbBvV", s->type);
}

/* "shm_vm_ops", "vm_ops.12": a name that asks for an answer, whatever it is. */
static bool named_so(const char *name)
{
	size_t len = strcspn(name, ".");

	return (len >= 6 && !strncmp(name + len - 6, "vm_ops", 6)) ||
	       (len >= 5 && !strncmp(name + len - 5, "vmops", 5));
}

/* The function at an address under the name that has a member's type, else any name. */
static const struct symbol *function_at(const struct auditor *t, uint64_t address, size_t member,
					bool *fits)
{
	const struct symbol *s = symbols_at(&t->symbols, address), *any = NULL;
	const struct symbol *end = t->symbols.sym + t->symbols.n;

	*fits = false;
	for (; s && s < end && s->address == address; s++) {
		if (!is_text(s))
			continue;
		any = any ?: s;
		if (members_of(t, s) & 1u << member) {
			*fits = true;
			return s;
		}
	}
	return any;
}

static enum verdict judge(struct auditor *t, const struct symbol *object, const __u64 *word,
			  char *why, size_t size)
{
	const struct symbol *f;
	size_t i, fit = 0, others = 0;
	bool fits;

	/* Cheap first: nearly all symbols are something else. */
	for (i = 0; i < t->members; i++) {
		const struct member *m = &t->member[i];

		if (!word[m->word])
			continue;
		f = m->proto ? function_at(t, word[m->word], i, &fits) : NULL;
		if (m->proto && !f) {
			snprintf(why, size, "where ->%s would be there is no function", m->name);
			return NOT_OPS;
		}
		if (!m->proto)
			continue;
		if (f->module && !part_of(t, f->module))
			return VERDICT_ERROR;
	}
	for (i = 0; i < t->members; i++) {
		if (!t->member[i].proto || !word[t->member[i].word])
			continue;
		function_at(t, word[t->member[i].word], i, &fits);
		fit += fits;
		others += !fits;
	}
	if (!fit && !named_so(object->name))
		return NOT_OPS;
	for (i = 0; i < t->members && others; i++) {
		const struct member *m = &t->member[i];
		const struct part *p;

		f = m->proto && word[m->word] ? function_at(t, word[m->word], i, &fits) : NULL;
		if (!f || fits)
			continue;
		p = part_of(t, f->module);
		if (!p)
			return VERDICT_ERROR;
		if (type_known(t, p, f)) {
			snprintf(why, size, "%s() has not the type of ->%s", f->name, m->name);
			return NOT_OPS;
		}
	}
	if (fit)
		return OPS;
	if (others)
		return OPS_BY_NAME;
	snprintf(why, size, "all members are NULL");
	return NOT_OPS;
}

static enum audit_result rule_out(struct auditor *t, const struct symbol *s, const char *why)
{
	if (!named_so(s->name))
		return AUDIT_OK;
	return audit_rule_out(t->audit, s->name, s->module, why) ? no_memory() : AUDIT_OK;
}

static enum audit_result take_object(struct auditor *t, const struct symbol *s,
				     const __u64 *word)
{
	const char *method[VM_METHOD_MAX] = { NULL };
	char why[160] = "";
	enum verdict verdict = judge(t, s, word, why, sizeof(why));
	struct vm_ops *o;
	bool fits;
	size_t i;

	if (verdict == VERDICT_ERROR)
		return no_memory();
	if (verdict == NOT_OPS)
		return rule_out(t, s, why);
	for (i = 0; i < t->members; i++) {
		const struct member *m = &t->member[i];

		if (m->method >= 0 && word[m->word])
			method[m->method] = function_at(t, word[m->word], i, &fits)->name;
	}
	o = audit_add(t->audit, s->name, s->module, method);
	if (!o)
		return no_memory();
	o->by_name = verdict == OPS_BY_NAME;
	return AUDIT_OK;
}

/* Read the symbols that are waiting, and judge them. */
static enum audit_result read_waiting(struct auditor *t)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	struct memory__bss *bss = t->skel->bss;
	enum audit_result e = AUDIT_OK;
	size_t i;

	for (i = 0; i < MEMORY_PIECES; i++)
		bss->address[i] = i < t->pieces ? t->symbols.sym[t->at[i]].address : 0;
	if (bpf_prog_test_run_opts(bpf_program__fd(t->skel->progs.read_pieces), &run) ||
	    run.retval) {
		err("audit", "the program that reads memory does not run: %s", strerror(errno));
		return AUDIT_ERROR;
	}
	for (i = 0; i < t->pieces && !e; i++) {
		const struct symbol *s = &t->symbols.sym[t->at[i]];

		t->audit->looked_at++;
		t->audit->unreadable += bss->failed[i];
		e = bss->failed[i] ? rule_out(t, s, "its memory cannot be read") :
				     take_object(t, s, bss->word[i]);
	}
	t->pieces = 0;
	return e;
}

static enum audit_result look_at_all(struct auditor *t)
{
	const struct symbol *sym = t->symbols.sym;
	enum audit_result e;
	size_t i, next;
	uint64_t room;
	char why[96];

	for (i = 0; i < t->symbols.n; i++) {
		if (!is_data(&sym[i]) || (t->pieces && i &&
		    sym[t->at[t->pieces - 1]].address == sym[i].address))
			continue;
		for (next = i + 1; next < t->symbols.n && sym[next].address == sym[i].address;)
			next++;
		room = next < t->symbols.n ? sym[next].address - sym[i].address : UINT64_MAX;
		if (room < t->bytes) {
			snprintf(why, sizeof(why), "%u bytes up to the next symbol, one has %u",
				 (unsigned int)room, t->bytes);
			e = rule_out(t, &sym[i], why);
			if (e)
				return e;
			continue;
		}
		t->at[t->pieces++] = i;
		if (t->pieces == MEMORY_PIECES) {
			e = read_waiting(t);
			if (e)
				return e;
		}
	}
	return t->pieces ? read_waiting(t) : AUDIT_OK;
}

/* ---- what it takes ---- */

static enum audit_result read_symbols(struct auditor *t)
{
	size_t i, data = 0, hidden = 0;

	if (symbols_read(&t->symbols, KALLSYMS)) {
		if (errno == ENOMEM)
			return no_memory();
		return unavailable(t, "no symbols: " KALLSYMS " cannot be read");
	}
	for (i = 0; i < t->symbols.n; i++) {
		hidden += !t->symbols.sym[i].address;
		data += is_data(&t->symbols.sym[i]);
	}
	if (hidden * 2 > t->symbols.n)
		return unavailable(t, "addresses of symbols are hidden: "
				   "needs CAP_SYSLOG, and kernel.kptr_restrict below 2");
	/* Without it there are the functions, and a few exceptions. */
	if (data < 1000)
		return unavailable(t, "no symbols of data: built without CONFIG_KALLSYMS_ALL");
	return AUDIT_OK;
}

static enum audit_result load_reader(struct auditor *t)
{
	int e;

	t->skel = memory__open();
	if (!t->skel) {
		err("audit", "the BPF object does not open: %s", strerror(errno));
		return AUDIT_ERROR;
	}
	t->skel->rodata->piece_bytes = t->bytes;
	e = -memory__load(t->skel);
	if (!e)
		return AUDIT_OK;
	if (plan_locked_down())
		return unavailable(t, "lockdown forbids reading memory");
	if (e == EPERM || e == EACCES)
		return unavailable(t, geteuid() ?
				   "no permission: BPF needs root, or CAP_BPF and CAP_PERFMON" :
				   "no permission: BPF is refused here even to root");
	snprintf(t->reason, t->reason_size, "the program that reads memory does not load: %s",
		 strerror(e));
	return AUDIT_UNAVAILABLE;
}

static enum audit_result read_btf(struct auditor *t)
{
	t->part = calloc(1, sizeof(*t->part));
	if (!t->part)
		return no_memory();
	t->parts = 1;
	t->part[0].first = 1;
	t->part[0].btf = btf__parse(BTF_PATH, NULL);
	if (!t->part[0].btf)
		return unavailable(t, errno == ENOENT ? "no BTF: " BTF_PATH " does not exist" :
							"no BTF: " BTF_PATH " cannot be read");
	return AUDIT_OK;
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

enum audit_result audit_kernel(struct audit *a, char *reason, size_t size)
{
	struct auditor *t = calloc(1, sizeof(*t));
	struct utsname uts;
	enum audit_result e;
	size_t i;

	*a = (struct audit){ 0 };
	if (!t)
		return no_memory();
	t->audit = a;
	t->reason = reason;
	t->reason_size = size;
	libbpf_set_print(quiet);
	if (!uname(&uts))
		snprintf(a->release, sizeof(a->release), "%s", uts.release);

	/* The permission first: it is the reason that helps. */
	e = read_btf(t) ?: read_members(t) ?: load_reader(t) ?: read_symbols(t);
	if (!e && collect_functions(t, &t->part[0]))
		e = no_memory();
	if (!e)
		e = look_at_all(t);
	audit_sort(a);

	memory__destroy(t->skel);
	for (i = t->parts; i-- > 0;)	/* modules' BTF leans on the kernel's */
		btf__free(t->part[i].btf);
	free(t->part);
	free(t->function);
	symbols_free(&t->symbols);
	free(t);
	return e;
}
