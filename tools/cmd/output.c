// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/output.h"
#include "data/err.h"

int output_open(struct output *out, const char *path, FILE *standard)
{
	struct stat st;
	mode_t mask;
	int fd;

	*out = (struct output){ .f = path ? stdout : standard };
	if (!path || !strcmp(path, "-"))
		return 0;
	out->path = path;
	/* A device, a fifo, a link: written to, not replaced. */
	if (!lstat(path, &st) && !S_ISREG(st.st_mode)) {
		out->f = fopen(path, "we");
		if (!out->f) {
			err("%s", "cannot be written: %s", path, strerror(errno));
			return -1;
		}
		return 0;
	}
	if (snprintf(out->temporary, sizeof(out->temporary), "%s.XXXXXX", path) >=
	    (int)sizeof(out->temporary)) {
		err("-o", "the name is too long");
		return -1;
	}
	fd = mkstemp(out->temporary);
	out->f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out->f) {
		err("%s", "cannot be written: %s", path, strerror(errno));
		return -1;
	}
	/* mkstemp() is for secrets; this is an ordinary file. */
	mask = umask(0);
	umask(mask);
	fchmod(fd, 0666 & ~mask);
	return 0;
}

int output_error(struct output *out, int e)
{
	if (!e || out->failed)
		return out->failed ? -1 : 0;
	out->failed = true;
	out->gone = e == EPIPE;
	if (!out->gone)
		err("%s", "the report cannot be written: %s", out->path ?: "output", strerror(e));
	return -1;
}

int output_flush(struct output *out)
{
	/* A renderer that has flushed already leaves the reason behind. */
	int before = errno;

	errno = 0;
	if (fflush(out->f) || ferror(out->f))
		return output_error(out, errno ?: before ?: EIO);
	return out->failed ? -1 : 0;
}

int output_close(struct output *out)
{
	int ret = output_flush(out);

	if (!out->path)
		return ret;
	if (fclose(out->f) && !ret)
		ret = output_error(out, errno);
	if (!*out->temporary)
		return ret;
	if (!ret && rename(out->temporary, out->path)) {
		/* It is complete, and may have taken hours. */
		out->failed = true;
		err("%s", "cannot be written: %s; %s has it all", out->path, strerror(errno),
		    out->temporary);
		return -1;
	}
	if (ret)
		unlink(out->temporary);
	return ret;
}

int output_keep(struct output *out)
{
	int ret = *out->temporary ? output_flush(out) : -1;

	if (ret) {
		output_discard(out);
		return ret;
	}
	fclose(out->f);
	warn(out->temporary, "what could not go into %s is kept here", out->path);
	return 0;
}

void output_discard(struct output *out)
{
	if (!out->path)
		return;
	fclose(out->f);
	if (*out->temporary)
		unlink(out->temporary);
}
