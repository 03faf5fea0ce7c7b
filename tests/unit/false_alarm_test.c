// SPDX-License-Identifier: GPL-2.0-only
/*
 * time-limit: 240
 *
 * How often a comparison of one kernel with itself says "worse": random splits of
 * the boots that tests/data/study/false_alarm.json holds (one kernel, tests/long/
 * false_alarm.py --record), and simulated pairs with the variances of those boots.
 * And that a change is found in the same data. With an argument it prints the full
 * table as Markdown: tests/long/false_alarm.py.
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
#include "data/read.h"
#include "unit/simulate.h"

#define TIMES	3	/* primaries of the data that are times: the last ones */

static struct recording *whole;
static size_t *of_boot;		/* boot of each run, in the order of the file */
static size_t boots;

static void load(const char *name)
{
	const char *tree = getenv("MMSCOPE_TREE");
	char path[4096];
	size_t i;

	snprintf(path, sizeof(path), "%s/tests/data/study/%s.json", tree ? tree : ".", name);
	whole = recording_read(path);
	assert_non_null(whole);
	of_boot = calloc(whole->runs, sizeof(*of_boot));
	assert_non_null(of_boot);
	for (i = boots = 0; i < whole->runs; i++) {
		if (!i || strcmp(whole->run[i]->boot_id, whole->run[i - 1]->boot_id))
			boots++;
		of_boot[i] = boots - 1;
	}
}

static void unload(void)
{
	recording_free(whole);
	free(of_boot);
}

/* A recording of the boots that are marked with `side`; its runs are borrowed. */
static struct recording *take(const char *mark, char side)
{
	struct recording *rec = recording_new();
	size_t i;

	assert_non_null(rec);
	rec->machine = whole->machine;
	memcpy(rec->primary, whole->primary, sizeof(rec->primary));
	rec->primaries = whole->primaries;
	rec->run = calloc(whole->runs + 1, sizeof(*rec->run));
	assert_non_null(rec->run);
	for (i = 0; i < whole->runs; i++)
		if (mark[of_boot[i]] == side)
			rec->run[rec->runs++] = whole->run[i];
	return rec;
}

static void give_back(struct recording *rec)
{
	rec->runs = 0;
	recording_free(rec);
}

/* n boots a side, by chance and without replacement. */
static void split_boots(char *mark, size_t n)
{
	size_t i, k, left;

	memset(mark, 0, boots);
	for (i = 0; i < 2 * n; i++) {
		/* The k-th of those that are left. */
		k = (size_t)(uniform() * (double)(boots - i));
		for (left = 0; mark[left] || k; left++)
			k -= !mark[left];
		mark[left] = i < n ? 'a' : 'b';
	}
}

/* n of the blocks in which they were booted; which of the two is which, by chance. */
static void split_blocks(char *mark, size_t n)
{
	size_t i, k, block, all = boots / 2;

	memset(mark, 0, boots);
	for (i = 0; i < n; i++) {
		k = (size_t)(uniform() * (double)(all - i));
		for (block = 0; mark[2 * block] || k; block++)
			k -= !mark[2 * block];
		mark[2 * block] = uniform() < .5 ? 'a' : 'b';
		mark[2 * block + 1] = mark[2 * block] == 'a' ? 'b' : 'a';
	}
}

static int compare_split(const char *mark, enum evidence_kind *kind)
{
	struct recording *a = take(mark, 'a'), *b = take(mark, 'b');
	struct comparison *c = comparison_new(a, b, NULL);
	int status;

	assert_non_null(c);
	status = c->status;
	*kind = c->kind;
	comparison_free(c);
	give_back(a);
	give_back(b);
	return status;
}

static struct rates split_rates(size_t side, bool blocks, size_t n)
{
	struct rates r = { .n = n };
	char *mark = malloc(boots);
	enum evidence_kind kind;
	size_t i;

	assert_non_null(mark);
	for (i = 0; i < n; i++) {
		if (blocks)
			split_blocks(mark, side);
		else
			split_boots(mark, side);
		switch (compare_split(mark, &kind)) {
		case 0:
			r.held++;
			break;
		case 1:
			r.worse++;
			break;
		default:
			r.none++;
		}
		if (blocks)
			assert_int_equal(kind, EVIDENCE_BLOCKS);
	}
	free(mark);
	return r;
}

