/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_VM_HOST_H
#define MMSCOPE_VM_HOST_H

#include <stdbool.h>
#include <stddef.h>

/* Small services of the host that the parts of vm share. */

/* A formatted string, to be freed; never NULL (out of memory ends the program). */
char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The cache directory, created if need be; NULL after an error line. To be freed. */
char *cache_dir(void);

/* mkdir -p. Returns 0, or -1 with errno set. */
int make_dirs(const char *path);

/* rm -rf, without following links; silent. */
void remove_tree(const char *path);

/* Whole file, with a 0 byte behind it; *len without that. NULL with errno set. To be freed. */
char *read_file(const char *path, size_t *len);

/* Writes a file by way of a temporary name beside it and rename(). -1 with errno set. */
int write_file(const char *path, const void *data, size_t len);

/* Where PATH (or, if not set, the usual directories) has a program; NULL if nowhere. */
char *find_program(const char *name);


/*
 * Runs argv[0] (looked up on PATH) with stdin from /dev/null and collects its
 * stdout, and its stderr apart. cwd may be NULL. on_line, if not NULL, sees
 * every line of stdout as it comes, which is then not collected. silence, if not
 * 0, is after how many seconds without output the program is given up (status
 * SILENT).
 * Returns the exit status (128 + signal; 127 not found), or -1 if it could not
 * be started or we were told to end (SIGINT, SIGTERM, SIGHUP: *out and *err
 * are NULL, interrupted() is true).
 */
#define SILENT 256
/* As `err`: its stderr is ours. */
#define PASS_STDERR (&pass_stderr)
extern char *pass_stderr;
int run_program(char *const argv[], const char *cwd, int silence, char **out, size_t *len,
		char **err, void (*on_line)(const char *line, void *arg), void *arg);

/*
 * Signals that end us are noted instead of delivered between these two, so that
 * children and temporary files can be dealt with first.
 */
void signals_hold(void);
void signals_release(void);	/* and dies of the one that came, if one did */
int interrupted(void);		/* number of the signal that came, or 0 */
/* A descriptor that becomes readable when a held signal or SIGCHLD comes. */
int signals_fd(void);
void signals_drain(void);

/*
 * The live line on a terminal (stderr), rewritten by each call. Where stderr is
 * no terminal nothing is printed, except what is marked as a milestone.
 */
void progress(bool milestone, const char *format, ...) __attribute__((format(printf, 2, 3)));
void progress_clear(void);

#endif
