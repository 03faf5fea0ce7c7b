# SPDX-License-Identifier: GPL-2.0-only
"""One boot of a kernel with every backing and path into a fault, like oracle.py."""
import glob
import os
import subprocess
import time

import cases
import checks
import oracle
from cases_backings import BACKINGS, NUMA

HERE = os.path.dirname(os.path.abspath(__file__))
PREPARE = r"""
mkdir -p /mnt/ramfs /mnt/ext4 && mount -t ramfs ramfs /mnt/ramfs &&
mount -t ext4 /dev/vda /mnt/ext4 && echo 64M > /sys/block/zram0/disksize &&
/run/paths swapon /dev/zram0 && echo 16 > /proc/sys/vm/nr_hugepages &&
echo 0 > /proc/sys/kernel/numa_balancing || exit 99
"""
# The scanner of NUMA balancing starts at once and comes often.
BALANCE = r"""
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
    tap = oracle.Tap()
    sessions = [oracle.Session("default", BACKINGS), oracle.Session("exact", BACKINGS, "--exact"),
                oracle.Session("numa", NUMA, "--exact")]
    directory = os.environ.get("TMPDIR", "/tmp")
    run = [oracle.run_session(s) for s in sessions]
    script = "\n".join([oracle.session_script(sessions, kernel), PREPARE, *run[:-1], BALANCE,
                        run[-1]]) + "\n"
    options = ["--module", "zram", "--numa", "2"]
    if cases.newer(kernel, (7, 2)):
        options += ["--module", "kvm_amd"]
    p = oracle.boot(os.environ["MMSCOPE"], kernel, script, directory, [build(directory)], options)
    tap.result("the guest runs all", [] if p.returncode == 0 else
               [f"status {p.returncode}", *p.stderr.splitlines()[-20:]])
    oracle.parse(p.stdout.splitlines(), sessions)

    def judge(s):
        def one(c):
            return lambda bench, report: checks.case(bench, report, c.truth(bench, old, lazy),
                                                     s.exact, old)
        return one

    for s in sessions:
        tried, unnoticed = oracle.check_session(tap, s, kernel, judge(s), old, lazy)
        tap.result(f"{s.name}: {tried} reports with one number changed are refused",
                   unnoticed if tried else ["nothing could be tried"])
    tap.note(f"{kernel}: {time.monotonic() - start:.0f} s")
    return tap.finish()
