// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>

#include "data/run.h"

struct recording *recording_new(void)
{
	return calloc(1, sizeof(struct recording));
}

void recording_free(struct recording *rec)
{
	size_t i;

	if (!rec)
		return;
	for (i = 0; rec->command && rec->command[i]; i++)
		free(rec->command[i]);
	for (i = 0; i < rec->runs; i++)
		run_free(rec->run[i]);
	free(rec->command);
	free(rec->run);
	free(rec);
}

int recording_add(struct recording *rec, struct run *run)
{
	struct run **list = reallocarray(rec->run, rec->runs + 1, sizeof(*list));

	if (!list)
		return -1;
	rec->run = list;
	rec->run[rec->runs++] = run;
	return 0;
}
