// SPDX-License-Identifier: GPL-2.0-only
/* Others that come to the pages: the kernel for somebody, processes. */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arraymap.h"

#define PAGES 64u

static char room[PAGES * PAGE];

static char *filled(int *fd, uint32_t salt)
{
	*fd = array_new(PAGES);
	array_fill(*fd, PAGES, salt);
	return array_map(*fd, PAGES, PROT_READ | PROT_WRITE, 0, 4);
}

static void room_check(uint32_t first, uint32_t pages, uint32_t salt)
{
	uint32_t i;

	for (i = 0; i < pages; i++)
		check(page_is(room + i * PAGE, first + i, salt));
}

static char *remote;

static void reads_parent(void *arg)
{
	struct iovec to = { room, PAGES * PAGE }, from = { remote, PAGES * PAGE };
	char path[64];
	int fd;

	memset(room, 0, sizeof(room));
	check_is(process_vm_readv(getppid(), &to, 1, &from, 1, 0), PAGES * PAGE);
	room_check(0, PAGES, 1);
	/* Its own mapping was inherited without the pages, or with them. */
	array_check(remote, -1, 0, PAGES, 1);
	memset(room, 0, sizeof(room));
	snprintf(path, sizeof(path), "/proc/%d/mem", getppid());
	fd = open(path, O_RDWR);
	need(fd >= 0);
	check_is(pread(fd, room, PAGES * PAGE, (uintptr_t)remote), PAGES * PAGE);
	room_check(0, PAGES, 1);
	page_fill(room, 40, 2);
	check_is(pwrite(fd, room, PAGE, (uintptr_t)remote + 40 * PAGE), PAGE);
	page_fill(room, 63, 2);
	to.iov_len = PAGE;
	from = (struct iovec){ remote + 63 * PAGE, PAGE };
	check_is(process_vm_writev(getppid(), &to, 1, &from, 1, 0), PAGE);
}

static void remote_access(void)
{
	int fd;

	/* Nobody has touched it. */
	remote = filled(&fd, 1);
	check_child(reads_parent, NULL);
	check(page_is(remote + 40 * PAGE, 40, 2));
	check(page_is(remote + 63 * PAGE, 63, 2));
	page_fill(remote + 40 * PAGE, 40, 1);
	page_fill(remote + 63 * PAGE, 63, 1);
	array_check(remote, fd, 0, PAGES, 1);
}

/* The pipe holds the pages themselves, not copies. */
static void spliced(void)
{
	int fd, p[2];
	char *mem = filled(&fd, 2);
	struct iovec from = { mem + 20 * PAGE, 4 * PAGE };

	need(!pipe(p));
	check_is(vmsplice(p[1], &from, 1, 0), 4 * PAGE);
	memset(room, 0, sizeof(room));
	page_fill(mem + 22 * PAGE, 22, 3);
	check_is(munmap(mem, PAGES * PAGE), 0);
	check_is(read(p[0], room, 4 * PAGE), 4 * PAGE);
	room_check(20, 2, 2);
	check(page_is(room + 2 * PAGE, 22, 3));
	check(page_is(room + 3 * PAGE, 23, 2));
	/* And the other way: a pipe's data into untouched pages. */
	mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0);
	page_fill(room, 9, 4);
	check_is(write(p[1], room, PAGE), PAGE);
	check_is(read(p[0], mem + 9 * PAGE, PAGE), PAGE);
	check(page_is(mem + 9 * PAGE, 9, 4));
}

