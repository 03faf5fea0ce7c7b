// SPDX-License-Identifier: GPL-2.0-only
/* The recording as JSON. Its keys are a contract with readers: RECORDING_SCHEMA. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#include "data/cost.h"
#include "data/utf8.h"
#include "render/json.h"
#include "render/list.h"

/*
 * Two generators: `out` writes the structure to the file, `leaf` writes one
 * sample, probe or the like into memory, without white space. A finished leaf
 * goes to `out` as it is, so that it stays on one line where `out` indents.
 */
struct writer {
	FILE *f;
	yajl_gen out, leaf;
	int error;		/* negative errno of the first failure */
};

static void fail(struct writer *w, int error)
{
	if (!w->error)
		w->error = error;
}

static void print_file(void *ctx, const char *text, size_t len)
{
	struct writer *w = ctx;

	errno = 0;
	if (!w->error && fwrite(text, 1, len, w->f) != len)
		fail(w, errno ? -errno : -EIO);
}

/*
 * A text with its quotes. The generator would pass bytes that are not UTF-8 and
 * the controls from U+007F on, which no parser or terminal should have to meet;
 * so the quoted form is made here and handed over as a ready value.
 */
static void put_text(struct writer *w, yajl_gen g, const char *text)
{
	char *buf = malloc(6 * strlen(text) + 3), *to = buf;
	const char *p;
	int n;

	if (!buf) {
		fail(w, -ENOMEM);
		return;
	}
	*to++ = '"';
	for (p = text; *p; p += n ? n : 1) {
		n = utf8_length(p);
		if (!n) {
			to += sprintf(to, "\xef\xbf\xbd");
		} else if (utf8_is_control(p, n)) {
			to += sprintf(to, "\\u%04x", (unsigned char)p[n - 1]);
		} else {
			if (*p == '"' || *p == '\\')
				*to++ = '\\';
			memcpy(to, p, n);
			to += n;
		}
	}
	*to++ = '"';
	yajl_gen_number(g, buf, to - buf);
	free(buf);
}

/* Keys are our own words, but for the settings' names, which the kernel gave. */
static void put_key(yajl_gen g, const char *key)
{
	yajl_gen_string(g, (const unsigned char *)key, strlen(key));
}

static void put_number(yajl_gen g, uint64_t value)
{
	yajl_gen_integer(g, value > HIST_VALUE_MAX ? HIST_VALUE_MAX : (long long)value);
}

static void key_number(yajl_gen g, const char *key, uint64_t value)
{
	put_key(g, key);
	put_number(g, value);
}

/* A number for which 0 (or -1 of a signed one) says that it is not known. */
static void key_known(yajl_gen g, const char *key, bool known, uint64_t value)
{
	put_key(g, key);
	if (known)
		put_number(g, value);
	else
		yajl_gen_null(g);
}

static void key_text(struct writer *w, yajl_gen g, const char *key, const char *text)
{
	put_key(g, key);
	if (text && *text)
		put_text(w, g, text);
	else
		yajl_gen_null(g);
}

static void key_true(yajl_gen g, const char *key)
{
	put_key(g, key);
	yajl_gen_bool(g, 1);
}

/* The fewest digits that read back as the same number. */
static void key_double(yajl_gen g, const char *key, double value)
{
	char text[40];
	int digits;

	put_key(g, key);
	if (!isfinite(value)) {
		yajl_gen_null(g);
		return;
	}
	for (digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	yajl_gen_number(g, text, strlen(text));
}

/* Hand the finished leaf over to the file. */
static void leaf_done(struct writer *w)
{
	const unsigned char *text;
	size_t len;

	if (yajl_gen_get_buf(w->leaf, &text, &len) != yajl_gen_status_ok)
		fail(w, -ENOMEM);
	else
		yajl_gen_number(w->out, (const char *)text, len);
	yajl_gen_clear(w->leaf);
	yajl_gen_reset(w->leaf, NULL);
}

/* "a=b c=d" as an object; a name that comes twice is written once. */
static void key_settings(struct writer *w, const char *key, const char *list)
{
	char *copy = strdup(list), *word, *save = NULL, *value;
	const char *seen[64];
	size_t n = 0, i;

	put_key(w->out, key);
	if (!copy) {
		fail(w, -ENOMEM);
		yajl_gen_null(w->out);
		return;
	}
	yajl_gen_map_open(w->leaf);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		value = strchr(word, '=');
		if (!value)
			continue;
		*value++ = 0;
		for (i = 0; i < n && strcmp(seen[i], word); i++)
			;
		if (i < n || n == sizeof(seen) / sizeof(*seen))
			continue;
		seen[n++] = word;
		put_key(w->leaf, word);
		put_text(w, w->leaf, value);
	}
	yajl_gen_map_close(w->leaf);
	leaf_done(w);
	free(copy);
}

