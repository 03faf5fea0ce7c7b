/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_STATUS_H
#define MMSCOPE_STATUS_H

/*
 * Exit statuses (docs/mmscope.1). An observing command, vm and bench pass on
 * the status of the command that they ran.
 */
enum exit_status {
	EXIT_OK		 = 0,
	EXIT_USAGE	 = 2,	/* wrong option, argument or combination */
	EXIT_UNOBSERVED	 = 3,	/* nothing can be observed here; command not started */
	EXIT_INPUT	 = 4,	/* damaged or unreadable input file */
	EXIT_INTERNAL	 = 70,
	EXIT_GUEST	 = 71,	/* vm: panic, hang, out of memory, splat, result lost */
	EXIT_TIMEOUT	 = 124,
	EXIT_NO_EXEC	 = 126,	/* vm: also a kernel that cannot be had or booted */
	EXIT_NOT_FOUND	 = 127,

	/* Of commands that judge (diff, check): what git bisect run takes them for. */
	EXIT_WORSE	   = 1,	/* a decided failure */
	EXIT_NO_VERDICT	   = 125,	/* everything that is not a verdict: skip */
	EXIT_VERDICT_USAGE = 129,	/* usage or internal error: stop, blame nothing */
};

#endif
