// SPDX-License-Identifier: GPL-2.0-only
/*
 * What each object of a recording holds, as tables, and the walk along them.
 * What the parts mean together is in read_parts.c.
 */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/read_parts.h"

enum type {
	COUNT64,	/* uint64_t */
	COUNT64_ALL,	/* uint64_t; null: UINT64_MAX, unknown */
	COUNT32,	/* unsigned int; null: 0, unknown */
	SIGNED64,	/* int64_t; null: -1, unknown */
	SIGNED32,	/* int; null: -1 */
	STATUS,		/* int; sets has_command */
	SCHEMA,
	REAL,		/* double; null: not a number */
	FLAG,		/* bool */
	BUFFER,		/* char[size]; null: "" */
	TEXT,		/* const char *, kept by the recording; null: NULL */
	PART,		/* an object or array of its own place; null where it may miss */
};

struct field {
	const char *key;
	enum type type;
	size_t offset, size;
	enum place part;
	bool required;
	size_t has;		/* offset of a bool to set, or 0 */
};

#define AT(s, m)		offsetof(struct s, m), sizeof(((struct s *)0)->m)
#define F(k, t, s, m)		{ k, t, AT(s, m) }
#define NEED(k, t, s, m)	{ k, t, AT(s, m), 0, true }
#define HAS(k, t, s, m, h)	{ k, t, AT(s, m), 0, false, offsetof(struct s, h) }

static const struct field top[] = {
	{ "schema", SCHEMA, .required = true },
	{ "machine", PART, .part = MACHINE, .required = true },
	{ "command", PART, .part = COMMAND, .required = true },
	{ "primary", PART, .part = PRIMARY, .required = true },
	{ "runs", PART, .part = RUNS, .required = true },
	{ 0 }
};

static const struct field machine[] = {
	F("release", BUFFER, machine, release),
	F("version", BUFFER, machine, version),
	F("arch", BUFFER, machine, arch),
	F("boot_id", BUFFER, machine, boot_id),
	F("cpus_possible", COUNT32, machine, cpus_possible),
	F("cpus_online", COUNT32, machine, cpus_online),
	F("memory_kib", COUNT64, machine, memory_kib),
	F("page_size", COUNT64, machine, page_size),
	F("fault_around_bytes", SIGNED64, machine, fault_around_bytes),
	F("thp", BUFFER, machine, thp),
	F("shmem_thp", BUFFER, machine, shmem_thp),
	{ "mthp", PART, AT(machine, mthp), SETTINGS },
	F("numa_balancing", SIGNED32, machine, numa_balancing),
	F("virt", BUFFER, machine, virt),
	{ "config", PART, AT(machine, config), SETTINGS },
	{ 0 }
};

static const struct field run[] = {
	F("boot_id", BUFFER, run, boot_id),
	NEED("start_ns", COUNT64, run, start_ns),
	F("start_boot_ns", COUNT64, run, start_boot_ns),
	NEED("wall_ns", COUNT64, run, wall_ns),
	F("exit_status", STATUS, run, exit_status),
	{ "rusage", PART, .part = RUSAGE },
	F("anon_huge_kib", COUNT64, run, anon_huge_kib),
	{ "values", PART, .part = VALUES },
	{ "metrics", PART, .part = METRICS, .required = true },
	{ "trust", PART, .part = TRUST, .required = true },
	{ 0 }
};

static const struct field rusage[] = {
	NEED("user_ns", COUNT64, run, user_ns),
	NEED("sys_ns", COUNT64, run, sys_ns),
	NEED("minflt", COUNT64, run, minflt),
	NEED("majflt", COUNT64, run, majflt),
	NEED("maxrss_kib", COUNT64, run, maxrss_kib),
	{ 0 }
};

static const struct field value[] = {
	F("name", TEXT, raw_value, name),
	HAS("value", REAL, raw_value, value, has_value),
	F("unit", TEXT, raw_value, unit),
	F("better", TEXT, raw_value, better),
	{ 0 }
};

