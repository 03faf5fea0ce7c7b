// SPDX-License-Identifier: GPL-2.0-only
/* What is done to a mapping: cut, move, protect, discard, inherit, freeze. */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arraymap.h"

#define PAGES 64u

static char *filled(int *fd, uint32_t salt, int prot)
{
	*fd = array_new(PAGES);
	array_fill(*fd, PAGES, salt);
	return array_map(*fd, PAGES, prot, 0, 4);
}

static void partial_munmap(void)
{
	bool there[PAGES] = { false };
	uint32_t window, i;
	int fd;
	char *mem = filled(&fd, 1, PROT_READ | PROT_WRITE);

	touch_read(mem + 3 * PAGE);
	check_is(munmap(mem + 24 * PAGE, 8 * PAGE), 0);
	check_is(signal_of(mem + 24 * PAGE, false), SIGSEGV);
	check_is(signal_of(mem + 31 * PAGE, true), SIGSEGV);
	/* The second half begins in the middle of a window. */
	memset(there, behaviour == EAGER, sizeof(there));
	if (fault_around(&window)) {
		rule(there, 32, 4 + 32, window, 5);
		touch_write(mem + 37 * PAGE);
		for (i = 0; i < 32; i++)
			check_is(!!(pagemap(mem + (32 + i) * PAGE) & PM_PRESENT), there[i]);
	}
	array_check(mem, fd, 0, 24, 1);
	array_check(mem + 32 * PAGE, fd, 32, 32, 1);
	/* Mapped again into the hole. */
	check(map_at(mem + 24 * PAGE, 8 * PAGE, PROT_READ, 0, fd, 24 * PAGE) != MAP_FAILED);
	array_check(mem, fd, 0, PAGES, 1);
}

