// SPDX-License-Identifier: GPL-2.0-only
/* The language of expectations: a scanner and a recursive descent. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/err.h"
#include "data/expect_parts.h"

#define LINE_BYTES	4096
#define ITEMS_MAX	4096
#define DEPTH_MAX	64
#define DIGITS_MAX	40

const struct expect_fact expect_facts[EXPECT_FACTS] = {
	{ "wall_ns", DIM_TIME, false, offsetof(struct run, wall_ns) },
	{ "user_ns", DIM_TIME, true, offsetof(struct run, user_ns) },
	{ "sys_ns", DIM_TIME, true, offsetof(struct run, sys_ns) },
	{ "minflt", DIM_NUMBER, true, offsetof(struct run, minflt) },
	{ "majflt", DIM_NUMBER, true, offsetof(struct run, majflt) },
	{ "maxrss_kib", DIM_SIZE, true, offsetof(struct run, maxrss_kib) },
	{ "anon_huge_kib", DIM_SIZE, false, offsetof(struct run, anon_huge_kib) },
};

const char *const expect_operators[] = { "<", "<=", ">", ">=", "==", "!=" };

/* Sizes count in KiB, as the kernel's own facts do. */
static const struct {
	const char *name;
	enum dimension dimension;
	long double scale;
} units[] = {
	{ "ns", DIM_TIME, 1 }, { "us", DIM_TIME, 1e3L }, { "ms", DIM_TIME, 1e6L },
	{ "s", DIM_TIME, 1e9L }, { "KiB", DIM_SIZE, 1 }, { "MiB", DIM_SIZE, 1024 },
	{ "GiB", DIM_SIZE, 1048576 },
};

static const char *const dimension_names[] = { "any number", "a number", "a time", "a size" };

struct parser {
	const char *name;		/* of the file */
	struct expectations *all;
	struct expectation *e;
	const char *line, *p, *end;	/* the line, what is left of it */
	unsigned int number, depth;
	bool failed;			/* one line has been printed */
};

