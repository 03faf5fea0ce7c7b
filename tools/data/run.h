/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_RUN_H
#define MMSCOPE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/events.h"
#include "data/hist.h"
#include "data/labels.h"
#include "data/metrics.h"

/* ---- the tables (metrics.c, labels.c, events.c) ---- */

struct metric {
	enum metric_id id;
	const char *name;
	enum metric_domain domain;
	enum metric_kind kind;
	const char *unit;
	enum shape shape;
	enum metric_better better;
	bool exact, primary;
	enum metric_align align;
	unsigned int margin;	/* per cent */
	event_set events, named;
	const char *help;
};

extern const struct metric metrics[METRIC_MAX];
const struct metric *metric_by_name(const char *name);

/* Name of a label ("backing"), its fixed values, NULL-terminated (NULL: open). */
const char *label_name(enum label label);
const char *const *label_values(enum label label);
enum label label_by_name(const char *name);	/* LABEL_MAX: there is none */
unsigned int label_domains(enum label label);	/* DOMAIN_ bits; 0: it is no open one */

#define SHAPE_LABELS_MAX	4	/* most labels of a shape: room for one combination */

/* The ordered labels of a shape; returns their number (0..4). */
size_t shape_labels(enum shape shape, const enum label **labels);
/* May this combination (one value per label of the shape) occur at all? */
bool shape_can_occur(enum shape shape, const unsigned int *value);
/* Number of dense slots of a shape, and the combination of one of them. */
size_t shape_slots(enum shape shape);
void shape_combination(enum shape shape, size_t slot, unsigned int *value);
/* Fill slot_of[SLOT_TOTAL] for the BPF side. */
void shape_fill_slots(uint16_t *slot_of);

enum event_point { POINT_ENTRY, POINT_EXIT, POINT_TP, POINT_ITER, POINT_NONE };
enum event_how { HOW_FIRST, HOW_ALL };
enum event_need { NEED_ESSENTIAL, NEED_USEFUL, NEED_QUIET, NEED_PART, NEED_ASKED };

struct event {
	enum event_id id;
	const char *name;
	enum event_point point;
	enum event_how how;
	enum event_need need;
	const char *exists;	/* "struct.member" of kernels that have it; "": all */
	const char *symbols;	/* comma-separated, in order of preference */
	const char *help;
};

extern const struct event events[EVENT_MAX];

/* ---- one run ---- */

enum sample_flags {
	SAMPLE_INFERRED		= 1,	/* derived, not observed on this kernel */
	SAMPLE_LOWER_BOUND	= 2,	/* events were lost: sums and histograms */
	SAMPLE_SATURATED	= 4,
};

/* One value of one metric for one label combination. */
struct sample {
	const struct metric *metric;
	const char *label[LABEL_OPEN];	/* NULL: the sample does not carry it; not owned */
	const char *view_text;		/* of the open label that it carries, or NULL */
	enum label view;
	unsigned int flags;
	uint64_t value, max;	/* counters: the truth lies in [value - moved, max] */
	/* Of the value or the histogram's count: so many may belong to another label. */
	uint64_t moved;
	struct hist *hist;	/* histograms; owned by the run */
	struct hist_packed *packed;	/* instead of hist where the run was read from a file */
	/*
	 * The reason why there is no value (kept by run_text()). Without labels it
	 * holds for the whole metric, with labels for the combinations that have them.
	 */
	const char *unavailable;
};

/* A program whose runs may have been lost; misses of UINT64_MAX: unknown. */
struct probe_state {
	enum event_id event;
	const char *mechanism;	/* "fentry", "kprobe", "tp_btf", NULL: not attached */
	const char *symbol;	/* where it is attached; kept by run_text() */
	const char *reason;	/* why it is not attached; kept by run_text() */
	uint64_t misses;
};

struct trust {
	struct probe_state *probe;	/* one per attached program or missing event; owned */
	size_t probes;
	uint64_t unmatched;	/* exits without entry, entries without exit */
	uint64_t map_full;	/* task state or label slot that could not be had */
	uint64_t lost;		/* events of tasks for whose state there was no memory */
	uint64_t user_frames;	/* of stacks of user space; 0: none were asked for */
	uint64_t user_unnamed;	/* of them without the name of a function */
	uint64_t program_ps;	/* what one run of a program takes, picoseconds; 0: unknown */
	bool program_least;	/* ... at least: of tasks that are not observed */
};

struct run_value {
	char *name, *unit;
	double value;
	bool lower_better;
};

struct run {
	char boot_id[40];
	uint64_t start_ns;	/* CLOCK_REALTIME */
	uint64_t start_boot_ns;	/* CLOCK_BOOTTIME */
	uint64_t wall_ns;
	bool has_command;	/* the next fields are of a command */
	int exit_status;
	uint64_t user_ns, sys_ns, minflt, majflt, maxrss_kib;
	uint64_t anon_huge_kib;	/* AnonHugePages at the end */
	struct run_value *value;
	size_t values;
	struct sample *sample;
	size_t samples;
	struct trust trust;
	char **text;		/* label texts found at run time; owned */
	size_t texts;
};

