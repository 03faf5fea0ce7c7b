// SPDX-License-Identifier: GPL-2.0-only
/* From options to a guest: checks, kernel, initramfs, plan. */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/status.h"
#include "data/err.h"
#include "vm/getfile.h"
#include "vm/host.h"
#include "vm/initramfs.h"
#include "vm/pack.h"
#include "vm/proto.h"
#include "vm/run.h"
#include "vm/vm.h"

extern char **environ;

/* What is written at the end, perhaps hours from now. */
static int check_place(const char *option, const char *path)
{
	char *copy = text("%s", path);
	int ret = access(dirname(copy), W_OK | X_OK);

	if (ret)
		err(option, "'%s' cannot be written here: %s", path, strerror(errno));
	free(copy);
	return ret;
}

int vm_check(const struct vm_options *opt, char **argv)
{
	char *file, *local;
	struct stat st;
	bool bad;
	size_t i;

	if (opt->icount && opt->cpus.max > 1) {
		err("--icount", "counts the instructions of one CPU; use --cpus 1");
		return EXIT_USAGE;
	}
	if (opt->numa > 1 && opt->memory / opt->numa < 64 << 20) {
		err("--numa", "%ju nodes leave less than 64M of --memory to each",
		    (uintmax_t)opt->numa);
		return EXIT_USAGE;
	}
	for (i = 0; i < opt->env.n; i++) {
		if (!strchr(opt->env.item[i], '=') || *opt->env.item[i] == '=') {
			err("--env", "'%s' is not NAME=VALUE", opt->env.item[i]);
			return EXIT_USAGE;
		}
	}
	for (i = 0; i < opt->disk.n; i++) {
		if (stat(opt->disk.item[i], &st) || access(opt->disk.item[i], R_OK | W_OK)) {
			err("--disk", "'%s' cannot be used: %s", opt->disk.item[i],
			    strerror(errno));
			return EXIT_USAGE;
		}
		if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)) {
			err("--disk", "'%s' is neither a file nor a block device",
			    opt->disk.item[i]);
			return EXIT_USAGE;
		}
	}
	for (i = 0; i < opt->get.n; i++) {
		if (get_spec(opt->get.item[i], &file, &local))
			return EXIT_USAGE;
		bad = check_place("--get", local);
		free(file);
		free(local);
		if (bad)
			return EXIT_USAGE;
	}
	if (opt->log && check_place("--log", opt->log))
		return EXIT_USAGE;
	/* Before a kernel is fetched for nothing. */
	for (i = 0; i < opt->copy.n; i++)
		if (pack_copy(NULL, opt->copy.item[i]))
			return EXIT_USAGE;
	if (!argv && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))) {
		err("vm", "a shell needs a terminal; or give a command: mmscope vm -- CMD");
		return EXIT_USAGE;
	}
	return 0;
}

static void plan_env(struct initramfs *initramfs, const struct vm_options *opt, enum accel accel)
{
	static const char *const kinds[] = {
		[ACCEL_KVM] = "kvm",
		[ACCEL_TCG] = "tcg",
		[ACCEL_TCG_IN_TURN] = "tcg",
		[ACCEL_ICOUNT] = "icount",
	};
	static const char *const passed[] = { "TERM=", "NO_COLOR=" };
	char *vm = text("MMSCOPE_VM=%s", kinds[accel]);
	size_t i, n;
	char **e;

	initramfs_plan(initramfs, PLAN_ENV, "PATH=" GUEST_PATH);
	initramfs_plan(initramfs, PLAN_ENV, "HOME=" GUEST_HOME);
	initramfs_plan(initramfs, PLAN_ENV, "LANG=C.UTF-8");
	initramfs_plan(initramfs, PLAN_ENV, vm);
	free(vm);
	for (e = environ; *e; e++) {
		for (i = 0; i < sizeof(passed) / sizeof(*passed); i++)
			if (!strncmp(*e, passed[i], strlen(passed[i])))
				initramfs_plan(initramfs, PLAN_ENV, *e);
		/* Not what names a directory or an open descriptor of this machine. */
		n = strcspn(*e, "=");
		if (!strncmp(*e, "MMSCOPE_", 8) && strncmp(*e, "MMSCOPE_CACHE=", 14) &&
		    strncmp(*e, "MMSCOPE_VM=", 11) && !(n > 3 && !strncmp(*e + n - 3, "_FD", 3)))
			initramfs_plan(initramfs, PLAN_ENV, *e);
	}
	for (i = 0; i < opt->env.n; i++)
		initramfs_plan(initramfs, PLAN_ENV, opt->env.item[i]);
}

