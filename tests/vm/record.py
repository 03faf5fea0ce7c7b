#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1200
"""record on 7.3, and on 6.1 what is not the same code; what 6.1 recorded is read here,
without BPF, and on 7.3."""
import json
import os
import shutil
import re
import subprocess

from tap import finish, result

MMSCOPE = os.environ["MMSCOPE"]
TMP = os.environ.get("TMPDIR", "/tmp")
PAGES = 512     # of 2 MiB, touched by each run of the workload

WORKLOAD = "mmscope bench touch --size 2M --repeat 1"
EXPECT = """# what the workload does is known
fault_completed{backing=anon} == 512
ptes_installed{backing=anon} / fault_completed{backing=anon} == 1
ptes_per_hold{backing=anon}.p99 == 1
wall_ns < 10000 s
value.touch_ns > 0 ns
maxrss_kib >= 2 MiB
fault_completed{backing=bpf_array} != 0
fault_completed{backing=anon} <= base.fault_completed{backing=anon}
"""

# Everything that one boot can show; each step says its status on stdout.
FIRST = r"""
cd /tmp
step() { name=$1; shift; "$@" >$name.out 2>$name.err; echo "$name $?"; }
step runs mmscope record -o runs.json -n 3 --warmup 1 --primary sys_ns,fault_completed -- WORKLOAD
step append mmscope record -o runs.json --append -n 2 -- WORKLOAD
step other mmscope record -o runs.json --append -- mmscope bench touch --size 4M
step fixed mmscope record -o runs.json --append --primary minflt -- WORKLOAD
step killed mmscope record -o killed.json -- sh -c 'kill -9 $$'
step check mmscope check expect --base runs.json runs.json
step live mmscope check live -- WORKLOAD
"""
MORE = r"""
step stdout mmscope record -o - -n 1 -- echo mixed
step status mmscope record -o status.json -n 2 -- sh -c 'exit 7'
step limit mmscope record -o limit.json -n 2 --run-timeout 1 -- sleep 100
step deaf mmscope record -o deaf.json --run-timeout 1 -- sh -c 'trap "" TERM; while :; do :; done'
for t in 20 60 180; do	# the time has to be enough for one run, the runs too many for it
	step whole mmscope record -o whole.json -n 1000 --timeout $t -- sleep 1
	[ ! -e whole.json ] || break
done
step none mmscope record -o none.json --timeout 1 -- sleep 100
step missing mmscope record -o missing.json -n 2 -- /nonexistent
step values mmscope record -o values.json --primary rate,later -- sh -c \
	'for x in "rate 17.5 MB/s higher" bad; do echo "$x"; done >/dev/fd/$MMSCOPE_VALUES_FD'
step device mmscope record -o /dev/full -- true
[ -c /dev/full ] && echo "device-kept 0"
rm -f ran
mmscope record -o signal.json -n 100 -- sh -c 'echo >>ran; sleep 0.5' 2>signal.err &
pid=$!
until [ -e ran ] && [ "$(wc -l <ran)" -ge 3 ]; do sleep 0.1; done
kill -INT $pid
wait $pid
echo "signal $?"
step left mmscope record -o left.json -n 2 -- sh -c 'sleep 50 & exit 0'
step livefail mmscope check live -- sh -c 'exit 3'
cat stdout.out >stdout.json
"""
LAST = r"""
for f in *.err; do sed "s/^/$f: /" $f; done
cat check.out live.out
"""
OLDEST, NEWEST = "6.1", "7.3"
KEEP = {OLDEST: ("runs", "killed"),
        NEWEST: ("runs", "killed", "stdout", "status", "limit", "deaf", "whole", "values",
                 "signal")}


def write(name, text):
    path = os.path.join(TMP, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def run(*args):
    """In the suite's directory: names in a report are as short here as in a guest."""
    return subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=600, check=False, cwd=TMP)


def load(kernel, name):
    with open(os.path.join(TMP, f"{kernel}-{name}.json"), encoding="utf-8") as f:
        return json.load(f)


def guest(kernel):
    steps = FIRST + (MORE if kernel == NEWEST else "") + LAST
    script = write("steps.sh", steps.replace("WORKLOAD", WORKLOAD))
    gets = [x for name in KEEP[kernel]
            for x in ("--get", f"/tmp/{name}.json:{TMP}/{kernel}-{name}.json")]
    return run(MMSCOPE, "vm", "--kernel", kernel, "--copy", f"{script}:/tmp/steps.sh",
               "--copy", write("expect", EXPECT) + ":/tmp/expect",
               "--copy", write("live", "fault_completed{backing=anon} >= 512\n") + ":/tmp/live",
               *gets, "--", "sh", "/tmp/steps.sh")


def statuses(kernel, out):
    want = {"runs": 0, "append": 0, "other": 2, "fixed": 2, "killed": 137, "check": 1, "live": 0}
    if kernel == NEWEST:
        want |= {"stdout": 0, "status": 7, "limit": 124, "deaf": 124, "whole": 124, "none": 124,
                 "missing": 127, "values": 0, "device": 70, "device-kept": 0, "signal": 130,
                 "left": 0, "livefail": 125}
    got = {m[1]: int(m[2]) for m in re.finditer(r"^([a-z-]+) (\d+)$", out, re.M)}
    for name, status in want.items():
        result(f"{kernel}: {name} ends with {status}",
               None if got.get(name) == status else
               "\n".join([str(got.get(name))] + re.findall(rf"^{name}\.err: .*", out, re.M)))
    lines = {
        "other": "cannot append: its runs are of another command",
        "fixed": "its primary metrics are fixed",
        "status": "run 2: the command ended with status 7",
        "killed": "run 1: the command was killed: Killed",
        "limit": "run 2: the command was killed: the time limit",
        "deaf": "run 1: the command was killed: the time limit",
        "whole": "of 1000 runs are in whole.json",
        "none": "before a run had finished: nothing is saved",
        "values": "'bad' is not 'NAME VALUE UNIT lower'",
        "device": "No space left",
        "signal": "interrupted: ",
        "left": "left processes behind",
    }
    for name, text in lines.items():
        if name in want:
            result(f"{kernel}: {name} says so", None if re.search(
                rf"^{name}\.err: .*{re.escape(text)}", out, re.M) else out)
    if kernel == NEWEST:
        result(f"{kernel}: a primary that no run has is named",
               None if "'later' is no metric" in out and "'rate' is no" not in out else out)


