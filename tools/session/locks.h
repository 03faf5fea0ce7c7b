/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_LOCKS_H
#define MMSCOPE_LOCKS_H

#include "session/plan.h"
#include "session/session.h"

struct fault;

/*
 * Of the programs that are to be loaded, what waits for locks need: maps of what is
 * not asked for are not made.
 */
void locks_configure(struct fault *skel, const struct plan *plan,
		     const struct session_options *opts);

#endif
