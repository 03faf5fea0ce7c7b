// SPDX-License-Identifier: GPL-2.0-only
/*
 * The machine that a recording is made on. Nothing here may fail a recording:
 * what cannot be read stays unknown, and a comparison says so.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "data/run.h"

/* The options that make two kernels' figures incomparable, or explain them. */
static const char *const config_names[] = {
	"PREEMPT_NONE", "PREEMPT_VOLUNTARY", "PREEMPT", "PREEMPT_LAZY", "PREEMPT_RT",
	"PREEMPT_DYNAMIC", "HZ", "DEBUG_VM", "KASAN", "PROVE_LOCKING", "LOCK_STAT",
	"PER_VMA_LOCK", "TRANSPARENT_HUGEPAGE", "HUGETLB_PAGE_OPTIMIZE_VMEMMAP", "LRU_GEN",
	"MEMCG", "NUMA_BALANCING",
};

#define CONFIG_NAMES	(sizeof(config_names) / sizeof(*config_names))

/* First line of a file, without the newline. False (and "") if there is none. */
static bool read_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");
	bool ok;

	*buf = 0;
	if (!f)
		return false;
	ok = fgets(buf, (int)size, f);
	fclose(f);
	if (!ok)
		*buf = 0;
	buf[strcspn(buf, "\n")] = 0;
	return ok;
}

/* The word in brackets: "always [madvise] never". */
static void read_choice(const char *path, char *word, size_t size)
{
	char line[160], *open, *close;

	*word = 0;
	if (!read_line(path, line, sizeof(line)))
		return;
	open = strchr(line, '[');
	close = open ? strchr(open, ']') : NULL;
	if (!close)
		return;
	*close = 0;
	snprintf(word, size, "%s", open + 1);
}

static bool read_number(const char *path, int64_t *value)
{
	char line[32], *end;
	long long v;

	if (!read_line(path, line, sizeof(line)))
		return false;
	v = strtoll(line, &end, 10);
	if (end == line || *end)
		return false;
	*value = v;
	return true;
}

/* Number of CPUs in a list such as "0-3,8". */
static unsigned int read_cpus(const char *path)
{
	char line[1024], *p = line;
	unsigned int n = 0;

	if (!read_line(path, line, sizeof(line)))
		return 0;
	while (isdigit((unsigned char)*p)) {
		unsigned long first = strtoul(p, &p, 10), last = first;

		if (*p == '-')
			last = strtoul(p + 1, &p, 10);
		if (last < first)
			return 0;
		n += last - first + 1;
		p += *p == ',';
	}
	return n;
}

/* Append "name=value" to a list of words; what does not fit whole is left out. */
static void add_word(char *list, size_t size, const char *name, const char *value)
{
	size_t len = strlen(list);
	int n = snprintf(list + len, size - len, "%s%s=%s", len ? " " : "", name, value);

	if (n < 0 || (size_t)n >= size - len)
		list[len] = 0;
}

static int by_page_size(const struct dirent **a, const struct dirent **b)
{
	unsigned long x = strtoul((*a)->d_name + strlen("hugepages-"), NULL, 10);
	unsigned long y = strtoul((*b)->d_name + strlen("hugepages-"), NULL, 10);

	return (x > y) - (x < y);
}

static int is_page_size(const struct dirent *d)
{
	return !strncmp(d->d_name, "hugepages-", strlen("hugepages-"));
}

static void read_thp(struct machine *m)
{
	static const char dir[] = "/sys/kernel/mm/transparent_hugepage";
	struct dirent **entry;
	char path[400], word[16];
	int i, n;

	snprintf(path, sizeof(path), "%s/enabled", dir);
	read_choice(path, m->thp, sizeof(m->thp));
	snprintf(path, sizeof(path), "%s/shmem_enabled", dir);
	read_choice(path, m->shmem_thp, sizeof(m->shmem_thp));

	n = scandir(dir, &entry, is_page_size, by_page_size);
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s/enabled", dir, entry[i]->d_name);
		read_choice(path, word, sizeof(word));
		if (*word && strcmp(word, "never"))
			add_word(m->mthp, sizeof(m->mthp),
				 entry[i]->d_name + strlen("hugepages-"), word);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
}

/* One line of a kernel configuration. */
static void config_line(char value[][16], char *line)
{
	static const char off[] = " is not set";
	char *name = line, *end;
	size_t i;

	if (!strncmp(line, "# CONFIG_", 9)) {
		name += 9;
		end = strstr(name, off);
	} else if (!strncmp(line, "CONFIG_", 7)) {
		name += 7;
		end = strchr(name, '=');
	} else {
		return;
	}
	if (!end)
		return;
	for (i = 0; i < CONFIG_NAMES; i++) {
		if (strlen(config_names[i]) != (size_t)(end - name) ||
		    strncmp(config_names[i], name, end - name))
			continue;
		if (*end == '=') {
			end[1 + strcspn(end + 1, "\n")] = 0;
			snprintf(value[i], sizeof(value[i]), "%.15s", end + 1);
		}
		return;
	}
}

