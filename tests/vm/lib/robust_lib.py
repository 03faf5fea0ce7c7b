# SPDX-License-Identifier: GPL-2.0-only
"""The robustness suite's tools inside a guest: running, reading reports, what is left behind."""
import json
import math
import os
import re
import subprocess
import sys
import time

HELPER = "/usr/bin/robust"
REPORT = "/tmp/report.json"
STARTED = "/tmp/started"
LARGEST = 2**63 - 1


def result(name, problem=None):
    print(json.dumps({"name": name, "problem": str(problem) if problem else None}))
    sys.stdout.flush()


def skip(name, reason):
    print(json.dumps({"name": name, "problem": None, "skip": reason}))


def note(text):
    print(json.dumps({"note": text}))
    sys.stdout.flush()


# ---- strict JSON ----

def unique(pairs):
    if len({k for k, _ in pairs}) != len(pairs):
        raise ValueError("duplicate key")
    return dict(pairs)


def refuse(word):
    raise ValueError(f"{word} is not JSON")


def whole(digits):
    if abs(int(digits)) > LARGEST:
        raise ValueError(f"{digits} is beyond 2^63-1")
    return int(digits)


def strict(data):
    text = data.decode("utf-8")
    for c in text:
        if (ord(c) < 0x20 and c != "\n") or 0x7f <= ord(c) < 0xa0:
            raise ValueError(f"raw control character {ascii(c)}")
    return json.loads(text, object_pairs_hook=unique, parse_constant=refuse, parse_int=whole)


# ---- running ----

def unlink(*paths):
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass


def fault(*args, **more):
    """mmscope fault to its end: (status, stdout, stderr)."""
    more.setdefault("stdin", subprocess.DEVNULL)
    p = subprocess.run(["mmscope", "fault", *args], capture_output=True, timeout=600,
                       check=False, **more)
    return p.returncode, p.stdout, p.stderr


def start(*args, command="fault", **more):
    """In the background, its output in files: a command that outlives it holds no pipe."""
    with open("/tmp/stdout", "wb") as out, open("/tmp/stderr", "wb") as err:
        more.setdefault("stdout", out)
        return subprocess.Popen(["mmscope", command, *args], stdin=subprocess.DEVNULL,
                                stderr=err, **more)


def load(path=REPORT):
    with open(path, "rb") as f:
        return strict(f.read())


def completed(run, **labels):
    """[value, max] of fault_completed: what is lost of one program may belong to any sample.
    There is no max where children may never have become targets."""
    value = slack = 0
    for s in run["metrics"]:
        if s["name"] != "fault_completed" or set(s.get("labels", {})) & {"vm_ops", "pid", "comm"}:
            continue
        if "value" not in s:
            raise ValueError(f"fault_completed is unavailable: {s['unavailable']}")
        if all(s["labels"][k] == v for k, v in labels.items()):
            value += s["value"]
            slack = math.inf if s.get("lower_bound") else \
                max(slack, s.get("max", s["value"]) - s["value"])
    return value, value + slack


def usage(run):
    return run["rusage"]["minflt"] + run["rusage"]["majflt"]


def wait_until(condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def checked(name):
    """A test is a function that returns its problem; what it raises is one, too."""
    def decorate(function):
        try:
            problem = function()
        except (OSError, ValueError, KeyError, IndexError, subprocess.TimeoutExpired) as e:
            problem = repr(e)
        result(name, problem)
        return function
    return decorate


# ---- what is left behind ----

def objects():
    """BPF programs, maps, links, kprobes and patched functions of the whole kernel."""
    p = subprocess.run([HELPER, "bpf"], capture_output=True, text=True, timeout=60, check=True)
    numbers = [int(n) for n in p.stdout.split()]
    for path in ("/sys/kernel/debug/kprobes/list", "/sys/kernel/tracing/enabled_functions"):
        with open(path) as f:
            numbers.append(len(f.readlines()))
    return numbers


BEFORE = objects() if os.path.exists(HELPER) else None


def left_behind():
    """The kernel frees in its own time: what is there after 15 s stays."""
    if wait_until(lambda: objects() == BEFORE, 15):
        return None
    return f"programs, maps, links, kprobes, patched functions: {objects()}, before {BEFORE}"


def maps(pid):
    """(bytes, number) of a tracer's maps by the kernel's own account, each counted once."""
    total, seen = 0, set()
    for name in os.listdir(f"/proc/{pid}/fdinfo"):
        with open(f"/proc/{pid}/fdinfo/{name}") as f:
            info = dict(line.split(":", 1) for line in f if ":" in line)
        if "map_id" in info and info["map_id"] not in seen:
            seen.add(info["map_id"])
            total += int(info["memlock"])
    return total, len(seen)


def possible_cpus():
    with open("/sys/devices/system/cpu/possible") as f:
        return int(f.read().strip().rsplit("-", 1)[-1]) + 1


def memory_told(pid, said, stacks=None):
    """
    Do the maps take what `mmscope probes` said? A problem, or None. It says what all domains
    take, and what stacks take beside them; stacks: whether there are, of all domains.
    """
    m = re.search(r"Memory of the maps: ([0-9.]+) MiB.* of ([0-9]+) possible.*"
                  r"lock --stacks: ([0-9.]+) MiB more", said)
    mib = float(m.group(1)) + (float(m.group(3)) if stacks else 0)
    total, number = maps(pid)
    possible = possible_cpus()
    note(f"maps: {total >> 10} KiB in {number}; probes: {mib} MiB, {possible} possible CPUs")
    if int(m.group(2)) != possible or possible < 2:
        return f"{m.group(2)} possible CPUs, there are {possible}"
    if not 0.8 * total <= mib * 2**20 + 2**16 or not total:
        return f"{total} bytes in maps, probes says {mib} MiB"
    if stacks is not None and 0.8 * mib * 2**20 > total:
        return f"{total} bytes in maps, less than probes says: {mib} MiB"
    if total > mib * 2**20 * 1.05 + 2**17:
        return f"{total} bytes in maps, more than probes says: {mib} MiB"
    return None


def state(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def end(p):
    """(status, stdout, stderr) of a tracer that should end now."""
    try:
        status = p.wait(60)
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()
        raise ValueError("the tracer did not end") from None
    with open("/tmp/stdout", "rb") as out, open("/tmp/stderr", "rb") as err:
        return (status if status >= 0 else 128 - status), out.read(), err.read()


def begin(script, *options, first=":"):
    """A tracer of a shell script that has started and done `first`; and the script's $$."""
    unlink(STARTED, REPORT)
    p = start(*options, "--json", "-o", REPORT, "--", "sh", "-c",
              f"{first}; echo $$ >{STARTED}.new; mv {STARTED}.new {STARTED}; {script}")
    if not wait_until(lambda: os.path.exists(STARTED)):
        p.kill()
        raise ValueError(f"the command has not started: {end(p)}")
    with open(STARTED) as f:
        return p, int(f.read())
