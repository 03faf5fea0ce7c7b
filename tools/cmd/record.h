/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_CMD_RECORD_H
#define MMSCOPE_CMD_RECORD_H

#include "data/run.h"

/* Copy the command's words into a recording that has none. -1: no memory. */
int record_command(struct recording *rec, char **argv);

#endif
