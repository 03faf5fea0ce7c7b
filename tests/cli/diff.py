#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 300
"""mmscope diff on recordings made here: status, verdict, what the options may not change."""
import copy
import json
import os
import random
import re
import subprocess

from made import TMP, batch, counter, machine, recording, run, write
from tap import finish, result

MMSCOPE = os.environ["MMSCOPE"]
LARGEST = 2**63 - 1


def timed(values, side, per_boot=1, turns=False, **kwargs):
    """One value a run; per_boot runs a boot. Sides lie apart in time, or take turns (ABBA)."""
    runs = []
    for i, v in enumerate(values):
        boot = i // per_boot
        at = 2 * boot + ((boot & 1) ^ (side == "new")) if turns else boot + 1000 * (side == "new")
        runs.append(run(boot + 100 * (side == "new"), at, values=[("speed", v, "ns", "lower")]))
    return recording(runs, ["speed"], **kwargs)


def eager(boots, first=0, **changes):
    return recording([run(first + i, 10 * i, [
        counter("ptes_installed", 2048, backing="bpf_array", method="eager", trigger="mmap"),
        batch("ptes_per_hold", [(1, 2048)], backing="bpf_array", method="eager", trigger="mmap")])
        for i in range(boots)], **changes)


def lazy(boots, first=500, **changes):
    return recording([run(first + i, 5000 + 10 * i, [
        counter("fault_attempts", 4096, backing="bpf_array", trigger="access"),
        counter("fault_completed", 2048, backing="bpf_array", method="per_page",
                trigger="access", kind="minor"),
        counter("fault_refused", 2048, backing="bpf_array", reason="no_map_pages"),
        counter("ptes_installed", 2048, backing="bpf_array", method="per_page", trigger="access"),
        batch("ptes_per_hold", [(1, 2048)], backing="bpf_array", method="per_page",
              trigger="access")]) for i in range(boots)], release="7.3.4-cloud-amd64", **changes)


def mmscope(*args, **kwargs):
    kwargs.setdefault("stdout", subprocess.PIPE)
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([MMSCOPE, "diff", *args], stderr=subprocess.PIPE, timeout=60,
                          check=False, **kwargs)


def strict(data):
    def pairs(p):
        if len({k for k, _ in p}) != len(p):
            raise ValueError(f"duplicate key in {p}")
        return dict(p)

    def refuse(word):
        raise ValueError(word)
    return json.loads(data.decode("utf-8"), object_pairs_hook=pairs, parse_constant=refuse)


def differ(base, new, *options):
    """Status, text and JSON; they and all display options must agree."""
    a, b = write("base.json", base), write("new.json", new)
    text = mmscope(*options, a, b)
    j = mmscope(*options, "--json", a, b)
    parsed = strict(j.stdout)
    out = text.stdout.decode()
    problems = []
    if j.returncode != text.returncode or parsed["status"] != text.returncode:
        problems.append(f"status {text.returncode}, of JSON {j.returncode}, in it "
                        f"{parsed['status']}")
    if text.stderr or j.stderr:
        problems.append(text.stderr + j.stderr)
    for args in (["--all"], ["--metric", "speed"], ["--metric", "nothing"],
                 ["--metric", "fault_completed", "--all"], ["--format", "lkml"]):
        got = mmscope(*options, *args, a, b).returncode
        if got != text.returncode:
            problems.append(f"{args} changes the status {text.returncode} to {got}")
    for line in out.split("\n"):
        if len(line) > 100 or line != line.rstrip():
            problems.append(f"line: {line}")
    for line in mmscope(*options, "--format", "lkml", a, b).stdout.decode().split("\n"):
        if len(line) > 75 or line != line.rstrip():
            problems.append(f"LKML line: {line}")
    return text.returncode, out, parsed, problems


