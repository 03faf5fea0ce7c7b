# SPDX-License-Identifier: GPL-2.0-only
"""The storm under trace -e fault,lock, in a guest. Arguments: virtual CPUs, seconds."""
import subprocess
import sys

from lock_report import counts, number, sums, times
from robust_lib import REPORT, checked, completed, left_behind, load, note, unlink, usage

CPUS, SECONDS = sys.argv[1], sys.argv[2]
THREADS = 64


@checked(f"{THREADS} threads for {SECONDS} s on {CPUS} CPUs: faults and waits")
def _():
    unlink(REPORT)
    p = subprocess.run(["mmscope", "trace", "-e", "fault,lock", "--user-stacks", "--json", "-o",
                        REPORT, "--", "storm", str(THREADS), SECONDS],
                       stdin=subprocess.DEVNULL, capture_output=True,
                       timeout=int(SECONDS) + 1200, check=False)
    if p.returncode or p.stderr:
        return f"status {p.returncode}: {p.stderr.decode()}"
    run = load()["runs"][0]
    trust = run["trust"]
    low, high = completed(run)
    truth = usage(run)
    lost = {x["event"]: x["misses"] for x in trust["probes"] if x.get("misses")}
    begun = sum(counts(run).values())
    ended = times(run).values()
    note(f"{CPUS} CPUs: {int(p.stdout)} rounds in {SECONDS} s, [{low}, {high}] faults, rusage "
         f"{truth}; {begun} waits, {sum(n for n, _ in ended)} of them to their end, "
         f"{sum(ns for _, ns in ended) / 1e9:.1f} s, {number(run, 'lock_interrupt_wait')} in "
         f"interrupts; lost {lost}, unmatched {trust['unmatched']}")
    if not int(p.stdout) or truth < 1000 or not begun:
        return "there was no storm"
    # Each thread may be in the middle of a wait, and what it forked; an end may be lost.
    wrong = sums(run, 2 * THREADS + sum(lost.values()))
    # Thousands of processes have more stacks than there is room for.
    wrong = [text for text in wrong if not text.startswith("map_full")]
    if not trust.get("user_frames"):
        wrong.append("no stack of user space")
    if not low <= truth <= high:
        wrong.append(f"rusage {truth} is not in [{low}, {high}], lost {lost}")
    left = left_behind()
    return "\n".join(wrong + ([left] if left else []))
