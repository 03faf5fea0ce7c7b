// SPDX-License-Identifier: GPL-2.0-only
/* Which kernel K is, and where it lies. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/status.h"
#include "data/err.h"
#include "vm/host.h"
#include "vm/kernel.h"

/* Offsets of the x86 boot protocol's header. */
#define SETUP_MAGIC_AT		0x202	/* "HdrS" */
#define SETUP_SECTORS_AT	0x1f1	/* 512-byte sectors of setup code behind the first */
#define SETUP_SIZE_AT		0x1f4	/* of the rest, in units of 16 bytes */
#define SETUP_VERSION_AT	0x20e	/* where the version string is, minus 0x200 */

static bool exists(const char *path)
{
	struct stat st;

	return !stat(path, &st);
}

void kernel_put(struct kernel *kernel)
{
	if (!kernel)
		return;
	free(kernel->release);
	free(kernel->image);
	free(kernel->modules);
	free(kernel->config);
	free(kernel->version);
	free(kernel->instead);
	free(kernel);
}

/* path if it is there, else frees it. */
static char *if_exists(char *path)
{
	if (exists(path))
		return path;
	free(path);
	return NULL;
}

/* The value of a line "KEY VALUE"; NULL if there is none. To be freed. */
static char *info_value(const char *info, const char *key)
{
	size_t n = strlen(key);
	const char *p;

	for (p = info; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (!strncmp(p, key, n) && p[n] == ' ')
			return text("%.*s", (int)strcspn(p + n + 1, "\n"), p + n + 1);
	return NULL;
}

struct kernel *kernel_cached(const char *cache, const char *release)
{
	struct kernel *k = calloc(1, sizeof(*k));
	char *root = text("%s/kernels/%s", cache, release), *path, *info;

	path = text("%s/info", root);
	info = read_file(path, NULL);
	free(path);
	if (!k || !info)
		goto fail;
	k->release = text("%s", release);
	k->version = info_value(info, "version");
	/* Until 6.12 in /boot, and on 6.1 modules still in /lib; later all in /usr/lib/modules. */
	k->image = if_exists(text("%s/boot/vmlinuz-%s", root, release));
	if (!k->image)
		k->image = if_exists(text("%s/usr/lib/modules/%s/vmlinuz", root, release));
	k->modules = if_exists(text("%s/lib/modules/%s/kernel", root, release));
	if (!k->modules)
		k->modules = if_exists(text("%s/usr/lib/modules/%s/kernel", root, release));
	if (k->modules)
		*strrchr(k->modules, '/') = 0;
	k->config = if_exists(text("%s/boot/config-%s", root, release));
	if (!k->config)
		k->config = if_exists(text("%s/usr/lib/modules/%s/config", root, release));
	if (!k->image || !k->version)
		goto fail;
	free(root);
	free(info);
	return k;
fail:
	free(root);
	free(info);
	kernel_put(k);
	return NULL;
}

struct kernel *kernel_of_build(const char *dir)
{
	struct kernel *k = calloc(1, sizeof(*k));
	char *path = text("%s/info", dir), *info = read_file(path, NULL);

	free(path);
	if (!k || !info)
		goto fail;
	k->release = info_value(info, "release");
	k->image = if_exists(text("%s/vmlinuz", dir));
	k->config = if_exists(text("%s/config", dir));
	/* It has none, but a list of what is built in. */
	k->modules = text("%s", dir);
	if (!k->release || !k->image || !k->config)
		goto fail;
	free(info);
	return k;
fail:
	free(info);
	kernel_put(k);
	return NULL;
}

/* The newest in the cache whose version is want and then `behind`, or whose release is want. */
static char *cached_match(const char *cache, const char *want, char behind)
{
	char *dir_path = text("%s/kernels", cache), *release = NULL;
	DIR *dir = opendir(dir_path);
	size_t n = strlen(want);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		struct kernel *k = *d->d_name == '.' ? NULL : kernel_cached(cache, d->d_name);
		const char *rest = d->d_name + n;

		if (k && ((!strncmp(k->version, want, n) && k->version[n] == behind) ||
			  (!strncmp(d->d_name, want, n) &&
			   (!*rest || !strcmp(rest, "-cloud-amd64")))) &&
		    (!release || strverscmp(d->d_name, release) > 0)) {
			free(release);
			release = text("%s", d->d_name);
		}
		kernel_put(k);
	}
	if (dir)
		closedir(dir);
	free(dir_path);
	return release;
}