/* ---- the variances of the data ---- */

/* A time of a run that was not observed; NaN: it does not tell. */
static double time_of(const struct run *run, const char *name)
{
	size_t i;

	if (run_observed(run))
		return NAN;
	if (!strcmp(name, "wall_ns"))
		return log((double)run->wall_ns);
	for (i = 0; i < run->values; i++)
		if (!strcmp(run->value[i].name, name))
			return log(run->value[i].value);
	return NAN;
}

/* Covariances of the logarithms of the times between boots, and inside them. */
struct fit {
	double boot[TIMES][TIMES], run[TIMES][TIMES];
	double boot_root[TIMES * SIMULATED_MAX], run_root[TIMES * SIMULATED_MAX];
	size_t runs;	/* of a boot that tell times */
};

/* Cholesky; what sampling made negative is 0. */
static void root_of(double c[TIMES][TIMES], double *root)
{
	size_t i, j, k;

	memset(root, 0, TIMES * SIMULATED_MAX * sizeof(*root));
	for (i = 0; i < TIMES; i++) {
		for (j = 0; j <= i; j++) {
			double sum = c[i][j], *to = &root[i * SIMULATED_MAX + j];

			for (k = 0; k < j; k++)
				sum -= root[i * SIMULATED_MAX + k] * root[j * SIMULATED_MAX + k];
			if (i == j)
				*to = sqrt(fmax(0, sum));
			else if (root[j * SIMULATED_MAX + j] > 0)
				*to = sum / root[j * SIMULATED_MAX + j];
		}
	}
}

/* One-way analysis of variance, for each pair of times. */
static void fit_all(struct fit *f)
{
	double (*mean)[TIMES] = calloc(boots, sizeof(*mean)), all[TIMES] = { 0 }, v[TIMES];
	double between[TIMES][TIMES] = { 0 };
	size_t *n = calloc(boots, sizeof(*n)), i, j, k, pass;

	assert_true(mean && n);
	*f = (struct fit){ 0 };
	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < whole->runs; i++) {
			size_t b = of_boot[i];

			for (k = 0; k < TIMES; k++)
				v[k] = time_of(whole->run[i],
					       whole->primary[whole->primaries - TIMES + k]);
			if (isnan(v[0] + v[1] + v[2]))
				continue;
			n[b] += !pass;
			for (k = 0; k < TIMES; k++) {
				mean[b][k] += pass ? 0 : v[k];
				for (j = 0; pass && j < TIMES; j++)
					f->run[k][j] += (v[k] - mean[b][k]) * (v[j] - mean[b][j]);
			}
		}
		f->runs = n[0];
		for (i = 0; i < boots && !pass; i++) {
			assert_int_equal(n[i], f->runs);
			for (k = 0; k < TIMES; k++) {
				mean[i][k] /= f->runs;
				all[k] += mean[i][k] / boots;
			}
		}
	}
	for (k = 0; k < TIMES; k++) {
		for (j = 0; j < TIMES; j++) {
			for (i = 0; i < boots; i++)
				between[k][j] += (mean[i][k] - all[k]) * (mean[i][j] - all[j]);
			f->run[k][j] /= boots * (f->runs - 1);
			f->boot[k][j] = between[k][j] / (boots - 1) - f->run[k][j] / f->runs;
		}
		f->boot[k][k] = fmax(0, f->boot[k][k]);
	}
	root_of(f->boot, f->boot_root);
	root_of(f->run, f->run_root);
	free(mean);
	free(n);
}

/* As if the times had nothing to do with each other. */
static void make_independent(struct fit *f)
{
	size_t k;

	memset(f->boot_root, 0, sizeof(f->boot_root));
	memset(f->run_root, 0, sizeof(f->run_root));
	for (k = 0; k < TIMES; k++) {
		f->boot_root[k * SIMULATED_MAX + k] = sqrt(f->boot[k][k]);
		f->run_root[k * SIMULATED_MAX + k] = sqrt(f->run[k][k]);
	}
}

