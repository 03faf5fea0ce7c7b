// SPDX-License-Identifier: GPL-2.0-only
/*
 * What makes two machines unlike. A difference between the kernels' releases is
 * what is being compared; these are the things that a change of kernel is
 * blamed for by mistake.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/compare_parts.h"
#include "data/stats.h"

#define UNKNOWN	"unknown"

struct states {
	struct comparison_state *state;
	size_t n;
};

bool is_emulated(const struct machine *m)
{
	return !strcmp(m->virt, "tcg") || is_icount(m);
}

bool is_icount(const struct machine *m)
{
	return !strcmp(m->virt, "icount");
}

bool same_command(const struct recording *base, const struct recording *new)
{
	size_t i;

	if (!base->command || !new->command)
		return !base->command == !new->command;
	for (i = 0; base->command[i] && new->command[i]; i++)
		if (strcmp(base->command[i], new->command[i]))
			return false;
	return base->command[i] == new->command[i];
}

/* Known on one side only is a difference: nobody can say that they are alike. */
static void differ(struct states *s, const char *name, const char *base, const char *new)
{
	struct comparison_state *to = &s->state[s->n];

	if (!strcmp(base, new) || s->n == COMPARISON_STATES)
		return;
	s->n++;
	snprintf(to->name, sizeof(to->name), "%s", name);
	snprintf(to->base, sizeof(to->base), "%s", *base ? base : UNKNOWN);
	snprintf(to->new, sizeof(to->new), "%s", *new ? new : UNKNOWN);
}

static void differ_number(struct states *s, const char *name, uint64_t base, uint64_t new,
			  uint64_t unknown)
{
	char b[24] = "", n[24] = "";

	if (base != unknown)
		snprintf(b, sizeof(b), "%" PRIu64, base);
	if (new != unknown)
		snprintf(n, sizeof(n), "%" PRIu64, new);
	differ(s, name, b, n);
}

/* The value of NAME in "A=x B=y"; "" when it is not there. The first one counts. */
static void setting(const char *list, const char *name, char *out, size_t size)
{
	size_t len = strlen(name);
	const char *p;

	*out = 0;
	for (p = list; *p; p += strcspn(p, " "), p += strspn(p, " ")) {
		if (strncmp(p, name, len) || p[len] != '=')
			continue;
		p += len + 1;
		snprintf(out, size, "%.*s", (int)strcspn(p, " "), p);
		return;
	}
}

static bool setting_on(const char *list, const char *name)
{
	char value[16];

	setting(list, name, value, sizeof(value));
	return !strcmp(value, "y");
}

/* The model in force: chosen at boot where the kernel can, else by configuration. */
static void preemption(const char *config, char *out, size_t size)
{
	static const struct { const char *option, *model; } fixed[] = {
		{ "PREEMPT_RT", "rt" }, { "PREEMPT_LAZY", "lazy" }, { "PREEMPT", "full" },
		{ "PREEMPT_VOLUNTARY", "voluntary" }, { "PREEMPT_NONE", "none" },
	};
	size_t i;

	setting(config, "preempt", out, size);
	for (i = 0; i < sizeof(fixed) / sizeof(*fixed) && !*out; i++)
		if (setting_on(config, fixed[i].option))
			snprintf(out, size, "%s", fixed[i].model);
}

/*
 * The sizes that may be used, without the one of a PMD that inherits the main
 * switch: this is what a kernel before 6.8 does, which has no such settings.
 */
static void huge_sizes(const struct machine *m, char *out, size_t size)
{
	char inherit[40];
	const char *p;
	size_t len = 0, n;

	snprintf(inherit, sizeof(inherit), "%" PRIu64 "kB=inherit",
		 m->page_size / 8 * m->page_size / 1024);
	*out = 0;
	for (p = m->mthp; *p; p += n, p += strspn(p, " ")) {
		n = strcspn(p, " ");
		if (n == strlen(inherit) && !strncmp(p, inherit, n))
			continue;
		len += snprintf(out + len, size - len, "%s%.*s", len ? " " : "", (int)n, p);
		if (len >= size)
			break;
	}
	if (!*out)
		snprintf(out, size, "none");
}

