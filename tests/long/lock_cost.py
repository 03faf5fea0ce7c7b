#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 3600
"""What observing locks costs: instructions and time that each way adds to a wait, or to none.

Instructions as cost.py has them, of waits that are certain on one CPU (lib/waits.c); times
are operations of bench contend on two. perf is built for it (kernel/build-perf): Debian's
has no BPF programs. make cost writes docs/results/lock_cost.md.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import cost
from cost import TREE, VERDICT

LOOPS = 64      # of a repeat
# Column, its heading, the program it needs in the guest.
COLUMNS = (("untraced", "untraced", None), ("lock", "`mmscope lock`", None),
           ("default", "`mmscope fault`", None), ("both", "`trace -e fault,lock`", None),
           ("perf", "`perf lock contention -b`", "perf"),
           ("perf-filter", "`... -Y rwsem,mutex,spinlock`", "perf"),
           ("klockstat", "`klockstat`", "klockstat"),
           ("bpftrace-waits", "bpftrace, histogram", "bpftrace"))
WAITS = (("rwsem", "wait for a semaphore (`i_rwsem`)"), ("mutex", "wait for a mutex (a pipe's)"),
         ("mmap", "mmap and munmap, uncontended"), ("pipe", "mutex of a pipe twice, uncontended"),
         ("fault", "anonymous fault, uncontended"))
CONTENDED = (("page_table", "page-table lock, spinning"), ("mmap_lock", "mmap_lock"))

# What must hold: name, workload, column, against, at most this part of what it adds.
TARGETS = (("wait for a semaphore: lock below perf", "rwsem", "lock", "perf", 1.0),
           ("wait for a mutex: lock below perf", "mutex", "lock", "perf", 1.0))
# Workload, column, and the one beside which it adds nothing, but for what instructions
# differ from run to run: this part of what the event takes.
NOTHING = (("fault", "lock", "untraced"), ("pipe", "lock", "untraced"),
           ("fault", "both", "default"))
NOISE = 0.01


def boot(columns, workloads, repeats, vm=()):
    """({(column, workload): [values]}, kernel): ns of a loop, or operations in a run."""
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.run(["cc", "-static", "-O1", "-pthread", "-o", f"{tmp}/waits",
                        f"{TREE}/tests/vm/lib/waits.c"], check=True)
        options = ["--copy", f"{tmp}/waits:/usr/bin/waits", "--env", "SETTLE=40",
                   "--env", f"LOOPS={LOOPS}",
                   "--env", f"WORKLOADS={' '.join(workloads)}", *vm]
        if "perf" in columns:
            options += ["--copy", perf() + ":/usr/bin/perf"]
        out = cost.guest("cost_guest.sh", f"{repeats} {' '.join(columns)}",
                         sorted({p for c, _, p in COLUMNS if p and p != "perf" and c in columns}),
                         options)
    found = {}
    for line in out[1:]:
        if line.startswith("cost "):
            _, column, workload, text = line.split(" ", 3)
            said = json.loads(text)
            found.setdefault((column, workload), []).extend(
                [ns / LOOPS for ns in said["ns"]] if "ns" in said else [said["ops"]])
    return found, out[0]


def perf():
    """The path of perf, built if need be."""
    p = subprocess.run([f"{TREE}/kernel/build-perf"], stdout=subprocess.PIPE, text=True,
                       check=False)
    if p.returncode:
        raise RuntimeError("perf cannot be built")
    return p.stdout.strip()


def added(found):
    least = {key: min(laps) for key, laps in found.items()}
    return {(c, w): value - (least["untraced", w] if c != "untraced" else 0)
            for (c, w), value in least.items()}


def judge(values):
    """(name, met or None for not measured, what was found)"""
    yield from cost.judge(values, TARGETS)
    headings = {c: name for c, name, _ in COLUMNS}
    for workload, column, beside in NOTHING:
        base = values["untraced", workload]
        more = values[column, workload] - (values[beside, workload] if beside != "untraced" else 0)
        yield (f"{workload}, uncontended: {headings[column]} adds nothing to {headings[beside]}",
               more <= NOISE * base, f"{more:+.0f} of {base:.0f}")


def slower(found, columns):
    """Of operations in the same time, the median of rounds, and the range of the rounds."""
    yield "| lock | " + " | ".join(n for c, n, _ in COLUMNS if c in columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for workload, name in CONTENDED:
        row = []
        for column in columns:
            values, base = found.get((column, workload)), found["untraced", workload]
            if not values:
                row.append("-")
            elif column == "untraced":
                row.append(f"{statistics.median(values):.0f} ({min(values)} to {max(values)})")
            else:
                parts = sorted(100 * v / b - 100 for v, b in zip(values, base))
                row.append(f"{statistics.median(parts):+.0f} % ({parts[0]:+.0f} to "
                           f"{parts[-1]:+.0f})")
        yield f"| {name} | " + " | ".join(row) + " |"


def document(args, values, times, name):
    command = "make cost" if times else "tests/long/lock_cost.py --rounds 0"
    out = ["<!-- SPDX-License-Identifier: GPL-2.0-only -->", "# What observing locks costs", "",
           f"{time.strftime('%Y-%m-%d')}, `{command}`, kernel {name};",
           "`perf` of linux-source-7.2 by `kernel/build-perf`, `klockstat` of libbpf-tools,",
           "bpftrace with a histogram between contention_begin and contention_end.", "",
           "## Instructions", "",
           "Of an operation without anything attached, and what each way to observe adds to it, in",
           "one guest of an emulator that counts them (`--icount`): the lowest of "
           f"{args.repeats} repeats of {LOOPS}.",
           "A wait is one of a task for a lock whose holder sleeps, from the word that sends the",
           "holder to the end of both (`tests/vm/lib/waits.c`): each has exactly one, and a fault",
           "of the holder, which is what `mmscope fault` pays for. One virtual CPU: nobody spins.",
           "Mapping and unmapping take the lock of a VMA for writing, which has no event on 7.x:",
           "`mmscope lock` looks each time whether there are readers.", ""]
    out += cost.table(values, args.columns, [w for w, _ in WAITS], cost.instructions, COLUMNS,
                      WAITS)
    out += ["", "## Targets", "", "| target | found | |", "|---|---|---|"]
    out += [f"| {n} | {found} | {VERDICT[met]} |" for n, met, found in judge(values)]
    if times:
        out += ["", "## Operations in the same time", "", "Of `mmscope bench contend` with 4 "
                "threads for 2 seconds on two virtual CPUs that run in turn,", f"{args.rounds} "
                "rounds of all columns one after the other: the median, and the range. For",
                "screening only: most of what differs is chance.", ""]
        out += slower(times, args.columns)
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", metavar="FILE", help="write the tables there")
    parser.add_argument("--repeats", type=int, default=8, help="of each cell")
    parser.add_argument("--rounds", type=int, default=3, help="of the times; 0: none")
    args = parser.parse_args()
    args.columns = [c for c, _, p in COLUMNS
                    if p in (None, "perf") or cost.find(p)]
    found, name = boot(args.columns, [w for w, _ in WAITS], args.repeats, ["--icount"])
    values = added(found)
    for line in cost.table(values, args.columns, [w for w, _ in WAITS], cost.instructions,
                           COLUMNS, WAITS):
        print("# " + line)
    failed = cost.tell(judge(values))
    times = (boot(args.columns * args.rounds, [w for w, _ in CONTENDED], 1)[0] if args.rounds
             else None)
    if args.output:
        with open(args.output, "w", encoding="utf-8") as f:
            f.write(document(args, values, times, name))
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as e:
        print(f"Bail out! {e}")
        sys.exit(1)
