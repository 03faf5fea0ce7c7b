/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_VM_ELFNEEDS_H
#define MMSCOPE_VM_ELFNEEDS_H

#include <stddef.h>

/*
 * What the ELF file open as fd needs to run: calls need() with the path of its
 * interpreter and of each library it names, found as the dynamic linker finds
 * them (run paths of the file, directories of ld.so.conf, the usual ones), not
 * recursively. path is the file's name, for $ORIGIN. Returns 0 (also for a file
 * that is no ELF, or needs nothing), what need() returned if not 0, or -1 with
 * *missing set to the library that was not found (to be freed).
 */
int elf_needs(int fd, const char *path, int (*need)(const char *path, void *arg), void *arg,
	      char **missing);

/* "depends", "softdep" and so on: next value of a key in the .modinfo of a module in memory,
 * after prev (NULL: the first); NULL at the end.
 */
const char *elf_modinfo(char *image, size_t len, const char *key, const char *prev);

#endif
