// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>

#include "data/run.h"

/* A hash table of texts, open addressing, at most half full. */
struct text_pool {
	char **slot;
	size_t slots, used;
	uint64_t seed;
};

struct recording *recording_new(void)
{
	return calloc(1, sizeof(struct recording));
}

void recording_free(struct recording *rec)
{
	size_t i;

	if (!rec)
		return;
	for (i = 0; rec->command && rec->command[i]; i++)
		free(rec->command[i]);
	for (i = 0; i < rec->runs; i++)
		run_free(rec->run[i]);
	for (i = 0; rec->pool && i < rec->pool->slots; i++)
		free(rec->pool->slot[i]);
	if (rec->pool)
		free(rec->pool->slot);
	free(rec->pool);
	free(rec->command);
	free(rec->run);
	free(rec);
}

int recording_add(struct recording *rec, struct run *run)
{
	struct run **list = rec->run;

	/* Full at every power of two. */
	if (!(rec->runs & (rec->runs - 1)))
		list = reallocarray(list, rec->runs ? 2 * rec->runs : 1, sizeof(*list));
	if (!list)
		return -1;
	rec->run = list;
	rec->run[rec->runs++] = run;
	return 0;
}

/* FNV-1a; the seed keeps a file from choosing texts that all collide. */
static char **pool_find(struct text_pool *pool, const char *text, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325ULL ^ pool->seed;
	size_t i;

	for (i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3ULL;
	for (i = hash ^ hash >> 32;; i++) {
		char **slot = &pool->slot[i & (pool->slots - 1)];

		if (!*slot || (!strncmp(*slot, text, len) && !(*slot)[len]))
			return slot;
	}
}

static bool pool_grow(struct text_pool *pool)
{
	struct text_pool larger = *pool;
	size_t i;

	larger.slots = pool->slots ? 2 * pool->slots : 64;
	larger.slot = calloc(larger.slots, sizeof(*larger.slot));
	if (!larger.slot)
		return false;
	for (i = 0; i < pool->slots; i++)
		if (pool->slot[i])
			*pool_find(&larger, pool->slot[i], strlen(pool->slot[i])) = pool->slot[i];
	free(pool->slot);
	*pool = larger;
	return true;
}

const char *recording_text(struct recording *rec, const char *text, size_t len)
{
	char **slot;

	if (!rec->pool) {
		rec->pool = calloc(1, sizeof(*rec->pool));
		if (!rec->pool)
			return NULL;
		rec->pool->seed = (uintptr_t)rec->pool;
	}
	if (2 * rec->pool->used >= rec->pool->slots && !pool_grow(rec->pool))
		return NULL;
	slot = pool_find(rec->pool, text, len);
	if (!*slot) {
		*slot = strndup(text, len);
		rec->pool->used += !!*slot;
	}
	return *slot;
}

struct passes recording_passes(const struct recording *rec)
{
	struct passes p = { false, false };
	size_t i;

	for (i = 0; i < rec->runs; i++) {
		if (run_observed(rec->run[i]))
			p.counts = true;
		else
			p.times = true;
	}
	return p;
}

bool pass_tells(const struct passes *p, const struct run *run, bool metric, bool time)
{
	if (!p->counts || !p->times)
		return true;
	if (metric)
		return run_observed(run);
	return !time || !run_observed(run);
}
