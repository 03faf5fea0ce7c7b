/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_CMD_VM_H
#define MMSCOPE_CMD_VM_H

#include "vm/vm.h"

/* Options of a guest, for all commands that boot one. */
#define VM_OPTION_ROWS(opt)									\
	{ "tree", 0, OPT_STRING, "DIR", "mmscope's source, which has vanilla and patched",	\
	  .dest = &(opt).tree },								\
	{ "cpus", 0, OPT_CALL, "N[,max=M]", "CPUs, and up to how many (default 2)",		\
	  .dest = &(opt).cpus, .parse = vm_parse_cpus },					\
	{ "memory", 'm', OPT_SIZE, "SIZE", "memory of the guest (default 1G)",			\
	  .dest = &(opt).memory, .min = 128 << 20, .max = 1ULL << 42 },				\
	{ "numa", 0, OPT_COUNT, "N", "NUMA nodes, of equal size (default 1)",			\
	  .dest = &(opt).numa, .min = 1, .max = 64 },						\
	{ "icount", 0, OPT_FLAG, NULL, "the guest's clock counts instructions (one CPU)",	\
	  .dest = &(opt).icount },								\
	{ "copy", 0, OPT_LIST, "FILE[:DEST]", "file or directory to have in the guest",		\
	  .dest = &(opt).copy },								\
	{ "module", 0, OPT_LIST, "NAME", "module to load, with its dependencies",		\
	  .dest = &(opt).module },								\
	{ "env", 0, OPT_LIST, "NAME=VALUE", "environment of the command",			\
	  .dest = &(opt).env },									\
	{ "timeout", 0, OPT_SECONDS, "SECONDS", "kill the guest if CMD takes longer",		\
	  .dest = &(opt).timeout }

/* "N" or "N,max=M" into a struct vm_cpus; -1 after an error line. */
int vm_parse_cpus(const char *arg, void *dest);
/* Those that were not given (n is 0). */
void vm_default_cpus(struct vm_options *opt);

#endif
