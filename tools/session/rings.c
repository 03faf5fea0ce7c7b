// SPDX-License-Identifier: GPL-2.0-only
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "data/err.h"
#include "session/rings.h"

#define RING_BYTES	65536	/* power of two: some 60 programs with their libraries */

struct ring {
	int fd;
	struct perf_event_mmap_page *page;	/* the records are behind it */
	uint64_t seen;		/* time of the last record */
	uint64_t lost, told;	/* how many are known to be, and how many by records */
};

struct rings {
	struct ring *ring;
	size_t n;
	int epoll;
	struct ring_record *kept;	/* each owns its header */
	size_t kept_n, kept_room;
	uint64_t lost;
};

static int open_event(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME, .sample_id_all = 1,
		.use_clockid = 1, .clockid = CLOCK_MONOTONIC,
		.mmap = 1, .mmap2 = 1, .comm = 1, .comm_exec = 1, .task = 1,
		.watermark = 1, .wakeup_watermark = RING_BYTES / 4,
		.read_format = PERF_FORMAT_LOST,
	};

	return syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int open_ring(struct rings *r, int cpu)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct ring *ring = &r->ring[r->n];
	void *page;
	int fd = open_event(cpu);

	if (fd < 0)
		return errno == ENODEV ? 0 : -1;	/* a CPU that is off */
	page = mmap(NULL, sysconf(_SC_PAGESIZE) + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		    fd, 0);
	if (page == MAP_FAILED) {
		close(fd);
		return -1;
	}
	*ring = (struct ring){ .fd = fd, .page = page };
	r->n++;
	return epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &event);
}

struct rings *rings_open(void)
{
	int cpu, cpus = libbpf_num_possible_cpus();
	struct rings *r = calloc(1, sizeof(*r));

	if (r && cpus > 0)
		r->ring = calloc(cpus, sizeof(*r->ring));
	if (!r || !r->ring) {
		err("session", "out of memory");
		free(r);
		return NULL;
	}
	r->lost = UINT64_MAX;
	r->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll < 0)
		goto fail;
	for (cpu = 0; cpu < cpus; cpu++)
		if (open_ring(r, cpu))
			goto fail;
	return r;

fail:
	err("--user-stacks", "the kernel does not tell what is mapped: %s", strerror(errno));
	rings_close(r);
	return NULL;
}

void rings_close(struct rings *r)
{
	size_t i;

	if (!r)
		return;		/* as before it was opened */
	for (i = 0; i < r->n; i++) {
		munmap(r->ring[i].page, sysconf(_SC_PAGESIZE) + RING_BYTES);
		close(r->ring[i].fd);
	}
	for (i = 0; i < r->kept_n; i++)
		free((void *)r->kept[i].header);
	if (r->epoll >= 0)
		close(r->epoll);
	free(r->kept);
	free(r->ring);
	free(r);
}

int rings_fd(const struct rings *r)
{
	return r->epoll;
}

/* A copy of some bytes of a ring, which may go on at its start. */
static void copy(const struct ring *ring, uint64_t at, void *to, size_t size)
{
	const char *data = (const char *)ring->page + sysconf(_SC_PAGESIZE);
	size_t first = RING_BYTES - at % RING_BYTES;

	if (first > size)
		first = size;
	memcpy(to, data + at % RING_BYTES, first);
	memcpy((char *)to + first, data, size - first);
}

/* What was known without its record is not lost again with it. */
static void count_lost(struct rings *r, struct ring *ring, uint64_t lost)
{
	if (lost <= ring->lost)
		return;
	ring->lost = lost;
	if (ring->seen < r->lost)
		r->lost = ring->seen;
}

struct record_lost {
	struct perf_event_header header;
	uint64_t id, lost;
};

/* The time is the last word of each: nothing else is asked for. */
static int keep(struct rings *r, struct ring *ring, uint64_t at, size_t size)
{
	struct ring_record *kept;
	char *record;

	if (r->kept_n == r->kept_room) {
		size_t room = r->kept_room ? 2 * r->kept_room : 256;

		kept = realloc(r->kept, room * sizeof(*kept));
		if (!kept)
			return -1;
		r->kept = kept;
		r->kept_room = room;
	}
	/* A name that is not ended in it ends behind it. */
	record = calloc(1, size + 1);
	if (!record)
		return -1;
	copy(ring, at, record, size);
	kept = &r->kept[r->kept_n++];
	kept->header = (void *)record;
	memcpy(&kept->time, record + size - sizeof(kept->time), sizeof(kept->time));
	if (kept->header->type == PERF_RECORD_LOST && size >= sizeof(struct record_lost)) {
		ring->told += ((struct record_lost *)record)->lost;
		count_lost(r, ring, ring->told);
	}
	ring->seen = kept->time;
	return 0;
}

static int empty(struct rings *r, struct ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;
	struct perf_event_header header;
	int ret = 0;

	while (tail != head && !ret) {
		copy(ring, tail, &header, sizeof(header));
		if (header.size < sizeof(header) + sizeof(uint64_t) || header.size > head - tail)
			break;
		ret = keep(r, ring, tail, header.size);
		tail += header.size;
	}
	__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
	return ret;
}

/* A loss has its record only once the next one finds room: ask for it (since 6.0). */
static void ask_lost(struct rings *r, struct ring *ring)
{
	struct { uint64_t value, lost; } now;

	if (read(ring->fd, &now, sizeof(now)) == sizeof(now))
		count_lost(r, ring, now.lost);
}

static int by_time(const void *pa, const void *pb)
{
	const struct ring_record *a = pa, *b = pb;

	return a->time < b->time ? -1 : a->time > b->time;
}

int rings_drain(struct rings *r, uint64_t until,
		void (*take)(void *arg, const struct ring_record *record), void *arg,
		uint64_t *lost)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < r->n; i++) {
		ret |= empty(r, &r->ring[i]);
		ask_lost(r, &r->ring[i]);
	}
	if (r->kept_n)
		qsort(r->kept, r->kept_n, sizeof(*r->kept), by_time);
	for (i = 0; i < r->kept_n && r->kept[i].time <= until; i++) {
		take(arg, &r->kept[i]);
		free((void *)r->kept[i].header);
	}
	memmove(r->kept, r->kept + i, (r->kept_n - i) * sizeof(*r->kept));
	r->kept_n -= i;
	*lost = r->lost;
	r->lost = UINT64_MAX;
	return ret;
}
