// SPDX-License-Identifier: GPL-2.0-only
/* The emulator: its command line, its ports, its end. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/status.h"
#include "data/err.h"
#include "vm/host.h"
#include "vm/proto.h"
#include "vm/qemu.h"

#define MAX_ARGS 512

/*
 * loglevel=7: over a serial port of the emulator the whole log costs next to
 * nothing, and a log that is kept is then complete. oops=panic: after an oops a
 * guest would limp on, or hang. The mitigations stay as a user's kernel has them;
 * the self-tests of cryptography cost a sixth of the boot and are left out. With
 * five levels of page tables KASAN may report an interrupt while identify_cpu() makes
 * the boot CPU's features anew (7.2: LA57 is not among them for a moment).
 */
#define BOOT_ARGS                                                                                  \
	"console=ttyS0 loglevel=7 panic=-1 oops=panic printk.devkmsg=on random.trust_cpu=on "      \
	"no_timer_check tsc=reliable cryptomgr.notests"

/* Devices that nobody asks for, but every kernel and firmware probes. */
#define MACHINE "pc,hpet=off,smm=off,vmport=off,i8042=off"

struct args {
	char *v[MAX_ARGS];
	int n;
};

static void add(struct args *a, char *word)
{
	if (a->n < MAX_ARGS - 1)
		a->v[a->n++] = word;
}

static void add2(struct args *a, const char *option, char *value)
{
	add(a, text("%s", option));
	add(a, value);
}

/* In the values of options a comma is written twice. */
static char *escape(const char *s)
{
	char *out = calloc(2, strlen(s) + 1), *p = out;

	if (!out)
		exit(EXIT_INTERNAL);
	for (; *s; *p++ = *s++)
		if (*s == ',')
			*p++ = ',';
	return out;
}

/*
 * One socket of N cores, or one socket a node, since a socket that spans nodes
 * makes the kernel warn. CPUs that are possible but not online are there, and
 * left offline by the kernel's maxcpus=: since 6.9 a kernel that does not know
 * the hypervisor (TCG) ignores CPUs that could only be plugged in.
 */
static void add_cpus(struct args *a, const struct vm_options *opt)
{
	unsigned int max = opt->cpus.max, sockets = 1;

	if (opt->numa > 1)
		sockets = max > opt->cpus.n || max % opt->numa ? max : opt->numa;
	add2(a, "-smp", text("cpus=%u,sockets=%u,cores=%u,threads=1", max, sockets, max / sockets));
}

/* The node of a CPU: in blocks, as the sockets are; in turn, if only the first are online. */
static uint64_t node_of(const struct vm_options *opt, unsigned int cpu)
{
	if (opt->cpus.max > opt->cpus.n || opt->cpus.max % opt->numa)
		return cpu % opt->numa;
	return cpu / (opt->cpus.max / opt->numa);
}

static void add_numa(struct args *a, const struct vm_options *opt)
{
	uint64_t i, mem = opt->memory / opt->numa & ~(uint64_t)0x1fffff;
	unsigned int cpu;

	for (i = 0; opt->numa > 1 && i < opt->numa; i++) {
		char *node = text("node,nodeid=%" PRIu64 ",memdev=node%" PRIu64, i, i), *more;

		for (cpu = 0; cpu < opt->cpus.max; cpu++) {
			if (node_of(opt, cpu) != i)
				continue;
			more = text("%s,cpus=%u", node, cpu);
			free(node);
			node = more;
		}
		add2(a, "-object",
		     text("memory-backend-ram,id=node%" PRIu64 ",size=%" PRIu64, i,
			  i == opt->numa - 1 ? opt->memory - mem * i : mem));
		add2(a, "-numa", node);
	}
}

static void add_port(struct args *a, const char *id, int fd, const char *name)
{
	add2(a, "-chardev", text("socket,id=%s,fd=%d", id, fd));
	add2(a, "-device", text("virtserialport,chardev=%s,name=%s", id, name));
}

static void add_accel(struct args *a, enum accel accel)
{
	switch (accel) {
	case ACCEL_KVM:
		add2(a, "-accel", text("kvm"));
		add2(a, "-cpu", text("host"));
		break;
	case ACCEL_TCG:
	case ACCEL_TCG_IN_TURN:
		add2(a, "-accel", text("tcg,thread=%s", accel == ACCEL_TCG ? "multi" : "single"));
		add2(a, "-cpu", text("max"));
		break;
	case ACCEL_ICOUNT:
		add2(a, "-accel", text("tcg,thread=single"));
		add2(a, "-icount", text("shift=0,sleep=off"));
		/* A fast string operation counts as one whatever it moves: it would hide work. */
		add2(a, "-cpu", text("max,-erms,-fsrm"));
		break;
	}
}

