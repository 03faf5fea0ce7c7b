#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1500
"""What mmscope fault says of munmap, exit and fork is the truth.

The workload (lib/rss.c) takes down known numbers of pages at known places in page
tables, so that the holds of the page-table lock are known, too; fork copies what smaps
says that it has to. Where a kernel hides the lock, that is said and nothing is counted.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../vm/lib"))
import rss_cases
from oracle import Tap

# Entries removed in each hold: size -> holds. Areas start where a page table does.
HOLDS = {
    "munmap": {512: 2},
    # 100 to 1100 of 1536, one of four, and the first.
    "munmap_part": {103: 1, 128: 1, 19: 1, 1: 1},
    "munmap_file": {512: 1, 128: 1},
    "dontneed": {300: 1},
    "thp": {100: 1},
}
HUGE = {"thp": 1}
BACKINGS = {"munmap": "anon", "munmap_part": "anon", "munmap_file": "shmem", "dontneed": "anon",
            "munmap_large": "anon", "thp": "anon"}
CASES = (*BACKINGS, "fork", "fork_mixed", "exec")
EXACT = ("munmap", "munmap_large", "fork", "exec")
PROCESSES = {"fork": 1, "fork_mixed": 1, "exec": 2}    # what had been before exec is torn down


def old(kernel):
    return kernel == "6.1"


def holds(case, kernel):
    """The page tables that were emptied."""
    names = ("ptes_zapped", "ptes_per_zap_hold", "pmds_zapped")
    hidden = [m for m in names if m in case.report.unavailable]
    if old(kernel) or "--exact" in case.options:
        why = "pte_offset_map_lock" if old(kernel) else "kretprobe"
        return [f"{m} should be unavailable because of {why}: "
                f"{case.report.unavailable.get(m)}" for m in names
                if why not in case.report.unavailable.get(m, "")]
    if hidden:
        return [f"{m} is unavailable: {case.report.unavailable[m]}" for m in hidden]
    if case.name not in BACKINGS:
        return []
    wrong = []
    sizes, huge = case.holds("ptes_per_zap_hold"), case.value("pmds_zapped")
    total = case.bench["expect"] - huge * rss_cases.PAGES_OF_A_TABLE
    counted = {k[0]: v for k, v in case.report.counters.get("ptes_zapped", {}).items()}
    if counted != {BACKINGS[case.name]: total}:
        wrong.append(f"removed: {counted}, not {total} of {BACKINGS[case.name]}")
    if huge != HUGE.get(case.name, 0):
        wrong.append(f"{huge} huge pages removed")
    if case.name in HOLDS and sizes != HOLDS[case.name]:
        wrong.append(f"removed per hold: {sizes}, not {HOLDS[case.name]}")
    if sum(size * n for size, n in sizes.items()) != total:
        wrong.append(f"holds {sizes} do not add up to {total}")
    # More pages than one gather takes: 24 tables in more than 24 holds.
    if case.name == "munmap_large" and not 24 < sum(sizes.values()) < 40:
        wrong.append(f"{sum(sizes.values())} holds for 24 tables")
    if case.inferred("ptes_zapped"):
        wrong.append("what was read is said to be inferred")
    return wrong


def times(case):
    wrong = []
    for name, truth in (("munmap_latency", case.bench["calls"]),
                        ("exit_mmap_latency", PROCESSES.get(case.name, 0))):
        n = sum(h.count for h in case.report.histograms.get(name, {}).values())
        if name in case.report.unavailable:
            wrong.append(f"{name} is unavailable: {case.report.unavailable[name]}")
        elif n < truth or (n != truth and case.name != "exec"):
            wrong.append(f"{name}: {n}, not {truth}")
    return wrong


def copied(case):
    if case.name not in ("fork", "fork_mixed"):
        return []
    n = case.value("rss_fork_copy")
    return [] if n == case.bench["expect"] and n else [f"copied {n}, not {case.bench['expect']}"]


def main():
    tap = Tap()
    rss_cases.build()
    for kernel in sys.argv[1:] or rss_cases.KERNELS:
        cases, wrong = rss_cases.boot(kernel, (("", CASES), ("--exact", EXACT)))
        tap.result(f"{kernel}: the guest runs all", wrong)
        for case in cases:
            name = f"{kernel}: {case.name} {case.options}".strip()
            if case.skip():
                tap.result(name, skip=case.skip())
                continue
            wrong = case.problem() or holds(case, kernel) + times(case) + copied(case)
            tap.result(name, wrong)
    return tap.finish()


sys.exit(main())
