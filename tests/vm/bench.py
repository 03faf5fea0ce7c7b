#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1200
"""The workloads are what they claim on every kernel of the matrix, without a tracer."""
import json
import os
import subprocess

from tap import finish, result

BINARY = os.environ["MMSCOPE"]
KERNELS = ("6.1", "6.12", "7.2", "7.3")
REPEAT = 2
PAGES = 512     # in 2 MiB

# Arguments, pages that a repeat touches, faults it takes.
TOUCH = (
    ("", 512, 512), ("--touch read", 512, 512), ("--touch cow", 512, 512),
    ("--touch cow --threads 4 --pattern random", 512, 512),
    ("--pattern stride=7", 74, 74), ("--touch fork", 512, 0),
    ("--touch fork --backing file", 512, 0), ("--touch fork --backing file-private", 512, 0),
    ("--touch read --backing shmem", 512, 512), ("--backing memfd", 512, 512),
    ("--backing sysv_shm --pattern random", 512, 512), ("--backing sysv_shm --thp 2M", 512, 1),
    ("--backing sysv_shm --touch read", 512, 512),
    ("--backing file", 512, 512), ("--backing file-private", 512, 512),
    ("--backing file-private --touch cow", 512, 512), ("--thp 2M", 512, 1),
    ("--thp 2M --backing shmem", 512, 1), ("--thp 64K", 512, 32),
    ("--thp 64K --backing memfd", 512, 32), ("--backing file --touch read", 512, "windows"),
    ("--backing file-private --touch read --pattern random", 512, "windows"),
)
# Arguments, pages that a repeat touches, faults and present pages where they come lazily.
ARRAY = (("--touch none", 0, 0, 0), ("--touch one", 1, 1, 1), ("--touch read", PAGES, PAGES, PAGES),
         ("--touch write", PAGES, PAGES, PAGES), ("--touch fork", PAGES, 0, PAGES),
         ("--touch none --populate", 0, PAGES, PAGES))

SETTINGS = "cat /sys/kernel/mm/transparent_hugepage/*enabled"


def script(kernel):
    """One line of output for each workload, between the settings before and after."""
    runs = [f"touch --size 2M {args}" for args, _, _ in touches(kernel)]
    runs += [f"arraymap --size 2M {args}" for args, *_ in ARRAY]
    runs += ["ringbuf", "io_uring"]
    lines = [f"mmscope bench {run} --oracle --json -n {REPEAT} || echo" for run in runs]
    return "\n".join([f"echo $({SETTINGS})", *lines, f"echo $({SETTINGS})"])


def touches(kernel):
    """6.1 has no folios between one page and a PMD's."""
    return [t for t in TOUCH if "64K" not in t[0] or kernel != "6.1"]


def guest(kernel):
    return subprocess.run([BINARY, "vm", "--kernel", kernel, "--", "sh", "-c", script(kernel)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=300, check=False)


def compare(name, text, pages, minflt, present):
    try:
        d = json.loads(text)
    except json.JSONDecodeError:
        result(name, f"no result: {text}")
        return
    wrong = []
    if minflt == "windows":
        minflt = sum(d["windows"]) // REPEAT
    if pages is not None and d["pages"] != pages:
        wrong.append(f"{d['pages']} pages, not {pages}")
    if d["minflt"] != minflt * REPEAT or d["majflt"]:
        wrong.append(f"{d['minflt']} faults ({d['majflt']} major), not {minflt * REPEAT}")
    expected = d["pages"] if present is None else present
    if d["present"] != [expected] * REPEAT:
        wrong.append(f"{d['present']} present, not {expected}")
    result(name, "\n".join(wrong))


for kernel in KERNELS:
    p = guest(kernel)
    lines = p.stdout.splitlines()
    result(f"{kernel}: the guest runs all", None if p.returncode == 0 and
           len(lines) == len(touches(kernel)) + len(ARRAY) + 4 else
           f"status {p.returncode}, {len(lines)} lines: {p.stderr}")
    if p.returncode or not lines:
        continue
    out = iter(lines[1:-1])
    for args, pages, minflt in touches(kernel):
        compare(f"{kernel}: touch {args}", next(out, ""), pages, minflt, None)
    lazy = kernel == "7.3"
    for args, pages, minflt, present in ARRAY:
        compare(f"{kernel}: arraymap {args}", next(out, ""), pages, minflt if lazy else 0,
                present if lazy else PAGES)
    compare(f"{kernel}: ringbuf", next(out, ""), 2 + 2 * (1 << 20) // 4096, 0, None)
    compare(f"{kernel}: io_uring", next(out, ""), None, 0, None)
    result(f"{kernel}: huge page settings are put back",
           None if lines[0] == lines[-1] and "[" in lines[0] else f"{lines[0]}\n{lines[-1]}")
finish()
