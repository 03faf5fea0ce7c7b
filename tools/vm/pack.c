// SPDX-License-Identifier: GPL-2.0-only
/* Programs and files of the host, packed with all that they need to run. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/status.h"
#include "data/err.h"
#include "vm/elfneeds.h"
#include "vm/host.h"
#include "vm/pack.h"
#include "vm/proto.h"

#define MAX_LINKS 40

/* Hidden in the guest by what init mounts there. */
static const char *const hidden_dirs[] = { "/proc", "/sys", "/dev" };

/* What a shell is of little use without. */
static const char *const shell_tools[] = {
	"cat", "cp", "cut", "date", "dd", "df", "dmesg", "echo", "env", "expr", "false", "free",
	"grep", "head", "id", "kill", "ln", "ls", "mkdir", "mknod", "mount", "mv", "nproc", "od",
	"ps", "pwd", "readlink", "rm", "rmdir", "sed", "seq", "sh", "sha256sum", "sleep", "sort",
	"stat", "stty", "swapoff", "swapon", "sync", "sysctl", "tail", "taskset", "tee", "test",
	"timeout", "touch", "tr", "true", "truncate", "tty", "umount", "uname", "uniq", "wc",
	"xargs",
};

struct packing {
	struct archive *ar;
	bool lenient;		/* in a tree: what cannot run there is packed all the same */
	int depth;
	bool shell;		/* a shell came by */
};

static int add_path(struct packing *p, const char *path, bool tree);

static int fail(const char *path)
{
	err("%s", "cannot be packed: %s", path, strerror(errno));
	return EXIT_NO_EXEC;
}

static bool is_hidden(const char *path)
{
	size_t i, n;

	for (i = 0; i < sizeof(hidden_dirs) / sizeof(*hidden_dirs); i++) {
		n = strlen(hidden_dirs[i]);
		if (!strncmp(path, hidden_dirs[i], n) && (!path[n] || path[n] == '/'))
			return true;
	}
	return false;
}

/* Absolute, without empty, "." and ".." components; links before a ".." are followed. */
static char *absolute(const char *path)
{
	char *cwd, *full, *dir, *base, *real, *out;

	if (*path == '/') {
		full = text("%s", path);
	} else {
		cwd = getcwd(NULL, 0);
		full = text("%s/%s", cwd ? cwd : "", path);
		free(cwd);
	}
	/* Drops "//", "/./" and a "/" or "/." at the end. */
	for (base = out = full; *base; base++) {
		if (*base == '/' && (base[1] == '/' || !base[1]))
			continue;
		if (*base == '/' && base[1] == '.' && (base[2] == '/' || !base[2])) {
			base++;
			continue;
		}
		*out++ = *base;
	}
	*out = 0;
	if (!*full)
		strcpy(full, "/");
	if (!strstr(full, "/.."))
		return full;
	base = strrchr(full, '/');
	if (!strcmp(base, "/..")) {
		real = realpath(full, NULL);
	} else {
		*base = 0;
		dir = realpath(full, NULL);
		real = dir ? text("%s/%s", strcmp(dir, "/") ? dir : "", base + 1) : NULL;
		free(dir);
		*base = '/';
	}
	if (!real)
		return full;
	free(full);
	return real;
}

static int need(const char *path, void *arg)
{
	struct packing *p = arg;
	char *full = absolute(path);
	int ret = add_path(p, full, false);

	free(full);
	return ret;
}

static int add_program(struct packing *p, const char *name)
{
	char *path = find_program(name), *full;
	int ret;

	if (!path)
		return 0;
	full = absolute(path);
	ret = add_path(p, full, false);
	free(full);
	free(path);
	return ret;
}

static bool is_shell(const char *path)
{
	static const char *const shells[] = { "sh", "dash", "bash", "ksh", "zsh" };
	const char *base = strrchr(path, '/');
	size_t i;

	base = base ? base + 1 : path;
	for (i = 0; i < sizeof(shells) / sizeof(*shells); i++)
		if (!strcmp(base, shells[i]))
			return true;
	return false;
}

static int add_interpreter(struct packing *p, const char *script, int fd)
{
	char line[256], *name, *word, *save;
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);
	struct stat st;
	int ret;

	if (n < 4 || line[0] != '#' || line[1] != '!')
		return 0;
	line[n] = 0;
	line[strcspn(line, "\r\n")] = 0;
	name = strtok_r(line + 2, " \t", &save);
	if (!name || *name != '/')
		return 0;
	if (stat(name, &st)) {
		if (p->lenient)
			return 0;
		err("%s", "its interpreter %s is not there", script, name);
		return EXIT_NO_EXEC;
	}
	p->shell |= is_shell(name);
	ret = need(name, p);
	if (ret || !strstr(name, "/env"))
		return ret;
	while ((word = strtok_r(NULL, " \t", &save)) && (*word == '-' || strchr(word, '=')))
		;
	if (!word)
		return 0;
	p->shell |= is_shell(word);
	return add_program(p, word);
}

