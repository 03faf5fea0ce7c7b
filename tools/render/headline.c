// SPDX-License-Identifier: GPL-2.0-only
/* One sentence about a run. */
#include <stdarg.h>
#include <string.h>

#include "render/fault.h"

/* A PMD maps as many pages as this many PTEs (4 KiB pages): for ranking only. */
#define PMD_WEIGHT	512

/*
 * A story is one backing, populated either at mmap time or by faults. Its parts
 * are totals.
 */
struct story {
	enum backing backing;
	bool eager;
	bool ptes_known, holds_known, refused_known, faults_known;
	struct total ptes, holds, faults, attempts, refused, pmd;
	struct total pte_faults, pmd_faults;	/* the faults that installed them */
	uint64_t hold_ptes;
	const char *ptes_reason;
};

struct sentence {
	char *out;
	size_t size, len;
};

static void say(struct sentence *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct sentence *s, const char *format, ...)
{
	va_list ap;
	int n;

	if (s->len + 1 >= s->size)
		return;
	va_start(ap, format);
	n = vsnprintf(s->out + s->len, s->size - s->len, format, ap);
	va_end(ap);
	if (n > 0)
		s->len += (size_t)n < s->size - s->len ? (size_t)n : s->size - s->len - 1;
}

/* PTEs, holds and faults over the methods of one side of mmap(). */
static void read_installs(const struct run *run, struct story *s)
{
	const char *want[LABEL_MAX] = { NULL };
	struct total t;
	struct hist h;
	unsigned int flags;
	bool saturated = false;
	size_t m;

	s->ptes_known = s->holds_known = true;
	want[LABEL_BACKING] = label_values(LABEL_BACKING)[s->backing];
	for (m = 0; m < METHOD_MAX; m++) {
		if ((m == METHOD_EAGER) != s->eager)
			continue;
		want[LABEL_METHOD] = label_values(LABEL_METHOD)[m];
		if (run_total(run, METRIC_PTES_INSTALLED, want, &t, &s->ptes_reason))
			total_add(&s->ptes, &t);
		else
			s->ptes_known = false;
		run_total(run, METRIC_FAULT_COMPLETED, want, &t, NULL);
		if (m == METHOD_PMD)
			s->pmd_faults = t;
		else if (m < METHOD_EMPTY)
			total_add(&s->pte_faults, &t);
		if (run_hist(run, METRIC_PTES_PER_HOLD, want, &h, &flags, NULL)) {
			run_total(run, METRIC_PTES_PER_HOLD, want, &t, NULL);
			total_add(&s->holds, &t);
			s->hold_ptes = sat_add(s->hold_ptes, h.sum, &saturated);
		} else {
			s->holds_known = false;
		}
	}
	if (saturated)
		s->holds.flags |= SAMPLE_SATURATED;
}

bool fault_is_attempt(enum reason reason)
{
	return reason != REASON_VMA_WRITE_LOCKED && reason != REASON_NO_VMA;
}

bool fault_refused_attempts(const struct run *run, const char *const *want, struct total *refused)
{
	const char *with[LABEL_MAX];
	struct total t;
	size_t r;

	memcpy(with, want, sizeof(with));
	memset(refused, 0, sizeof(*refused));
	for (r = 0; r < REASON_MAX; r++) {
		if (!fault_is_attempt(r))
			continue;
		with[LABEL_REASON] = label_values(LABEL_REASON)[r];
		if (!run_total(run, METRIC_FAULT_REFUSED, with, &t, NULL))
			return false;
		total_add(refused, &t);
	}
	return true;
}

static void read_story(const struct run *run, struct story *s, enum backing backing, bool eager)
{
	const char *want[LABEL_MAX] = { NULL };

	memset(s, 0, sizeof(*s));
	s->backing = backing;
	s->eager = eager;
	want[LABEL_BACKING] = label_values(LABEL_BACKING)[backing];
	read_installs(run, s);
	/* Faults of an eager mapping are told too: there should be none. */
	s->faults_known = run_total(run, METRIC_FAULT_COMPLETED, want, &s->faults, NULL);
	run_total(run, METRIC_FAULT_ATTEMPTS, want, &s->attempts, NULL);
	s->refused_known = fault_refused_attempts(run, want, &s->refused);
	if (!eager)
		run_total(run, METRIC_PMD_MAPS, want, &s->pmd, NULL);
}