def expect(name, base, new, status, *words, options=(), absent=()):
    got, out, parsed, problems = differ(base, new, *options)
    flat = " ".join(out.split())
    if got != status:
        problems.append(f"status {got} is not {status}")
    problems += [f"does not say: {w}" for w in words if w not in flat]
    problems += [f"says: {w}" for w in absent if w in flat]
    if problems:
        problems += out.split("\n")
    result(name, problems)
    return parsed


def item(parsed, name):
    return next(m for m in parsed["metrics"] if m["name"] == name)


def the_unit():
    rng = random.Random(1)
    slow = [100 + rng.gauss(0, 1) for _ in range(10)]
    fast = [110 + rng.gauss(0, 1) for _ in range(10)]
    expect("ten runs in one boot against ten in another", timed(slow, "base", 10),
           timed(fast, "new", 10), 125, "CANNOT TELL", "the unit is the boot",
           "10 and 10 runs are 1 and 1 values")
    expect("three boots against three, apart", timed([100, 101, 102], "base"),
           timed([200, 201, 202], "new"), 125, "3 and 3 boots cannot tell", "4 a side are needed")
    for a, b in ((2323263, 2263974), (2410188, 2151474)):
        expect(f"single numbers {a} and {b}", timed([a], "base"), timed([b], "new"), 125,
               "CANNOT TELL", "the unit is the boot")
        expect(f"single numbers {b} and {a}", timed([b], "base"), timed([a], "new"), 125,
               "CANNOT TELL")
    expect("four boots against four, apart: worse", timed([100, 101, 102, 103], "base"),
           timed([200, 201, 202, 203], "new"), 1, "WORSE: speed", "not recorded in turns")
    expect("swapped: better", timed([200, 201, 202, 203], "base"),
           timed([100, 101, 102, 103], "new"), 0, "HELD")
    expect("ten boots, the same", timed([100 + i % 3 / 10 for i in range(10)], "base"),
           timed([100 + i % 4 / 10 for i in range(10)], "new"), 0, "HELD: speed is the same")
    expect("ten boots, too noisy", timed([100 + 9 * (i % 3) for i in range(10)], "base"),
           timed([104 + 9 * (i % 3) for i in range(10)], "new"), 125,
           "reaches across the margin of 3 %", "too noisy")


def blocks():
    drift = [100 + 10 * i for i in range(8)]
    up = [v * 1.05 for v in drift]
    base, new = timed(drift, "base", turns=True), timed(up, "new", turns=True)
    parsed = expect("blocks see through a drift", base, new, 1, "WORSE", "in blocks",
                    absent=["not recorded in turns"])
    speed = item(parsed, "speed")
    result("of 5 % in each block", [] if abs(speed["change"] - 0.05) < 1e-9 and
           speed["evidence"] == "blocks" and abs(speed["p"] - 2 / 256) < 1e-12 else [speed])
    expect("which boots on their own do not", timed(drift, "base"), timed(up, "new"), 125)
    expect("five blocks decide nothing", timed(drift[:5], "base", turns=True),
           timed(up[:5], "new", turns=True), 125, "6 a side are needed")
    same = copy.deepcopy(base)
    expect("a file against itself is the same", base, same, 0)
    half = copy.deepcopy(base)
    half["runs"][0]["boot_id"] = "00000000-0000-4000-8000-000000009999"
    expect("files that share some boots only", base, half, 125, "boots are in both files")
    for n, run in enumerate(half["runs"][:-1]):
        run["boot_id"] = f"10000000-0000-4000-8000-00000000{n:04}"
    expect("files that share one boot only", base, half, 125, "1 boot is in both files")


