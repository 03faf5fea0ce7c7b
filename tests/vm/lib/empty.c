// SPDX-License-Identifier: GPL-2.0-only
/*
 * empty [fentry|fexit|kprobe|kretprobe SYMBOL]... -- CMD [ARGS]
 *
 * What any tool pays at these attach points: programs that return at once, while CMD runs.
 *
 * empty threads N
 *
 * N threads that do nothing until the process is killed.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct bpf_insn nothing[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
	{ .code = BPF_JMP | BPF_EXIT },
};

static struct btf *btf;

static void attach_trampoline(const char *how, const char *symbol)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		.expected_attach_type = strcmp(how, "fexit") ? BPF_TRACE_FENTRY : BPF_TRACE_FEXIT,
	);
	int prog;

	if (!btf)
		btf = btf__parse("/sys/kernel/btf/vmlinux", NULL);
	opts.attach_btf_id = btf__find_by_name_kind(btf, symbol, BTF_KIND_FUNC);
	prog = bpf_prog_load(BPF_PROG_TYPE_TRACING, "empty", "GPL", nothing, 2, &opts);
	if (prog < 0 || bpf_raw_tracepoint_open(NULL, prog) < 0) {
		perror(symbol);
		exit(70);
	}
}

static void attach_probe(const char *how, const char *symbol)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	FILE *f = fopen("/sys/bus/event_source/devices/kprobe/type", "r");
	int prog = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "empty", "GPL", nothing, 2, NULL), fd;

	if (!f || fscanf(f, "%u", &attr.type) != 1) {
		perror("kprobe type");
		exit(70);
	}
	fclose(f);
	attr.config = !strcmp(how, "kretprobe");
	attr.config1 = (unsigned long)symbol;
	fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0);
	if (prog < 0 || fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog) ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)) {
		perror(symbol);
		exit(70);
	}
}

static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static int threads(int n)
{
	pthread_attr_t small;
	pthread_t t;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 16384);
	while (--n > 0)
		if (pthread_create(&t, &small, idle, NULL))
			return 70;
	idle(NULL);
	return 0;
}

int main(int argc, char **argv)
{
	int status;

	if (argc < 2)
		return 2;
	if (argc == 3 && !strcmp(argv[1], "threads"))
		return threads(atoi(argv[2]));
	for (argv++; *argv && strcmp(*argv, "--"); argv += 2) {
		if (!strncmp(*argv, "fe", 2))
			attach_trampoline(argv[0], argv[1]);
		else
			attach_probe(argv[0], argv[1]);
	}
	btf__free(btf);
	if (!*argv || !argv[1])
		return 2;
	if (!fork()) {
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	wait(&status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 70;
}
