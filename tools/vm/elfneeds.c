// SPDX-License-Identifier: GPL-2.0-only
/* The dynamic linker's search, done ahead of time. */
#include <fcntl.h>
#include <gelf.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vm/elfneeds.h"
#include "vm/host.h"

static const char *const usual_dirs[] = {
	"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib",
};

/* Directories of ld.so.conf and what it includes; read once. */
static char **conf_dirs;
static size_t n_conf_dirs;

static void read_conf(const char *path, int depth)
{
	char line[1024], *s;
	FILE *f = fopen(path, "re");
	glob_t g;
	size_t i;

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "#\n")] = 0;
		s = line + strspn(line, " \t");
		if (!strncmp(s, "include ", 8) && depth < 8) {
			s += 8 + strspn(s + 8, " \t");
			s[strcspn(s, " \t")] = 0;
			if (!glob(s, 0, NULL, &g)) {
				for (i = 0; i < g.gl_pathc; i++)
					read_conf(g.gl_pathv[i], depth + 1);
				globfree(&g);
			}
		} else if (*s == '/') {
			char **grown = realloc(conf_dirs, (n_conf_dirs + 1) * sizeof(*grown));

			if (!grown)
				break;
			conf_dirs = grown;
			conf_dirs[n_conf_dirs++] = text("%.*s", (int)strcspn(s, " \t"), s);
		}
	}
	if (f)
		fclose(f);
}

/* The linker passes over libraries of another architecture, and so do we. */
static bool same_machine(const char *path, const GElf_Ehdr *want)
{
	GElf_Ehdr eh;
	bool same = false;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf;

	if (fd < 0)
		return false;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && gelf_getehdr(elf, &eh))
		same = eh.e_machine == want->e_machine &&
		       eh.e_ident[EI_CLASS] == want->e_ident[EI_CLASS];
	elf_end(elf);
	close(fd);
	return same;
}

static char *try_dir(const char *dir, size_t len, const char *name, const char *origin,
		     const GElf_Ehdr *want)
{
	const char *var = memmem(dir, len, "$ORIGIN", 7);
	size_t skip = 7;
	char *path;

	if (!var) {
		var = memmem(dir, len, "${ORIGIN}", 9);
		skip = 9;
	}
	if (var)
		path = text("%.*s%s%.*s/%s", (int)(var - dir), dir, origin,
			    (int)(len - skip - (var - dir)), var + skip, name);
	else
		path = text("%.*s/%s", (int)len, dir, name);
	if (*path == '/' && same_machine(path, want))
		return path;
	free(path);
	return NULL;
}

static char *find_library(const char *name, const char *runpath, const char *origin,
			  const GElf_Ehdr *want)
{
	const char *p, *end;
	char *found = NULL;
	size_t i;

	if (strchr(name, '/'))
		return same_machine(name, want) ? text("%s", name) : NULL;
	for (p = runpath; p && *p && !found; p = *end ? end + 1 : end) {
		end = strchrnul(p, ':');
		found = try_dir(p, end - p, name, origin, want);
	}
	if (!conf_dirs)
		read_conf("/etc/ld.so.conf", 0);
	for (i = 0; i < n_conf_dirs && !found; i++)
		found = try_dir(conf_dirs[i], strlen(conf_dirs[i]), name, origin, want);
	for (i = 0; i < sizeof(usual_dirs) / sizeof(*usual_dirs) && !found; i++)
		found = try_dir(usual_dirs[i], strlen(usual_dirs[i]), name, origin, want);
	return found;
}

static int needs_of_dynamic(Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh, const GElf_Ehdr *eh,
			    const char *origin, int (*need)(const char *, void *), void *arg,
			    char **missing)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	const char *rpath = NULL, *runpath = NULL, *name;
	size_t i, n = sh->sh_entsize ? sh->sh_size / sh->sh_entsize : 0;
	GElf_Dyn dyn;
	char *found;
	int ret = 0;

	for (i = 0; data && i < n && gelf_getdyn(data, i, &dyn); i++) {
		if (dyn.d_tag == DT_RPATH)
			rpath = elf_strptr(elf, sh->sh_link, dyn.d_un.d_val);
		else if (dyn.d_tag == DT_RUNPATH)
			runpath = elf_strptr(elf, sh->sh_link, dyn.d_un.d_val);
	}
	for (i = 0; data && i < n && !ret && gelf_getdyn(data, i, &dyn); i++) {
		if (dyn.d_tag != DT_NEEDED)
			continue;
		name = elf_strptr(elf, sh->sh_link, dyn.d_un.d_val);
		if (!name || !*name)
			continue;
		found = find_library(name, runpath ? runpath : rpath, origin, eh);
		if (!found) {
			*missing = text("%s", name);
			return -1;
		}
		ret = need(found, arg);
		free(found);
	}
	return ret;
}

int elf_needs(int fd, const char *path, int (*need)(const char *path, void *arg), void *arg,
	      char **missing)
{
	const char *slash = strrchr(path, '/');
	char *origin = text("%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	size_t i, n = 0, size;
	Elf_Scn *scn = NULL;
	GElf_Ehdr eh;
	GElf_Phdr ph;
	GElf_Shdr sh;
	int ret = 0;
	Elf *elf;
	char *raw;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh) ||
	    (eh.e_type != ET_EXEC && eh.e_type != ET_DYN) || elf_getphdrnum(elf, &n))
		goto cleanup;
	raw = elf_rawfile(elf, &size);
	for (i = 0; i < n && !ret && raw && gelf_getphdr(elf, i, &ph); i++) {
		if (ph.p_type == PT_INTERP && ph.p_offset < size &&
		    memchr(raw + ph.p_offset, 0, size - ph.p_offset))
			ret = need(raw + ph.p_offset, arg);
	}
	while (!ret && (scn = elf_nextscn(elf, scn))) {
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_DYNAMIC)
			ret = needs_of_dynamic(elf, scn, &sh, &eh, origin, need, arg, missing);
	}
cleanup:
	elf_end(elf);
	free(origin);
	return ret;
}

const char *elf_modinfo(char *image, size_t len, const char *key, const char *prev)
{
	size_t shstr, key_len = strlen(key);
	const char *found = NULL, *p, *end;
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	GElf_Shdr sh;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_memory(image, len);
	if (!elf || elf_getshdrstrndx(elf, &shstr))
		goto cleanup;
	while (!found && (scn = elf_nextscn(elf, scn))) {
		const char *name = gelf_getshdr(scn, &sh) ? elf_strptr(elf, shstr, sh.sh_name)
							  : NULL;

		if (!name || strcmp(name, ".modinfo") || sh.sh_offset >= len ||
		    sh.sh_size > len - sh.sh_offset)
			continue;
		/* From the image itself, which outlives the ELF handle. */
		data = elf_getdata(scn, NULL);
		p = image + sh.sh_offset;
		end = data ? p + sh.sh_size : p;
		for (; p < end && !found; p += strnlen(p, end - p) + 1) {
			if ((!prev || p > prev) && (size_t)(end - p) > key_len &&
			    !strncmp(p, key, key_len) && p[key_len] == '=' &&
			    memchr(p, 0, end - p))
				found = p + key_len + 1;
		}
	}
cleanup:
	elf_end(elf);
	return found;
}