def families():
    """One of five primaries apart by boots that suffice for one only."""
    names = [f"v{i}" for i in range(5)]

    def five(shift, side, boots):
        runs = [run(i + 100 * (side == "new"), i + 1000 * (side == "new"),
                    values=[(n, 100 + i + (shift if n == "v0" else 0), "ns", "lower")
                            for n in names]) for i in range(boots)]
        return recording(runs, names)
    expect("four boots cannot decide five primaries", five(0, "base", 4), five(90, "new", 4), 125,
           "4 and 4 boots cannot tell", "5 a side are needed for 5 metrics")
    expect("five boots can", five(0, "base", 5), five(90, "new", 5), 1, "WORSE: v0")
    a, b = five(0, "base", 10), five(90, "new", 10)
    a["primary"], b["primary"] = ["v1"], ["v1"]
    parsed = expect("a metric that is not primary decides nothing", a, b, 0, "*: look at it")
    result("it is marked", [] if item(parsed, "v0")["look_at"] and
           item(parsed, "v0")["verdict"] == "worse" else [item(parsed, "v0")])
    got, out, parsed, problems = differ(dict(a, runs=a["runs"][:5]), dict(b, runs=b["runs"][:5]))
    result("five boots mark nothing among so many", problems if not item(parsed, "v0")["look_at"]
           and "but not as one of" in item(parsed, "v0")["reason"] else [item(parsed, "v0")])
    b["primary"] = ["v2"]
    expect("primaries that differ", a, b, 125, "the primary metrics differ: v2 is one of NEW only")
    a["primary"] = b["primary"] = ["missing"]
    expect("a primary that no file has", a, b, 125, "missing is unavailable",
           "no such metric or value")
    for r in b["runs"]:
        r["values"] = [{"name": "w", "value": 1, "unit": "", "better": "lower"}]
        r["trust"]["probes"] = []
    for r in a["runs"]:
        r["trust"]["probes"] = []
    expect("nothing in common", a, b, 125, "nothing in common")
    expect("a file without runs", recording([]), a, 125, "BASE holds no run")
    a["primary"] = b["primary"] = ["fault_completed"]
    expect("what was not recorded is not zero", a, b, 125, "nothing in common")


def counts():
    five, other = eager(5), lazy(5)
    parsed = expect("arraymap, eager against lazy: worse", five, other, 1, "WORSE: fault_completed",
                    "exact: equal in all 5 and 5 boots")
    faults = item(parsed, "fault_completed")
    result("no percentage of a base of zero",
           [] if faults["change"] is None and faults["interval"] is None and
           faults["base"]["median"] == 0 and faults["new"]["median"] == 2048 else [faults])
    expect("swapped: held", other, five, 0, "HELD: all primary metrics are the same or better")
    expect("one boot a side", eager(1), lazy(1), 125, "the unit is the boot")
    expect("four boots of exact counts: by statistics", eager(4), lazy(4), 125,
           "5 a side are needed for 2 metrics")
    four = [dict(x, primary=["fault_completed"]) for x in (eager(4), lazy(4))]
    expect("which can decide one metric", *four, 1, "WORSE: fault_completed")
    for r in other["runs"][:1]:
        r["metrics"][1]["value"] = 2049
    expect("not equal in all boots: by statistics", five, other, 1, "WORSE: fault_completed")
    three = eager(3)
    expect("three boots of exact counts", three, lazy(3), 125, "5 a side are needed")

    lost = lazy(5)
    for r in lost["runs"]:
        r["metrics"][1]["max"] = 2053
    expect("counts with lost runs: by statistics", eager(5), lost, 1, "events were lost")
    for r in lost["runs"]:
        r["metrics"][1]["lower_bound"] = True
    expect("counts without an upper bound", eager(5), lost, 125, "nothing tells how many")
    lost = lazy(5)
    for r in lost["runs"]:
        r["metrics"][1:2] = [{"name": "fault_completed", "unavailable": "lockdown"}]
    expect("unavailable on one side", eager(5), lost, 125,
           "fault_completed is unavailable on NEW: lockdown")
    expect("a primary that has no direction",
           recording(eager(5)["runs"], ["ptes_installed"]),
           recording([run(50 + i, 5000 + i, [counter("ptes_installed", 9, backing="file",
                                                     method="cow", trigger="access")])
                      for i in range(5)], ["ptes_installed"]),
           125, "ptes_installed changed, and neither direction of it is better")