static const struct field sample[] = {
	F("name", TEXT, raw_sample, name),
	{ "labels", PART, .part = LABELS },
	HAS("value", COUNT64, raw_sample, value, has_value),
	HAS("min", COUNT64, raw_sample, min, has_min),
	HAS("max", COUNT64, raw_sample, max, has_max),
	F("unit", TEXT, raw_sample, unit),
	HAS("count", COUNT64, raw_sample, count, has_count),
	HAS("sum", COUNT64, raw_sample, sum, has_sum),
	{ "buckets", PART, .part = BUCKETS, .has = offsetof(struct raw_sample, has_buckets) },
	F("unavailable", TEXT, raw_sample, unavailable),
	F("inferred", FLAG, raw_sample, inferred),
	F("lower_bound", FLAG, raw_sample, lower_bound),
	F("saturated", FLAG, raw_sample, saturated),
	{ 0 }
};

static const struct field trust[] = {
	{ "probes", PART, .part = PROBES, .required = true },
	NEED("unmatched", COUNT64, trust, unmatched),
	NEED("map_full", COUNT64, trust, map_full),
	NEED("events_lost", COUNT64, trust, lost),
	F("user_frames", COUNT64, trust, user_frames),
	F("user_frames_unnamed", COUNT64, trust, user_unnamed),
	F("program_ps", COUNT64, trust, program_ps),
	F("program_least", FLAG, trust, program_least),
	{ 0 }
};

static const struct field probe[] = {
	F("event", TEXT, raw_probe, event),
	F("mechanism", TEXT, raw_probe, mechanism),
	F("symbol", TEXT, raw_probe, symbol),
	F("misses", COUNT64_ALL, raw_probe, misses),
	F("missing", TEXT, raw_probe, missing),
	{ 0 }
};

static const struct {
	const char *name;
	bool array;
	const struct field *fields;	/* of an object; NULL: any keys, with texts */
	int element;			/* place of an array's elements; -1: scalars */
} places[PLACE_MAX] = {
	[TOP]	   = { "the recording", false, top },
	[MACHINE]  = { "machine", false, machine },
	[SETTINGS] = { "the settings", false, NULL },
	[COMMAND]  = { "command", true, NULL, -1 },
	[PRIMARY]  = { "primary", true, NULL, -1 },
	[RUNS]	   = { "runs", true, NULL, RUN },
	[RUN]	   = { "a run", false, run },
	[RUSAGE]   = { "rusage", false, rusage },
	[VALUES]   = { "values", true, NULL, VALUE },
	[VALUE]	   = { "a value", false, value },
	[METRICS]  = { "metrics", true, NULL, SAMPLE },
	[SAMPLE]   = { "a sample", false, sample },
	[LABELS]   = { "labels", false, NULL },
	[BUCKETS]  = { "buckets", true, NULL, BUCKET },
	[BUCKET]   = { "a bucket", true, NULL, -1 },
	[TRUST]	   = { "trust", false, trust },
	[PROBES]   = { "probes", true, NULL, PROBE },
	[PROBE]	   = { "a probe", false, probe },
};

enum what { NOTHING, BOOL, NUMBER, STRING, OBJECT, ARRAY };
static const char *const what_names[] = { "null", "true or false", "a number", "a text",
					  "an object", "an array" };

static void *base_of(struct reader *r, enum place place)
{
	switch (place) {
	case MACHINE:
		return &r->rec->machine;
	case RUN:
	case RUSAGE:
		return r->run;
	case VALUE:
		return &r->value;
	case SAMPLE:
		return &r->sample;
	case TRUST:
		return &r->run->trust;
	case PROBE:
		return &r->probe;
	default:
		return r->rec;
	}
}

/* ---- scalars ---- */

