// SPDX-License-Identifier: GPL-2.0-only
/* What makes a system of the guest's bare root: mounts, modules, loopback, /etc. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vm/guest_setup.h"
#include "vm/proto.h"

static const struct mount_point {
	const char *type, *path, *options;
} mount_points[] = {
	{ "proc", "/proc", NULL },
	{ "sysfs", "/sys", NULL },
	{ "devtmpfs", "/dev", "mode=0755" },
	{ "devpts", "/dev/pts", "ptmxmode=0666" },
	{ "tmpfs", "/dev/shm", "mode=1777" },
	{ "tmpfs", "/tmp", "mode=1777" },
	{ "tmpfs", "/run", "mode=0755" },
	{ "hugetlbfs", "/dev/hugepages", NULL },
	{ "cgroup2", "/sys/fs/cgroup", NULL },
	{ "bpf", "/sys/fs/bpf", "mode=0700" },
	{ "securityfs", "/sys/kernel/security", NULL },
	{ "debugfs", "/sys/kernel/debug", NULL },
	{ "tracefs", "/sys/kernel/tracing", NULL },
};

static bool is_empty(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *d;
	bool empty = true;

	while (dir && empty && (d = readdir(dir)))
		empty = !strcmp(d->d_name, ".") || !strcmp(d->d_name, "..");
	if (dir)
		closedir(dir);
	return empty;
}

void setup_mounts(void)
{
	size_t i;

	for (i = 0; i < sizeof(mount_points) / sizeof(*mount_points); i++) {
		const struct mount_point *m = &mount_points[i];

		mkdir(m->path, 0755);
		/* --copy may have put files into /tmp or /run; the root is in memory as well. */
		if (!strcmp(m->type, "tmpfs") && !is_empty(m->path))
			continue;
		/* A kernel without one of them is a kernel that a command may want to see. */
		if (mount(m->type, m->path, m->type, 0, m->options) && i < 3)
			guest_fatal("init: mounting %s: %s", m->path, strerror(errno));
	}
}

static void loopback_up(void)
{
	struct ifreq ifr = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	if (!ioctl(fd, SIOCGIFFLAGS, &ifr)) {
		ifr.ifr_flags |= IFF_UP;
		ioctl(fd, SIOCSIFFLAGS, &ifr);
	}
	close(fd);
}

void setup_modules(char **paths)
{
	for (; *paths; paths++) {
		int fd = open(*paths, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)) {
			const char *base = strrchr(*paths, '/') + 1;

			guest_fatal("module %s: the kernel refuses it: %s", base, strerror(errno));
		}
		close(fd);
	}
}

/* What --copy brought stays. */
static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return;
	guest_write(fd, text, strlen(text));
	close(fd);
}

void setup_system(void)
{
	if (sethostname("mmscope", 7))
		guest_log("init: no host name");
	loopback_up();
	write_text("/etc/passwd", "root:x:0:0:root:" GUEST_HOME ":/bin/sh\n"
				  "nobody:x:65534:65534:nobody:/:/bin/false\n");
	write_text("/etc/group", "root:x:0:\nnogroup:x:65534:\n");
	write_text("/etc/hosts", "127.0.0.1 localhost mmscope\n");
	if (symlink("/proc/self/fd", "/dev/fd") || symlink("/proc/self/fd/0", "/dev/stdin") ||
	    symlink("/proc/self/fd/1", "/dev/stdout") || symlink("/proc/self/fd/2", "/dev/stderr"))
		guest_log("init: /dev/fd: no link");
}

/* Disks may hold file systems that the command mounted and left. */
void setup_undo(void)
{
	char line[1024], path[512];
	int tries;

	for (tries = 0; tries < 8; tries++) {
		FILE *f = fopen("/proc/mounts", "re");
		bool again = false;

		while (f && fgets(line, sizeof(line), f)) {
			if (strncmp(line, "/dev/", 5) || sscanf(line, "%*s %511s", path) != 1)
				continue;
			again |= !umount(path);
		}
		if (f)
			fclose(f);
		if (!again)
			break;
	}
	sync();
}
