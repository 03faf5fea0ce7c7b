/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_VM_QEMU_H
#define MMSCOPE_VM_QEMU_H

#include <stdbool.h>
#include <sys/types.h>

#include "vm/kernel.h"
#include "vm/vm.h"

#define QEMU "qemu-system-x86_64"

enum accel {
	ACCEL_KVM,
	ACCEL_TCG,		/* a thread for each CPU */
	ACCEL_TCG_IN_TURN,	/* one thread, CPUs in turn */
	ACCEL_ICOUNT,
};

/* A running emulator. Descriptors are ours to read and write, non-blocking; -1 when ended. */
struct qemu {
	pid_t pid;		/* -1: ended */
	int console, tty, ctl, out, err;
	int complaints;		/* its own stderr */
};

/*
 * Starts the emulator on the kernel and the initramfs open as initrd; it dies
 * with us. tty: with a second serial port. 0, or an exit status after an error
 * line.
 */
int qemu_start(struct qemu *q, const struct vm_options *opt, const struct kernel *kernel,
	       int initrd, enum accel accel, bool tty);

/* Ends it, if it runs, and closes the descriptors. */
void qemu_stop(struct qemu *q);

/* True if it ended by itself; qemu_stop() still has to be called. */
bool qemu_ended(struct qemu *q);

/* What it complained about, as one line; empty if nothing. */
void qemu_complaint(struct qemu *q, char *buf, size_t size);

/*
 * KVM if a guest of this kernel really boots with it here (tried once a boot of
 * this machine; the answer is kept in the cache), else TCG, in the way that this
 * emulator does without fault.
 */
enum accel accel_choose(const struct kernel *kernel);

#endif
