// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ways in which a resident set grows and shrinks, each with a known number of pages.
 * A case runs with the tracer switched on around its region only, and prints what
 * smaps says of its whole address space at both ends, as one JSON object.
 */
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "rss.h"
#include "rss_huge.h"

/* ---- cases: N is what the path in question moves ---- */

static void case_touch(void)
{
	char *p = anon(300);

	begin();
	touch(p, 300);
	expect = 300;
	end();
}

static void case_zero(void)
{
	char *p = anon(200);

	begin();
	peek(p, 200);		/* the zero page: resident nowhere */
	touch(p, 100);		/* and then a copy of it, which is */
	expect = 100;
	end();
}

static void case_fork(void)
{
	char *p = anon(700), *f = area(64 * PAGE, MAP_SHARED, shm_file(64));
	int go[2], status;
	char c = 0;
	pid_t pid;

	touch(p, 700);
	touch(f, 64);		/* a child finds these in the file */
	if (pipe(go))
		die("pipe");
	begin();
	copied = resident(getpid(), true);
	pid = fork();
	if (!pid) {
		if (read(go[0], &c, 1) < 0)
			_exit(1);
		_exit(0);
	}
	/* Copies of pages that are shared now: nothing is resident that was not. */
	touch(p, 50);
	/* Also when the child is gone, what it had counts as grown. */
	if (write(go[1], &c, 1) != 1 || waitpid(pid, &status, 0) != pid)
		die("child");
	expect = copied;
	end();
}

static int bpf_array(unsigned int pages)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4,
				.value_size = PAGE, .max_entries = pages,
				.map_flags = BPF_F_MMAPABLE };

	return syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
}

static void case_fork_mixed(void)
{
	int fd = bpf_array(128), status;
	pid_t pid;
	char *p;

	if (fd < 0)
		die("bpf");
	p = mmap(NULL, 128 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die("mmap");
	touch(p, 128);
	begin();
	copied = resident(getpid(), true);
	pid = fork();
	if (!pid)
		_exit(0);
	waitpid(pid, &status, 0);
	expect = copied;
	end();
}

static void uffd_copy(char *p, char *from, size_t pages)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .range = { (uintptr_t)p, pages * PAGE },
				       .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_copy copy = { .dst = (uintptr_t)p, .src = (uintptr_t)from,
				    .len = pages * PAGE };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg))
		die("userfaultfd");
	begin();
	if (ioctl(fd, UFFDIO_COPY, &copy))
		die("UFFDIO_COPY");
	expect = pages;
	end();
}

static void case_uffd(void)
{
	char *from = anon(90);

	touch(from, 90);
	uffd_copy(anon(90), from, 90);
}

static void case_uffd_shmem(void)
{
	int fd = shm_file(0);
	char *from = anon(80);

	touch(from, 80);
	if (ftruncate(fd, 80 * PAGE))
		die("ftruncate");
	uffd_copy(area(80 * PAGE, MAP_SHARED, fd), from, 80);
}

static void case_mremap(void)
{
	char *from = anon(600), *to = anon(600), *p;

	touch(from, 600);
	begin();
	p = mremap(from, 600 * PAGE, 600 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	if (p != to)
		die("mremap");
	expect = 600;
	end();
}

static void case_migrate(void)
{
	enum { N = 150 };
	static void *page[N];
	static int node[N], status[N];
	char *p = anon(N);
	int i;

	touch(p, N);
	for (i = 0; i < N; i++)
		page[i] = p + i * PAGE;
	if (syscall(SYS_move_pages, 0, N, page, NULL, status, 0))
		die("move_pages");
	for (i = 0; i < N; i++)
		node[i] = !status[i];
	begin();
	if (syscall(SYS_move_pages, 0, N, page, node, status, 2))
		skip = "one node only";
	end();
	for (i = 0; i < N; i++)
		expect += status[i] == node[i];
}

static void page_out(char *p, size_t pages)
{
	unsigned char in_core[1024];
	size_t i, left = 1;
	int tries;

	for (tries = 0; tries < 50 && left; tries++) {
		madvise(p, pages * PAGE, MADV_PAGEOUT);
		if (mincore(p, pages * PAGE, in_core))
			die("mincore");
		for (i = 0, left = 0; i < pages; i++)
			left += in_core[i] & 1;
		if (left)
			usleep(20000);
	}
}

static void swap_on(const char *device)
{
	char page[PAGE] = { 0 };
	uint32_t *head = (uint32_t *)(page + 1024);
	int fd = open(device, O_RDWR);

	head[0] = 1;
	head[1] = 2047;		/* the last page */
	memcpy(page + PAGE - 10, "SWAPSPACE2", 10);
	if (fd < 0 || pwrite(fd, page, sizeof(page), 0) != sizeof(page) || fsync(fd))
		die(device);
	close(fd);
	if (swapon(device, 0))
		die("swapon");
}

static void case_page_out(void)
{
	char *p = anon(256);

	swap_on("/dev/zram0");
	touch(p, 256);
	begin();
	page_out(p, 256);
	end();
	expect = before - after;
	swapoff("/dev/zram0");
}

/* 256 pages, of which as many as are expected have been swapped out. */
static char *swapped(void)
{
	char *p = anon(256);
	long had;

	swap_on("/dev/zram0");
	touch(p, 256);
	had = resident(getpid(), false);
	page_out(p, 256);
	expect = had - resident(getpid(), false);
	return p;
}

static void case_swapoff(void)
{
	swapped();
	begin();
	if (swapoff("/dev/zram0"))
		die("swapoff");
	end();
	if (!expect)
		skip = "nothing was swapped out";
}

static void case_swap_in(void)
{
	char *p = swapped();

	begin();
	peek(p, 256);
	end();
	swapoff("/dev/zram0");
}

static void case_munmap(void)
{
	char *p = anon(1024);

	touch(p, 1024);
	begin();
	if (munmap(p, 1024 * PAGE))
		die("munmap");
	expect = 1024;
	extra = 1;
	end();
}

/* Tables that the range covers in part, and one entry of four is there. */
static void case_munmap_part(void)
{
	char *p = anon(1536);
	int i;

	for (i = 0; i < 1536; i += 4)
		touch(p + i * PAGE, 1);
	begin();
	if (munmap(p + 100 * PAGE, 1000 * PAGE) || munmap(p, 2 * PAGE))
		die("munmap");
	expect = 251;		/* 250 from 100 on, and the first of all */
	extra = 2;
	end();
}

/* More than one gather of pages takes: a table is left and locked once more. */
static void case_munmap_large(void)
{
	char *p = anon(12288);

	touch(p, 12288);
	begin();
	if (munmap(p, 12288 * PAGE))
		die("munmap");
	expect = 12288;
	extra = 1;
	end();
}

static void case_dontneed(void)
{
	char *p = anon(400);

	touch(p, 400);
	begin();
	madvise(p + 10 * PAGE, 300 * PAGE, MADV_DONTNEED);
	expect = 300;
	end();
}

static void case_munmap_file(void)
{
	char *p = area(640 * PAGE, MAP_SHARED, shm_file(640));

	peek(p, 640);
	begin();
	if (munmap(p, 640 * PAGE))
		die("munmap");
	expect = 640;
	extra = 1;
	end();
}

/* Private copies outlive a hole that is punched, the file's pages do not. */
static void case_punch(void)
{
	int fd = shm_file(128);
	char *p = area(128 * PAGE, MAP_PRIVATE, fd);

	peek(p, 128);
	touch(p, 32);
	begin();
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 128 * PAGE))
		die("fallocate");
	expect = 96;
	end();
}

