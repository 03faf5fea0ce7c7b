#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 7200
# needs: kernels
"""The table of the series arraymap: what each way to map a BPF array costs.

Instructions come from boots with --icount, a layout each: KASLR, ASLR, the stack's
offset and earlier allocations differ; of a boot the minimum of the repeats counts,
which is the one without a timer tick. Kernels take turns, layout by layout, and are
compared within it: a target is met if it is in every layout. Times are from boots of
their own. make table-arraymap writes docs/results/arraymap.md; --reduced is what the
tests of each day can afford.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

TREE = os.environ.get("MMSCOPE_TREE") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BINARY = os.environ.get("MMSCOPE") or os.path.join(TREE, "build/mmscope")

# How it maps, the kernel. All steps of the only series that there is are "patched", which
# other tests have had built.
ONLY = os.listdir(os.path.join(TREE, "kernel/series")) == ["arraymap"]
ALL = (("eager", "vanilla"), ("fault only", "patched:arraymap@3"),
       ("window", "patched:arraymap@4"), ("ramp", "patched" if ONLY else "patched:arraymap"))
REDUCED = (("eager", "vanilla"), ("ramp", "patched"))

# Cell, options of the workload, what of a repeat is added up.
CELLS = (("mmap", "--touch none", ("mmap_ns",)),
         ("read all", "--touch read", ("mmap_ns", "touch_ns")),
         ("write all", "--touch write", ("mmap_ns", "touch_ns")),
         ("populate", "--touch none --populate", ("mmap_ns",)),
         ("one page", "--touch one", ("mmap_ns", "touch_ns")),
         ("untouched", "--touch none", ("mmap_ns", "munmap_ns")),
         ("munmap clean", "--touch read", ("munmap_ns",)),
         ("munmap dirty", "--touch write", ("munmap_ns",)),
         ("fork", "--touch fork", ("touch_ns",)))
FAULTS = (("faults, read", "--touch read"), ("faults, write", "--touch write"))

# Cell, of, against, at most this part of it. A margin of 1 % is what counts as equal.
TARGETS = (("untouched", "ramp", "eager", 0.01), ("read all", "ramp", "eager", 0.35),
           ("write all", "ramp", "eager", 0.35), ("populate", "ramp", "eager", 0.6),
           ("one page", "ramp", "fault only", 1.3), ("munmap clean", "ramp", "eager", 1.01),
           ("munmap dirty", "ramp", "eager", 1.01), ("fork", "ramp", "eager", 1.01))
# 8 MiB lie in five page tables at most: two faults each, and one for the first window.
MOST_FAULTS = (("window", 129), ("ramp", 2 * 5 + 1))

PUBLISHED = """
Published for public proposals of 2025 and 2026, in microseconds on hardware, 8 MiB:

