/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_RESTORE_H
#define MMSCOPE_RESTORE_H

/*
 * What a workload changed in the system and must put back, also when a signal
 * ends it. Register the undoing before the change. 0, or -1 if there is no room.
 */
int restore_write(const char *path, const char *value);
int restore_unlink(const char *path);

/* Undo all, last first. Runs by itself at exit() and on SIGHUP, SIGINT, SIGQUIT, SIGTERM. */
void restore_all(void);

#endif
