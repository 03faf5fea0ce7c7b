// SPDX-License-Identifier: GPL-2.0-only
/* Mappings of devices, of what the kernel puts into each process, and of a BPF arena. */
#include "paths.h"

#include <linux/bpf.h>
#include <linux/udmabuf.h>

/* The kernel's mapping of that name; its pages that are not there yet are touched. */
static void special(const char *name)
{
	unsigned long start, end, first = 0;
	char line[256], *p;
	size_t pages = 0, n = 0, i;
	FILE *f = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), f))
		if (strstr(line, name) && sscanf(line, "%lx-%lx", &start, &end) == 2)
			first = start, pages = (end - start) / PAGE;
	fclose(f);
	NEED(first, name);
	p = (char *)first;
	/* Of vvar only the first page is there on every machine. */
	if (!strcmp(name, "[vvar]"))
		pages = 1;
	settle(p, pages * PAGE);
	for (i = 0; i < pages; i++)
		n += !pagemap(p + i * PAGE, 1, PM_PRESENT);
	snprintf(line, sizeof(line), ",\"before\":%zu", pages - n);
	region_begin();
	touch_all(p, pages, false);
	region_end();
	report(name, p, pages, n, line);
}

/* remap_pfn_range() in mmap(): of n pages, the first `head` in a page table of their own. */
static void remapped(const char *name, int fd, off_t offset, size_t n, size_t head)
{
	char *where = map_aligned(2 * HUGE, HUGE, MAP_PRIVATE | MAP_ANONYMOUS), *p;
	char more[32];

	munmap(where, 2 * HUGE);
	where += HUGE - head * PAGE;
	settle(where, n * PAGE);
	region_begin();
	p = mmap(where, n * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, offset);
	if (p != MAP_FAILED)
		touch_all(p, n, false);		/* no fault: all of it is there */
	region_end();
	NEED(p != MAP_FAILED, name);
	snprintf(more, sizeof(more), ",\"head\":%zu", head);
	report(name, p, n, n, more);
}

static void udmabuf(size_t n)
{
	struct udmabuf_create create = { .size = n * PAGE };
	int dev = open("/dev/udmabuf", O_RDWR), buf;
	char *p;

	NEED(dev >= 0, "/dev/udmabuf");
	create.memfd = memfd_create("paths", MFD_ALLOW_SEALING);
	CHECK(!ftruncate(create.memfd, n * PAGE) &&
	      !fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK), "memfd");
	buf = ioctl(dev, UDMABUF_CREATE, &create);
	CHECK(buf >= 0, "UDMABUF_CREATE");
	p = map(n * PAGE, MAP_SHARED, buf);
	settle(p, n * PAGE);
	region_begin();
	touch_all(p, n, true);
	region_end();
	report("udmabuf", p, n, n, "");
}

static void arena(size_t n)
{
	union bpf_attr attr = { .map_type = 33 /* BPF_MAP_TYPE_ARENA, since 6.9 */,
				.max_entries = n, .map_flags = BPF_F_MMAPABLE };
	int fd = syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	char *p;

	NEED(fd >= 0, "BPF arena");
	p = map(n * PAGE, MAP_SHARED, fd);
	settle(p, n * PAGE);
	region_begin();
	touch_all(p, n, true);
	region_end();
	report("arena", p, n, n, "");
}

void device_case(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	int fd;

	if (!strcmp(name, "vvar") || !strcmp(name, "vdso")) {
		special(!strcmp(name, "vvar") ? "[vvar]" : "[vdso]");
	} else if (!strcmp(name, "devmem")) {
		/* The system's ROM: no RAM, which CONFIG_STRICT_DEVMEM would refuse. */
		fd = open("/dev/mem", O_RDONLY);
		NEED(fd >= 0, "/dev/mem");
		remapped("devmem", fd, 0xf0000, 16, 5);
	} else if (!strcmp(name, "udmabuf")) {
		udmabuf(100);
	} else if (!strcmp(name, "arena")) {
		arena(300);
	} else {
		errno = EINVAL;
		DIE(1, "%s", name);
	}
}
