/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_CMD_H
#define MMSCOPE_CMD_H

#include "data/status.h"

/* One row of the command table in mmscope.c; argv[0] is the command's name. */
struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
};

int cmd_ab(int argc, char **argv);
int cmd_audit(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_fault(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_lock(int argc, char **argv);
int cmd_probes(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_vm(int argc, char **argv);

#endif
