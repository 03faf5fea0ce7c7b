// SPDX-License-Identifier: GPL-2.0-only
/* Names of the domains, as -e takes them. */
#include <stdio.h>
#include <string.h>

#include "cmd/domains.h"
#include "data/err.h"
#include "data/run.h"

#define DOMAIN_ROW(id, bit, name)	{ bit, name },
static const struct {
	unsigned int bit;
	const char *name;
} domains[] = { DOMAINS(DOMAIN_ROW) };

#define COUNT	(sizeof(domains) / sizeof(*domains))

/* An element of a list, by its length. */
static unsigned int bit_of(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < COUNT; i++)
		if (strlen(domains[i].name) == len && !memcmp(domains[i].name, name, len))
			return domains[i].bit;
	return 0;
}

int domains_parse(const char *list, unsigned int *mask)
{
	char all[64] = "";
	unsigned int bit;
	size_t len, i;

	for (*mask = 0; *list; list += len + !!list[len]) {
		len = strcspn(list, ",");
		bit = bit_of(list, len);
		*mask |= bit;
		if (bit)
			continue;
		for (i = 0; i < COUNT; i++)
			snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
				 i ? ", " : "", domains[i].name);
		err("-e", "'%.*s' is no domain; there are: %s", (int)len, list, all);
		return -1;
	}
	return 0;
}

int domains_allow(unsigned int mask, const char *by, bool exact, bool reconcile)
{
	unsigned int needed = by ? label_domains(label_by_name(by)) : 0;

	/* What is not open labels a domain's numbers in any case: its rows are only shown. */
	if (needed && !(needed & mask)) {
		err("--by", "no rows by %s of what is observed: add -e %s", by,
		    needed & DOMAIN_FAULT ? "fault" : "lock");
		return -1;
	}
	if (mask & DOMAIN_FAULT || (!exact && !reconcile))
		return 0;
	err(exact ? "--exact" : "--reconcile", "is about faults: add -e fault");
	return -1;
}
