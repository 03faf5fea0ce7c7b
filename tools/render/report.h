/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_REPORT_H
#define MMSCOPE_REPORT_H

#include "render/text.h"

/*
 * A recording as it was saved. One run prints as `mmscope fault` printed it;
 * several print as the median and spread of each metric, boot by boot.
 */
void text_report(FILE *f, const struct recording *rec, const struct view *view);

/* Each run by itself, on the screen of what was observed. */
void text_screen(FILE *f, const struct recording *rec, const struct view *view);

#endif
