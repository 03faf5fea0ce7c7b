/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_RENDER_AUDIT_H
#define MMSCOPE_RENDER_AUDIT_H

#include "data/audit.h"
#include "render/text.h"

/* Print what mmscope audit found, and flush. 0 or a negative errno: -EPIPE, -ENOSPC, ... */
int audit_text(FILE *f, const struct audit *a, const struct view *view);
int audit_json(FILE *f, const struct audit *a);

#endif
