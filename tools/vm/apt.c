// SPDX-License-Identifier: GPL-2.0-only
/* apt-get and apt-cache, kept apart from the machine's own packages. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "data/err.h"
#include "vm/apt.h"
#include "vm/host.h"

#define NEVER		1000000000L
#define APT_SILENCE	180	/* seconds; apt's own time limits are shorter */

struct apt {
	char *dir;	/* CACHE/apt */
	char *conf;
	char *stamp;	/* its time of change is when the indices were fetched */
};

static const char *const suites[] = { "bookworm", "trixie", "trixie-backports" };
static const char *const security_suites[] = { "bookworm-security", "trixie-security" };

static const char *const keyrings[] = {
	"/usr/share/keyrings/debian-archive-keyring.gpg",
	"/usr/share/keyrings/debian-archive-keyring.pgp",
};

static const char *const parts[] = { "linux-image-", "linux-binary-", "linux-modules-",
				     "linux-base-" };
#define N_PARTS (sizeof(parts) / sizeof(*parts))

struct mirrors {
	char *main, *security;
};

const char *apt_last_line(char *errors)
{
	char *line, *save, *last = NULL, *serious = NULL, *full = NULL;

	for (line = errors ? strtok_r(errors, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		last = line;
		if (!strncmp(line, "E: ", 3) && !serious)
			serious = line + 3;
		if (strstr(line, strerror(ENOSPC)))
			full = line;
	}
	return full ? strerror(ENOSPC) : serious ? serious : last ? last : "no reason given";
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), e = strlen(end);

	return n >= e && !strcmp(s + n - e, end);
}

/* "URI|SUITE|COMPONENT|ORIGIN|LABEL"; apt leaves unknown fields as they stand in the format. */
static void take_mirror(const char *line, void *arg)
{
	struct mirrors *m = arg;
	char *copy = text("%s", line), *field[5], *rest = copy, **slot;
	bool known, debian, security;
	size_t i, n;

	for (i = 0; i < 5; i++)
		field[i] = strsep(&rest, "|");
	if (!field[4] || strcmp(field[2], "main") || !strncmp(field[0], "cdrom:", 6))
		goto out;
	n = strlen(field[0]);
	while (n && field[0][n - 1] == '/')
		field[0][--n] = 0;
	security = ends_with(field[1], "-security");
	known = *field[3] != '$' && *field[3];
	debian = known ? !strcmp(field[3], "Debian") :
			 ends_with(field[0], security ? "/debian-security" : "/debian");
	slot = security ? &m->security : &m->main;
	if (debian && !*slot)
		*slot = text("%s", field[0]);
out:
	free(copy);
}

static int find_mirrors(struct mirrors *m)
{
	char *argv[] = { "apt-get", "indextargets", "--format",
			 "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)|$(LABEL)",
			 "Created-By: Packages", NULL };
	char *errors = NULL;
	int status = run_program(argv, NULL, 0, NULL, NULL, &errors, take_mirror, m);

	if (status == 127)
		err("apt-get", "not found: kernels come from the Debian archive through apt; "
			       "or give a bzImage");
	else if (status && !interrupted())
		err("apt-get", "cannot tell the mirror: %s", apt_last_line(errors));
	else if (!status && !m->main)
		err("apt", "no Debian mirror (component main) in this machine's apt sources; "
			   "add one, or give a bzImage");
	free(errors);
	return status || !m->main ? -1 : 0;
}

static int write_text(const char *path, const char *data)
{
	if (!write_file(path, data, strlen(data)))
		return 0;
	err("%s", "cannot be written: %s", path, strerror(errno));
	return -1;
}

/* Appended to *s, which is freed. */
static void add_text(char **s, char *more)
{
	char *joined = text("%s%s", *s, more);

	free(*s);
	free(more);
	*s = joined;
}

