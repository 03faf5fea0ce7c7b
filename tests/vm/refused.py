#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 400
"""Attempts refused before handle_mm_fault: as many as lock_vma_under_rcu() gave NULL.

The oracle shares nothing with the product: a return probe of tracefs, counted
by a histogram trigger of the kernel.
"""
import json
import os
import subprocess
import sys
import tempfile

import tap

BINARY = os.environ["MMSCOPE"]
KERNELS = ("6.12", "7.2", "7.3")    # 6.1 has no per-VMA lock


# tests/long/kernels.sh: refused.py all
def modes(kernel):
    return ("default", "--exact") if kernel == "7.3" or "all" in sys.argv[1:] else ("default",)


SCRIPT = r"""
set -e
T=/sys/kernel/tracing
echo 'r:oracle/nulls lock_vma_under_rcu ret=$retval' >$T/kprobe_events
for mode in {modes}; do
	echo 'hist:keys=common_pid.execname if ret==0' >$T/events/oracle/nulls/trigger
	echo 1 >$T/events/oracle/nulls/enable
	[ $mode = default ] && option= || option=$mode
	mmscope fault $option --json -o /tmp/report.json -- {program} || echo "status $?"
	echo 0 >$T/events/oracle/nulls/enable
	echo "MODE $mode"
	# Of the workload alone: a tracer whose stack grows is turned away as well.
	sed -n 's/^{{ common_pid: refused .*hitcount: *\([0-9]*\)$/NULLS \1/p' \
		$T/events/oracle/nulls/hist
	sed 's/^/JSON /' /tmp/report.json
	echo '!hist:keys=common_pid.execname if ret==0' >$T/events/oracle/nulls/trigger
done
"""


def interval(samples, reason):
    """[value, max] of fault_refused over backings."""
    found = [s for s in samples if s["name"] == "fault_refused"
             and s.get("labels", {}).get("reason") == reason]
    value = sum(s["value"] for s in found)
    return value, value + max([s.get("max", s["value"]) - s["value"] for s in found] or [0])


def observe(kernel, program):
    """By mode: failed look-ups of the workload's tasks, the run."""
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as script:
        script.write(SCRIPT.format(program=program, modes=" ".join(modes(kernel))))
        script.flush()
        done = subprocess.run(
            [BINARY, "vm", "--kernel", kernel, "--copy", program, "--copy", "/bin/sed",
             "--copy", script.name, "--", "sh", script.name],
            stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"status {done.returncode}: {done.stderr.strip()[-400:]}")
    found = {}
    for part in done.stdout.split("MODE ")[1:]:
        lines = part.splitlines()
        nulls = sum(int(line.split()[1]) for line in lines if line.startswith("NULLS "))
        report = "\n".join(line[5:] for line in lines if line.startswith("JSON "))
        found[lines[0]] = nulls, json.loads(report)["runs"][0]
    return found


def main():
    program = os.path.join(os.environ.get("TMPDIR", "/tmp"), "refused")
    subprocess.run(["cc", "-O2", "-static", "-pthread", "-o", program,
                    "tests/vm/lib/refused.c"], check=True)
    for kernel in KERNELS:
        try:
            found = observe(kernel, program)
        except (RuntimeError, ValueError, KeyError) as problem:
            tap.result(f"{kernel}: observed", problem)
            continue
        for mode in modes(kernel):
            name = f"{kernel} {mode}"
            nulls, run = found[mode]
            locked = interval(run["metrics"], "vma_write_locked")
            no_vma = interval(run["metrics"], "no_vma")
            low = locked[0] + no_vma[0]
            high = low + max(locked[1] - locked[0], no_vma[1] - no_vma[0])
            detail = f"NULL {nulls}, vma_write_locked {locked}, no_vma {no_vma}"
            results = {"some were refused": locked[0] > 0 and no_vma[1] > 0,
                       "refusals are the failed look-ups": low <= nulls <= high}
            if mode == "--exact":
                results["nothing lost"] = low == high
            for what, good in results.items():
                tap.result(f"{name}: {what}", None if good else detail)
    tap.finish()


main()
