// SPDX-License-Identifier: GPL-2.0-only
/* Lives of maps, programs that write them, and other kinds of maps. */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arraymap.h"

#define PAGES 64u

#ifndef BPF_MAP_TYPE_ARENA
#define BPF_MAP_TYPE_ARENA_ 33	/* 6.9; younger than the headers of Debian 12 */
#else
#define BPF_MAP_TYPE_ARENA_ BPF_MAP_TYPE_ARENA
#endif

static uint32_t map_id(int fd)
{
	struct bpf_map_info info = { 0 };
	uint32_t len = sizeof(info);

	need(!bpf_obj_get_info_by_fd(fd, &info, &len));
	return info.id;
}

static bool exists(uint32_t id)
{
	int fd = bpf_map_get_fd_by_id(id);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Maps go when a worker comes to it. */
static bool goes(uint32_t id)
{
	int i;

	for (i = 0; i < 100 && exists(id); i++)
		usleep(50000);
	return i < 100;
}

static void freed_while_mapped(void)
{
	int fd = array_new(PAGES);
	uint32_t id = map_id(fd);
	char *mem;

	array_fill(fd, PAGES, 1);
	mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0);
	touch_read(mem + 3 * PAGE);
	close(fd);
	usleep(300000);
	check(exists(id));
	array_check(mem, -1, 0, PAGES, 1);
	page_fill(mem + 50 * PAGE, 50, 2);
	check_is(munmap(mem, PAGES / 2 * PAGE), 0);
	usleep(300000);
	check(exists(id));
	fd = bpf_map_get_fd_by_id(id);
	array_check(mem + PAGES / 2 * PAGE, -1, PAGES / 2, 10, 1);
	close(fd);
	check(page_is(mem + 50 * PAGE, 50, 2));
	check_is(munmap(mem + PAGES / 2 * PAGE, PAGES / 2 * PAGE), 0);
	check(goes(id));
}

static int program(const struct bpf_insn *insns, size_t n)
{
	int fd = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "arraymap", "GPL", insns, n, NULL);

	need(fd >= 0);
	return fd;
}

static void run_program(int fd)
{
	char packet[64] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet));

	need(!bpf_prog_test_run_opts(fd, &opts));
	check_is(opts.retval, 0);
	close(fd);
}

#define INSN(c, d, s, o, i)							\
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })

/* A program adds 1 to a word of page 0: it is seen through mappings, and the reverse. */
static void program_writes(void)
{
	int fd = array_new(PAGES);
	struct bpf_insn insns[] = {
		INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, fd),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 33),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -4),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 0, 0, 2, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
		INSN(BPF_LDX | BPF_MEM | BPF_W, 1, 0, 128, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 1, 0, 0, 1),
		INSN(BPF_STX | BPF_MEM | BPF_W, 0, 1, 128, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	volatile uint32_t *word;
	int prog = program(insns, sizeof(insns) / sizeof(*insns)), again;
	char *mem;

	again = dup(prog);
	run_program(prog);
	mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0);
	word = (volatile uint32_t *)(mem + 33 * PAGE + 128);
	check_is(*word, 1);
	*word = 41;
	run_program(again);
	check_is(*word, 42);
	check_is(mem[34 * PAGE + 128], 0);
}

/* outer[0] holds the array; what a program writes by way of it is seen, also when replaced. */
static void map_in_map(void)
{
	int inner = array_new(PAGES), other = array_new(PAGES), outer;
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = inner);
	uint32_t key = 0, id = map_id(inner);
	volatile uint32_t *word;
	int prog, again;
	char *mem;

	outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "outer", 4, 4, 1, &opts);
	need(outer >= 0);
	need(!bpf_map_update_elem(outer, &key, &inner, BPF_ANY));

	struct bpf_insn insns[] = {
		INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, outer),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -4),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 9, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 1, 0, 0, 0),
		INSN(BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 20),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -4),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3, 0),
		INSN(BPF_ST | BPF_MEM | BPF_W, 0, 0, 64, 77),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	prog = program(insns, sizeof(insns) / sizeof(*insns));
	again = dup(prog);
	mem = array_map(inner, PAGES, PROT_READ | PROT_WRITE, 0, 0);
	word = (volatile uint32_t *)(mem + 20 * PAGE + 64);
	check_is(*word, 0);
	run_program(prog);
	check_is(*word, 77);
	/* Replaced, and nobody else has it: the mapping keeps it. */
	*word = 5;
	need(!bpf_map_update_elem(outer, &key, &other, BPF_ANY));
	close(inner);
	usleep(300000);
	check(exists(id));
	run_program(again);
	check_is(*word, 5);
	touch_write(mem + 60 * PAGE);
	word = (volatile uint32_t *)(array_map(other, PAGES, PROT_READ, 0, 0) + 20 * PAGE + 64);
	check_is(*word, 77);
	check_is(munmap(mem, PAGES * PAGE), 0);
	check(goes(id));
}

/* As on all kernels: everything is there at once. */
static void ring_buffer(void)
{
	enum { DATA = 32 };
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, DATA * PAGE, NULL);
	char *consumer, *rest;
	long before;
	uint32_t i;

	need(fd >= 0);
	consumer = map_at(NULL, PAGE, PROT_READ | PROT_WRITE, 0, fd, 0);
	need(consumer != MAP_FAILED);
	rest = map_at(NULL, (1 + 2 * DATA) * PAGE, PROT_READ, 0, fd, PAGE);
	need(rest != MAP_FAILED);
	check_is(present(consumer, 1), 1);
	check_is(present(rest, 1 + 2 * DATA), 1 + 2 * DATA);
	before = faults();
	touch_write(consumer);
	for (i = 0; i < 1 + 2 * DATA; i++)
		touch_read(rest + i * PAGE);
	check_is(faults() - before, 0);
	/* Its data pages are mapped twice in a row. */
	for (i = 1; i <= DATA; i++)
		check_is(pagemap(rest + i * PAGE) & PM_PFN,
			 pagemap(rest + (i + DATA) * PAGE) & PM_PFN);
	/* What eager mapping means: not there any more, no fault brings it back. */
	check_is(madvise(rest, PAGE, MADV_DONTNEED), 0);
	check_is(signal_of(rest, false), 7 /* SIGBUS */);
}

static void arena(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARENA_, "arena", 0, 0, PAGES, &opts);
	long before;
	char *mem;

	if (fd < 0)
		skip("no arena here: %s", strerror(errno));
	mem = map_at(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, 0, fd, 0);
	need(mem != MAP_FAILED);
	check_is(present(mem, PAGES), 0);
	before = faults();
	touch_write(mem + 20 * PAGE);
	check_is(faults() - before, 1);
	check_is(present(mem, PAGES), 1);
	touch_read(mem + 21 * PAGE);
	check_is(present(mem, PAGES), 2);
	mem[20 * PAGE] = 9;
	check_is(madvise(mem, PAGES * PAGE, MADV_DONTNEED), 0);
	check_is(present(mem, PAGES), 0);
	check_is(mem[20 * PAGE], 9);
}

const struct test map_tests[] = {
	{ "map freed while mapped", freed_while_mapped },
	{ "what a program writes", program_writes },
	{ "map in map", map_in_map },
	{ "ring buffer: all at once, as ever", ring_buffer },
	{ "arena: page by page, as ever", arena },
	{ 0 }
};
