/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_READ_PARTS_H
#define MMSCOPE_READ_PARTS_H

/*
 * Between read.c, which reads a file, read_walk.c, which knows its structure, and
 * read_parts.c, which builds the recording.
 */
#include <stdbool.h>
#include <yajl/yajl_parse.h>

#include "data/run.h"

#define BUCKETS_MAX	1024	/* more than any histogram has */
#define DEPTH_MAX	32

/* The objects and arrays of a recording. */
enum place {
	TOP, MACHINE, SETTINGS, COMMAND, PRIMARY, RUNS, RUN, RUSAGE, VALUES, VALUE, METRICS,
	SAMPLE, LABELS, BUCKETS, BUCKET, TRUST, PROBES, PROBE, PLACE_MAX
};

struct field;

/* One that is open. */
struct frame {
	enum place place;
	uint32_t seen;			/* fields of this object */
	const struct field *field;	/* of the key before the value; NULL: not known */
};

struct raw_bucket {
	uint64_t low, high, count;
	bool overflow;		/* high is null */
	unsigned int n;		/* numbers seen */
};

/* A sample as it stands in the file: its keys may come in any order. */
struct raw_sample {
	const char *name, *unit, *unavailable;
	const char *label[LABEL_MAX];
	bool has_value, has_min, has_max, has_count, has_sum, has_buckets;
	bool inferred, lower_bound, saturated;
	bool unknown_label;
	uint64_t value, min, max, count, sum;
	struct raw_bucket bucket[BUCKETS_MAX];
	size_t buckets;
};

struct raw_probe {
	const char *event, *mechanism, *symbol, *missing;
	uint64_t misses;
};

struct raw_value {
	const char *name, *unit, *better;
	double value;
	bool has_value;
};

struct reader {
	struct recording *rec;
	struct frame frame[DEPTH_MAX];
	unsigned int depth, skip;	/* open containers; of unknown keys, in these */
	bool heard;			/* the parser called since this was cleared */
	char key[64];			/* of settings and labels */
	char *list;			/* the settings that are being read */
	size_t list_size;
	struct run *run;		/* the one that is being read */
	bool has_rusage;
	size_t probe_room, words;
	struct raw_sample sample;
	struct raw_probe probe;
	struct raw_value value;
	struct raw_bucket bucket;
	/* What another version knows and we do not. */
	size_t unknown;
	char first_unknown[64];
	char error[400];		/* the first one; "" none */
	bool newer;			/* it is of the schema, and nothing is damaged */
};

extern const yajl_callbacks reader_callbacks;	/* their context is a struct reader */

/*
 * Each takes what has been gathered in r. False after r->error has been set
 * (reader_fail()).
 */
bool reader_fail(struct reader *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
bool reader_label(struct reader *r, const char *key, size_t key_len, const char *text, size_t len);
bool reader_bucket(struct reader *r);
bool reader_sample(struct reader *r);
bool reader_probe(struct reader *r);
bool reader_value(struct reader *r);
bool reader_primary(struct reader *r, const char *text);
bool reader_word(struct reader *r, const char *text, size_t len);
/* Append "key=text" to a machine's list of settings. */
bool reader_setting(struct reader *r, char *list, size_t size, const char *key,
		    const char *text, size_t len);
/* All of the run's parts are there. */
bool reader_run(struct reader *r);

#endif