static volatile bool stop;

static void *toucher(void *arg)
{
	char *p = arg;

	while (!stop) {
		touch(p, 64);
		madvise(p, 64 * PAGE, MADV_DONTNEED);
	}
	touch(p, 64);
	return NULL;
}

/* Another thread faults and drops pages meanwhile. */
static void case_threads(void)
{
	char *mine = anon(256), *its = anon(64);
	pthread_t thread;
	int i;

	begin();
	pthread_create(&thread, NULL, toucher, its);
	for (i = 0; i < 20; i++) {
		touch(mine, 256);
		madvise(mine, 256 * PAGE, MADV_DONTNEED);
	}
	stop = true;
	pthread_join(thread, NULL);
	expect = 64;
	end();
}

static void case_thp(void)
{
	char *p = area(2 * HUGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	set_text("/sys/kernel/mm/transparent_hugepage/enabled", "madvise");
	madvise(p, 2 * HUGE, MADV_HUGEPAGE);
	begin();
	touch(p, 1);
	touch(p + HUGE, 1);
	munmap(p, HUGE);			/* one whole */
	munmap(p + HUGE, 100 * PAGE);		/* a part of the other */
	expect = 512 + 100;
	extra = 2;
	end();
}

static void case_exec(void)
{
	begin();
	if (!fork()) {
		execl("/proc/self/exe", "rss", "nothing", NULL);
		_exit(1);
	}
	wait(NULL);
	end();
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "touch", case_touch }, { "zero", case_zero }, { "fork", case_fork },
	{ "fork_mixed", case_fork_mixed }, { "uffd", case_uffd },
	{ "uffd_shmem", case_uffd_shmem }, { "mremap", case_mremap },
	{ "migrate", case_migrate }, { "collapse", case_collapse },
	{ "khugepaged", case_khugepaged }, { "collapse_file", case_collapse_file },
	{ "collapse_mapped", case_collapse_mapped }, { "collapse_both", case_collapse_both },
	{ "khugepaged_file", case_khugepaged_file }, { "page_out", case_page_out },
	{ "swapoff", case_swapoff }, { "swap_in", case_swap_in }, { "munmap", case_munmap },
	{ "munmap_part", case_munmap_part }, { "munmap_large", case_munmap_large },
	{ "munmap_file", case_munmap_file }, { "dontneed", case_dontneed },
	{ "punch", case_punch }, { "threads", case_threads }, { "thp", case_thp },
	{ "exec", case_exec },
};

int main(int argc, char **argv)
{
	const char *fds = getenv("MMSCOPE_CONTROL_FD");
	size_t i;

	if (argc == 2 && !strcmp(argv[1], "nothing"))
		return 0;
	if (fds && sscanf(fds, "%d,%d", &control, &ack) != 2)
		die("MMSCOPE_CONTROL_FD");
	alarm(120);
	memset(smaps, 1, sizeof(smaps));
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (argc != 2 || strcmp(argv[1], cases[i].name))
			continue;
		cases[i].run();
		printf("{\"bench\": \"%s\", \"before\": %ld, \"after\": %ld, \"expect\": %ld, "
		       "\"calls\": %ld, \"switches\": %ld, \"skip\": \"%s\"}\n", cases[i].name,
		       before, after, expect, extra, switches, skip ?: "");
		return 0;
	}
	fprintf(stderr, "rss: no such case\n");
	return 2;
}
