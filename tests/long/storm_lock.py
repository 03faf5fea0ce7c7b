#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 3600
# needs: kernels, also: debug
"""64 threads that fault, map, unmap, fork and read /proc for minutes, under trace -e fault,lock.

No splat and no stall (the VM's log is looked through); what was counted is within its
intervals. KERNEL and SECONDS may be given.
"""
import os
import sys

import guest
from guest import LIB, TMP
import tap

PLUS = os.environ.get("MMSCOPE_PLUS")
kernel = sys.argv[1] if len(sys.argv) > 1 else "vanilla" + PLUS if PLUS else "7.3"
seconds = sys.argv[2] if len(sys.argv) > 2 else "180"
memory = ("--memory", "3G") if "debug" in kernel else ()    # KASAN's shadow, what it keeps back

guest.library()
for program in ("robust", "storm"):
    guest.compiled(program, "-pthread", "-Wall", "-Wextra", "-Werror")
copies = [f"{TMP}/robust:/usr/bin/robust", f"{TMP}/storm:/usr/bin/storm",
          f"{LIB}/lock_report.py:/root/lock_report.py"]
for cpus in ("2", "4"):
    guest.run(kernel, "storm_lock_guest", (cpus, seconds), copies, ("--cpus", cpus, *memory))
tap.finish()
