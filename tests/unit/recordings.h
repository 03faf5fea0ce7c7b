/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_TEST_RECORDINGS_H
#define MMSCOPE_TEST_RECORDINGS_H

/* Recordings made by hand, for the tests of the renderers. */
#include "unit/samples.h"

static struct recording *make_lazy(void)
{
	struct recording *rec = new_recording("7.3.4-cloud-amd64", "tcg");
	struct run *r = new_run(rec);

	r->has_command = true;
	r->user_ns = 5000000;
	r->sys_ns = 250000000;
	r->minflt = 2048;
	r->maxrss_kib = 9000;
	r->value = calloc(1, sizeof(*r->value));
	r->values = 1;
	r->value[0] = (struct run_value){ strdup("touch_ns"), strdup("ns"), 0.1, true };
	count(r, METRIC_FAULT_ATTEMPTS, "bpf_array access", 4096);
	count(r, METRIC_FAULT_COMPLETED, "bpf_array per_page access minor", 2048);
	count(r, METRIC_FAULT_COMPLETED, "bpf_array per_page access major", 0);
	count(r, METRIC_FAULT_REFUSED, "bpf_array no_map_pages", 2048);
	count(r, METRIC_FAULT_FAILED, "bpf_array access", 0);
	count(r, METRIC_PTES_INSTALLED, "bpf_array per_page access", 2048);
	observe(r, METRIC_PTES_PER_HOLD, "bpf_array per_page access", 1, 2048);
	observe(r, METRIC_PTES_PER_FAULT, "bpf_array per_page access", 1, 2048);
	observe(r, METRIC_FAULT_LATENCY, "bpf_array per_page access", 3200, 2000);
	observe(r, METRIC_FAULT_LATENCY, "bpf_array per_page access", 40000, 48);
	observe(r, METRIC_FAULT_ATTEMPT_LATENCY, "bpf_array refused", 900, 2048);
	observe(r, METRIC_FAULT_ATTEMPT_LATENCY, "bpf_array completed", 2100, 2048);
	/* The same events again, by their vm_ops. */
	sample_set_label(count(r, METRIC_PTES_INSTALLED, "bpf_array per_page access", 2048),
			 LABEL_VM_OPS, "bpf_map_lazy_vmops");
	sample_set_label(count(r, METRIC_FAULT_COMPLETED, "bpf_array per_page access minor", 2048),
			 LABEL_VM_OPS, "bpf_map_lazy_vmops");
	return rec;
}

static struct recording *make_eager(void)
{
	struct recording *rec = new_recording("7.2.12-cloud-amd64", "none");
	struct run *r = new_run(rec);

	count(r, METRIC_PTES_INSTALLED, "bpf_array eager mmap", 2048);
	observe(r, METRIC_PTES_PER_HOLD, "bpf_array eager mmap", 1, 2048);
	return rec;
}

/* The rare ways through a fault, and what fault-around would have gained. */
static struct recording *make_paths(void)
{
	struct recording *rec = new_recording("7.3.4-cloud-amd64", "none");
	struct run *r = new_run(rec);

	count(r, METRIC_FAULT_ATTEMPTS, "anon access", 1107);
	count(r, METRIC_FAULT_RETRIED, "anon access", 200);
	count(r, METRIC_FAULT_COMPLETED, "anon zero_page access minor", 300);
	count(r, METRIC_FAULT_COMPLETED, "anon swap_in access major", 75);
	count(r, METRIC_FAULT_COMPLETED, "anon reuse access minor", 32);
	count(r, METRIC_FAULT_COMPLETED, "anon numa_hint access minor", 300);
	count(r, METRIC_FAULT_COMPLETED, "anon uffd access minor", 200);
	count(r, METRIC_PTES_INSTALLED, "anon zero_page access", 300);
	count(r, METRIC_PTES_INSTALLED, "anon swap_in access", 300);
	observe(r, METRIC_PTES_PER_HOLD, "anon zero_page access", 1, 300);
	observe(r, METRIC_PTES_PER_HOLD, "anon swap_in access", 4, 75);
	observe(r, METRIC_PTES_PER_FAULT, "anon swap_in access", 4, 75);
	count(r, METRIC_FAULT_ATTEMPTS, "hugetlb access", 3);
	count(r, METRIC_FAULT_COMPLETED, "hugetlb pmd access minor", 3);
	count(r, METRIC_PMD_MAPS, "hugetlb access", 3);
	count(r, METRIC_PTES_INSTALLED, "device eager mmap", 16);
	observe(r, METRIC_PTES_PER_HOLD, "device eager mmap", 5, 1);
	observe(r, METRIC_PTES_PER_HOLD, "device eager mmap", 11, 1);
	count(r, METRIC_FAULT_AROUND_EXTRA, "file", 960);
	count(r, METRIC_FAULT_AROUND_TOUCHED, "file", 120);
	return rec;
}

