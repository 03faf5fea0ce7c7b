// SPDX-License-Identifier: GPL-2.0-only
/*
 * Is there a KVM that works? A /dev/kvm that can be opened does not say: under
 * nested virtualisation it may refuse registers, or hang the guest.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "data/err.h"
#include "vm/host.h"
#include "vm/initramfs.h"
#include "vm/proto.h"
#include "vm/qemu.h"

#define PROBE_SECONDS 15

/* True once init says hello. */
static bool boots(const struct kernel *kernel)
{
	struct vm_options opt = VM_OPTIONS_DEFAULT;
	struct initramfs *initramfs;
	struct vm_msg msg = { 0 };
	struct timespec start, now;
	struct qemu q;
	bool ok = false;
	char buf[4096];
	int status, fd;

	opt.cpus = (struct vm_cpus){ 1, 1 };
	opt.memory = 512 << 20;
	initramfs = initramfs_new(kernel, false, &status);
	if (!initramfs)
		return false;
	initramfs_plan(initramfs, PLAN_PROBE, "");
	fd = initramfs_finish(initramfs);
	if (fd < 0 || qemu_start(&q, &opt, kernel, fd, ACCEL_KVM, false))
		goto cleanup;
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		struct pollfd fds[3] = { { q.ctl, POLLIN, 0 }, { q.console, POLLIN, 0 },
					 { signals_fd(), POLLIN, 0 } };

		poll(fds, 3, 500);
		if (fds[2].revents)
			signals_drain();
		/* Drained, or the guest would stop at a full port. */
		while (read(q.console, buf, sizeof(buf)) > 0)
			;
		if ((fds[0].revents & POLLIN) && read(q.ctl, &msg, sizeof(msg)) > 0)
			ok = msg.type == MSG_HELLO;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (!ok && !interrupted() && !qemu_ended(&q) &&
		 now.tv_sec - start.tv_sec < PROBE_SECONDS);
	qemu_stop(&q);
cleanup:
	initramfs_free(initramfs);
	return ok;
}

/*
 * Before QEMU 8.1 a CPU could translate code while another CPU changed it, and
 * keep the stale translation (fixed by its commit deba78709ae8; for code across
 * two pages in 9.1). A kernel changes its code all the time (static keys, ftrace,
 * BPF trampolines) and then dies of an "Oops: int3". With the CPUs in one thread
 * there is no such moment.
 */
static enum accel tcg_kind(void)
{
	char *argv[] = { QEMU, "--version", NULL }, *out = NULL, *p;
	int major = 0, minor = 0;

	if (!run_program(argv, NULL, 0, &out, NULL, NULL, NULL, NULL) && out) {
		p = strstr(out, "version ");
		if (!p || sscanf(p, "version %d.%d", &major, &minor) != 2)
			major = 0;
	}
	free(out);
	return major > 9 || (major == 9 && minor >= 1) ? ACCEL_TCG : ACCEL_TCG_IN_TURN;
}

static bool kvm_works(const struct kernel *kernel)
{
	char *cache, *path, *boot_id, *known, *answer;
	bool kvm = false;

	if (access("/dev/kvm", R_OK | W_OK))
		return false;
	cache = cache_dir();
	boot_id = read_file("/proc/sys/kernel/random/boot_id", NULL);
	if (!cache || !boot_id) {
		free(cache);
		free(boot_id);
		return false;
	}
	boot_id[strcspn(boot_id, "\n")] = 0;
	path = text("%s/kvm", cache);
	known = read_file(path, NULL);
	if (known && !strncmp(known, boot_id, strlen(boot_id)) && strlen(boot_id) > 8) {
		kvm = strstr(known, " yes");
	} else {
		progress(false, "trying whether KVM works here");
		kvm = boots(kernel);
		answer = text("%s %s\n", boot_id, kvm ? "yes" : "no");
		/* If it cannot be kept it is found out again. */
		if (!interrupted() && write_file(path, answer, strlen(answer)))
			warn("%s", "cannot be written: %s", path, strerror(errno));
		free(answer);
		progress_clear();
	}
	free(known);
	free(path);
	free(cache);
	free(boot_id);
	return kvm;
}

enum accel accel_choose(const struct kernel *kernel)
{
	return kvm_works(kernel) ? ACCEL_KVM : tcg_kind();
}