def faults_of(side, counts, asked=2048, method="fault_around", primary=(), hold=None):
    """A run per count of faults; a hold of 16 pages each, or as `hold` says of all runs."""
    return recording([run(i + 100 * (side == "new"), i + 1000 * (side == "new"), [
        counter("fault_completed", n, backing="file", method=method, trigger="access",
                kind="minor"),
        counter("fault_around_asked", asked, backing="file"),
        batch("ptes_per_hold", hold or [(16, n)], backing="file", method="fault_around",
              trigger="access")]) for i, n in enumerate(counts)], primary)


def alignment():
    """128 windows of 16 pages over 4 page tables: five faults more or less mean nothing."""
    def around(faults, side):
        return faults_of(side, [faults] * 5)
    expect("five windows more are alignment", around(128, "base"), around(133, "new"), 0,
           "alignment alone may make 123 to 133 of BASE")
    expect("six are not", around(128, "base"), around(134, "new"), 1, "WORSE: fault_completed")
    expect("nor are six less, which is better", around(134, "base"), around(128, "new"), 0)

    # 512 pages by a hold each, or by one for each of the 3 page tables that they lie in,
    # after which 600 to 1600 pages were looked for: at most 512 / (3 + 5) a hold elsewhere.
    def pages(side, holds, asked, faults):
        return recording([run(i + 100 * (side == "new"), i + 1000 * (side == "new"), [
            counter("fault_completed", faults, backing="file", method="fault_around",
                    trigger="access", kind="minor"),
            counter("fault_around_asked", asked, backing="file"),
            batch("ptes_per_hold", holds, backing="file", method="fault_around",
                  trigger="access")]) for i in range(5)], ["ptes_per_hold", "fault_completed"])
    for asked in (600, 1600):
        eagerly = pages("base", [(1, 512)], 0, 0)
        tables = pages("new", [(127, 2), (258, 1)], asked, 3)
        parsed = expect(f"few holds are another way of counting, not alignment: {asked}",
                        eagerly, tables, 1, "WORSE: fault_completed")
        result("... which is better", [] if item(parsed, "ptes_per_hold")["verdict"] == "better"
               else [parsed])
        expect("... and worse, swapped", tables, eagerly, 1, "WORSE: ptes_per_hold")
    expect("all pages in one table, or in three", tables, pages("new", [(512, 1)], 1600, 1), 0,
           "alignment alone may make")


    # A touch of one page maps what is in the cache of its window: 1 to 16 pages in a hold.
    one = [pages(side, [(n, 1)], 16, 1) for side, n in (("base", 16), ("new", 1))]
    parsed = expect("one hold of 16 pages, or of 1: the end of the mapping", *one, 0,
                    "alignment alone may make 1 to 48 of BASE")
    result("... of the mean", [] if item(parsed, "ptes_per_hold")["verdict"] == "same"
           else [parsed])
    expect("... and of 1, or of 16", pages("base", [(1, 1)], 16, 1), pages("new", [(16, 1)], 16, 1),
           0, "alignment alone may make")
    expect("a thousand holds of 16 pages, or of 8, are not alignment",
           pages("base", [(16, 1000)], 16000, 1000), pages("new", [(8, 1000)], 16000, 1000), 1,
           "WORSE: ptes_per_hold")

    # What there is none of has come or gone, and lies no other way.
    none, two = [faults_of(side, [n] * 5, 16, "per_page",
                           ["fault_completed{backing=file,method=per_page}"], [(16, 9)])
                 for side, n in (("base", 0), ("new", 2))]
    expect("a method that did not exist appears: worse", none, two, 1, "WORSE: fault_completed",
           absent=["alignment alone"])
    expect("one that disappears: better", two, none, 0, "better", absent=["alignment alone"])
    expect("from one to two is alignment", faults_of("base", [1] * 5, 16, "per_page",
                                                     two["primary"], [(16, 9)]), two, 0,
           "alignment alone may make 1 to 3 of BASE")


