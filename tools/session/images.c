// SPDX-License-Identifier: GPL-2.0-only
#include <bpf/bpf.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "data/err.h"
#include "session/elf_symbols.h"
#include "session/images.h"

#define BUCKETS		1024	/* power of two */
#define MAPPINGS_MAX	65536	/* of one image: who maps code again and again */
#define IMAGES_KEPT	20000	/* then those of processes that have ended are looked through */
#define SETTLED_NS	100000000ULL	/* a CPU that was writing a record is done with it */

/* What mappings have in common: many processes have the same. */
struct mapped_file {
	struct mapped_file *next;
	struct file_id id;
	struct elf_symbols *symbols;
	bool tried;
	char name[];
};

struct mapping {
	uint64_t start, end, offset, time;
	struct mapped_file *file;
};

/* A program that a process executes, from a time on. */
struct image {
	struct image *next;	/* of the same bucket, the newest first */
	uint32_t pid;
	uint64_t from, until;	/* until: nothing is known of what was mapped since */
	struct mapping *map;
	size_t n, room;
};

struct images {
	struct rings *rings;
	int map;
	unsigned int rows;
	struct image *bucket[BUCKETS];
	size_t n, look_at;
	struct mapped_file *file[BUCKETS];
	bool no_memory;
};

static uint64_t now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static struct image *newest(const struct images *im, uint32_t pid)
{
	struct image *i = im->bucket[pid % BUCKETS];

	while (i && i->pid != pid)
		i = i->next;
	return i;
}

static struct image *add_image(struct images *im, uint32_t pid, uint64_t from)
{
	struct image *i = calloc(1, sizeof(*i));

	if (!i) {
		im->no_memory = true;
		return NULL;
	}
	*i = (struct image){ .next = im->bucket[pid % BUCKETS], .pid = pid, .from = from,
			     .until = UINT64_MAX };
	im->bucket[pid % BUCKETS] = i;
	im->n++;
	return i;
}

static void free_image(struct image *i)
{
	free(i->map);
	free(i);
}

/* One that is as much as another: equal names are kept once. */
static struct mapped_file *file_of(struct images *im, const struct file_id *id, const char *name)
{
	struct mapped_file **first = &im->file[(id->inode ^ strlen(name)) % BUCKETS], *f;

	for (f = *first; f; f = f->next)
		if (f->id.inode == id->inode && f->id.major == id->major &&
		    f->id.minor == id->minor && !strcmp(f->name, name))
			return f;
	f = calloc(1, sizeof(*f) + strlen(name) + 1);
	if (!f) {
		im->no_memory = true;
		return NULL;
	}
	f->id = *id;
	strcpy(f->name, name);
	f->next = *first;
	*first = f;
	return f;
}

static bool same_bytes(const struct mapping *a, const struct mapping *b)
{
	return a->file == b->file &&
	       (!a->file->id.inode || a->start - a->offset == b->start - b->offset);
}

static void add_mapping(struct images *im, struct image *i, const struct mapping *m)
{
	struct mapping *grown;
	size_t k, room;

	for (k = i->n; k-- > 0;) {
		const struct mapping *old = &i->map[k];

		if (m->start >= old->end || m->end <= old->start)
			continue;
		/* As when its protection changes. */
		if (same_bytes(m, old) && m->start >= old->start && m->end <= old->end)
			return;
		break;
	}
	if (i->n == i->room) {
		room = i->room ? 2 * i->room : 16;
		grown = room > MAPPINGS_MAX ? NULL : realloc(i->map, room * sizeof(*grown));
		if (!grown) {
			if (i->until > m->time)
				i->until = m->time;
			return;
		}
		i->map = grown;
		i->room = room;
	}
	i->map[i->n++] = *m;
}

/* ---- of processes that exist ---- */

/* A line of /proc/PID/maps that can be executed. */
static void add_line(struct images *im, struct image *i, char *line)
{
	struct mapping m = { .time = i->from };
	struct file_id id = { 0 };
	char prot[5];
	int name = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &m.start,
		   &m.end, prot, &m.offset, &id.major, &id.minor, &id.inode, &name) < 7 ||
	    !name || prot[2] != 'x')
		return;
	line[name + strcspn(line + name, "\n")] = 0;
	m.file = file_of(im, &id, line[name] && strncmp(line + name, "[anon", 5) ? line + name :
			 "//anon");
	if (m.file)
		add_mapping(im, i, &m);
}

static void read_process(struct images *im, uint32_t pid)
{
	uint64_t from = now(CLOCK_MONOTONIC);
	struct image *i;
	char path[32], *line = NULL;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", pid);
	f = fopen(path, "re");
	if (!f)
		return;
	i = add_image(im, pid, from);
	while (i && getline(&line, &size, f) > 0)
		add_line(im, i, line);
	free(line);
	fclose(f);
}

