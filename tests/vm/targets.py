#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 2400
"""Whom mmscope fault observes: -p, -t, --cgroup, --comm, namespaces, --by pid and comm."""
import os
import shutil
import sys

import guest
from guest import LIB, TMP
import tap

ALL = "processes,threads,cgroups,names,old,namespaces,refusals,record"
KERNELS = (("7.3", ALL, "exact"), ("6.1", "processes,threads", ""),
           ("7.2", "processes,threads,record", ""),
           ("6.12", "processes,threads,cgroups,record", ""))

guest.library()
for program in ("robust", "worker"):
    guest.compiled(program, "-pthread", "-Wall", "-Wextra", "-Werror")
small = guest.compiled("small", "-m32", "-nostdlib", "-ffreestanding", "-fno-pie", "-no-pie",
                       "-fno-stack-protector")
copies = [f"{TMP}/robust:/usr/bin/robust", f"{TMP}/worker:/usr/bin/worker",
          f"{LIB}/observer.py:/root/observer.py"]
copies += [os.path.realpath(shutil.which(tool)) + f":/usr/bin/{tool}" for tool in ("unshare",)]
if small:
    copies.append(f"{small}:/usr/bin/small")
# By hand: targets.py 7.3=names,threads 6.1. make check does the newest and, in part,
# the oldest kernel, tests/long/targets.sh the rest.
chosen = dict((word.split("=") + [None])[:2] for word in sys.argv[1:])
for version, groups, exact in KERNELS:
    if version in (chosen or ("7.3", "6.1")):
        guest.run(version, "targets_guest", (chosen.get(version) or groups, exact), copies)
tap.finish()
