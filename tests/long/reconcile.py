#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1500
"""What mmscope fault says the resident set grew by, and by which ways, is the truth.

A workload (lib/rss.c) grows or shrinks by known numbers of pages in each way that there
is, and reads /proc/PID/smaps at both ends: the growth must be the same, the way in
question must have its number, and nothing may be left unexplained.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../vm/lib"))
import checks
import rss_cases
from oracle import Tap

# The metric that has the case's number of pages; None: it is what faults brought.
WAYS = {
    "touch": None, "zero": None, "thp": "rss_zapped", "fork": "rss_fork_copy",
    "fork_mixed": "rss_fork_copy", "uffd": "rss_uffd_copy", "uffd_shmem": "rss_uffd_copy",
    "mremap": "pages_moved", "migrate": "pages_migrated", "collapse": "rss_khugepaged",
    "khugepaged": "rss_khugepaged", "page_out": "rss_unmapped", "swapoff": "rss_swapoff",
    "swap_in": None, "munmap": "rss_zapped", "munmap_large": "rss_zapped",
    "dontneed": "rss_zapped", "punch": "rss_zapped", "threads": None, "exec": None,
}
EXACT = ("fork", "uffd", "munmap", "mremap", "migrate", "swapoff")
# Here other tasks work at the same time, or the workload's ends are not the region's.
NO_GROWTH = ("fork", "fork_mixed", "exec")


def judge(case):
    wrong = case.problem()
    if wrong:
        return wrong
    missing = [m for m in ("rss_before", "rss_after", *checks.WAYS) if case.value(m) is None]
    if missing:
        return [f"{m} is unavailable: {case.report.unavailable[m]}" for m in missing]
    wrong += checks.reconciled(case.report)
    grew = case.value("rss_after") - case.value("rss_before")
    truth = case.bench["after"] - case.bench["before"]
    if case.name not in NO_GROWTH and grew != truth:
        wrong.append(f"grew {grew}, smaps says {truth}")
    way, expect = WAYS[case.name], case.bench["expect"]
    if way and case.value(way) != expect:
        wrong.append(f"{way} is {case.value(way)}, not {expect}")
    if way and not expect:
        wrong.append("the workload did nothing")
    for m in checks.WAYS:
        if m not in (way, "rss_zapped") and case.value(m) and case.name != "exec":
            wrong.append(f"{m} is {case.value(m)}, not 0")
    return wrong


def main():
    tap = Tap()
    rss_cases.build()
    for kernel in sys.argv[1:] or rss_cases.KERNELS:
        cases, wrong = rss_cases.boot(kernel, (("", tuple(WAYS)), ("--exact", EXACT)))
        tap.result(f"{kernel}: the guest runs all", wrong)
        for case in cases:
            name = f"{kernel}: {case.name} {case.options}".strip()
            if case.skip():
                tap.result(name, skip=case.skip())
                continue
            tap.result(name, judge(case))
            if case.report and os.environ.get("V"):
                print("#", case.bench, {m: case.value(m) for m in case.report.counters})
    return tap.finish()


sys.exit(main())