char *kernel_cached_newest(const char *cache, const char *series)
{
	return cached_match(cache, series, '.');
}

static int from_image(const char *path, struct kernel **kernel)
{
	char head[0x200 + 0x10000], *slash;
	struct kernel *k = NULL;
	FILE *f = fopen(path, "re");
	struct stat st;
	uint32_t paragraphs;
	uint64_t size;
	size_t n, at;

	if (!f) {
		err("kernel %s", "cannot be read: %s", path, strerror(errno));
		return EXIT_NO_EXEC;
	}
	n = fread(head, 1, sizeof(head) - 1, f);
	head[n] = 0;
	fstat(fileno(f), &st);
	fclose(f);
	if (n < SETUP_VERSION_AT + 2 || memcmp(head + SETUP_MAGIC_AT, "HdrS", 4)) {
		err("kernel %s", "is not a bzImage", path);
		return EXIT_NO_EXEC;
	}
	/* It would boot into silence. */
	memcpy(&paragraphs, head + SETUP_SIZE_AT, sizeof(paragraphs));
	size = ((unsigned char)head[SETUP_SECTORS_AT] + 1) * 512 + 16 * (uint64_t)paragraphs;
	if ((uint64_t)st.st_size < size) {
		err("kernel %s", "is cut short: %ju of %ju bytes", path, (uintmax_t)st.st_size,
		    (uintmax_t)size);
		return EXIT_NO_EXEC;
	}
	k = calloc(1, sizeof(*k));
	if (!k)
		return EXIT_NO_EXEC;
	at = 0x200 + (unsigned char)head[SETUP_VERSION_AT] +
	     ((unsigned char)head[SETUP_VERSION_AT + 1] << 8);
	k->image = realpath(path, NULL);
	if (!k->image)
		k->image = text("%s", path);
	if (at > 0x200 && at < n)
		k->release = text("%.*s", (int)strcspn(head + at, " "), head + at);
	else
		k->release = text("unknown");
	/* Beside a distribution's or an installed kernel's image, or on this machine. */
	slash = strrchr(k->image, '/');
	k->modules = if_exists(text("%.*s/kernel", (int)(slash - k->image), k->image));
	if (!k->modules)
		k->modules = if_exists(text("%.*s/../lib/modules/%s/kernel",
					    (int)(slash - k->image), k->image, k->release));
	if (!k->modules)
		k->modules = if_exists(text("/lib/modules/%s/kernel", k->release));
	if (k->modules)
		*strrchr(k->modules, '/') = 0;
	k->config = if_exists(text("%.*s/config-%s", (int)(slash - k->image), k->image,
				   k->release));
	if (!k->config)
		k->config = if_exists(text("%.*s/config", (int)(slash - k->image), k->image));
	if (!k->config)
		k->config = if_exists(text("/boot/config-%s", k->release));
	*kernel = k;
	return 0;
}

/* A tree of one's own may be of any configuration; without these it boots into silence. */
static int can_answer(const char *tree, const char *config)
{
	static const char *const needed[] = { "BLK_DEV_INITRD", "SERIAL_8250_CONSOLE", "DEVTMPFS",
					      "VIRTIO_PCI", "VIRTIO_CONSOLE" };
	char *data = config ? read_file(config, NULL) : NULL, *line;
	bool set;
	size_t i;

	for (i = 0; data && i < sizeof(needed) / sizeof(*needed); i++) {
		/* The last two are loaded if they are modules. */
		line = text("\nCONFIG_%s=", needed[i]);
		set = strstr(data, line);
		free(line);
		if (set)
			continue;
		err("kernel %s", "CONFIG_%s is not set in its .config: a guest needs it", tree,
		    needed[i]);
		free(data);
		return EXIT_NO_EXEC;
	}
	free(data);
	return 0;
}