static struct recording *make_around(void)
{
	struct recording *rec = new_recording("7.2.12-cloud-amd64", "kvm");
	struct run *r = new_run(rec);

	count(r, METRIC_FAULT_ATTEMPTS, "file access", 97);
	count(r, METRIC_FAULT_COMPLETED, "file fault_around access minor", 31);
	count(r, METRIC_FAULT_COMPLETED, "file fault_around access major", 33);
	count(r, METRIC_FAULT_RETRIED, "file access", 33);
	count(r, METRIC_PTES_INSTALLED, "file fault_around access", 1024);
	observe(r, METRIC_PTES_PER_HOLD, "file fault_around access", 15, 33);
	observe(r, METRIC_PTES_PER_HOLD, "file fault_around access", 16, 30);
	observe(r, METRIC_PTES_PER_HOLD, "file fault_around access", 49, 1);
	observe(r, METRIC_PTES_PER_FAULT, "file fault_around access", 16, 64);
	count(r, METRIC_FAULT_AROUND_ASKED, "file", 1100);
	count(r, METRIC_FAULT_AROUND_MAPPED, "file", 1024);
	count(r, METRIC_FAULT_AROUND_PRESENT, "file", 16);
	observe(r, METRIC_FAULT_LATENCY, "file fault_around access", 150000, 64);
	observe(r, METRIC_FAULT_ATTEMPT_LATENCY, "file retried", 100000, 33);
	observe(r, METRIC_FAULT_ATTEMPT_LATENCY, "file completed", 50000, 64);
	/* Large folios reach beyond their windows. */
	count(r, METRIC_FAULT_AROUND_ASKED, "shmem", 64);
	count(r, METRIC_FAULT_AROUND_MAPPED, "shmem", 512);
	count(r, METRIC_FAULT_AROUND_PRESENT, "shmem", 0);
	count(r, METRIC_PTES_INSTALLED, "shmem large_folio access", 37);
	count(r, METRIC_FAULT_FAILED, "anon access", 1);
	return rec;
}

static struct recording *make_thp(void)
{
	struct recording *rec = new_recording("7.3.4-cloud-amd64", "none");
	struct run *r = new_run(rec);

	r->anon_huge_kib = 8192;
	count(r, METRIC_FAULT_ATTEMPTS, "anon access", 9);
	count(r, METRIC_FAULT_COMPLETED, "anon pmd access minor", 4);
	count(r, METRIC_FAULT_COMPLETED, "anon large_folio access minor", 4);
	count(r, METRIC_FAULT_COMPLETED, "anon none access minor", 1);
	count(r, METRIC_PMD_MAPS, "anon access", 4);
	count(r, METRIC_PTES_INSTALLED, "anon large_folio access", 64);
	observe(r, METRIC_PTES_PER_HOLD, "anon large_folio access", 16, 4);
	observe(r, METRIC_PTES_PER_FAULT, "anon large_folio access", 16, 4);
	observe(r, METRIC_FAULT_LATENCY, "anon pmd access", 5, 3);
	observe(r, METRIC_FAULT_LATENCY, "anon pmd access", 1ULL << 41, 1);
	return rec;
}

/* Grown by faults and by other ways, shrunk again, with something left over. */
static struct recording *make_resident(void)
{
	struct recording *rec = new_recording("7.2.12-cloud-amd64", "none");
	struct run *r = new_run(rec);