static int add_needs(struct packing *p, const char *path, int fd, mode_t mode)
{
	char *missing = NULL;
	int ret;

	ret = elf_needs(fd, path, need, p, &missing);
	if (missing) {
		ret = 0;
		if (!p->lenient) {
			err("%s", "needs %s, which is not found", path, missing);
			ret = EXIT_NO_EXEC;
		}
		free(missing);
	}
	if (!ret && (mode & 0111))
		ret = add_interpreter(p, path, fd);
	return ret;
}

/* Regular file at path goes to dest. */
static int add_file(struct packing *p, const char *path, const char *dest)
{
	struct stat st;
	int fd, ret;

	if (archive_find(p->ar, dest))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		ret = fail(path);
	else if (archive_file(p->ar, dest, st.st_mode, fd))
		ret = fail(path);
	else
		ret = add_needs(p, path, fd, st.st_mode);
	if (fd >= 0)
		close(fd);
	return ret;
}

/* All entries of the directory path, to the same names below dest. */
static int add_tree(struct packing *p, const char *path, const char *dest)
{
	bool same = !strcmp(path, dest);
	DIR *dir = opendir(path);
	struct dirent *d;
	int ret = 0;

	if (!dir)
		return fail(path);
	while (!ret && (d = readdir(dir))) {
		char *from, *to, *target;
		struct stat st, to_st;

		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		from = text("%s/%s", strcmp(path, "/") ? path : "", d->d_name);
		to = text("%s/%s", strcmp(dest, "/") ? dest : "", d->d_name);
		if (lstat(from, &st)) {
			ret = fail(from);
		} else if (S_ISDIR(st.st_mode)) {
			if (archive_dir(p->ar, to, st.st_mode))
				ret = fail(from);
			else
				ret = add_tree(p, from, to);
		} else if (S_ISREG(st.st_mode)) {
			ret = add_file(p, from, to);
		} else if (S_ISLNK(st.st_mode)) {
			target = calloc(1, st.st_size + 1);
			if (!target || readlink(from, target, st.st_size) < 0 ||
			    archive_link(p->ar, to, target))
				ret = fail(from);
			/* A link to a directory could pull in the whole host. */
			else if (same && !stat(from, &to_st) && S_ISREG(to_st.st_mode)) {
				char *real = realpath(from, NULL);

				ret = real && !is_hidden(real) ? add_path(p, real, false) : 0;
				free(real);
			}
			free(target);
		}
		free(from);
		free(to);
	}
	closedir(dir);
	return ret;
}

static int follow_link(struct packing *p, char *link, const char *rest, bool tree)
{
	char target[4096], *next, *full;
	ssize_t n = readlink(link, target, sizeof(target) - 1);
	int ret;

	if (n < 0 || p->depth >= MAX_LINKS) {
		errno = n < 0 ? errno : ELOOP;
		return fail(link);
	}
	target[n] = 0;
	if (archive_link(p->ar, link, target))
		return fail(link);
	if (*target == '/')
		next = text("%s%s", target, rest);
	else
		next = text("%.*s/%s%s", (int)(strrchr(link, '/') - link), link, target, rest);
	full = absolute(next);
	p->depth++;
	ret = add_path(p, full, tree);
	p->depth--;
	free(full);
	free(next);
	return ret;
}

/* path, which is absolute(), as it is on the host: links on the way stay links. */
static int add_path(struct packing *p, const char *path, bool tree)
{
	char *copy = text("%s", path), *slash = copy;
	struct stat st;
	int ret = 0;

	while (slash && !ret) {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = 0;
		if (lstat(copy, &st)) {
			ret = fail(path);
		} else if (S_ISLNK(st.st_mode)) {
			char *rest = slash ? text("/%s", slash + 1) : text("%s", "");

			ret = follow_link(p, copy, rest, tree);
			free(rest);
			break;
		} else if (S_ISDIR(st.st_mode)) {
			if (strcmp(copy, "/") && archive_dir(p->ar, copy, st.st_mode))
				ret = fail(path);
			else if (!slash && tree)
				ret = add_tree(p, copy, copy);
		} else if (S_ISREG(st.st_mode) && !slash) {
			ret = add_file(p, copy, copy);
		} else {
			err("%s", "is neither a file nor a directory", path);
			ret = EXIT_NO_EXEC;
		}
		if (slash)
			*slash = '/';
	}
	free(copy);
	return ret;
}

int pack_base(struct archive *ar)
{
	static const char *const links[] = { "/bin", "/sbin", "/lib", "/lib64", "/lib32" };
	static const char *const dirs[] = { "/dev", "/proc", "/sys", "/tmp", "/run", "/etc",
					    "/usr/bin", "/mnt", "/var/tmp", "/mmscope",
					    GUEST_HOME };
	struct packing p = { .ar = ar };
	struct stat st;
	int ret = 0, fd;
	size_t i;

	for (i = 0; i < sizeof(links) / sizeof(*links) && !ret; i++)
		if (!lstat(links[i], &st))
			ret = add_path(&p, links[i], false);
	for (i = 0; i < sizeof(dirs) / sizeof(*dirs) && !ret; i++)
		if (archive_dir(ar, dirs[i], strstr(dirs[i], "tmp") ? 01777 : 0755))
			ret = fail(dirs[i]);
	if (ret)
		return ret;
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || archive_file(ar, GUEST_MMSCOPE, 0755, fd) ||
	    archive_link(ar, "/init", GUEST_MMSCOPE))
		ret = fail("mmscope");
	else	/* nothing, if the binary is static */
		ret = add_needs(&p, GUEST_MMSCOPE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (!ret && !stat("/etc/ld.so.cache", &st))
		ret = add_path(&p, "/etc/ld.so.cache", false);
	return ret;
}