static uint64_t weight(const struct story *s)
{
	return s->ptes.value / 2 + s->pmd.value * (PMD_WEIGHT / 2);
}

/* More PTEs win; of equal ones (all unavailable, or 0) more faults. */
static bool larger(const struct story *a, const struct story *b)
{
	if (weight(a) != weight(b))
		return weight(a) > weight(b);
	if (a->ptes.value != b->ptes.value)
		return a->ptes.value > b->ptes.value;
	if (a->eager != b->eager)
		return b->eager && a->attempts.value + a->faults.value > 0;
	return a->attempts.value + a->faults.value > b->attempts.value + b->faults.value;
}

static const char *why_refused(enum reason reason)
{
	static const char *const why[REASON_MAX] = {
		[REASON_NO_MAP_PAGES]	   = "no map_pages",
		[REASON_ANON_VMA]	   = "no anon_vma yet",
		[REASON_UFFD]		   = "userfaultfd",
		[REASON_VMA_WRITE_LOCKED] = "VMA write-locked",
		[REASON_NO_VMA]		   = "no VMA",
		[REASON_OTHER]		   = "another reason",
	};

	return why[reason];
}

/* ", no map_pages" or ", mostly no map_pages". */
static void say_reason(struct sentence *out, const struct run *run, const struct story *s)
{
	const char *want[LABEL_MAX] = { NULL };
	struct total t, top = { 0 };
	size_t r, best = REASON_OTHER, reasons = 0;

	want[LABEL_BACKING] = label_values(LABEL_BACKING)[s->backing];
	for (r = 0; r < REASON_MAX; r++) {
		if (!fault_is_attempt(r))
			continue;
		want[LABEL_REASON] = label_values(LABEL_REASON)[r];
		if (!run_total(run, METRIC_FAULT_REFUSED, want, &t, NULL) || !t.value)
			continue;
		reasons++;
		if (t.value > top.value) {
			top = t;
			best = r;
		}
	}
	if (reasons)
		say(out, ", %s%s", reasons > 1 ? "mostly " : "", why_refused(best));
}

static const char *plural(const struct total *t)
{
	return t->value == 1 && t->max == 1 && !t->flags ? "" : "s";
}

static const char *inferred(unsigned int flags)
{
	return flags & SAMPLE_INFERRED ? " (inferred)" : "";
}

static bool is_exact(const struct total *t)
{
	return t->min == t->max && !(t->flags & (SAMPLE_LOWER_BOUND | SAMPLE_SATURATED));
}

static void say_holds(struct sentence *out, const struct story *s)
{

	if (!s->holds_known) {
		say(out, ", page-table-lock holds unavailable");
		return;
	}
	if (!s->holds.value) {
		say(out, ", no page-table-lock hold seen");
		return;
	}
	say(out, " in %s page-table-lock hold%s%s, %s%s per hold", text_total(&s->holds).s,
	    plural(&s->holds), inferred(s->holds.flags), is_exact(&s->holds) ? "" : "about ",
	    text_ratio(s->hold_ptes, s->holds.value).s);
}

static void say_refusals(struct sentence *out, const struct run *run, const struct story *s)
{
	if (!s->refused_known || !s->refused.value)
		return;
	if (is_exact(&s->refused) && is_exact(&s->faults) && is_exact(&s->attempts) &&
	    s->refused.value == s->faults.value && s->attempts.value == 2 * s->faults.value) {
		say(out, "; every fault taken twice: %s refused under the per-VMA lock",
		    text_count(s->refused.value).s);
	} else {
		say(out, "; %s of", text_total(&s->refused).s);
		say(out, " %s attempt%s refused under the per-VMA lock",
		    text_total(&s->attempts).s, plural(&s->attempts));
	}
	say_reason(out, run, s);
}

static void say_by_faults(struct sentence *out, const struct story *s, const struct total *faults)
{
	if (s->faults_known)
		say(out, ", by %s fault%s", text_total(faults).s, plural(faults));
}

static void say_ptes(struct sentence *out, const struct story *s)
{
	say(out, "%s PTE%s%s%s", text_total(&s->ptes).s, plural(&s->ptes),
	    s->eager ? " installed at mmap time" : "", inferred(s->ptes.flags));
	say_holds(out, s);
	/* One fault for each PTE, taken twice: the refusals say it all. */
	if (!s->eager && !(s->refused_known && s->refused.value &&
			   s->pte_faults.value == s->ptes.value))
		say_by_faults(out, s, &s->pte_faults);
}

