// SPDX-License-Identifier: GPL-2.0-only
/* Arrays with known contents, what the kernel tells of their mappings, the rule. */
#include <bpf/bpf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "arraymap.h"

#define TABLE 512u	/* pages of a page table */

/* ---- arrays ---- */

int array_create(uint32_t value_size, uint32_t entries, uint32_t flags)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = flags);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "arraymap", 4, value_size, entries, &opts);

	need(fd >= 0);
	return fd;
}

int array_new(uint32_t pages)
{
	return array_create(PAGE, pages, BPF_F_MMAPABLE);
}

void page_fill(char *mem, uint32_t page, uint32_t salt)
{
	uint32_t *word = (uint32_t *)mem, x = page * 2654435761u ^ salt * 40503u;
	size_t i;

	for (i = 0; i < PAGE / sizeof(*word); i++) {
		x = x * 1664525u + 1013904223u;
		word[i] = x ^ x >> 15;
	}
}

bool page_is(const char *mem, uint32_t page, uint32_t salt)
{
	static char wanted[PAGE];

	page_fill(wanted, page, salt);
	return !memcmp(mem, wanted, PAGE);
}

void array_fill(int fd, uint32_t pages, uint32_t salt)
{
	static char value[PAGE];
	uint32_t i;

	for (i = 0; i < pages; i++) {
		page_fill(value, i, salt);
		need(!bpf_map_update_elem(fd, &i, value, BPF_ANY));
	}
}

void array_check(const char *mem, int fd, uint32_t first, uint32_t pages, uint32_t salt)
{
	static char value[PAGE];
	uint32_t i, page;

	for (i = 0; i < pages; i++) {
		page = first + i;
		if (mem && !page_is(mem + i * PAGE, page, salt))
			failed(__FILE__, __LINE__, "page %u holds something else", page);
		if (fd < 0)
			continue;
		need(!bpf_map_lookup_elem(fd, &page, value));
		if (!page_is(value, page, salt))
			failed(__FILE__, __LINE__, "bpf(2) finds something else in page %u", page);
	}
}

char *map_at(void *where, size_t len, int prot, int flags, int fd, off_t offset)
{
	return mmap(where, len, prot, MAP_SHARED | (where ? MAP_FIXED : 0) | flags, fd, offset);
}

char *array_map(int fd, uint32_t pages, int prot, int flags, uint32_t ahead)
{
	size_t len = (pages + ahead) * PAGE, table = TABLE * PAGE;
	char *room, *start, *mem;

	/* Room that begins and ends page tables of its own, so that they are empty. */
	room = mmap(NULL, len + 3 * table, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	need(room != MAP_FAILED);
	start = (char *)(((uintptr_t)room + table - 1) & ~(table - 1));
	mem = map_at(start + ahead * PAGE, pages * PAGE, prot, flags, fd, 0);
	need(mem != MAP_FAILED);
	return mem;
}

/* ---- what the kernel tells ---- */

void pagemap_read(const char *addr, uint32_t pages, uint64_t *entry)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	size_t len = pages * sizeof(*entry);

	need(fd >= 0);
	need(pread(fd, entry, len, (uintptr_t)addr / PAGE * sizeof(*entry)) == (ssize_t)len);
	close(fd);
}

uint64_t pagemap(const char *addr)
{
	uint64_t entry;

	pagemap_read(addr, 1, &entry);
	return entry;
}

uint32_t present(const char *addr, uint32_t pages)
{
	uint64_t *entry = malloc(pages * sizeof(*entry));
	uint32_t i, n = 0;

	need(entry);
	pagemap_read(addr, pages, entry);
	for (i = 0; i < pages; i++)
		n += !!(entry[i] & PM_PRESENT);
	free(entry);
	return n;
}