/* Digits only, at most 2^63-1. */
static bool whole(struct reader *r, const char *key, const char *text, size_t len, uint64_t *v)
{
	size_t i;

	*v = 0;
	for (i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return reader_fail(r, "%s is not a whole number, 0 or above", key);
		if (*v > ((uint64_t)HIST_VALUE_MAX - (text[i] - '0')) / 10)
			return reader_fail(r, "%s is above 2^63-1", key);
		*v = 10 * *v + (text[i] - '0');
	}
	return true;
}

static bool number(struct reader *r, const struct field *f, void *to, const char *text, size_t len)
{
	bool minus = len && *text == '-';
	char copy[64];
	uint64_t v;

	if (f->type == REAL) {
		if (len >= sizeof(copy))
			return reader_fail(r, "%s has more than %zu digits", f->key,
					   sizeof(copy) - 1);
		memcpy(copy, text, len);
		copy[len] = 0;
		*(double *)to = strtod(copy, NULL);
		return isfinite(*(double *)to) || reader_fail(r, "%s is too large", f->key);
	}
	if (f->type != SIGNED64 && f->type != SIGNED32 && f->type != STATUS)
		minus = false;
	if (!whole(r, f->key, text + minus, len - minus, &v))
		return false;
	if (((f->type == SIGNED32 || f->type == STATUS) && v > INT_MAX) ||
	    (f->type == COUNT32 && v > UINT_MAX))
		return reader_fail(r, "%s is too large", f->key);
	switch (f->type) {
	case SCHEMA:
		r->newer = v > RECORDING_SCHEMA;
		if (r->newer)
			return reader_fail(r, "schema %" PRIu64 " is of a newer mmscope; this one "
					   "reads up to schema %d", v, RECORDING_SCHEMA);
		return v || reader_fail(r, "there is no schema 0");
	case COUNT64:
	case COUNT64_ALL:
		*(uint64_t *)to = v;
		return true;
	case COUNT32:
		*(unsigned int *)to = v;
		return true;
	case SIGNED64:
		*(int64_t *)to = minus ? -(int64_t)v : (int64_t)v;
		return true;
	case STATUS:
		r->run->has_command = true;
		/* fall through */
	case SIGNED32:
		*(int *)to = minus ? -(int)v : (int)v;
		return true;
	default:
		return reader_fail(r, "%s is a number", f->key);
	}
}

static bool null(struct reader *r, const struct field *f, void *to)
{
	switch (f->type) {
	case COUNT32:
		*(unsigned int *)to = 0;
		return true;
	case COUNT64_ALL:
		*(uint64_t *)to = UINT64_MAX;
		return true;
	case SIGNED64:
		*(int64_t *)to = -1;
		return true;
	case SIGNED32:
		*(int *)to = -1;
		return true;
	case REAL:
		*(double *)to = NAN;
		return true;
	case BUFFER:
	case TEXT:
		return true;	/* empty already */
	case COUNT64:
		/* Facts of the machine may be unknown, counts not. */
		if (r->frame[r->depth - 1].place == MACHINE)
			return true;
		break;
	case PART:
		if (f->part == COMMAND)
			return true;
		break;
	default:
		break;
	}
	return reader_fail(r, "%s is null", f->key);
}

/* As much as there is room for, not cutting a character. */
static bool buffer(char *to, size_t size, const char *text, size_t len)
{
	if (len >= size) {
		len = size - 1;
		while (len && (text[len] & 0xc0) == 0x80)
			len--;
	}
	memcpy(to, text, len);
	to[len] = 0;
	return true;
}

static bool scalar(struct reader *r, const struct field *f, enum what what, const char *text,
		   size_t len)
{
	void *to = (char *)base_of(r, r->frame[r->depth - 1].place) + f->offset;
	static const enum what wants[] = {
		[FLAG] = BOOL, [BUFFER] = STRING, [TEXT] = STRING, [PART] = OBJECT,
	};
	enum what want = f->type < sizeof(wants) / sizeof(*wants) && wants[f->type] ?
			 wants[f->type] : NUMBER;

	if (what == NOTHING)
		return null(r, f, to);
	if (what != want)
		return reader_fail(r, "%s is %s", f->key, what_names[what]);
	switch (f->type) {
	case FLAG:
		*(bool *)to = len;
		return true;
	case BUFFER:
		return buffer(to, f->size, text, len);
	case TEXT:
		*(const char **)to = recording_text(r->rec, text, len);
		return *(const char **)to || reader_fail(r, "out of memory");
	default:
		return number(r, f, to, text, len);
	}
}

