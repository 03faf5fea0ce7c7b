// SPDX-License-Identifier: GPL-2.0-only
/*
 * The libelf.a of elfutils 0.192 (Debian 13) calls four functions of an internal
 * library that no archive has, so nothing links with it statically. These stand
 * in. They are weak: where libelf brings its own, those may win. A tree is opaque
 * to its users and at least a pointer in size, which is all that is needed of it
 * here. No Elf handle is shared between threads, so there is no lock.
 */
#include <search.h>
#include <stddef.h>

struct eu_search_tree {
	void *root;
};

typedef int (*eu_compare)(const void *a, const void *b);

void eu_search_tree_init(struct eu_search_tree *tree);
void eu_search_tree_fini(struct eu_search_tree *tree, void (*free_node)(void *key));
void *eu_tsearch(const void *key, struct eu_search_tree *tree, eu_compare compare);
void *eu_tdelete(const void *key, struct eu_search_tree *tree, eu_compare compare);

#define WEAK __attribute__((weak))

WEAK void eu_search_tree_init(struct eu_search_tree *tree)
{
	tree->root = NULL;
}

WEAK void eu_search_tree_fini(struct eu_search_tree *tree, void (*free_node)(void *key))
{
	tdestroy(tree->root, free_node);
	tree->root = NULL;
}

WEAK void *eu_tsearch(const void *key, struct eu_search_tree *tree, eu_compare compare)
{
	return tsearch(key, &tree->root, compare);
}

WEAK void *eu_tdelete(const void *key, struct eu_search_tree *tree, eu_compare compare)
{
	return tdelete(key, &tree->root, compare);
}
