// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/status.h"
#include "data/err.h"
#include "vm/host.h"
#include "vm/initramfs.h"
#include "vm/pack.h"
#include "vm/proto.h"

struct initramfs {
	struct archive *ar;
	struct module_pack *modules;
	char *plan;
	size_t plan_len;
	FILE *plan_file;
};

static void module_loaded(const char *path, void *arg)
{
	initramfs_plan(arg, PLAN_MODULE, path);
}

struct archive *initramfs_archive(struct initramfs *i)
{
	return i->ar;
}

void initramfs_plan(struct initramfs *i, const char *key, const char *value)
{
	fwrite(key, 1, strlen(key) + 1, i->plan_file);
	fwrite(value, 1, strlen(value) + 1, i->plan_file);
}

int initramfs_module(struct initramfs *i, const char *name)
{
	return module_pack_add(i->modules, name, true);
}

/* Where /proc/config.gz is not built in, tools look for the configuration in /boot. */
static int add_config(struct initramfs *i, const struct kernel *kernel)
{
	char *path, *config;
	size_t len;
	int ret = 0;

	if (!kernel->config)
		return 0;
	config = read_file(kernel->config, &len);
	path = text("/boot/config-%s", kernel->release);
	if (!config || archive_data(i->ar, path, 0644, config, len)) {
		err("%s", "cannot be packed: %s", kernel->config, strerror(errno));
		ret = EXIT_NO_EXEC;
	}
	free(path);
	free(config);
	return ret;
}

struct initramfs *initramfs_new(const struct kernel *kernel, bool disks, int *status)
{
	struct initramfs *i = calloc(1, sizeof(*i));

	*status = EXIT_INTERNAL;
	if (!i)
		return NULL;
	i->ar = archive_new();
	i->plan_file = open_memstream(&i->plan, &i->plan_len);
	if (!i->ar || !i->plan_file) {
		err("initramfs", "%s", strerror(errno));
		goto fail;
	}
	i->modules = module_pack_new(i->ar, kernel, module_loaded, i);
	if (!i->modules)
		goto fail;
	*status = pack_base(i->ar);
	if (!*status)
		*status = add_config(i, kernel);
	/* Built in, or modules: a stock kernel of Debian 12 has them as modules. */
	if (!*status)
		*status = module_pack_add(i->modules, "virtio_pci", false);
	if (!*status)
		*status = module_pack_add(i->modules, "virtio_console", false);
	if (!*status && disks)
		*status = module_pack_add(i->modules, "virtio_blk", false);
	if (!*status)
		return i;
fail:
	initramfs_free(i);
	return NULL;
}

int initramfs_finish(struct initramfs *i)
{
	int fd = -1;

	if (!fclose(i->plan_file) &&
	    !archive_data(i->ar, PLAN_PATH, 0600, i->plan, i->plan_len))
		fd = archive_finish(i->ar);
	i->plan_file = NULL;
	if (fd < 0)
		err("initramfs", "%s", strerror(errno));
	return fd;
}

void initramfs_free(struct initramfs *i)
{
	if (!i)
		return;
	if (i->plan_file)
		fclose(i->plan_file);
	free(i->plan);
	module_pack_free(i->modules);
	archive_free(i->ar);
	free(i);
}
