/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_VM_KERNEL_H
#define MMSCOPE_VM_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

/* A kernel on this machine's disk. All strings are owned by it. */
struct kernel {
	char *release;	/* as uname -r has it; "unknown" for an image that does not tell */
	char *image;	/* bzImage */
	char *modules;	/* directory, the lib/modules/RELEASE of it; NULL if none */
	char *config;	/* its .config; NULL if not known */
	char *version;	/* the Debian package's version; NULL for an image of the user's */
	char *instead;	/* the pinned version it stands in for, because that left the archive */
};

/*
 * Gets the kernel that spec names (mmscope(1), K): from the cache, or from the
 * Debian archive into the cache; NULL: the newest pinned. Waits while another
 * process fetches. Returns 0 with *kernel to be freed with kernel_put(), or,
 * after an error line, EXIT_USAGE or EXIT_NO_EXEC.
 */
int kernel_get(const char *spec, struct kernel **kernel);
void kernel_put(struct kernel *kernel);

/* One row of kernel/versions. */
struct pin {
	char series[16];	/* 6.12 */
	char version[24];	/* 6.12.117 */
	char suite[32];		/* where it was when it was pinned */
	char release[64];	/* 6.12.117+deb13-cloud-amd64 */
};

/* Row i of the table, or NULL behind its end. */
const struct pin *pin_get(size_t i);

/*
 * fetch.c: gets a kernel into CACHE/kernels/RELEASE. Either `exact` (a version
 * or release) or a pin's series. *release is to be freed. 0, or EXIT_NO_EXEC
 * after an error line.
 */
int kernel_fetch(const char *cache, const char *exact, const struct pin *pin, char **release);

/* CACHE/kernels/RELEASE as struct kernel; NULL if it is not (wholly) there. */
struct kernel *kernel_cached(const char *cache, const char *release);

/* The newest release in the cache that is of a series (6.12); NULL if none. To be freed. */
char *kernel_cached_newest(const char *cache, const char *series);

#endif
