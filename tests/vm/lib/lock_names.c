// SPDX-License-Identifier: GPL-2.0-only
/*
 * names WORKLOAD N: what tests of mmscope lock know the name or the reason of.
 *
 *   rq N         three threads change N times each the priority of others, all of one CPU
 *   no_vma N     N accesses where nothing is mapped
 *   no_map_pages N     a System V segment of N pages is touched: its operations lack that
 *   uffd N       N pages are touched that a thread fills in when it is asked to
 *   anon_vma N   N mappings are touched, one by one, while a thread writes to the address space
 *   written N    three threads fault in one mapping, whose protection is changed N times
 *   retried N DIR      four threads fault N times each on a page of a file of ramfs, at DIR
 *   readers N    N huge pages are touched while the protection of their mapping is changed
 *   occupy FUNCTION COMMAND...  the command, while as many BPF programs are on the function
 *                as the kernel takes; prints their number
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	4096UL
#define HUGE	(2UL << 20)
#define THREADS	3

static long rounds;
static atomic_bool stop;
static char *map;

static void fail(const char *what)
{
	perror(what);
	exit(9);
}

static char *map_memory(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		fail("mmap");
	return p;
}

static void touch(char *p)
{
	*(volatile char *)p = 1;
}

static void start(pthread_t *thread, void *(*work)(void *), long i)
{
	if (pthread_create(thread, NULL, work, (void *)i))
		fail("pthread_create");
}

static void run_threads(void *(*work)(void *), long n)
{
	pthread_t thread[8];
	long i;

	for (i = 0; i < n; i++)
		start(&thread[i], work, i);
	for (i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

/* ---- rq ---- */

static atomic_int target[THREADS];

/* Sleeps on CPU 0: whoever changes it takes the lock of that CPU's queue. */
static void *sleeper(void *arg)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		fail("sched_setaffinity");
	sched_yield();
	target[(long)arg] = gettid();
	while (!stop)
		usleep(100000);
	return NULL;
}

static void *changer(void *arg)
{
	int i = (long)arg;
	long n;

	for (n = 0; n < rounds; n++)
		if (setpriority(PRIO_PROCESS, target[i], n & 1 ? 5 : 10))
			fail("setpriority");
	return NULL;
}

static void rq(void)
{
	pthread_t thread[THREADS];
	long i;

	for (i = 0; i < THREADS; i++)
		start(&thread[i], sleeper, i);
	for (i = 0; i < THREADS; i++)
		while (!target[i])
			usleep(1000);
	run_threads(changer, THREADS);
	stop = true;
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* ---- reasons ---- */

static sigjmp_buf back;

static void on_fault(int sig)
{
	siglongjmp(back, sig);
}

static void no_vma(void)
{
	char *gap = map_memory(PAGE);
	volatile long i;

	munmap(gap, PAGE);
	signal(SIGSEGV, on_fault);
	for (i = 0; i < rounds; i++)
		if (!sigsetjmp(back, 1))
			touch(gap);
}

static void no_map_pages(void)
{
	int id = shmget(IPC_PRIVATE, rounds * PAGE, IPC_CREAT | 0600);
	char *p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
	long i;

	if (p == (void *)-1)
		fail("shmat");
	shmctl(id, IPC_RMID, NULL);
	for (i = 0; i < rounds; i++)
		touch(p + i * PAGE);
}

static void *fill(void *arg)
{
	struct uffdio_zeropage zero = { .range.len = PAGE };
	int fd = (long)arg;
	struct uffd_msg msg;
	long i;

	for (i = 0; i < rounds; i++) {
		if (read(fd, &msg, sizeof(msg)) != sizeof(msg))
			fail("read");
		zero.range.start = msg.arg.pagefault.address & -PAGE;
		if (ioctl(fd, UFFDIO_ZEROPAGE, &zero))
			fail("UFFDIO_ZEROPAGE");
	}
	return NULL;
}

static void uffd(void)
{
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	long fd = syscall(SYS_userfaultfd, 0), i;
	pthread_t filler;

	map = map_memory(rounds * PAGE);
	madvise(map, rounds * PAGE, MADV_NOHUGEPAGE);
	range.range.start = (uintptr_t)map;
	range.range.len = rounds * PAGE;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range))
		fail("userfaultfd");
	start(&filler, fill, fd);
	for (i = 0; i < rounds; i++)	/* a read: the page of zeroes is what comes */
		(void)*(volatile char *)(map + i * PAGE);
	pthread_join(filler, NULL);
}

static void change(char *p, size_t size, long i)
{
	if (mprotect(p, size, PROT_READ | PROT_WRITE | (i & 1 ? 0 : PROT_EXEC)))
		fail("mprotect");
}

#define OTHERS	(2048 * PAGE)

/* Of many pages, which takes a while, and of no mapping that anybody else touches. */
static void *change_others(void *arg)
{
	char *p = map_memory(OTHERS);
	size_t i;

	madvise(p, OTHERS, MADV_NOHUGEPAGE);
	for (i = 0; i < OTHERS; i += PAGE)
		touch(p + i);
	stop = false;
	for (i = 0; !stop; i++)
		change(p, OTHERS, i);
	return NULL;
}

/* Neighbours of other protection: each is a mapping that has no anon_vma. */
static void anon_vma(void)
{
	pthread_t other;
	long i;

	map = map_memory(2 * rounds * PAGE);
	for (i = 0; i < rounds; i++)
		if (mprotect(map + 2 * i * PAGE, PAGE, PROT_NONE))
			fail("mprotect");
	stop = true;
	start(&other, change_others, 0);
	while (stop)
		usleep(1000);
	for (i = 0; i < rounds; i++)
		touch(map + (2 * i + 1) * PAGE);
	stop = true;
	pthread_join(other, NULL);
}

