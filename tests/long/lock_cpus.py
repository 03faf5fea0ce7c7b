#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1200
"""Waits for locks where more than 64 CPUs are possible: counted as with few."""
import sys

import guest
from guest import LIB, TMP
import tap

guest.library()
guest.compiled("waits", "-pthread", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror")
copies = [f"{TMP}/waits:/usr/bin/waits", f"{LIB}/lock_report.py:/root/lock_report.py"]
for kernel in sys.argv[1:] or ("7.3", "6.1"):
    guest.run(kernel, "lock_cpus_guest", (), copies, ("--cpus", "2,max=96"))
tap.finish()