static void build(struct args *a, const struct vm_options *opt, const struct kernel *kernel,
		  int initrd, enum accel accel, const int fd[5])
{
	char online[32];
	size_t i;

	add(a, text(QEMU));
	add(a, text("-nodefaults"));
	add(a, text("-no-user-config"));
	add(a, text("-no-reboot"));
	add2(a, "-display", text("none"));
	add2(a, "-machine", text(MACHINE));
	add_accel(a, accel);
	add_cpus(a, opt);
	add2(a, "-m", text("%" PRIu64 "k", opt->memory >> 10));
	add_numa(a, opt);
	add2(a, "-kernel", text("%s", kernel->image));
	add2(a, "-initrd", text("/dev/fd/%d", initrd));
	snprintf(online, sizeof(online), " maxcpus=%u", opt->cpus.n);
	add2(a, "-append", text(BOOT_ARGS "%s%s%s%s%s",
				kernel_configured(kernel, "CONFIG_KASAN=y") ? " no5lvl" : "",
				fd[1] >= 0 ? " 8250.nr_uarts=4" : "",
				opt->cpus.max > opt->cpus.n ? online : "",
				opt->append ? " " : "", opt->append ? opt->append : ""));
	add2(a, "-chardev", text("socket,id=console,fd=%d", fd[0]));
	add2(a, "-serial", text("chardev:console"));
	if (fd[1] >= 0) {
		add2(a, "-chardev", text("socket,id=tty,fd=%d", fd[1]));
		add2(a, "-serial", text("chardev:tty"));
	}
	add2(a, "-device", text("virtio-serial-pci"));
	add_port(a, "ctl", fd[2], PORT_CTL);
	add_port(a, "out", fd[3], PORT_OUT);
	add_port(a, "err", fd[4], PORT_ERR);
	for (i = 0; i < opt->disk.n; i++) {
		char *file = escape(opt->disk.item[i]);

		add2(a, "-drive", text("file=%s,format=raw,if=none,id=disk%zu", file, i));
		add2(a, "-device", text("virtio-blk-pci,drive=disk%zu", i));
		free(file);
	}
}

static void __attribute__((noreturn)) exec_qemu(const char *path, char **argv, const int *keep,
						size_t n, int complaints, pid_t parent)
{
	int null;
	size_t i;

	/* However we die, the emulator must not stay. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	/* The terminal's signals are for us; we end the emulator in order. */
	setsid();
	for (i = 1; i < 32; i++)
		if (i != SIGKILL && i != SIGSTOP)
			signal(i, SIG_DFL);
	null = open("/dev/null", O_RDWR);
	dup2(null, 0);
	dup2(null, 1);
	dup2(complaints, 2);
	for (i = 0; i < n; i++)
		if (keep[i] >= 0)
			fcntl(keep[i], F_SETFD, 0);
	execv(path, argv);
	_exit(127);
}

int qemu_start(struct qemu *q, const struct vm_options *opt, const struct kernel *kernel,
	       int initrd, enum accel accel, bool tty)
{
	int *ours[5] = { &q->console, &q->tty, &q->ctl, &q->out, &q->err };
	int theirs[6] = { -1, -1, -1, -1, -1, initrd }, pair[2], report[2];
	int ret = EXIT_NO_EXEC;
	struct args a = { .n = 0 };
	pid_t parent = getpid();
	char *path;
	size_t i;

	*q = (struct qemu){ -1, -1, -1, -1, -1, -1, -1 };
	path = find_program(QEMU);
	if (!path) {
		err(QEMU, "not found; install the package qemu-system-x86");
		return EXIT_NO_EXEC;
	}
	for (i = 0; i < 5; i++) {
		if (i == 1 && !tty)
			continue;
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
			err("socketpair", "%s", strerror(errno));
			goto cleanup;
		}
		*ours[i] = pair[0];
		theirs[i] = pair[1];
		fcntl(pair[0], F_SETFL, O_NONBLOCK);
	}
	if (pipe2(report, O_CLOEXEC | O_NONBLOCK)) {
		err("pipe", "%s", strerror(errno));
		goto cleanup;
	}
	q->complaints = report[0];
	build(&a, opt, kernel, initrd, accel, theirs);
	q->pid = fork();
	if (!q->pid)
		exec_qemu(path, a.v, theirs, 6, report[1], parent);
	close(report[1]);
	if (q->pid < 0)
		err("fork", "%s", strerror(errno));
	else
		ret = 0;
cleanup:
	for (i = 0; i < 5; i++)
		if (theirs[i] >= 0)
			close(theirs[i]);
	while (a.n)
		free(a.v[--a.n]);
	free(path);
	if (ret)
		qemu_stop(q);
	return ret;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

bool qemu_ended(struct qemu *q)
{
	if (q->pid > 0 && waitpid(q->pid, NULL, WNOHANG) == q->pid)
		q->pid = -1;
	return q->pid < 0;
}

void qemu_stop(struct qemu *q)
{
	int waited;

	if (q->pid > 0) {
		/* SIGTERM first: it then flushes the disks. */
		kill(q->pid, SIGTERM);
		for (waited = 0; waited < 200 && !waitpid(q->pid, NULL, WNOHANG); waited++)
			usleep(10000);
		if (waited == 200) {
			kill(q->pid, SIGKILL);
			while (waitpid(q->pid, NULL, 0) < 0 && errno == EINTR)
				;
		}
		q->pid = -1;
	}
	close_one(&q->console);
	close_one(&q->tty);
	close_one(&q->ctl);
	close_one(&q->out);
	close_one(&q->err);
	close_one(&q->complaints);
}

void qemu_complaint(struct qemu *q, char *buf, size_t size)
{
	ssize_t n = q->complaints >= 0 ? read(q->complaints, buf, size - 1) : -1;
	char *p;

	buf[n > 0 ? n : 0] = 0;
	/* Its name and the option in question are of no use to whoever did not write them. */
	p = strstr(buf, QEMU ": ");
	if (p)
		memmove(buf, p + strlen(QEMU ": "), strlen(p + strlen(QEMU ": ")) + 1);
	buf[strcspn(buf, "\n")] = 0;
}