static void compare_memory(struct states *s, uint64_t base, uint64_t new)
{
	uint64_t least = base < new ? base : new, apart = base < new ? new - base : base - new;
	char b[32] = "", n[32] = "";

	if ((base || new) && (!base || !new || apart * 100.0 > least)) {
		if (base)
			snprintf(b, sizeof(b), "%" PRIu64 " MiB", base >> 10);
		if (new)
			snprintf(n, sizeof(n), "%" PRIu64 " MiB", new >> 10);
		/* A machine that is a little larger must not look alike after rounding. */
		if (!strcmp(b, n)) {
			snprintf(b, sizeof(b), "%" PRIu64 " KiB", base);
			snprintf(n, sizeof(n), "%" PRIu64 " KiB", new);
		}
		differ(s, "memory", b, n);
	}
}

/* Median over all runs; what is wanted is a state, not a measurement. */
static double median_of(const struct recording *rec, uint64_t (*get)(const struct run *))
{
	double *v = malloc((rec->runs + 1) * sizeof(*v)), m = 0;
	size_t i;

	for (i = 0; v && i < rec->runs; i++)
		v[i] = get(rec->run[i]);
	if (v && rec->runs)
		m = stats_median(v, rec->runs);
	free(v);
	return m;
}

static uint64_t huge_of(const struct run *run)
{
	return run->anon_huge_kib;
}

static uint64_t rss_of(const struct run *run)
{
	return run->has_command ? run->maxrss_kib : 0;
}

static void compare_huge(struct states *s, const struct recording *base,
			 const struct recording *new)
{
	double b = median_of(base, huge_of), n = median_of(new, huge_of);
	double rss_b = median_of(base, rss_of), rss_n = median_of(new, rss_of);
	double rss = rss_b < rss_n ? rss_b : rss_n, apart = b < n ? n - b : b - n;
	char bt[32], nt[32];

	/* Without an RSS (nothing was run) the share is of the huge pages themselves. */
	if (!(rss > 0))
		rss = b > n ? b : n;
	if (apart <= 0.05 * rss)
		return;
	snprintf(bt, sizeof(bt), "%.0f KiB", b);
	snprintf(nt, sizeof(nt), "%.0f KiB", n);
	differ(s, "AnonHugePages at the end", bt, nt);
}

size_t compare_states(const struct recording *base, const struct recording *new,
		      struct comparison_state *state)
{
	static const char *const bits[] = { "HZ", "DEBUG_VM", "KASAN", "PROVE_LOCKING" };
	const struct machine *b = &base->machine, *n = &new->machine;
	struct states s = { state, 0 };
	char bt[320], nt[320], name[32];
	size_t i;

	differ(&s, "architecture", b->arch, n->arch);
	differ(&s, "THP", b->thp, n->thp);
	differ(&s, "THP of shmem", b->shmem_thp, n->shmem_thp);
	huge_sizes(b, bt, sizeof(bt));
	huge_sizes(n, nt, sizeof(nt));
	differ(&s, "mTHP", bt, nt);
	compare_huge(&s, base, new);
	differ_number(&s, "fault_around_bytes", b->fault_around_bytes, n->fault_around_bytes,
		      UINT64_MAX);
	differ_number(&s, "CPUs online", b->cpus_online, n->cpus_online, 0);
	differ_number(&s, "CPUs possible", b->cpus_possible, n->cpus_possible, 0);
	differ_number(&s, "page size", b->page_size, n->page_size, 0);
	compare_memory(&s, b->memory_kib, n->memory_kib);
	if (is_emulated(b) != is_emulated(n) || is_icount(b) != is_icount(n) ||
	    !strcmp(b->virt, UNKNOWN) != !strcmp(n->virt, UNKNOWN))
		differ(&s, "virtual machine", b->virt, n->virt);
	preemption(b->config, bt, sizeof(bt));
	preemption(n->config, nt, sizeof(nt));
	differ(&s, "preemption", bt, nt);
	for (i = 0; i < sizeof(bits) / sizeof(*bits); i++) {
		setting(b->config, bits[i], bt, sizeof(bt));
		setting(n->config, bits[i], nt, sizeof(nt));
		snprintf(name, sizeof(name), "CONFIG_%s", bits[i]);
		differ(&s, name, bt, nt);
	}
	return s.n;
}
