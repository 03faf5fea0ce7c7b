#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 7200
"""What observing costs: instructions and time that each way to observe adds to an event.

Instructions come from a boot with --icount, the lowest of the repeats, which is the one
without a timer tick; times from one with two virtual CPUs, in rounds of all columns, with
untraced between any two. All columns of a table are of the same boot. And what the cost
line of a report says is held against what was measured. make cost writes
docs/results/cost.md; --reduced is what the tests of each day can afford.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TREE = os.environ.get("MMSCOPE_TREE") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BINARY = os.environ.get("MMSCOPE") or os.path.join(TREE, "build/mmscope")
KERNEL = "7.2"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
ROUNDS = 3      # of times

# Column, its heading, the program it needs in the guest.
COLUMNS = (("untraced", "untraced", None), ("empty", "empty programs", None),
           ("default", "`mmscope fault`", None), ("exact", "`--exact`", None),
           ("other", "not a target", None), ("all", "`-a`", None),
           ("funclatency", "`funclatency`", "funclatency"),
           ("bpftrace", "bpftrace, latency", "bpftrace"),
           ("bpftrace-ptes", "bpftrace, latency and PTEs", "bpftrace"))
# Workload, what an event is, events in a repeat, what of a repeat is measured.
WORKLOADS = (("anon", "anonymous fault, 4 KiB", 256, "touch_ns"),
             ("mthp", "anonymous fault, 64 KiB", 64, "touch_ns"),
             ("thp", "anonymous fault, 2 MiB", 8, "touch_ns"),
             ("file", "fault-around of 16 pages", 64, "touch_ns"),
             ("arraymap", "page of a BPF array, mapped at mmap", 256, "mmap_ns"))

# What must hold: name, workload, column, against, at most this part of what it adds.
TARGETS = (("default at most funclatency", "anon", "default", "funclatency", 1.0),
           ("default at most 0.4 of bpftrace with PTEs", "anon", "default", "bpftrace-ptes", 0.4),
           ("not a target at most 1.5 of empty programs", "anon", "other", "empty", 1.5),
           ("-a as default", "anon", "all", "default", 1.05),
           ("default at most 2.7 of empty programs", "anon", "default", "empty", 2.7),
           ("fault-around: not a target at most 1.5 of empty programs", "file", "other", "empty",
            1.5))

# The cost line: workload, and at most how many times too much or too little it may say. It
# is measured with faults of one anonymous page, and says it of all programs.
LINES = (("anon", 1.25), ("file", 1.25))


def find(program):
    """Where a program is; Debian 13 has those of libbpf-tools under names of their own."""
    return shutil.which(program, path=PATH) or shutil.which(program + "-libbpf", path=PATH)


def guest(script, args, programs=(), vm=()):
    """The lines that a script of tests/vm/lib prints in a guest."""
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.run(["cc", "-static", "-O1", "-pthread", "-o", f"{tmp}/empty",
                        f"{TREE}/tests/vm/lib/empty.c", "-lbpf", "-lelf", "-lz"], check=True)
        argv = [BINARY, "vm", "--kernel", KERNEL, "--timeout", "3000", "--memory", "2G",
                "--copy", f"{tmp}/empty:/usr/bin/empty",
                "--copy", f"{TREE}/tests/vm/lib/{script}:/root/{script}", *vm]
        for program in programs:
            argv += ["--copy", f"{find(program)}:/usr/bin/{program}"]
        p = subprocess.run(argv + ["--", "sh", "-c", f"exec sh /root/{script} {args}"],
                           cwd=TREE, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           check=False)
    out = p.stdout.splitlines()
    for line in out:
        if line.startswith("#"):
            print(line)
    if p.returncode or not out:
        raise RuntimeError(f"{KERNEL}: status {p.returncode}: {p.stderr.strip()[-500:]}")
    return out


def points():
    """Where mmscope attaches by default, as the program of empty programs wants it."""
    p = subprocess.run([BINARY, "probes", "--kernel", KERNEL], cwd=TREE, text=True,
                       stdin=subprocess.DEVNULL, capture_output=True, check=True)
    table = p.stdout[:p.stdout.index("\nzap of windows ")]
    return [word for how, symbols in re.findall(r"  (fentry|fexit) +(\w+(?:, \w+)*)", table)
            for symbol in symbols.split(", ") for word in (how, symbol)]


def boot(columns, workloads, repeats, icount):
    """One guest with these columns one after the other: {(column, workload): [[time of each
    repeat] each time]}, what the cost lines say has the column "line"; {(column, workload):
    [how often untraced came before]}; the kernel's name."""
    vm = ["--env", f"WORKLOADS={' '.join(workloads)}", "--env", "SETTLE=40",
          "--env", f"POINTS={' '.join(points())}"]
    out = guest("cost_guest.sh", f"{repeats} {' '.join(columns)}",
                sorted({p for c, _, p in COLUMNS if p and c in columns}),
                vm + (["--icount"] if icount else []))
    found, before = {}, {}
    for line in out[1:]:
        if line.startswith("cost "):
            _, column, workload, text = line.split(" ", 3)
            part = next(w[3] for w in WORKLOADS if w[0] == workload)
            found.setdefault((column, workload), []).append(json.loads(text)[part])
            before.setdefault((column, workload), []).append(len(found["untraced", workload]))
        elif line.startswith("line "):
            _, workload, text = line.split(" ", 2)
            says = json.loads(text)["runs"][0]["trust"].get("added_ns")
            # What a program takes cannot always be told from noise.
            if says is not None:
                found.setdefault(("line", workload), []).append([says])
    return found, before, out[0]


