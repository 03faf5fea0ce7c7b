/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_VM_RUN_H
#define MMSCOPE_VM_RUN_H

#include "vm/kernel.h"
#include "vm/qemu.h"
#include "vm/vm.h"

/*
 * Boots the initramfs open as initrd, whose plan is the command and the files
 * of opt->get in their order, and stays until it ended. tty: a shell on the
 * terminal. name: what the command is called in error lines. Returns the exit
 * status (vm_run()).
 */
int guest_run(const struct vm_options *opt, const struct kernel *kernel, int initrd,
	      enum accel accel, bool tty, const char *name);

#endif
