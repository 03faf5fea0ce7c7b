// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "data/run.h"

#define ROW(mid, mname, mdomain, mkind, munit, mshape, mbetter, mexact, mprimary, malign, mmargin, \
	    mevents, mnamed, mhelp)						\
	[METRIC_##mid] = {						\
		.id	 = METRIC_##mid,				\
		.name	 = mname,					\
		.domain	 = DOMAIN_##mdomain,				\
		.kind	 = KIND_##mkind,				\
		.unit	 = munit,					\
		.shape	 = SHAPE_##mshape,				\
		.better	 = BETTER_##mbetter,				\
		.exact	 = mexact,					\
		.primary = mprimary,					\
		.align	 = ALIGN_##malign,				\
		.margin	 = mmargin,					\
		.events	 = mevents,					\
		.named	 = mnamed,					\
		.help	 = mhelp,					\
	},

const struct metric metrics[METRIC_MAX] = { METRICS(ROW) };

const struct metric *metric_by_name(const char *name)
{
	size_t i;

	for (i = 0; i < METRIC_MAX; i++)
		if (!strcmp(metrics[i].name, name))
			return &metrics[i];
	return NULL;
}
