#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Recordings of waits: report, diff and check of what record -e lock saves."""
import os
import re
import subprocess

from made import counter, recording, run, write
from tap import finish, result

MMSCOPE = os.environ["MMSCOPE"]
PROBES = ("contention", "contention end", "rwsem write", "rwsem write end", "spinlock",
          "spinlock end")
FAULTS = ("fault entry", "fault exit")
TABLE_WAITS, TABLE_NS = 10, 1000    # always as many


def took(number, each, buckets=True, **labels):
    """Waits of `each` ns: eight buckets a power of two, none in rows by an open label."""
    width = 1 << max(0, each.bit_length() - 4)
    low = each // width * width
    return {"name": "lock_wait", "labels": labels, "unit": "ns", "count": number,
            "sum": number * each,
            "buckets": [[low, low + width, number]] if buckets and number else []}


def waits(boot, number, each=5000, by=None, faults=False, start=None):
    """A run in which the own mmap_lock was waited for so often, and a page table ten times."""
    own = {"class": "mmap_lock", "mode": "write", "mm": "own"}
    table = {"class": "page_table", "mode": "spin", "mm": "none"}
    metrics = [counter("lock_contended", number, **own),
               counter("lock_contended", TABLE_WAITS, **table),
               took(number, each, **own), took(TABLE_WAITS, TABLE_NS, **table),
               counter("lock_events", number, mode="write"),
               counter("lock_events", TABLE_WAITS, mode="spin")]
    if by:
        for row, n, ns in (("make-77", number, each), ("cc1", TABLE_WAITS, TABLE_NS)):
            metrics += [counter("lock_contended", n, **{by: row}),
                        took(n, ns, buckets=False, **{by: row})]
    if faults:
        metrics += [counter("fault_waited", 3000, part="page_table"),
                    counter("fault_waited", 5000000, part="io"),
                    {"name": "fault_latency", "unit": "ns", "count": 4, "sum": 8000000,
                     "labels": {"backing": "file", "method": "per_page", "trigger": "access"},
                     "buckets": [[1966080, 2097152, 4]]}]
    made = run(boot, boot if start is None else start, metrics)
    made["trust"]["probes"] = [{"event": e, "mechanism": "fentry", "symbol": "f", "misses": 0}
                               for e in PROBES + (FAULTS if faults else ())]
    return made


def several(numbers, first=0, **kwargs):
    """A run a boot; those of two files that have the same boots take turns (ABBA)."""
    return recording([waits(first + i, n, start=2 * i + ((i & 1) ^ (first > 0)), **kwargs)
                      for i, n in enumerate(numbers)])


def mmscope(*args, status=0):
    """(what it prints with single spaces, problems)"""
    p = subprocess.run([MMSCOPE, *args], stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, timeout=60, check=False)
    wrong = [] if p.returncode == status else [f"status {p.returncode}, not {status}: {p.stderr}"]
    wrong += [f"line: {x}" for x in p.stdout.split("\n") if args[0] != "check" and
              (len(x) > 100 or x != x.rstrip())]
    return re.sub(" +", " ", p.stdout + p.stderr), wrong


def expect(name, args, lines, absent=(), status=0):
    out, wrong = mmscope(*args, status=status)
    wrong += [f"does not say: {x}" for x in lines if x not in out]
    wrong += [f"says: {x}" for x in absent if x in out]
    result(name, wrong + [out] if wrong else None)


def reports():
    one = write("one.json", recording([waits(0, 100)]))
    owner = write("owner.json", recording([waits(0, 100, by="owner")]))
    comm = write("comm.json", recording([waits(0, 100, by="comm")]))
    classes = ["110 waits for locks, 510 us; mmap_lock (write) has 98 % of it",
               "mmap_lock write own 100 500 us 98 % 5.00 us <5.12us <5.12us",
               "page_table spin - 10 10.0 us 2.0 % 1.00 us <1.02us <1.02us"]
    expect("report of one run", ["report", one], classes, ["make-77", "OF FAULTS"])
    for label, path, head in (("owner", owner, "WHOSE ADDRESS SPACE"),
                              ("comm", comm, "NAME OF WHO WAITED")):
        rows = [f"{head} WAITS WAITED MEAN\nmake-77 100 500 us 5.00 us\n"
                "cc1 10 10.0 us 1.00 us\n"]
        expect(f"rows by {label}", ["report", path], classes + rows)
        expect(f"report --by {label}", ["report", "--by", label, path], classes + rows)
        expect(f"--by {label} of what was not recorded by it", ["report", "--by", label, one],
               [f"was not recorded by {label}; record with --by {label}"], status=2)

    both = write("both.json", recording([waits(0, 100, faults=True)]))
    expect("where the time of faults went", ["report", both], [
        "OF FAULTS TIME SHARE A FAULT\npage_table 3.00 us 0.0 % 750 ns\n"
        "io 5.00 ms 62 % 1.25 ms\nrest 3.00 ms 37 % 749 us\nall 8.00 ms 100 % 2.00 ms\n"])
    both = write("both.json", several((100, 100), faults=True))
    expect("of several runs, each part by itself", ["report", both],
           ["fault_waited page_table 3000 3000 3000 0.0 %",
            "fault_waited io 5000000 5000000 5000000 0.0 %"])

    path = write("several.json", several((100, 110, 104)))
    expect("report of several runs", ["report", path],
           ["Medians of the 3 boots", "lock_contended mmap_lock write 104 100 110 9.6 %",
            "lock_wait mmap_lock write 5.00 us 5.00 us 5.00 us 0.0 %",
            "lock_wait.p99 mmap_lock write <5.12 us 4.61 us 4.61 us 0.0 %",
            "lock_events spin 10 10 10 0.0 %"])
    for label in ("owner", "comm"):
        path = write("several.json", several((100, 110, 104), by=label))
        # A row has a mean: nobody knows how its waits were spread.
        expect(f"of several runs by {label}", ["report", "--by", label, path],
               ["lock_contended make-77 104 100 110 9.6 %",
                "lock_wait make-77 5.00 us 5.00 us 5.00 us 0.0 %",
                "lock_contended cc1 10 10 10 0.0 %", "lock_wait cc1 1.00 us"],
               ["lock_wait.p", "mmap_lock"])


