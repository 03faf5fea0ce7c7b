// SPDX-License-Identifier: GPL-2.0-only
/* Faults of our own, to know what the programs cost on this machine. */
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "data/cost.h"
#include "session/calibrate.h"

#define PAGES	32
#define ROUNDS	24	/* short ones, of which the least counts: some are not disturbed */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

uint64_t calibrate_fault(void)
{
	size_t page = sysconf(_SC_PAGESIZE), len = PAGES * page, i, round;
	uint64_t best = UINT64_MAX, start, ns;

	for (round = 0; round < ROUNDS; round++) {
		volatile char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return 0;
		madvise((void *)p, len, MADV_NOHUGEPAGE);
		p[0] = 1;	/* the page table */
		start = now_ns();
		for (i = 1; i < PAGES; i++)
			p[i * page] = 1;
		ns = now_ns() - start;
		best = ns < best ? ns : best;
		munmap((void *)p, len);
	}
	return best * 1000 / (PAGES - 1);
}

uint64_t calibrate_program(const struct plan *plan, const struct marker *m, int *pidfd,
			   uint32_t *observing, bool everyone, uint64_t bare)
{
	static const enum event_id of_anon[] = {
#define OF_ANON(id)	EVENT_##id,
		COST_OF_ANON(OF_ANON)
	};
	unsigned int programs = 0, i;
	uint64_t fault;

	for (i = 0; i < sizeof(of_anon) / sizeof(of_anon[0]); i++)
		programs += plan->event[of_anon[i]].mech != MECH_NONE;
	if (!programs || (!everyone && mark_self(m, pidfd, ROLE_TARGET)))
		return 0;
	*observing = !everyone;
	fault = calibrate_fault();
	*observing = 0;
	if (!everyone)
		unmark_self(m, *pidfd);
	return bare && fault > bare ? (fault - bare) / programs : 0;
}
