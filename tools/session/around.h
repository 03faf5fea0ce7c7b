/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_AROUND_H
#define MMSCOPE_AROUND_H

/* fault_around_bytes of the kernel. */

#define AROUND_FILE	"/sys/kernel/debug/fault_around_bytes"

/* The size of the windows, which must be on. 0, or -1 after an error line. */
int around_read(unsigned long *bytes);
/* 0, or a negative errno. */
int around_write(unsigned long bytes);
/* 0, or -1 after an error line. */
int around_off(void);

#endif
