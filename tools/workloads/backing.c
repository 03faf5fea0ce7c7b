// SPDX-License-Identifier: GPL-2.0-only
/* Memory that takes more than an mmap() of a file descriptor. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "data/err.h"
#include "data/status.h"
#include "workloads/backing.h"
#include "workloads/restore.h"

/* ---- System V shared memory ---- */

void *sysv_map(void *where, size_t len)
{
	int id = shmget(IPC_PRIVATE, len, IPC_CREAT | 0600), e;
	void *mem;

	if (id < 0)
		return MAP_FAILED;
	mem = shmat(id, where, 0);
	e = errno;
	/* Marked now, the segment is gone with its last mapping, also if we are killed. */
	shmctl(id, IPC_RMID, NULL);
	errno = e;
	return mem;
}

/* ---- hugetlb ---- */

#define NR_HUGEPAGES "/proc/sys/vm/nr_hugepages"

struct pool {
	uint64_t total, free, reserved, kib;
};

static void read_pool(struct pool *p)
{
	FILE *f = fopen("/proc/meminfo", "re");
	char line[128];

	memset(p, 0, sizeof(*p));
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "HugePages_Total: %" SCNu64, &p->total);
		sscanf(line, "HugePages_Free: %" SCNu64, &p->free);
		sscanf(line, "HugePages_Rsvd: %" SCNu64, &p->reserved);
		sscanf(line, "Hugepagesize: %" SCNu64, &p->kib);
	}
	fclose(f);
}

uint64_t hugetlb_size(void)
{
	struct pool p;

	read_pool(&p);
	return p.kib << 10;
}

static int grow_pool(uint64_t from, uint64_t to)
{
	char old[24], now[24];
	ssize_t n;
	int fd;

	snprintf(old, sizeof(old), "%" PRIu64, from);
	snprintf(now, sizeof(now), "%" PRIu64, to);
	fd = open(NR_HUGEPAGES, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (restore_write(NR_HUGEPAGES, old)) {
		close(fd);
		errno = ENOSPC;
		return -1;
	}
	n = write(fd, now, strlen(now));
	close(fd);
	return n == (ssize_t)strlen(now) ? 0 : -1;
}

int hugetlb_reserve(uint64_t bytes)
{
	struct pool p;
	uint64_t need, have;

	read_pool(&p);
	if (!p.kib) {
		err("--backing", "this kernel has no huge pages of hugetlb");
		return EXIT_UNOBSERVED;
	}
	need = bytes / (p.kib << 10);
	have = p.free > p.reserved ? p.free - p.reserved : 0;
	if (have >= need)
		return 0;
	if (grow_pool(p.total, p.total + need - have)) {
		err("--backing", "cannot write to " NR_HUGEPAGES ": %s; needs root",
		    strerror(errno));
		return EXIT_UNOBSERVED;
	}
	read_pool(&p);
	have = p.free > p.reserved ? p.free - p.reserved : 0;
	if (have >= need)
		return 0;
	err("--backing", "the kernel could make only %" PRIu64 " of %" PRIu64 " huge pages: memory "
	    "is too small or fragmented; give a smaller --size", have, need);
	return EXIT_UNOBSERVED;
}

/* ---- guest_memfd ---- */

/* Newer than the headers of Debian 12 (since 6.8, and 6.18 for the flags). */
struct gmem_args {
	uint64_t size, flags, room[6];
};

#define GMEM_CREATE		_IOWR(KVMIO, 0xd4, struct gmem_args)
#define GMEM_FLAGS_CAPABILITY	244
#define GMEM_FLAGS		3	/* may be mapped, and is shared from the start */

int gmem_open(int *vm)
{
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC), ret = EXIT_UNOBSERVED;

	*vm = -1;
	if (kvm < 0) {
		err("--backing", "/dev/kvm: %s; is kvm_amd or kvm_intel loaded?", strerror(errno));
		return ret;
	}
	*vm = ioctl(kvm, KVM_CREATE_VM, 0);
	if (*vm < 0)
		err("--backing", "KVM makes no virtual machine: %s", strerror(errno));
	else if ((ioctl(*vm, KVM_CHECK_EXTENSION, GMEM_FLAGS_CAPABILITY) & GMEM_FLAGS) !=
		 GMEM_FLAGS)
		err("--backing", "the KVM of this kernel has no guest_memfd that can be mapped");
	else
		ret = 0;
	close(kvm);
	return ret;
}

int gmem_create(int vm, size_t len)
{
	struct gmem_args args = { .size = len, .flags = GMEM_FLAGS };

	return ioctl(vm, GMEM_CREATE, &args);
}
