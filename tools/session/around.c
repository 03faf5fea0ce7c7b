// SPDX-License-Identifier: GPL-2.0-only
/* Fault-around, off while --yield follows what it would gain. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data/err.h"
#include "session/around.h"

int around_write(unsigned long bytes)
{
	FILE *f = fopen(AROUND_FILE, "we");
	bool failed;

	if (!f)
		return -errno;
	failed = fprintf(f, "%lu\n", bytes) < 0;
	if (fclose(f) || failed)
		return -errno;
	return 0;
}

int around_read(unsigned long *bytes)
{
	FILE *f = fopen(AROUND_FILE, "re");
	int n = f ? fscanf(f, "%lu", bytes) : 0;

	if (n != 1) {
		err("--yield", "cannot read " AROUND_FILE ": %s; needs root and debugfs",
		    f ? "not a number" : strerror(errno));
	} else if (*bytes <= (unsigned long)sysconf(_SC_PAGESIZE)) {
		err("--yield", "fault-around is off (" AROUND_FILE " is %lu): by another --yield, "
		    "or for good; its windows are not known", *bytes);
		n = 0;
	} else if (sysconf(_SC_PAGESIZE) != 4096) {
		err("--yield", "only with pages of 4 KiB, not of %ld bytes", sysconf(_SC_PAGESIZE));
		n = 0;
	}
	if (f)
		fclose(f);
	return n == 1 ? 0 : -1;
}

int around_off(void)
{
	int e = around_write(sysconf(_SC_PAGESIZE));

	if (e) {
		err("--yield", "cannot switch fault-around off: " AROUND_FILE ": %s; needs root, "
		    "and no lockdown", strerror(-e));
		return -1;
	}
	return 0;
}
