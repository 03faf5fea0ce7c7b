// SPDX-License-Identifier: GPL-2.0-only
#include <stdint.h>
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
