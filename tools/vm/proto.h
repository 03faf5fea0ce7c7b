/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_VM_PROTO_H
#define MMSCOPE_VM_PROTO_H

#include <stdint.h>

/*
 * What host and guest say to each other. Both ends are the same binary, so
 * there is no version and no byte order to agree on.
 *
 * The plan is a file in the initramfs: pairs of strings, each ended by a 0
 * byte, a key of the list below and its value.
 */
#define PLAN_PATH	"/mmscope/plan"
#define PLAN_EXEC	"exec"		/* path that is executed */
#define PLAN_ARG	"arg"		/* argv, in order */
#define PLAN_ENV	"env"		/* NAME=VALUE */
#define PLAN_MODULE	"module"	/* path of a module, in load order */
#define PLAN_GET	"get"		/* file to send back */
#define PLAN_TTY	"tty"		/* "ROWSxCOLUMNS": a shell on the second serial port */
#define PLAN_PROBE	"probe"		/* only say hello: does this accelerator boot? */

/* Names of the virtio-serial ports. */
#define PORT_CTL	"mmscope.ctl"
#define PORT_OUT	"mmscope.out"
#define PORT_ERR	"mmscope.err"
#define TTY_DEVICE	"/dev/ttyS1"

#define GUEST_HOME	"/root"

/* The last line on the console: everything that the kernel had to say came before it. */
#define END_MARKER	"mmscope: end of run"

/* Messages on PORT_CTL: a header, then len bytes. */
struct vm_msg {
	uint32_t type;
	uint32_t len;
};
#define VM_MSG_MAX	32768	/* bytes of payload */

enum vm_msg_type {
	/* guest to host */
	MSG_HELLO = 1,		/* init runs; uname -r */
	MSG_STARTED,		/* the command is about to be executed */
	MSG_FAULT,		/* text: init cannot go on */
	MSG_NO_EXEC,		/* uint32_t errno: the command could not be executed */
	MSG_EXIT,		/* uint32_t: exit status, 128 + signal */
	MSG_FILE,		/* struct vm_file: MSG_DATA follow */
	MSG_DATA,		/* bytes of that file */
	MSG_FILE_END,		/* uint32_t errno of reading it, 0: complete */
	MSG_DONE,		/* struct vm_done: nothing follows */
	MSG_PONG,
	/* host to guest */
	MSG_PING,
	MSG_BYE,		/* all received: power off */
};

struct vm_file {
	uint32_t index;		/* the how-manieth PLAN_GET */
	uint32_t error;		/* errno: not there, no MSG_DATA follow */
	uint32_t mode;
};

struct vm_done {
	uint64_t out, err;	/* bytes written to the ports */
};

#endif
