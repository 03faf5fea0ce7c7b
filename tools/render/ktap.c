// SPDX-License-Identifier: GPL-2.0-only
/* Results of expectations in the kernel's test format. */
#include <math.h>

#include "render/ktap.h"
#include "render/text.h"

void ktap_plan(FILE *f, size_t n)
{
	fprintf(f, "KTAP version 1\n1..%zu\n", n);
}

static struct text number(long double v)
{
	struct text t;

	/* Counts in full; what has a fraction as far as it tells anything. */
	if (v == floorl(v) && fabsl(v) < 1e19L)
		snprintf(t.s, sizeof(t.s), "%.0Lf", v);
	else
		snprintf(t.s, sizeof(t.s), "%.10Lg", v);
	return t;
}

/* "128", "128 to 133", "128 or more", with its unit. */
static void print_interval(FILE *f, struct interval v, const char *unit)
{
	const char *gap = *unit ? " " : "";

	if (v.low == v.high)
		fprintf(f, "%s%s%s", number(v.low).s, gap, unit);
	else if (isinf(v.low) && isinf(v.high))
		fputs("anything", f);
	else if (isinf(v.high))
		fprintf(f, "%s%s%s or more", number(v.low).s, gap, unit);
	else if (isinf(v.low))
		fprintf(f, "%s%s%s or less", number(v.high).s, gap, unit);
	else
		fprintf(f, "%s to %s%s%s", number(v.low).s, number(v.high).s, gap, unit);
}

static void print_boot(FILE *f, const struct expect_result *r, size_t i)
{
	static const char *const verdicts[] = { "holds", "does not hold", "cannot tell" };
	const struct expect_boot *b = &r->boot[i];

	fputs("# ", f);
	if (r->boots > 1)
		fprintf(f, "boot %zu: ", i + 1);
	if (isnan(b->value.low)) {
		char reason[240];

		text_escape(reason, sizeof(reason), b->reason);
		fprintf(f, "no value: %s\n", reason);
		return;
	}
	fputs("value ", f);
	print_interval(f, b->value, r->unit);
	fprintf(f, ", bound %s ", r->operator);
	print_interval(f, b->bound, r->unit);
	if (r->slack > 0)
		fprintf(f, " slack %s", number(r->slack).s);
	if (r->inferred)
		fputs(", inferred", f);
	if (b->runs > 1)
		fprintf(f, ", median of %zu runs", b->runs);
	if (r->boots > 1)
		fprintf(f, ": %s", verdicts[b->verdict]);
	fputc('\n', f);
}

void ktap_result(FILE *f, size_t number, const struct expect_result *r)
{
	char text[4200], reason[300];
	size_t i;

	for (i = 0; i < r->boots; i++)
		print_boot(f, r, i);
	text_escape(text, sizeof(text), r->text);
	fprintf(f, "%s %zu - %s", r->verdict == EXPECT_NOT_OK ? "not ok" : "ok", number, text);
	if (r->verdict == EXPECT_SKIP) {
		text_escape(reason, sizeof(reason), r->reason);
		fprintf(f, " # SKIP %s", reason);
	}
	fputc('\n', f);
}
