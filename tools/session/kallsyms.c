// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/kallsyms.h"

/* Files of procfs ask for reads of 1 KiB each: some 10000 of them. */
#define BUFFER	65536

/* "ffffffff81000000 T name\t[module]\n"; false at the end or on a damaged line. */
static bool next_symbol(FILE *f, char **line, size_t *size, uint64_t *address, char **name)
{
	char *p;

	while (getline(line, size, f) > 0) {
		*address = strtoull(*line, &p, 16);
		if (p == *line || p[0] != ' ' || !p[1] || p[2] != ' ')
			continue;
		*name = p + 3;
		p[3 + strcspn(p + 3, "\t\n ")] = 0;
		return true;
	}
	return false;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct ksym *)a)->name, ((const struct ksym *)b)->name);
}

struct ksym *ksym_get(struct ksym *sym, size_t n, const char *name)
{
	struct ksym key = { .name = name };

	return bsearch(&key, sym, n, sizeof(*sym), by_name);
}

int kallsyms_find(const char *path, struct ksym *sym, size_t n)
{
	char *line = NULL, *name, *dot;
	size_t size = 0;
	uint64_t address;
	struct ksym *s;
	bool any = false;
	FILE *f;
	int e;

	qsort(sym, n, sizeof(*sym), by_name);
	f = fopen(path, "re");
	if (!f)
		return -1;
	setvbuf(f, NULL, _IOFBF, BUFFER);
	while (next_symbol(f, &line, &size, &address, &name)) {
		char suffix[64];

		any = true;
		dot = strchr(name, '.');
		if (dot == name)
			continue;
		if (dot) {
			snprintf(suffix, sizeof(suffix), "%s", dot);
			*dot = 0;
		}
		s = ksym_get(sym, n, name);
		if (!s)
			continue;
		if (!dot) {
			if (!s->exact++)
				s->address = address;
		} else if (!strstr(suffix, ".cold")) {
			if (!s->clones++)
				snprintf(s->clone, sizeof(s->clone), "%.30s%.30s", name, suffix);
		}
	}
	e = ferror(f) ? errno : any ? 0 : EINVAL;
	free(line);
	fclose(f);
	errno = e;
	return e ? -1 : 0;
}

int kallsyms_names(const char *path, const uint64_t *address, char **name, size_t n)
{
	char *line = NULL, *symbol;
	size_t size = 0, i;
	uint64_t at;
	FILE *f;

	f = fopen(path, "re");
	if (!f)
		return -1;
	setvbuf(f, NULL, _IOFBF, BUFFER);
	while (next_symbol(f, &line, &size, &at, &symbol))
		for (i = 0; i < n && at; i++)
			if (address[i] == at && !name[i])
				name[i] = strdup(symbol);
	free(line);
	fclose(f);
	return 0;
}