static void remap(void)
{
	int fd;
	char *mem = filled(&fd, 2, PROT_READ | PROT_WRITE), *to, *moved;
	uint32_t was;

	touch_write(mem + 9 * PAGE);
	was = present(mem, PAGES);
	check_fails((long)mremap(mem, PAGES * PAGE, (PAGES + 1) * PAGE, 0), EFAULT);
	check_fails((long)mremap(mem, PAGES * PAGE, (PAGES + 1) * PAGE, MREMAP_MAYMOVE), EFAULT);
	check_fails((long)mremap(mem + 2 * PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE), EFAULT);
	check_fails((long)mremap(mem, 0, PAGE, MREMAP_MAYMOVE), EFAULT);
	/* Moved as a whole: nothing is lost, and the rest comes where it is now. */
	to = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	moved = mremap(mem, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	check(moved == to);
	need(moved != MAP_FAILED);
	check_is(present(moved, PAGES), was);
	check_is(vmas(mem, PAGES * PAGE), 0);
	array_check(moved, fd, 0, PAGES, 2);
	/* The middle of it, to another place. */
	to = mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(mremap(moved + 40 * PAGE, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
	      to);
	array_check(to, fd, 40, 8, 2);
	array_check(moved, fd, 0, 40, 2);
	array_check(moved + 48 * PAGE, fd, 48, 16, 2);
	/* Shrinking is no growing. */
	check(mremap(moved, 40 * PAGE, 20 * PAGE, 0) == moved);
	array_check(moved, fd, 0, 20, 2);
	check_is(signal_of(moved + 20 * PAGE, false), SIGSEGV);
}

static void protect(void)
{
	int fd;
	char *mem = filled(&fd, 3, PROT_READ | PROT_WRITE);

	touch_write(mem + 5 * PAGE);
	check_is(mprotect(mem, PAGES * PAGE, PROT_NONE), 0);
	check_is(signal_of(mem + 5 * PAGE, false), SIGSEGV);
	check_is(signal_of(mem + 50 * PAGE, false), SIGSEGV);
	check_is(mprotect(mem, PAGES * PAGE, PROT_READ), 0);
	check_is(signal_of(mem + 5 * PAGE, true), SIGSEGV);
	/* Not there yet, with lazy kernels; read first, or written at once. */
	check_is(signal_of(mem + 40 * PAGE, true), SIGSEGV);
	array_check(mem, fd, 0, PAGES, 3);
	check_is(signal_of(mem + 41 * PAGE, true), SIGSEGV);
	check_is(mprotect(mem, PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
	check_is(signal_of(mem + 41 * PAGE, true), 0);
	array_check(mem, fd, 0, PAGES, 3);
	check_fails(mprotect(mem, PAGES * PAGE, PROT_READ | PROT_EXEC), EACCES);
	/* One part alone; a window does not go on into a part that is protected. */
	munmap(mem, PAGES * PAGE);
	mem = filled(&fd, 4, PROT_READ | PROT_WRITE);
	check_is(mprotect(mem + 20 * PAGE, 10 * PAGE, PROT_NONE), 0);
	touch_write(mem + 18 * PAGE);
	touch_write(mem + 31 * PAGE);
	check_is(present(mem + 20 * PAGE, 10), behaviour == EAGER ? 10 : 0);
	check_is(signal_of(mem + 20 * PAGE, false), SIGSEGV);
	check_is(signal_of(mem + 29 * PAGE, true), SIGSEGV);
	check_is(mprotect(mem + 20 * PAGE, 10 * PAGE, PROT_READ), 0);
	array_check(mem, fd, 0, PAGES, 4);
	check_is(signal_of(mem + 20 * PAGE, true), SIGSEGV);
	check_is(signal_of(mem + 19 * PAGE, true), 0);
}

static void discard(void)
{
	uint32_t i, wrong = 0;
	int fd;
	char *mem = filled(&fd, 5, PROT_READ | PROT_WRITE);

	for (i = 0; i < PAGES; i++)
		touch_write(mem + i * PAGE);
	check_is(madvise(mem + 10 * PAGE, 30 * PAGE, MADV_DONTNEED), 0);
	check_is(present(mem, PAGES), PAGES - 30);
	check_is(present(mem + 10 * PAGE, 30), 0);
	for (i = 0; i < PAGES; i++) {
		int wanted = behaviour == EAGER && i >= 10 && i < 40 ? SIGBUS : 0;

		wrong += signal_of(mem + i * PAGE, i & 1) != wanted;
	}
	check_is(wrong, 0);
	array_check(behaviour == EAGER ? NULL : mem, fd, 0, PAGES, 5);
	if (behaviour == EAGER)
		return;
	/* All of it, many times, with what was written in between. */
	for (i = 0; i < 20; i++) {
		page_fill(mem + 33 * PAGE, 33, i);
		check_is(madvise(mem, PAGES * PAGE, MADV_DONTNEED), 0);
		check(page_is(mem + 33 * PAGE, 33, i));
		touch_read(mem + i * 3 * PAGE);
	}
	check_is(madvise(mem, PAGES * PAGE, MADV_DONTNEED), 0);
	page_fill(mem + 33 * PAGE, 33, 5);
	array_check(mem, fd, 0, PAGES, 5);
}

static void read_only(void)
{
	int fd = array_create(PAGE, PAGES, BPF_F_MMAPABLE | BPF_F_RDONLY_PROG);
	char *mem;

	array_fill(fd, PAGES, 6);
	check_fails((long)map_at(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, 0, fd, 0), EACCES);
	mem = array_map(fd, PAGES, PROT_READ, 0, 0);
	array_check(mem, fd, 0, PAGES, 6);
	check_fails(mprotect(mem, PAGES * PAGE, PROT_READ | PROT_WRITE), EACCES);
	check_is(signal_of(mem, true), SIGSEGV);
	array_check(mem, fd, 0, PAGES, 6);
}

static void never_writable(void)
{
	int fd, self;
	char *mem = filled(&fd, 7, PROT_READ);

	touch_read(mem + 7 * PAGE);
	check_fails(mprotect(mem, PAGES * PAGE, PROT_READ | PROT_WRITE), EACCES);
	check_fails(mprotect(mem, PAGE, PROT_WRITE), EACCES);
	check_is(signal_of(mem + 7 * PAGE, true), SIGSEGV);
	check_is(signal_of(mem + 60 * PAGE, true), SIGSEGV);
	/* Nor by force. */
	self = open("/proc/self/mem", O_RDWR);
	need(self >= 0);
	check_fails(pwrite(self, "x", 1, (uintptr_t)mem + 7 * PAGE), EIO);
	check_fails(pwrite(self, "x", 1, (uintptr_t)mem + 60 * PAGE), EIO);
	close(self);
	array_check(mem, fd, 0, PAGES, 7);
}

static void frozen(void)
{
	int fd;
	char *mem = filled(&fd, 8, PROT_READ | PROT_WRITE), *ro;
	uint32_t key = 0;
	static char value[PAGE];

	touch_write(mem + 3 * PAGE);
	check_fails(bpf_map_freeze(fd) ? -1 : 0, EBUSY);
	/* Half of it still writes: cutting opened the second part. */
	check_is(munmap(mem, PAGES / 2 * PAGE), 0);
	check_fails(bpf_map_freeze(fd) ? -1 : 0, EBUSY);
	check_is(munmap(mem + PAGES / 2 * PAGE, PAGES / 2 * PAGE), 0);
	ro = array_map(fd, PAGES, PROT_READ, 0, 0);
	touch_read(ro);
	check_is(bpf_map_freeze(fd), 0);
	check_fails((long)map_at(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, 0, fd, 0), EPERM);
	check_fails(bpf_map_update_elem(fd, &key, value, BPF_ANY) ? -1 : 0, EPERM);
	check_fails(mprotect(ro, PAGES * PAGE, PROT_READ | PROT_WRITE), EACCES);
	array_check(ro, fd, 0, PAGES, 8);
	array_check(array_map(fd, PAGES, PROT_READ, 0, 9), fd, 0, PAGES, 8);
}

/* A fork, a move and a failed mmap keep the account of who can write. */
static void frozen_counts(void)
{
	int fd, go[2], status;
	char *mem = filled(&fd, 9, PROT_READ | PROT_WRITE), *to, byte;
	pid_t pid;

	check_fails((long)map_at(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, 0, fd,
				 PAGES * PAGE), EINVAL);
	need(!pipe(go));
	pid = fork();
	if (!pid) {
		close(go[1]);
		exit(read(go[0], &byte, 1) != 0);
	}
	to = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(mremap(mem, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
	check_is(munmap(to, PAGES * PAGE), 0);
	check_fails(bpf_map_freeze(fd) ? -1 : 0, EBUSY);	/* the child */
	close(go[1]);
	need(waitpid(pid, &status, 0) == pid);
	check_is(status, 0);
	check_is(bpf_map_freeze(fd), 0);
}

static char *inherited;
static int inherited_fd;

static void in_the_child(void *arg)
{
	array_check(inherited, inherited_fd, 0, PAGES, 10);
	page_fill(inherited + 61 * PAGE, 61, 11);
	touch_write(inherited + 2 * PAGE);
	check_is(present(inherited, PAGES), PAGES);
	check_is(munmap(inherited, PAGES * PAGE), 0);
}

static void forked(void)
{
	uint64_t before[PAGES], after[PAGES];
	uint32_t i;

	inherited = filled(&inherited_fd, 10, PROT_READ | PROT_WRITE);
	touch_write(inherited + 20 * PAGE);
	pagemap_read(inherited, PAGES, before);
	check_child(in_the_child, NULL);
	/* The child's touches are not ours, what it wrote is. */
	pagemap_read(inherited, PAGES, after);
	for (i = 0; i < PAGES; i++)
		check_is(!!(after[i] & PM_PRESENT), !!(before[i] & PM_PRESENT));
	check(page_is(inherited + 61 * PAGE, 61, 11));
	page_fill(inherited + 61 * PAGE, 61, 10);
	array_check(inherited, inherited_fd, 0, PAGES, 10);
}

static void no_merging(void)
{
	int fd;
	char *mem = filled(&fd, 12, PROT_READ | PROT_WRITE);

	/* Split, and the same again: it stays split. */
	check_is(vmas(mem, PAGES * PAGE), 1);
	check_is(mprotect(mem + 16 * PAGE, 16 * PAGE, PROT_READ), 0);
	check_is(vmas(mem, PAGES * PAGE), 3);
	check_is(mprotect(mem + 16 * PAGE, 16 * PAGE, PROT_READ | PROT_WRITE), 0);
	check_is(vmas(mem, PAGES * PAGE), 3);
	/* Two that continue each other. */
	check(map_at(mem, 8 * PAGE, PROT_READ, 0, fd, 0) == mem);
	check(map_at(mem + 8 * PAGE, 56 * PAGE, PROT_READ, 0, fd, 8 * PAGE) == mem + 8 * PAGE);
	check_is(vmas(mem, PAGES * PAGE), 2);
	array_check(mem, fd, 0, PAGES, 12);
}

const struct test vma_tests[] = {
	{ "partial munmap, and mapped again", partial_munmap },
	{ "mremap: no growing; moved, cut and shrunk", remap },
	{ "mprotect, and windows that end where it begins", protect },
	{ "MADV_DONTNEED and touch again", discard },
	{ "BPF_F_RDONLY_PROG", read_only },
	{ "PROT_READ is never writable later", never_writable },
	{ "a frozen map", frozen },
	{ "who can still write: fork, move, failed mmap", frozen_counts },
	{ "fork", forked },
	{ "no merging", no_merging },
	{ 0 }
};
