// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whatever the parser of expectations accepts can be judged, against the
 * recording named in FUZZ_RECORDING, and says why where it cannot tell.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/expect.h"
#include "data/read.h"
#include "render/ktap.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct recording *rec;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *path = getenv("FUZZ_RECORDING");

	rec = path ? recording_read(path) : NULL;
	if (!rec) {
		fputs("FUZZ_RECORDING names no recording\n", stderr);
		exit(2);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct expectations *e = expect_parse("fuzz", (const char *)data, size);
	const struct expect_options options = { 0 };
	struct expect_result r;
	char *text = NULL;
	size_t len, i;
	FILE *mem;

	if (!e)
		return 0;
	mem = open_memstream(&text, &len);
	ktap_plan(mem, expect_count(e));
	for (i = 0; i < expect_count(e) && i < 64; i++) {
		if (expect_judge(e, i, rec, rec, &options, &r))
			abort();
		ktap_result(mem, i + 1, &r);
		if ((r.verdict == EXPECT_SKIP) != !!*r.reason)
			abort();
		expect_result_free(&r);
	}
	fclose(mem);
	free(text);
	expect_free(e);
	return 0;
}