struct run *run_new(void);
void run_free(struct run *run);
/* False of a run that no program looked at: it tells times, and counts nothing. */
bool run_observed(const struct run *run);
/* Append a zeroed sample; the pointer is valid until the next append. NULL: no memory. */
struct sample *run_add(struct run *run, enum metric_id metric);
/* Keep a copy of `text` for a sample's label; equal texts share one copy. */
const char *run_text(struct run *run, const char *text);
/* Append a value that the command printed; texts are copied. -1: no memory. */
int run_add_value(struct run *run, const char *name, double value, const char *unit,
		  bool lower_better);
/* The sample's histogram, allocated empty at the first call. NULL: no memory. */
struct hist *sample_hist(struct sample *s);
/* Its histogram, unpacked into *room where that is needed; NULL: it has none. */
const struct hist *sample_hist_read(const struct sample *s, struct hist *room);
/* Upper end of a counter's interval: `value` when `max` was not set above it. */
uint64_t sample_max(const struct sample *s);
/* Its value of any label, or NULL. Of the open ones it can carry one. */
const char *sample_label(const struct sample *s, enum label label);
void sample_set_label(struct sample *s, enum label label, const char *text);
/* The open label that it carries, as another view of events; LABEL_MAX: none. */
enum label sample_view(const struct sample *s);
/* Lower end of a counter's value, or of a histogram's count. */
uint64_t sample_min(const struct sample *s);
/* Why a sample is unavailable although it was asked for; NULL: it is not. */
const char *sample_missing(const struct sample *s);
/* Certainly nothing: neither a count, nor a possible one, nor unavailable. */
bool sample_is_zero(const struct sample *s);

/*
 * Sum of a metric over the samples that match: `want[l]` NULL matches any value
 * of label l, a NULL `want` everything. Samples that carry an open label are
 * extra views of the same events: they count only when `want` has that label.
 * Flags are or-ed. The slack of every sample of a metric stands for the same lost
 * runs, each of which belongs to one sample only: the sum has the largest slack,
 * not the sum of them (total_add()), and a sum over all labels none below, since
 * what is under the wrong label is in it. When a matching sample is unavailable
 * the sum would be wrong: false, and *reason (unless NULL) says why. No sample at
 * all is a 0. Of a histogram it is the number of values; whether there may be more
 * is in the flags.
 */
struct total {
	uint64_t min, value, max;
	unsigned int flags;
};
void total_add(struct total *to, const struct total *from);
bool run_total(const struct run *run, enum metric_id metric, const char *const *want,
	       struct total *total, const char **reason);
/* The same for histograms: merged into *hist, which is initialised here. */
bool run_hist(const struct run *run, enum metric_id metric, const char *const *want,
	      struct hist *hist, unsigned int *flags, const char **reason);

/* ---- a recording: {machine, command, runs} ---- */

struct machine {
	char release[80], version[320], arch[16], boot_id[40];
	unsigned int cpus_possible, cpus_online;
	uint64_t memory_kib, page_size;
	int64_t fault_around_bytes;	/* -1: unknown */
	char thp[16], shmem_thp[16];	/* the bracketed word, "" unknown */
	char mthp[256];			/* "64kB=always 2048kB=inherit", only those not `never` */
	int numa_balancing;		/* -1 unknown */
	char virt[16];			/* "none", "tcg", "kvm", "icount", "unknown" */
	char config[512];		/* listed config bits, "PREEMPT_LAZY=y HZ=250 ..." */
};

#define RECORDING_SCHEMA	1	/* raised when a reader must know of a change */
#define PRIMARIES_MAX	5

struct recording {
	struct machine machine;
	char **command;		/* NULL-terminated; NULL: none; owned */
	const char *primary[PRIMARIES_MAX];	/* kept by recording_text(), or static */
	size_t primaries;
	struct run **run;	/* owned */
	size_t runs;
	struct text_pool *pool;	/* of recording_text() */
};

struct recording *recording_new(void);
void recording_free(struct recording *rec);
/*
 * A copy of the text that lives as long as the recording; equal texts share one.
 * For labels and reasons of its runs, too. NULL: no memory.
 */
const char *recording_text(struct recording *rec, const char *text, size_t len);
/* Takes the run. -1: no memory, and the run is still the caller's. */
int recording_add(struct recording *rec, struct run *run);
/*
 * Which runs tell what. Observing takes time: where a recording has runs that were
 * not observed, too, what was measured in time comes from these, and counts from
 * the others.
 */
struct passes {
	bool counts, times;	/* there are observed runs, there are others */
};
struct passes recording_passes(const struct recording *rec);
/* May this run tell a metric (or, with `time`, a time or a value of the command)? */
bool pass_tells(const struct passes *p, const struct run *run, bool metric, bool time);
/* Facts of the machine we run on; whatever cannot be read stays unknown. */
void machine_read(struct machine *m);

#endif
