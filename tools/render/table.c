// SPDX-License-Identifier: GPL-2.0-only
/* Aligned columns. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "render/text.h"

void table_cell(struct table *t, const char *format, ...)
{
	char **grown, *text;
	va_list ap;
	int n;

	grown = reallocarray(t->cell, t->cells + 1, sizeof(*grown));
	if (!grown) {
		t->broken = true;
		return;
	}
	t->cell = grown;
	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	if (n < 0) {
		t->broken = true;
		return;
	}
	t->cell[t->cells++] = text;
}

static size_t widths(const struct table *t, size_t *width)
{
	size_t i, sum = 0;

	memset(width, 0, t->columns * sizeof(*width));
	for (i = 0; i < t->cells; i++) {
		size_t n = text_columns(t->cell[i]), c = i % t->columns;

		if (n > width[c])
			width[c] = n;
	}
	for (i = 0; i < t->columns; i++)
		sum += width[i];
	return sum;
}

static void print_row(FILE *f, const struct table *t, size_t row, const size_t *width,
		      size_t columns, unsigned int gap)
{
	size_t c, pad;

	/* No white space at the end of a line. */
	while (columns && !*t->cell[row * t->columns + columns - 1])
		columns--;
	for (c = 0; c < columns; c++) {
		const char *text = t->cell[row * t->columns + c];

		pad = width[c] - text_columns(text);
		if (c)
			fprintf(f, "%*s", (int)gap, "");
		if (c >= t->left)
			fprintf(f, "%*s%s", (int)pad, "", text);
		else if (c + 1 < columns)
			fprintf(f, "%s%*s", text, (int)pad, "");
		else
			fputs(text, f);
	}
}

void table_print(FILE *f, const struct view *view, const struct table *t)
{
	size_t width[TABLE_COLUMNS], sum, row, columns = t->columns;
	unsigned int gap = 2;

	sum = widths(t, width);
	if (sum + gap * (columns - 1) > view_width(view))
		gap = 1;
	while (columns > t->keep && t->keep && sum + gap * (columns - 1) > view_width(view))
		sum -= width[--columns];

	for (row = 0; row < t->cells / t->columns; row++) {
		if (!row)
			text_colour(f, view, "4");
		print_row(f, t, row, width, columns, gap);
		if (!row)
			text_colour(f, view, NULL);
		fputc('\n', f);
	}
	if (t->broken)
		fputs("(rows are missing: out of memory)\n", f);
}

void table_free(struct table *t)
{
	size_t i;

	for (i = 0; i < t->cells; i++)
		free(t->cell[i]);
	free(t->cell);
	t->cell = NULL;
	t->cells = 0;
}