static void read_processes(struct images *im)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;

	while (proc && (e = readdir(proc)))
		if (isdigit(*e->d_name))
			read_process(im, strtoul(e->d_name, NULL, 10));
	if (proc)
		closedir(proc);
}

/* ---- what the kernel tells ---- */

/* include/uapi/linux/perf_event.h, as sample_type and so on of rings.c have them */
struct record_mmap {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t start, size, offset;
	uint32_t major, minor;
	uint64_t inode, generation;
	uint32_t prot, flags;
	char name[];
};

struct record_task {		/* PERF_RECORD_COMM ends behind tid */
	struct perf_event_header header;
	uint32_t pid, ppid_or_tid, tid, ptid;
};

static void take_mmap(struct images *im, const struct record_mmap *r, uint64_t time)
{
	struct file_id id = { r->major, r->minor, r->inode };
	struct image *i = newest(im, r->pid);
	struct mapping m = { .start = r->start, .end = r->start + r->size,
			     .offset = r->offset, .time = time };

	if (!i)
		i = add_image(im, r->pid, time);
	if (!i || time < i->from)
		return;
	m.file = file_of(im, &id, r->name);
	if (m.file)
		add_mapping(im, i, &m);
}

static void take_exec(struct images *im, const struct record_task *r, uint64_t time)
{
	struct image *i = newest(im, r->pid);

	if (!i || time >= i->from)
		add_image(im, r->pid, time);
}

/* Of a process, not a thread: it has what its parent has. */
static void take_fork(struct images *im, const struct record_task *r, uint64_t time)
{
	struct image *i = newest(im, r->pid), *parent = newest(im, r->ppid_or_tid);
	size_t k;

	if (r->pid == r->ppid_or_tid || (i && time < i->from))
		return;
	i = add_image(im, r->pid, time);
	if (!i || !parent)
		return;
	i->until = parent->until;
	for (k = 0; k < parent->n; k++) {
		struct mapping m = parent->map[k];

		m.time = time;
		add_mapping(im, i, &m);
	}
}

void images_take(struct images *im, const struct ring_record *record)
{
	const struct perf_event_header *h = record->header;

	switch (h->type) {
	case PERF_RECORD_MMAP2:
		if (h->size > sizeof(struct record_mmap))
			take_mmap(im, (const void *)h, record->time);
		break;
	case PERF_RECORD_COMM:
		if (h->misc & PERF_RECORD_MISC_COMM_EXEC && h->size >= sizeof(struct record_task))
			take_exec(im, (const void *)h, record->time);
		break;
	case PERF_RECORD_FORK:
		if (h->size >= sizeof(struct record_task))
			take_fork(im, (const void *)h, record->time);
		break;
	default:
		break;
	}
}

/* ---- what is not needed any more ---- */

int images_row(const struct images *im, unsigned int at, struct lock_stack *row)
{
	return bpf_map_lookup_elem(im->map, &at, row) || !row->ready ? -1 : 0;
}

struct used {
	uint32_t pid;
	uint64_t time;
};

static int by_process(const void *pa, const void *pb)
{
	const struct used *a = pa, *b = pb;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->time < b->time ? -1 : a->time > b->time;
}

