#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1500
"""Faults that never end, tracers of tracers, little privilege: mmscope fault stays right.

The tests run inside a guest: lib/hostile_guest.py. This suite boots the newest kernel,
hostile_6.1.sh that one.
"""
import os
import shutil
import sys

import guest
from guest import LIB, TMP
import tap

# How a tracer ends is the same code on all kernels; privileges cannot be undone.
ALL = "deaths,killed,ends,two,ftrace,privileges"
OLD = "deaths,killed,two,privileges"
# Kernel, groups of tests done there, --exact or not, further options of the VM.
GUESTS = (("7.3", ALL, "exact", ()), ("7.3", "memory", "", ("--cpus", "2,max=96")),
          ("6.1", OLD, "", ()),
          # A guest of its own: once a tracer ended while ftrace was off, the next one's end
          # makes this kernel warn and give up all tracing (ftrace_shutdown()).
          ("6.1", "ftrace", "", ()))

guest.library()
for program in ("robust", "worker"):
    guest.compiled(program, "-pthread", "-Wall", "-Wextra", "-Werror")
copies = [f"{TMP}/robust:/usr/bin/robust", f"{TMP}/worker:/usr/bin/worker",
          f"{LIB}/observer.py:/root/observer.py"]
copies += [os.path.realpath(shutil.which(tool)) + f":/usr/bin/{tool}"
           for tool in ("setpriv", "prlimit")]
# By hand: hostile.py 7.3=deaths,two 6.1
chosen = dict((word.split("=") + [None])[:2] for word in sys.argv[1:] or ["7.3"])
for kernel, groups in chosen.items():
    rows = [row for row in GUESTS if row[0] == kernel]
    if groups:
        rows = [row for row in rows if row[1] == groups] or \
            [(kernel, groups, rows[0][2], ())]
    for _, case, exact, vm in rows:
        guest.run(kernel, "hostile_guest", (case, exact), copies, vm)
tap.finish()
