// SPDX-License-Identifier: GPL-2.0-only
/* One table of what a kernel prints when something is wrong with it. */
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "vm/splat.h"

/*
 * A pattern is matched at the beginning of the message, so that boot messages
 * that only speak of such things ("Kernel command line: ... oops=panic",
 * "Spectre V2 : WARNING: ...") do not count. With `also`, that must follow
 * somewhere in the line.
 */
static const struct pattern {
	enum splat splat;
	const char *begin, *also;
} patterns[] = {
	{ SPLAT_PANIC, "Kernel panic - not syncing", NULL },
	{ SPLAT_CUT, "------------[ cut here ]------------", NULL },

	/* "WARNING: CPU: 0 PID: 1 at mm/x.c:12", from 6.18 "WARNING: mm/x.c:12 at f+0x1/0x2" */
	{ SPLAT_REPORT, "WARNING: CPU: ", " at " },
	{ SPLAT_REPORT, "WARNING: ", ".c:" },
	{ SPLAT_REPORT, "WARNING: ", ".h:" },
	{ SPLAT_REPORT, "WARNING: ", ".rs:" },
	/* lockdep and its relatives */
	{ SPLAT_REPORT, "WARNING: possible ", NULL },
	{ SPLAT_REPORT, "WARNING: suspicious RCU usage", NULL },
	{ SPLAT_REPORT, "WARNING: inconsistent lock state", NULL },
	{ SPLAT_REPORT, "WARNING: bad unlock balance", NULL },
	{ SPLAT_REPORT, "WARNING: bad contention", NULL },
	{ SPLAT_REPORT, "WARNING: held lock freed", NULL },
	{ SPLAT_REPORT, "WARNING: lock held when returning", NULL },
	{ SPLAT_REPORT, "WARNING: still has locks held", NULL },
	{ SPLAT_REPORT, "WARNING: Nested lock was not taken", NULL },
	{ SPLAT_REPORT, "WARNING: ", "order locking" },
	{ SPLAT_REPORT, "WARNING: ", "-safe -> " },
	{ SPLAT_REPORT, "WARNING: stack ", NULL },
	{ SPLAT_REPORT, "WARNING: kernel stack ", NULL },
	{ SPLAT_REPORT, "INFO: trying to register non-static key", NULL },
	{ SPLAT_REPORT, "BUG: MAX_LOCK", NULL },
	{ SPLAT_REPORT, "DEBUG_LOCKS_WARN_ON(", NULL },

	{ SPLAT_STALL, "BUG: soft lockup", NULL },
	{ SPLAT_STALL, "watchdog: BUG: soft lockup", NULL },
	{ SPLAT_STALL, "BUG: workqueue lockup", NULL },
	{ SPLAT_STALL, "watchdog: Watchdog detected hard LOCKUP", NULL },
	{ SPLAT_STALL, "NMI watchdog: Watchdog detected hard LOCKUP", NULL },
	{ SPLAT_STALL, "watchdog: CPU", "Watchdog detected hard LOCKUP" },
	{ SPLAT_STALL, "rcu: INFO: ", "stall" },
	{ SPLAT_STALL, "INFO: rcu", "stall" },
	{ SPLAT_STALL, "INFO: task ", "blocked for more than" },

	/* "BUG: KASAN: ...", "BUG: Bad page state", "BUG: unable to handle page fault" ... */
	{ SPLAT_REPORT, "BUG: ", NULL },
	{ SPLAT_REPORT, "kernel BUG at ", NULL },
	/* slab: "BUG kmalloc-64 (Not tainted): Redzone overwritten" */
	{ SPLAT_REPORT, "BUG ", "ainted" },
	{ SPLAT_REPORT, "Oops: ", NULL },
	{ SPLAT_REPORT, "Oops[", NULL },
	{ SPLAT_REPORT, "Internal error: ", NULL },
	{ SPLAT_REPORT, "general protection fault", NULL },
	{ SPLAT_REPORT, "Unable to handle kernel ", NULL },
	{ SPLAT_REPORT, "stack segment: ", NULL },
	{ SPLAT_REPORT, "double fault: ", NULL },
	{ SPLAT_REPORT, "PANIC: double fault", NULL },
	{ SPLAT_REPORT, "UBSAN: ", NULL },
	{ SPLAT_REPORT, "kmemleak: ", "new suspected memory leaks" },
	{ SPLAT_REPORT, "list_add corruption", NULL },
	{ SPLAT_REPORT, "list_del corruption", NULL },
	{ SPLAT_REPORT, "Bad page state", NULL },

	/* A memory cgroup's limit is the workload's own affair: that line begins otherwise. */
	{ SPLAT_OOM, "Out of memory: Killed process", NULL },
	{ SPLAT_OOM, "Out of memory (oom_kill_allocating_task): Killed process", NULL },
};

/* Behind "[   12.345678]" and "[    T42]" (caller: task or CPU), each in brackets and blanks. */
static const char *message_of(const char *line)
{
	const char *p = line, *q;

	while (*p == '\r' || *p == ' ' || *p == '\t')
		p++;
	for (;;) {
		if (*p != '[')
			break;
		q = p + 1;
		q += strspn(q, " ");
		if (*q == 'T' || *q == 'C')
			q++;
		if (!isdigit((unsigned char)*q))
			break;
		q += strspn(q, "0123456789.");
		if (*q != ']')
			break;
		p = q + 1;
		p += strspn(p, " \t");
	}
	return p;
}

enum splat splat_classify(const char *line, const char **message)
{
	const char *text = message_of(line);
	const struct pattern *p;
	size_t i;

	if (message)
		*message = text;
	for (i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		p = &patterns[i];
		if (!strncmp(text, p->begin, strlen(p->begin)) &&
		    (!p->also || strstr(text, p->also)))
			return p->splat;
	}
	return SPLAT_NONE;
}
