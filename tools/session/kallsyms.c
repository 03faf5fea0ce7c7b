// SPDX-License-Identifier: GPL-2.0-only
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/kallsyms.h"

/*
 * Files of procfs ask for reads of 1 KiB each: some 10000 of them. The C library
 * takes the size of a buffer only together with the buffer.
 */
static char buffer[65536];

/*
 * "ffffffff81000000 T name\t[module]\n"; false at the end. The line starts with the
 * address, and is kept as text: few are ever asked for.
 */
static bool next_symbol(FILE *f, char **line, size_t *size, char **name)
{
	char *p;

	while (getline(line, size, f) > 0) {
		p = strchr(*line, ' ');
		if (!p || !isxdigit(**line) || !p[1] || p[2] != ' ')
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
	struct ksym *s;
	bool any = false;
	FILE *f;
	int e;

	qsort(sym, n, sizeof(*sym), by_name);
	f = fopen(path, "re");
	if (!f)
		return -1;
	setvbuf(f, buffer, _IOFBF, sizeof(buffer));
	while (next_symbol(f, &line, &size, &name)) {
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
				s->address = strtoull(line, NULL, 16);
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
	setvbuf(f, buffer, _IOFBF, sizeof(buffer));
	while (next_symbol(f, &line, &size, &symbol)) {
		at = strtoull(line, NULL, 16);
		for (i = 0; i < n && at; i++)
			if (address[i] == at && !name[i])
				name[i] = strdup(symbol);
	}
	free(line);
	fclose(f);
	return 0;
}

static int by_address(const void *pa, const void *pb)
{
	const struct symbol *a = pa, *b = pb;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* One line, in place: "ffffffff81000000 T name\t[module]". */
static bool parse_symbol(char *line, struct symbol *s)
{
	char *p, *end;

	s->address = strtoull(line, &p, 16);
	if (p == line || p[0] != ' ' || !p[1] || p[2] != ' ')
		return false;
	s->type = p[1];
	s->name = p + 3;
	end = p + 3 + strcspn(p + 3, "\t ");
	s->module = NULL;
	p = strchr(end, '[');
	if (*end)
		*end = 0;
	if (p) {
		s->module = p + 1;
		p[strcspn(p, "]")] = 0;
	}
	return *s->name;
}

static char *read_all(const char *path, size_t *size)
{
	size_t n, room = 1 << 20;
	char *text = malloc(room), *grown;
	FILE *f = text ? fopen(path, "re") : NULL;
	int e;

	*size = 0;
	if (!f) {
		free(text);
		return NULL;
	}
	while ((n = fread(text + *size, 1, room - *size - 1, f))) {
		*size += n;
		if (*size < room - 1)
			continue;
		room *= 2;
		grown = realloc(text, room);
		if (!grown)
			break;
		text = grown;
	}
	e = ferror(f) ? errno : n ? ENOMEM : 0;
	fclose(f);
	if (e) {
		free(text);
		errno = e;
		return NULL;
	}
	text[*size] = 0;
	return text;
}

int symbols_read(struct symbols *s, const char *path)
{
	char *line, *next;
	size_t size, lines = 1;

	*s = (struct symbols){ 0 };
	s->text = read_all(path, &size);
	if (!s->text)
		return -1;
	for (line = s->text; (line = memchr(line, '\n', s->text + size - line)); line++)
		lines++;
	s->sym = malloc(lines * sizeof(*s->sym));
	if (!s->sym)
		return -1;
	for (line = s->text; *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = 0;
		if (parse_symbol(line, &s->sym[s->n]))
			s->n++;
	}
	if (!s->n) {
		errno = EINVAL;
		return -1;
	}
	qsort(s->sym, s->n, sizeof(*s->sym), by_address);
	return 0;
}

void symbols_free(struct symbols *s)
{
	free(s->sym);
	free(s->text);
	*s = (struct symbols){ 0 };
}

const struct symbol *symbols_at(const struct symbols *s, uint64_t address)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (s->sym[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->n && s->sym[low].address == address ? &s->sym[low] : NULL;
}

#define SYMBOL_SPAN	(1 << 20)	/* what is allocated lies behind no symbol */

const struct symbol *symbols_over(const struct symbols *s, uint64_t address)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (s->sym[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || low == s->n || address - s->sym[low - 1].address > SYMBOL_SPAN)
		return NULL;
	return &s->sym[low - 1];
}
