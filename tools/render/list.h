/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_RENDER_LIST_H
#define MMSCOPE_RENDER_LIST_H

#include "render/text.h"

/* The tables of metrics and labels; both flush and return 0 or a negative errno. */
int list_text(FILE *f, const struct view *view);
int list_markdown(FILE *f);

/* Words of the metrics table, for all who print it. */
const char *metric_kind_name(enum metric_kind kind);
const char *metric_better_name(enum metric_better better);

#endif
