// SPDX-License-Identifier: GPL-2.0-only
/* One run: its samples, the texts they point to, and sums over them. */
#include <stdlib.h>
#include <string.h>

#include "data/run.h"

struct run *run_new(void)
{
	return calloc(1, sizeof(struct run));
}

void run_free(struct run *run)
{
	size_t i;

	if (!run)
		return;
	for (i = 0; i < run->samples; i++) {
		free(run->sample[i].hist);
		free(run->sample[i].packed);
	}
	for (i = 0; i < run->values; i++) {
		free(run->value[i].name);
		free(run->value[i].unit);
	}
	for (i = 0; i < run->texts; i++)
		free(run->text[i]);
	free(run->sample);
	free(run->value);
	free(run->text);
	free(run->trust.probe);
	free(run);
}

/*
 * Room for one more element: arrays grow at powers of two, so that the number
 * of elements alone tells the capacity.
 */
static void *grow(void *array, size_t n, size_t size)
{
	if (n & (n - 1))
		return array;
	return reallocarray(array, n ? 2 * n : 1, size);
}

bool run_observed(const struct run *run)
{
	return run->samples || run->trust.probes;
}

struct sample *run_add(struct run *run, enum metric_id metric)
{
	struct sample *s = grow(run->sample, run->samples, sizeof(*s));

	if (!s)
		return NULL;
	run->sample = s;
	s += run->samples++;
	memset(s, 0, sizeof(*s));
	s->metric = &metrics[metric];
	return s;
}

const char *run_text(struct run *run, const char *text)
{
	char **list, *copy;
	size_t i;

	for (i = 0; i < run->texts; i++)
		if (!strcmp(run->text[i], text))
			return run->text[i];
	list = grow(run->text, run->texts, sizeof(*list));
	if (!list)
		return NULL;
	run->text = list;
	copy = strdup(text);
	if (copy)
		run->text[run->texts++] = copy;
	return copy;
}

int run_add_value(struct run *run, const char *name, double value, const char *unit,
		  bool lower_better)
{
	struct run_value *v = grow(run->value, run->values, sizeof(*v));

	if (!v)
		return -1;
	run->value = v;
	v += run->values;
	*v = (struct run_value){ strdup(name), strdup(unit), value, lower_better };
	if (!v->name || !v->unit) {
		free(v->name);
		free(v->unit);
		return -1;
	}
	run->values++;
	return 0;
}

struct hist *sample_hist(struct sample *s)
{
	if (!s->hist) {
		s->hist = malloc(sizeof(*s->hist));
		if (s->hist)
			hist_init(s->hist, s->metric->kind == KIND_TIME ? HIST_TIME : HIST_BATCH);
	}
	return s->hist;
}

const struct hist *sample_hist_read(const struct sample *s, struct hist *room)
{
	if (s->hist || !s->packed)
		return s->hist;
	hist_unpack(room, s->packed);
	return room;
}

uint64_t sample_max(const struct sample *s)
{
	return s->max > s->value ? s->max : s->value;
}

/* What a sample counted: its value, or how many values its histogram has. */
static uint64_t sample_count(const struct sample *s)
{
	if (s->metric->kind == KIND_COUNTER)
		return s->value;
	return s->hist ? s->hist->count : s->packed ? s->packed->count : 0;
}

uint64_t sample_min(const struct sample *s)
{
	uint64_t count = sample_count(s);

	return count > s->moved ? count - s->moved : 0;
}

bool sample_is_zero(const struct sample *s)
{
	if (s->unavailable || s->flags & SAMPLE_LOWER_BOUND)
		return false;
	if (s->packed && (s->packed->count || s->packed->sum))
		return false;
	return !sample_max(s) && (!s->hist || (!s->hist->count && !s->hist->sum));
}

/* The planner's reason of a metric that an option must ask for starts so. */
#define UNASKED	"only with --"

const char *sample_missing(const struct sample *s)
{
	return s->unavailable && strncmp(s->unavailable, UNASKED, strlen(UNASKED)) ?
	       s->unavailable : NULL;
}

enum label sample_view(const struct sample *s)
{
	return s->view_text ? s->view : LABEL_MAX;
}

