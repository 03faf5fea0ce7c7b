// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/err.h"
#include "vm/getfile.h"
#include "vm/host.h"

struct get_file {
	char *file, *local;
	bool done;
	int error;		/* errno of the guest's or of our side */
	bool ours;		/* of ours */
};

struct get_files {
	struct get_file *f;
	size_t n;
	struct get_file *now;	/* being received */
	char *temp;
	int fd;
	unsigned int mode;
};

int get_spec(const char *spec, char **file, char **local)
{
	const char *colon = strchr(spec, ':'), *base;

	*file = text("%.*s", colon ? (int)(colon - spec) : (int)strlen(spec), spec);
	base = strrchr(*file, '/') ? strrchr(*file, '/') + 1 : *file;
	*local = text("%s", colon ? colon + 1 : base);
	if (!**file || !*base || !**local) {
		err("--get", "'%s' is not FILE or FILE:LOCAL", spec);
		free(*file);
		free(*local);
		return -1;
	}
	return 0;
}

struct get_files *get_files_new(const struct option_list *specs)
{
	struct get_files *g = calloc(1, sizeof(*g));
	size_t i;

	if (!g)
		return NULL;
	g->fd = -1;
	g->f = calloc(specs->n + 1, sizeof(*g->f));
	for (i = 0; g->f && i < specs->n; i++)
		if (!get_spec(specs->item[i], &g->f[g->n].file, &g->f[g->n].local))
			g->n++;
	return g;
}

static void drop(struct get_files *g)
{
	if (g->fd >= 0)
		close(g->fd);
	if (g->temp)
		unlink(g->temp);
	free(g->temp);
	g->temp = NULL;
	g->fd = -1;
}

static void fail(struct get_files *g)
{
	if (!g->now->error) {
		g->now->error = errno;
		g->now->ours = true;
	}
	drop(g);
}

void get_files_begin(struct get_files *g, const struct vm_file *head)
{
	drop(g);
	g->now = head->index < g->n ? &g->f[head->index] : NULL;
	if (!g->now)
		return;
	g->now->error = head->error;
	g->mode = head->mode;
	if (head->error)
		return;
	g->temp = text("%s.XXXXXX", g->now->local);
	g->fd = mkstemp(g->temp);
	if (g->fd < 0) {
		free(g->temp);
		g->temp = NULL;
		fail(g);
	}
}

void get_files_data(struct get_files *g, const void *data, size_t len)
{
	const char *p = data;

	while (g->now && g->fd >= 0 && len) {
		ssize_t n = write(g->fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			fail(g);
			return;
		}
		p += n;
		len -= n;
	}
}

void get_files_end(struct get_files *g, int error)
{
	if (!g->now || g->fd < 0)
		return;
	if (error) {
		g->now->error = error;
		drop(g);
		return;
	}
	fchmod(g->fd, g->mode ? g->mode : 0644);
	if (close(g->fd) || rename(g->temp, g->now->local)) {
		g->fd = -1;
		fail(g);
		return;
	}
	g->fd = -1;
	free(g->temp);
	g->temp = NULL;
	g->now->done = true;
}

size_t get_files_missing(struct get_files *g)
{
	size_t i, missing = 0;

	for (i = 0; i < g->n; i++) {
		if (g->f[i].done)
			continue;
		missing++;
		err("--get", g->f[i].ours ? "'%s' cannot be written here as '%s': %s" :
					    "'%s' did not come back as '%s': %s",
		    g->f[i].file, g->f[i].local,
		    g->f[i].error ? strerror(g->f[i].error) : "the guest ended before");
	}
	return missing;
}

void get_files_free(struct get_files *g)
{
	size_t i;

	if (!g)
		return;
	drop(g);
	for (i = 0; i < g->n; i++) {
		free(g->f[i].file);
		free(g->f[i].local);
	}
	free(g->f);
	free(g);
}
