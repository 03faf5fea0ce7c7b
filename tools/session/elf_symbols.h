/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_ELF_SYMBOLS_H
#define MMSCOPE_ELF_SYMBOLS_H

#include <stdint.h>

/* A file as the kernel tells it of a mapping: not everywhere what stat(2) says. */
struct file_id {
	uint32_t major, minor;
	uint64_t inode;		/* 0: no file */
};

/* Functions of a program or library. */
struct elf_symbols;

/*
 * From the file's symbol table (.symtab, there or in the file of
 * its build ID in /usr/lib/debug, or else .dynsym). NULL, without an error line: it
 * cannot be read, is no ELF file, has no symbols, or is not the one that was mapped.
 */
struct elf_symbols *elf_symbols_read(const char *path, const struct file_id *id);
void elf_symbols_free(struct elf_symbols *s);

/*
 * The function whose code is at this offset in the file; NULL: not known, or the file was
 * changed after a time (nanoseconds, CLOCK_REALTIME). The text is valid as long as *s.
 */
const char *elf_symbols_name(const struct elf_symbols *s, uint64_t offset, uint64_t time);

#endif