static int plan_command(struct initramfs *initramfs, char **argv)
{
	static char shell[] = "sh";
	char *exec = NULL, *size, *sh[] = { shell, NULL };
	struct winsize ws = { 0 };
	int ret, i;

	if (!argv) {
		ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws);
		size = text("%ux%u", ws.ws_row, ws.ws_col);
		initramfs_plan(initramfs, PLAN_TTY, size);
		free(size);
		argv = sh;
	}
	ret = pack_command(initramfs_archive(initramfs), argv, &exec);
	if (!ret) {
		initramfs_plan(initramfs, PLAN_EXEC, exec);
		for (i = 0; argv[i]; i++)
			initramfs_plan(initramfs, PLAN_ARG, argv[i]);
	}
	free(exec);
	return ret;
}

static int fill(struct initramfs *initramfs, const struct vm_options *opt, char **argv,
		enum accel accel)
{
	int ret = plan_command(initramfs, argv);
	char *file, *local;
	size_t i;

	for (i = 0; i < opt->copy.n && !ret; i++)
		ret = pack_copy(initramfs_archive(initramfs), opt->copy.item[i]);
	for (i = 0; i < opt->module.n && !ret; i++)
		ret = initramfs_module(initramfs, opt->module.item[i]);
	for (i = 0; i < opt->get.n && !ret; i++) {
		ret = get_spec(opt->get.item[i], &file, &local) ? EXIT_USAGE : 0;
		if (ret)
			break;
		initramfs_plan(initramfs, PLAN_GET, file);
		free(file);
		free(local);
	}
	plan_env(initramfs, opt, accel);
	return ret;
}

int vm_run(const struct vm_options *opt, char **argv)
{
	struct initramfs *initramfs = NULL;
	struct kernel *kernel = NULL;
	enum accel accel;
	struct stat st;
	int ret, fd;

	ret = vm_check(opt, argv);
	if (ret)
		return ret;
	signals_hold();
	ret = kernel_get(opt->kernel, opt->tree, &kernel);
	if (ret || interrupted())
		goto cleanup;
	accel = opt->icount ? ACCEL_ICOUNT : accel_choose(kernel);
	if (interrupted())
		goto cleanup;
	progress(false, "packing what the guest needs");
	initramfs = initramfs_new(kernel, opt->disk.n, &ret);
	if (!initramfs)
		goto cleanup;
	ret = fill(initramfs, opt, argv, accel);
	progress_clear();
	if (ret)
		goto cleanup;
	fd = initramfs_finish(initramfs);
	if (fd < 0 || fstat(fd, &st)) {
		ret = EXIT_INTERNAL;
		goto cleanup;
	}
	/* The kernel holds the archive and its unpacked copy at once. */
	if ((uint64_t)st.st_size > opt->memory / 3) {
		err("--memory", "%juM is too little for %juM of files (three times as much is needed)",
		    (uintmax_t)(opt->memory >> 20), (uintmax_t)(st.st_size >> 20));
		ret = EXIT_USAGE;
		goto cleanup;
	}
	ret = guest_run(opt, kernel, fd, accel, !argv, argv ? argv[0] : "shell");
cleanup:
	progress_clear();
	initramfs_free(initramfs);
	kernel_put(kernel);
	signals_release();
	return ret;
}
