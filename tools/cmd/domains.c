// SPDX-License-Identifier: GPL-2.0-only
/* Names of the domains, as -e takes them. */
#include <string.h>

#include "cmd/domains.h"
#include "data/err.h"

static const char *const names[DOMAIN_MAX] = {
	[DOMAIN_FAULT] = "fault",
	[DOMAIN_LOCK] = "lock",
};

int domains_parse(const char *list, unsigned int *mask)
{
	size_t d, len;

	for (*mask = 0; *list; list += len + !!list[len]) {
		len = strcspn(list, ",");
		for (d = 0; d < DOMAIN_MAX; d++)
			if (strlen(names[d]) == len && !memcmp(names[d], list, len))
				break;
		if (d == DOMAIN_MAX) {
			err("-e", "'%.*s' is no domain; there are fault and lock", (int)len, list);
			return -1;
		}
		*mask |= 1u << d;
	}
	return 0;
}