static int write_sources(struct apt *apt, const struct mirrors *m)
{
	char *s = text("# Written by mmscope.\n"), *path;
	const char *keyring = NULL;
	size_t i;
	int ret;

	for (i = 0; i < 2 && !keyring; i++)
		if (!access(keyrings[i], R_OK))
			keyring = keyrings[i];
	if (!keyring) {
		err("%s", "not there: install debian-archive-keyring, which signatures are checked with",
		    keyrings[0]);
		free(s);
		return -1;
	}
	for (i = 0; i < sizeof(suites) / sizeof(*suites); i++)
		add_text(&s, text("deb [arch=amd64 signed-by=%s] %s %s main\n", keyring, m->main,
				  suites[i]));
	for (i = 0; m->security && i < sizeof(security_suites) / sizeof(*security_suites); i++)
		add_text(&s, text("deb [arch=amd64 signed-by=%s] %s %s main\n", keyring,
				  m->security, security_suites[i]));
	path = text("%s/sources.list", apt->dir);
	ret = write_text(path, s);
	free(path);
	free(s);
	return ret;
}

/* The machine's apt.conf stays in force (proxies); hooks, pins and state do not. */
static int write_conf(struct apt *apt)
{
	static const char format[] =
		"#clear APT::Update::Pre-Invoke;\n"
		"#clear APT::Update::Post-Invoke;\n"
		"#clear APT::Update::Post-Invoke-Success;\n"
		"#clear DPkg::Pre-Invoke;\n"
		"#clear DPkg::Post-Invoke;\n"
		"#clear DPkg::Pre-Install-Pkgs;\n"
		"#clear APT::Architectures;\n"
		"APT::Architecture \"amd64\";\n"
		"APT::Architectures { \"amd64\"; };\n"
		"APT::Default-Release \"\";\n"
		/* _apt could not write into a cache in a home directory. */
		"APT::Sandbox::User \"\";\n"
		"APT::Get::AllowUnauthenticated \"false\";\n"
		"Acquire::AllowInsecureRepositories \"false\";\n"
		"Acquire::AllowWeakRepositories \"false\";\n"
		"Acquire::AllowDowngradeToInsecureRepositories \"false\";\n"
		"Acquire::Languages \"none\";\n"
		"Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n"
		"Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled \"false\";\n"
		"Acquire::Retries \"2\";\n"
		"Dir::Etc::sourcelist \"%1$s/sources.list\";\n"
		"Dir::Etc::sourceparts \"-\";\n"
		"Dir::Etc::preferences \"-\";\n"
		"Dir::Etc::preferencesparts \"-\";\n"
		"Dir::State \"%1$s/state\";\n"
		"Dir::State::lists \"%1$s/state/lists\";\n"
		"Dir::State::status \"%1$s/state/status\";\n"
		"Dir::Cache \"%1$s/cache\";\n"
		"Dir::Cache::archives \"%1$s/cache/archives\";\n"
		"Dir::Log \"%1$s/log\";\n";
	static const char *const dirs[] = { "state/lists/partial", "cache/archives/partial",
					    "log" };
	char *s, *path;
	size_t i;
	int ret = 0;

	if (strpbrk(apt->dir, "\"\n;")) {
		err("%s", "apt cannot have this in a path; MMSCOPE_CACHE names another", apt->dir);
		return -1;
	}
	for (i = 0; i < sizeof(dirs) / sizeof(*dirs) && !ret; i++) {
		path = text("%s/%s", apt->dir, dirs[i]);
		ret = make_dirs(path);
		if (ret)
			err("%s", "cannot be made: %s", path, strerror(errno));
		free(path);
	}
	path = text("%s/state/status", apt->dir);
	if (!ret && access(path, F_OK))
		ret = write_text(path, "");
	free(path);
	s = text(format, apt->dir);
	if (!ret)
		ret = write_text(apt->conf, s);
	free(s);
	return ret;
}

struct apt *apt_open(const char *cache)
{
	struct apt *apt = calloc(1, sizeof(*apt));
	struct mirrors m = { 0 };
	int ret;

