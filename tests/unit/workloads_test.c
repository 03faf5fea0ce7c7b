// SPDX-License-Identifier: GPL-2.0-only
/* The arithmetic of the workloads: orders, shares, windows, smaps, control words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "workloads/control.h"
#include "workloads/oracle.h"
#include "workloads/order.h"
#include "workloads/stats.h"
#include "workloads/thp.h"

static void shares_cover_all(void **state)
{
	static const uint64_t sizes[] = { 1, 2, 7, 8, 9, 2048, 1000003 };
	uint64_t n, from, to, longest, shortest;
	unsigned int shares, s;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		n = sizes[i];
		for (shares = 1; shares <= 9 && shares <= n; shares++) {
			assert_int_equal(order_share(n, 0, shares), 0);
			assert_int_equal(order_share(n, shares, shares), n);
			longest = 0;
			shortest = n;
			for (s = 0; s < shares; s++) {
				from = order_share(n, s, shares);
				to = order_share(n, s + 1, shares);
				assert_true(from < to);
				longest = to - from > longest ? to - from : longest;
				shortest = to - from < shortest ? to - from : shortest;
			}
			assert_true(longest - shortest <= 1);
		}
	}
}

static void shuffle_is_a_permutation_within_shares(void **state)
{
	enum { N = 1021, SHARES = 4 };
	uint32_t page[N], again[N];
	unsigned char seen[N] = { 0 };
	unsigned int s, moved = 0;
	uint64_t k;

	order_shuffle(page, N, SHARES);
	order_shuffle(again, N, SHARES);
	assert_memory_equal(page, again, sizeof(page));
	for (s = 0; s < SHARES; s++) {
		for (k = order_share(N, s, SHARES); k < order_share(N, s + 1, SHARES); k++) {
			assert_in_range(page[k], order_share(N, s, SHARES),
					order_share(N, s + 1, SHARES) - 1);
			assert_int_equal(seen[page[k]]++, 0);
			moved += page[k] != k;
		}
	}
	assert_true(moved > N * 9 / 10);
	order_shuffle(page, 1, 1);
	assert_int_equal(page[0], 0);
}

static void order_follows_stride_and_permutation(void **state)
{
	uint32_t shuffled[] = { 2, 0, 1 };
	struct order stride = { 4, 3, NULL }, random = { 3, 1, shuffled };

	assert_int_equal(order_page(&stride, 0), 0);
	assert_int_equal(order_page(&stride, 3), 9);
	assert_int_equal(order_page(&random, 0), 2);
	assert_int_equal(order_page(&random, 2), 1);
}

/* Windows of 16 pages and page tables of 512, pages of 4096. */
static uint64_t windows(uint64_t first_page, uint64_t pages, uint64_t stride)
{
	struct order o = { (pages + stride - 1) / stride, stride, NULL };

	return oracle_windows(first_page * 4096, 4096, pages, 16, 512, &o);
}

static void windows_follow_addresses(void **state)
{
	uint32_t backwards[] = { 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2,
				 1, 0 };
	struct order o = { 20, 1, backwards };

	assert_int_equal(windows(512, 1024, 1), 64);
	/* Off by one page: one window more. */
	assert_int_equal(windows(513, 1024, 1), 65);
	assert_int_equal(windows(512, 16, 1), 1);
	assert_int_equal(windows(512, 17, 1), 2);
	/* From the mapping's start a whole window, even across a multiple of 16 ... */
	assert_int_equal(windows(520, 16, 1), 1);
	/* ... but not into the next page table. */
	assert_int_equal(windows(1020, 16, 1), 2);
	assert_int_equal(windows(1020, 4, 1), 1);
	/* One touch in each window, and one in each second window. */
	assert_int_equal(windows(512, 1024, 16), 64);
	assert_int_equal(windows(512, 1024, 32), 32);
	/* Backwards from page 539: 528..543 cut to 539, 520..527 by the window at the start. */
	assert_int_equal(oracle_windows(520 * 4096, 4096, 20, 16, 512, &o), 2);
	/* Fault-around switched off, and windows longer than a page table. */
	o = (struct order){ 20, 1, NULL };
	assert_int_equal(oracle_windows(520 * 4096, 4096, 20, 1, 512, &o), 20);
	o.n = 1024;
	assert_int_equal(oracle_windows(512 * 4096, 4096, 1024, 1024, 512, &o), 2);
}

static const char smaps_text[] =
	"7f0000000000-7f0000002000 rw-p 00000000 00:00 0 \n"
	"Size:                  8 kB\n"
	"Rss:                   8 kB\n"
	"AnonHugePages:         0 kB\n"
	"VmFlags: rd wr mr mw me ac\n"
	"7f0000002000-7f0000004000 r--s 00002000 08:01 42                 /tmp/a-b Rss: 99 kB\n"
	"Rss:                   4 kB\n"
	"AnonHugePages:      2048 kB\n"
	"ShmemPmdMapped:       16 kB\n"
	"FilePmdMapped:        32 kB\n"
	"ProtectionKey:         0\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0          [vsyscall]\n"
	"Rss:                 100 kB\n";

