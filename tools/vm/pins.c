// SPDX-License-Identifier: GPL-2.0-only
/* kernel/versions, as it was when this binary was built. */
#include <stdio.h>
#include <string.h>

#include "vm/kernel.h"

#define MAX_PINS 32

extern const char pins_text[];

/* The path is relative to the root of the tree, where make runs the compiler. */
__asm__(".pushsection .rodata\n"
	".globl pins_text\n"
	"pins_text: .incbin \"kernel/versions\"\n"
	".byte 0\n"
	".popsection\n");

static struct pin pins[MAX_PINS], source;

static size_t pins_read(void)
{
	static size_t n;
	const char *p;

	for (p = n ? NULL : pins_text; p && n < MAX_PINS;
	     p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
		struct pin *pin = &pins[n];

		/* sscanf() would take an empty line for white space and go on to the next. */
		if (*p == '#' || *p == '\n' || sscanf(p, "%15s %23s %31s %63s", pin->series,
						    pin->version, pin->suite, pin->release) != 4)
			continue;
		if (strcmp(pin->series, "source"))
			n++;
		else
			source = *pin;
	}
	return n;
}

const struct pin *pin_get(size_t i)
{
	return i < pins_read() ? &pins[i] : NULL;
}

const struct pin *pin_source(void)
{
	pins_read();
	return &source;
}
