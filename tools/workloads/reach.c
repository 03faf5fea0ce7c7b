// SPDX-License-Identifier: GPL-2.0-only
/* Ways to a page other than a plain load or store. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "workloads/reach.h"

/* Since 5.14; the libc of an older distribution may not name them. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#define MADV_POPULATE_WRITE	23
#endif

static int by_gup(char *page, bool write)
{
	char byte = 1;
	struct iovec local = { &byte, 1 }, remote = { page, 1 };
	ssize_t n;

	n = write ? process_vm_writev(getpid(), &local, 1, &remote, 1, 0) :
		    process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	if (n == 1)
		return 0;
	return n < 0 ? errno : EIO;
}

int reach_page(enum reach by, char *page, size_t page_size, bool write)
{
	if (by == REACH_GUP)
		return by_gup(page, write);
	if (madvise(page, page_size, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return errno;
	return 0;
}

static sigjmp_buf out;
static struct sigaction old;

static void on_sigbus(int signal)
{
	/* SA_NODEFER: the signal was not blocked, so there is no mask to put back. */
	siglongjmp(out, 1);
}

void reach_beyond_begin(void)
{
	struct sigaction sa = { .sa_handler = on_sigbus, .sa_flags = SA_NODEFER };

	sigaction(SIGBUS, &sa, &old);
}

int reach_beyond(char *page)
{
	if (sigsetjmp(out, 0))
		return 0;
	(void)*(volatile char *)page;
	return EEXIST;
}

void reach_beyond_end(void)
{
	sigaction(SIGBUS, &old, NULL);
}
