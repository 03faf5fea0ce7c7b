/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_VM_PACK_H
#define MMSCOPE_VM_PACK_H

#include "vm/cpio.h"
#include "vm/kernel.h"

/*
 * What of the host goes into the guest. Paths keep their names, links included.
 * Functions return 0 or, after an error line, an exit status of cmd.h.
 */

/* The directories every guest has, links of the host such as /bin -> usr/bin first. */
int pack_base(struct archive *ar);

/*
 * A file with its ELF needs and #! interpreter, or a directory with all in it:
 * "FILE", at the same absolute path, or "FILE:DEST". A bare name that is no
 * file here is looked up on PATH. Without an archive: only whether it can be.
 */
int pack_copy(struct archive *ar, const char *spec);

/*
 * The command: its program with all that needs, and the common tools if it is
 * a shell or a shell script. "mmscope" means the packed binary, and the program
 * behind a "--" of its own is packed too. argv is rewritten where a program was
 * found by a relative path; *exec is what to execute (to be freed).
 */
int pack_command(struct archive *ar, char **argv, char **exec);

/* Modules by name with what they depend on; loaded() gets their paths in load order. */
struct module_pack;
struct module_pack *module_pack_new(struct archive *ar, const struct kernel *kernel,
				    void (*loaded)(const char *path, void *arg), void *arg);
/* required false: a module that this kernel does not have is no error. */
int module_pack_add(struct module_pack *mp, const char *name, bool required);
void module_pack_free(struct module_pack *mp);

#define GUEST_MMSCOPE "/usr/bin/mmscope"
#define GUEST_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#endif