EVENTS = {w: n for w, _, n, _ in WORKLOADS}


def added(found):
    """{(column, workload): what is added to an event}; of untraced all that it takes."""
    cost = {key: min(rounds[0]) / EVENTS[key[1]] for key, rounds in found.items()
            if key[0] != "line"}
    return {(c, w): value - (cost["untraced", w] if c != "untraced" else 0)
            for (c, w), value in cost.items()}


def slowdowns(found, before):
    """{(column, workload): (median, least, most)} of the rounds; of untraced nanoseconds of an
    event, of the others what is added, as a part of what it takes just before and after."""
    laps = {key: [statistics.median(r) / EVENTS[key[1]] for r in rounds]
            for key, rounds in found.items() if key[0] != "line"}
    out = {}
    for (column, workload), each in laps.items():
        if column != "untraced":
            bare = laps["untraced", workload]
            each = [2 * ns / (bare[n - 1] + bare[n]) - 1
                    for ns, n in zip(each, before[column, workload])]
        out[column, workload] = (statistics.median(each), min(each), max(each))
    return out


def judge_lines(found):
    """As judge(), of what the cost line says: all that was added, to all repeats."""
    for workload, factor in LINES:
        name = f"the cost line is right within {factor} times: {workload}"
        if not found.get(("line", workload)):
            yield name, False, "it says nothing"
            continue
        says = found["line", workload][0][0]
        took = sum(found["default", workload][0]) - sum(found["untraced", workload][0])
        yield (name, took / factor <= says <= took * factor,
               f"{says} said, {took} measured: {says / took:.2f}")


def judge(cost, targets=TARGETS):
    """(name, met or None for not measured, what was found)"""
    for name, workload, column, against, most in targets:
        a, b = cost.get((column, workload)), cost.get((against, workload))
        if a is None or b is None:
            yield name, None, "not measured"
        else:
            yield name, a <= most * b, f"{a:.0f} of {b:.0f}: {a / b:.2f}"


def table(cost, columns, workloads, form, headings=COLUMNS, events=WORKLOADS):
    names = {c: name for c, name, _ in headings}
    lines = ["| event | " + " | ".join(names[c] for c in columns) + " |",
             "|---" * (len(columns) + 1) + "|"]
    for workload, name, *_ in events:
        if workload in workloads:
            row = [form(c, workload, cost) for c in columns]
            lines.append(f"| {name} | " + " | ".join(row) + " |")
    return lines


def instructions(column, workload, cost):
    value = cost.get((column, workload))
    return "-" if value is None else f"{value:.0f}" if column == "untraced" else f"{value:+.0f}"


def slowdown(column, workload, times):
    if (column, workload) not in times:
        return "-"
    middle, least, most = times[column, workload]
    if column == "untraced":
        return f"{middle / 1e3:.1f} us ({least / 1e3:.1f} .. {most / 1e3:.1f})"
    return f"{100 * middle:+.0f} % ({100 * least:+.0f} .. {100 * most:+.0f})"


# What grows: its name in the guest, what it is here.
GROWTH = (("threads", "threads that fault"), ("faults", "faults in a run"),
          ("tasks", "tasks that are targets"))
POSSIBLE = (2, 8, 32)       # CPUs


