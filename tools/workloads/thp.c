// SPDX-License-Identifier: GPL-2.0-only
/* The sysfs switches of transparent huge pages. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data/status.h"
#include "data/err.h"
#include "workloads/restore.h"
#include "workloads/thp.h"

#define THP_DIR "/sys/kernel/mm/transparent_hugepage"

static int read_line(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "re");
	int ret;

	if (!f)
		return -1;
	ret = fgets(line, size, f) ? 0 : -1;
	fclose(f);
	return ret;
}

/* The bracketed word, copied; -1 if there is none. */
static int chosen(const char *line, char *word, size_t size)
{
	const char *open = strchr(line, '['), *close = open ? strchr(open, ']') : NULL;
	size_t n = close ? (size_t)(close - open - 1) : 0;

	if (!n || n >= size)
		return -1;
	memcpy(word, open + 1, n);
	word[n] = '\0';
	return 0;
}

bool thp_is_chosen(const char *line, const char *word)
{
	char now[32];

	return !chosen(line, now, sizeof(now)) && !strcmp(now, word);
}

/* Set a switch and note its old value. 0 if it holds the value now, else -1. */
static int set(const char *path, const char *value)
{
	char line[128], old[32];
	ssize_t n;
	int fd;

	if (read_line(path, line, sizeof(line)) || chosen(line, old, sizeof(old)))
		return -1;
	if (!strcmp(old, value))
		return 0;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (restore_write(path, old)) {
		close(fd);
		errno = ENOSPC;
		return -1;
	}
	n = write(fd, value, strlen(value));
	close(fd);
	return n == (ssize_t)strlen(value) ? 0 : -1;
}

static int cannot_set(const char *path, const char *value)
{
	err("--thp", "cannot write '%s' to %s: %s; needs root and a writable sysfs", value, path,
	    strerror(errno));
	return EXIT_UNOBSERVED;
}

static int not_offered(uint64_t size, bool shmem)
{
	err("--thp", "this kernel offers no folios of %" PRIu64 " KiB in %s memory",
	    size >> 10, shmem ? "shared" : "anonymous");
	return EXIT_UNOBSERVED;
}

/* Kernels with one switch a size: this one on, all others off, or a larger one would win. */
static int allow_one_size(uint64_t size, const char *file, const char *on)
{
	char path[512];
	struct dirent *e;
	uint64_t kib;
	const char *value;
	DIR *d = opendir(THP_DIR);
	int ret = 0;

	if (!d)
		return -1;
	while (!ret && (e = readdir(d))) {
		if (sscanf(e->d_name, "hugepages-%" SCNu64 "kB", &kib) != 1)
			continue;
		snprintf(path, sizeof(path), THP_DIR "/%s/%s", e->d_name, file);
		if (access(path, F_OK))
			continue;
		value = kib << 10 == size ? on : "never";
		if (set(path, value))
			ret = cannot_set(path, value);
	}
	closedir(d);
	return ret;
}

int thp_allow(uint64_t size, enum thp_memory memory)
{
	bool shmem = memory != THP_ANON;
	const char *file = shmem ? "shmem_enabled" : "enabled", *on = shmem ? "advise" : "madvise";
	char path[512], line[128];
	uint64_t pmd;

	if (read_line(THP_DIR "/hpage_pmd_size", line, sizeof(line)) ||
	    sscanf(line, "%" SCNu64, &pmd) != 1)
		return not_offered(size, shmem);

	snprintf(path, sizeof(path), THP_DIR "/hugepages-%" PRIu64 "kB/%s", size >> 10, file);
	if (memory != THP_SYSV && !access(path, F_OK)) {
		/* "deny" and "force" of the global switch overrule those of the sizes. */
		snprintf(path, sizeof(path), THP_DIR "/%s", file);
		if (shmem && !read_line(path, line, sizeof(line)) &&
		    (thp_is_chosen(line, "deny") || thp_is_chosen(line, "force")) &&
		    set(path, "advise"))
			return cannot_set(path, "advise");
		return allow_one_size(size, file, on);
	}
	/*
	 * One switch for the one size that a PMD maps: kernels that have no other, and
	 * memory that no other is for (shmem_allowable_huge_orders() of 6.12 to 7.3
	 * takes only mappings with shmem_anon_vm_ops to the switches by size).
	 */
	if (size != pmd)
		return not_offered(size, shmem);
	snprintf(path, sizeof(path), THP_DIR "/%s", file);
	if (access(path, F_OK))
		return not_offered(size, shmem);
	if (set(path, on))
		return cannot_set(path, on);
	return 0;
}
