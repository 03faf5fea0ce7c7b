/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TESTS_KERNEL_ARRAYMAP_H
#define TESTS_KERNEL_ARRAYMAP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Functional tests of mapped BPF arrays. What a kernel should do is one of four
 * behaviours, given on the command line; nearly everything is the same in all.
 */
enum behaviour {
	EAGER,		/* mmap() installs all PTEs; no fault handler (to 7.2) */
	FAULT,		/* one page a fault (7.3) */
	WINDOW,		/* a fault-around window a fault, also for writes */
	RAMP,		/* the same; after a window that is there: the rest of the table */
};

extern enum behaviour behaviour;

/* ---- results ---- */

typedef void test_fn(void);

struct test {
	const char *name;
	test_fn *run;
};

/* One table a file, ended by an empty row. */
extern const struct test touch_tests[], bits_tests[], vma_tests[], limit_tests[], map_tests[],
	process_tests[], race_tests[], writer_tests[], poison_tests[];

/* A test runs in a process of its own. These print what is wrong; the test goes on. */
void failed(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The test ends here. */
void skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void give_up(const char *file, int line, const char *what) __attribute__((noreturn));
/* In a child of a test: exit status for check_child(). */
int failures(void);

#define check(condition)                                                                           \
	((condition) ? (void)0 : failed(__FILE__, __LINE__, "%s", #condition))
/* Both are integers. */
#define check_is(value, wanted)                                                                    \
	do {                                                                                       \
		long long v_ = (long long)(value), w_ = (long long)(wanted);                       \
		if (v_ != w_)                                                                      \
			failed(__FILE__, __LINE__, "%s is %lld, not %s (%lld)", #value, v_,        \
			       #wanted, w_);                                                       \
	} while (0)
/* A call returns -1 with this errno. */
#define check_fails(call, wanted)                                                                  \
	do {                                                                                       \
		errno = 0;                                                                         \
		long long r_ = (long long)(call);                                                  \
		if (r_ != -1 || errno != (wanted))                                                 \
			failed(__FILE__, __LINE__, "%s is %lld with %s, not -1 with %s", #call,    \
			       r_, strerrorname_np(errno), strerrorname_np(wanted));               \
	} while (0)
/* Without this nothing else makes sense. */
#define need(condition)                                                                            \
	((condition) ? (void)0 : give_up(__FILE__, __LINE__, #condition))

/* Fork; the child runs fn(arg) and its failures count here. */
void check_child(void (*fn)(void *arg), void *arg);

/* ---- arrays ---- */

#define PAGE 4096ul

/* An mmap-able array of pages, its value i is page i. */
int array_new(uint32_t pages);
int array_create(uint32_t value_size, uint32_t entries, uint32_t flags);
/* Write by bpf(2) what array_check() will expect; `salt` makes contents differ. */
void array_fill(int fd, uint32_t pages, uint32_t salt);
/* Byte by byte: mapped pages against the fill, and against look-ups by bpf(2). */
void array_check(const char *mem, int fd, uint32_t first, uint32_t pages, uint32_t salt);
/* The same, without look-ups. */
bool page_is(const char *mem, uint32_t page, uint32_t salt);
void page_fill(char *mem, uint32_t page, uint32_t salt);

/* Shared; at an address that begins a page table, `ahead` pages into it. Never fails. */
char *array_map(int fd, uint32_t pages, int prot, int flags, uint32_t ahead);
char *map_at(void *where, size_t len, int prot, int flags, int fd, off_t offset);

/* ---- what the kernel tells ---- */

#define PM_PRESENT	(1ull << 63)
#define PM_FILE		(1ull << 61)
#define PM_SOFT_DIRTY	(1ull << 55)
#define PM_PFN		((1ull << 55) - 1)

uint64_t pagemap(const char *addr);
void pagemap_read(const char *addr, uint32_t pages, uint64_t *entry);
uint32_t present(const char *addr, uint32_t pages);
/* Of the VMA that starts at addr: KiB of a line of smaps ("Rss"), -1: no such VMA or line. */
long smaps(const char *addr, const char *field);
/* Has the VMA this of VmFlags ("lo")? */
bool vm_flag(const char *addr, const char *flag);
/* The number of VMAs that lie in a range. */
int vmas(const char *addr, size_t len);
/* Of /proc/self/status, in KiB. */
long status_kib(const char *field);
/* Of /proc/vmstat. */
long vmstat(const char *field);
/* How often a page is mapped, from /proc/kpagecount. */
long map_count(uint64_t pfn);
/* Minor faults of this thread until now. */
long faults(void);
void clear_refs(const char *what);
bool write_file(const char *path, const char *text);
/* In pages, from debugfs; false: it cannot be known here. */
bool fault_around(uint32_t *pages);

/* ---- touching ---- */

void touch_read(const char *p);
/* Adds 0: a write that leaves what is there. */
void touch_write(char *p);
/* 0, or the signal that reading or writing one byte raises. */
int signal_of(char *p, bool write);
/* What came with the last one. */
extern siginfo_t signal_info;

/*
 * The rule: which pages of a mapping a fault at `page` adds to those that are
 * there. The mapping has `pages` pages and starts `ahead` pages into a page table.
 */
void rule(bool *there, uint32_t pages, uint32_t ahead, uint32_t window, uint32_t page);

#endif