static void say_pmds(struct sentence *out, const struct story *s)
{
	say(out, "%s huge page%s mapped by PMD", text_total(&s->pmd).s, plural(&s->pmd));
	say_by_faults(out, s, &s->pmd_faults);
}

static void say_story(struct sentence *out, const struct run *run, const struct story *s)
{
	bool pmds_first = s->pmd.value > s->ptes.value / PMD_WEIGHT;

	say(out, "%s: ", label_values(LABEL_BACKING)[s->backing]);
	if (!s->ptes_known)
		say(out, "%s fault%s, PTEs unavailable (%s)%s", text_total(&s->faults).s,
		    plural(&s->faults), s->ptes_reason, s->pmd.value ? "; " : "");
	else if (!s->ptes.value && !s->pmd.value)
		say(out, "%s fault%s that installed no PTE", text_total(&s->faults).s,
		    plural(&s->faults));
	if (s->pmd.value && pmds_first)
		say_pmds(out, s);
	if (s->pmd.value && pmds_first && s->ptes.value)
		say(out, "; ");
	if (s->ptes.value)
		say_ptes(out, s);
	if (s->pmd.value && !pmds_first) {
		say(out, "; ");
		say_pmds(out, s);
	}
	if (s->eager && (s->faults.value || s->attempts.value))
		say(out, "; %s fault%s", text_total(&s->faults).s, plural(&s->faults));
	else if (s->eager && s->faults_known)
		say(out, "; no faults");
	say_refusals(out, run, s);
}

/* What other stories add, in one clause each. */
static void say_others(struct sentence *out, const struct story *story, size_t n,
		       const struct story *told)
{
	struct total elsewhere = { 0 }, same = { 0 }, pmd = { 0 };
	size_t i;

	for (i = 0; i < n; i++) {
		if (&story[i] == told)
			continue;
		total_add(story[i].backing == told->backing ? &same : &elsewhere, &story[i].ptes);
		total_add(&pmd, &story[i].pmd);
	}
	if (same.value)
		say(out, "; and %s more %s", text_total(&same).s,
		    told->eager ? "by its faults" : "at mmap time");
	if (elsewhere.value)
		say(out, "; and %s more by other backings", text_total(&elsewhere).s);
	if (pmd.value)
		say(out, "; and %s huge page%s elsewhere", text_total(&pmd).s, plural(&pmd));
}

void fault_headline(const struct run *run, char *out, size_t size)
{
	struct story story[2 * BACKING_MAX];
	struct sentence s = { out, size, 0 };
	struct total failed, faults, attempts;
	const struct story *told = story;
	const char *reason;
	size_t i, n = 0;

	if (size)
		*out = 0;
	for (i = 0; i < BACKING_MAX; i++) {
		read_story(run, &story[n++], i, false);
		read_story(run, &story[n++], i, true);
	}
	for (i = 1; i < n; i++)
		if (larger(&story[i], told))
			told = &story[i];

	run_total(run, METRIC_FAULT_ATTEMPTS, NULL, &attempts, NULL);
	if (!run_total(run, METRIC_FAULT_COMPLETED, NULL, &faults, &reason) &&
	    !told->ptes_known)
		say(&s, "faults and PTEs unavailable (%s)", reason);
	else if (told->ptes.value || told->pmd.value || told->faults.value || told->attempts.value)
		say_story(&s, run, told);
	else if (!told->ptes_known)
		say(&s, "no faults while observed, PTEs unavailable (%s)", told->ptes_reason);
	else if (faults.max || attempts.max || told->ptes.max)
		say(&s, "no faults and no PTEs seen, but runs of the probes were lost");
	else if (run->trust.map_full || run->trust.lost)
		say(&s, "no faults and no PTEs counted, but events were lost");
	else
		say(&s, "no faults and no PTEs installed while observed");
	say_others(&s, story, n, told);

	if (run_total(run, METRIC_FAULT_FAILED, NULL, &failed, NULL) && failed.value)
		say(&s, "; %s fault%s failed", text_total(&failed).s, plural(&failed));
}