static void put_machine(struct writer *w, const struct machine *m)
{
	yajl_gen g = w->out;

	put_key(g, "machine");
	yajl_gen_map_open(g);
	key_text(w, g, "release", m->release);
	key_text(w, g, "version", m->version);
	key_text(w, g, "arch", m->arch);
	key_text(w, g, "boot_id", m->boot_id);
	key_known(g, "cpus_possible", m->cpus_possible, m->cpus_possible);
	key_known(g, "cpus_online", m->cpus_online, m->cpus_online);
	key_known(g, "memory_kib", m->memory_kib, m->memory_kib);
	key_known(g, "page_size", m->page_size, m->page_size);
	key_known(g, "fault_around_bytes", m->fault_around_bytes >= 0, m->fault_around_bytes);
	key_text(w, g, "thp", m->thp);
	key_text(w, g, "shmem_thp", m->shmem_thp);
	key_settings(w, "mthp", m->mthp);
	key_known(g, "numa_balancing", m->numa_balancing >= 0, m->numa_balancing);
	key_text(w, g, "virt", m->virt);
	key_settings(w, "config", m->config);
	yajl_gen_map_close(g);
}

static void put_hist(yajl_gen g, const struct sample *s)
{
	static const struct hist none;
	struct hist room;
	const struct hist *h = sample_hist_read(s, &room) ?: &none;
	uint64_t low, high;
	size_t i;

	put_key(g, "unit");
	yajl_gen_string(g, (const unsigned char *)s->metric->unit, strlen(s->metric->unit));
	key_number(g, "count", h->count);
	if (sample_min(s) < h->count)
		key_number(g, "min", sample_min(s));
	key_number(g, "sum", h->sum);
	put_key(g, "buckets");
	yajl_gen_array_open(g);
	for (i = 0; i < hist_buckets(h->kind); i++) {
		if (!h->bucket[i])
			continue;
		hist_bounds(h->kind, i, &low, &high);
		yajl_gen_array_open(g);
		put_number(g, low);
		if (high)
			put_number(g, high);
		else
			yajl_gen_null(g);
		put_number(g, h->bucket[i]);
		yajl_gen_array_close(g);
	}
	yajl_gen_array_close(g);
}

static void put_labels(struct writer *w, yajl_gen g, const struct sample *s)
{
	size_t l, n = 0;

	for (l = 0; l < LABEL_MAX; l++)
		n += !!sample_label(s, l);
	if (!n)
		return;
	put_key(g, "labels");
	yajl_gen_map_open(g);
	for (l = 0; l < LABEL_MAX; l++) {
		if (!sample_label(s, l))
			continue;
		put_key(g, label_name(l));
		put_text(w, g, sample_label(s, l));
	}
	yajl_gen_map_close(g);
}

static bool is_saturated(const struct sample *s)
{
	return s->flags & SAMPLE_SATURATED || (s->hist && s->hist->saturated) ||
	       (s->packed && s->packed->saturated) ||
	       sample_max(s) > HIST_VALUE_MAX;
}

static void put_sample(struct writer *w, const struct sample *s)
{
	yajl_gen g = w->leaf;

	yajl_gen_map_open(g);
	put_key(g, "name");
	put_text(w, g, s->metric->name);
	put_labels(w, g, s);
	if (s->unavailable) {
		key_text(w, g, "unavailable", s->unavailable);
	} else {
		if (s->metric->kind == KIND_COUNTER) {
			key_number(g, "value", s->value);
			if (sample_min(s) < s->value)
				key_number(g, "min", sample_min(s));
			if (sample_max(s) > s->value)
				key_number(g, "max", sample_max(s));
		} else {
			put_hist(g, s);
		}
		if (s->flags & SAMPLE_INFERRED)
			key_true(g, "inferred");
		if (s->flags & SAMPLE_LOWER_BOUND)
			key_true(g, "lower_bound");
		if (is_saturated(s))
			key_true(g, "saturated");
	}
	yajl_gen_map_close(g);
	leaf_done(w);
}