def growth():
    """Lines of the tables of what cost, memory and starting grow with."""
    cells = {}
    for line in guest("growth_guest.sh", "cost", vm=["--icount"]):
        words = line.split()
        if len(words) == 5 and words[0] == "growth":
            cells.setdefault(words[1], []).append((words[2], int(words[3]), int(words[4])))
    out = ["## What it grows with", "", "Instructions that the default adds to an anonymous fault.",
           "", "| of | number | untraced | added |", "|---|---|---|---|"]
    for key, name in GROWTH:
        out += [f"| {name} | {n} | {bare} | {seen - bare:+d} |"
                for n, bare, seen in cells.get(key, [])]
    out += ["", "Memory, and seconds to start and to end (two emulated CPUs, of the possible ones; "
            "starting", "holds the emulated reading of BTF and verifying of programs):", "",
            "| possible CPUs | maps, KiB | of it for a CPU | tracer, KiB | start | end | 5,000 "
            "threads by `-p` |", "|---|---|---|---|---|---|---|"]
    for cpus in POSSIBLE:
        start, end, memory, marking = [], [], ("-", "-", "-"), "-"
        for line in guest("growth_guest.sh", "size", vm=["--cpus", f"2,max={cpus}"]):
            words = line.split()
            if words[:2] == ["growth", "start"]:
                a, b, c = map(float, words[3:6])
                start.append(b - a)
                end.append(c - b)
            elif words[:2] == ["growth", "memory"]:
                memory = words[2:5]
            elif words[:2] == ["growth", "marking"]:
                marking = f"{float(words[4]) - float(words[3]):.2f}"
        out.append(f"| {cpus} | {' | '.join(memory)} | {min(start):.2f} | {min(end):.2f} | "
                   f"{marking} |")
    return out + ["", "The maps' memory is the kernel's own account of them (`memlock` of "
                  "/proc/PID/fdinfo), the part", "for a CPU what `mmscope probes` tells."]


VERDICT = {True: "pass", False: "miss", None: "not measured"}


def document(args, cost, verdicts, times, grown, name):
    command = "make cost" if times else "tests/long/cost.py --no-times"
    versions = []
    for program in sorted({p for _, _, p in COLUMNS if p}):
        path = find(program)
        if path:
            p = subprocess.run(["dpkg-query", "-S", os.path.realpath(path)], text=True,
                               capture_output=True, check=False)
            package = p.stdout.split(":")[0]
            p = subprocess.run(["dpkg-query", "-W", package], text=True, capture_output=True,
                               check=False)
            versions.append(f"`{program}` of " + " ".join(p.stdout.split()))
    out = ["<!-- SPDX-License-Identifier: GPL-2.0-only -->", "# What observing costs", "",
           f"{time.strftime('%Y-%m-%d')}, `{command}`,",
           f"kernel {name}; {'; '.join(versions)}.", "",
           "## Instructions", "",
           "Of an event without anything attached, and what each way to observe adds to it, in",
           f"one guest of an emulator that counts them (`--icount`): the lowest of {args.repeats} "
           "repeats.", "They are no times: an atomic addition is one of them, and so is a cache "
           "miss. Empty", "programs return at once; they are attached where mmscope attaches by "
           "default.", ""]
    out += table(cost, args.columns, args.workloads, instructions)
    out += ["", "## Targets", "", "| target | found | |", "|---|---|---|"]
    out += [f"| {n} | {found} | {VERDICT[met]} |" for n, met, found in verdicts]
    if times:
        out += ["", "## Times", "", f"The same events with two virtual CPUs, in {ROUNDS} rounds "
                "of all columns: the median of", f"{args.repeats} repeats beside those of untraced "
                "just before and after; of the rounds the median (least", ".. most). For screening "
                "only: an emulator's times are not those of a machine, and this one", "had other "
                f"work (load {os.getloadavg()[2]:.1f} on {os.cpu_count()} CPUs).", ""]
        out += table(times, args.columns, args.workloads, slowdown)
    out += [""] + grown if grown else []
    return "\n".join(out) + "\n"


def tell(verdicts):
    """The results of a suite; how many failed."""
    count = failed = 0
    for target, met, what in verdicts:
        count += 1
        failed += met is False
        print(f"{'not ok' if met is False else 'ok'} {count} - {target}"
              + (f" # SKIP {what}" if met is None else ""))
        print(f"# {what}")
    print(f"1..{count}", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reduced", action="store_true", help="what decides, and no times")
    parser.add_argument("--output", metavar="FILE", help="write the tables there")
    parser.add_argument("--repeats", type=int, help="of each cell")
    parser.add_argument("--no-times", action="store_true", help="only instructions")
    args = parser.parse_args()
    args.repeats = args.repeats or (8 if args.reduced else 12)
    args.workloads = ["anon", "file"] if args.reduced else [w[0] for w in WORKLOADS]
    here = [c for c, _, p in COLUMNS
            if not p or find(p)]
    args.columns = [c for c in here if not args.reduced or
                    c in ("untraced", "empty", "default", "other", "funclatency")]
    found, _, name = boot(args.columns, args.workloads, args.repeats, True)
    cost = added(found)
    verdicts = [*judge(cost), *judge_lines(found)]
    for line in table(cost, args.columns, args.workloads, instructions):
        print("# " + line)
    failed = tell(verdicts)
    times = grown = None
    if not args.reduced and not args.no_times:
        turns = [c for column in args.columns[1:] * ROUNDS for c in (column, "untraced")]
        times = slowdowns(*boot(["untraced"] + turns, args.workloads, args.repeats, False)[:2])
        grown = growth()
    if args.output:
        with open(args.output, "w", encoding="utf-8") as f:
            f.write(document(args, cost, verdicts, times, grown, name))
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as e:
        print(f"Bail out! {e}")
        sys.exit(1)
