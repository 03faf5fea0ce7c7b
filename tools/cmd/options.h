/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_OPTIONS_H
#define MMSCOPE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Options are rows of a table; usage errors and --help derive from it. */
enum option_type {
	OPT_FLAG,	/* bool: set to true */
	OPT_STRING,	/* const char *: points into argv */
	OPT_LIST,	/* struct option_list: every occurrence is kept */
	OPT_COUNT,	/* uint64_t: a whole number within [min, max] */
	OPT_SIZE,	/* uint64_t: bytes, with K, M, G suffix, within [min, max] */
	OPT_SECONDS,	/* double: seconds > 0, with s, ms, m suffix */
	OPT_CHOICE,	/* const char *: one of the words in `choices` ("a|b|c") */
	OPT_CALL,	/* calls parse(arg, dest); it prints its own error, 0 on success */
};

struct option_list {
	const char **item;	/* grown with realloc; freed by option_list_free() */
	size_t n;
};

struct option_def {
	const char *name;	/* long name, without the dashes */
	char letter;		/* short name, or 0 */
	enum option_type type;
	const char *arg;	/* metavariable for --help: "SECONDS" */
	const char *help;	/* one line */
	void *dest;
	const char *choices;	/* OPT_CHOICE */
	uint64_t min, max;	/* OPT_COUNT, OPT_SIZE; max 0: no limit */
	int (*parse)(const char *arg, void *dest);
	uint64_t absent;	/* OPT_COUNT with an `arg` of "[=N]": what the name alone means */
};

struct option_set {
	const char *usage;		/* "fault [OPTIONS] -- CMD [ARGS]" */
	const char *about;		/* one or two sentences */
	const struct option_def *defs;	/* ends with a row without a name */
};

enum options_result { OPTIONS_OK, OPTIONS_HELP, OPTIONS_BAD };

/*
 * Parse argv[1..]. Stops at "--" or at the first word that is not an option;
 * *rest is the index of the first word after that ("--" itself skipped), argc
 * if none, and *dashes tells whether "--" was there. On OPTIONS_HELP the help
 * has been printed on stdout (return EXIT_OK); on OPTIONS_BAD one line has been
 * printed on stderr (return EXIT_USAGE).
 */
enum options_result options_parse(const struct option_set *set, int argc, char **argv,
				  int *rest, bool *dashes);
void option_list_free(struct option_list *list);

/* Strict parsers, whole string or failure (-1); used by the table and by others. */
int parse_count(const char *s, uint64_t *val);
int parse_size(const char *s, uint64_t *bytes);
int parse_seconds(const char *s, double *seconds);

#endif