def unequal():
    """Sides whose boots differ: exact as far as alignment explains each of them."""
    def sides(base, new, asked=1600):
        """asked 1600: 5 faults are alignment."""
        return [faults_of(side, counts, asked, primary=["fault_completed"], hold=[(1, 1)])
                for side, counts in (("base", base), ("new", new))]

    def judged(name, base, new, status, verdict, *words, asked=1600):
        parsed = expect(name, *sides(base, new, asked), status, *words)
        got = item(parsed, "fault_completed")
        result(f"... {verdict}", [] if got["verdict"] == verdict else [got])
    statistics = "not recorded in turns"
    wide = [100000, 100001, 100003, 100005, 100008]
    judged("boots that alignment does not explain, against themselves", wide, wide, 0, "same",
           statistics)
    base = [100000, 100004, 100006, 100008, 100010]
    new = [100008, 100010, 100013, 100016, 100018]
    judged("such sides that overlap are not better for a rise", base, new, 0, "same", statistics)
    judged("... nor worse for a fall", new, base, 0, "same", statistics)
    base = [100000, 100001, 100002, 100004, 100007]
    new = [100008, 100010, 100012, 100013, 100015]
    judged("nor is a rise of three alignments worse", base, new, 0, "same", statistics)
    judged("... or its fall better", new, base, 0, "same", statistics)
    judged("boots that alignment explains, on both sides", [128, 129, 129, 131, 132],
           [130, 133, 131, 131, 129], 0, "same", "alignment alone may make 127 to 133 of BASE")
    judged("... that overlap, and may lie in between", [128, 129, 130, 131, 133],
           [131, 132, 133, 134, 136], 125, "cannot tell",
           "alignment alone may make 128 to 133 of BASE, and 131 to 136 of NEW")
    judged("... that are apart: worse", [128, 129, 130, 131, 132], [140, 141, 142, 143, 144], 1,
           "worse", "alignment apart")
    judged("... that are apart: better", [140, 141, 142, 143, 144], [128, 129, 130, 131, 132], 0,
           "better", "alignment apart")
    judged("bounds are shown in full", [100000] * 5, [100004] * 5, 0, "same",
           "alignment alone may make 99995 to 100005 of BASE")

    # 100 pairs of one distribution, spread over 1 to 4 alignments. Statistics have their level.
    rng = random.Random(2)
    problems = []
    for n in range(100):
        spread = 5 + 15 * n // 99
        pair = [[100000 + rng.randint(0, spread) for _ in range(5)] for _ in range(2)]
        done = mmscope("--json", *[write(f"{i}.json", r) for i, r in enumerate(sides(*pair))])
        got = item(strict(done.stdout), "fault_completed")
        if got["verdict"] not in ("same", "cannot tell") or done.returncode == 1:
            problems.append(f"{pair}: {got['verdict']}")
    result("100 pairs of one distribution are never worse or better", problems)

