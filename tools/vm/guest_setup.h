/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_VM_GUEST_SETUP_H
#define MMSCOPE_VM_GUEST_SETUP_H

#include <stddef.h>

/* Steps of init, in this order; what the guest cannot do without ends it through guest_fatal(). */
void setup_mounts(void);
void setup_modules(char **paths);	/* ends with NULL */
void setup_system(void);		/* host name, loopback, /etc, /dev/fd */
void setup_undo(void);			/* unmounts disks, writes them back */

/* guest.c */

/* Ends the guest. The reason goes to the host, and to the console if there is no port yet. */
void guest_fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void guest_log(const char *text);	/* a line of the kernel's log */
int guest_write(int fd, const void *data, size_t len);	/* 0, or -1 with errno set */

#endif