static void put_metrics(struct writer *w, const struct run *run)
{
	bool partial[METRIC_MAX] = { false };
	size_t i;

	for (i = 0; i < run->samples; i++)
		if (run->sample[i].unavailable)
			partial[run->sample[i].metric->id] = true;

	put_key(w->out, "metrics");
	yajl_gen_array_open(w->out);
	for (i = 0; i < run->samples; i++) {
		const struct sample *s = &run->sample[i];

		/* A zero goes without saying only where the whole metric was seen. */
		if (sample_is_zero(s) && !partial[s->metric->id])
			continue;
		if (s->metric->kind != KIND_RATIO)	/* derived from what is stored */
			put_sample(w, s);
	}
	yajl_gen_array_close(w->out);
}

static void put_probe(struct writer *w, const struct probe_state *p)
{
	yajl_gen g = w->leaf;

	yajl_gen_map_open(g);
	put_key(g, "event");
	put_text(w, g, events[p->event].name);
	if (p->mechanism) {
		key_text(w, g, "mechanism", p->mechanism);
		key_text(w, g, "symbol", p->symbol);
		key_known(g, "misses", p->misses != UINT64_MAX, p->misses);
	} else {
		put_key(g, "missing");
		put_text(w, g, p->reason ? p->reason : "");
	}
	yajl_gen_map_close(g);
	leaf_done(w);
}

static void put_trust(struct writer *w, const struct run *run)
{
	const struct trust *t = &run->trust;
	struct cost cost = cost_of(run);
	yajl_gen g = w->out;
	size_t i;

	put_key(g, "trust");
	yajl_gen_map_open(g);
	put_key(g, "probes");
	yajl_gen_array_open(g);
	for (i = 0; i < t->probes; i++)
		put_probe(w, &t->probe[i]);
	yajl_gen_array_close(g);
	key_number(g, "unmatched", t->unmatched);
	key_number(g, "map_full", t->map_full);
	key_number(g, "events_lost", t->lost);
	if (t->user_frames) {
		key_number(g, "user_frames", t->user_frames);
		key_number(g, "user_frames_unnamed", t->user_unnamed);
	}
	if (t->program_ps) {
		key_number(g, "program_runs", cost.runs);
		key_number(g, "program_ps", t->program_ps);
		if (t->program_least)
			key_true(g, "program_least");
		key_number(g, "added_ns", cost.ns);
	}
	yajl_gen_map_close(g);
}

static void put_command_facts(struct writer *w, const struct run *run)
{
	yajl_gen g = w->out;

	put_key(g, "exit_status");
	yajl_gen_integer(g, run->exit_status);
	put_key(g, "rusage");
	yajl_gen_map_open(w->leaf);
	key_number(w->leaf, "user_ns", run->user_ns);
	key_number(w->leaf, "sys_ns", run->sys_ns);
	key_number(w->leaf, "minflt", run->minflt);
	key_number(w->leaf, "majflt", run->majflt);
	key_number(w->leaf, "maxrss_kib", run->maxrss_kib);
	yajl_gen_map_close(w->leaf);
	leaf_done(w);
}

static void put_run(struct writer *w, const struct run *run)
{
	yajl_gen g = w->out;
	size_t i;

	yajl_gen_map_open(g);
	key_text(w, g, "boot_id", run->boot_id);
	key_number(g, "start_ns", run->start_ns);
	key_number(g, "start_boot_ns", run->start_boot_ns);
	key_number(g, "wall_ns", run->wall_ns);
	if (run->has_command)
		put_command_facts(w, run);
	key_number(g, "anon_huge_kib", run->anon_huge_kib);
	put_key(g, "values");
	yajl_gen_array_open(g);
	for (i = 0; i < run->values; i++) {
		yajl_gen_map_open(w->leaf);
		key_text(w, w->leaf, "name", run->value[i].name);
		key_double(w->leaf, "value", run->value[i].value);
		key_text(w, w->leaf, "unit", run->value[i].unit);
		key_text(w, w->leaf, "better", run->value[i].lower_better ? "lower" : "higher");
		yajl_gen_map_close(w->leaf);
		leaf_done(w);
	}
	yajl_gen_array_close(g);
	put_metrics(w, run);
	put_trust(w, run);
	yajl_gen_map_close(g);
}

