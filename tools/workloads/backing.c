// SPDX-License-Identifier: GPL-2.0-only
/* Memory that takes more than an mmap() of a file descriptor. */
#include <errno.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "workloads/backing.h"

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
