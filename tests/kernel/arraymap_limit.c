// SPDX-License-Identifier: GPL-2.0-only
/* What is refused, and what passes such mappings by. */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arraymap.h"

#define PAGES 64u

/* Younger than the headers of Debian 12. */
#define GUARD_INSTALL	102	/* MADV_GUARD_INSTALL, 6.13 */
#define WP_ASYNC	(1 << 15)	/* UFFD_FEATURE_WP_ASYNC, 6.7 */

static void bounds(void)
{
	int fd = array_new(PAGES), plain = array_create(PAGE, PAGES, 0);
	size_t len = PAGES * PAGE;

	check_fails((long)map_at(NULL, len + PAGE, PROT_READ, 0, fd, 0), EINVAL);
	check_fails((long)map_at(NULL, len, PROT_READ, 0, fd, PAGE), EINVAL);
	check_fails((long)map_at(NULL, PAGE, PROT_READ, 0, fd, len), EINVAL);
	check_fails((long)map_at(NULL, PAGE, PROT_READ, 0, fd, len + PAGE), EINVAL);
	/* Where an offset in bytes, or its sum with the length, no longer fits in 64 bits. */
	check_fails((long)map_at(NULL, PAGE, PROT_READ, 0, fd, (off_t)-PAGE), EOVERFLOW);
	check_fails((long)map_at(NULL, len, PROT_READ, 0, fd, (off_t)-PAGE), EOVERFLOW);
	check_fails((long)map_at(NULL, 2 * PAGE, PROT_READ, 0, fd, (off_t)(-2ul * PAGE)),
		    EOVERFLOW);
	check_fails((long)map_at(NULL, PAGE, PROT_READ, 0, fd, INT64_MAX & -PAGE), EINVAL);
	check_fails((long)map_at(NULL, PAGE, PROT_READ, 0, fd, 1l << 62), EINVAL);
	check_fails((long)mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0), EINVAL);
	check_fails((long)map_at(NULL, len, PROT_READ, 0, plain, 0), EINVAL);
	check_fails((long)map_at(NULL, len, PROT_READ | PROT_EXEC, 0, fd, 0), EPERM);
	/* The last page that there is. */
	check(map_at(NULL, PAGE, PROT_READ, 0, fd, len - PAGE) != MAP_FAILED);
}

static int uffd_new(unsigned long features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int fd = syscall(__NR_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		skip("no userfaultfd here: %s", strerror(errno));
	if (!ioctl(fd, UFFDIO_API, &api))
		return fd;
	close(fd);
	return -1;
}

static int uffd_register(int fd, void *mem, size_t len, unsigned long mode)
{
	struct uffdio_register r = { .range = { (uintptr_t)mem, len }, .mode = mode };

	return ioctl(fd, UFFDIO_REGISTER, &r);
}

static void userfault(void)
{
	static const unsigned long modes[] = { UFFDIO_REGISTER_MODE_MISSING,
		UFFDIO_REGISTER_MODE_WP, UFFDIO_REGISTER_MODE_MINOR,
		UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP };
	int fd = array_new(PAGES), uffd = uffd_new(0), async = uffd_new(WP_ASYNC);
	size_t len = PAGES * PAGE, i;
	char *mem, *control;

	need(uffd >= 0);
	array_fill(fd, PAGES, 1);
	mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0);
	control = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check_is(uffd_register(uffd, control, len, UFFDIO_REGISTER_MODE_MISSING), 0);
	for (i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		check_fails(uffd_register(uffd, mem, len, modes[i]), EINVAL);
		check_fails(uffd_register(uffd, mem + PAGE, PAGE, modes[i]), EINVAL);
	}
	if (async >= 0)
		check_fails(uffd_register(async, mem, len, UFFDIO_REGISTER_MODE_WP), EINVAL);
	check_is(vmas(mem, len), 1);
	array_check(mem, fd, 0, PAGES, 1);
}

static void locked(void)
{
	int fd = array_new(PAGES);
	char *mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0);

	/* It succeeds, brings the pages, and does not lock: the VMA is special. */
	check_is(mlock(mem, PAGES * PAGE), 0);
	check(!vm_flag(mem, "lo"));
	check_is(status_kib("VmLck"), 0);
	check_is(smaps(mem, "Locked"), 0);
	check_is(munlock(mem, PAGES * PAGE), 0);
	check_is(vmas(mem, PAGES * PAGE), 1);
	munmap(mem, PAGES * PAGE);
	check_is(mlockall(MCL_FUTURE), 0);
	mem = map_at(NULL, PAGES * PAGE, PROT_READ, 0, fd, 0);
	need(mem != MAP_FAILED);
	check(!vm_flag(mem, "lo"));
	check_is(smaps(mem, "Locked"), 0);
	check_is(munlockall(), 0);
	munmap(mem, PAGES * PAGE);
}

static void guards(void)
{
	int fd = array_new(PAGES);
	char *mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0), *control;

	array_fill(fd, PAGES, 2);
	control = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (madvise(control, PAGE, GUARD_INSTALL))
		skip("no guard markers before 6.13");
	check_is(signal_of(control, false), SIGSEGV);
	check_fails(madvise(mem, 4 * PAGE, GUARD_INSTALL), EINVAL);
	touch_read(mem + 9 * PAGE);
	check_fails(madvise(mem + 9 * PAGE, PAGE, GUARD_INSTALL), EINVAL);
	array_check(mem, fd, 0, PAGES, 2);
}

