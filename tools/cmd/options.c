// SPDX-License-Identifier: GPL-2.0-only
/* Option tables on top of getopt_long(). */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/options.h"
#include "data/err.h"

#define MAX_OPTIONS	48
#define LONG_BASE	256	/* getopt value of row i: LONG_BASE + i */
#define HELP_VALUE	(LONG_BASE + MAX_OPTIONS)

int parse_count(const char *s, uint64_t *val)
{
	unsigned long long v;
	char *end;

	if (!isdigit((unsigned char)*s))
		return -1;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno || *end)
		return -1;
	*val = v;
	return 0;
}

int parse_size(const char *s, uint64_t *bytes)
{
	unsigned long long v;
	unsigned int shift = 0;
	char *end;

	if (!isdigit((unsigned char)*s))
		return -1;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno)
		return -1;
	switch (toupper((unsigned char)*end)) {
	case 'G': shift = 30; end++; break;
	case 'M': shift = 20; end++; break;
	case 'K': shift = 10; end++; break;
	}
	if (*end || (shift && v >> (64 - shift)))
		return -1;
	*bytes = (uint64_t)v << shift;
	return 0;
}

int parse_seconds(const char *s, double *seconds)
{
	size_t digits;
	char *end;
	double v;

	/* Digits and a point only: strtod() would also take "0x10", "1e3" and "nan". */
	digits = strspn(s, "0123456789.");
	errno = 0;
	v = strtod(s, &end);
	if (errno || end == s || end != s + digits || !isfinite(v))
		return -1;
	if (!strcmp(end, "ms"))
		v /= 1000;
	else if (!strcmp(end, "m"))
		v *= 60;
	else if (*end && strcmp(end, "s"))
		return -1;
	if (!(v > 0) || v > 1e9)
		return -1;
	*seconds = v;
	return 0;
}

/* "[=N]": `--name` alone has the value `absent`. */
static bool may_lack_value(const struct option_def *d)
{
	return d->arg && *d->arg == '[';
}

static void print_help(const struct option_set *set)
{
	const struct option_def *d;

	printf("Usage: mmscope %s\n\n%s\n\n", set->usage, set->about);
	for (d = set->defs; d->name; d++) {
		char left[64], letter[8] = "    ";

		if (d->letter)
			snprintf(letter, sizeof(letter), "-%c, ", d->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, d->name,
			 d->arg && !may_lack_value(d) ? " " : "", d->arg ? d->arg : "");
		printf("  %-28s %s\n", left, d->help);
		if (d->type == OPT_CHOICE)
			printf("  %-28s one of %s\n", "", d->choices);
	}
	printf("  %-28s %s\n", "-h, --help", "print this and exit");
}

static int bad_value(const struct option_def *d, const char *arg, const char *why)
{
	err("--%s", "'%s' is %s", d->name, arg, why);
	return -1;
}

static bool is_choice(const char *choices, const char *word)
{
	size_t n = strlen(word);
	const char *p;

	if (strchr(word, '|'))
		return false;
	for (p = choices; n && p; p = strchr(p, '|')) {
		p += *p == '|';
		if (!strncmp(p, word, n) && (p[n] == '|' || !p[n]))
			return true;
	}
	return false;
}

static int store_number(const struct option_def *d, const char *arg, uint64_t v)
{
	char why[96];

	if (v < d->min || (d->max && v > d->max)) {
		if (d->max)
			snprintf(why, sizeof(why), "not within %" PRIu64 " to %" PRIu64,
				 d->min, d->max);
		else
			snprintf(why, sizeof(why), "below %" PRIu64, d->min);
		return bad_value(d, arg, why);
	}
	*(uint64_t *)d->dest = v;
	return 0;
}

