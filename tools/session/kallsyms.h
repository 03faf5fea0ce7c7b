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

#endif
