/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_VM_FETCH_H
#define MMSCOPE_VM_FETCH_H

#include <stdbool.h>
#include <stdint.h>

/* What the two that fetch from the archive, fetch.c and source.c, share. */

/* Seconds: after which the archive is asked for news, and within which it has none. */
#define INDEX_AGE	(24 * 3600)
#define INDEX_FRESH	600

/* Waits for other processes that fetch. A descriptor to close, or -1 after an error line. */
int cache_lock(const char *cache);

/* Under the lock: an empty directory below the cache, to be removed and freed; NULL after an
 * error line.
 */
char *cache_temp(const char *cache);

/* apt does not always notice a full disk: false, after an error line, if less is free. */
bool cache_has_space(const char *cache, uint64_t bytes);

#endif
