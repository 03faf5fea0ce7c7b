/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_JSON_H
#define MMSCOPE_JSON_H

#include <stdbool.h>
#include <stdio.h>

#include "data/run.h"

/*
 * Write a recording as one JSON object and a newline, and flush. `one_line`
 * puts the whole object on one line; else each sample, run fact and probe has a
 * line of its own. Returns 0 or a negative errno: -EPIPE, -ENOSPC, -ENOMEM, ...
 */
int json_write(FILE *f, const struct recording *rec, bool one_line);

/* The tables of metrics and labels (`mmscope list --json`). Returns as above. */
int json_write_tables(FILE *f);

#endif
