#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""mmscope record: what is refused before anything runs. tests/vm/record.py records."""
import json
import os
import subprocess

from tap import finish, result

TREE = os.environ.get("MMSCOPE_TREE", ".")
MMSCOPE = os.environ["MMSCOPE"]
TMP = os.environ.get("TMPDIR", "/tmp")
OUT = os.path.join(TMP, "out.json")
RAN = os.path.join(TMP, "ran")
CMD = ["--", "touch", RAN]


def record(*args):
    return subprocess.run([MMSCOPE, "record", *args], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=60, check=False)


def refused(name, args, status, text):
    done = record(*args)
    left = [x for x in os.listdir(TMP) if x.startswith(("out.json", "ran"))]
    result(f"{name}: one line, status {status}, nothing ran, nothing is left",
           None if done.returncode == status and done.stderr.count(b"\n") == 1
           and text in done.stderr and not done.stdout and not left
           else (done.returncode, done.stderr, done.stdout, left))


def changed_meanwhile(*files):
    """The file that runs are to go into, or its place, is another one when they are done."""
    for number, (command, status) in enumerate((
            *((["cp", file, "FILE"], 4) for file in files[1:]),
            (["mkdir", "FILE"], 70))):
        out = os.path.join(TMP, f"meanwhile-{number}")
        command[-1] = out
        append = ["--append"] if command[0] == "cp" else []
        done = record("-n", "0", "--times", "1", "-o", out, *append, "--", *command)
        kept = [os.path.join(TMP, x) for x in os.listdir(TMP)
                if x.startswith(f"meanwhile-{number}.")]
        problem = None if done.returncode == status and len(kept) == 1 and \
            kept[0].encode() in done.stderr else (done, kept)
        if not problem:
            with open(kept[0], encoding="utf-8") as f:
                data = json.load(f)
            problem = None if data["command"] == command and len(data["runs"]) == 1 else data
        result(f"{command[0]} while it runs: the runs are kept beside it, which is told", problem)
        if append:
            with open(command[1], "rb") as f, open(out, "rb") as as_it_is:
                result("and the other file is as it was",
                       None if f.read() == as_it_is.read() else "it is another")