/* A kernel tree that was built. */
static int from_tree(const char *path, struct kernel **kernel)
{
	char *image = text("%s/arch/x86/boot/bzImage", path), *kconfig = text("%s/Kconfig", path);
	char *config = text("%s/.config", path);
	int ret = EXIT_NO_EXEC;

	if (!exists(image)) {
		if (exists(kconfig) || exists(config))
			err("kernel %s", "the tree is not built: make -C %s bzImage", path, path);
		else
			err("kernel %s", "a directory, but no kernel tree: it has no "
					 "arch/x86/boot/bzImage", path);
	} else {
		ret = from_image(image, kernel);
	}
	if (!ret) {
		/* Of the tree, not of an installed kernel that has the same release. */
		free((*kernel)->config);
		free((*kernel)->modules);
		(*kernel)->config = if_exists(text("%s", config));
		(*kernel)->modules = text("%s", path);
		(*kernel)->tree = true;
		ret = can_answer(path, (*kernel)->config);
	}
	if (ret) {
		kernel_put(*kernel);
		*kernel = NULL;
	}
	free(image);
	free(kconfig);
	free(config);
	return ret;
}

static bool is_version(const char *s)
{
	return isdigit((unsigned char)*s) && !s[strspn(s, "0123456789abcdefghijklmnopqrstuvwxyz"
							 ".+-~_")];
}

static const struct pin *find_pin(const char *spec, bool *exact)
{
	const struct pin *pin;
	size_t i, n = strlen(spec);

	for (i = 0; (pin = pin_get(i)); i++) {
		*exact = strcmp(spec, pin->series);
		if (!*exact || !strcmp(spec, pin->version) ||
		    (!strncmp(spec, pin->release, n) &&
		     (!pin->release[n] || !strcmp(pin->release + n, "-cloud-amd64"))))
			return pin;
	}
	return NULL;
}

static void name_series(char *buf, size_t size)
{
	const struct pin *pin;
	size_t i, n = 0;

	for (i = 0; (pin = pin_get(i)) && n < size; i++)
		n += snprintf(buf + n, size - n, "%s%s", i ? ", " : "", pin->series);
}

bool kernel_configured(const struct kernel *kernel, const char *line)
{
	char *data = kernel->config ? read_file(kernel->config, NULL) : NULL;
	char *whole = text("\n%s\n", line);
	bool is_set = data && strstr(data, whole);

	free(data);
	free(whole);
	return is_set;
}

int kernel_get(const char *spec, const char *tree, struct kernel **kernel)
{
	char *cache, *release = NULL, series[256];
	const struct pin *pin;
	struct stat st;
	bool exact = false;
	int ret = 0;
	size_t i;

	*kernel = NULL;
	if (!spec) {
		for (i = 0; (pin = pin_get(i)); i++)
			spec = pin->series;
		if (!spec)
			return EXIT_INTERNAL;
	}
	if (strchr(spec, '/') || (!is_version(spec) && exists(spec))) {
		if (!stat(spec, &st) && S_ISDIR(st.st_mode))
			return from_tree(spec, kernel);
		return from_image(spec, kernel);
	}
	if (kernel_is_built(spec))
		return kernel_build(spec, tree, kernel);
	name_series(series, sizeof(series));
	if (!is_version(spec)) {
		err("kernel %s", "neither a pinned series (%s), an exact version, vanilla, patched, "
				 "a bzImage nor a kernel tree", spec, series);
		return EXIT_NO_EXEC;
	}
	pin = find_pin(spec, &exact);
	if (!pin && spec[strspn(spec, "0123456789.")] == 0 &&
	    (!strchr(spec, '.') || strchr(spec, '.') == strrchr(spec, '.'))) {
		err("kernel %s", "no such series is pinned (%s are); give an exact version", spec,
		    series);
		return EXIT_NO_EXEC;
	}
	cache = cache_dir();
	if (!cache)
		return EXIT_NO_EXEC;
	if (pin)
		*kernel = kernel_cached(cache, pin->release);
	else if ((release = cached_match(cache, spec, '-')))
		*kernel = kernel_cached(cache, release);
	free(release);
	release = NULL;
	if (!*kernel) {
		ret = kernel_fetch(cache, !pin ? spec : exact ? pin->release : NULL, pin, &release);
		if (!ret)
			*kernel = kernel_cached(cache, release);
		if (!ret && !*kernel) {
			err("kernel %s", "the packages of %s hold no kernel", spec, release);
			ret = EXIT_NO_EXEC;
		}
		if (!ret && pin && strcmp(release, pin->release)) {
			(*kernel)->instead = text("%s", pin->version);
			warn("kernel %s", "%s is no longer in the archive; %s stands in for it",
			     pin->series, pin->version, (*kernel)->version);
		}
	}
	free(release);
	free(cache);
	return ret;
}