static void put_recording(struct writer *w, const struct recording *rec)
{
	yajl_gen g = w->out;
	size_t i;

	yajl_gen_map_open(g);
	key_number(g, "schema", RECORDING_SCHEMA);
	key_text(w, g, "mmscope", MMSCOPE_VERSION);
	put_machine(w, &rec->machine);
	put_key(g, "command");
	if (rec->command) {
		yajl_gen_array_open(w->leaf);
		for (i = 0; rec->command[i]; i++)
			put_text(w, w->leaf, rec->command[i]);
		yajl_gen_array_close(w->leaf);
		leaf_done(w);
	} else {
		yajl_gen_null(g);
	}
	put_key(g, "primary");
	yajl_gen_array_open(w->leaf);
	for (i = 0; i < rec->primaries; i++)
		put_text(w, w->leaf, rec->primary[i]);
	yajl_gen_array_close(w->leaf);
	leaf_done(w);
	put_key(g, "runs");
	yajl_gen_array_open(g);
	for (i = 0; i < rec->runs; i++)
		put_run(w, rec->run[i]);
	yajl_gen_array_close(g);
	yajl_gen_map_close(g);
}

static void put_metric_row(struct writer *w, const struct metric *m)
{
	const enum label *labels;
	yajl_gen g = w->leaf;
	size_t i, n = shape_labels(m->shape, &labels);

	yajl_gen_map_open(g);
	key_text(w, g, "name", m->name);
	key_text(w, g, "kind", metric_kind_name(m->kind));
	key_text(w, g, "unit", m->unit);
	put_key(g, "labels");
	yajl_gen_array_open(g);
	for (i = 0; i < n; i++)
		put_text(w, g, label_name(labels[i]));
	yajl_gen_array_close(g);
	key_text(w, g, "better", metric_better_name(m->better));
	put_key(g, "exact");
	yajl_gen_bool(g, m->exact);
	put_key(g, "primary");
	yajl_gen_bool(g, m->primary);
	key_text(w, g, "help", m->help);
	yajl_gen_map_close(g);
	leaf_done(w);
}

static void put_tables(struct writer *w)
{
	const char *const *value;
	size_t i;

	yajl_gen_map_open(w->out);
	put_key(w->out, "metrics");
	yajl_gen_array_open(w->out);
	for (i = 0; i < METRIC_MAX; i++)
		put_metric_row(w, &metrics[i]);
	yajl_gen_array_close(w->out);
	put_key(w->out, "labels");
	yajl_gen_map_open(w->out);
	for (i = 0; i < LABEL_MAX; i++) {
		put_key(w->out, label_name(i));
		value = label_values(i);
		if (!value) {		/* its values are found at run time */
			yajl_gen_null(w->out);
			continue;
		}
		yajl_gen_array_open(w->leaf);
		for (; *value; value++)
			put_text(w, w->leaf, *value);
		yajl_gen_array_close(w->leaf);
		leaf_done(w);
	}
	yajl_gen_map_close(w->out);
	yajl_gen_map_close(w->out);
}

static int write_with(FILE *f, const struct recording *rec, bool one_line)
{
	struct writer w = { .f = f };

	w.out = yajl_gen_alloc(NULL);
	w.leaf = yajl_gen_alloc(NULL);
	if (!w.out || !w.leaf) {
		w.error = -ENOMEM;
		goto cleanup;
	}
	yajl_gen_config(w.out, yajl_gen_print_callback, print_file, &w);
	if (!one_line) {
		yajl_gen_config(w.out, yajl_gen_beautify, 1);
		yajl_gen_config(w.out, yajl_gen_indent_string, "  ");
	}
	if (rec)
		put_recording(&w, rec);
	else
		put_tables(&w);
	if (one_line)
		print_file(&w, "\n", 1);
	errno = 0;
	if (!w.error && (fflush(f) || ferror(f)))
		w.error = errno ? -errno : -EIO;
cleanup:
	if (w.leaf)
		yajl_gen_free(w.leaf);
	if (w.out)
		yajl_gen_free(w.out);
	return w.error;
}

int json_write(FILE *f, const struct recording *rec, bool one_line)
{
	return write_with(f, rec, one_line);
}

int json_write_tables(FILE *f)
{
	return write_with(f, NULL, false);
}
