/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_VM_SPLAT_H
#define MMSCOPE_VM_SPLAT_H

/* What a line of the kernel's log says about the health of the kernel, worst last. */
enum splat {
	SPLAT_NONE,
	SPLAT_CUT,	/* the line above a report; the report's own line says more */
	SPLAT_REPORT,	/* WARNING, lockdep, KASAN and the like: the guest runs on */
	SPLAT_OOM,	/* a process was killed for lack of memory */
	SPLAT_STALL,	/* lockup, RCU stall, hung task: it may never end */
	SPLAT_PANIC,	/* it does not run on */
};

/*
 * Classifies one line of the log, with or without its time stamp. *message, if
 * not NULL, is set to where the text behind time stamp and caller begins.
 */
enum splat splat_classify(const char *line, const char **message);

#endif
