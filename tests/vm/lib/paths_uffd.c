// SPDX-License-Identifier: GPL-2.0-only
/* userfaultfd: a thread of ours gives the pages, or takes write protection away. */
#include "paths.h"

#include <linux/userfaultfd.h>
#include <pthread.h>

#define PAGES	200

static struct {
	int fd;
	bool wp;
	size_t unit;		/* what is given at once */
	char *source;
} handler;

static void *serve(void *unused)
{
	struct uffd_msg msg;

	while (read(handler.fd, &msg, sizeof(msg)) == sizeof(msg)) {
		uint64_t at = msg.arg.pagefault.address & ~(handler.unit - 1);
		struct uffdio_copy copy = { .dst = at, .src = (uintptr_t)handler.source,
					    .len = handler.unit };
		struct uffdio_writeprotect wp = { .range = { at, handler.unit } };

		if (handler.wp)
			ioctl(handler.fd, UFFDIO_WRITEPROTECT, &wp);
		else
			ioctl(handler.fd, UFFDIO_COPY, &copy);
	}
	return NULL;
}

void uffd_case(const char *kind)
{
	bool huge = !strcmp(kind, "hugetlb"), shared = !strcmp(kind, "shmem");
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { 0 };
	size_t n, len, i, chunk = 64 << 10;
	char *p, *stack, name[32];
	pthread_attr_t attr;
	pthread_t thread;

	handler.wp = !strcmp(kind, "wp");
	handler.unit = huge ? HUGE : PAGE;
	n = huge ? 3 : PAGES;
	len = n * handler.unit;
	handler.fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	NEED(handler.fd >= 0, "userfaultfd");
	if (handler.wp)
		api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP;
	NEED(!ioctl(handler.fd, UFFDIO_API, &api), "UFFDIO_API");
	p = huge ? map_aligned(len, HUGE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB) :
	    map(len, MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), -1);
	handler.source = map(handler.unit, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (handler.wp)
		touch_all(p, n, true);
	reg.range.start = (uintptr_t)p;
	reg.range.len = len;
	reg.mode = handler.wp ? UFFDIO_REGISTER_MODE_WP : UFFDIO_REGISTER_MODE_MISSING;
	NEED(!ioctl(handler.fd, UFFDIO_REGISTER, &reg), "UFFDIO_REGISTER");
	if (handler.wp) {
		struct uffdio_writeprotect wp = { .range = reg.range,
						  .mode = UFFDIO_WRITEPROTECT_MODE_WP };

		CHECK(!ioctl(handler.fd, UFFDIO_WRITEPROTECT, &wp), "UFFDIO_WRITEPROTECT");
	}
	stack = map(chunk, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, stack, chunk);
	CHECK(!pthread_create(&thread, &attr, serve, NULL), "pthread_create");
	usleep(50000);		/* it has begun, and what it needs is there */
	settle(p, len);
	region_begin();
	for (i = 0; i < n; i++)
		touch(p + i * handler.unit, true);
	region_end();
	snprintf(name, sizeof(name), "uffd %s", kind);
	report(name, p, len / PAGE, n, "");
}
