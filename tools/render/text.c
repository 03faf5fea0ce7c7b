// SPDX-License-Identifier: GPL-2.0-only
/* Numbers, words and bars of the text reports. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "data/utf8.h"
#include "render/text.h"

#define SCALE_FROM	10000000ULL

/*
 * By the variables and not setlocale(): a static binary carries no locales, and
 * the decimal point must not change.
 */
static bool utf8_locale(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	const char *value, *charset;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		value = getenv(names[i]);
		if (!value || !*value)
			continue;
		charset = strchr(value, '.');
		return charset && (!strncasecmp(charset, ".utf-8", 6) ||
				   !strncasecmp(charset, ".utf8", 5));
	}
	return false;
}

void view_init(struct view *view, FILE *f)
{
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
	bool tty = isatty(fileno(f));
	struct winsize size;

	memset(view, 0, sizeof(*view));
	view->utf8 = utf8_locale();
	view->colour = tty && !(none && *none) && term && strcmp(term, "dumb");
	view->width = TEXT_WIDTH;
	if (tty && !ioctl(fileno(f), TIOCGWINSZ, &size) && size.ws_col &&
	    size.ws_col < TEXT_WIDTH)
		view->width = size.ws_col < 60 ? 60 : size.ws_col;
}

unsigned int view_width(const struct view *view)
{
	return view->width ? view->width : TEXT_WIDTH;
}

void text_colour(FILE *f, const struct view *view, const char *code)
{
	if (view->colour)
		fprintf(f, "\033[%sm", code ? code : "0");
}

/* All of these are far shorter than a struct text. */
static struct text format(const char *f, ...) __attribute__((format(printf, 1, 2)));

static struct text format(const char *f, ...)
{
	struct text t;
	va_list ap;

	va_start(ap, f);
	vsnprintf(t.s, sizeof(t.s), f, ap);
	va_end(ap);
	return t;
}

/* Three significant digits, as many as a bucket's bounds are good for. */
static int digits_of(double v)
{
	return v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
}

struct text text_count(uint64_t n)
{
	static const char suffix[] = "MGTPE";
	size_t i = 0;
	double v;

	if (n <= SCALE_FROM)
		return format("%" PRIu64, n);
	for (v = n / 1e6; v >= 999.5 && suffix[i + 1]; v /= 1000)
		i++;
	return format("%.*f%c", digits_of(v), v, suffix[i]);
}

struct text text_total(const struct total *total)
{
	if (total->flags & SAMPLE_SATURATED || total->flags & SAMPLE_LOWER_BOUND)
		return format("at least %s", text_count(total->min).s);
	if (total->max > total->min)
		return format("%s to %s", text_count(total->min).s, text_count(total->max).s);
	return text_count(total->value);
}

struct text text_cell(const struct total *total)
{
	const char *mark = total->flags & SAMPLE_INFERRED ? "~" : "";

	if (total->flags & (SAMPLE_SATURATED | SAMPLE_LOWER_BOUND))
		return format("%s%s+", mark, text_count(total->min).s);
	if (total->max > total->min)
		return format("%s%s-%s", mark, text_count(total->min).s,
			      text_count(total->max).s);
	return format("%s%s", mark, text_count(total->value).s);
}

struct text text_ratio(uint64_t a, uint64_t b)
{
	struct text t = { "-" };
	double v;

	if (!b)
		return t;
	v = (double)a / (double)b;
	if (v > SCALE_FROM)
		return text_count((uint64_t)v);
	return format("%.*f", digits_of(v), v);
}

struct text text_percent(uint64_t part, uint64_t whole)
{
	struct text t = { "-" };
	double v;

	if (!whole)
		return t;
	v = 100.0 * (double)part / (double)whole;
	return format("%.*f %%", v > 0 && v < 9.95 ? 1 : 0, v);
}

