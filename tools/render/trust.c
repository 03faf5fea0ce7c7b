// SPDX-License-Identifier: GPL-2.0-only
/* The line that says what was not seen. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
