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

/*
 * Does it stand between who called a function that is probed and the function? Where it
 * was called and not jumped to (6.1, 6.12), the function is behind it once more.
 */
static bool of_trampoline(const char *name)
{
	return name && !strncmp(name, "bpf_trampoline_", 15);
}

/* Frames of what was observed, innermost first: their number. */
static size_t take_frames(const hist_u64 *frame, size_t n, const struct symbols *s,
			  const char **name)
{
	const char *one, *before = NULL;
	size_t i = 0, taken = 0;

	while (i < n && of_probe(frame_name(s, frame[i])))
		i++;
	for (; i < n; i++) {
		one = frame_name(s, frame[i]);
		if (of_trampoline(one)) {
			before = taken ? name[taken - 1] : NULL;
			continue;
		}
		if (!before || !one || strcmp(before, one))
			name[taken++] = one;
		before = NULL;
	}
	return taken;
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

#define NAME_MAX_SHOWN	256	/* of a function in C++, whose parameters are in it */

/* What comes before the kernel's part, from the outermost frame on. */
static size_t put_user(const struct lock_trace *trace, struct stack_names *names, char *text,
		       size_t size, size_t len)
{
	char name[NAME_MAX_SHOWN];
	struct lock_stack row;
	size_t n = 0;

	if (!trace->user || !names->images)
		return len;
	/* There was no room for it. */
	if (trace->user == names->user_rows || images_row(names->images, trace->user - 1, &row))
		return put(text, size, len, "[lost]");
	while (n < STACK_FRAMES && row.trace.frame[n])
		n++;
	if (n == STACK_FRAMES)
		len = put(text, size, len, "[cut]");
	while (n--) {
		if (images_name(names->images, &row, n, name, sizeof(name)))
			names->named++;
		else
			names->unnamed++;
		len = put(text, size, len, name);
	}
	return len;
}

void stack_text(const struct lock_trace *trace, struct stack_names *names, char *text,
		size_t size)
{
	const char *function[STACK_FRAMES];
	size_t n = 0, taken, len;
	char name[48];

	while (n < STACK_FRAMES && trace->frame[n])
		n++;
	taken = take_frames(trace->frame, n, names->s, function);
	snprintf(name, sizeof(name), "%.16s", trace->comm);
	len = put(text, size, 0, name);
	len = put_user(trace, names, text, size, len);
	if (n == STACK_FRAMES)
		len = put(text, size, len, "[cut]");
	/* Where addresses are hidden none has a name. */
	if (!taken)
		len = put(text, size, len, "[unknown]");
	while (taken--)
		len = put(text, size, len, function[taken] ?: "[unknown]");
	snprintf(name, sizeof(name), "[%s %s]", label_values(LABEL_CLASS)[trace->class],
		 label_values(LABEL_MODE)[trace->mode]);
	put(text, size, len, name);
}
