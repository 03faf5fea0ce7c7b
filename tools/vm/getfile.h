/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_VM_GETFILE_H
#define MMSCOPE_VM_GETFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/options.h"
#include "vm/proto.h"

/* Files that come back from the guest (--get); whole or not at all. */
struct get_files;

/* "FILE" or "FILE:LOCAL"; both to be freed. -1 after an error line. */
int get_spec(const char *spec, char **file, char **local);

struct get_files *get_files_new(const struct option_list *specs);
void get_files_begin(struct get_files *g, const struct vm_file *head);
void get_files_data(struct get_files *g, const void *data, size_t len);
void get_files_end(struct get_files *g, int error);
/* Number of files that are missing; prints a line for each. */
size_t get_files_missing(struct get_files *g);
void get_files_free(struct get_files *g);

#endif