/* A number of a bucket: low, high or null, count. */
static bool bound(struct reader *r, enum what what, const char *text, size_t len)
{
	struct raw_bucket *b = &r->bucket;
	uint64_t *to[] = { &b->low, &b->high, &b->count };

	if (b->n >= 3 || (what != NUMBER && !(what == NOTHING && b->n == 1)))
		return reader_fail(r, "a bucket is three numbers: [low, high, count]");
	if (what == NOTHING)
		b->overflow = true;
	else if (!whole(r, "a bucket's number", text, len, to[b->n]))
		return false;
	b->n++;
	return true;
}

/* An element of an array of scalars, or a value under any key. */
static bool loose(struct reader *r, enum place place, enum what what, const char *text, size_t len)
{
	if (place == BUCKET)
		return bound(r, what, text, len);
	if (what != STRING)
		return reader_fail(r, "%s in %s", what_names[what], places[place].name);
	switch (place) {
	case COMMAND:
		return reader_word(r, text, len);
	case PRIMARY:
		text = recording_text(r->rec, text, len);
		return text ? reader_primary(r, text) : reader_fail(r, "out of memory");
	case LABELS:
		return reader_label(r, r->key, strlen(r->key), text, len);
	default:
		return reader_setting(r, r->list, r->list_size, r->key, text, len);
	}
}

static int accept_scalar(struct reader *r, enum what what, const char *text, size_t len)
{
	struct frame *f = r->depth ? &r->frame[r->depth - 1] : NULL;

	r->heard = true;
	if (r->skip)
		return true;
	if (!f)
		return reader_fail(r, "not a recording, but %s", what_names[what]);
	if (what == STRING && memchr(text, 0, len))
		return reader_fail(r, "a text with a zero character");
	if (places[f->place].fields)
		return !f->field || scalar(r, f->field, what, text, len);
	if (places[f->place].array && places[f->place].element >= 0)
		return reader_fail(r, "%s in %s", what_names[what], places[f->place].name);
	return loose(r, f->place, what, text, len);
}

/* ---- objects and arrays ---- */

/* Make ready for the parts of a place that has just been opened. */
static bool enter(struct reader *r, enum place place, const struct field *field)
{
	switch (place) {
	case SETTINGS:
		r->list = (char *)&r->rec->machine + field->offset;
		r->list_size = field->size;
		break;
	case COMMAND:
		r->rec->command = calloc(1, sizeof(*r->rec->command));
		return r->rec->command || reader_fail(r, "out of memory");
	case RUN:
		r->run = run_new();
		if (!r->run || recording_add(r->rec, r->run)) {
			run_free(r->run);
			r->run = NULL;
			return reader_fail(r, "out of memory");
		}
		r->probe_room = 0;
		r->has_rusage = false;
		break;
	case RUSAGE:
		r->has_rusage = true;
		break;
	case VALUE:
		r->value = (struct raw_value){ 0 };
		break;
	case SAMPLE:
		/* The buckets beyond `buckets` are not read. */
		memset(&r->sample, 0, offsetof(struct raw_sample, bucket));
		r->sample.buckets = 0;
		break;
	case BUCKET:
		r->bucket = (struct raw_bucket){ 0 };
		break;
	case PROBE:
		r->probe = (struct raw_probe){ .misses = UINT64_MAX };
		break;
	default:
		break;
	}
	return true;
}

