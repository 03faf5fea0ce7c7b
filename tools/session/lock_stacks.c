// SPDX-License-Identifier: GPL-2.0-only
/* Where tasks waited, in words: when it is collected, as symbols move with modules. */
#include <stdio.h>
#include <string.h>

#include "data/run.h"
#include "session/lock_stacks.h"

static const char *frame_name(const struct symbols *s, uint64_t address)
{
	/* An address that a call returns to may be the next function's first. */
	const struct symbol *sym = address ? symbols_over(s, address - 1) : NULL;

	return sym ? sym->name : NULL;
}

/* Of the program that took the stack, and of what called it. */
static bool of_probe(const char *name)
{
	if (!name)
		return true;
	name += strspn(name, "_");
	return !strncmp(name, "bpf_", 4) || !strncmp(name, "traceiter_", 10);
}

/* `;` is what separates frames, and what ends a name is a space and a number. */
static size_t put(char *text, size_t size, size_t len, const char *name)
{
	size_t start = len;

	if (len >= size)
		return len;
	len += snprintf(text + len, size - len, "%s%s", len ? ";" : "", name);
	for (start += !!start; start < len && start < size - 1; start++)
		if (text[start] == ';' || (unsigned char)text[start] < ' ')
			text[start] = ':';
	return len;
}

void stack_text(const struct lock_trace *trace, const struct symbols *s, char *text, size_t size)
{
	const hist_u64 *frame = trace->frame;
	size_t n = 0, first = 0, len;
	char name[48];

	while (n < STACK_FRAMES && frame[n])
		n++;
	while (first < n && of_probe(frame_name(s, frame[first])))
		first++;
	snprintf(name, sizeof(name), "%.16s", trace->comm);
	len = put(text, size, 0, name);
	if (n == STACK_FRAMES)
		len = put(text, size, len, "[cut]");
	/* Where addresses are hidden none has a name. */
	if (first == n)
		len = put(text, size, len, "[unknown]");
	while (n-- > first)
		len = put(text, size, len, frame_name(s, frame[n]) ?: "[unknown]");
	snprintf(name, sizeof(name), "[%s %s]", label_values(LABEL_CLASS)[trace->class],
		 label_values(LABEL_MODE)[trace->mode]);
	put(text, size, len, name);
}