	count(r, METRIC_FAULT_ATTEMPTS, "anon access", 1024);
	count(r, METRIC_FAULT_COMPLETED, "anon per_page access minor", 1022);
	count(r, METRIC_FAULT_COMPLETED, "anon pmd access minor", 2);
	count(r, METRIC_PMD_MAPS, "anon access", 2);
	count(r, METRIC_PTES_INSTALLED, "anon per_page access", 1022);
	observe(r, METRIC_PTES_PER_HOLD, "anon per_page access", 1, 1022);
	observe(r, METRIC_PTES_PER_FAULT, "anon per_page access", 1, 1022);
	count(r, METRIC_PTES_RSS_UNCHANGED, "", 22);
	count(r, METRIC_RSS_BEFORE, "", 100);
	/* 100, and 1000 + 1024 of faults, 700 copied, less 1512, and 3 that nobody saw */
	count(r, METRIC_RSS_AFTER, "", 1315);
	count(r, METRIC_RSS_FORK_COPY, "", 700);
	count(r, METRIC_RSS_ZAPPED, "", 1512);
	count(r, METRIC_PAGES_MOVED, "", 64);
	unavailable(r, METRIC_RSS_UFFD, "", "mfill_atomic_install_pte: no symbol");
	count(r, METRIC_PTES_ZAPPED, "anon", 1000);
	observe(r, METRIC_PTES_PER_ZAP_HOLD, "anon", 500, 2);
	count(r, METRIC_PMDS_ZAPPED, "anon", 1);
	observe(r, METRIC_MUNMAP_LATENCY, "", 1000, 2);
	return rec;
}

static struct recording *make_inferred(void)
{
	struct recording *rec = new_recording("6.1.0-54-cloud-amd64", "tcg");
	struct run *r = new_run(rec);

	count(r, METRIC_FAULT_ATTEMPTS, "shmem access", 64);
	count(r, METRIC_FAULT_COMPLETED, "shmem fault_around access minor", 64);
	count(r, METRIC_PTES_INSTALLED, "shmem fault_around access", 1024);
	observe(r, METRIC_PTES_PER_HOLD, "shmem fault_around access", 16, 64)->flags =
		SAMPLE_INFERRED;
	observe(r, METRIC_PTES_PER_FAULT, "shmem fault_around access", 16, 64);
	miss_probe(r, EVENT_PTE_LOCK, "inlined on this kernel");
	unavailable(r, METRIC_FAULT_REFUSED, "", "no per-VMA lock on this kernel");
	return rec;
}

static struct recording *make_misses(void)
{
	struct recording *rec = make_lazy();
	struct run *r = rec->run[0];
	size_t i;

	for (i = 0; i < r->samples; i++) {
		struct sample *s = &r->sample[i];

		if (s->hist)
			s->flags |= SAMPLE_LOWER_BOUND;
		else if (s->value)
			s->max = s->value + 5;
		s->moved = 7;
	}
	/* The lost runs may have been of any other combination too. */
	count(r, METRIC_FAULT_ATTEMPTS, "file access", 0)->max = 5;
	count(r, METRIC_FAULT_COMPLETED, "file per_page access minor", 0)->max = 5;
	count(r, METRIC_FAULT_REFUSED, "file anon_vma", 0)->max = 5;
	count(r, METRIC_PTES_INSTALLED, "file per_page access", 0)->max = 5;
	count(r, METRIC_PMD_MAPS, "anon access", 0)->max = 5;
	count(r, METRIC_FAULT_AROUND_ASKED, "file", 0)->max = 5;
	probe(r, EVENT_FAULT_ENTRY)->misses = 5;
	r->trust.program_least = true;
	probe(r, EVENT_FAULT_EXIT)->misses = 2;
	r->trust.unmatched = 3;
	return rec;
}

static struct recording *make_missing(void)
{
	struct recording *rec = make_lazy();
	struct run *r = rec->run[0];
	size_t i, kept = 0;

