# SPDX-License-Identifier: GPL-2.0-only
"""What mmscope fault says the resident set grew by, and by which ways, is the truth; and
what it says of munmap, exit and fork.

A workload (rss.c) grows or shrinks by known numbers of pages in each way that there is,
at known places in page tables, and reads /proc/PID/smaps at both ends: the growth must
be the same, the way in question must have its number, and nothing may be left
unexplained. One tracer observes them all, as in oracle.py.
"""
import os
import subprocess
import time
from collections import Counter
from itertools import combinations

import cases
import checks
import oracle
from report import Report
import tap

HERE = os.path.dirname(os.path.abspath(__file__))
PREPARE = r"""
mkdir -p /dev/shm && mount -t tmpfs -o huge=advise tmpfs /dev/shm &&
echo 16M > /sys/block/zram0/disksize && echo 0 > /proc/sys/kernel/numa_balancing || exit 99
"""
PAGES_OF_A_TABLE = 512

# The metric that has the case's number of pages, or several of which some take them away;
# None: it is what faults brought.
WAYS = {
    "touch": None, "zero": None, "thp": "rss_zapped", "fork": "rss_fork_copy",
    "fork_mixed": "rss_fork_copy", "uffd": "rss_uffd_copy", "uffd_shmem": "rss_uffd_copy",
    "mremap": "pages_moved", "migrate": "pages_migrated", "collapse": "rss_khugepaged",
    "khugepaged": "rss_khugepaged", "collapse_file": ("rss_khugepaged", "rss_unmapped"),
    "collapse_mapped": ("rss_khugepaged", "rss_unmapped"),
    "collapse_both": ("rss_khugepaged", "rss_unmapped"),
    "khugepaged_file": ("rss_unmapped",), "page_out": "rss_unmapped", "swapoff": "rss_swapoff",
    "swap_in": None, "munmap": "rss_zapped", "munmap_part": "rss_zapped",
    "munmap_large": "rss_zapped", "munmap_file": "rss_zapped", "dontneed": "rss_zapped",
    "punch": "rss_zapped", "threads": None, "exec": None,
}
EXACT = ("fork", "fork_mixed", "exec", "threads", "uffd", "munmap", "munmap_large", "mremap",
         "migrate", "swapoff", "collapse_file", "collapse_mapped", "collapse_both")
ONLY_EXACT = ("collapse_both",)     # hundreds of runs that the kernel may lose
# Here other tasks work at the same time, or the workload's ends are not the region's.
NO_GROWTH = ("fork", "fork_mixed", "exec")

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
PROCESSES = {"fork": 1, "fork_mixed": 1, "exec": 2}    # what had been before exec is torn down


class Workload:
    """One of rss.c."""

    def __init__(self, name):
        self.name, self.command = name, f"/run/rss {name}"
        # Another task that has the CPU meanwhile ends a hold early; so does one that only
        # asked for it, or RCU (need_resched()).
        self.run = "again '\"switches\": [1-9]' " + str(sum(HOLDS[name].values())) \
            if name in HOLDS else "again nothing ''"

    def skip(self, _kernel):
        return None


class Case:
    """One workload under one tracer: what both sides said."""

    def __init__(self, name, exact, bench, report):
        self.name, self.exact, self.bench, self.report = name, exact, bench, report

    def value(self, name):
        """A number without labels, or the sum over them; None when it is unavailable."""
        if name in self.report.unavailable:
            return None
        return sum(self.report.counters.get(name, {}).values())

    def holds(self, name):
        """The histogram of a metric, all its labels together: size -> number."""
        sizes = {}
        for h in self.report.histograms.get(name, {}).values():
            for size, n in h.buckets.items():
                sizes[size] = sizes.get(size, 0) + n
        return sizes

    def unknown(self):
        """Lost runs are in the report, but no number is exact then; with --exact none are."""
        lost = 0 if self.exact else self.report.lost()
        return self.bench["skip"] or (f"the kernel lost {lost} runs" if lost else "")


# ---- the resident set ----

def growth(case):
    missing = [m for m in ("rss_before", "rss_after", *checks.WAYS) if case.value(m) is None]
    if missing:
        return [f"{m} is unavailable: {case.report.unavailable[m]}" for m in missing]
    wrong = checks.reconciled(case.report)
    grew = case.value("rss_after") - case.value("rss_before")
    truth = case.bench["after"] - case.bench["before"]
    if case.name not in NO_GROWTH and grew != truth:
        wrong.append(f"grew {grew}, smaps says {truth}")
    ways, expect = WAYS[case.name] or (), case.bench["expect"]
    if isinstance(ways, tuple):
        pages = sum(checks.WAYS[m] * case.value(m) for m in ways)
    else:
        pages, ways = case.value(ways), (ways,)
    if ways and pages != expect:
        wrong.append(f"{' and '.join(ways)}: {pages}, not {expect}")
    if ways and not expect:
        wrong.append("the workload did nothing")
    for m in checks.WAYS:
        if m not in (*ways, "rss_zapped") and case.value(m) and case.name != "exec":
            wrong.append(f"{m} is {case.value(m)}, not 0")
    return wrong


# ---- what is torn down ----

def split(sizes, whole, switches):
    """Are these holds of `whole`, of which one ended early (zap_pte_range()) at most as
    often as another task had the CPU?"""
    pieces, rest = Counter(sizes) - Counter(whole), Counter(whole) - Counter(sizes)
    if not 0 <= pieces.total() - rest.total() <= switches:
        return False
    return made_of(sorted(rest.elements()), sorted(pieces.elements()))