static struct rates fitted_rates(size_t side, bool blocks, size_t n, const struct fit *f)
{
	struct setting s = { side, f->runs, TIMES, .blocks = blocks, .boot_root = f->boot_root,
			     .run_root = f->run_root };

	return rates_of(&s, n);
}

/* ---- changes that must be found ---- */

/* One fault more in each run of a side; undone by the same with -1. */
static void change_count(const char *mark, int by)
{
	size_t i, k;

	for (i = 0; i < whole->runs; i++) {
		struct run *run = whole->run[i];

		for (k = 0; mark[of_boot[i]] == 'b' && k < run->samples; k++)
			if (run->sample[k].metric->id == METRIC_FAULT_COMPLETED &&
			    run->sample[k].value > 1) {
				run->sample[k].value += by;
				if (run->sample[k].max)
					run->sample[k].max += by;
				break;
			}
	}
}

static void change_values(const char *mark, double factor)
{
	size_t i, k;

	for (i = 0; i < whole->runs; i++)
		for (k = 0; mark[of_boot[i]] == 'b' && k < whole->run[i]->values; k++)
			whole->run[i]->value[k].value *= factor;
}

/* In how many of n splits with `side` boots each it is found that B has one fault more. */
static size_t count_found(size_t side, size_t n)
{
	const char *const *primary = whole->primary;
	const char *kept[PRIMARIES_MAX];
	size_t i, found = 0, primaries = whole->primaries;
	char *mark = malloc(boots);
	enum evidence_kind kind;

	assert_non_null(mark);
	assert_string_equal(primary[0], "fault_completed");
	memcpy(kept, whole->primary, sizeof(kept));
	whole->primaries = 1;
	for (i = 0; i < n; i++) {
		split_boots(mark, side);
		change_count(mark, 1);
		found += compare_split(mark, &kind) == 1;
		change_count(mark, -1);
		/* And without it nothing is. */
		assert_int_equal(compare_split(mark, &kind), 0);
	}
	whole->primaries = primaries;
	free(mark);
	return found;
}

/* The same of 3 % more instructions, in a recording of vm --icount. */
static size_t instructions_found(size_t side, size_t n)
{
	size_t i, found = 0;
	char *mark = malloc(boots);
	enum evidence_kind kind;

	assert_non_null(mark);
	assert_string_equal(whole->machine.virt, "icount");
	for (i = 0; i < n; i++) {
		split_blocks(mark, side);
		change_values(mark, 1.03);
		found += compare_split(mark, &kind) == 1;
		change_values(mark, 1 / 1.03);
	}
	free(mark);
	return found;
}

/* ---- tests ---- */

static void expect_rate(const char *what, const struct rates *r)
{
	double upper = stats_rate_upper(r->worse, r->n, 0.05);

	print_message("# %s: %zu of %zu worse, upper bound %.4f\n", what, r->worse, r->n, upper);
	if (upper > FALSE_WORSE)
		fail_msg("too many");
}

static void test_splits(void **state)
{
	struct rates r;

	assert_true(boots >= 80);
	r = split_rates(boots / 2, false, 500);
	expect_rate("halves", &r);
	r = split_rates(10, false, 2000);
	expect_rate("10 boots a side", &r);
	r = split_rates(10, true, 1000);
	expect_rate("10 blocks", &r);
}

static void test_fitted(void **state)
{
	struct fit f;
	struct rates r;

	fit_all(&f);
	r = fitted_rates(10, true, 3000, &f);
	expect_rate("simulated, 10 blocks", &r);
}

static void test_found(void **state)
{
	assert_int_equal(count_found(5, 100), 100);
	assert_int_equal(count_found(boots / 2, 100), 100);
}

static int set_up(void **state)
{
	load("false_alarm");
	return 0;
}

static int set_up_instructions(void **state)
{
	load("false_alarm_icount");
	return 0;
}

static int tear_down(void **state)
{
	unload();
	return 0;
}

static void test_instructions(void **state)
{
	assert_true(boots >= 20);
	assert_int_equal(instructions_found(boots / 2, 100), 100);
}

/* ---- the table ---- */

