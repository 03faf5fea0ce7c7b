/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_TEST_SAMPLES_H
#define MMSCOPE_TEST_SAMPLES_H

/* Words to make runs and recordings by hand with. */
#include <stdlib.h>
#include <string.h>

#include "data/run.h"

/* A sample; labels are given in the order of the metric's shape, "" for none. */
static inline struct sample *add(struct run *run, enum metric_id metric, const char *labels)
{
	struct sample *s = run_add(run, metric);
	char copy[128], *word, *save = NULL;
	const enum label *label;
	size_t n = shape_labels(metrics[metric].shape, &label), i = 0;

	assert_non_null(s);
	snprintf(copy, sizeof(copy), "%s", labels);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		assert_true(i < n);
		s->label[label[i++]] = run_text(run, word);
	}
	assert_true(i == n || !i);
	return s;
}

static inline struct sample *count(struct run *run, enum metric_id metric,
				   const char *labels, uint64_t value)
{
	struct sample *s = add(run, metric, labels);

	s->value = s->max = value;
	return s;
}

/* n equal values more in the histogram of these labels, or of a new sample. */
static inline struct sample *observe(struct run *run, enum metric_id metric,
				     const char *labels, uint64_t value, uint64_t n)
{
	struct sample *s = add(run, metric, labels);
	struct hist *h;
	size_t i;

	for (i = 0; i + 1 < run->samples; i++) {
		if (run->sample[i].metric != s->metric ||
		    run->sample[i].view_text != s->view_text ||
		    memcmp(run->sample[i].label, s->label, sizeof(s->label)))
			continue;
		run->samples--;
		s = &run->sample[i];
		break;
	}
	h = sample_hist(s);
	assert_non_null(h);
	hist_add(h, h->kind == HIST_TIME ? hist_time_bucket(value) : hist_batch_bucket(value), n);
	hist_add_sum(h, value * n);
	return s;
}

static inline void unavailable(struct run *run, enum metric_id metric, const char *labels,
			       const char *reason)
{
	add(run, metric, labels)->unavailable = run_text(run, reason);
}

/* Some events attached and nothing lost: few, so that a new event changes no golden file. */
static inline void attach(struct run *run)
{
	static const enum event_id some[] = {
		EVENT_FAULT_ENTRY, EVENT_FAULT_EXIT, EVENT_PTE_INSTALL, EVENT_COW_FAULT,
		EVENT_PTE_LOCK, EVENT_MAP_PAGES, EVENT_FORK,
	};
	struct trust *t = &run->trust;
	char symbol[64];
	size_t i;

	t->probes = sizeof(some) / sizeof(*some);
	t->program_ps = 61500;
	t->probe = calloc(t->probes, sizeof(*t->probe));
	assert_non_null(t->probe);
	for (i = 0; i < t->probes; i++) {
		const struct event *e = &events[some[i]];

		t->probe[i].event = some[i];
		t->probe[i].mechanism = e->point == POINT_TP ? "tp_btf" : "fentry";
		snprintf(symbol, sizeof(symbol), "%.*s", (int)strcspn(e->symbols, ","), e->symbols);
		t->probe[i].symbol = run_text(run, symbol);
	}
}

static inline struct probe_state *probe(struct run *run, enum event_id event)
{
	size_t i;

	for (i = 0; run->trust.probe[i].event != event; i++)
		assert_true(i + 1 < run->trust.probes);
	return &run->trust.probe[i];
}

static inline void miss_probe(struct run *run, enum event_id event, const char *reason)
{
	struct probe_state *p = probe(run, event);

	p->mechanism = NULL;
	p->symbol = NULL;
	p->reason = run_text(run, reason);
}

static inline struct run *new_run(struct recording *rec)
{
	struct run *run = run_new();

	assert_non_null(run);
	snprintf(run->boot_id, sizeof(run->boot_id), "00000000-0000-4000-8000-000000000001");
	run->start_ns = 1790000000123456789ULL + rec->runs * 1000000000ULL;
	run->start_boot_ns = 42000000000ULL + rec->runs * 1000000000ULL;
	run->wall_ns = 1234567890;
	attach(run);
	assert_int_equal(recording_add(rec, run), 0);
	return run;
}

static inline void set_command(struct recording *rec, const char *const *argv, size_t n)
{
	size_t i;

	rec->command = calloc(n + 1, sizeof(*rec->command));
	assert_non_null(rec->command);
	for (i = 0; i < n; i++)
		rec->command[i] = strdup(argv[i]);
}

static inline struct recording *new_recording(const char *release, const char *virt)
{
	static const char *const argv[] = { "mmscope", "bench", "arraymap", "--size", "8M" };
	struct recording *rec = recording_new();
	struct machine *m;

	assert_non_null(rec);
	m = &rec->machine;
	snprintf(m->release, sizeof(m->release), "%s", release);
	snprintf(m->version, sizeof(m->version), "Linux version %s #1 SMP", release);
	strcpy(m->arch, "x86_64");
	snprintf(m->virt, sizeof(m->virt), "%s", virt);
	strcpy(m->thp, "always");
	strcpy(m->shmem_thp, "never");
	strcpy(m->mthp, "64kB=always 2048kB=inherit");
	strcpy(m->config, "PREEMPT_LAZY=y HZ=250 DEBUG_VM=n HZ=1000");
	m->cpus_possible = m->cpus_online = 2;
	m->memory_kib = 1000000;
	m->page_size = 4096;
	m->fault_around_bytes = 65536;
	m->numa_balancing = -1;
	set_command(rec, argv, sizeof(argv) / sizeof(*argv));
	rec->primary[rec->primaries++] = "ptes_per_hold";
	return rec;
}

#endif
