// SPDX-License-Identifier: GPL-2.0-only
/* The parts of a recording from what a file says: what fits together, and what does not. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/read_parts.h"

#define SAMPLES_MAX	65536	/* of a run */
#define PROBES_MAX	1024
#define VALUES_MAX	4096
#define WORDS_MAX	65536	/* of the command */

bool reader_fail(struct reader *r, const char *format, ...)
{
	va_list ap;

	if (*r->error)
		return false;
	va_start(ap, format);
	vsnprintf(r->error, sizeof(r->error), format, ap);
	va_end(ap);
	return false;
}

static bool no_memory(struct reader *r)
{
	return reader_fail(r, "out of memory");
}

static void left_out(struct reader *r, const char *what, const char *name)
{
	if (!r->unknown++)
		snprintf(r->first_unknown, sizeof(r->first_unknown), "%s %.40s", what, name);
}

/* ---- samples ---- */

static bool is_word(const char *word, const char *text, size_t len)
{
	return strlen(word) == len && !memcmp(word, text, len);
}

bool reader_label(struct reader *r, const char *key, size_t key_len, const char *text, size_t len)
{
	const char *const *value;
	size_t l;

	for (l = 0; l < LABEL_MAX && !is_word(label_name(l), key, key_len); l++)
		;
	if (l == LABEL_MAX) {
		r->sample.unknown_label = true;
		return true;
	}
	if (r->sample.label[l])
		return reader_fail(r, "the label '%s' comes twice", label_name(l));
	for (value = label_values(l); value && *value; value++) {
		if (is_word(*value, text, len)) {
			r->sample.label[l] = *value;
			return true;
		}
	}
	r->sample.label[l] = recording_text(r->rec, text, len);
	return r->sample.label[l] || no_memory(r);
}

bool reader_bucket(struct reader *r)
{
	if (r->bucket.n != 3)
		return reader_fail(r, "a bucket needs three numbers: [low, high, count]");
	if (r->sample.buckets == BUCKETS_MAX)
		return reader_fail(r, "more than %d buckets", BUCKETS_MAX);
	r->sample.bucket[r->sample.buckets++] = r->bucket;
	return true;
}

/* Of events that other samples tell, too: by an open label. */
static bool is_view(const struct raw_sample *raw)
{
	enum label l;

	for (l = LABEL_OPEN; l < LABEL_MAX; l++)
		if (raw->label[l])
			return true;
	return false;
}

static bool pack_buckets(struct reader *r, const struct metric *m, struct hist_packed *h)
{
	const struct raw_sample *raw = &r->sample;
	uint64_t low, high, total = 0;
	bool saturated = raw->saturated;
	size_t i;

	for (i = 0; i < raw->buckets; i++) {
		const struct raw_bucket *b = &raw->bucket[i];
		unsigned int bucket = h->kind == HIST_TIME ? hist_time_bucket(b->low) :
				      hist_batch_bucket(b->low);

		hist_bounds(h->kind, bucket, &low, &high);
		if (low != b->low || (b->overflow ? high : high != b->high))
			return reader_fail(r, "%s has no bucket [%" PRIu64 ", %" PRIu64 ")",
					   m->name, b->low, b->high);
		if (i && bucket <= h->of[i - 1].bucket)
			return reader_fail(r, "%s: buckets out of order", m->name);
		if (!b->count)
			return reader_fail(r, "%s: an empty bucket", m->name);
		h->of[i].bucket = bucket;
		h->of[i].count = b->count;
		total = sat_add(total, b->count, &saturated);
	}
	h->saturated = saturated;
	/* A view of the same events may know their number and sum only. */
	if (total != raw->count && !saturated && !(is_view(raw) && !raw->buckets))
		return reader_fail(r, "%s: its buckets hold %" PRIu64 " values, count says %"
				   PRIu64, m->name, total, raw->count);
	return true;
}

