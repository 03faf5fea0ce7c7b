# SPDX-License-Identifier: GPL-2.0-only
"""Results of a suite that is a Python script: tests/run has this directory in PYTHONPATH."""
import sys

LONGEST = 6000      # characters of an explanation: its end is what tells

count = 0
failed = False


def note(text):
    for line in text.encode("utf-8", "backslashreplace").decode().splitlines():
        print("# " + line)
    sys.stdout.flush()


def result(name, problem=None, skip=None):
    """A problem, if there is one, is a text or a list that explains the failure."""
    global count, failed
    count += 1
    failed |= bool(problem)
    print(f"{'not ok' if problem else 'ok'} {count} - {name}" + (f" # SKIP {skip}" if skip else ""))
    if isinstance(problem, (list, tuple)):
        problem = "\n".join(map(str, problem))
    note(str(problem or "")[-LONGEST:])


def finish():
    """The plan, and the end of the suite with its status."""
    print(f"1..{count}")
    sys.exit(failed or not count)
