#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1800
"""mmscope lock names what threads collide on, and counts as often as the kernel says it did.

All cases run in one guest of each kernel, with 4 CPUs and a disk (lib/lock_guest.py, then
lib/lock_classes_guest.py: each class; lib/lock_user_guest.py: stacks of user space;
lib/lock_io_guest.py: faults that wait for the disk; lib/lock_rows_guest.py: rows, runs,
intervals, lockdown).
By default the newest kernel, and what is counted on the oldest; KERNEL...: all on these, as
tests/long/lock.sh has them.
"""
import os
import shutil
import subprocess
import sys

import guest
from guest import LIB, TMP
import tap

kernels = [(kernel, "all") for kernel in sys.argv[1:]] or [("7.3", "all"), ("6.1", "some")]
guest.library()
WARNINGS = ("-pthread", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror")
for program in ("lock", "lock_classes", "lock_io", "waits"):
    guest.compiled(program, *WARNINGS)
# Two programs of one source that lie elsewhere each time, and one without symbols.
FRAMES = ("-fno-omit-frame-pointer", *WARNINGS)
guest.compiled("lock_user", *FRAMES, linked="-pie")
guest.compiled("lock_user", *FRAMES, "-DNAME=other", "-Wl,--build-id", name="other",
               linked="-pie")
subprocess.run(["strip", "-o", f"{TMP}/bare", f"{TMP}/lock_user"], check=True)
# The other one's are where packages have them.
notes = subprocess.run(["readelf", "-n", f"{TMP}/other"], capture_output=True, text=True,
                       check=True).stdout
build_id = notes.split("Build ID:")[1].split()[0]
subprocess.run(["objcopy", "--only-keep-debug", f"{TMP}/other", f"{TMP}/debug"], check=True)
subprocess.run(["strip", f"{TMP}/other"], check=True)
copies = [f"{TMP}/lock:/usr/bin/after",
          f"{TMP}/debug:/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug",
          os.path.realpath(shutil.which("unshare")) + ":/usr/bin/unshare",
          *(f"{TMP}/{name}:/usr/bin/{name}"
            for name in ("lock", "lock_classes", "lock_io", "waits", "lock_user", "other", "bare")),
          *(f"{LIB}/{name}.py:/root/{name}.py"
            for name in ("lock_classes_guest", "lock_io_guest", "lock_report",
                         "lock_rows_guest", "lock_user_guest"))]
disk = guest.ext4("lock", 64 << 20)
for kernel, cases in kernels:
    guest.run(kernel, "lock_guest", (kernel, cases), copies,
              ("--cpus", "4", "--append", "secretmem.enable=1", *disk))
tap.finish()