static const struct {
	double ns;
	const char *name;
} units[] = { { 1, "ns" }, { 1e3, "us" }, { 1e6, "ms" }, { 1e9, "s" }, { 6e10, "min" } };

static size_t unit_of(uint64_t ns)
{
	size_t i = 0;

	/* Minutes only from 10 on: "90.0 s" says more than "1.50 min". */
	while (i + 1 < sizeof(units) / sizeof(*units) &&
	       ns >= (i == 3 ? 600e9 : 0.9995 * units[i + 1].ns))
		i++;
	return i;
}

static struct text scaled(uint64_t ns, size_t unit)
{
	double v = (double)ns / units[unit].ns;

	return format("%.*f", unit ? digits_of(v) : 0, v);
}

struct text text_time(uint64_t ns)
{
	size_t unit = unit_of(ns);

	return format("%s %s", scaled(ns, unit).s, units[unit].name);
}

struct text text_time_bounds(uint64_t low, uint64_t high)
{
	size_t unit = unit_of(high);

	if (!high)
		return format(">= %s", text_time(low).s);
	if (high == low + 1)
		return text_time(low);
	return format("%s .. %s %s", scaled(low, unit).s,
		 scaled(high, unit).s, units[unit].name);
}

struct text text_time_below(uint64_t low, uint64_t high)
{
	uint64_t bound = high ? high : low;
	size_t unit = unit_of(bound);

	return format("%s%s%s", high ? "<" : ">=", scaled(bound, unit).s,
		 units[unit].name);
}

void text_escape(char *out, size_t size, const char *text)
{
	static const char cut[] = "...";
	size_t len = 0, safe = 0, piece;
	const char *p;
	char hex[8];
	int n, i;

	for (p = text; *p; p += n) {
		n = utf8_length(p);
		if (n && !utf8_is_control(p, n)) {
			piece = n;
		} else {
			n = n ? n : 1;
			piece = 4 * n;
		}
		if (len + piece >= size) {
			len = safe;
			memcpy(out + len, cut, sizeof(cut) - 1);
			len += sizeof(cut) - 1;
			break;
		}
		if (piece == (size_t)n) {
			memcpy(out + len, p, n);
		} else {
			for (i = 0; i < n; i++) {
				snprintf(hex, sizeof(hex), "\\x%02x", (unsigned char)p[i]);
				memcpy(out + len + 4 * i, hex, 4);
			}
		}
		len += piece;
		if (len + sizeof(cut) <= size)
			safe = len;
	}
	out[len] = 0;
}

size_t text_columns(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

void text_wrap(FILE *f, const struct view *view, const char *colour, unsigned int indent,
	       const char *text)
{
	unsigned int width = view_width(view), column = 0;

	if (colour)
		text_colour(f, view, colour);
	while (*text) {
		size_t len = strcspn(text, " "), columns = 0, i;

		for (i = 0; i < len; i++)
			columns += ((unsigned char)text[i] & 0xc0) != 0x80;
		if (column && column + 1 + columns > width) {
			fprintf(f, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column) {
			fputc(' ', f);
			column++;
		}
		fprintf(f, "%.*s", (int)len, text);
		column += columns;
		text += len;
		text += strspn(text, " ");
	}
	if (colour)
		text_colour(f, view, NULL);
	fputc('\n', f);
}

void text_bar(FILE *f, const struct view *view, uint64_t value, uint64_t max,
	      unsigned int columns)
{
	static const char *const part[] = { "", "\u258f", "\u258e", "\u258d", "\u258c",
					    "\u258b", "\u258a", "\u2589" };
	unsigned int steps = view->utf8 ? 8 : 1, n;

	if (!value || !max)
		return;
	n = (unsigned int)((double)value / (double)max * columns * steps);
	if (!n)
		n = 1;
	for (; n >= steps; n -= steps)
		fputs(view->utf8 ? "\u2588" : "#", f);
	if (n)
		fputs(part[n], f);
}
