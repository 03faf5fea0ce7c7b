// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/order.h"

#define SEED 0x6d6d73636f7065ull

static uint64_t next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

void order_shuffle(uint32_t *page, uint64_t n, unsigned int shares)
{
	uint64_t state = SEED, from, to, i, j;
	unsigned int s;
	uint32_t t;

	for (i = 0; i < n; i++)
		page[i] = i;
	for (s = 0; s < shares; s++) {
		from = order_share(n, s, shares);
		to = order_share(n, s + 1, shares);
		for (i = to; i > from + 1; i--) {
			j = from + next(&state) % (i - from);
			t = page[i - 1];
			page[i - 1] = page[j];
			page[j] = t;
		}
	}
}
