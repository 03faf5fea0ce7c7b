#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 3600
# needs: kernels, also: debug
"""64 threads that fault, map, unmap, fork and read /proc, while they are observed.

No splat and no stall (the VM's log is looked through), and every difference between
what was counted and rusage is in the trust line. With kernels that check themselves it
is a minute of storm, and all ways of counting on 2 and on 4 CPUs. KERNEL and SECONDS may
be given.
"""
import os
import sys

import guest
from guest import LIB, TMP
import tap

PLUS = os.environ.get("MMSCOPE_PLUS")
ALL = "default,exact,by-pid"
# Kernel, virtual CPUs, ways of counting.
guests = ((f"vanilla{PLUS}", "2", ALL), (f"patched{PLUS}", "4", ALL)) if PLUS else \
    (("7.3", "2", "default"), ("7.3", "4", "exact,by-pid"))
seconds = sys.argv[2] if len(sys.argv) > 2 else "60" if PLUS else "9"
memory = ("--memory", "3G") if PLUS else ()     # KASAN's shadow, and what it keeps back

guest.library()
for program in ("robust", "storm"):
    guest.compiled(program, "-pthread", "-Wall", "-Wextra", "-Werror")
copies = [f"{TMP}/robust:/usr/bin/robust", f"{TMP}/storm:/usr/bin/storm",
          f"{LIB}/observer.py:/root/observer.py"]
for kernel, cpus, ways in guests:
    guest.run(sys.argv[1] if len(sys.argv) > 1 else kernel, "storm_guest",
              (cpus, seconds, ways), copies, ("--cpus", cpus, *memory))
tap.finish()
