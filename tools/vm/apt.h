/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_VM_APT_H
#define MMSCOPE_VM_APT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * apt with a private configuration and state below the cache: the machine's
 * Debian mirror, all suites that kernels come from, signatures checked. The
 * machine's own apt state is read (which mirror?) and never changed. Functions
 * print their own error line and return -1 on failure.
 */
struct apt;

struct apt_package {
	char *release;		/* 7.3.4+deb13-cloud-amd64 */
	char *version;		/* 7.3.4-1~bpo13+1 */
	const char *part;	/* "linux-image-"; of a split kernel "linux-binary-" and others */
};

struct apt_index {
	struct apt_package *package;
	size_t n;
};

struct apt *apt_open(const char *cache);
void apt_close(struct apt *apt);

/* Seconds since the indices were fetched; a large number if never. */
long apt_index_age(const struct apt *apt);
int apt_update(struct apt *apt, bool quiet);

/* The packages of cloud kernels that the indices know. */
int apt_list(struct apt *apt, struct apt_index *index);
void apt_index_free(struct apt_index *index);

/*
 * Downloads the packages of the kernel that p is of into dir. What accompanies
 * the image (modules, configuration) may have left the archive before it: that is
 * a warning. quiet: a failure prints nothing.
 */
int apt_download(struct apt *apt, const struct apt_index *index, const struct apt_package *p,
		 const char *dir, bool quiet);

/* Calls take with every version of a package that the indices know. */
int apt_versions(struct apt *apt, const char *package,
		 void (*take)(const char *version, void *arg), void *arg);

/* Downloads "PACKAGE=VERSION" into dir. */
int apt_download_one(struct apt *apt, const char *spec, const char *dir);

/* What apt or dpkg complained about last, for an error line; never NULL. */
const char *apt_last_line(char *errors);

#endif