/* Registered buffers are pinned for long: what they are is read and written later. */
static void pinned(void)
{
	struct io_uring_params params = { 0 };
	struct io_uring_sqe *sqe;
	struct iovec buffer;
	unsigned int *tail, *mask, *array, *done;
	char *mem, *sq, *cq, *sqes;
	int fd, ring, out = memfd_create("out", 0), op;

	mem = filled(&fd, 5);
	ring = syscall(__NR_io_uring_setup, 4, &params);
	if (ring < 0)
		skip("no io_uring here: %s", strerror(errno));
	buffer = (struct iovec){ mem, PAGES * PAGE };
	need(!syscall(__NR_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1));
	check_is(present(mem, PAGES), PAGES);
	sq = mmap(NULL, params.sq_off.array + 4 * params.sq_entries, PROT_READ | PROT_WRITE,
		  MAP_SHARED, ring, IORING_OFF_SQ_RING);
	cq = mmap(NULL, params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe),
		  PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
	sqes = mmap(NULL, params.sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE, MAP_SHARED,
		    ring, IORING_OFF_SQES);
	need(sq != MAP_FAILED && cq != MAP_FAILED && sqes != MAP_FAILED && out >= 0);
	tail = (unsigned int *)(sq + params.sq_off.tail);
	mask = (unsigned int *)(sq + params.sq_off.ring_mask);
	array = (unsigned int *)(sq + params.sq_off.array);
	done = (unsigned int *)(cq + params.cq_off.tail);

	/* Write 40 pages of it to a file; read one page of the file into another. */
	for (op = 0; op < 2; op++) {
		unsigned int at = *tail & *mask;

		sqe = (struct io_uring_sqe *)sqes + at;
		memset(sqe, 0, sizeof(*sqe));
		sqe->opcode = op ? IORING_OP_READ_FIXED : IORING_OP_WRITE_FIXED;
		sqe->fd = out;
		sqe->addr = (uintptr_t)mem + (op ? 50 * PAGE : 0);
		sqe->len = op ? PAGE : 40 * PAGE;
		sqe->off = op ? 7 * PAGE : 0;
		array[at] = at;
		/* What it was when it was pinned no longer matters. */
		if (!op)
			page_fill(mem + 30 * PAGE, 30, 6);
		__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
		check_is(syscall(__NR_io_uring_enter, ring, 1, op + 1, IORING_ENTER_GETEVENTS,
				 NULL, 0), 1);
		need(__atomic_load_n(done, __ATOMIC_ACQUIRE) == (unsigned int)op + 1);
		struct io_uring_cqe *cqe = (struct io_uring_cqe *)(cq + params.cq_off.cqes) + op;

		check_is(cqe->res, op ? PAGE : 40 * PAGE);
		/* The mapping may go: the pin stays, for the second of the two. */
		if (!op)
			check_is(munmap(mem, PAGES * PAGE), 0);
	}
	check_is(pread(out, room, 40 * PAGE, 0), 40 * PAGE);
	room_check(0, 30, 5);
	check(page_is(room + 30 * PAGE, 30, 6));
	mem = array_map(fd, PAGES, PROT_READ, 0, 0);
	check(page_is(mem + 50 * PAGE, 7, 5));
	check(page_is(mem + 51 * PAGE, 51, 5));
	close(ring);
}

/* ---- a process that got the map by its descriptor ---- */

static int pass(int socket, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte = 0;
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1,
				  .msg_control = &control, .msg_controllen = sizeof(control) };

	if (fd < 0) {
		need(recvmsg(socket, &message, 0) == 1);
		memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
		return fd;
	}
	control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
					   .cmsg_len = CMSG_LEN(sizeof(fd)) };
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	need(sendmsg(socket, &message, 0) == 1);
	return fd;
}

static void two_processes(void)
{
	int pair[2], fd, status;
	uint32_t i;
	char *mem;
	pid_t pid;

	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	/* Born before the map. */
	pid = fork();
	if (!pid) {
		fd = pass(pair[1], -1);
		mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 13);
		array_check(mem, fd, 0, PAGES, 9);
		for (i = 0; i < PAGES; i += 2)
			page_fill(mem + i * PAGE, i, 10);
		need(write(pair[1], "x", 1) == 1);
		/* The parent answers when it has written its half. */
		need(read(pair[1], room, 1) == 1);
		array_check(mem, fd, 0, PAGES, 10);
		exit(failures() != 0);
	}
	fd = array_new(PAGES);
	array_fill(fd, PAGES, 9);
	mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0);
	pass(pair[0], fd);
	need(read(pair[0], room, 1) == 1);
	for (i = 0; i < PAGES; i++)
		check(page_is(mem + i * PAGE, i, i & 1 ? 9 : 10));
	for (i = 1; i < PAGES; i += 2)
		page_fill(mem + i * PAGE, i, 10);
	need(write(pair[0], "x", 1) == 1);
	need(waitpid(pid, &status, 0) == pid);
	check_is(status, 0);
	array_check(mem, fd, 0, PAGES, 10);
}

const struct test process_tests[] = {
	{ "process_vm_readv, writev and /proc/PID/mem", remote_access },
	{ "vmsplice", spliced },
	{ "pinned as buffers of io_uring", pinned },
	{ "two processes, by descriptor", two_processes },
	{ 0 }
};