/* VM_DONTEXPAND and VM_DONTDUMP, and what must not be there. */
static void flags(void)
{
	int fd = array_new(PAGES);
	char *mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, 0, 0);

	check(vm_flag(mem, "de"));
	check(vm_flag(mem, "dd"));
	check(!vm_flag(mem, "pf"));
	check(!vm_flag(mem, "io"));
	check(vm_flag(mem, "mw"));
	check(!vm_flag(mem, "me"));
	munmap(mem, PAGES * PAGE);
	mem = array_map(fd, PAGES, PROT_READ, 0, 0);
	check(!vm_flag(mem, "mw"));
	check(vm_flag(mem, "de") && vm_flag(mem, "dd"));
	/* It cannot be asked for. */
	check_fails(madvise(mem, PAGES * PAGE, MADV_DODUMP), EINVAL);
}

static bool file_has(const char *path, const void *what, size_t len)
{
	int fd = open(path, O_RDONLY);
	off_t size = lseek(fd, 0, SEEK_END);
	bool found;
	char *all;

	need(fd >= 0 && size > 0);
	all = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	need(all != MAP_FAILED);
	found = memmem(all, size, what, len);
	munmap(all, size);
	close(fd);
	return found;
}

static void core_dump(void)
{
	static char page[PAGE];
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	int fd = array_new(PAGES), status;
	char path[64], old[256] = "core", *mem, *control;
	FILE *f = fopen("/proc/sys/kernel/core_pattern", "r");
	pid_t pid;

	need(f && fgets(old, sizeof(old), f));
	fclose(f);
	if (!write_file("/proc/sys/kernel/core_pattern", "/tmp/core.%p"))
		skip("core_pattern cannot be set");
	array_fill(fd, PAGES, 3);
	memset(page, 0, PAGE);
	pid = fork();
	if (!pid) {
		mem = array_map(fd, PAGES, PROT_READ | PROT_WRITE, MAP_POPULATE, 0);
		control = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		page_fill(control, 1, 99);
		touch_write(mem + 5 * PAGE);
		setrlimit(RLIMIT_CORE, &all);
		prctl(PR_SET_DUMPABLE, 1);
		abort();
	}
	need(waitpid(pid, &status, 0) == pid);
	write_file("/proc/sys/kernel/core_pattern", old);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	snprintf(path, sizeof(path), "/tmp/core.%d", pid);
	if (access(path, R_OK) && !WCOREDUMP(status))
		skip("this kernel dumps no core");
	page_fill(page, 1, 99);
	check(file_has(path, page, PAGE));
	page_fill(page, 5, 3);
	check(!file_has(path, page, 256));
	page_fill(page, 40, 3);
	check(!file_has(path, page, 256));
	unlink(path);
}

/* Hinting faults come to other memory of the process, never to an array. */
static void numa_balancing(void)
{
	static const char *const settings[][2] = {
		{ "/proc/sys/kernel/numa_balancing", "1" },
		{ "/sys/kernel/debug/sched/numa_balancing/scan_delay_ms", "10" },
		{ "/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms", "20" },
		{ "/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms", "40" },
	};
	long before, of_array = 0, of_control = 0, hints;
	enum { SIZE = 1024, SECONDS = 30 };
	time_t begin = time(NULL);
	uint32_t i;
	int fd = array_new(SIZE);
	char *mem, *control;

	if (access("/sys/devices/system/node/node1", F_OK))
		skip("one NUMA node");
	for (i = 0; i < 4; i++)
		if (!write_file(settings[i][0], settings[i][1]))
			skip("no NUMA balancing: %s", settings[i][0]);
	hints = vmstat("numa_hint_faults");
	mem = array_map(fd, SIZE, PROT_READ | PROT_WRITE, MAP_POPULATE, 0);
	/* Private memory of a single thread on its own node would be left alone. */
	control = mmap(NULL, SIZE * PAGE, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	need(control != MAP_FAILED && !madvise(control, SIZE * PAGE, MADV_NOHUGEPAGE));
	/* Two scans of all that there is. */
	while (of_control < 2 * SIZE && time(NULL) < begin + SECONDS) {
		before = faults();
		for (i = 0; i < SIZE; i++)
			touch_read(mem + i * PAGE);	/* dirty pages would be left alone */
		of_array += faults() - before;
		before = faults();
		for (i = 0; i < SIZE; i++)
			touch_read(control + i * PAGE);
		of_control += faults() - before;
	}
	hints = vmstat("numa_hint_faults") - hints;
	write_file(settings[0][0], "0");
	if (of_control < SIZE || hints < SIZE)
		skip("it scanned nothing in %d s: %ld faults, %ld hints", SECONDS, of_control,
		     hints);
	/* A few are of the code and the stack that touch it. */
	check(of_array < 16);
	check_is(present(mem, SIZE), SIZE);
}

const struct test limit_tests[] = {
	{ "bounds: EINVAL and EOVERFLOW", bounds },
	{ "userfaultfd is refused", userfault },
	{ "mlock", locked },
	{ "guard markers are refused", guards },
	{ "flags of the VMA", flags },
	{ "a core dump is without it", core_dump },
	{ "NUMA balancing stays away", numa_balancing },
	{ 0 }
};
