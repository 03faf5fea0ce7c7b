/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_ORDER_H
#define MMSCOPE_ORDER_H

#include <stdint.h>

/* The order in which pages are touched: touch k of n goes to page order_page(k). */
struct order {
	uint64_t n;		/* touches, each to another page */
	uint64_t stride;	/* pages from one touch to the next */
	uint32_t *shuffled;	/* NULL, or the permutation to go through instead */
};

static inline uint64_t order_page(const struct order *o, uint64_t k)
{
	return o->shuffled ? o->shuffled[k] : k * o->stride;
}

/* Touches that a share of [0, n) out of `shares` begins with; share == shares: n. */
static inline uint64_t order_share(uint64_t n, unsigned int share, unsigned int shares)
{
	return n / shares * share + (share < n % shares ? share : n % shares);
}

/*
 * Fill n numbers with a permutation of 0..n-1 that is the same on every run and
 * keeps each of `shares` contiguous shares to itself.
 */
void order_shuffle(uint32_t *page, uint64_t n, unsigned int shares);

#endif
