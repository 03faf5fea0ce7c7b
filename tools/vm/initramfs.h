/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_VM_INITRAMFS_H
#define MMSCOPE_VM_INITRAMFS_H

#include <stdbool.h>

#include "vm/cpio.h"
#include "vm/kernel.h"

/* An initramfs with mmscope as its init, the kernel's modules, and the plan for init (proto.h). */
struct initramfs;

/* disks: with the driver for them. NULL after an error line; *status is then the exit status. */
struct initramfs *initramfs_new(const struct kernel *kernel, bool disks, int *status);
struct archive *initramfs_archive(struct initramfs *i);
void initramfs_plan(struct initramfs *i, const char *key, const char *value);
/* A module that --module names. 0, or an exit status after an error line. */
int initramfs_module(struct initramfs *i, const char *name);
/* Its descriptor, which it keeps owning; -1 after an error line. */
int initramfs_finish(struct initramfs *i);
void initramfs_free(struct initramfs *i);

#endif