static bool fill_hist(struct reader *r, struct sample *s)
{
	const struct raw_sample *raw = &r->sample;

	if (!raw->has_count || !raw->has_sum || !raw->has_buckets)
		return reader_fail(r, "%s is a histogram: it needs count, sum and buckets",
				   raw->name);
	if (raw->has_min && raw->min > raw->count)
		return reader_fail(r, "%s: min is above count", raw->name);
	if (raw->has_value || raw->has_max)
		return reader_fail(r, "%s is a histogram, and has a value", raw->name);
	if (!raw->unit || strcmp(raw->unit, s->metric->unit))
		return reader_fail(r, "%s is in %s, not in %s", raw->name, s->metric->unit,
				   raw->unit ? raw->unit : "no unit");
	s->packed = calloc(1, sizeof(*s->packed) + raw->buckets * sizeof(*s->packed->of));
	if (!s->packed)
		return no_memory(r);
	s->packed->kind = s->metric->kind == KIND_TIME ? HIST_TIME : HIST_BATCH;
	s->packed->buckets = raw->buckets;
	s->packed->count = raw->count;
	s->packed->sum = raw->sum;
	s->moved = raw->has_min ? raw->count - raw->min : 0;
	return pack_buckets(r, s->metric, s->packed);
}

static bool fill_counter(struct reader *r, struct sample *s)
{
	const struct raw_sample *raw = &r->sample;

	if (!raw->has_value)
		return reader_fail(r, "%s is a counter: it needs a value", raw->name);
	if (raw->has_count || raw->has_sum || raw->has_buckets)
		return reader_fail(r, "%s is a counter, and has a histogram", raw->name);
	if (raw->has_min && raw->min > raw->value)
		return reader_fail(r, "%s: min is above value", raw->name);
	if (raw->has_max && raw->max < raw->value)
		return reader_fail(r, "%s: max is below value", raw->name);
	s->value = raw->value;
	s->max = raw->has_max ? raw->max : raw->value;
	s->moved = raw->has_min ? raw->value - raw->min : 0;
	return true;
}

/*
 * A number needs all labels of its metric; a reason may cover many. A view of
 * the same events by an open label may have that label alone.
 */
static bool check_labels(struct reader *r, const struct metric *m)
{
	const struct raw_sample *raw = &r->sample;
	const enum label *list;
	size_t n = shape_labels(m->shape, &list), i, l;

	for (l = 0; l < LABEL_MAX; l++) {
		for (i = 0; i < n && list[i] != l; i++)
			;
		if (raw->label[l] && i == n && l < LABEL_OPEN)
			return reader_fail(r, "%s has no label '%s'", m->name, label_name(l));
		if (!raw->label[l] && i < n && !raw->unavailable && !is_view(raw))
			return reader_fail(r, "%s lacks its label '%s'", m->name, label_name(l));
	}
	return true;
}

bool reader_sample(struct reader *r)
{
	const struct raw_sample *raw = &r->sample;
	const struct metric *m;
	struct sample *s;
	enum label l;

	if (!raw->name)
		return reader_fail(r, "a sample without a name");
	m = metric_by_name(raw->name);
	if (!m || raw->unknown_label) {
		left_out(r, m ? "a label of" : "metric", raw->name);
		return true;
	}
	if (m->kind == KIND_RATIO)
		return reader_fail(r, "%s is derived from others, and stored", m->name);
	if (!check_labels(r, m))
		return false;
	if (r->run->samples == SAMPLES_MAX)
		return reader_fail(r, "more than %d samples in a run", SAMPLES_MAX);
	s = run_add(r->run, m->id);
	if (!s)
		return no_memory(r);
	for (l = 0; l < LABEL_MAX; l++) {
		if (!raw->label[l])
			continue;
		if (s->view_text)
			return reader_fail(r, "%s has two labels that are found at run time",
					   m->name);
		sample_set_label(s, l, raw->label[l]);
	}
	if (raw->unavailable) {
		s->unavailable = raw->unavailable;
		return !(raw->has_value || raw->has_count || raw->has_buckets) ||
		       reader_fail(r, "%s is unavailable, and has a value", m->name);
	}
	s->flags = (raw->inferred ? SAMPLE_INFERRED : 0) |
		   (raw->lower_bound ? SAMPLE_LOWER_BOUND : 0) |
		   (raw->saturated ? SAMPLE_SATURATED : 0);
	return m->kind == KIND_COUNTER ? fill_counter(r, s) : fill_hist(r, s);
}

/* Equal label texts are the same text: static, or of the recording's pool. */
static int by_identity(const void *a, const void *b)
{
	const struct sample *x = *(const struct sample *const *)a;
	const struct sample *y = *(const struct sample *const *)b;

	if (x->metric != y->metric)
		return x->metric < y->metric ? -1 : 1;
	if (x->view_text != y->view_text)
		return x->view_text < y->view_text ? -1 : 1;
	if (x->view != y->view)
		return x->view < y->view ? -1 : 1;
	return memcmp(x->label, y->label, sizeof(x->label));
}

