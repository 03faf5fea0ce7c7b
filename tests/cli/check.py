#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""mmscope check: three verdicts, four statuses, errors with line and column."""
import json
import os
import subprocess

from tap import finish, result

TREE = os.environ.get("MMSCOPE_TREE", ".")
MMSCOPE = os.environ["MMSCOPE"]
TMP = os.environ.get("TMPDIR", "/tmp")
LAZY = os.path.join(TREE, "tests/golden/lazy.json")
MISSES = os.path.join(TREE, "tests/golden/misses.json")


def check(*args, data=b"", **kwargs):
    kwargs.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([MMSCOPE, "check", *args], input=data, stderr=subprocess.PIPE,
                          timeout=60, check=False, **kwargs)


def write(name, content):
    path = os.path.join(TMP, name)
    with open(path, "w", encoding="utf-8") as f:
        if isinstance(content, str):
            f.write(content)
        else:
            json.dump(content, f)
    return path


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def verdicts():
    """Expectations, the recording, and the status that git bisect run sees."""
    holds, fails = "fault_completed == 2048", "fault_completed < 2048"
    open_ = "fault_completed <= 2050"    # misses.json: 2048 to 2055, by seven lost runs
    cases = (
        ("all hold", [holds, "ptes_per_hold.p50 == 1"], LAZY, 0),
        ("one does not", [holds, fails], LAZY, 1),
        ("an interval that agrees", ["fault_completed <= 2055", fails.replace("<", ">=")],
         MISSES, 0),
        ("a label, which lost runs may have put on too many",
         ["fault_refused{reason=no_map_pages} >= 2048"], MISSES, 125),
        ("or on too few", ["fault_refused{reason=no_map_pages} <= 2048"], MISSES, 125),
        ("but not on as few", ["fault_refused{reason=no_map_pages} >= 2000"], MISSES, 0),
        ("an interval that does not agree", [holds.replace("==", ">="), open_], MISSES, 125),
        ("one fails, another cannot be told", [open_, fails], MISSES, 1),
        ("what is unavailable", ["ptes_per_hold.p50 >= 1"],
         os.path.join(TREE, "tests/golden/missing.json"), 125),
        ("a value of the command", ["value.touch_ns < 1 ns"], LAZY, 0),
        ("a base that is better", ["fault_completed <= 1.05 * base.fault_completed"], LAZY, 0),
    )
    for name, lines, path, status in cases:
        expect = write("expect", "\n".join(lines) + "\n")
        done = check(expect, "--base", LAZY, path)
        text = done.stdout.decode()
        results = [x for x in text.split("\n") if x.startswith(("ok ", "not ok "))]
        good = (done.returncode == status and not done.stderr and len(results) == len(lines)
                and text.startswith(f"KTAP version 1\n1..{len(lines)}\n"))
        result(f"{name}: {status}", None if good else (done.returncode, text, done.stderr))

    failed = load(LAZY)
    failed["runs"][0]["exit_status"] = 7
    path = write("failed.json", failed)
    done = check(write("expect", holds), path)
    result("a command that failed says nothing: 125", None if done.returncode == 125
           and b"# SKIP run 1 of the recording: the command failed (status 7)" in done.stdout
           else (done.returncode, done.stdout))

    unlike = load(LAZY)
    unlike["machine"]["thp"] = "never"
    path = write("unlike.json", unlike)
    expect = write("expect", "fault_completed <= base.fault_completed")
    done = check(expect, path, "--base", LAZY)
    result("a base of an unlike machine: 125", None if done.returncode == 125
           and b"SKIP unlike machines: THP is never, in the base always" in done.stdout
           else (done.returncode, done.stdout))
    done = check(expect, "--ignore-state", path, "--base", LAZY)
    result("--ignore-state decides", None if done.returncode == 0 else done.stdout)


def not_a_verdict():
    expect = write("expect", "fault_completed == 2048\n")
    damaged = write("damaged.json", open(LAZY, encoding="utf-8").read()[:-100])
    result_of = (
        ("a recording that is missing", [expect, os.path.join(TMP, "nothing")]),
        ("a recording that is damaged", [expect, damaged]),
        ("a base that is damaged", [expect, "--base", damaged, LAZY]),
    )
    for name, args in result_of:
        done = check(*args)
        result(f"{name}: one line, 125", None if done.returncode == 125
               and done.stderr.count(b"\n") == 1 and not done.stdout
               else (done.returncode, done.stderr, done.stdout))
    wrong = write("wrong", "# first\nfault_completed == 1\n  fault_complete == 1\n")
    cases = (
        ("no arguments", [], b"no expectations"),
        ("no recording", [expect], b"nothing to check"),
        ("a missing EXPECT", [os.path.join(TMP, "nothing"), LAZY], b"No such file"),
        ("EXPECT is a directory", [TMP, LAZY], b"cannot be read"),
        ("a malformed EXPECT", [wrong, LAZY], b"line 3, column 3: 'fault_complete' is no metric"),
        ("an empty EXPECT", [os.devnull, LAZY], b"no expectation"),
        ("base without --base", [write("b", "1 <= base.fault_completed"), LAZY], b"give --base"),
        ("an unknown option", [expect, "--fast", LAZY], b"unknown"),
        ("one word too many", [expect, LAZY, LAZY], b"one word too many"),
        ("a recording and a command", [expect, LAZY, "--", "true"], b"one of them"),
        ("no command after --", [expect, "--"], b"no command follows"),
        ("runs of a file", [expect, "-n", "3", LAZY], b"for a command"),
        ("two from standard input", ["-", "-"], b"standard input"),
    )
    for name, args, text in cases:
        done = check(*args)
        result(f"{name}: one line, 129", None if done.returncode == 129 and text in done.stderr
               and done.stderr.count(b"\n") == 1 and not done.stdout
               else (done.returncode, done.stderr, done.stdout))
    with open("/dev/full", "wb") as full:
        done = check(expect, LAZY, stdout=full)
    result("a verdict that cannot be written: 129", None if done.returncode == 129
           and b"No space" in done.stderr else (done.returncode, done.stderr))


def streams():
    expect = write("expect", "fault_completed == 2048\n")
    with open(LAZY, "rb") as f:
        lazy = f.read()
    plain = check(expect, LAZY)
    done = check(expect, "-", data=lazy)
    result("the recording from standard input", None if done.stdout == plain.stdout
           and done.returncode == 0 else (done.returncode, done.stderr))
    done = check("-", LAZY, data=b"fault_completed == 2048\n")
    result("EXPECT from standard input", None if done.stdout == plain.stdout
           and done.returncode == 0 else (done.returncode, done.stderr))
    out = os.path.join(TMP, "out")
    done = check("-o", out, expect, LAZY)
    result("-o FILE", None if open(out, "rb").read() == plain.stdout and not done.stdout else out)


verdicts()
not_a_verdict()
streams()
finish()
