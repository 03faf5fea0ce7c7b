// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whatever the reader accepts can be shown and written, and what was written
 * reads back equal.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/read.h"
#include "render/json.h"
#include "render/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *written(const struct recording *rec, size_t *len)
{
	char *text = NULL;
	FILE *mem = open_memstream(&text, len);

	if (!mem || json_write(mem, rec, true) || fclose(mem))
		abort();
	return text;
}

static void show(const struct recording *rec)
{
	static const char *const by[] = { NULL, "method", "vm_ops" };
	char *text = NULL;
	size_t len, i;
	FILE *mem = open_memstream(&text, &len);

	for (i = 0; i < sizeof(by) / sizeof(*by); i++)
		text_report(mem, rec, &(struct view){ .by = by[i], .utf8 = true });
	text_fault(mem, rec, &(struct view){ .colour = true });
	fclose(mem);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct recording *rec = recording_read_memory("fuzz", data, size), *again;
	char *first, *second;
	size_t len, len2;

	if (!rec)
		return 0;
	show(rec);
	first = written(rec, &len);
	again = recording_read_memory("written", first, len);
	if (!again)
		abort();
	second = written(again, &len2);
	if (len != len2 || memcmp(first, second, len))
		abort();
	free(first);
	free(second);
	recording_free(again);
	recording_free(rec);
	return 0;
}