/* gzopen() reads plain files as well as compressed ones. */
static bool read_config_file(struct machine *m, const char *path)
{
	char value[CONFIG_NAMES][16], line[1024];
	gzFile f = gzopen(path, "rbe");
	bool any = false;
	size_t i;

	if (!f)
		return false;
	/* An option that this kernel does not know is off. */
	for (i = 0; i < CONFIG_NAMES; i++)
		strcpy(value[i], "n");
	while (gzgets(f, line, sizeof(line))) {
		any |= !strncmp(line, "CONFIG_", 7);
		config_line(value, line);
	}
	gzclose(f);
	for (i = 0; any && i < CONFIG_NAMES; i++)
		add_word(m->config, sizeof(m->config), config_names[i], value[i]);
	return any;
}

static void read_config(struct machine *m)
{
	char path[160], word[16];

	if (!read_config_file(m, "/proc/config.gz")) {
		snprintf(path, sizeof(path), "/boot/config-%s", m->release);
		if (!read_config_file(m, path)) {
			snprintf(path, sizeof(path), "/lib/modules/%s/config", m->release);
			read_config_file(m, path);
		}
	}
	/* PREEMPT_DYNAMIC: the model is chosen at boot. "none voluntary (full) lazy" */
	if (read_line("/sys/kernel/debug/sched/preempt", path, sizeof(path))) {
		char *open = strchr(path, '('), *close = open ? strchr(open, ')') : NULL;

		if (close) {
			*close = 0;
			snprintf(word, sizeof(word), "%.15s", open + 1);
			add_word(m->config, sizeof(m->config), "preempt", word);
		}
	}
}

#if defined(__x86_64__) || defined(__i386__)
/* CPUID tells who emulates, where DMI names the same machine for TCG and KVM. */
static void read_hypervisor(char *virt, size_t size)
{
	static const struct { const char *signature, *name; } known[] = {
		{ "TCGTCGTCGTCG", "tcg" },    { "KVMKVMKVM", "kvm" },
		{ "Microsoft Hv", "hyperv" }, { "VMwareVMware", "vmware" },
		{ "XenVMMXenVMM", "xen" },
	};
	unsigned int a, b, c, d;
	char signature[13] = "";
	size_t i;

	if (!__get_cpuid(1, &a, &b, &c, &d))
		return;
	if (!(c & (1u << 31))) {
		snprintf(virt, size, "none");
		return;
	}
	__cpuid(0x40000000, a, b, c, d);
	memcpy(signature, &b, 4);
	memcpy(signature + 4, &c, 4);
	memcpy(signature + 8, &d, 4);
	for (i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(signature, known[i].signature))
			snprintf(virt, size, "%s", known[i].name);
}
#else
static void read_hypervisor(char *virt, size_t size)
{
	char word[64];

	if (read_line("/proc/device-tree/hypervisor/compatible", word, sizeof(word)) ||
	    read_line("/sys/hypervisor/type", word, sizeof(word)))
		snprintf(virt, size, "%.15s", strstr(word, "kvm") ? "kvm" : word);
}
#endif

static void read_virt(struct machine *m)
{
	const char *told = getenv("MMSCOPE_VM");

	snprintf(m->virt, sizeof(m->virt), "unknown");
	if (told && (!strcmp(told, "tcg") || !strcmp(told, "kvm") || !strcmp(told, "icount")))
		snprintf(m->virt, sizeof(m->virt), "%s", told);
	else
		read_hypervisor(m->virt, sizeof(m->virt));
}

static void read_memory(struct machine *m)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kib;
	char line[128];

	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "MemTotal: %llu kB", &kib) == 1)
			m->memory_kib = kib;
	fclose(f);
}

void machine_read(struct machine *m)
{
	struct utsname u;
	int64_t number;

	memset(m, 0, sizeof(*m));
	if (!uname(&u)) {
		snprintf(m->release, sizeof(m->release), "%s", u.release);
		snprintf(m->arch, sizeof(m->arch), "%.15s", u.machine);
	}
	read_line("/proc/version", m->version, sizeof(m->version));
	read_line("/proc/sys/kernel/random/boot_id", m->boot_id, sizeof(m->boot_id));
	m->cpus_possible = read_cpus("/sys/devices/system/cpu/possible");
	m->cpus_online = read_cpus("/sys/devices/system/cpu/online");
	/* Without /sys: what the C library finds out otherwise. */
	if (!m->cpus_online)
		m->cpus_online = sysconf(_SC_NPROCESSORS_ONLN);
	if (m->cpus_possible < m->cpus_online)
		m->cpus_possible = m->cpus_online;
	read_memory(m);
	m->page_size = sysconf(_SC_PAGESIZE);
	m->fault_around_bytes = -1;
	if (read_number("/sys/kernel/debug/fault_around_bytes", &number))
		m->fault_around_bytes = number;
	m->numa_balancing = -1;
	if (read_number("/proc/sys/kernel/numa_balancing", &number))
		m->numa_balancing = (int)number;
	read_thp(m);
	read_virt(m);
	read_config(m);
}