	for (i = 0; i < r->samples; i++) {
		if (r->sample[i].metric->id == METRIC_PTES_PER_HOLD)
			free(r->sample[i].hist);
		else
			r->sample[kept++] = r->sample[i];
	}
	r->samples = kept;
	unavailable(r, METRIC_PTES_PER_HOLD, "", "page-table lock: no permission to attach");
	/* Seen for one backing and not for another: then a zero must be written. */
	count(r, METRIC_FAULT_AROUND_PRESENT, "file", 0);
	unavailable(r, METRIC_FAULT_AROUND_PRESENT, "shmem", "reading page tables: lockdown");
	miss_probe(r, EVENT_PTE_LOCK, "no permission to attach");
	miss_probe(r, EVENT_MAP_PAGES, "lockdown");
	r->trust.program_ps = 0;
	probe(r, EVENT_FAULT_ENTRY)->misses = UINT64_MAX;
	return rec;
}

static struct recording *make_empty(void)
{
	struct recording *rec = new_recording("7.3.4-cloud-amd64", "none");

	new_run(rec);
	return rec;
}

static struct recording *make_hostile(void)
{
	static const char *const argv[] = {
		"a\"b\\\n\033[31m", "\xff\xfe""bad", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
		"\xc2\x9b""31m\x7f", "\xed\xa0\x80\xc0\xaf", ""
	};
	struct recording *rec = new_recording("7.3.4-\033[31m", "none");
	struct run *r = new_run(rec);
	size_t i;

	for (i = 0; rec->command[i]; i++)
		free(rec->command[i]);
	free(rec->command);
	set_command(rec, argv, sizeof(argv) / sizeof(*argv));
	sample_set_label(count(r, METRIC_FAULT_COMPLETED, "other per_page access minor", 1),
			 LABEL_VM_OPS, run_text(r, "evil\"\n\033[2J\xff"));
	miss_probe(r, EVENT_COW_FAULT, "bad\n\033[31m reason \xff");
	unavailable(r, METRIC_PMD_MAPS, "", "bad\n\033[31m reason \xff");
	return rec;
}

/* Numbers beyond what a column or a file holds, and every size of batch. */
static struct recording *make_large(void)
{
	struct recording *rec = new_recording("7.3.4-cloud-amd64", "icount");
	struct run *r = new_run(rec);
	uint64_t i;

	count(r, METRIC_FAULT_ATTEMPTS, "anon access", 12345678901ULL);
	count(r, METRIC_FAULT_COMPLETED, "anon per_page access minor", 12345678901ULL);
	count(r, METRIC_FAULT_COMPLETED, "file cow populate major", UINT64_MAX);
	count(r, METRIC_PTES_INSTALLED, "anon per_page access", 10000001);
	count(r, METRIC_PTES_INSTALLED, "guest_memfd per_page gup", 9999999)->max = 10000005;
	for (i = 1; i <= 512; i++)
		observe(r, METRIC_PTES_PER_HOLD, "anon per_page access", i, 513 - i);
	observe(r, METRIC_PTES_PER_HOLD, "anon per_page access", 513, 1);
	observe(r, METRIC_PTES_PER_HOLD, "anon per_page access", 20000, 2);
	observe(r, METRIC_FAULT_LATENCY, "anon per_page access", 0, 1);
	observe(r, METRIC_FAULT_LATENCY, "anon per_page access", (1ULL << 32) + 5, 1);
	observe(r, METRIC_FAULT_LATENCY, "guest_memfd per_page gup", 1000000, INT64_MAX);
	r->trust.map_full = 7;
	r->trust.lost = 8;
	return rec;
}

static struct recording *make_runs(void)
{
	struct recording *rec = make_lazy();
	struct run *r = new_run(rec);

	r->wall_ns = 1000000000;
	count(r, METRIC_FAULT_ATTEMPTS, "anon access", 3);
	count(r, METRIC_FAULT_COMPLETED, "anon per_page access minor", 2);
	count(r, METRIC_FAULT_REFUSED, "anon anon_vma", 1);
	count(r, METRIC_FAULT_REFUSED, "anon vma_write_locked", 4);
	count(r, METRIC_PTES_INSTALLED, "anon per_page access", 2);
	observe(r, METRIC_PTES_PER_HOLD, "anon per_page access", 1, 2);
	new_run(rec);
	return rec;
}

#endif
