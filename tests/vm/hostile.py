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
OLD = "deaths,killed,two,ftrace,privileges"
# Kernel, groups of tests done there, --exact or not, further options of the VM.
GUESTS = (("7.3", ALL, "exact", ()), ("7.3", "memory", "", ("--cpus", "2,max=96")),
          ("6.1", OLD, "", ()))

guest.library()
for program in ("robust", "worker"):
    guest.compiled(program, "-pthread", "-Wall", "-Wextra", "-Werror")
copies = [f"{TMP}/robust:/usr/bin/robust", f"{TMP}/worker:/usr/bin/worker",
          f"{LIB}/observer.py:/root/observer.py"]
copies += [os.path.realpath(shutil.which(tool)) + f":/usr/bin/{tool}"
           for tool in ("setpriv", "prlimit")]
# By hand: hostile.py 7.3=deaths,two 6.1
chosen = dict((word.split("=") + [None])[:2] for word in sys.argv[1:])
for kernel, groups, exact, vm in GUESTS:
    if kernel in (chosen or ("7.3",)) and (not chosen.get(kernel) or not vm or
                                           chosen[kernel] == groups):
        guest.run(kernel, "hostile_guest", (chosen.get(kernel) or groups, exact), copies, vm)
tap.finish()
