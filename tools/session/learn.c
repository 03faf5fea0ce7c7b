// SPDX-License-Identifier: GPL-2.0-only
/* The addresses of vm_operations_structs without symbols. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "learn.skel.h"
#include "session/learn.h"

/* include/uapi/linux/bpf.h, since 6.9: newer than the headers that this may be built with. */
#define MAP_TYPE_ARENA	33

struct sample_map {
	enum backing backing;
	void *at;		/* MAP_FAILED: it cannot be made here */
};

static void *map_of(int type, unsigned int key, unsigned int value, unsigned int pages)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(type, "mmscope_learn", key, value, pages, &opts);
	void *at;

	if (fd < 0)
		return MAP_FAILED;
	/* The mapping keeps the map. */
	at = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return at;
}

static void *segment(void)
{
	int id = shmget(IPC_PRIVATE, getpagesize(), IPC_CREAT | 0600);
	void *at;

	if (id < 0)
		return MAP_FAILED;
	at = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	return at;
}

/* Pairs of a mapping's start and its operations, of this process. */
static void read_mappings(void (*take)(const uint64_t *pair, void *arg), void *arg)
{
	union bpf_iter_link_info info = { .task.pid = getpid() };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info,
		    .link_info_len = sizeof(info));
	struct learn *skel = learn__open_and_load();
	struct bpf_link *link = NULL;
	uint64_t pair[2];
	int fd = -1;

	if (skel)
		link = bpf_program__attach_iter(skel->progs.mapping, &opts);
	if (link)
		fd = bpf_iter_create(bpf_link__fd(link));
	if (fd >= 0) {
		while (read(fd, pair, sizeof(pair)) == sizeof(pair))
			take(pair, arg);
		close(fd);
	}
	bpf_link__destroy(link);
	learn__destroy(skel);
}

struct learned {
	const struct sample_map *map;
	size_t maps, n;
	uint64_t *ops;
	uint8_t *backing;
};

static void take(const uint64_t *pair, void *arg)
{
	struct learned *l = arg;
	size_t i;

	for (i = 0; i < l->maps; i++) {
		if (!pair[1] || l->map[i].at == MAP_FAILED || (uintptr_t)l->map[i].at != pair[0])
			continue;
		l->ops[l->n] = pair[1];
		l->backing[l->n++] = l->map[i].backing;
	}
}

void learn_ops(uint64_t ops[KNOWN_OPS_MAX], uint8_t backing[KNOWN_OPS_MAX])
{
	unsigned long vdso = getauxval(AT_SYSINFO_EHDR);
	const struct sample_map map[] = {
		{ BACKING_SYSV_SHM, segment() },
		/* Releases that map arrays eagerly have the same operations for all maps. */
		{ BACKING_BPF_ARRAY, map_of(BPF_MAP_TYPE_ARRAY, 4, getpagesize(), 1) },
		{ BACKING_BPF_ARENA, map_of(MAP_TYPE_ARENA, 0, 0, 1) },
		{ BACKING_DEVICE, vdso ? (void *)vdso : MAP_FAILED },
	};
	struct learned l = { .map = map, .maps = sizeof(map) / sizeof(map[0]), .ops = ops,
			     .backing = backing };

	read_mappings(take, &l);
	if (map[0].at != MAP_FAILED)
		shmdt(map[0].at);
	if (map[1].at != MAP_FAILED)
		munmap(map[1].at, getpagesize());
	if (map[2].at != MAP_FAILED)
		munmap(map[2].at, getpagesize());
}
