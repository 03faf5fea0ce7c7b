# SPDX-License-Identifier: GPL-2.0-only
"""One boot of a kernel with every backing and path into a fault, like oracle.py."""
import glob
import os
import re
import subprocess
import time

import cases
import checks
import oracle
from cases_backings import BACKINGS, NUMA, ONCE, YIELD, hints
import tap

HERE = os.path.dirname(os.path.abspath(__file__))
PREPARE = r"""
mkdir -p /mnt/ramfs /mnt/ext4 && mount -t ramfs ramfs /mnt/ramfs &&
mount -t ext4 /dev/vda /mnt/ext4 && echo 64M > /sys/block/zram0/disksize &&
/run/paths swapon /dev/zram0 && echo 16 > /proc/sys/vm/nr_hugepages &&
echo 0 > /proc/sys/kernel/numa_balancing || exit 99
"""
# The same events by a label that is found at run time: what it is called, how many PTEs
# or huge pages it must have, of what metric. 6.1 has no folios between a page and a PMD.
BY = (
    ("file", "touch --backing file --path /mnt/ramfs/by-file --touch write --size 1M",
     r"by-file \(\d+:\d+ \d+\)", "ptes_installed", 256),
    ("map", "arraymap --size 1M --touch read", r"mmscope_array \(id \d+\)", "ptes_installed",
     256),
    ("order", "touch --size 1M", "0", "ptes_installed", 256),
    ("order", "touch --thp 64K --size 1M", "4", "ptes_installed", 256),
    ("order", "touch --backing shmem --thp 2M --size 4M", "9", "pmd_maps", 2),
)


def by_commands(rows, kernel):
    return [f"report --exact --by {label} --json -o /tmp/report -- mmscope bench {args} "
            "--repeat 1" for label, args, *_ in rows if not no_folios(args, kernel)]


def no_folios(args, kernel):
    return "64K" in args and cases.no_mthp(kernel)


def check_by(label, args, pattern, metric, wanted, program):
    """One value has all of it; and each metric adds up to the same as by its own labels."""
    status, recording = program
    wrong, plain, view = [], {}, {}
    for s in recording["runs"][0]["metrics"] if recording else ():
        if "unavailable" in s:
            continue
        sums = view if label in s.get("labels", {}) else plain
        value = s["value"] if "value" in s else s["sum"]
        sums.setdefault(s["name"], {}).setdefault(s.get("labels", {}).get(label), 0)
        sums[s["name"]][s.get("labels", {}).get(label)] += value
    for name, values in view.items():
        # Times are not kept by such a label.
        if not name.endswith("latency") and sum(values.values()) != sum(plain[name].values()):
            wrong.append(f"{name}: {values}, by its own labels {plain[name]}")
    named = {k: n for k, n in view.get(metric, {}).items() if re.fullmatch(pattern, k)}
    if status or len(named) != 1 or sum(named.values()) != wanted:
        wrong.append(f"status {status}, {metric} {view.get(metric)}: not {wanted} of {pattern}")
    tap.result(f"--by {label}: {args}", wrong)


# --yield has put fault-around back. The scanner of NUMA balancing starts at once and comes often.
BALANCE = r"""
[ "$(cat /sys/kernel/debug/fault_around_bytes)" = 65536 ] || exit 98
echo 1 > /proc/sys/kernel/numa_balancing || exit 99
for f in scan_delay_ms scan_period_min_ms; do
	echo 10 > /sys/kernel/debug/sched/numa_balancing/$f || exit 99
done
"""


def build(directory):
    """The workloads of paths_*.c, with their destination in the guest."""
    program = os.path.join(directory, "paths")
    subprocess.run(["cc", "-O2", "-static", "-pthread", "-o", program,
                    *sorted(glob.glob(os.path.join(HERE, "paths_*.c")))], check=True)
    return f"{program}:/run/paths"


def main(kernel):
    start = time.monotonic()
    old, lazy = not cases.newer(kernel, (6, 4)), cases.newer(kernel, (7, 3))
    sessions = [oracle.Session("default", BACKINGS), oracle.Session("yield", YIELD, "--yield")]
    rows = BY if cases.whole(kernel) else ()
    if cases.whole(kernel):
        sessions.append(oracle.Session("exact", ONCE, "--exact"))
    numa = oracle.Session("system-numa", NUMA, "--exact")
    directory = os.environ.get("TMPDIR", "/tmp")
    script = "\n".join([oracle.session_script(sessions + [numa], kernel), PREPARE,
                        *map(oracle.run_session, sessions), oracle.PROGRAM,
                        *by_commands(rows, kernel), BALANCE,
                        oracle.run_session(numa)]) + "\n"
    # 6.1's zram compresses by a module of its own.
    modules = ([] if cases.newer(kernel, (6, 12)) else ["lzo-rle"]) + ["zram"]
    modules += ["kvm_amd"] if cases.newer(kernel, (7, 2)) else []
    options = ["--numa", "2", *[word for m in modules for word in ("--module", m)]]
    p = oracle.boot(os.environ["MMSCOPE"], kernel, script, directory, [build(directory)], options)
    tap.result("the guest runs all", [] if p.returncode == 0 else
               [f"status {p.returncode}", *p.stderr.splitlines()[-20:]])
    programs = oracle.parse(p.stdout.splitlines(), sessions + [numa])

    def judge(s):
        def one(c):
            return lambda bench, report: checks.case(bench, report, c.truth(bench, old, lazy),
                                                     s.exact, old)
        return one

    for s in sessions:
        tried, unnoticed = oracle.check_session(s, kernel, judge(s), old, lazy)
        tap.result(f"{s.name}: {tried} reports with one number changed are refused",
                   unnoticed if tried else ["nothing could be tried"])
    for row in rows:
        if no_folios(row[1], kernel):
            tap.result(f"--by {row[0]}: {row[1]}", skip=cases.no_mthp(kernel))
        else:
            check_by(*row, programs.pop(0) if programs else (None, None))
    oracle.check_session(numa, kernel, lambda c: lambda bench, report:
                         hints(bench, report, old), old, lazy)
    tap.note(f"{kernel}: {time.monotonic() - start:.0f} s")
    tap.finish()
