// SPDX-License-Identifier: GPL-2.0-only
/* Kernels that are built from mmscope's source tree: vanilla and patched. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/status.h"
#include "data/err.h"
#include "vm/host.h"
#include "vm/kernel.h"

#define BUILD "kernel/build"

bool kernel_is_built(const char *spec)
{
	size_t n = strcspn(spec, ":+");

	return (n == 7 && (!strncmp(spec, "vanilla", n) || !strncmp(spec, "patched", n)));
}

/* The nearest directory at or above path that is the source tree; NULL if none. */
static char *tree_above(const char *path)
{
	char *dir = text("%s", path), *slash;

	for (;;) {
		char *build = text("%s/" BUILD, dir);
		bool found = !access(build, X_OK);

		free(build);
		if (found)
			return dir;
		slash = strrchr(dir, '/');
		if (!slash)
			break;
		*slash = 0;
	}
	free(dir);
	return NULL;
}

/* --tree, or where we are, or where this binary lies: in the tree that it was built in. */
static char *find_tree(const char *spec, const char *given, const char *self)
{
	char *path = NULL, *cwd, *found = NULL;

	if (given) {
		path = text("%s/" BUILD, given);
		if (access(path, X_OK))
			err("--tree", "%s is not mmscope's source tree: it has no " BUILD, given);
		else
			found = text("%s", given);
		free(path);
		return found;
	}
	cwd = getcwd(NULL, 0);
	if (cwd)
		found = tree_above(cwd);
	if (!found)
		found = tree_above(self);
	if (!found)
		err("kernel %s", "is built from mmscope's source tree: go there, or name it with "
				 "--tree", spec);
	free(cwd);
	return found;
}

int kernel_build(const char *spec, const char *given, struct kernel **kernel)
{
	char *self = realpath("/proc/self/exe", NULL), *tree = NULL, *build = NULL, *out = NULL;
	char *end;
	int ret = EXIT_NO_EXEC;

	*kernel = NULL;
	tree = find_tree(spec, given, self ? self : "");
	if (!tree)
		goto cleanup;
	build = text("%s/" BUILD, tree);
	/* It calls us for the source. */
	if (self)
		setenv("MMSCOPE", self, 1);
	/* Its own error line, and its progress, are on our stderr. */
	char *argv[] = { build, (char *)spec, NULL };

	if (run_program(argv, NULL, 0, &out, NULL, PASS_STDERR, NULL, NULL) || !out)
		goto cleanup;
	for (end = out + strlen(out); end > out && end[-1] == '\n';)
		*--end = 0;
	end = strrchr(out, '\n');
	*kernel = kernel_of_build(end ? end + 1 : out);
	if (*kernel)
		ret = 0;
	else
		err("kernel %s", "%s holds no kernel; remove it to have it built anew", spec, out);
cleanup:
	free(self);
	free(tree);
	free(build);
	free(out);
	return ret;
}
