// SPDX-License-Identifier: GPL-2.0-only
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/names.h"

struct names {
	const struct btf *btf;
	uint32_t mask;		/* slots are a power of two, at most half of them used */
	uint32_t slot[];	/* type ids; 0: free */
};

/* FNV-1a (the authors' reference: 32-bit offset basis and prime). */
static uint32_t hash(const char *s)
{
	uint32_t h = 2166136261U;

	while (*s)
		h = (h ^ (unsigned char)*s++) * 16777619U;
	return h ^ h >> 16;
}

struct names *names_make(const struct btf *btf)
{
	uint32_t n = btf__type_cnt(btf), size = 16, id, i;
	struct names *names;

	while (size / 2 < n)
		size *= 2;
	names = calloc(1, sizeof(*names) + size * sizeof(names->slot[0]));
	if (!names)
		return NULL;
	names->btf = btf;
	names->mask = size - 1;
	for (id = 1; id < n; id++) {
		const char *name = btf__name_by_offset(btf, btf__type_by_id(btf, id)->name_off);

		if (!name || !*name)
			continue;
		for (i = hash(name); names->slot[i & names->mask]; i++)
			;
		names->slot[i & names->mask] = id;
	}
	return names;
}

void names_free(struct names *names)
{
	free(names);
}

int names_find(const struct names *names, const char *name, unsigned int kind)
{
	const struct btf_type *t;
	uint32_t i, id;

	/* Ids went in from low to high: the first one that is found is the lowest. */
	for (i = hash(name); (id = names->slot[i & names->mask]); i++) {
		t = btf__type_by_id(names->btf, id);
		if (btf_kind(t) == kind &&
		    !strcmp(btf__name_by_offset(names->btf, t->name_off), name))
			return id;
	}
	return 0;
}

/*
 * The type of a member, also within unnamed members; 0: there is none. *offset: the
 * bytes before it are added.
 */
static int member_type(const struct btf *btf, int id, const char *member, int len,
		       uint32_t *offset)
{
	const struct btf_type *t = btf__type_by_id(btf, id);
	const struct btf_member *m;
	int i, type;

	while (t && (btf_is_mod(t) || btf_is_typedef(t)))
		t = btf__type_by_id(btf, t->type);
	if (!t || !btf_is_composite(t))
		return 0;
	m = btf_members(t);
	for (i = 0; i < btf_vlen(t); i++, m++) {
		const char *name = btf__name_by_offset(btf, m->name_off);

		if ((int)strlen(name) == len && !memcmp(name, member, len))
			type = m->type;
		else
			type = *name ? 0 : member_type(btf, m->type, member, len, offset);
		if (!type)
			continue;
		*offset += btf_member_bit_offset(t, i) / 8;
		return type;
	}
	return 0;
}

bool names_member(const struct names *names, const char *what, uint32_t *offset)
{
	int len = strcspn(what, "."), id;
	char name[64];

	*offset = 0;
	snprintf(name, sizeof(name), "%.*s", len, what);
	id = names_find(names, name, BTF_KIND_STRUCT);
	while (id > 0 && what[len]) {
		what += len + 1;
		len = strcspn(what, ".");
		id = member_type(names->btf, id, what, len, offset);
	}
	if (id <= 0)
		*offset = 0;
	return id > 0;
}

uint32_t names_value(const struct names *names, const char *type, const char *value)
{
	int id = names_find(names, type, BTF_KIND_ENUM), i;
	const struct btf_type *t = btf__type_by_id(names->btf, id);

	for (i = 0; id && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(names->btf, btf_enum(t)[i].name_off), value))
			return btf_enum(t)[i].val;
	return 0;
}
