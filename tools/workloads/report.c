// SPDX-License-Identifier: GPL-2.0-only
/* What a workload measured, as a table, as JSON, and as values for a recording. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#include "data/status.h"
#include "data/err.h"
#include "workloads/control.h"
#include "workloads/stats.h"
#include "workloads/workload.h"

#define LAP(member) offsetof(struct lap, member)

struct column {
	const char *key, *title;
	size_t offset;
};

static const struct column times[] = {
	{ "mmap_ns", "mmap", LAP(mmap_ns) },
	{ "touch_ns", "touch", LAP(touch_ns) },
	{ "munmap_ns", "munmap", LAP(munmap_ns) },
	{ 0 }
};

static const struct column oracles[] = {
	{ "present", "present", LAP(oracle.present) },
	{ "rss_kib", "rss_kib", LAP(oracle.rss_kib) },
	{ "anon_huge_kib", "anon_huge", LAP(oracle.anon_huge_kib) },
	{ "shmem_pmd_kib", "shmem_pmd", LAP(oracle.shmem_pmd_kib) },
	{ "file_pmd_kib", "file_pmd", LAP(oracle.file_pmd_kib) },
	{ "hugetlb_kib", NULL, LAP(oracle.hugetlb_kib) },	/* JSON only */
	{ 0 }
};

/* Of the process, not the mapping: only where they are exact (rss_exact). */
static const struct column counters[] = {
	{ "rss_anon_kib", NULL, LAP(oracle.rss.anon) },
	{ "rss_file_kib", NULL, LAP(oracle.rss.file) },
	{ "rss_shmem_kib", NULL, LAP(oracle.rss.shmem) },
	{ 0 }
};