bool reader_run(struct reader *r)
{
	size_t n = r->run->samples, i;
	const struct sample **sorted = calloc(n + 1, sizeof(*sorted));
	bool ok = true;

	if (!sorted)
		return no_memory(r);
	if (r->run->has_command != r->has_rusage)
		ok = reader_fail(r, "exit_status and rusage go together");
	for (i = 0; i < n; i++)
		sorted[i] = &r->run->sample[i];
	qsort(sorted, n, sizeof(*sorted), by_identity);
	for (i = 1; i < n && ok; i++)
		if (!by_identity(&sorted[i - 1], &sorted[i]))
			ok = reader_fail(r, "%s with the same labels comes twice in this run",
					 sorted[i]->metric->name);
	free(sorted);
	return ok;
}

/* ---- the other parts ---- */

bool reader_probe(struct reader *r)
{
	const struct raw_probe *raw = &r->probe;
	struct trust *t = &r->run->trust;
	struct probe_state *grown;
	size_t e;

	if (!raw->event)
		return reader_fail(r, "a probe without an event");
	if (!raw->mechanism == !raw->missing)
		return reader_fail(r, "probe '%.40s' needs either a mechanism or missing",
				   raw->event);
	for (e = 0; e < EVENT_MAX && strcmp(events[e].name, raw->event); e++)
		;
	if (e == EVENT_MAX) {
		left_out(r, "event", raw->event);
		return true;
	}
	if (t->probes == PROBES_MAX)
		return reader_fail(r, "more than %d probes in a run", PROBES_MAX);
	if (t->probes == r->probe_room) {
		grown = reallocarray(t->probe, r->probe_room + 16, sizeof(*grown));
		if (!grown)
			return no_memory(r);
		t->probe = grown;
		r->probe_room += 16;
	}
	t->probe[t->probes++] = (struct probe_state){
		.event = e, .mechanism = raw->mechanism, .symbol = raw->symbol,
		.reason = raw->missing, .misses = raw->misses,
	};
	return true;
}

bool reader_value(struct reader *r)
{
	const struct raw_value *raw = &r->value;

	if (!raw->name || !raw->has_value)
		return reader_fail(r, "a value needs name and value");
	if (raw->better && strcmp(raw->better, "lower") && strcmp(raw->better, "higher"))
		return reader_fail(r, "better is '%.20s', not lower or higher", raw->better);
	if (r->run->values == VALUES_MAX)
		return reader_fail(r, "more than %d values in a run", VALUES_MAX);
	return !run_add_value(r->run, raw->name, raw->value, raw->unit ? raw->unit : "",
			      !raw->better || !strcmp(raw->better, "lower")) || no_memory(r);
}

bool reader_primary(struct reader *r, const char *text)
{
	if (r->rec->primaries == PRIMARIES_MAX)
		return reader_fail(r, "more than %d primary metrics", PRIMARIES_MAX);
	r->rec->primary[r->rec->primaries++] = text;
	return true;
}

bool reader_word(struct reader *r, const char *text, size_t len)
{
	char **list = r->rec->command;

	if (r->words == WORDS_MAX)
		return reader_fail(r, "more than %d words in the command", WORDS_MAX);
	/* Room for the word and the NULL after it, at every power of two. */
	if (!(r->words & (r->words - 1)))
		list = reallocarray(list, 2 * r->words + 2, sizeof(*list));
	if (!list)
		return no_memory(r);
	r->rec->command = list;
	list[r->words] = strndup(text, len);
	if (!list[r->words])
		return no_memory(r);
	list[++r->words] = NULL;
	return true;
}

bool reader_setting(struct reader *r, char *list, size_t size, const char *key,
		    const char *text, size_t len)
{
	size_t used = strlen(list), key_len = strlen(key), i;
	const char *word;

	if (strpbrk(key, " =") || !*key || memchr(text, ' ', len))
		return reader_fail(r, "'%.40s' is not the name of a setting with one word", key);
	for (word = list; *word; word += i + !!word[i]) {
		i = strcspn(word, " ");
		if (!strncmp(word, key, key_len) && word[key_len] == '=')
			return reader_fail(r, "the setting '%.40s' comes twice", key);
	}
	/* What does not fit whole is left out, as where the machine was read. */
	if (used + !!used + key_len + 1 + len < size)
		sprintf(list + used, "%s%s=%.*s", used ? " " : "", key, (int)len, text);
	return true;
}
