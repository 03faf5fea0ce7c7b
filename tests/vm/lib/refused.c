// SPDX-License-Identifier: GPL-2.0-only
/*
 * Three threads fault in a large mapping while a fourth changes its protection:
 * readers of the VMA are turned away. Nobody calls anything else that tries the
 * per-VMA lock (madvise() does since 6.17), and a child dies of an access where
 * there is no VMA.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define READERS	3
#define PART	(48UL << 20)

static char *mem;
static int running = READERS;

static void *reader(void *arg)
{
	char *part = mem + (long)arg * PART;
	size_t i;

	for (i = 0; i < PART; i += 4096)
		*(volatile char *)(part + i) = 1;
	__atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

int main(void)
{
	pthread_t thread[READERS];
	int protection = PROT_READ | PROT_WRITE, status;
	long i;
	pid_t child;

	mem = mmap(NULL, READERS * PART, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED || madvise(mem, READERS * PART, MADV_NOHUGEPAGE))
		return 1;
	mem[0] = 1;	/* the anon_vma exists: no refusal for its lack */
	for (i = 0; i < READERS; i++)
		if (pthread_create(&thread[i], NULL, reader, (void *)i))
			return 1;
	while (__atomic_load_n(&running, __ATOMIC_SEQ_CST)) {
		mprotect(mem, READERS * PART, protection);
		protection ^= PROT_EXEC;
		usleep(200);
	}
	for (i = 0; i < READERS; i++)
		pthread_join(thread[i], NULL);
	child = fork();
	if (!child) {
		*(volatile char *)16 = 1;
		_exit(0);
	}
	return waitpid(child, &status, 0) == child && WIFSIGNALED(status) ? 0 : 1;
}