	if (!apt)
		return NULL;
	unsetenv("APT_CONFIG");
	apt->dir = text("%s/apt", cache);
	apt->conf = text("%s/apt.conf", apt->dir);
	apt->stamp = text("%s/updated", apt->dir);
	setenv("LC_ALL", "C.UTF-8", 1);
	ret = find_mirrors(&m) || write_conf(apt) || write_sources(apt, &m);
	free(m.main);
	free(m.security);
	if (ret) {
		apt_close(apt);
		return NULL;
	}
	return apt;
}

void apt_close(struct apt *apt)
{
	if (!apt)
		return;
	free(apt->dir);
	free(apt->conf);
	free(apt->stamp);
	free(apt);
}

long apt_index_age(const struct apt *apt)
{
	struct stat st;
	time_t now = time(NULL);

	if (stat(apt->stamp, &st) || st.st_mtime > now)
		return NEVER;
	return now - st.st_mtime;
}

/* APT::Status-Fd: "dlstatus:NUMBER:PERCENT:TEXT". */
static void show_status(const char *line, void *arg)
{
	double percent;

	if (sscanf(line, "dlstatus:%*d:%lf:", &percent) == 1)
		progress(false, "%s: %.0f %%", (const char *)arg, percent);
}

static int run_apt(struct apt *apt, const char *what, const char *doing, char *const args[],
		   const char *dir, bool quiet)
{
	char *argv[24] = { "apt-get", "-c", apt->conf, "-qq", "-o", "APT::Status-Fd=1" };
	char *errors = NULL;
	int n = 6, status;

	while (*args && n < 23)
		argv[n++] = *args++;
	status = run_program(argv, dir, APT_SILENCE, NULL, NULL, &errors, show_status,
			     (void *)doing);
	progress_clear();
	if (status && !quiet && !interrupted())
		err("%s", "%s", what,
		    status == 127    ? "apt-get is not installed" :
		    status == SILENT ? "no progress any more; is the network up, is the disk full?" :
				       apt_last_line(errors));
	free(errors);
	return status ? -1 : 0;
}

int apt_update(struct apt *apt, bool quiet)
{
	char *args[] = { "-o", "APT::Update::Error-Mode=any", "update", NULL };

	progress(true, "asking the Debian archive what it has");
	if (run_apt(apt, "package indices cannot be fetched", "package indices", args, NULL, quiet))
		return -1;
	return write_text(apt->stamp, "");
}

struct listing {
	struct apt_index *index;
	char *name;
};

static void take_name(const char *line, void *arg)
{
	char ***names = arg;
	size_t n = 0;

	while ((*names)[n])
		n++;
	*names = realloc(*names, (n + 2) * sizeof(**names));
	if (!*names)
		exit(70);
	(*names)[n] = text("%.*s", (int)strcspn(line, " "), line);
	(*names)[n + 1] = NULL;
}

static void take_version(const char *line, void *arg)
{
	struct listing *l = arg;
	struct apt_package *grown, *p;
	const char *release = NULL;
	size_t i, n;

	if (!strncmp(line, "Package: ", 9)) {
		free(l->name);
		l->name = text("%s", line + 9);
		return;
	}
	if (strncmp(line, "Version: ", 9) || !l->name)
		return;
	for (i = 0; i < N_PARTS && !release; i++) {
		n = strlen(parts[i]);
		if (!strncmp(l->name, parts[i], n))
			release = l->name + n;
	}
	/* linux-image-6.12-cloud-amd64 is no kernel: it depends on the latest. */
	if (release && strchr(release, '.') && strchr(strchr(release, '.') + 1, '.')) {
		grown = realloc(l->index->package, (l->index->n + 1) * sizeof(*grown));
		if (grown) {
			l->index->package = grown;
			p = &grown[l->index->n++];
			p->part = parts[i - 1];
			p->release = text("%s", release);
			p->version = text("%s", line + 9);
		}
	}
	free(l->name);
	l->name = NULL;
}

