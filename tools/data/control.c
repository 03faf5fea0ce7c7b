// SPDX-License-Identifier: GPL-2.0-only
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "data/control.h"

static const char *parse_fd(const char *s, int *fd)
{
	unsigned long v;
	char *end;

	if (!isdigit((unsigned char)*s))
		return NULL;
	errno = 0;
	v = strtoul(s, &end, 10);
	if (errno || v > INT_MAX)
		return NULL;
	*fd = v;
	return end;
}

int control_parse(const char *text, int *ctl, int *ack)
{
	const char *p;

	*ctl = *ack = -1;
	p = parse_fd(text, ctl);
	if (p && *p == ',')
		p = parse_fd(p + 1, ack);
	return p && !*p ? 0 : -1;
}
