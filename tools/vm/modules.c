// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernel modules by name. Debian's packages have no modules.dep (depmod makes
 * it at installation), so the dependencies are read from the modules.
 */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/status.h"
#include "data/err.h"
#include "vm/elfneeds.h"
#include "vm/host.h"
#include "vm/pack.h"

struct module_pack {
	struct archive *ar;
	const struct kernel *kernel;
	void (*loaded)(const char *path, void *arg);
	void *arg;
	char **files;		/* every *.ko* of the kernel */
	size_t n_files;
	char *builtin;		/* modules.builtin */
	int depth;
};

/* nftw() passes no argument. */
static struct module_pack *indexing;

/* The name of the module in a path, "-" and "_" being one; NULL if it is no module. */
static char *module_name(const char *path)
{
	const char *base = strrchr(path, '/');
	char *name, *p;

	base = base ? base + 1 : path;
	name = text("%s", base);
	p = strstr(name, ".ko");
	if (!p || (p[3] && p[3] != '.')) {
		free(name);
		return NULL;
	}
	*p = 0;
	for (p = name; *p; p++)
		if (*p == '-')
			*p = '_';
	return name;
}

static int index_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	struct module_pack *mp = indexing;
	char **grown;

	if (type != FTW_F || !strstr(path + ftw->base, ".ko"))
		return 0;
	grown = realloc(mp->files, (mp->n_files + 1) * sizeof(*grown));
	if (!grown)
		return -1;
	mp->files = grown;
	mp->files[mp->n_files++] = text("%s", path);
	return 0;
}

struct module_pack *module_pack_new(struct archive *ar, const struct kernel *kernel,
				    void (*loaded)(const char *path, void *arg), void *arg)
{
	struct module_pack *mp = calloc(1, sizeof(*mp));
	char *path;

	if (!mp)
		return NULL;
	mp->ar = ar;
	mp->kernel = kernel;
	mp->loaded = loaded;
	mp->arg = arg;
	if (!kernel->modules)
		return mp;
	indexing = mp;
	/* A tree has its modules anywhere, and a directory kernel/ for something else. */
	path = kernel->tree ? text("%s", kernel->modules) : text("%s/kernel", kernel->modules);
	nftw(path, index_one, 32, FTW_PHYS);
	free(path);
	path = text("%s/modules.builtin", kernel->modules);
	mp->builtin = read_file(path, NULL);
	free(path);
	return mp;
}

void module_pack_free(struct module_pack *mp)
{
	size_t i;

	if (!mp)
		return;
	for (i = 0; i < mp->n_files; i++)
		free(mp->files[i]);
	free(mp->files);
	free(mp->builtin);
	free(mp);
}

static bool same_module(const char *path, const char *name)
{
	char *got = module_name(path), *want = text("%s.ko", name), *p;
	bool same;

	p = module_name(want);
	same = got && p && !strcmp(got, p);
	free(got);
	free(want);
	free(p);
	return same;
}

static bool is_builtin(const struct module_pack *mp, const char *name)
{
	char *copy, *line, *save;
	bool found = false;

	if (!mp->builtin)
		return false;
	copy = text("%s", mp->builtin);
	for (line = strtok_r(copy, "\n", &save); line && !found;
	     line = strtok_r(NULL, "\n", &save))
		found = same_module(line, name);
	free(copy);
	return found;
}

/* The module itself; debug kernels and Debian from 6.12 on have them compressed. */
static char *load(const char *path, size_t *len)
{
	static const struct {
		const char *suffix, *program;
	} packers[] = { { ".xz", "xz" }, { ".gz", "gzip" }, { ".zst", "zstd" } };
	size_t i, n = strlen(path), suffix;
	char *out = NULL;

	for (i = 0; i < sizeof(packers) / sizeof(*packers); i++) {
		char *argv[] = { (char *)packers[i].program, "-dc", (char *)path, NULL };
		int status;

		suffix = strlen(packers[i].suffix);
		if (n < suffix || strcmp(path + n - suffix, packers[i].suffix))
			continue;
		status = run_program(argv, NULL, 0, &out, len, NULL, NULL, NULL);
		if (!status && out && *len)
			return out;
		free(out);
		if (status == 127)
			err("%s", "cannot be unpacked: %s is not installed", path,
			    packers[i].program);
		else if (!interrupted())
			err("%s", "cannot be unpacked by %s", path, packers[i].program);
		return NULL;
	}
	out = read_file(path, len);
	if (!out)
		err("%s", "cannot be read: %s", path, strerror(errno));
	return out;
}

/* The names of a list: "a,b" (depends) or "pre: a b post: c" (softdep, only pre counts). */
static int add_all(struct module_pack *mp, const char *names, bool soft)
{
	char *copy = text("%s", names), *word, *save;
	bool pre = !soft;
	int ret = 0;

	for (word = strtok_r(copy, ", ", &save); word && !ret;
	     word = strtok_r(NULL, ", ", &save)) {
		if (soft && strchr(word, ':'))
			pre = !strcmp(word, "pre:");
		else if (pre)
			ret = module_pack_add(mp, word, !soft);
	}
	free(copy);
	return ret;
}

int module_pack_add(struct module_pack *mp, const char *name, bool required)
{
	const char *value;
	char *image = NULL, *dest, *base;
	size_t i, len;
	int ret = 0;

	for (i = 0; i < mp->n_files; i++)
		if (same_module(mp->files[i], name))
			break;
	if (i == mp->n_files) {
		if (!required || is_builtin(mp, name))
			return 0;
		if (mp->kernel->modules)
			err("module %s", "kernel %s has none of that name", name,
			    mp->kernel->release);
		else
			err("module %s", "%s comes without a modules directory", name,
			    mp->kernel->image);
		return EXIT_NO_EXEC;
	}
	base = module_name(mp->files[i]);
	dest = text("/mmscope/modules/%s.ko", base);
	free(base);
	if (archive_find(mp->ar, dest) || mp->depth > 32)
		goto cleanup;
	image = load(mp->files[i], &len);
	ret = image ? 0 : EXIT_NO_EXEC;
	mp->depth++;
	for (value = NULL; !ret && (value = elf_modinfo(image, len, "softdep", value));)
		ret = add_all(mp, value, true);
	for (value = NULL; !ret && (value = elf_modinfo(image, len, "depends", value));)
		ret = add_all(mp, value, false);
	mp->depth--;
	if (!ret && archive_data(mp->ar, dest, 0644, image, len)) {
		err("%s", "cannot be packed: %s", mp->files[i], strerror(errno));
		ret = EXIT_NO_EXEC;
	}
	if (!ret)
		mp->loaded(dest, mp->arg);
cleanup:
	free(image);
	free(dest);
	return ret;
}
