// SPDX-License-Identifier: GPL-2.0-only
/*
 * time-limit: 240
 *
 * Simulated recordings through the whole comparison: how often it calls two equal
 * kernels unlike, and how often it finds a shift. With an argument it prints the
 * full table instead, as Markdown: tests/long/simulation.sh.
 *
 * log(value of a run) = shift + boot + run, both normal: what all runs of a boot
 * share, and what each has of its own.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/compare.h"
#include "data/stats.h"
#include "unit/simulate.h"

static void expect_quiet(const struct setting *s, size_t n)
{
	struct rates r = rates_of(s, n);
	double upper = stats_rate_upper(r.worse, n, 0.05);

	print_message("# %zu boots, %zu runs, %zu primaries, boot sd %g, run sd %g%s: %zu of %zu "
		      "worse, upper bound %.4f\n", s->boots, s->runs, s->primaries, s->boot_sd,
		      s->run_sd, s->blocks ? ", blocks" : "", r.worse, n, upper);
	if (upper > FALSE_WORSE)
		fail_msg("too many");
}

static void test_equal(void **state)
{
	expect_quiet(&(struct setting){ 10, 5, 1, .01, .01 }, 2000);
	expect_quiet(&(struct setting){ 10, 5, 1, .04, .04, .blocks = true }, 1000);
	expect_quiet(&(struct setting){ 10, 3, 5, .04, .02 }, 500);
}

/* The worst that noise can do: far beyond the margin, where only the level protects. */
static void test_noisy(void **state)
{
	struct rates r = rates_of(&(struct setting){ 10, 2, 1, .5, .5 }, 1000);

	/* Two-sided 4 %: 2 % worse, and what chance may add in 1000. */
	assert_true(stats_rate_upper(r.worse, r.n, 0.05) < 0.03);
	assert_true(r.worse > 0);
}

/* A rank test over runs would take ten runs of a boot for ten values. */
static void test_power(void **state)
{
	struct rates r = rates_of(&(struct setting){ 10, 5, 1, .005, .01, .shift = .1 }, 300);

	assert_int_equal(r.worse, 300);
	r = rates_of(&(struct setting){ 10, 5, 1, .005, .01, .shift = -.1 }, 300);
	assert_int_equal(r.held, 300);
	r = rates_of(&(struct setting){ 10, 5, 1, .005, .005 }, 300);
	assert_true(r.held > 295);	/* the same within 3 % */
	r = rates_of(&(struct setting){ 1, 10, 1, .02, .005, .shift = .1 }, 300);
	assert_int_equal(r.none, 300);
}

/* ---- the full table ---- */

static const double shifts[] = { .02, .03, .05, .1 }, sds[] = { .005, .01, .02, .04 };

static int table_equal(void)
{
	static const struct setting s[] = {
		{ 10, 5, 1, .005, .005 }, { 10, 5, 1, .01, .01 }, { 10, 5, 1, .02, .02 },
		{ 10, 5, 1, .04, .04 }, { 10, 5, 1, .01, .01, .blocks = true },
		{ 10, 5, 1, .04, .04, .blocks = true }, { 10, 5, 5, .04, .04 },
		{ 5, 5, 5, .04, .04 }, { 4, 5, 1, .04, .04 }, { 10, 5, 1, .1, .1 },
		/* So noisy that the margin does not help: the level alone. */
		{ 10, 5, 1, .5, .5 }, { 10, 5, 3, .5, .5 }, { 10, 5, 3, .5, .5, .blocks = true },
	};
	size_t i, n = 10000;
	int failed = 0;

	printf("## Equal kernels\n\n%zu pairs each, no shift. Upper bound: one-sided 95 %% "
	       "(Clopper-Pearson) of the\nrate of exit status 1; it must not exceed %g %%.\n\n"
	       "| boots a side | runs | primaries | pairing | boot sd | run sd | worse (1) | "
	       "held (0) | cannot tell (125) | upper bound |\n"
	       "|---|---|---|---|---|---|---|---|---|---|\n",
	       n, 100 * FALSE_WORSE);
	for (i = 0; i < sizeof(s) / sizeof(*s); i++) {
		struct rates r = rates_of(&s[i], n);
		double upper = stats_rate_upper(r.worse, n, 0.05);

		printf("| %zu | %zu | %zu | %s | %g %% | %g %% | %zu | %zu | %zu | %.2f %% |\n",
		       s[i].boots, s[i].runs, s[i].primaries, s[i].blocks ? "blocks" : "none",
		       100 * s[i].boot_sd, 100 * s[i].run_sd, r.worse, r.held, r.none,
		       100 * upper);
		fflush(stdout);
		failed |= upper > FALSE_WORSE;
	}
	printf("\nThe last rows show what the level alone gives (2 %% at most), when noise is far "
	       "beyond the\nmargin.\n");
	return failed;
}

static void table_power(bool blocks)
{
	size_t i, k, n = 2000;

	printf("\n## Shifts found, %s\n\nShare of %zu pairs that exit with 1 / with 0 / with 125. "
	       "10 boots a side, 5 runs a boot, run\nsd equal to boot sd, one primary metric, "
	       "margin 3 %%: a shift at or below it may be\ncalled worse in 2 %% at most.\n\n"
	       "| shift |",
	       blocks ? "boots in turns" : "boots not in turns", n);
	for (k = 0; k < sizeof(sds) / sizeof(*sds); k++)
		printf(" boot sd %g %% |", 100 * sds[k]);
	printf("\n|---|---|---|---|---|\n");
	for (i = 0; i < sizeof(shifts) / sizeof(*shifts); i++) {
		printf("| %g %% |", 100 * shifts[i]);
		for (k = 0; k < sizeof(sds) / sizeof(*sds); k++) {
			struct setting s = { 10, 5, 1, sds[k], sds[k], log1p(shifts[i]), blocks };
			struct rates r = rates_of(&s, n);

			printf(" %.1f / %.1f / %.1f %% |", 100.0 * r.worse / n, 100.0 * r.held / n,
			       100.0 * r.none / n);
			fflush(stdout);
		}
		putchar('\n');
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal), cmocka_unit_test(test_noisy),
		cmocka_unit_test(test_power),
	};

	if (argc > 1) {
		int failed = table_equal();

		table_power(false);
		table_power(true);
		return failed;
	}
	return cmocka_run_group_tests_name("simulation", tests, NULL, NULL);
}