/* A line of smaps, of the VMA that starts at addr; false: there is none. */
static bool smaps_line(const char *addr, const char *field, char *line, size_t size)
{
	bool inside = false, found = false;
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long start, end;
	size_t len = strlen(field);

	need(f);
	while (!found && fgets(line, size, f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = start == (uintptr_t)addr;
		else
			found = inside && !strncmp(line, field, len) && line[len] == ':';
	}
	fclose(f);
	return found;
}

long smaps(const char *addr, const char *field)
{
	char line[512];

	return smaps_line(addr, field, line, sizeof(line)) ? atol(strchr(line, ':') + 1) : -1;
}

bool vm_flag(const char *addr, const char *flag)
{
	char line[512], word[8];

	need(smaps_line(addr, "VmFlags", line, sizeof(line)));
	snprintf(word, sizeof(word), " %s ", flag);
	return strstr(line, word);
}

int vmas(const char *addr, size_t len)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[512];
	int n = 0;

	need(f);
	while (fgets(line, sizeof(line), f))
		n += sscanf(line, "%lx-%lx ", &start, &end) == 2 && start >= (uintptr_t)addr &&
		     end <= (uintptr_t)addr + len;
	fclose(f);
	return n;
}

static long field_of(const char *path, const char *field)
{
	size_t len = strlen(field);
	FILE *f = fopen(path, "r");
	long value = -1;
	char line[256];

	need(f);
	while (value < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, field, len) && (line[len] == ':' || line[len] == ' '))
			value = atol(line + len + 1);
	fclose(f);
	need(value >= 0);
	return value;
}

long status_kib(const char *field)
{
	return field_of("/proc/self/status", field);
}

long vmstat(const char *field)
{
	return field_of("/proc/vmstat", field);
}

long map_count(uint64_t pfn)
{
	int fd = open("/proc/kpagecount", O_RDONLY);
	uint64_t count;

	need(fd >= 0);
	need(pread(fd, &count, sizeof(count), pfn * sizeof(count)) == sizeof(count));
	close(fd);
	return count;
}

long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt;
}

bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

void clear_refs(const char *what)
{
	need(write_file("/proc/self/clear_refs", what));
}

bool fault_around(uint32_t *pages)
{
	FILE *f = fopen("/sys/kernel/debug/fault_around_bytes", "r");
	unsigned long bytes;
	bool ok = f && fscanf(f, "%lu", &bytes) == 1;

	if (f)
		fclose(f);
	*pages = ok ? bytes / PAGE : 0;
	return ok;
}

/* ---- touching ---- */

void touch_read(const char *p)
{
	(void)*(const volatile char *)p;
}

void touch_write(char *p)
{
	static volatile char nothing;

	/* One instruction that writes, so that the first fault is a write. */
	__atomic_fetch_add(p, nothing, __ATOMIC_RELAXED);
}

siginfo_t signal_info;

static sigjmp_buf back;

static void caught(int number, siginfo_t *info, void *context)
{
	signal_info = *info;
	siglongjmp(back, number);
}

int signal_of(char *p, bool write)
{
	struct sigaction action = { .sa_sigaction = caught, .sa_flags = SA_SIGINFO }, bus, segv;
	int number;

	sigaction(SIGBUS, &action, &bus);
	sigaction(SIGSEGV, &action, &segv);
	number = sigsetjmp(back, 1);
	if (!number) {
		if (write)
			touch_write(p);
		else
			touch_read(p);
	}
	sigaction(SIGBUS, &bus, NULL);
	sigaction(SIGSEGV, &segv, NULL);
	return number;
}

/* ---- the rule ---- */

void rule(bool *there, uint32_t pages, uint32_t ahead, uint32_t window, uint32_t page)
{
	/* In pages from the beginning of the first page table. */
	uint32_t at = ahead + page, table = at / TABLE * TABLE, from, to, last = ahead + pages;

	if (behaviour == EAGER)
		return;
	if (behaviour == FAULT)
		window = 1;
	if (last > table + TABLE)
		last = table + TABLE;
	from = at / window * window;
	if (from < table)
		from = table;
	if (from < ahead)
		from = ahead;
	to = from + window < last ? from + window : last;
	if (behaviour == RAMP && window > 1 && from > table && from > ahead &&
	    there[from - 1 - ahead])
		to = last;
	for (; from < to; from++)
		there[from - ahead] = true;
}
