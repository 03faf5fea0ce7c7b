/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_KTAP_H
#define MMSCOPE_KTAP_H

#include <stdio.h>

#include "data/expect.h"

void ktap_plan(FILE *f, size_t n);
/* One result, after the lines that tell its value, its bound and its reason. */
void ktap_result(FILE *f, size_t number, const struct expect_result *r);

#endif
