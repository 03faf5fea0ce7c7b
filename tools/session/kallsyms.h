/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_KALLSYMS_H
#define MMSCOPE_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known of one name. */
struct ksym {
	const char *name;
	uint64_t address;	/* of the first; 0 where addresses are hidden */
	unsigned int exact;	/* symbols of exactly this name */
	unsigned int clones;	/* compiler's copies with changed arguments or split parts */
	char clone[64];		/* one of them, "name.isra.0" */
};

/*
 * Read a file in the format of /proc/kallsyms once and fill in sym[0..n), which
 * is sorted by name in the course of it. `.cold` parts are no copies. Returns 0,
 * or -1 with errno when the file cannot be read; EINVAL: it holds no symbols.
 */
int kallsyms_find(const char *path, struct ksym *sym, size_t n);
/* The entry of a name after that, or NULL. */
struct ksym *ksym_get(struct ksym *sym, size_t n, const char *name);

/*
 * Names of addresses: name[i] becomes a malloc()ed copy, or stays NULL. Returns
 * as above.
 */
int kallsyms_names(const char *path, const uint64_t *address, char **name, size_t n);

struct symbol {
	uint64_t address;
	const char *name, *module;	/* NULL: the kernel itself */
	char type;			/* as nm(1) has it */
};

/* All symbols of a file, by address. */
struct symbols {
	struct symbol *sym;
	size_t n;
	char *text;
};

/* Returns as above; addresses that are hidden are 0. To be freed in any case. */
int symbols_read(struct symbols *s, const char *path);
void symbols_free(struct symbols *s);
/* The first symbol of exactly this address; those after it may have it, too. NULL: none. */
const struct symbol *symbols_at(const struct symbols *s, uint64_t address);
/* The symbol that an address lies in or, having no end, is next behind. NULL: none. */
const struct symbol *symbols_over(const struct symbols *s, uint64_t address);

#endif