#define PART	(2048 * PAGE)

static void *fault_part(void *arg)
{
	char *part = map + (long)arg * PART;
	size_t i;

	while (!stop) {
		for (i = 0; i < PART && !stop; i += PAGE)
			touch(part + i);
		if (madvise(part, PART, MADV_DONTNEED))
			fail("madvise");
	}
	return NULL;
}

static void written(void)
{
	pthread_t thread[THREADS];
	long i;

	map = map_memory(THREADS * PART);
	madvise(map, THREADS * PART, MADV_NOHUGEPAGE);
	touch(map);	/* there is an anon_vma */
	for (i = 0; i < THREADS; i++)
		start(&thread[i], fault_part, i);
	for (i = 0; i < rounds; i++)
		change(map, THREADS * PART, i);
	stop = true;
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

static int file;

/* The page is locked while it is mapped; who waits for that gives up the mapping's lock. */
static void *fault_file(void *arg)
{
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	long i;

	if (p == MAP_FAILED)
		fail("mmap");
	for (i = 0; i < rounds; i++) {
		touch(p);
		if (madvise(p, PAGE, MADV_DONTNEED))
			fail("madvise");
	}
	return NULL;
}

static void retried(const char *path)
{
	mkdir(path, 0700);
	if (mount("ram", path, "ramfs", 0, NULL) || chdir(path))
		fail(path);
	file = open("file", O_RDWR | O_CREAT, 0600);
	if (file < 0 || ftruncate(file, PAGE))
		fail("file");
	run_threads(fault_file, 4);
	umount2(path, MNT_DETACH);
}

/* ---- readers ---- */

static void *fault_huge(void *arg)
{
	long i;

	for (i = 0; i < rounds; i++) {
		touch(map + i * HUGE);
		usleep(5000);
	}
	stop = true;
	return NULL;
}

/*
 * A huge page is emptied under the lock of its mapping, which takes a while. Both sleep
 * in between, so that a writer finds a reader and hardly ever the other way round.
 */
static void readers(void)
{
	pthread_t other;
	long i;

	map = map_memory((rounds + 1) * HUGE);
	map += -(uintptr_t)map & (HUGE - 1);
	madvise(map, rounds * HUGE, MADV_HUGEPAGE);
	start(&other, fault_huge, 0);
	for (i = 0; !stop; i++) {
		change(map, rounds * HUGE, i);
		usleep(500);
	}
	pthread_join(other, NULL);
}

/* ---- occupy ---- */

static int bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* Bytes behind a type's own (include/uapi/linux/btf.h). */
static size_t behind(const struct btf_type *t)
{
	size_t n = BTF_INFO_VLEN(t->info);

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case 17:	/* BTF_KIND_DECL_TAG, since 5.16 */
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return n * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return n * sizeof(struct btf_enum);
	case BTF_KIND_FUNC_PROTO:
		return n * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return n * sizeof(struct btf_var_secinfo);
	case 19:	/* BTF_KIND_ENUM64, since 6.0: three words each */
		return n * 12;
	default:
		return 0;
	}
}

static unsigned int function_id(const char *name)
{
	int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY);
	const struct btf_header *h;
	const struct btf_type *t;
	unsigned int id = 1;
	const char *at, *end, *strings;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		fail("BTF");
	h = malloc(st.st_size);
	for (size_t n = 0; n < (size_t)st.st_size;) {
		ssize_t some = read(fd, (char *)h + n, st.st_size - n);

		if (some <= 0)
			fail("BTF");
		n += some;
	}
	at = (char *)h + h->hdr_len + h->type_off;
	end = at + h->type_len;
	strings = (char *)h + h->hdr_len + h->str_off;
	for (; at < end; at += sizeof(*t) + behind(t), id++) {
		t = (const void *)at;
		if (BTF_INFO_KIND(t->info) == BTF_KIND_FUNC && !strcmp(strings + t->name_off, name))
			return id;
	}
	fail(name);
	return 0;
}

static int occupy(const char *function, char **command)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },	/* r0 = 0 */
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_TRACING, .expected_attach_type = BPF_TRACE_FENTRY,
		.insn_cnt = 2, .insns = (uintptr_t)code, .license = (uintptr_t)"GPL",
		.attach_btf_id = function_id(function),
	};
	union bpf_attr link;
	int prog, status, n = 0;
	pid_t child;

	for (;; n++) {
		prog = bpf(BPF_PROG_LOAD, &attr);
		if (prog < 0)
			fail("BPF_PROG_LOAD");
		memset(&link, 0, sizeof(link));
		link.raw_tracepoint.prog_fd = prog;
		if (bpf(BPF_RAW_TRACEPOINT_OPEN, &link) < 0)
			break;
	}
	printf("%d\n", n);
	fflush(stdout);
	child = fork();
	if (!child) {
		execvp(command[0], command);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		fail("fork");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 9;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*work)(void);
	} works[] = {
		{ "rq", rq }, { "no_vma", no_vma }, { "no_map_pages", no_map_pages },
		{ "uffd", uffd }, { "anon_vma", anon_vma }, { "written", written },
		{ "readers", readers },
	};
	size_t i;

	if (argc > 3 && !strcmp(argv[1], "occupy"))
		return occupy(argv[2], argv + 3);
	rounds = argc > 2 ? atol(argv[2]) : 0;
	if (argc > 3 && !strcmp(argv[1], "retried")) {
		retried(argv[3]);
		return 0;
	}
	for (i = 0; rounds && i < sizeof(works) / sizeof(*works); i++)
		if (!strcmp(argv[1], works[i].name)) {
			works[i].work();
			return 0;
		}
	return 2;
}
