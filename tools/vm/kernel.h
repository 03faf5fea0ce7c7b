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
	bool tree;	/* modules is the tree that they were built in */
	char *config;	/* its .config; NULL if not known */
	char *version;	/* the Debian package's version; NULL for an image of the user's */
	char *instead;	/* the pinned version it stands in for, because that left the archive */
};

/*
 * Gets the kernel that spec names (mmscope-vm(1), KERNELS): from the cache, or from
 * the Debian archive into the cache, or built from the source tree `tree` (NULL: to
 * be found) into the cache; NULL: the newest pinned. Waits while another process
 * fetches or builds. Returns 0 with *kernel to be freed with kernel_put(), or,
 * after an error line, EXIT_USAGE or EXIT_NO_EXEC.
 */
int kernel_get(const char *spec, const char *tree, struct kernel **kernel);
void kernel_put(struct kernel *kernel);
/* Does its .config, if that is known, have a line like "CONFIG_KASAN=y"? */
bool kernel_configured(const struct kernel *kernel, const char *line);

/* One row of kernel/versions. */
struct pin {
	char series[16];	/* 6.12 */
	char version[24];	/* 6.12.117 */
	char suite[32];		/* where it was when it was pinned */
	char release[64];	/* 6.12.117+deb13-cloud-amd64 */
};

/* Row i of the table, or NULL behind its end. */
const struct pin *pin_get(size_t i);

/* The row of the source that vanilla and patched are built from; release names its package. */
const struct pin *pin_source(void);

/*
 * fetch.c: gets a kernel into CACHE/kernels/RELEASE. Either `exact` (a version
 * or release) or a pin's series. *release is to be freed. 0, or EXIT_NO_EXEC
 * after an error line.
 */
int kernel_fetch(const char *cache, const char *exact, const struct pin *pin, char **release);

/*
 * source.c: the directory of that source, fetched and unpacked into the cache if need be;
 * not to be written to. 0 with *dir to be freed, or EXIT_NO_EXEC after an error line.
 */
int source_get(char **dir);

/* built.c: true for vanilla and patched, whatever follows. */
bool kernel_is_built(const char *spec);

/* Such a kernel, by way of kernel/build in the source tree. Returns as kernel_get() does. */
int kernel_build(const char *spec, const char *tree, struct kernel **kernel);

/* The kernel in the directory that kernel/build printed; NULL if it is not whole. */
struct kernel *kernel_of_build(const char *dir);

/* CACHE/kernels/RELEASE as struct kernel; NULL if it is not (wholly) there. */
struct kernel *kernel_cached(const char *cache, const char *release);

/* The newest release in the cache that is of a series (6.12); NULL if none. To be freed. */
char *kernel_cached_newest(const char *cache, const char *series);

#endif