/* At most the first failure is told. Returns false. */
static bool fail_at(struct parser *s, const char *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static bool fail_at(struct parser *s, const char *at, const char *format, ...)
{
	char text[400];
	va_list ap;

	if (s->failed)
		return false;
	s->failed = true;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	err("%s", "line %u, column %zu: %s", s->name, s->number, (size_t)(at - s->line) + 1, text);
	return false;
}

/* ---- words ---- */

static void skip_blanks(struct parser *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\r'))
		s->p++;
}

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Length of the name at p. */
static size_t name_length(const struct parser *s)
{
	const char *p = s->p;

	if (p < s->end && isdigit((unsigned char)*p))
		return 0;
	while (p < s->end && is_name_char(*p))
		p++;
	return p - s->p;
}

static bool is_word(const char *word, const char *text, size_t len)
{
	return strlen(word) == len && !memcmp(word, text, len);
}

static bool take(struct parser *s, const char *symbol)
{
	size_t len = strlen(symbol);

	skip_blanks(s);
	if ((size_t)(s->end - s->p) < len || memcmp(s->p, symbol, len))
		return false;
	s->p += len;
	return true;
}

static const char *keep(struct parser *s, const char *text, size_t len)
{
	struct expectations *all = s->all;
	char **list = reallocarray(all->word, all->words + 1, sizeof(*list));

	if (!list)
		goto fail;
	all->word = list;
	list[all->words] = strndup(text, len);
	if (list[all->words])
		return list[all->words++];
fail:
	fail_at(s, text, "out of memory");
	return NULL;
}

/* What stands there, for messages. */
static const char *found(const struct parser *s, char *room, size_t size)
{
	size_t len = name_length(s);

	if (s->p >= s->end)
		return "the end of the line";
	snprintf(room, size, "'%.*s'", (int)(len ? (len < 40 ? len : 40) : 1), s->p);
	return room;
}

/* ---- nodes ---- */

static bool add_node(struct parser *s, const struct node *n, unsigned int *index)
{
	struct expectation *e = s->e;
	struct node *grown;

	if (e->nodes == EXPECT_NODES)
		return fail_at(s, s->p, "more than %d operands and operators", EXPECT_NODES);
	if (!(e->nodes & (e->nodes - 1))) {
		grown = reallocarray(e->node, e->nodes ? 2 * e->nodes : 1, sizeof(*grown));
		if (!grown)
			return fail_at(s, s->p, "out of memory");
		e->node = grown;
	}
	e->node[e->nodes] = *n;
	*index = e->nodes++;
	return true;
}

static bool parse_number(struct parser *s, struct node *n)
{
	const char *start = s->p;
	char digits[DIGITS_MAX + 1], *end;
	size_t len = 0, i;

	while (s->p < s->end && (isdigit((unsigned char)*s->p) || *s->p == '.')) {
		if (len == DIGITS_MAX)
			return fail_at(s, start, "a number of more than %d digits", DIGITS_MAX);
		digits[len++] = *s->p++;
	}
	digits[len] = 0;
	n->kind = NODE_NUMBER;
	n->dimension = DIM_ANY;
	n->number = strtold(digits, &end);
	if (*end || end == digits)
		return fail_at(s, start, "'%s' is not a number", digits);
	skip_blanks(s);
	len = name_length(s);
	if (!len || is_word("slack", s->p, len))
		return true;
	for (i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (!is_word(units[i].name, s->p, len))
			continue;
		n->dimension = units[i].dimension;
		n->number *= units[i].scale;
		s->p += len;
		return true;
	}
	return fail_at(s, s->p, "'%.*s' is no unit; there are ns us ms s KiB MiB GiB",
		       (int)(len < 40 ? len : 40), s->p);
}

/* ---- terms ---- */

static bool parse_label(struct parser *s, struct term *t)
{
	const char *const *value, *start;
	const enum label *list;
	size_t n = shape_labels(t->metric->shape, &list), i, len;
	enum label l;

	skip_blanks(s);
	len = name_length(s);
	for (l = 0; l < LABEL_MAX && !is_word(label_name(l), s->p, len); l++)
		;
	for (i = 0; i < n && list[i] != l; i++)
		;
	if (l == LABEL_MAX || (i == n && l < LABEL_OPEN))
		return fail_at(s, s->p, "%s has no label '%.*s'", t->metric->name,
			       (int)(len < 40 ? len : 40), s->p);
	if (t->want[l])
		return fail_at(s, s->p, "the label '%s' comes twice", label_name(l));
	s->p += len;
	if (!take(s, "="))
		return fail_at(s, s->p, "'=' and a value must follow the label");
	skip_blanks(s);
	start = s->p;
	while (s->p < s->end && *s->p != ',' && *s->p != '}' && *s->p != ' ' && *s->p != '\t')
		s->p++;
	len = s->p - start;
	for (value = label_values(l); value && *value; value++)
		if (is_word(*value, start, len))
			t->want[l] = *value;
	if (!len || (value && !t->want[l]))
		return fail_at(s, start, "'%.*s' is no value of the label '%s'; see mmscope list",
			       (int)(len < 40 ? len : 40), start, label_name(l));
	if (!t->want[l])
		t->want[l] = keep(s, start, len);
	return t->want[l];
}

static bool parse_labels(struct parser *s, struct term *t)
{
	if (!take(s, "{"))
		return true;
	do {
		if (!parse_label(s, t))
			return false;
	} while (take(s, ","));
	return take(s, "}") || fail_at(s, s->p, "',' or '}' expected");
}

static bool parse_statistic(struct parser *s, struct node *n)
{
	static const char *const names[] = {
		[STAT_COUNT] = "count", [STAT_SUM] = "sum", [STAT_MEAN] = "mean",
		[STAT_MAX] = "max",
	};
	struct term *t = &n->term;
	bool counter = t->metric->kind == KIND_COUNTER;
	size_t len, i;

	t->statistic = counter ? STAT_VALUE : STAT_MEAN;
	n->dimension = !strcmp(t->metric->unit, "ns") ? DIM_TIME : DIM_NUMBER;
	if (s->p == s->end || *s->p != '.')
		return true;
	s->p++;
	len = name_length(s);
	if (counter)
		return fail_at(s, s->p, "%s is a counter: it has a value only", t->metric->name);
	for (i = STAT_COUNT; i <= STAT_MAX; i++) {
		if (is_word(names[i], s->p, len)) {
			t->statistic = i;
			s->p += len;
			if (i == STAT_COUNT)
				n->dimension = DIM_NUMBER;
			return true;
		}
	}
	if (len >= 2 && len <= 3 && *s->p == 'p' && s->p[1] >= '1' && s->p[1] <= '9' &&
	    isdigit((unsigned char)s->p[len - 1])) {
		t->statistic = STAT_PERCENTILE;
		t->percentile = s->p[1] - '0';
		if (len == 3)
			t->percentile = 10 * t->percentile + s->p[2] - '0';
		s->p += len;
		return true;
	}
	return fail_at(s, s->p, "count, sum, mean, max or p1 to p99 expected, not '%.*s'",
		       (int)(len < 40 ? len : 40), s->p);
}

static bool parse_value(struct parser *s, struct node *n)
{
	const char *start;

	s->p++;		/* the point */
	start = s->p;
	while (s->p < s->end && (is_name_char(*s->p) || *s->p == '.' || *s->p == ':'))
		s->p++;
	if (s->p == start)
		return fail_at(s, start, "the name of a value expected");
	n->term.value = keep(s, start, s->p - start);
	return n->term.value;
}

static bool parse_term(struct parser *s, struct node *n)
{
	struct term *t = &n->term;
	size_t len = name_length(s), i;
	char room[48];

	n->kind = NODE_TERM;
	n->dimension = DIM_ANY;
	t->fact = -1;
	if (is_word("base", s->p, len) && s->p + len < s->end && s->p[len] == '.') {
		t->base = s->e->uses_base = true;
		s->p += len + 1;
		len = name_length(s);
	}
	if (!len)
		return fail_at(s, s->p, "a metric or a number expected, not %s",
			       found(s, room, sizeof(room)));
	if (is_word("value", s->p, len) && s->p + len < s->end && s->p[len] == '.') {
		s->p += len;
		return parse_value(s, n);
	}
	for (i = 0; i < EXPECT_FACTS; i++) {
		if (!is_word(expect_facts[i].name, s->p, len))
			continue;
		t->fact = i;
		n->dimension = expect_facts[i].dimension;
		s->p += len;
		return true;
	}
	for (i = 0; i < METRIC_MAX; i++) {
		if (!is_word(metrics[i].name, s->p, len) || metrics[i].kind == KIND_RATIO)
			continue;
		t->metric = &metrics[i];
		s->p += len;
		return parse_labels(s, t) && parse_statistic(s, n);
	}
	return fail_at(s, s->p, "'%.*s' is no metric; see mmscope list",
		       (int)(len < 40 ? len : 40), s->p);
}

/* ---- expressions ---- */

static bool parse_sum(struct parser *s, unsigned int *index);

static bool parse_factor(struct parser *s, unsigned int *index)
{
	struct node n = { 0 };
	bool ok;

	skip_blanks(s);
	if (take(s, "(")) {
		if (++s->depth > DEPTH_MAX)
			return fail_at(s, s->p, "more than %d parentheses inside each other",
				       DEPTH_MAX);
		ok = parse_sum(s, index) && (take(s, ")") || fail_at(s, s->p, "')' expected"));
		s->depth--;
		return ok;
	}
	if (s->p < s->end && (isdigit((unsigned char)*s->p) || *s->p == '.'))
		ok = parse_number(s, &n);
	else
		ok = parse_term(s, &n);
	return ok && add_node(s, &n, index);
}

/* The dimension of both, when they may be added or compared. */
static bool unify(struct parser *s, const char *at, enum dimension a, enum dimension b,
		  enum dimension *both)
{
	if (a != DIM_ANY && b != DIM_ANY && a != b)
		return fail_at(s, at, "%s meets %s", dimension_names[a], dimension_names[b]);
	*both = a == DIM_ANY ? b : a;
	return true;
}

static bool product_dimension(struct parser *s, const char *at, enum node_kind kind,
			      enum dimension a, enum dimension b, enum dimension *result)
{
	bool plain_a = a <= DIM_NUMBER, plain_b = b <= DIM_NUMBER;

	if (kind == NODE_DIV) {
		/* A rate has no name of its own. */
		*result = plain_b ? a : a == b ? DIM_NUMBER : DIM_ANY;
		return true;
	}
	if (!plain_a && !plain_b)
		return fail_at(s, at, "%s times %s", dimension_names[a], dimension_names[b]);
	*result = a > b ? a : b;
	return true;
}

/* Operators of one precedence, from the left: + - or * /. */
static bool parse_chain(struct parser *s, bool product, unsigned int *index)
{
	static const struct { const char *symbol; enum node_kind kind; } all[2][2] = {
		{ { "+", NODE_ADD }, { "-", NODE_SUB } }, { { "*", NODE_MUL }, { "/", NODE_DIV } },
	};
	bool (*operand)(struct parser *, unsigned int *) = parse_factor;
	const char *at;
	size_t i;

	if (!(product ? operand(s, index) : parse_chain(s, true, index)))
		return false;
	for (;;) {
		struct node n = { .left = *index };
		enum dimension a, b;

		skip_blanks(s);
		at = s->p;
		for (i = 0; i < 2 && !take(s, all[product][i].symbol); i++)
			;
		if (i == 2)
			return true;
		n.kind = all[product][i].kind;
		if (!(product ? operand(s, &n.right) : parse_chain(s, true, &n.right)))
			return false;
		a = s->e->node[n.left].dimension;
		b = s->e->node[n.right].dimension;
		if (!(product ? product_dimension(s, at, n.kind, a, b, &n.dimension) :
		      unify(s, at, a, b, &n.dimension)) || !add_node(s, &n, index))
			return false;
	}
}

static bool parse_sum(struct parser *s, unsigned int *index)
{
	return parse_chain(s, false, index);
}

static bool parse_operator(struct parser *s, enum compare_op *op)
{
	static const enum compare_op longest_first[] = { OP_LE, OP_GE, OP_EQ, OP_NE, OP_LT, OP_GT };
	char room[48];
	size_t i;

	for (i = 0; i < sizeof(longest_first) / sizeof(*longest_first); i++) {
		*op = longest_first[i];
		if (take(s, expect_operators[*op]))
			return true;
	}
	return fail_at(s, s->p, "<, <=, >, >=, == or != expected, not %s",
		       found(s, room, sizeof(room)));
}

static bool parse_slack(struct parser *s)
{
	struct expectation *e = s->e;
	struct node n = { 0 };
	const char *at;

	skip_blanks(s);
	at = s->p;
	if (!is_word("slack", s->p, name_length(s)))
		return true;
	if (e->op == OP_NE)
		return fail_at(s, at, "!= takes no slack");
	s->p += strlen("slack");
	skip_blanks(s);
	at = s->p;
	if (s->p == s->end || (!isdigit((unsigned char)*s->p) && *s->p != '.'))
		return fail_at(s, s->p, "a number expected after slack");
	if (!parse_number(s, &n) || !unify(s, at, e->dimension, n.dimension, &e->dimension))
		return false;
	e->slack = n.number;
	return true;
}

static bool parse_line(struct parser *s)
{
	struct expectation *e = s->e;
	const char *at;
	char room[48];

	if (!parse_sum(s, &e->left))
		return false;
	skip_blanks(s);
	at = s->p;
	if (!parse_operator(s, &e->op) || !parse_sum(s, &e->right) ||
	    !unify(s, at, e->node[e->left].dimension, e->node[e->right].dimension,
		   &e->dimension) || !parse_slack(s))
		return false;
	skip_blanks(s);
	return s->p == s->end || fail_at(s, s->p, "%s is one word too many",
					 found(s, room, sizeof(room)));
}

/* ---- lines ---- */

static bool add_line(struct parser *s)
{
	struct expectations *all = s->all;
	struct expectation *grown;

	if (all->items == ITEMS_MAX)
		return fail_at(s, s->p, "more than %d expectations", ITEMS_MAX);
	grown = reallocarray(all->item, all->items + 1, sizeof(*grown));
	if (!grown)
		return fail_at(s, s->p, "out of memory");
	all->item = grown;
	s->e = &grown[all->items++];
	*s->e = (struct expectation){ .line = s->number, .text = strndup(s->p, s->end - s->p) };
	if (!s->e->text)
		return fail_at(s, s->p, "out of memory");
	s->depth = 0;
	return parse_line(s);
}

/* A line up to its comment, without blanks around it. */
static bool take_line(struct parser *s, const char *line, size_t len)
{
	const char *comment = memchr(line, '#', len);
	size_t i;

	s->line = s->p = line;
	s->end = comment ? comment : line + len;
	s->number++;
	if (len > LINE_BYTES)
		return fail_at(s, line, "a line of more than %d bytes", LINE_BYTES);
	for (i = 0; i < (size_t)(s->end - line); i++)
		if ((unsigned char)line[i] < ' ' && line[i] != '\t' && line[i] != '\r')
			return fail_at(s, line + i, "a control character (0x%02x)",
				       (unsigned char)line[i]);
	skip_blanks(s);
	while (s->end > s->p && strchr(" \t\r", s->end[-1]))
		s->end--;
	return s->p == s->end || add_line(s);
}

struct expectations *expect_parse(const char *name, const char *text, size_t len)
{
	struct parser s = { .name = name, .all = calloc(1, sizeof(*s.all)) };
	const char *end = text + len, *newline;
	bool ok = true;

	if (!s.all) {
		err("%s", "out of memory", name);
		return NULL;
	}
	for (; ok && text < end; text = newline + 1) {
		newline = memchr(text, '\n', end - text);
		if (!newline)
			newline = end;
		ok = take_line(&s, text, newline - text);
	}
	if (ok && !s.all->items) {
		err("%s", "no expectation in it", name);
		ok = false;
	}
	if (ok)
		return s.all;
	expect_free(s.all);
	return NULL;
}

void expect_free(struct expectations *e)
{
	size_t i;

	if (!e)
		return;
	for (i = 0; i < e->items; i++) {
		free(e->item[i].text);
		free(e->item[i].node);
	}
	for (i = 0; i < e->words; i++)
		free(e->word[i]);
	free(e->item);
	free(e->word);
	free(e);
}

size_t expect_count(const struct expectations *e)
{
	return e->items;
}

unsigned int expect_base_line(const struct expectations *e)
{
	size_t i;

	for (i = 0; i < e->items; i++)
		if (e->item[i].uses_base)
			return e->item[i].line;
	return 0;
}
