#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 2400
"""Names of locks that have no class, reasons of faults for mmap_lock, who holds a lock.

In one guest of each kernel (tests/vm/lib/lock_names_guest.py), or of KERNEL...
"""
import sys

import guest
from guest import LIB, TMP
import tap

guest.library()
guest.compiled("lock_names", "-pthread", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror")
copies = [f"{TMP}/lock_names:/usr/bin/names", f"{LIB}/lock_report.py:/root/lock_report.py"]
for kernel in sys.argv[1:] or ("7.3", "7.2", "6.12", "6.1"):
    guest.run(kernel, "lock_names_guest", (kernel,), copies, ("--cpus", "4"))
tap.finish()