static uint64_t lap_value(const struct bench *b, uint64_t i, size_t offset)
{
	return *(const uint64_t *)((const char *)&b->laps[i] + offset);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct spread spread_of(uint64_t *v, size_t n)
{
	uint64_t low, high;

	qsort(v, n, sizeof(*v), compare);
	low = v[(n - 1) / 2];
	high = v[n / 2];
	return (struct spread){ v[0], low + (high - low) / 2, v[n - 1] };
}

static struct spread column_spread(const struct bench *b, const struct column *c, uint64_t *room)
{
	uint64_t i;

	for (i = 0; i < b->repeats; i++)
		room[i] = lap_value(b, i, c->offset);
	return spread_of(room, b->repeats);
}

static uint64_t child_minflt(const struct bench *b)
{
	uint64_t i, sum = 0;

	for (i = 0; i < b->repeats; i++)
		sum += b->laps[i].child_minflt;
	return sum;
}

static void string(yajl_gen g, const char *name)
{
	yajl_gen_string(g, (const unsigned char *)name, strlen(name));
}

static void number(yajl_gen g, const char *name, uint64_t value)
{
	string(g, name);
	yajl_gen_integer(g, value);
}

static void column_array(yajl_gen g, const struct bench *b, const struct column *c)
{
	uint64_t i;

	string(g, c->key);
	yajl_gen_array_open(g);
	for (i = 0; i < b->repeats; i++)
		yajl_gen_integer(g, lap_value(b, i, c->offset));
	yajl_gen_array_close(g);
}

static void json_oracle(yajl_gen g, const struct bench *b)
{
	const struct column *c;
	char hex[24];
	uint64_t i;

	for (c = oracles; c->key; c++)
		column_array(g, b, c);
	string(g, "rss_exact");
	yajl_gen_bool(g, b->rss_exact);
	for (c = counters; b->rss_exact && c->key; c++)
		column_array(g, b, c);
	number(g, "pgfault_inside", b->pgfault_inside);
	number(g, "pgfault_around", b->pgfault_around);
	string(g, "addr");
	yajl_gen_array_open(g);
	for (i = 0; i < b->repeats; i++) {
		snprintf(hex, sizeof(hex), "0x%" PRIx64, b->laps[i].oracle.addr);
		string(g, hex);
	}
	yajl_gen_array_close(g);
	number(g, "fault_around_bytes", b->fault_around_bytes);
	if (!b->windows)
		return;
	string(g, "windows");
	yajl_gen_array_open(g);
	for (i = 0; i < b->repeats; i++)
		yajl_gen_integer(g, b->windows[i]);
	yajl_gen_array_close(g);
}

static void put(void *file, const char *text, size_t len)
{
	fwrite(text, 1, len, file);
}

static int print_json(const struct bench *b)
{
	yajl_gen g = yajl_gen_alloc(NULL);
	const struct column *c;
	size_t i;

	if (!g)
		return -1;
	yajl_gen_config(g, yajl_gen_print_callback, put, stdout);
	yajl_gen_map_open(g);
	string(g, "bench");
	string(g, b->name);
	for (i = 0; i < b->nparams; i++) {
		string(g, b->param[i].key);
		if (b->param[i].text)
			string(g, b->param[i].text);
		else
			yajl_gen_integer(g, b->param[i].number);
	}
	number(g, "repeat", b->repeats);
	number(g, "page_size", bench_page_size());
	number(g, "pages", b->pages);
	number(g, "pages_total", b->pages * b->repeats);
	number(g, "map_pages", b->map_pages);
	for (c = times; c->key; c++)
		column_array(g, b, c);
	number(g, "minflt", b->minflt);
	number(g, "majflt", b->majflt);
	number(g, "child_minflt", child_minflt(b));
	if (b->reader)
		json_oracle(g, b);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	putchar('\n');
	return 0;
}

/* Nanoseconds in at most seven digits. */
static void print_time(uint64_t ns, int width)
{
	static const char *const unit[] = { "ns", "us", "ms", "s" };
	size_t u = 0;

	while (ns >= 10000000 && u < 3) {
		ns = (ns + 500) / 1000;
		u++;
	}
	printf("%*" PRIu64 " %-2s", width - 3, ns, unit[u]);
}

static void print_params(const struct bench *b)
{
	size_t i;

	printf("bench %s:", b->name);
	for (i = 0; i < b->nparams; i++) {
		printf("%s %s ", i ? "," : "", b->param[i].key);
		if (b->param[i].text)
			printf("%s", b->param[i].text);
		else if (b->param[i].number && b->param[i].number % (1 << 20) == 0)
			printf("%" PRIu64 "M", b->param[i].number >> 20);
		else if (b->param[i].number && b->param[i].number % (1 << 10) == 0)
			printf("%" PRIu64 "K", b->param[i].number >> 10);
		else
			printf("%" PRIu64, b->param[i].number);
	}
	printf("\n");
}

static void print_oracle(const struct bench *b)
{
	const struct column *c;
	uint64_t i;

	printf("\nthe kernel's account of the mapping before it is unmapped (pages, then KiB):\n"
	       "  repeat            addr");
	for (c = oracles; c->title; c++)
		printf(" %10s", c->title);
	printf("%s\n", b->windows ? "    windows" : "");
	for (i = 0; i < b->repeats; i++) {
		printf("  %6" PRIu64 "  %#14" PRIx64, i + 1, b->laps[i].oracle.addr);
		for (c = oracles; c->title; c++)
			printf(" %10" PRIu64, lap_value(b, i, c->offset));
		if (b->windows)
			printf(" %10" PRIu64, b->windows[i]);
		printf("\n");
	}
}

static void print_text(const struct bench *b, uint64_t *room)
{
	const struct column *c;
	struct spread s;

	print_params(b);
	printf("pages: %" PRIu64 " touched per repeat, %" PRIu64 " in %" PRIu64
	       " repeats; %" PRIu64 " mapped\n\n", b->pages, b->pages * b->repeats, b->repeats,
	       b->map_pages);
	printf("%-8s %14s %14s %14s %14s\n", "", "minimum", "median", "max - min",
	       b->pages ? "median / page" : "");
	for (c = times; c->key; c++) {
		s = column_spread(b, c, room);
		printf("%-8s ", c->title);
		print_time(s.min, 14);
		putchar(' ');
		print_time(s.median, 14);
		putchar(' ');
		print_time(s.max - s.min, 14);
		if (b->pages) {
			putchar(' ');
			print_time(s.median / b->pages, 14);
		}
		putchar('\n');
	}
	printf("\nfaults of these repeats: %" PRIu64 " minor, %" PRIu64 " major", b->minflt,
	       b->majflt);
	if (child_minflt(b))
		printf("; of the forked children: %" PRIu64, child_minflt(b));
	putchar('\n');
	if (b->reader)
		print_oracle(b);
}

static int write_values(const struct bench *b, uint64_t *room)
{
	static const struct column rss = { "rss_kib", "rss_kib", LAP(oracle.rss_kib) };
	const struct column *c;

	for (c = times; c->key; c++)
		if (values_write(c->key, column_spread(b, c, room).median, "ns", "lower"))
			return -1;
	if (!b->reader)
		return 0;
	/* Never more than so much: the largest of all repeats. */
	return values_write(rss.key, column_spread(b, &rss, room).max, "KiB", "lower");
}

int bench_report(struct bench *b)
{
	uint64_t *room = malloc(b->repeats * sizeof(*room));
	int ret = EXIT_INTERNAL;

	if (!room) {
		err("bench", "no memory for the report");
		return ret;
	}
	errno = 0;
	if (!b->json)
		print_text(b, room);
	else if (print_json(b))
		errno = ENOMEM;
	if (errno == ENOMEM || fflush(stdout) || ferror(stdout)) {
		/* A reader that has seen enough is no failure. */
		if (errno != EPIPE)
			err("bench", "cannot write the report: %s", strerror(errno));
		goto cleanup;
	}
	if (write_values(b, room)) {
		err("MMSCOPE_VALUES_FD", "cannot write to it: %s", strerror(errno));
		goto cleanup;
	}
	ret = EXIT_OK;
cleanup:
	free(room);
	return ret;
}