FEW = (100, 110, 105, 101, 102, 103, 104, 106)
MORE = [3 * n for n in FEW]
NOISY = (100, 400, 100, 390, 30, 380, 101, 20)


def diffs():
    few, more = write("few.json", several(FEW)), write("more.json", several(MORE, 100))
    noisy = write("noisy.json", several(NOISY, 100))
    one, two = write("a.json", several(FEW[:1])), write("b.json", several(MORE[:1], 100))
    # The share of the longer waits grows, and so does the mean.
    expect("more contention is found", ["diff", few, more],
           ["WORSE: lock_contended, lock_wait\n", "lock_contended 113.5 320.5",
            "lock_events"], status=1)
    expect("less is better", ["diff", more, few], ["HELD"])
    expect("the same twice is no change", ["diff", few, few],
           ["HELD", "lock_contended 113.5 113.5 +0.00%", "same"], ["worse", "look at it"])
    expect("too noisy cannot be told", ["diff", few, noisy], ["CANNOT TELL", "too noisy"],
           ["WORSE"], 125)
    expect("one boot a side cannot be told", ["diff", one, two],
           ["CANNOT TELL", "the unit is the boot"], status=125)
    rows = write("rows.json", several(FEW, by="owner"))
    expect("rows of waits count once", ["diff", few, rows], ["lock_contended 113.5 113.5 +0.00%"])
    longer = write("longer.json", several(FEW, 100, each=6000))
    expect("as many waits, but longer ones", ["diff", few, longer], ["WORSE: lock_wait\n"],
           status=1)
    of_faults = write("faults.json", recording([run(i, i) for i in range(100, 108)]))
    expect("waits against what has none", ["diff", few, of_faults], ["unavailable"], status=125)


EXPECT = """# what a change may not make worse
lock_contended{class=mmap_lock} <= 110
lock_contended{class=mmap_lock,mode=write,mm=own} / lock_contended{class=page_table} == 10
lock_contended == 110
lock_wait{class=mmap_lock}.p99 <= 6 us
lock_wait{class=mmap_lock}.mean <= 5 us
lock_wait{class=page_table}.max < 2 us
lock_wait{class=mmap_lock}.sum <= 1 ms
lock_events{mode=spin} == lock_contended{mode=spin}
lock_contended <= 1.1 * base.lock_contended
"""


def checks():
    good = write("good.json", recording([waits(0, 100)]))
    bad = write("bad.json", recording([waits(1, 300)]))
    path = os.path.join(os.path.dirname(good), "waits.expect")
    with open(path, "w", encoding="utf-8") as f:
        f.write(EXPECT)
    expect("expectations that hold", ["check", path, "--base", good, good],
           ["1..9\n"] + [f"ok {i} " for i in range(1, 10)], ["not ok"])
    expect("those that do not are named", ["check", path, "--base", good, bad],
           ["not ok 1 ", "not ok 2 ", "not ok 3 ", "\nok 4 ", "\nok 5 ", "\nok 6 ", "not ok 7 ",
            "\nok 8 ", "not ok 9 "], status=1)
    lost = recording([waits(0, 100)])
    for probe in lost["runs"][0]["trust"]["probes"]:
        probe["misses"] = 5
    for m in lost["runs"][0]["metrics"]:
        if m["name"] == "lock_contended":
            m["max"] = m["value"] + 5
    path = os.path.join(os.path.dirname(good), "few.expect")
    with open(path, "w", encoding="utf-8") as f:
        f.write("lock_contended{class=mmap_lock} <= 102\n")
    expect("lost runs leave it open", ["check", path, write("lost.json", lost)], ["# SKIP"],
           status=125)


reports()
diffs()
checks()
finish()
