/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_VM_GUEST_H
#define MMSCOPE_VM_GUEST_H

/* The guest's init: carries out the plan (proto.h), then powers off. Does not return. */
int guest_init(void);

#endif
