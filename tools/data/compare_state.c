// SPDX-License-Identifier: GPL-2.0-only
/*
 * What makes two machines unlike. A difference between the kernels' releases is
 * what is being compared; these are the things that a change of kernel is
 * blamed for by mistake.
 */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
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

static uint64_t huge_of(const struct run *run)
{
	return run->anon_huge_kib;
}

static uint64_t rss_of(const struct run *run)
{
	return run->has_command ? run->maxrss_kib : 0;
}

/* The median of each boot; v has room for all runs. */
static void boot_medians(const struct recording *rec, const struct boots *boots,
			 uint64_t (*get)(const struct run *), double *v)
{
	double *of_boot = v + boots->n;		/* after the results */
	size_t boot, i = 0, n;

	for (boot = 0; boot < boots->n; boot++) {
		for (n = 0; i < rec->runs && boots->of_run[boots->order[i]] == boot; i++)
			of_boot[n++] = get(rec->run[boots->order[i]]);
		v[boot] = stats_median(of_boot, n);
	}
}

static int compare_huge(struct states *s, const struct recording *base,
			const struct recording *new, const struct boots *boots_b,
			const struct boots *boots_n)
{
	double *b = calloc(2 * base->runs + 2, sizeof(*b));
	double *n = calloc(2 * new->runs + 2, sizeof(*n));
	double rss, huge_b, huge_n;
	char bt[32], nt[32];
	int ret = -1;

	if (!b || !n)
		goto cleanup;
	ret = 0;
	if (!boots_b->n || !boots_n->n || boots_b->n > STATS_BOOTS_MAX ||
	    boots_n->n > STATS_BOOTS_MAX)
		goto cleanup;		/* no comparison at all */
	boot_medians(base, boots_b, rss_of, b);
	boot_medians(new, boots_n, rss_of, n);
	rss = fmin(stats_median(b, boots_b->n), stats_median(n, boots_n->n));
	boot_medians(base, boots_b, huge_of, b);
	boot_medians(new, boots_n, huge_of, n);
	huge_b = stats_median(b, boots_b->n);
	huge_n = stats_median(n, boots_n->n);
	/* Without an RSS (nothing was run) the share is of the huge pages themselves. */
	if (!(rss > 0))
		rss = fmax(huge_b, huge_n);
	if (fabs(huge_b - huge_n) <= 0.05 * rss)
		goto cleanup;
	snprintf(bt, sizeof(bt), "%.0f KiB", huge_b);
	snprintf(nt, sizeof(nt), "%.0f KiB", huge_n);
	differ(s, "AnonHugePages at the end", bt, nt);
cleanup:
	free(b);
	free(n);
	return ret;
}

int compare_states(const struct recording *base, const struct recording *new,
		   const struct boots *boots_b, const struct boots *boots_n,
		   struct comparison_state *state, size_t *states)
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
	if (compare_huge(&s, base, new, boots_b, boots_n))
		return -1;
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
	*states = s.n;
	return 0;
}
