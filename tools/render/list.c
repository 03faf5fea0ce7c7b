// SPDX-License-Identifier: GPL-2.0-only
/* The tables of metrics and labels, for people. */
#include <errno.h>
#include <string.h>

#include "render/list.h"

#define LABEL_VALUES	80	/* columns of them in a line */

const char *metric_kind_name(enum metric_kind kind)
{
	static const char *const name[] = { "counter", "time", "batch", "ratio" };

	return name[kind];
}

const char *metric_better_name(enum metric_better better)
{
	static const char *const name[] = { "lower", "higher", "neither" };

	return name[better];
}

static void join_labels(const struct metric *m, const char *between, char *out, size_t size)
{
	const enum label *label;
	size_t i, n = shape_labels(m->shape, &label), len = 0;

	*out = 0;
	for (i = 0; i < n && len < size; i++)
		len += snprintf(out + len, size - len, "%s%s", i ? between : "",
				label_name(label[i]));
	if (!n)
		snprintf(out, size, "none");
}

static int finish(FILE *f)
{
	/* Why an earlier write failed is not kept: one more fails in the same way. */
	if (ferror(f))
		fputc('\n', f);
	errno = 0;
	if (fflush(f) || ferror(f))
		return errno ? -errno : -EIO;
	return 0;
}

int list_text(FILE *f, const struct view *view)
{
	struct table t = { .columns = 6, .left = 6 };
	static const char *const head[] = { "metric", "kind", "unit", "better", "exact", "labels" };
	const char *const *value;
	char labels[160];
	size_t i;

	for (i = 0; i < t.columns; i++)
		table_cell(&t, "%s", head[i]);
	for (i = 0; i < METRIC_MAX; i++) {
		const struct metric *m = &metrics[i];

		join_labels(m, " ", labels, sizeof(labels));
		table_cell(&t, "%s%s", m->name, m->primary ? " *" : "");
		table_cell(&t, "%s", metric_kind_name(m->kind));
		table_cell(&t, "%s", m->unit);
		table_cell(&t, "%s", metric_better_name(m->better));
		table_cell(&t, "%s", m->exact ? "yes" : "no");
		table_cell(&t, "%s", labels);
	}
	table_print(f, view, &t);
	table_free(&t);
	fputs("*: primary, decides a comparison\n\n", f);

	t = (struct table){ .columns = 2, .left = 2 };
	table_cell(&t, "metric");
	table_cell(&t, "what it counts");
	for (i = 0; i < METRIC_MAX; i++) {
		table_cell(&t, "%s", metrics[i].name);
		table_cell(&t, "%s", metrics[i].help);
	}
	table_print(f, view, &t);
	table_free(&t);
	fputc('\n', f);

	t = (struct table){ .columns = 2, .left = 2 };
	table_cell(&t, "label");
	table_cell(&t, "values");
	for (i = 0; i < LABEL_MAX; i++) {
		char text[256] = "found at run time";
		size_t len = 0;

		table_cell(&t, "%s", label_name(i));
		for (value = label_values(i); value && *value && len < sizeof(text); value++) {
			if (len + strlen(*value) > LABEL_VALUES) {
				table_cell(&t, "%s", text);
				table_cell(&t, "%s", "");
				len = 0;
			}
			len += snprintf(text + len, sizeof(text) - len, "%s%s", len ? " " : "",
					*value);
		}
		table_cell(&t, "%s", text);
	}
	table_print(f, view, &t);
	table_free(&t);
	return finish(f);
}

static void markdown_metric(FILE *f, const struct metric *m)
{
	char labels[160];
	const char *between = "";
	size_t e;

	join_labels(m, ", ", labels, sizeof(labels));
	fprintf(f, "\n## %s\n\n%c%s.\n\n", m->name, m->help[0] & ~0x20, m->help + 1);
	fprintf(f, "- kind: %s, in %s; better: %s\n", metric_kind_name(m->kind), m->unit,
		metric_better_name(m->better));
	fprintf(f, "- labels: %s\n", labels);
	fprintf(f, "- exact for a workload of known work: %s%s\n", m->exact ? "yes" : "no",
		m->primary ? "; decides a comparison (primary)" : "");
	fputs("- needs: ", f);
	for (e = 0; e < EVENT_MAX; e++) {
		if (!(m->events & EVENT_BIT(e)))
			continue;
		fprintf(f, "%s%s", between, events[e].name);
		between = ", ";
	}
	fputc('\n', f);
}

int list_markdown(FILE *f)
{
	const char *const *value;
	size_t i;

	fputs("<!-- SPDX-License-Identifier: GPL-2.0-only -->\n"
	      "<!-- Made by `mmscope list --markdown`: change the tables in tools/data/. -->\n"
	      "# Metrics\n\n"
	      "A `counter` is a number of things. `time` is a histogram of nanoseconds: 0 to 7\n"
	      "each have a bucket, above there are 8 buckets per power of two up to 2^40.\n"
	      "`batch` is a histogram of whole numbers: 0 to 512 each have a bucket, above there\n"
	      "are 8 per power of two up to 16384. Buckets are half-open, `[low, high)`, and the\n"
	      "last one has no upper bound.\n\n"
	      "A metric whose events cannot all be observed is unavailable, with the reason; it\n"
	      "is never printed as 0. Lost runs of a metric's programs widen a counter to an\n"
	      "interval and make a histogram a lower bound.\n", f);
	for (i = 0; i < METRIC_MAX; i++)
		markdown_metric(f, &metrics[i]);

	fputs("\n# Labels\n\n| label | values |\n|---|---|\n", f);
	for (i = 0; i < LABEL_MAX; i++) {
		fprintf(f, "| %s |", label_name(i));
		if (!label_values(i))
			fputs(" found at run time", f);
		for (value = label_values(i); value && *value; value++)
			fprintf(f, " `%s`", *value);
		fputs(" |\n", f);
	}
	fputs("\n# Events\n\n| event | functions, in order of preference | what it tells |\n"
	      "|---|---|---|\n", f);
	for (i = 0; i < EVENT_MAX; i++) {
		const char *p = events[i].symbols;

		fprintf(f, "| %s | ", events[i].name);
		while (*p) {
			size_t n = strcspn(p, ",");

			fprintf(f, "`%.*s`%s", (int)n, p, p[n] ? ", " : "");
			p += n + !!p[n];
		}
		fprintf(f, " | %s |\n", events[i].help);
	}
	return finish(f);
}