def completed(run):
    """[value, max] of anonymous memory: the kernel may lose runs of programs."""
    samples = [s for s in run["metrics"] if s["name"] == "fault_completed"
               and s.get("labels", {}).get("backing") == "anon"]
    low = sum(s["value"] for s in samples)
    return low, low + max((s.get("max", s["value"]) - s["value"] for s in samples), default=0)


def files(kernel):
    rec = load(kernel, "runs")
    runs = rec["runs"]
    result(f"{kernel}: three runs and two appended, of one boot",
           None if len(runs) == 5 and len({r["boot_id"] for r in runs}) == 1
           and rec["primary"] == ["sys_ns", "fault_completed"] else rec["primary"])
    faults = [completed(r) for r in runs]
    result(f"{kernel}: each run is counted from zero",
           None if all(low <= PAGES <= high < 2 * PAGES for low, high in faults) else faults)
    result(f"{kernel}: what bench measured is there",
           None if all({"mmap_ns", "touch_ns", "munmap_ns"} <= {v["name"] for v in r["values"]}
                       for r in runs) else runs[0]["values"])
    order = [r["start_boot_ns"] for r in runs]
    result(f"{kernel}: in the order of their start", None if order == sorted(set(order)) else order)
    for name, status, number in (("killed", 137, 1), ("status", 7, 2), ("limit", 124, 2),
                                 ("deaf", 124, 1)):
        if name in KEEP[kernel]:
            got = [r["exit_status"] for r in load(kernel, name)["runs"]]
            result(f"{kernel}: {name} is kept with its status",
                   None if got == [status] * number else got)
    if kernel == OLDEST:
        return
    result(f"{kernel}: standard output holds the recording alone",
           None if len(load(kernel, "stdout")["runs"]) == 1 else "no")
    for name, number in (("whole", 1000), ("signal", 100)):
        runs = load(kernel, name)["runs"]
        result(f"{kernel}: {name}: only finished runs, all whole",
               None if 0 < len(runs) < number and all(r["exit_status"] == 0 for r in runs)
               else [r.get("exit_status") for r in runs])
    values = load(kernel, "values")["runs"][0]["values"]
    result(f"{kernel}: a value of the command", None if values == [
        {"name": "rate", "value": 17.5, "unit": "MB/s", "better": "higher"}] else values)


def elsewhere():
    """The file of 6.1 here and on 7.3: the same bytes of report and verdict."""
    path = os.path.join(TMP, "6.1-runs.json")
    expect = os.path.join(TMP, "expect")
    shutil.copy(path, os.path.join(TMP, "f.json"))
    here = [run(MMSCOPE, "report", "f.json"), run(MMSCOPE, "report", "--run", "1", "f.json"),
            run(MMSCOPE, "check", "expect", "--base", "f.json", "f.json"),
            run(MMSCOPE, "diff", "f.json", "f.json")]
    text = here[0].stdout
    result("6.1's file is reported here", None if not here[0].returncode
           and text.startswith("5 runs in 1 boot\nkernel 6.1.") else here[0])
    result("and checked here", None if here[2].returncode == 1
           and here[2].stdout.count("\nok ") == 7 and here[2].stdout.count("not ok") == 1
           else here[2])
    script = write("read.sh", "cd /tmp\nmmscope report f.json\nmmscope report --run 1 f.json\n"
                   "mmscope check expect --base f.json f.json\nmmscope diff f.json f.json\n"
                   f"mmscope record -o g.json --append -- {WORKLOAD} >/dev/null\n")
    another = os.path.join(TMP, "7.3-runs.json")
    there = run(MMSCOPE, "vm", "--kernel", "7.3", "--copy", f"{path}:/tmp/f.json", "--copy",
                f"{expect}:/tmp/expect", "--copy", f"{script}:/tmp/read.sh", "--copy",
                f"{another}:/tmp/g.json", "--get", f"/tmp/g.json:{another}", "--", "sh",
                "/tmp/read.sh")
    want = "".join(x.stdout for x in here)
    result("on 7.3 they are the same, byte by byte",
           None if there.stdout == want else f"here:\n{want}\nthere:\n{there.stdout}{there.stderr}")
    text = run(MMSCOPE, "report", another).stdout
    result("a file of 7.3 appended to on another boot", None
           if text.startswith("6 runs in 2 boots\n") and "\nBoot 2 (" in text
           else (text, there.stderr))


for k in (OLDEST, NEWEST):
    done = guest(k)
    if done.returncode:
        result(f"{k}: the steps run", (done.returncode, done.stdout, done.stderr))
        continue
    statuses(k, done.stdout)
    files(k)
if os.path.exists(os.path.join(TMP, "6.1-runs.json")):
    elsewhere()
else:
    result("6.1's file elsewhere", "there is none")
finish()
