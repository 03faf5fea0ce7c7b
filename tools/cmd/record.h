/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_CMD_RECORD_H
#define MMSCOPE_CMD_RECORD_H

#include "data/run.h"

/* Copy the command's words into a recording that has none. -1: no memory. */
int record_command(struct recording *rec, char **argv);

/*
 * The names of --primary, apart by commas that are not inside braces, become the
 * recording's primaries. -1 after an error line.
 */
int record_primary(struct recording *rec, const char *list);

/*
 * Add the runs of rec to the recording in a file, which is made if it is not there;
 * they are moved. EXIT_OK, or another status after an error line: only runs of the
 * same machine (of which the boot may differ), command and primaries go together.
 */
int record_append(const char *path, struct recording *rec);

#endif
