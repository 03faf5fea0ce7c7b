/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_SESSION_AUDIT_H
#define MMSCOPE_SESSION_AUDIT_H

#include "data/audit.h"

enum audit_result { AUDIT_OK, AUDIT_UNAVAILABLE, AUDIT_ERROR };

/*
 * Find the vm_operations_structs of the running kernel and of its modules. A
 * data symbol is one if each member that is not NULL holds the address of a
 * function whose type in BTF is that member's type; its name says nothing.
 * AUDIT_UNAVAILABLE: reason tells why this kernel or this user cannot look;
 * AUDIT_ERROR after an error line. audit_free() is the caller's in any case.
 */
enum audit_result audit_kernel(struct audit *a, char *reason, size_t size);

#endif
