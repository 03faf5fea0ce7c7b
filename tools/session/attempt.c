// SPDX-License-Identifier: GPL-2.0-only
/* What this kernel permits: found by doing it. */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/attempt.h"
#include "session/plan.h"

void fentry_refusal(char *reason, size_t size, int err_no, unsigned int params)
{
	if (params > 6 && (err_no == ENOTSUP || err_no == 524 || err_no == EINVAL))
		snprintf(reason, size, "%u arguments: this kernel's trampolines take 6", params);
	else if (err_no == EPERM || err_no == EACCES)
		snprintf(reason, size, "no permission");
	else if (err_no == EINVAL || err_no == EBUSY)
		snprintf(reason, size, "notrace: the function cannot be patched");
	else if (err_no == E2BIG)
		snprintf(reason, size, "as many BPF programs are on it as one function may have");
	else if (err_no == 524 || err_no == ENOTSUP)
		snprintf(reason, size, "this kernel has no trampolines for it");
	else
		snprintf(reason, size, "cannot attach: %s", strerror(err_no));
}

int try_fentry(int btf_id)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		.expected_attach_type = BPF_TRACE_FENTRY,
		.attach_btf_id = btf_id,
	);
	int prog, link, e;

	prog = bpf_prog_load(BPF_PROG_TYPE_TRACING, "mmscope_try", "GPL", insns, 2, &opts);
	if (prog < 0)
		return -errno;
	link = bpf_raw_tracepoint_open(NULL, prog);
	e = link < 0 ? -errno : 0;
	if (link >= 0)
		close(link);
	close(prog);
	return e;
}

int try_kprobe(const char *symbol)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	unsigned int type;
	FILE *f;
	int fd;

	f = fopen("/sys/bus/event_source/devices/kprobe/type", "re");
	if (!f)
		return -ENOENT;
	if (fscanf(f, "%u", &type) != 1)
		type = 0;
	fclose(f);
	attr.type = type;
	attr.config1 = (uintptr_t)symbol;
	fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

bool plan_locked_down(void)
{
	char text[128] = "";
	FILE *f = fopen("/sys/kernel/security/lockdown", "re");
	bool on;

	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	on = strstr(text, "[confidentiality]") != NULL;
	return on;
}

bool try_read(void)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1,
		  .src_reg = BPF_REG_10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_1, .imm = -8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = 8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = 0 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_probe_read_kernel },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "mmscope_read", "GPL", insns,
			       sizeof(insns) / sizeof(insns[0]), NULL);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

bool cpu_has(const char *flag)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char *line = NULL, *save, *word;
	size_t size = 0;
	bool has = false;

	while (f && !has && getline(&line, &size, f) > 0)
		if (!strncmp(line, "flags", 5))
			for (word = strtok_r(line, " \n", &save); word && !has;
			     word = strtok_r(NULL, " \n", &save))
				has = !strcmp(word, flag);
	free(line);
	if (f)
		fclose(f);
	return has;
}

bool ftrace_is_off(void)
{
	FILE *f = fopen("/proc/sys/kernel/ftrace_enabled", "re");
	bool off = f && getc(f) == '0';

	if (f)
		fclose(f);
	return off;
}
