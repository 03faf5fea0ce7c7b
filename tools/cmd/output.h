/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_OUTPUT_H
#define MMSCOPE_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Where a report goes: a stream of ours, or a file that appears under its name
 * only when it is complete.
 */
struct output {
	FILE *f;
	const char *path;	/* NULL: a stream of ours */
	char temporary[4096];
	bool failed;		/* an error line has been printed, or the reader is gone */
	bool gone;		/* the reader closed the pipe: no error */
};

/* path NULL: `standard`; "-": standard output. 0, or -1 after an error line. */
int output_open(struct output *out, const char *path, FILE *standard);
/* After writing: flush, and note what went wrong. 0, or -1 (see failed, gone). */
int output_flush(struct output *out);
/* The same for an errno that a writer returned; 0 does nothing. */
int output_error(struct output *out, int e);
/*
 * Close and, when all is well, give the file its name. 0, or -1: if only that is not
 * possible the temporary file stays, and the error line names it.
 */
int output_close(struct output *out);
/*
 * Close and leave what was written under its temporary name, which is told. 0, or -1
 * with nothing left behind.
 */
int output_keep(struct output *out);
/* Close, and leave nothing behind. */
void output_discard(struct output *out);

#endif