static int row(const char *what, const char *pairing, struct rates r)
{
	double upper = stats_rate_upper(r.worse, r.n, 0.05);

	printf("| %s | %s | %zu | %zu | %zu | %zu | %.2f %% |\n", what, pairing, r.n, r.worse,
	       r.held, r.none, 100 * upper);
	fflush(stdout);
	return upper > FALSE_WORSE;
}

static int table(void)
{
	size_t k, found[3];
	struct fit f;
	int failed = 0;

	load("false_alarm");
	printf("%zu boots of %s (%s), %zu runs. Primary metrics:", boots, whole->machine.release,
	       whole->machine.virt, whole->runs);
	for (k = 0; k < whole->primaries; k++)
		printf("%s %s", k ? "," : "", whole->primary[k]);
	printf(".\n\n## The kernel against itself\n\nUpper bound: one-sided 95 %% "
	       "(Clopper-Pearson) of the rate of exit status 1; it must not\nexceed %g %%.\n\n"
	       "| boots a side | pairing | pairs | worse (1) | held (0) | cannot tell (125) | "
	       "upper bound |\n|---|---|---|---|---|---|---|\n", 100 * FALSE_WORSE);
	failed |= row("half of all, by chance", "none", split_rates(boots / 2, false, 2000));
	failed |= row("10, by chance", "none", split_rates(10, false, 2000));
	failed |= row("half of all, by chance in each block", "blocks",
		      split_rates(boots / 2, true, 2000));
	failed |= row("10 of the blocks, by chance in each", "blocks",
		      split_rates(10, true, 2000));
	fit_all(&f);
	failed |= row("10, simulated", "none", fitted_rates(10, false, 10000, &f));
	failed |= row("10, simulated", "blocks", fitted_rates(10, true, 10000, &f));
	make_independent(&f);
	failed |= row("10, simulated, independent times (*)", "none",
		      fitted_rates(10, false, 10000, &f));
	failed |= row("10, simulated, independent times (*)", "blocks",
		      fitted_rates(10, true, 10000, &f));
	printf("\n(*) With the same variances, but without the covariances: the worst case. The "
	       "times vary by\nfar more than their margin, so that nothing but the level protects: "
	       "%g %% for worse and\nbetter together, half of it for worse.\n",
	       100 * COMPARE_ALPHA);
	printf("\nSplits of the same boots are not independent of each other: their rate is that "
	       "of these boots.\nSimulated: the logarithms of the times are boot + run, both "
	       "normal, with the covariances of the\ndata, of which these are the standard "
	       "deviations, and the correlation with the first:\n\n| time | boot sd | run sd | "
	       "correlation, boots | correlation, runs |\n|---|---|---|---|---|\n");
	for (k = 0; k < TIMES; k++)
		printf("| %s | %.1f %% | %.1f %% | %.2f | %.2f |\n",
		       whole->primary[whole->primaries - TIMES + k], 100 * sqrt(f.boot[k][k]),
		       100 * sqrt(f.run[k][k]),
		       f.boot[0][k] / sqrt(f.boot[0][0] * f.boot[k][k]),
		       f.run[0][k] / sqrt(f.run[0][0] * f.run[k][k]));
	found[0] = count_found(5, 1000);
	found[1] = count_found(boots / 2, 1000);
	unload();
	load("false_alarm_icount");
	found[2] = instructions_found(boots / 2, 1000);
	printf("\n## Changes in the same data\n\n| change, in a random half | boots a side | "
	       "splits | found |\n|---|---|---|---|\n| one fault more (of an exact count) | 5 | "
	       "1000 | %zu |\n| one fault more | 40 | 1000 | %zu |\n| 3 %% more instructions "
	       "(%s) | %zu | 1000 | %zu |\n", found[0], found[1], whole->primary[0], boots / 2,
	       found[2]);
	unload();
	return failed || found[0] != 1000 || found[1] != 1000 || found[2] != 1000;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_splits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_fitted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_instructions, set_up_instructions,
						tear_down),
	};

	if (argc > 1)
		return table();
	return cmocka_run_group_tests_name("false alarm", tests, NULL, NULL);
}