def states():
    values = [100 + i for i in range(5)]
    for name, change in (("THP", {"thp": "never"}), ("mTHP", {"mthp": {"64kB": "always"}}),
                         ("fault_around_bytes", {"fault_around_bytes": 4096}),
                         ("fault_around_bytes", {"fault_around_bytes": None}),
                         ("CPUs online", {"cpus_online": 1}), ("page size", {"page_size": 65536}),
                         ("virtual machine", {"virt": "tcg"}), ("memory", {"memory_kib": 1010001}),
                         ("preemption", {"config": {"PREEMPT": "y", "HZ": "250", "DEBUG_VM": "n",
                                                    "KASAN": "n", "PROVE_LOCKING": "n"}}),
                         ("CONFIG_KASAN", {"config": {"PREEMPT_LAZY": "y", "HZ": "250",
                                                      "DEBUG_VM": "n", "KASAN": "y",
                                                      "PROVE_LOCKING": "n"}})):
        base, new = timed(values, "base"), timed([2 * v for v in values], "new", **change)
        expect(f"unlike: {name} ({change})", base, new, 125, "NOT alike", name)
        expect(f"--ignore-state decides: {name} ({change})", base, new, 1, "(ignored)",
               options=["--ignore-state"])
        expect(f"in the other direction: {name} ({change})", new, base, 125, "NOT alike")
    new = timed([2 * v for v in values], "new")
    expect("1 % of memory is alike", timed(values, "base"), timed([2 * v for v in values], "new",
           memory_kib=1010000), 1, "state: alike")
    expect("no mTHP is the PMD size inherited", timed(values, "base"),
           timed([2 * v for v in values], "new", mthp={}), 1, "state: alike")
    for kib, status in ((5000, 1), (5001, 125)):
        for r in new["runs"]:
            r["anon_huge_kib"] = kib
        expect(f"AnonHugePages of {kib} KiB in an RSS of 100000", timed(values, "base"), new,
               status, "state: alike" if status == 1 else "AnonHugePages at the end 0 KiB 5001 KiB")
    expect("ignored", timed(values, "base"), new, 1, options=["--ignore-state"])
    base = timed(values, "base")
    for i, (a, b) in enumerate(zip((8192, 10240, 8192, 8192, 6144), (8192, 8192, 4096, 0, 9000))):
        base["runs"][i]["anon_huge_kib"], new["runs"][i]["anon_huge_kib"] = a, b
    expect("AnonHugePages that vary around one median", base, new, 1, "state: alike")
    for r, kib in zip(new["runs"], (20480, 22528, 20480, 18432, 24576)):
        r["anon_huge_kib"] = kib
    expect("but not with medians apart", base, new, 125, "AnonHugePages at the end")
    for r, kib in zip(new["runs"], (8192, 0, 0)):
        r["anon_huge_kib"] = kib
    expect("nor with medians apart that overlap", dict(base, runs=base["runs"][:3]),
           dict(new, runs=new["runs"][:3]), 125, "the machines are not alike (AnonHuge")
    failed = timed(values, "new")
    failed["runs"][2]["exit_status"] = 139
    expect("a command that failed", timed(values, "base"), failed, 125,
           "the command failed in 1 of 5 runs of NEW, with status 139")


def instructions():
    def icount(boots, shift, side, ticks=0):
        return timed([v for i in range(boots) for v in ((1000 + 37 * (i % 7)) * shift,
                                                        (1000 + 37 * (i % 7)) * shift + ticks)],
                     side, 2, virt="icount")
    parsed = expect("instructions, 2 % more in each layout", icount(10, 1, "base"),
                    icount(10, 1.02, "new", 400), 1, "WORSE", "times are instructions")
    speed = item(parsed, "speed")
    result("by the range over layouts, without a p-value",
           [] if speed["evidence"] == "layouts" and "p" not in speed and
           abs(speed["change"] - 0.02) < 1e-9 else [speed])
    expect("0.5 % are the same", icount(10, 1, "base"), icount(10, 1.005, "new"), 0)
    expect("nine layouts are too few", icount(9, 1, "base"), icount(9, 1.5, "new"), 125,
           "need the same 10 layouts")
    expect("layouts that disagree", icount(10, 1, "base"),
           timed([1000 if i == 3 else 1500 for i in range(10)], "new", virt="icount"), 125,
           "over the layouts it changed by")