static int store(const struct option_def *d, const char *arg)
{
	struct option_list *list;
	const char **grown;
	uint64_t v;
	char why[160];

	switch (d->type) {
	case OPT_FLAG:
		*(bool *)d->dest = true;
		return 0;
	case OPT_STRING:
		if (!*arg)
			return bad_value(d, arg, "empty");
		*(const char **)d->dest = arg;
		return 0;
	case OPT_LIST:
		if (!*arg)
			return bad_value(d, arg, "empty");
		list = d->dest;
		grown = realloc(list->item, (list->n + 1) * sizeof(*grown));
		if (!grown)
			return bad_value(d, arg, "one too many: out of memory");
		list->item = grown;
		list->item[list->n++] = arg;
		return 0;
	case OPT_COUNT:
		if (!arg)
			return store_number(d, NULL, d->absent);
		if (parse_count(arg, &v))
			return bad_value(d, arg, "not a whole number");
		return store_number(d, arg, v);
	case OPT_SIZE:
		if (parse_size(arg, &v))
			return bad_value(d, arg, "not a size (a number with K, M or G)");
		return store_number(d, arg, v);
	case OPT_SECONDS:
		if (parse_seconds(arg, d->dest))
			return bad_value(d, arg, "not a time above 0 (seconds, or with ms, s, m)");
		return 0;
	case OPT_CHOICE:
		if (!is_choice(d->choices, arg)) {
			snprintf(why, sizeof(why), "not one of %s", d->choices);
			return bad_value(d, arg, why);
		}
		*(const char **)d->dest = arg;
		return 0;
	case OPT_CALL:
		return d->parse(arg, d->dest);
	}
	return -1;
}

enum options_result options_parse(const struct option_set *set, int argc, char **argv,
				  int *rest, bool *dashes)
{
	struct option longs[MAX_OPTIONS + 2];
	char shorts[2 * MAX_OPTIONS + 4] = "+:h";
	size_t n = 0, len = strlen(shorts);
	const struct option_def *d;
	int c, index;

	memset(longs, 0, sizeof(longs));
	for (d = set->defs; d->name && n < MAX_OPTIONS; d++, n++) {
		longs[n] = (struct option){ d->name, may_lack_value(d) ? optional_argument :
					    d->type != OPT_FLAG, NULL, LONG_BASE + (int)n };
		if (d->letter) {
			shorts[len++] = d->letter;
			if (d->type != OPT_FLAG)
				shorts[len++] = ':';
		}
	}
	shorts[len] = 0;
	longs[n] = (struct option){ "help", 0, NULL, HELP_VALUE };

	optind = 0;	/* glibc: start afresh */
	opterr = 0;
	while ((c = getopt_long(argc, argv, shorts, longs, &index)) != -1) {
		if (c == 'h' || c == HELP_VALUE) {
			print_help(set);
			return OPTIONS_HELP;
		}
		if (c == ':') {
			err("%s", "needs a value; see mmscope %s --help",
			    argv[optind - 1], argv[0]);
			return OPTIONS_BAD;
		}
		if (c == '?') {
			if (optopt >= LONG_BASE)
				err("%s", "takes no value", argv[optind - 1]);
			else if (optopt)
				err("-%c", "unknown option; see mmscope %s --help",
				    optopt, argv[0]);
			else
				err("%s", "unknown or ambiguous option; see mmscope %s --help",
				    argv[optind - 1], argv[0]);
			return OPTIONS_BAD;
		}
		/* "-o -- CMD" forgot the value; "--output=--" did not. */
		if (optarg && optarg == argv[optind - 1] && !strcmp(optarg, "--")) {
			err("%s", "needs a value; see mmscope %s --help",
			    argv[optind - 2], argv[0]);
			return OPTIONS_BAD;
		}
		if (c >= LONG_BASE) {
			d = &set->defs[c - LONG_BASE];
		} else {
			for (d = set->defs; d->letter != c; d++)
				;
		}
		if (store(d, optarg))
			return OPTIONS_BAD;
	}
	*dashes = optind > 1 && !strcmp(argv[optind - 1], "--");
	*rest = optind;
	return OPTIONS_OK;
}

void option_list_free(struct option_list *list)
{
	free(list->item);
	*list = (struct option_list){ 0 };
}
