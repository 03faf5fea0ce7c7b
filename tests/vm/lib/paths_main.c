// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ways into a page fault that `mmscope bench` has no workload for: each does a known
 * amount of work in a region that it switches observing on for, and then prints what
 * rusage, pagemap and smaps say of it. Nothing here knows of mmscope but that switch.
 */
#include "paths.h"

#include <sched.h>
#include <sys/swap.h>
#include <sys/uio.h>

static int control = -1, answer = -1;
static struct rusage before, after;
static char text[1 << 16];

char *map(size_t len, int flags, int fd)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);

	CHECK(p != MAP_FAILED, "mmap");
	madvise(p, len, MADV_NOHUGEPAGE);
	return p;
}

char *map_aligned(size_t len, size_t align, int flags)
{
	char *p = mmap(NULL, len + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED, "mmap");
	munmap(p, len + align);
	p = (char *)(((uintptr_t)p + align - 1) & ~(align - 1));
	p = mmap(p, len, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(p != MAP_FAILED, "mmap, aligned");
	return p;
}

static uint64_t pagemap_entry(const char *p)
{
	static int fd = -1;
	uint64_t entry;

	if (fd < 0)
		fd = open("/proc/self/pagemap", O_RDONLY);
	CHECK(pread(fd, &entry, 8, (uintptr_t)p / PAGE * 8) == 8, "pagemap");
	return entry;
}

uint64_t pagemap(const char *p, size_t n, uint64_t bits)
{
	uint64_t found = 0;

	for (; n; n--, p += PAGE)
		found += !!(pagemap_entry(p) & bits);
	return found;
}

/* A page that waits in another CPU's batch for the LRU lists has one reference more. */
static void on_one_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	CHECK(!sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
}

static ssize_t slurp(const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t n, len = 0;

	if (fd < 0)
		return -1;
	while ((n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += n;
	close(fd);
	text[len] = 0;
	return len;
}

void settle(const char *except, size_t len)
{
	unsigned long start, end;
	char perms[8], *line, *next;
	static char maps[sizeof(text)];

	CHECK(slurp("/proc/self/maps") > 0, "maps");
	memcpy(maps, text, sizeof(maps));
	for (line = maps; *line; line = next) {
		next = strchr(line, '\n') + 1;
		if (sscanf(line, "%lx-%lx %7s", &start, &end, perms) != 3 || perms[0] != 'r' ||
		    memmem(line, next - line, "[v", 2))
			continue;
		if ((char *)start < except + len && (char *)end > except)
			continue;
		for (; start < end; start += PAGE) {
			volatile char *p = (char *)start;
			char c = *p;

			if (perms[1] == 'w')
				*p = c;
		}
	}
}

void fork_once(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(0);
	CHECK(waitpid(pid, &status, 0) == pid && !status, "fork");
}

uint64_t vmstat(const char *name)
{
	char key[64], *at;

	snprintf(key, sizeof(key), "\n%s ", name);
	slurp("/proc/vmstat");
	at = strstr(text, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void tell(const char *word)
{
	char byte;

	if (control < 0)
		return;
	CHECK(write(control, word, strlen(word)) == (ssize_t)strlen(word), "control");
	do {
		CHECK(read(answer, &byte, 1) == 1, "no answer");
	} while (byte != '\n');
}

void region_begin(void)
{
	tell("enable\n");
	getrusage(RUSAGE_SELF, &before);
}

void region_end(void)
{
	getrusage(RUSAGE_SELF, &after);
	tell("disable\n");
}

static uint64_t smaps(const char *p, size_t len, const char *key)
{
	unsigned long start, end;
	uint64_t sum = 0;
	bool inside = false;
	char line[512];
	FILE *f = fopen("/proc/self/smaps", "r");

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = (char *)start < p + len && (char *)end > p;
		else if (inside && !strncmp(line, key, strlen(key)))
			sum += strtoull(line + strlen(key), NULL, 10);
	}
	fclose(f);
	return sum;
}

void report(const char *name, const char *p, size_t pages, uint64_t n, const char *more)
{
	size_t len = pages * PAGE;

	printf("{\"bench\":\"%s\",\"page_size\":4096,\"repeat\":1,\"pages_total\":%" PRIu64
	       ",\"minflt\":%ld,\"majflt\":%ld,\"child_minflt\":0,\"present\":[%" PRIu64
	       "],\"rss_kib\":[%" PRIu64 "],\"anon_huge_kib\":[%" PRIu64
	       "],\"shmem_pmd_kib\":[%" PRIu64 "],\"file_pmd_kib\":[%" PRIu64
	       "],\"hugetlb_kib\":[%" PRIu64 "],\"rss_exact\":false%s}\n", name, n,
	       after.ru_minflt - before.ru_minflt, after.ru_majflt - before.ru_majflt,
	       pagemap(p, pages, PM_PRESENT), smaps(p, len, "Rss:"),
	       smaps(p, len, "AnonHugePages:"), smaps(p, len, "ShmemPmdMapped:"),
	       smaps(p, len, "FilePmdMapped:"),
	       smaps(p, len, "Private_Hugetlb:") + smaps(p, len, "Shared_Hugetlb:"), more);
}

/* ---- swap ---- */

/* A swap area needs no more than a header: version 1, last page, signature. */
static void swap_on(const char *path)
{
	uint32_t header[1024] = { 0 };
	int fd = open(path, O_RDWR);
	off_t size;

	NEED(fd >= 0, path);
	size = lseek(fd, 0, SEEK_END);
	header[256] = 1;
	header[257] = size / PAGE - 1;
	memcpy((char *)header + PAGE - 10, "SWAPSPACE2", 10);
	CHECK(pwrite(fd, header, PAGE, 0) == PAGE && !fsync(fd), "swap header");
	close(fd);
	CHECK(!swapon(path, 0), "swapon");
}

static void swap_case(const char *name, size_t n, int flags, bool write)
{
	char *p = map(n * PAGE, flags | MAP_ANONYMOUS, -1);
	uint64_t swapped, i;

	on_one_cpu();
	touch_all(p, n, true);
	settle(p, n * PAGE);
	/* What is still being written stays: ask again. */
	for (i = 0; i < 300 && pagemap(p, n, PM_PRESENT); i++) {
		CHECK(!madvise(p, n * PAGE, MADV_PAGEOUT), "MADV_PAGEOUT");
		usleep(10000);
	}
	/* The entries of shared memory do not tell that it is swapped out. */
	swapped = n - pagemap(p, n, PM_PRESENT);
	CHECK(swapped == n, "not all was swapped out");
	region_begin();
	touch_all(p, n, write);
	region_end();
	report(name, p, n, n, "");
}

/* ---- write protection ---- */

/* A page that somebody else still refers to is copied: which ones, their frames tell. */
static void reuse_case(const char *name, size_t n, size_t held)
{
	static uint64_t frame[1024];
	char *p = map(n * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1), more[64];
	struct iovec pages = { p, held * PAGE };
	size_t i, copied = 0;
	int fds[2];

	on_one_cpu();
	touch_all(p, n, true);
	fork_once();
	CHECK(!pipe(fds), "pipe");
	if (held)
		CHECK(vmsplice(fds[1], &pages, 1, 0) == (ssize_t)pages.iov_len, "vmsplice");
	settle(p, n * PAGE);
	for (i = 0; i < n; i++)
		CHECK(frame[i] = pagemap_entry(p + i * PAGE) & PM_FRAME, "frames");
	region_begin();
	touch_all(p, n, true);
	region_end();
	for (i = 0; i < n; i++)
		copied += (pagemap_entry(p + i * PAGE) & PM_FRAME) != frame[i];
	snprintf(more, sizeof(more), ",\"held\":%zu,\"copied\":%zu", held, copied);
	report(name, p, n, n, more);
}

static void zero_cow_case(const char *name, size_t n)
{
	char *p = map(n * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	touch_all(p, n, false);
	settle(p, n * PAGE);
	region_begin();
	touch_all(p, n, true);
	region_end();
	report(name, p, n, n, "");
}

static void mkwrite_case(const char *name, const char *path, size_t n, bool read_first)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	char *p;
	size_t i;

	NEED(fd >= 0, path);
	memset(text, 7, PAGE);
	/* Page by page and on disk after each: small folios also where large ones exist. */
	for (i = 0; i < n; i++)
		CHECK(pwrite(fd, text, PAGE, i * PAGE) == PAGE && !fdatasync(fd), path);
	p = map(n * PAGE, MAP_SHARED, fd);
	if (read_first)
		touch_all(p, n, false);
	settle(p, n * PAGE);
	region_begin();
	touch_all(p, n, true);
	region_end();
	report(name, p, n, n, "");
	unlink(path);
}

/* ---- hugetlb ---- */

static void hugetlb_case(const char *name, size_t n, const char *how)
{
	int flags = strcmp(how, "shared") ? MAP_PRIVATE : MAP_SHARED;
	char *p = map_aligned(n * HUGE, HUGE, flags | MAP_ANONYMOUS | MAP_HUGETLB);
	size_t i;

	if (!strcmp(how, "reuse")) {
		for (i = 0; i < n; i++)
			touch(p + i * HUGE, true);
		fork_once();
	}
	settle(p, n * HUGE);
	region_begin();
	for (i = 0; i < n; i++)
		touch(p + i * HUGE, true);
	region_end();
	report(name, p, n * 512, n, "");
}

/* ---- NUMA balancing ---- */

/* Of the guest's two nodes each has one CPU. */
static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	NEED(!sched_setaffinity(0, sizeof(set), &set), "both CPUs are needed");
}

static void numa_case(const char *name, size_t n)
{
	char *p = map(n * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct rusage first_usage, last_usage;
	uint64_t first, now;
	char more[96];
	int i = 0;

	run_on(1);
	touch_all(p, n, true);
	settle(p, n * PAGE);
	first = vmstat("numa_hint_faults");
	getrusage(RUSAGE_SELF, &first_usage);
	region_begin();
	/*
	 * Hints for other tasks are in the kernel's count as well: go on until we had ours,
	 * which may take a minute where others want the CPU, too. A task alone in its address
	 * space gets none for pages of the node that it runs on (change_pte_range()).
	 */
	do {
		if (i % 500 == 0)
			run_on(i / 500 % 2);
		touch_all(p, n, true);
		/* The scanner works at the ends of time slices. */
		usleep(1000);
		getrusage(RUSAGE_SELF, &last_usage);
	} while (i++ < 20000 && last_usage.ru_minflt < first_usage.ru_minflt + (long)n / 2);
	region_end();
	getrusage(RUSAGE_SELF, &last_usage);
	now = vmstat("numa_hint_faults");
	snprintf(more, sizeof(more), ",\"numa_around\":%" PRIu64 ",\"minflt_around\":%ld",
		 now - first, last_usage.ru_minflt - first_usage.ru_minflt);
	NEED(now > first, "no NUMA hint fault came");
	report(name, p, n, n, more);
}

int main(int argc, char **argv)
{
	const char *env = getenv("MMSCOPE_CONTROL_FD"), *name = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOFBF, 1 << 14);
	if (env && sscanf(env, "%d,%d", &control, &answer) != 2)
		DIE(1, "MMSCOPE_CONTROL_FD=%s", env);
	if (!strcmp(name, "swapon"))
		swap_on(argv[2]);
	else if (!strcmp(name, "swap-read"))
		swap_case(name, 300, MAP_PRIVATE, false);
	else if (!strcmp(name, "swap-write"))
		swap_case(name, 300, MAP_PRIVATE, true);
	else if (!strcmp(name, "swap-shmem"))
		swap_case(name, 300, MAP_SHARED, true);
	else if (!strcmp(name, "reuse"))
		reuse_case(name, 400, argc > 2 ? atoi(argv[2]) : 0);
	else if (!strcmp(name, "zero-cow"))
		zero_cow_case(name, 400);
	else if (!strcmp(name, "mkwrite") || !strcmp(name, "mkwrite-mapped"))
		mkwrite_case(name, argv[2], 100, !strcmp(name, "mkwrite-mapped"));
	else if (!strcmp(name, "hugetlb"))
		hugetlb_case(name, 3, argv[2]);
	else if (!strcmp(name, "numa"))
		numa_case(name, 4096);
	else if (!strcmp(name, "uffd"))
		uffd_case(argv[2]);
	else
		device_case(argc, argv);
	return 0;
}
