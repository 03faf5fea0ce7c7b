#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 3600
"""docs/findings.md: each command as it is printed there gives the numbers that are printed there.

A block is commands ("$ ...") and the output of the last one, of which [...] leaves
lines out. Times are those of the day and are not compared.
"""
import os
import re
import shlex
import subprocess

from tap import finish, result

BINARY = os.environ["MMSCOPE"]
TREE = os.environ.get("MMSCOPE_TREE", ".")
TMP = os.environ.get("TMPDIR", "/tmp")
IMAGE = os.path.join(TMP, "exfat.img")
TIME = re.compile(r"\d[\d.]* (ns|us|ms|s)\b")
# A mapping starts at any page: it has a window more unless that is the start of a window.
# What is left of the last column follows from it.
WINDOWS = ((r"\b12[89]\b", "128+"), (r"\b6[45]\b", "64+"), (r"\b15\.[7-9]\b|\b16\.0\b", "16-"))

COLLISIONS = 1000
ATTEMPTS = 3        # of what depends on how the machine runs its threads
PERF = "$(kernel/build-perf)"


def blocks():
    with open(os.path.join(TREE, "docs/findings.md"), encoding="utf-8") as f:
        text = f.read()
    for block in re.findall(r"^```\n(\$ .*?)^```$", text, re.M | re.S):
        block = block.replace("\\\n", " ")
        yield (re.findall(r"^\$ (.*)$", block, re.M),
               [line for line in block.splitlines() if line and not line.startswith("$ ")])


def plain(line):
    line = TIME.sub("TIME", " ".join(line.split()))
    for pattern, text in WINDOWS:
        line = re.sub(pattern, text, line)
    return line


def same(shown, line):
    """The vDSO's pages are as many as the C library touches; each counts twice."""
    if shown.startswith("special_mapping_vmops ") and line.startswith("special_mapping_vmops "):
        numbers = [int(n) for n in line.split()[1:] if n.isdigit()]
        if len(numbers) >= 3:
            return numbers[0] and numbers[0] == 2 * numbers[1] == 2 * numbers[2]
    # How often threads collide is up to the machine.
    if shown.split()[:2] == line.split()[:2] == ["page_table", "spin"]:
        return int(line.split()[3]) >= COLLISIONS
    if shown.endswith(" waits for semaphores"):
        return re.search(r": [1-9]\d* waits for semaphores$", line)
    return plain(shown) == plain(line)


def missing(shown, output):
    """The first shown line that the output has not, after those before it."""
    lines = iter(output.splitlines())
    for line in shown:
        if line.strip() == "[...]":
            continue
        if not any(same(line, other) for other in lines):
            return line
    return None


def run(command):
    if PERF in command:
        p = subprocess.run(["kernel/build-perf"], cwd=TREE, stdout=subprocess.PIPE, text=True,
                           check=True)
        command = command.replace(PERF, p.stdout.strip())
    words = [IMAGE if w == "/tmp/exfat.img" else w for w in shlex.split(command)]
    if words[0] == "mmscope":
        words[0] = BINARY
    return subprocess.run(words, cwd=TREE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)


def problem(lines, shown):
    """Of a block."""
    for line in lines:
        p = run(line)
        if p.returncode:
            return f"{line}: status {p.returncode}: {p.stdout}"
    absent = missing(shown, p.stdout)
    return f"no line {absent!r} in:\n{p.stdout}" if absent or not shown else None


def main():
    commands = 0
    for lines, shown in blocks():
        commands += 1
        for _ in range(ATTEMPTS if any("page_table" in line for line in shown) else 1):
            wrong = problem(lines, shown)
            if not wrong:
                break
        result(lines[-1], wrong)
    result("commands were found", None if commands >= 12 else commands)
    finish()


main()