def errors():
    good = write("good.json", eager(5))
    bad = write("bad.json", eager(5))
    with open(bad, "r+") as f:
        f.truncate(200)
    for name, args, status, says in (
            ("no file", (), 129, "BASE and NEW"), ("one file", (good,), 129, "BASE and NEW"),
            ("three files", (good, good, good), 129, "BASE and NEW"),
            ("an unknown option", ("--nothing", good, good), 129, "--nothing"),
            ("an unknown format", ("--format", "html", good, good), 129, "html"),
            ("two standard inputs", ("-", "-"), 129, "not both"),
            ("a damaged file", (good, bad), 125, "bad.json"),
            ("a file that is not there", (good, good + ".not"), 125, "good.json.not")):
        done = mmscope(*args)
        line = done.stderr.decode()
        problems = [] if done.returncode == status else [f"{done.returncode} is not {status}"]
        if not re.fullmatch(r"mmscope: [^\n]+\n", line) or says not in line:
            problems.append(line)
        result(f"{name} is one line and status {status}", problems)
        if args and args[0].startswith("--"):
            continue        # the format is not known yet
        done = mmscope("--json", *args)
        try:
            problems = [] if "error" in strict(done.stderr) else [done.stderr]
        except ValueError:
            problems = [done.stderr]
        result(f"{name} is an object with --json", problems)
    with open(good, "rb") as f:
        done = mmscope(good, "-", stdin=f)
    result("standard input as NEW", [] if done.returncode == 0 else [done.stdout, done.stderr])
    with open("/dev/full", "wb") as full:
        for form in ("text", "lkml", "json"):
            done = mmscope("--format", form, good, good, stdout=full)
            result(f"a full disk is said and no verdict ({form})",
                   [] if done.returncode == 129 and b"No space left" in done.stderr
                   else [done.returncode, done.stderr])
    out = os.path.join(TMP, "out.txt")
    done = mmscope("-o", out, good, good)
    with open(out) as f:
        written = f.read()
    result("-o writes a file", [] if done.returncode == 0 and not done.stdout and
           "HELD" in written else [done.returncode, done.stdout, written])
    result("--help", [] if mmscope("--help").returncode == 0 else ["status"])


def hostile():
    """Names as long and as nasty as a file can hold them stay within every width."""
    names = ["x" * 300, "a\n\x1b[31mb", "\u00e9" * 60, "m{a=b}", "speed.p99"]

    def nasty(shift, side):
        return recording([run(i + 100 * (side == "new"), i + 1000 * (side == "new"),
                              values=[(n, (1e300 if k == 0 else 10.0 ** (3 * k)) * (shift + i),
                                       "u" * 60, "higher") for k, n in enumerate(names)])
                          for i in range(5)], ["speed.p99"])
    got, out, parsed, problems = differ(nasty(1, "base"), nasty(1e6, "new"))
    if "\x1b" in out or got != 0:
        problems += [got, out]
    result("hostile names and numbers", problems)
    rec = lazy(5)
    for r in rec["runs"]:
        r["metrics"] += [
            counter("fault_completed", 2**62, backing="guest_memfd", method="large_folio",
                    trigger="populate", kind="major"),
            {"name": "fault_latency", "unit": "ns", "count": 2, "sum": LARGEST,
             "labels": {"backing": "guest_memfd", "method": "large_folio", "trigger": "populate"},
             "buckets": [[3072, 3328, 1], [1 << 40, None, 1]]},
            {"name": "fault_attempt_latency", "unit": "ns", "count": 2, "sum": 1099511627000,
             "labels": {"backing": "guest_memfd", "outcome": "completed"},
             "buckets": [[7, 8, 1], [1030792151040, 1099511627776, 1]]},
            {"name": "fault_attempt_latency", "unit": "ns", "count": 1, "sum": 100,
             "labels": {"backing": "bpf_ringbuf", "outcome": "completed"},
             "buckets": [[96, 104, 1]]}]
    # Bounds of 640 ms to 16.7 minutes, in one column.
    rec["runs"][0]["metrics"][-1] = {
        "name": "fault_attempt_latency", "unit": "ns", "count": 1, "sum": 10**12 - 1,
        "labels": {"backing": "bpf_ringbuf", "outcome": "completed"},
        "buckets": [[962072674304, 1030792151040, 1]]}
    for r in rec["runs"][1:]:
        r["metrics"][-1]["buckets"] = [[603979776, 671088640, 1]]
        r["metrics"][-1]["sum"] = 640000000
        del r["metrics"][-2]
    got, out, parsed, problems = differ(rec, lazy(5, 700))
    result("the longest names of metrics and labels", problems + ([] if got == 0 else [out]))


the_unit()
blocks()
families()
counts()
alignment()
unequal()
states()
instructions()
errors()
hostile()
finish()