int apt_list(struct apt *apt, struct apt_index *index)
{
	char *search[] = { "apt-cache", "-c", apt->conf, "search", "--names-only",
			   "^linux-(image|binary|modules|base)-[0-9][^-]*(-[0-9]+)?-cloud-amd64$",
			   NULL };
	char **names = calloc(6, sizeof(*names)), *errors = NULL;
	struct listing l = { .index = index };
	size_t i;
	int status;

	if (!names)
		return -1;
	names[0] = text("apt-cache");
	names[1] = text("-c");
	names[2] = text("%s", apt->conf);
	names[3] = text("show");
	names[4] = text("--no-all-versions");
	status = run_program(search, NULL, 0, NULL, NULL, &errors, take_name, &names);
	if (!status && names[5]) {
		free(errors);
		status = run_program(names, NULL, 0, NULL, NULL, &errors, take_version, &l);
	}
	if (status && !interrupted())
		err("package indices cannot be read", "%s", apt_last_line(errors));
	free(errors);
	free(l.name);
	for (i = 0; names[i]; i++)
		free(names[i]);
	free(names);
	return status ? -1 : 0;
}

void apt_index_free(struct apt_index *index)
{
	size_t i;

	for (i = 0; i < index->n; i++) {
		free(index->package[i].release);
		free(index->package[i].version);
	}
	free(index->package);
	*index = (struct apt_index){ 0 };
}

static bool in_index(const struct apt_index *index, const char *part, const struct apt_package *p)
{
	size_t i;

	for (i = 0; i < index->n; i++)
		if (!strcmp(index->package[i].part, part) &&
		    !strcmp(index->package[i].release, p->release) &&
		    !strcmp(index->package[i].version, p->version))
			return true;
	return false;
}

int apt_download(struct apt *apt, const struct apt_index *index, const struct apt_package *p,
		 const char *dir, bool quiet)
{
	char *args[N_PARTS + 2] = { "download" }, *what = NULL, *doing = NULL;
	bool whole = !strcmp(p->part, "linux-image-");
	int n = 1, ret = 0;
	size_t i;

	for (i = 0; i < N_PARTS; i++) {
		if (whole ? strcmp(parts[i], p->part) : !strcmp(parts[i], "linux-image-"))
			continue;
		if (in_index(index, parts[i], p))
			args[n++] = text("%s%s=%s", parts[i], p->release, p->version);
		else if (!quiet)
			warn("kernel %s", "%s%s has left the archive; the kernel goes without",
			     p->release, parts[i], p->release);
		else
			ret = -1;	/* an old index; a new one may say otherwise */
	}
	if (ret)
		goto cleanup;
	what = text("kernel %s: cannot be downloaded", p->release);
	doing = text("kernel %s: downloading", p->release);
	progress(true, "kernel %s: downloading from the Debian archive", p->release);
	ret = run_apt(apt, what, doing, args, dir, quiet);
cleanup:
	while (--n)
		free(args[n]);
	free(what);
	free(doing);
	return ret;
}

struct version_taker {
	void (*take)(const char *version, void *arg);
	void *arg;
};

/* "package | version | where from" */
static void take_row(const char *line, void *arg)
{
	const char *bar = strchr(line, '|');
	struct version_taker *t = arg;
	char version[64];

	if (bar && sscanf(bar + 1, " %63[^ |]", version) == 1)
		t->take(version, t->arg);
}

int apt_versions(struct apt *apt, const char *package,
		 void (*take)(const char *version, void *arg), void *arg)
{
	char *argv[] = { "apt-cache", "-c", apt->conf, "madison", (char *)package, NULL };
	struct version_taker t = { take, arg };
	char *errors = NULL;
	int status = run_program(argv, NULL, 0, NULL, NULL, &errors, take_row, &t);

	if (status && !interrupted())
		err("package indices cannot be read", "%s", apt_last_line(errors));
	free(errors);
	return status ? -1 : 0;
}

int apt_download_one(struct apt *apt, const char *spec, const char *dir)
{
	char *args[] = { "download", (char *)spec, NULL };
	char *what = text("%s: cannot be downloaded", spec);
	char *doing = text("%s: downloading", spec);
	int ret;

	progress(true, "%s: downloading from the Debian archive", spec);
	ret = run_apt(apt, what, doing, args, dir, false);
	free(what);
	free(doing);
	return ret;
}
