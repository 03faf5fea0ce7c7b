// SPDX-License-Identifier: GPL-2.0-only
#include "data/run.h"

#define ROW(eid, ename, epoint, ehow, eneed, eexists, esymbols, ehelp)	\
	[EVENT_##eid] = {					\
		.id	 = EVENT_##eid,				\
		.name	 = ename,				\
		.point	 = POINT_##epoint,			\
		.how	 = HOW_##ehow,				\
		.need	 = NEED_##eneed,			\
		.exists	 = eexists,				\
		.symbols = esymbols,				\
		.help	 = ehelp,				\
	},

const struct event events[EVENT_MAX] = { EVENTS(ROW) };

_Static_assert(EVENT_MAX <= 8 * sizeof(event_set), "too many events for a set");
