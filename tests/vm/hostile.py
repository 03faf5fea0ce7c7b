#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 2400
"""Faults that never end, tracers of tracers, little privilege: mmscope fault stays right."""
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import guest
from guest import LIB, TMP

ALL = "deaths,ends,two,privileges"     # the last cannot be undone
# Kernel, groups of tests done there, --exact or not, further options of the VM.
GUESTS = (("7.3", ALL, "exact", ()), ("6.1", ALL, "", ()),
          ("7.3", "memory", "", ("--cpus", "2,max=96")))

guest.library()
for program in ("robust", "worker"):
    guest.compiled(program, "-pthread", "-Wall", "-Wextra", "-Werror")
copies = [f"{TMP}/robust:/usr/bin/robust", f"{TMP}/worker:/usr/bin/worker",
          f"{LIB}/observer.py:/root/observer.py"]
copies += [os.path.realpath(shutil.which(tool)) + f":/usr/bin/{tool}" for tool in ("setpriv",)]
# By hand: hostile.py 7.3=deaths,two 6.1
chosen = dict((word.split("=") + [None])[:2] for word in sys.argv[1:])
for kernel, groups, exact, vm in GUESTS:
    if not chosen or (kernel in chosen and (not vm or chosen[kernel] == groups)):
        guest.run(kernel, "hostile_guest", (chosen.get(kernel) or groups, exact), copies, vm)
sys.exit(guest.finish())