def made_of(whole, pieces):
    """Can each of them be put together from some of the pieces?"""
    if not whole:
        return not pieces
    for n in range(1, len(pieces) + 1):
        for some in combinations(pieces, n):
            left = Counter(pieces) - Counter(some)
            if sum(some) == whole[0] and made_of(whole[1:], sorted(left.elements())):
                return True
    return False


def holds(case, old):
    """The page tables that were emptied."""
    names = ("ptes_zapped", "ptes_per_zap_hold", "pmds_zapped")
    hidden = [m for m in names if m in case.report.unavailable]
    if old or case.exact:
        why = "pte_offset_map_lock" if old else "kretprobe"
        return [f"{m} should be unavailable because of {why}: "
                f"{case.report.unavailable.get(m)}" for m in names
                if why not in case.report.unavailable.get(m, "")]
    if hidden:
        return [f"{m} is unavailable: {case.report.unavailable[m]}" for m in hidden]
    if case.name not in BACKINGS:
        return []
    wrong = []
    sizes, huge = case.holds("ptes_per_zap_hold"), case.value("pmds_zapped")
    total = case.bench["expect"] - huge * PAGES_OF_A_TABLE
    counted = {k[0]: v for k, v in case.report.counters.get("ptes_zapped", {}).items() if v}
    if counted != {BACKINGS[case.name]: total}:
        wrong.append(f"removed: {counted}, not {total} of {BACKINGS[case.name]}")
    if huge != HUGE.get(case.name, 0):
        wrong.append(f"{huge} huge pages removed")
    if case.name in HOLDS and not split(sizes, HOLDS[case.name], case.bench["switches"]):
        wrong.append(f"removed per hold: {sizes}, not {HOLDS[case.name]}; "
                     f"{case.bench['switches']} times another task ran")
    if sum(size * n for size, n in sizes.items()) != total:
        wrong.append(f"holds {sizes} do not add up to {total}")
    # More pages than one gather takes: 24 tables in more than 24 holds.
    if case.name == "munmap_large" and not 24 < sum(sizes.values()) < 40:
        wrong.append(f"{sum(sizes.values())} holds for 24 tables")
    if any(n == "ptes_zapped" for n, _labels in case.report.inferred):
        wrong.append("what was read is said to be inferred")
    return wrong


def times(case):
    wrong = []
    for name, truth in (("munmap_latency", case.bench["calls"]),
                        ("exit_mmap_latency", PROCESSES.get(case.name, 0))):
        n = sum(h.count for h in case.report.histograms.get(name, {}).values())
        if name in case.report.unavailable:
            wrong.append(f"{name} is unavailable: {case.report.unavailable[name]}")
        elif n < truth or (n != truth and case.name not in ("exec", "threads")):
            wrong.append(f"{name}: {n}, not {truth}")
    return wrong


# ---- all of them ----

def judge(session, kernel):
    old = not cases.newer(kernel, (6, 4))
    tap.result(f"{session.name}: the tracer runs all",
               [] if session.status == 0 and session.reports else
               [f"status {session.status}, {len(session.reports)} reports", *session.log])
    for i, w in enumerate(session.which):
        name, r = f"{session.name}: {w.name}", session.results.get(str(i))
        if not r or r.status != 0 or r.bench is None or r.last is None:
            tap.result(name, [f"status {r.status if r else 'unknown'}",
                              *(r.said if r else ["it did not run"])])
            continue
        case = Case(w.name, session.exact, r.bench, Report(session.between(r.first, r.last)))
        if case.unknown():
            tap.result(name, skip=case.unknown())
            continue
        tap.result(name, growth(case) + holds(case, old) + times(case))
    tap.note(f"{session.name}: {session.seconds:.0f} s")


def main(kernel):
    start = time.monotonic()
    directory = os.environ.get("TMPDIR", "/tmp")
    program = os.path.join(directory, "rss")
    subprocess.run(["cc", "-std=gnu11", "-static", "-O1", "-pthread", "-Wall", "-Wextra",
                    "-Werror", "-o", program, f"{HERE}/rss.c"], check=True)
    sessions = [oracle.Session("default", [Workload(n) for n in WAYS if n not in ONLY_EXACT],
                               "--reconcile")]
    if cases.whole(kernel):
        sessions.append(oracle.Session("exact", [Workload(n) for n in EXACT],
                                       "--reconcile --exact"))
    script = "\n".join([oracle.session_script(sessions, kernel), PREPARE,
                        *map(oracle.run_session, sessions)]) + "\n"
    # 6.1's zram compresses by a module of its own.
    modules = ([] if cases.newer(kernel, (6, 12)) else ["lzo-rle"]) + ["zram"]
    options = ["--numa", "2", *[word for m in modules for word in ("--module", m)]]
    p = oracle.boot(os.environ["MMSCOPE"], kernel, script, directory, [f"{program}:/run/rss"],
                    options)
    tap.result("the guest runs all", [] if p.returncode == 0 else
               [f"status {p.returncode}", *p.stderr.splitlines()[-20:]])
    oracle.parse(p.stdout.splitlines(), sessions)
    for s in sessions:
        judge(s, kernel)
    tap.note(f"{kernel}: {time.monotonic() - start:.0f} s")
    tap.finish()