| variant | mmap | touch | populate | both |
|---|---|---|---|---|
| eager | 220 | 252 | 304 | 334 |
| fault and map_pages (v3) | 1.2 | 543 (written) | 262 | 286 |
"""


def guest(kernel, icount, seed, repeats):
    """One boot: {options: JSON of the workload}, the kernel's own name."""
    runs = list(dict.fromkeys(options for _, options, _ in CELLS))
    lines = [f"head -c {37 * seed}K /dev/zero > /tmp/earlier",
             f"export EARLIER=$(head -c {48 * seed} /dev/zero | tr '\\0' x)", "uname -rv"]
    lines += [f"mmscope bench arraymap --size 8M -n {repeats} --json {run}" for run in runs]
    argv = [BINARY, "vm", "--kernel", kernel, "--timeout", "900"]
    argv += ["--icount"] if icount else []
    p = subprocess.run(argv + ["--", "sh", "-e", "-c", "\n".join(lines)], cwd=TREE,
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    out = p.stdout.splitlines()
    if p.returncode or len(out) != len(runs) + 1:
        raise RuntimeError(f"{kernel}: status {p.returncode}: {p.stderr.strip()[-500:]}")
    return dict(zip(runs, map(json.loads, out[1:]))), out[0]


def reduce(boot, how):
    """{cell: one number of the boot}, of the sums of each repeat."""
    found = {}
    for cell, options, parts in CELLS:
        laps = zip(*(boot[options][p] for p in parts))
        found[cell] = how(sum(lap) for lap in laps)
    for cell, options in FAULTS:
        found[cell] = boot[options]["minflt"] / boot[options]["repeat"]
    return found


def known(state, key):
    """What an earlier run, which was interrupted, has found."""
    if state and os.path.exists(state):
        with open(state, encoding="utf-8") as f:
            for line in f:
                entry = json.loads(line)
                if entry[0] == key:
                    return entry[1:]
    return None


def measure(args, layouts, icount):
    """{variant: [boot by boot]}, {variant: the kernel's own name}."""
    boots, names = {variant: [] for variant, _ in args.kernels}, {}
    for seed in range(layouts):
        # Back and forth: a drift of the machine falls on all.
        for variant, kernel in args.kernels if seed % 2 == 0 else args.kernels[::-1]:
            key = ["icount" if icount else "time", seed, kernel, args.repeats]
            found = known(args.state, key)
            if not found:
                boot, name = guest(kernel, icount, seed, args.repeats)
                found = [reduce(boot, min if icount else statistics.median), name]
                if args.state:
                    with open(args.state, "a", encoding="utf-8") as f:
                        f.write(json.dumps([key] + found) + "\n")
            boots[variant].append(found[0])
            names[variant] = found[1]
            print(f"# {key[0]}, layout {seed + 1} of {layouts}: {variant}", flush=True)
    return boots, names


def span(values, scale):
    low, high = min(values) / scale, max(values) / scale
    digits = 1 if high < 100 else 0
    low, high = f"{low:.{digits}f}", f"{high:.{digits}f}"
    return low if low == high else f"{low} to {high}"


def table(boots, scale, faults):
    cells = [c for c, *_ in CELLS] + ([c for c, _ in FAULTS] if faults else [])
    lines = ["| variant | " + " | ".join(cells) + " |", "|---" * (len(cells) + 1) + "|"]
    for variant, found in boots.items():
        row = [span([b[c] for b in found], 1 if c.startswith("faults") else scale) for c in cells]
        lines.append(f"| {variant} | " + " | ".join(row) + " |")
    return lines


def judge(boots):
    """(name, met: True, False or None for cannot tell, what was found) of each target."""
    for cell, of, against, most in TARGETS:
        if of not in boots or against not in boots:
            continue
        ratios = [a[cell] / b[cell] for a, b in zip(boots[of], boots[against])]
        low, high = min(ratios), max(ratios)
        met = True if high <= most else False if low > most else None
        yield (f"{cell}: {of} at most {most} of {against}", met, f"{low:.4f} to {high:.4f}")
    for variant, most in MOST_FAULTS:
        for cell, _ in FAULTS:
            if variant in boots:
                values = [b[cell] for b in boots[variant]]
                yield (f"{cell}: {variant} at most {most}", max(values) <= most, span(values, 1))


VERDICT = {True: "pass", False: "miss", None: "cannot tell"}


def document(args, counts, times, names):
    out = ["<!-- SPDX-License-Identifier: GPL-2.0-only -->", "# Mapped BPF arrays, before and after",
           "", f"{time.strftime('%Y-%m-%d')}, `make table-arraymap`: a BPF array of 8 MiB, mapped,",
           "touched and unmapped; a fresh one for each repeat. The variants are the steps of",
           "`kernel/series/arraymap`.", ""]
    out += [f"- {variant}: `{kernel}`, {names[variant]}" for variant, kernel in args.kernels]
    out += ["", "## Instructions", "",
            f"Thousands, in guests of an emulator that counts them (`--icount`): the lowest of "
            f"{args.repeats} repeats,", f"from the least to the most of {args.layouts} layouts. "
            "They are no times. \"read all\", \"write all\" and", "\"one page\" include mmap; "
            "\"untouched\" is mmap and munmap; \"fork\" is of a process that has", "written the "
            "whole mapping. The faults of a repeat depend on where the mapping lies.", ""]
    out += table(counts, 1e3, True)
    out += ["", "## Targets", "", "Ratios within each layout, the least and the most of them.", "",
            "| target | found | |", "|---|---|---|"]
    out += [f"| {name} | {found} | {VERDICT[met]} |" for name, met, found in judge(counts)]
    if not times:
        return "\n".join(out) + "\n" + PUBLISHED
    out += ["", "## Times", "",
            f"Microseconds, two emulated CPUs: the median of {args.repeats} repeats, from the least to "
            f"the most of", f"{args.times} boots. For screening only: an emulator's times are not "
            "those of a machine,", f"and this one had other work (load {os.getloadavg()[2]:.0f} "
            f"on {os.cpu_count()} CPUs).", ""]
    out += table(times, 1e3, False)
    return "\n".join(out) + "\n" + PUBLISHED


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reduced", action="store_true", help="two kernels, few layouts")
    parser.add_argument("--output", metavar="FILE", help="write the table there")
    parser.add_argument("--layouts", type=int, help="boots of each kernel with --icount")
    parser.add_argument("--times", type=int, help="boots of each kernel for times")
    parser.add_argument("--repeats", type=int, help="of each cell in a boot")
    parser.add_argument("--state", metavar="FILE", help="go on where a run with it ended")
    args = parser.parse_args()
    args.kernels = REDUCED if args.reduced else ALL
    args.layouts = args.layouts or (2 if args.reduced else 10)
    args.times = (0 if args.reduced else 5) if args.times is None else args.times
    args.repeats = args.repeats or (7 if args.reduced else 15)

    counts, names = measure(args, args.layouts, True)
    times = measure(args, args.times, False)[0] if args.times else None
    for line in table(counts, 1e3, True) + (table(times, 1e3, False) if times else []):
        print("# " + line)
    count = failed = 0
    for name, met, found in judge(counts):
        count += 1
        failed += met is False
        print(f"# {found}")
        print(f"{'not ok' if met is False else 'ok'} {count} - {name}"
              + (f" # SKIP cannot tell: {found}" if met is None else ""))
    print(f"1..{count}")
    if args.output:
        with open(args.output, "w", encoding="utf-8") as f:
            f.write(document(args, counts, times, names))
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as e:
        print(f"Bail out! {e}")
        sys.exit(1)