def main():
    full = ["-o", OUT]
    for name, args, text in (
            ("no command", full, b"no command"),
            ("no command after --", [*full, "--"], b"no command follows"),
            ("a command without --", [*full, "true"], b"put -- before"),
            ("no output", CMD, b"Give -o FILE"),
            ("a process and no time", [*full, "-p", "1"], b"Give -d SECONDS"),
            ("a process and a command", [*full, "-p", "1", *CMD], b"does not go with a command"),
            ("a thread and a command", [*full, "-t", "1", *CMD], b"does not go with a command"),
            ("a time and a command", [*full, "-d", "1", *CMD], b"does not go with a command"),
            ("a time limit without a command", [*full, "-a", "-d", "1", "--run-timeout", "1"],
             b"is of a command"),
            ("no such process", [*full, "-p", "4194999", "-d", "1"], b"no process 4194999"),
            ("no cgroup", [*full, "--cgroup", TMP, *CMD], b"is not a cgroup"),
            ("no runs", [*full, "-n", "0", *CMD], b"--runs"),
            ("an unknown domain", [*full, "-e", "fault,magic", *CMD], b"'magic' is no domain"),
            ("rows that no domain has", [*full, "-e", "lock", "--by", "file", *CMD],
             b"no rows by file of what is observed: add -e fault"),
            ("rows by owner without locks", [*full, "--by", "owner", *CMD], b"add -e lock"),
            ("--exact without faults", [*full, "-e", "lock", "--exact", *CMD], b"add -e fault"),
            ("--reconcile without faults", [*full, "-e", "lock", "--reconcile", *CMD],
             b"add -e fault"),
            ("six primaries", [*full, "--primary", "a,b,c,d,e,f", *CMD], b"more than 5"),
            ("a primary twice", [*full, "--primary", "sys_ns,sys_ns", *CMD], b"named twice"),
            ("an empty primary", [*full, "--primary", "sys_ns,", *CMD], b"an empty name"),
            ("a primary with a wrong label",
             [*full, "--primary", "fault_completed{reason=uffd}", *CMD], b"not one of its labels"),
            ("a primary with a wrong value",
             [*full, "--primary", "fault_completed{method=magic,kind=minor}", *CMD],
             b"no value of a label"),
            ("a primary that is no metric with labels", [*full, "--primary", "x{a=b}", *CMD],
             b"METRIC{label=value,...}"),
            ("appending to standard output", ["-o", "-", "--append", *CMD], b"needs a file"),
            ("a directory that is missing", ["-o", os.path.join(TMP, "none/x"), *CMD],
             b"cannot be written"),
    ):
        refused(name, args, 2, text)
    damaged = os.path.join(TMP, "damaged.json")
    with open(os.path.join(TREE, "tests/golden/lazy.json"), encoding="utf-8") as f, \
            open(damaged, "w", encoding="utf-8") as to:
        to.write(f.read(1000))
    refused("appending to a damaged file", ["-o", damaged, "--append", *CMD], 4,
            b"damaged at byte ")
    with open(damaged, encoding="utf-8") as f:
        result("the damaged file is as it was", None if len(f.read()) == 1000 else "changed")
    other = os.path.join(TREE, "tests/golden/lazy.json")
    refused("appending to a file of another kernel", ["-o", other, "--append", *CMD], 2,
            b"of another kernel release")

    # Runs that are not observed need nothing of a kernel.
    plain = os.path.join(TMP, "plain.json")
    done = record("-n", "0", "--times", "2", "-o", plain, "--", "true")
    with open(plain, encoding="utf-8") as f:
        data = json.load(f)
    result("without observation: two runs, no metrics, wall_ns decides",
           None if done.returncode == 0 and not done.stderr and data["primary"] == ["wall_ns"]
           and [(r["metrics"], r["trust"]["probes"], r["wall_ns"] > 0) for r in data["runs"]]
           == [([], [], True)] * 2 else (done, data))
    done = subprocess.run([MMSCOPE, "report", "--run", "1", plain], capture_output=True,
                          check=False)
    result("its report says so, and counts nothing", None if done.returncode == 0
           and done.stdout.endswith(b"not observed: this run tells times only\n")
           and b"fault" not in done.stdout else done.stdout)
    changed_meanwhile(plain, other, damaged)
    with open(os.path.join(TMP, "expect"), "w", encoding="utf-8") as f:
        f.write("fault_completed == 0\n")
    done = subprocess.run([MMSCOPE, "check", os.path.join(TMP, "expect"), plain],
                          capture_output=True, check=False)
    result("nothing observed is no zero", None if done.returncode == 125
           and b"nothing was observed" in done.stdout else done)

    # Where nothing can be observed, nothing runs and nothing is written.
    done = record(*full, *CMD)
    if done.returncode == 3:
        left = [x for x in os.listdir(TMP) if x.startswith(("out.json", "ran"))]
        result("nothing can be observed: one line, status 3",
               None if done.stderr.count(b"\n") == 1 and b"cannot observe here" in done.stderr
               and not left else (done.stderr, left))
        expect = os.path.join(TMP, "expect")
        with open(expect, "w", encoding="utf-8") as f:
            f.write("fault_completed >= 0\n")
        done = subprocess.run([MMSCOPE, "check", expect, *CMD], capture_output=True, check=False)
        result("check of a command then: no verdict, 125", None if done.returncode == 125
               and b"cannot observe here" in done.stderr and not done.stdout
               and not os.path.exists(RAN) else (done.returncode, done.stderr))
    else:
        result("nothing can be observed # SKIP this kernel can be observed")


main()
finish()
