/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_NAMES_H
#define MMSCOPE_NAMES_H

#include <bpf/btf.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The names of a kernel's BTF, hashed. btf__find_by_name_kind() walks all types at
 * every call (130,000 in 7.3), and a plan asks for more than a hundred names.
 */
struct names;

/* NULL: no memory. `btf` must outlive it. To be freed with names_free(). */
struct names *names_make(const struct btf *btf);
void names_free(struct names *names);
/* The first type of that name and kind (BTF_KIND_*); 0: there is none. */
int names_find(const struct names *names, const char *name, unsigned int kind);
/* Is there "struct[.member...]"? *offset: of the last member, in bytes; 0 if there is none. */
bool names_member(const struct names *names, const char *what, uint32_t *offset);
/* Of an enum's name; 0: not known. */
uint32_t names_value(const struct names *names, const char *type, const char *value);

#endif