static void check_smaps(uint64_t start, uint64_t end, size_t piece, uint64_t rss, uint64_t huge)
{
	struct lap_oracle sum = { 0 };
	struct smaps s = { .start = start, .end = end, .sum = &sum };
	size_t i, n;

	for (i = 0; i < strlen(smaps_text); i += n) {
		n = strlen(smaps_text) - i < piece ? strlen(smaps_text) - i : piece;
		smaps_feed(&s, smaps_text + i, n);
	}
	assert_int_equal(sum.rss_kib, rss);
	assert_int_equal(sum.anon_huge_kib, huge);
	assert_int_equal(sum.shmem_pmd_kib, huge / 128);
	assert_int_equal(sum.file_pmd_kib, huge / 64);
}

static void smaps_in_any_pieces(void **state)
{
	static const size_t pieces[] = { 1, 2, 7, 50, 4096 };
	size_t i;

	for (i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		check_smaps(0x7f0000000000, 0x7f0000002000, pieces[i], 8, 0);
		check_smaps(0x7f0000002000, 0x7f0000004000, pieces[i], 4, 2048);
		check_smaps(0x7f0000001000, 0x7f0000003000, pieces[i], 12, 2048);
		check_smaps(0x7f0000004000, 0x7f0000005000, pieces[i], 0, 0);
	}
}

static void smaps_survives_damage(void **state)
{
	struct lap_oracle sum = { 0 };
	struct smaps s = { .start = 0, .end = UINT64_MAX, .sum = &sum };
	char *lengthy = malloc(100000);

	memset(lengthy, 'a', 100000);
	smaps_feed(&s, "Rss: 5 kB\n-\n\n1-\nRss: 5 kB\n", 27);
	smaps_feed(&s, lengthy, 100000);
	smaps_feed(&s, "\n", 1);
	assert_int_equal(sum.rss_kib, 0);
	smaps_feed(&s, "1-2 r\nRss: 5 kB\nRss:\n", 21);
	assert_int_equal(sum.rss_kib, 5);
	free(lengthy);
}

static void control_words(void **state)
{
	static const char *const bad[] = { "", ",", "3,", ",4", "3,4,", "3,4,5", " 3", "3 ", "-3",
					   "3,-4", "x", "3;4", "99999999999999999999",
					   "4294967299", "0x3" };
	int ctl, ack;
	size_t i;

	assert_int_equal(control_parse("3", &ctl, &ack), 0);
	assert_int_equal(ctl, 3);
	assert_int_equal(ack, -1);
	assert_int_equal(control_parse("10,11", &ctl, &ack), 0);
	assert_int_equal(ctl, 10);
	assert_int_equal(ack, 11);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(control_parse(bad[i], &ctl, &ack), -1);
}

static void spread(void **state)
{
	uint64_t odd[] = { 9, 1, 5 }, even[] = { 8, 2, 4, 5 }, one[] = { 7 };
	uint64_t large[] = { UINT64_MAX, UINT64_MAX - 1 };
	struct spread s = spread_of(odd, 3);

	assert_int_equal(s.min, 1);
	assert_int_equal(s.median, 5);
	assert_int_equal(s.max, 9);
	s = spread_of(even, 4);
	assert_int_equal(s.min, 2);
	assert_int_equal(s.median, 4);
	assert_int_equal(s.max, 8);
	s = spread_of(one, 1);
	assert_true(s.min == 7 && s.median == 7 && s.max == 7);
	/* The mean of the middle two must not overflow. */
	s = spread_of(large, 2);
	assert_true(s.median == UINT64_MAX - 1);
}

static void bracketed_word(void **state)
{
	assert_true(thp_is_chosen("always [madvise] never\n", "madvise"));
	assert_false(thp_is_chosen("always [madvise] never\n", "never"));
	assert_false(thp_is_chosen("always [madvise] never\n", "madv"));
	assert_false(thp_is_chosen("always madvise never\n", "never"));
	assert_false(thp_is_chosen("[", ""));
	assert_false(thp_is_chosen("[]", ""));
	assert_false(thp_is_chosen("][never", "never"));
	assert_false(thp_is_chosen("[a-word-that-is-far-too-long-to-be-one-of-them]", "never"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_cover_all),
		cmocka_unit_test(shuffle_is_a_permutation_within_shares),
		cmocka_unit_test(order_follows_stride_and_permutation),
		cmocka_unit_test(windows_follow_addresses),
		cmocka_unit_test(smaps_in_any_pieces),
		cmocka_unit_test(smaps_survives_damage),
		cmocka_unit_test(control_words),
		cmocka_unit_test(spread),
		cmocka_unit_test(bracketed_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
