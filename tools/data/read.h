/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_READ_H
#define MMSCOPE_READ_H

#include <stddef.h>

#include "data/run.h"

/*
 * Read the recording in a file ("-": standard input) as it is: nothing is looked
 * up on this machine. The caller frees it. NULL after one error line that names
 * the byte and the reason: unreadable, damaged, or of a newer schema.
 *
 * Keys that are not known are ignored. Metrics, labels and events that are not
 * known (of another version) are left out with one warning. The memory it takes
 * is in proportion to the file; texts, nesting and arrays have limits.
 */
struct recording *recording_read(const char *path);

/* The same of a file's content in memory; `name` stands for it in messages. */
struct recording *recording_read_memory(const char *name, const void *data, size_t len);

#endif