static int open_part(struct reader *r, bool array)
{
	struct frame *f = r->depth ? &r->frame[r->depth - 1] : NULL;
	const struct field *field = f ? f->field : NULL;
	const char *what = what_names[array ? ARRAY : OBJECT];
	int place = -1;

	r->heard = true;
	if (r->depth + r->skip == DEPTH_MAX)
		return reader_fail(r, "nested deeper than %d", DEPTH_MAX);
	if (r->skip || (f && places[f->place].fields && !field)) {
		r->skip++;
		return true;
	}
	if (!f)
		place = TOP;
	else if (places[f->place].fields)
		place = field->type == PART ? (int)field->part : -1;
	else if (places[f->place].array)
		place = places[f->place].element;
	if (place < 0)
		return reader_fail(r, "%s is %s", field ? field->key : places[f->place].name,
				   what);
	if (places[place].array != array)
		return reader_fail(r, "%s is %s", places[place].name, what);
	if (field && field->has)
		*((bool *)base_of(r, f->place) + field->has) = true;
	r->frame[r->depth++] = (struct frame){ .place = place };
	return enter(r, place, field);
}

static bool leave(struct reader *r, enum place place)
{
	switch (place) {
	case RUN:
		return reader_run(r);
	case VALUE:
		return reader_value(r);
	case SAMPLE:
		return reader_sample(r);
	case BUCKET:
		return reader_bucket(r);
	case PROBE:
		return reader_probe(r);
	default:
		return true;
	}
}

static int close_part(struct reader *r)
{
	const struct field *f;
	struct frame *top;

	r->heard = true;
	if (r->skip) {
		r->skip--;
		return true;
	}
	top = &r->frame[--r->depth];
	for (f = places[top->place].fields; f && f->key; f++)
		if (f->required && !(top->seen & (1u << (f - places[top->place].fields))))
			return reader_fail(r, "%s lacks '%s'", places[top->place].name, f->key);
	return leave(r, top->place);
}

/* ---- what the parser calls ---- */

static int on_null(void *ctx)
{
	return accept_scalar(ctx, NOTHING, "", 0);
}

static int on_bool(void *ctx, int on)
{
	return accept_scalar(ctx, BOOL, "", on);
}

static int on_number(void *ctx, const char *text, size_t len)
{
	return accept_scalar(ctx, NUMBER, text, len);
}

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
	return accept_scalar(ctx, STRING, (const char *)text, len);
}

static int on_object(void *ctx)
{
	return open_part(ctx, false);
}

static int on_array(void *ctx)
{
	return open_part(ctx, true);
}

static int on_end(void *ctx)
{
	return close_part(ctx);
}

static int on_key(void *ctx, const unsigned char *key, size_t len)
{
	struct reader *r = ctx;
	struct frame *top = &r->frame[r->depth ? r->depth - 1 : 0];
	const struct field *f, *fields = places[top->place].fields;

	r->heard = true;
	if (r->skip)
		return true;
	if (!fields) {
		if (len >= sizeof(r->key) || memchr(key, 0, len))
			return reader_fail(r, "a name of more than %zu bytes in %s",
					   sizeof(r->key) - 1, places[top->place].name);
		memcpy(r->key, key, len);
		r->key[len] = 0;
		return true;
	}
	for (f = fields; f->key && (strlen(f->key) != len || memcmp(f->key, key, len)); f++)
		;
	top->field = f->key ? f : NULL;
	if (!f->key)
		return true;
	if (top->seen & (1u << (f - fields)))
		return reader_fail(r, "the key '%s' comes twice in %s", f->key,
				   places[top->place].name);
	top->seen |= 1u << (f - fields);
	if (f->has && f->type != PART)
		*((bool *)base_of(r, top->place) + f->has) = true;
	return true;
}

const yajl_callbacks reader_callbacks = {
	.yajl_null = on_null, .yajl_boolean = on_bool, .yajl_number = on_number,
	.yajl_string = on_string, .yajl_start_map = on_object, .yajl_map_key = on_key,
	.yajl_end_map = on_end, .yajl_start_array = on_array, .yajl_end_array = on_end,
};