const char *sample_label(const struct sample *s, enum label label)
{
	if (label < LABEL_OPEN)
		return s->label[label];
	return s->view == label ? s->view_text : NULL;
}

void sample_set_label(struct sample *s, enum label label, const char *text)
{
	if (label < LABEL_OPEN) {
		s->label[label] = text;
	} else {
		s->view = label;
		s->view_text = text;
	}
}

static bool matches(const struct sample *s, const char *const *want)
{
	enum label view;
	size_t l;

	for (l = 0; l < LABEL_MAX; l++) {
		if (!want || !want[l])
			continue;
		/* A reason without this label covers all values of it. */
		if (!sample_label(s, l) && s->unavailable)
			continue;
		if (!sample_label(s, l) || strcmp(sample_label(s, l), want[l]))
			return false;
	}
	/* Extra views of events that other samples count already. */
	view = sample_view(s);
	return s->unavailable || view == LABEL_MAX || (want && want[view]);
}

/* The next sample of a metric that matches, from *pos on; NULL: no more. */
static const struct sample *next_match(const struct run *run, enum metric_id metric,
				       const char *const *want, size_t *pos)
{
	while (*pos < run->samples) {
		const struct sample *s = &run->sample[(*pos)++];

		if (s->metric->id == metric && matches(s, want))
			return s;
	}
	return NULL;
}

void total_add(struct total *to, const struct total *from)
{
	uint64_t a = to->max - to->value, b = from->max - from->value;
	uint64_t below = to->value - to->min, low = from->value - from->min;
	bool saturated = false, cut = (to->value && !to->min) || (from->value && !from->min);

	to->value = sat_add(to->value, from->value, &saturated);
	/* One that may be nothing at all does not tell how much more may be missing. */
	if (cut)
		to->min = sat_add(to->min, from->min, &saturated);
	else
		to->min = to->value - (low > below ? low : below);
	to->max = sat_add(to->value, a > b ? a : b, &saturated);
	to->flags |= from->flags | (saturated ? SAMPLE_SATURATED : 0);
}

/*
 * A lost run may put a count under a wrong label, which a sum over all of them has
 * nonetheless. But an attempt without an exit is told by the next one, and a
 * refusal may then be a retry, which another metric counts.
 */
static bool sums_all(enum metric_id metric, const char *const *want)
{
	size_t l;

	for (l = 0; want && l < LABEL_MAX; l++)
		if (want[l])
			return false;
	return metrics[metric].shape != SHAPE_REFUSED && metrics[metric].shape != SHAPE_OUTCOME;
}

bool run_total(const struct run *run, enum metric_id metric, const char *const *want,
	       struct total *total, const char **reason)
{
	const struct sample *s;
	size_t pos = 0;

	memset(total, 0, sizeof(*total));
	while ((s = next_match(run, metric, want, &pos))) {
		if ((s->hist && s->hist->saturated) || (s->packed && s->packed->saturated))
			total->flags |= SAMPLE_SATURATED;
		if (s->unavailable) {
			if (reason)
				*reason = s->unavailable;
			memset(total, 0, sizeof(*total));
			return false;
		}
		total_add(total, &(struct total){ sample_min(s), sample_count(s),
						  s->metric->kind == KIND_COUNTER ?
						  sample_max(s) : sample_count(s), s->flags });
	}
	if (sums_all(metric, want))
		total->min = total->value;
	return true;
}

bool run_hist(const struct run *run, enum metric_id metric, const char *const *want,
	      struct hist *hist, unsigned int *flags, const char **reason)
{
	enum hist_kind kind = metrics[metric].kind == KIND_TIME ? HIST_TIME : HIST_BATCH;
	const struct sample *s;
	const struct hist *h;
	struct hist room;
	size_t pos = 0;

	hist_init(hist, kind);
	*flags = 0;
	while ((s = next_match(run, metric, want, &pos))) {
		if (s->unavailable) {
			if (reason)
				*reason = s->unavailable;
			hist_init(hist, kind);
			*flags = 0;
			return false;
		}
		h = sample_hist_read(s, &room);
		if (h)
			hist_merge(hist, h);
		*flags |= s->flags;
	}
	if (hist->saturated)
		*flags |= SAMPLE_SATURATED;
	return true;
}