/* Rows with an address in it, from its time on to that of the next one of the process. */
static bool in_use(const struct image *i, uint64_t to, const struct used *used, size_t n)
{
	const struct used first = { i->pid, i->from };
	size_t low = 0, high = n, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (by_process(&used[middle], &first) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && used[low].pid == i->pid && used[low].time < to;
}

/* Who executes program after program is not to fill our memory. */
static void forget(struct images *im)
{
	struct used *used = malloc(im->rows * sizeof(*used));
	struct lock_stack row;
	size_t n = 0, b;
	unsigned int at;

	for (at = 0; used && at < im->rows; at++)
		if (!images_row(im, at, &row))
			used[n++] = (struct used){ row.trace.pid, row.ready };
	if (n)
		qsort(used, n, sizeof(*used), by_process);
	for (b = 0; used && b < BUCKETS; b++) {
		struct image **link = &im->bucket[b], *i, *k;

		while ((i = *link)) {
			uint64_t to = UINT64_MAX;

			for (k = im->bucket[b]; k != i; k = k->next)
				if (k->pid == i->pid)
					to = k->from;
			if (in_use(i, to, used, n) ||
			    (to == UINT64_MAX && (!kill(i->pid, 0) || errno != ESRCH))) {
				link = &i->next;
				continue;
			}
			*link = i->next;
			free_image(i);
			im->n--;
		}
	}
	free(used);
	im->look_at = im->n > IMAGES_KEPT / 2 ? 2 * im->n : IMAGES_KEPT;
}

/* What follows is not known any more, until all that exists is read again. */
static void lose(struct images *im, uint64_t since)
{
	struct image *i;
	size_t b;

	for (b = 0; b < BUCKETS; b++)
		for (i = im->bucket[b]; i; i = i->next)
			if (i->until > since)
				i->until = since;
	read_processes(im);
}

struct images *images_new(int map, unsigned int rows)
{
	struct images *im = calloc(1, sizeof(*im));

	if (!im) {
		err("session", "out of memory");
		return NULL;
	}
	im->map = map;
	im->rows = rows;
	im->look_at = IMAGES_KEPT;
	return im;
}

int images_follow(struct images *im)
{
	im->rings = rings_open();
	if (!im->rings)
		return -1;
	read_processes(im);
	return 0;
}

void images_free(struct images *im)
{
	struct mapped_file *f;
	struct image *i;
	size_t b;

	if (!im)
		return;
	for (b = 0; b < BUCKETS; b++) {
		while ((i = im->bucket[b])) {
			im->bucket[b] = i->next;
			free_image(i);
		}
		while ((f = im->file[b])) {
			im->file[b] = f->next;
			elf_symbols_free(f->symbols);
			free(f);
		}
	}
	rings_close(im->rings);
	free(im);
}

int images_fd(const struct images *im)
{
	return rings_fd(im->rings);
}

static void take(void *arg, const struct ring_record *record)
{
	images_take(arg, record);
}

int images_tend(struct images *im, bool all)
{
	uint64_t lost;

	if (rings_drain(im->rings, all ? UINT64_MAX : now(CLOCK_MONOTONIC) - SETTLED_NS, take, im,
			&lost))
		im->no_memory = true;
	if (lost != UINT64_MAX)
		lose(im, lost);
	if (im->n > im->look_at)
		forget(im);
	if (!im->no_memory)
		return 0;
	err("--user-stacks", "out of memory");
	return -1;
}

/* ---- names ---- */

static const struct mapping *find(const struct images *im, const struct lock_stack *row,
				  uint64_t address)
{
	const struct mapping *m, *later = NULL;
	struct image *i = im->bucket[row->trace.pid % BUCKETS];

	while (i && (i->pid != row->trace.pid || i->from > row->ready))
		i = i->next;
	if (!i || !row->trace.pid || row->ready >= i->until)
		return NULL;
	for (m = i->map + i->n; m-- > i->map;) {
		if (address < m->start || address >= m->end)
			continue;
		/* What came later may be what was seen the second time. */
		if (later && !same_bytes(m, later))
			return NULL;
		if (m->time <= row->ready)
			return m;
		later = m;
	}
	return NULL;
}

/* The file is opened while the process may still tell its root directory. */
static const char *function(const struct mapping *m, uint32_t pid, uint64_t offset)
{
	int64_t ahead = now(CLOCK_REALTIME) - now(CLOCK_MONOTONIC);
	struct mapped_file *f = m->file;
	char path[4200];

	if (!f->tried) {
		f->tried = true;
		snprintf(path, sizeof(path), "/proc/%" PRIu32 "/root%s", pid, f->name);
		f->symbols = elf_symbols_read(path, &f->id) ?: elf_symbols_read(f->name, &f->id);
	}
	return f->symbols ? elf_symbols_name(f->symbols, offset, m->time + ahead) : NULL;
}

bool images_name(struct images *im, const struct lock_stack *row, size_t frame, char *text,
		 size_t size)
{
	/* What is behind a call may be the next function; the innermost was not called. */
	uint64_t call = !!frame, address = row->trace.frame[frame] - call, offset;
	const struct mapping *m = find(im, row, address);
	const char *name;

	if (!m) {
		snprintf(text, size, "[unknown]");
		return false;
	}
	name = m->file->name;
	if (!m->file->id.inode) {
		/* "[vdso]" has its brackets already. */
		if (*name == '[')
			snprintf(text, size, "[%.*s+%#" PRIx64 "]", (int)strcspn(name + 1, "]"),
				 name + 1, address + call - m->start);
		else
			snprintf(text, size, "[anon]");
		return false;
	}
	offset = address - m->start + m->offset;
	name = function(m, row->trace.pid, offset);
	if (name) {
		snprintf(text, size, "%s", name);
		return true;
	}
	name = strrchr(m->file->name, '/');
	snprintf(text, size, "[%s+%#" PRIx64 "]", name ? name + 1 : m->file->name, offset + call);
	return false;
}
