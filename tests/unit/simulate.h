/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UNIT_SIMULATE_H
#define UNIT_SIMULATE_H

/* Pairs of recordings made by chance, and how often the comparison calls them what. */
#include <math.h>

#include "data/compare.h"
#include "data/stats.h"
#include "unit/samples.h"

#define SIMULATED_MAX	5

struct setting {
	size_t boots, runs, primaries;
	double boot_sd, run_sd, shift;	/* of logarithms */
	bool blocks;
	/*
	 * Instead, roots of the covariances between the primaries: L of L * transposed(L),
	 * of which the rows are SIMULATED_MAX long. NULL: independent of each other.
	 */
	const double *boot_root, *run_root;
};

struct rates {
	size_t n, worse, held, none;
};

static uint64_t seed = 0x9e3779b97f4a7c15ULL;

static inline double uniform(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return ((seed >> 11) + 0.5) / 9007199254740992.0;
}

static inline double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* What a boot, or a run, adds to the logarithm of each primary. */
static inline void draw(double *to, size_t n, double sd, const double *root)
{
	double z[SIMULATED_MAX];
	size_t k, j;

	for (k = 0; k < n; k++) {
		z[k] = normal();
		to[k] = root ? 0 : sd * z[k];
		for (j = 0; root && j <= k; j++)
			to[k] += root[k * SIMULATED_MAX + j] * z[j];
	}
}

static inline struct recording *simulate(const struct setting *s, bool is_new)
{
	static const char *const name[] = { "v0", "v1", "v2", "v3", "v4" };
	struct recording *rec = new_recording("simulated", "none");
	size_t boot, i, k;

	rec->primaries = 0;
	for (k = 0; k < s->primaries; k++)
		rec->primary[rec->primaries++] = name[k];
	for (boot = 0; boot < s->boots; boot++) {
		double of_boot[SIMULATED_MAX], of_run[SIMULATED_MAX];

		draw(of_boot, s->primaries, s->boot_sd, s->boot_root);
		for (i = 0; i < s->runs; i++) {
			struct run *r = run_new();

			assert_non_null(r);
			assert_int_equal(recording_add(rec, r), 0);
			snprintf(r->boot_id, sizeof(r->boot_id), "%s-%zu", is_new ? "new" : "base",
				 boot);
			/* In turns (ABBA), or one file after the other. */
			r->start_ns = 1 + (s->blocks ? 2 * boot + ((boot & 1) ^ is_new) :
					   boot + is_new * s->boots);
			draw(of_run, s->primaries, s->run_sd, s->run_root);
			for (k = 0; k < s->primaries; k++) {
				double v = of_boot[k] + of_run[k] + (is_new && !k ? s->shift : 0);

				assert_int_equal(run_add_value(r, name[k], 1e6 * exp(v), "ns",
							       true), 0);
			}
		}
	}
	return rec;
}

static inline struct rates rates_of(const struct setting *s, size_t n)
{
	struct rates r = { .n = n };
	size_t i;

	for (i = 0; i < n; i++) {
		struct recording *a = simulate(s, false), *b = simulate(s, true);
		struct comparison *c = comparison_new(a, b, NULL);

		assert_non_null(c);
		assert_int_equal(c->kind, s->blocks ? EVIDENCE_BLOCKS : EVIDENCE_BOOTS);
		r.worse += c->status == 1;
		r.held += c->status == 0;
		r.none += c->status == 125;
		comparison_free(c);
		recording_free(a);
		recording_free(b);
	}
	assert_int_equal(r.worse + r.held + r.none, n);
	return r;
}

#define FALSE_WORSE	0.02	/* upper 95 % bound of the rate of equal pairs that exit with 1 */

#endif