static int add_shell_tools(struct packing *p)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < sizeof(shell_tools) / sizeof(*shell_tools) && !ret; i++)
		ret = add_program(p, shell_tools[i]);
	return ret;
}

int pack_copy(struct archive *ar, const char *spec)
{
	const char *colon = strrchr(spec, ':');
	char *from = text("%.*s", colon ? (int)(colon - spec) : (int)strlen(spec), spec);
	char *path = NULL, *found = NULL, *dest = NULL;
	struct packing p = { .ar = ar };
	int ret = EXIT_USAGE;
	struct stat st;

	if (colon && colon[1] != '/') {
		err("--copy", "'%s' is not FILE or FILE:DEST with DEST an absolute path", spec);
		goto cleanup;
	}
	if (stat(from, &st) && !strchr(from, '/'))
		found = find_program(from);
	path = absolute(found ? found : from);
	dest = colon ? absolute(colon + 1) : NULL;
	if (stat(path, &st)) {
		err("--copy", "'%s' cannot be read: %s", from, strerror(errno));
		goto cleanup;
	}
	if (is_hidden(dest ? dest : path)) {
		err("--copy", "'%s' would be hidden in the guest by what is mounted there; give FILE:DEST",
		    spec);
		goto cleanup;
	}
	p.lenient = S_ISDIR(st.st_mode);
	if (!ar) {
		ret = 0;	/* only asked whether it can be */
	} else if (!dest) {
		ret = add_path(&p, path, true);
	} else if (S_ISDIR(st.st_mode)) {
		ret = archive_dir(ar, dest, st.st_mode) ? fail(path) : add_tree(&p, path, dest);
	} else if (archive_find(ar, dest)) {
		err("--copy", "'%s': something is at %s already", spec, dest);
	} else {
		ret = add_file(&p, path, dest);
	}
	if (!ret && p.shell && !p.lenient)
		ret = add_shell_tools(&p);
cleanup:
	free(from);
	free(found);
	free(path);
	free(dest);
	return ret;
}

/* True if a program found there is also found by name in the guest. */
static bool on_guest_path(const char *path)
{
	const char *slash = strrchr(path, '/'), *p, *end;

	for (p = GUEST_PATH; *p; p = *end ? end + 1 : end) {
		end = strchrnul(p, ':');
		if (end - p == slash - path && !strncmp(p, path, end - p))
			return true;
	}
	return false;
}

/* *word, a program of the command line. optional: the guest may know what it is. */
static int add_word(struct packing *p, char **word, bool optional, char **exec)
{
	char *found, *full;
	int ret;

	if (!strcmp(*word, "mmscope")) {
		*exec = text("%s", GUEST_MMSCOPE);
		return 0;
	}
	found = find_program(*word);
	if (!found) {
		if (optional)
			return 0;
		if (strchr(*word, '/') && !access(*word, F_OK)) {
			err("%s", "cannot be executed: not an executable file", *word);
			return EXIT_NO_EXEC;
		}
		err("%s", "no such program on this machine", *word);
		return EXIT_NOT_FOUND;
	}
	full = absolute(found);
	free(found);
	if (is_hidden(full)) {
		err("%s", "cannot be packed: hidden in the guest by what is mounted there", full);
		free(full);
		return EXIT_NO_EXEC;
	}
	p->shell |= is_shell(full);
	ret = add_path(p, full, false);
	if (optional && (strchr(*word, '/') ? **word != '/' : !on_guest_path(full)))
		*word = text("%s", full);
	*exec = full;
	return ret;
}

int pack_command(struct archive *ar, char **argv, char **exec)
{
	struct packing p = { .ar = ar };
	char *inner = NULL;
	int ret, i;

	*exec = NULL;
	ret = add_word(&p, &argv[0], false, exec);
	/* mmscope fault -- mmscope bench ..., mmscope fault -- python3 ... */
	for (i = 1; !ret && argv[i] && !strcmp(*exec, GUEST_MMSCOPE); i++) {
		if (strcmp(argv[i], "--") || !argv[i + 1])
			continue;
		ret = add_word(&p, &argv[i + 1], true, &inner);
		if (!inner || strcmp(inner, GUEST_MMSCOPE))
			break;
		free(inner);
		inner = NULL;
	}
	free(inner);
	if (!ret && p.shell)
		ret = add_shell_tools(&p);
	return ret;
}
