#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1500
"""mmscope fault misses nothing, survives signals, leaves nothing, and says what is wrong.

The tests run inside a guest of each kernel: lib/robust_guest.py. This suite boots the
newest one, tests/long/kernels.sh the others.
"""
import os
import shutil
import sys

import guest
from guest import TMP
import tap

SOME = "exact,killed-exact"
MOST = SOME + ",default,interrupted"
# What follows is the same code on all kernels.
ALL = MOST + ",killed,signals,statuses,output,hostile,timed,control"
# Kernel, groups of tests done there, short-lived children.
KERNELS = (("7.3", ALL, 2000), ("6.1", MOST, 1000), ("7.2", SOME, 0), ("6.12", SOME, 0))

guest.compiled("robust", "-pthread", "-Wall", "-Wextra", "-Werror")
guest.library()
sqlite = os.path.realpath(shutil.which("sqlite3"))
# By hand: robust.py 7.3=output,control 6.1
chosen = dict((word.split("=") + [None])[:2] for word in sys.argv[1:])
for kernel, groups, children in KERNELS:
    if kernel in (chosen or ("7.3",)):
        guest.run(kernel, "robust_guest", (chosen.get(kernel) or groups, str(children)),
                  (f"{TMP}/robust:/usr/bin/robust", f"{sqlite}:/usr/bin/sqlite3"))
tap.finish()
