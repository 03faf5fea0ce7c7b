// SPDX-License-Identifier: GPL-2.0-only
/* The lines that say what was not seen, and what seeing cost. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/cost.h"
#include "render/text.h"

static bool is_emulated(const struct machine *m)
{
	return !strcmp(m->virt, "tcg") || !strcmp(m->virt, "icount");
}

static void print_missing(FILE *f, const struct trust *t)
{
	const char *between = " (";
	char reason[160];
	size_t i;

	for (i = 0; i < t->probes; i++) {
		const struct probe_state *p = &t->probe[i];

		if (p->mechanism)
			continue;
		text_escape(reason, sizeof(reason), p->reason ? p->reason : "");
		fprintf(f, "%s%s missing: %s", between, events[p->event].name,
			*reason ? reason : "unknown reason");
		between = "; ";
	}
	if (*between == ';')
		fputc(')', f);
}

/* Lost runs of the programs that can tell; false when one of them cannot. */
static bool lost_runs(const struct trust *t, uint64_t *lost, size_t *lossy)
{
	bool known = true, saturated = false;
	size_t i;

	*lost = *lossy = 0;
	for (i = 0; i < t->probes; i++) {
		if (!t->probe[i].mechanism)
			continue;
		if (t->probe[i].misses == UINT64_MAX) {
			known = false;
			continue;
		}
		*lost = sat_add(*lost, t->probe[i].misses, &saturated);
		*lossy += t->probe[i].misses > 0;
	}
	return known;
}

static void print_lost(FILE *f, const struct trust *t, uint64_t lost, size_t lossy, bool known)
{
	const char *between = " (";
	size_t i;

	if (!known && !lost) {
		fputs("unknown", f);
		return;
	}
	fprintf(f, "%" PRIu64 "%s", lost, known ? "" : " or more");
	for (i = 0; lossy && i < t->probes; i++) {
		const struct probe_state *p = &t->probe[i];

		if (!p->mechanism || !p->misses || p->misses == UINT64_MAX)
			continue;
		fprintf(f, "%s%s %" PRIu64, between, events[p->event].name, p->misses);
		between = ", ";
	}
	if (lossy)
		fputc(')', f);
}

void text_trust(FILE *f, const struct machine *m, const struct trust *t,
		const struct view *view)
{
	size_t attached = 0, lossy, size = 0, i;
	uint64_t lost;
	char *line = NULL;
	bool known = lost_runs(t, &lost, &lossy), doubt;
	FILE *mem = open_memstream(&line, &size);

	for (i = 0; i < t->probes; i++)
		attached += !!t->probe[i].mechanism;
	doubt = attached < t->probes || lost || !known || t->unmatched || t->map_full || t->lost;

	if (!mem) {
		fputs("trust: unknown (out of memory)\n", f);
		return;
	}
	fprintf(mem, "trust: probes %zu of %zu", attached, t->probes);
	print_missing(mem, t);
	fputs(", lost runs ", mem);
	print_lost(mem, t, lost, lossy, known);
	fprintf(mem, ", unmatched %" PRIu64 ", map full %" PRIu64 ", events lost %" PRIu64,
		t->unmatched, t->map_full, t->lost);
	if (t->user_frames)
		fprintf(mem, ", user frames without a name %" PRIu64 " of %" PRIu64,
			t->user_unnamed, t->user_frames);
	if (is_emulated(m))
		fprintf(mem, "; emulated CPU (%s): times are for screening only, counts are "
			"exact%s", m->virt, lost || !known ? " where no run was lost" : "");
	if (fclose(mem)) {
		fputs("trust: unknown (out of memory)\n", f);
	} else {
		text_wrap(f, view, doubt ? "33" : "32", 7, line);
	}
	free(line);
}

/* Appends to a line of `room` bytes; ns: what a run took, 0: it is not known. */
static void cost_say(char *line, size_t room, const char *what, uint64_t runs, uint64_t ns,
		     const char *basis)
{
	size_t len = strlen(line);

	if (ns)
		snprintf(line + len, room - len, "%s runs of programs%s, %" PRIu64 " ns each, %s",
			 text_count(runs).s, what, ns, basis);
	else
		snprintf(line + len, room - len, "%s runs of programs%s; what one takes was not "
			 "measured", text_count(runs).s, what);
}

/*
 * The time is of the targets: what others pay, who have no counts, is not in it. What
 * faults pay is compared with the time that they took, which holds it.
 */
void text_cost(FILE *f, const struct run *run, const struct view *view)
{
	const struct trust *t = &run->trust;
	struct cost cost = cost_of(run);
	uint64_t each = (t->program_ps + 500) / 1000;
	uint64_t wait_each = cost.wait_runs ? cost.wait_ns / cost.wait_runs : 0;
	bool least = t->program_least || (cost.runs && !each) || cost.wait_runs;
	char line[600] = "cost: ", part[128] = "";
	unsigned int flags;
	struct hist h;

	if (cost.runs && run_hist(run, METRIC_FAULT_LATENCY, NULL, &h, &flags, NULL) &&
	    h.sum > cost.ns)
		snprintf(part, sizeof(part), ", %s of the time of the faults",
			 text_percent(cost.ns, h.sum).s);
	if (each || wait_each)
		snprintf(line, sizeof(line), "cost: observing added %s %s%s: ",
			 least ? "at least" : "about",
			 text_time(cost.ns + cost.wait_ns).s, cost.wait_runs ? "" : part);
	if (cost.runs || !cost.wait_runs)
		cost_say(line, sizeof(line), "", cost.runs, each,
			 "measured with faults of its own at the start");
	if (cost.runs && cost.wait_runs)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s; ", part);
	if (cost.wait_runs)
		cost_say(line, sizeof(line), " for waits", cost.wait_runs, wait_each,
			 "measured in a quarter of the run");
	text_wrap(f, view, NULL, 6, line);
}
