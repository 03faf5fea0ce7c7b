# SPDX-License-Identifier: GPL-2.0-only
"""In a guest with more possible CPUs than fit into a word: waits of a known number."""
import os
import signal
import subprocess

from lock_report import counts, known, rows, sums
from robust_lib import (REPORT, STARTED, end, load, memory_told, possible_cpus, result, start,
                        unlink, wait_until)

ROUNDS = 100
WAITS = 2 * ROUNDS      # the first repeat is not told, and counted
CASES = (("lock", (), False), ("lock", ("--stacks=4096",), False),
         ("trace", ("-e", "fault,lock", "-a"), True),
         ("trace", ("-e", "fault,lock", "-a", "--stacks=4096"), True))


def stacks(run):
    """Rows are all waits; of the file's each is in one."""
    told = rows(run, "stack")
    mine = sum(n for text, n in told.items()
               if text.startswith("waits;") and text.endswith("[inode write]"))
    files = counts(run).get(("inode", "write", "none"), 0)
    wrong = []
    if sum(told.values()) != sum(counts(run).values()):
        wrong.append(f"{sum(told.values())} waits in stacks of {sum(counts(run).values())}")
    if mine != files:
        wrong.append(f"{mine} waits for the file in stacks, {files} counted: {told}")
    return wrong


def counted(command, options, everybody):
    script = f"waits rwsem {ROUNDS} 1 && waits mutex {ROUNDS} 1"
    p = subprocess.run(["mmscope", command, *options, "--json", "-o", REPORT, "--", "sh", "-c",
                        script], stdin=subprocess.DEVNULL, capture_output=True, timeout=300,
                       check=False)
    if p.returncode:
        raise ValueError(f"status {p.returncode}: {p.stderr.decode()}")
    run = load()["runs"][0]
    wrong = sums(run, 8 if everybody else 0) + known(run, WAITS, not everybody)
    return wrong + (stacks(run) if "--stacks=4096" in options else [])


def memory(stacks_too):
    said = subprocess.run(["mmscope", "probes"], capture_output=True, text=True, timeout=90,
                          check=True).stdout
    unlink(STARTED)
    tracer = start("-e", "fault,lock", *(("--stacks",) if stacks_too else ()), "-o", "/dev/null",
                   "--", "sh", "-c", f"echo >{STARTED}; exec sleep 1000", command="trace")
    try:
        if not wait_until(lambda: os.path.exists(STARTED)):
            return f"nothing was started: {tracer.poll()}"
        return memory_told(tracer.pid, said, stacks_too)
    finally:
        tracer.send_signal(signal.SIGINT)
        end(tracer)


possible = possible_cpus()
result("there are more CPUs than bits of a word", None if possible > 64 else f"{possible}")
for case, *args in (*((counted, *c) for c in CASES), (memory, False), (memory, True)):
    try:
        problem = case(*args)
    except (ValueError, KeyError, OSError, subprocess.SubprocessError) as e:
        problem = repr(e)
    name = " ".join((args[0], *args[1])) if case is counted else \
        f"maps {'and stacks ' if args[0] else ''}take what probes says"
    result(f"{possible} possible CPUs: {name}", "\n".join(problem) if isinstance(problem, list)
           else problem)
