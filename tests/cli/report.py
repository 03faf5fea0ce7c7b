#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 300
"""mmscope report: as it was live, several runs as medians, whatever file it is given.

UPDATE_GOLDEN=1 writes tests/golden/report-*.txt anew.
"""
import glob
import json
import os
import resource
import subprocess

from tap import finish, result

TREE = os.environ.get("MMSCOPE_TREE", ".")
MMSCOPE = os.environ["MMSCOPE"]
STATIC = os.environ.get("MMSCOPE_STATIC", MMSCOPE)
TMP = os.environ.get("TMPDIR", "/tmp")
GOLDEN = os.path.join(TREE, "tests/golden")
# Bytes that are not UTF-8, and numbers beyond 2^63-1, are not kept as they are.
NOT_AS_LIVE = ("hostile", "large", "runs")
LIMIT_KIB, LIMIT_SECONDS = 200 * 1024, 5


def report(*args, data=None, **kwargs):
    env = dict(os.environ, LC_ALL="C", TZ="UTC")
    kwargs.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([MMSCOPE, "report", *args], input=data, stderr=subprocess.PIPE, env=env,
                          timeout=60, check=False, **kwargs)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(name, recording):
    path = os.path.join(TMP, name)
    with open(path, "w", encoding="utf-8") as f:
        if isinstance(recording, str):
            f.write(recording)
        else:
            json.dump(recording, f)
    return path


def golden(name):
    return json.loads(read(os.path.join(GOLDEN, name + ".json")))


def as_live():
    paths = sorted(glob.glob(os.path.join(GOLDEN, "*.json")))
    result("golden recordings exist", None if len(paths) >= 10 else paths)
    for path in paths:
        name = os.path.basename(path)[:-5]
        if not json.loads(read(path)).get("runs"):
            continue
        done = report("--json", path)
        result(f"{name}: --json is the file", None if done.stdout == read(path)
               and not done.returncode else done.stdout[-300:])
        text = path[:-5] + ".txt"
        if name in NOT_AS_LIVE or not os.path.exists(text):
            continue
        done = report(path)
        result(f"{name}: as it was live", None if done.stdout == read(text)
               and not done.returncode and not done.stderr else done.stdout + done.stderr)
    runs = os.path.join(GOLDEN, "runs.json")
    done = report("--each", runs)
    result("--each is every run", None if done.stdout == read(runs[:-5] + ".txt") else done.stdout)
    done = report("--run", "1", runs)
    result("--run 1 is the first run", None
           if done.stdout == read(os.path.join(GOLDEN, "lazy.txt")) else done.stdout)
    done = report("-", data=read(runs))
    result("standard input", None if done.stdout == report(runs).stdout and not done.returncode
           else done.stderr)


def compare(name, got):
    path = os.path.join(GOLDEN, f"report-{name}.txt")
    if os.environ.get("UPDATE_GOLDEN"):
        with open(path, "wb") as f:
            f.write(got)
    wide = [x for x in got.decode().split("\n") if len(x) > 100 or x != x.rstrip()]
    result(f"report-{name}.txt", wide or (None if got == read(path) else got.decode()))


def boots():
    """Runs of two boots: lost runs in one, a failed run, a metric that is unavailable in one."""
    rec = golden("lazy")
    lossy, failed, third = golden("misses")["runs"][0], golden("lazy")["runs"][0], \
        golden("around")["runs"][0]
    rec["runs"].append(failed)
    rec["runs"] += [lossy, third]
    failed["exit_status"] = 137
    failed["wall_ns"] = 2000000000
    failed["values"] = [{"name": "touch_ns", "value": 0.3, "unit": "ns", "better": "lower"},
                        {"name": "rate", "value": 17.25, "unit": "MB/s", "better": "higher"}]
    lossy["boot_id"] = third["boot_id"] = "00000000-0000-4000-8000-000000000002"
    third["metrics"].append({"name": "fault_refused", "unavailable": "no lock"})
    # Its probes are others: one more, one that is missing.
    third["trust"]["probes"][3] = {"event": "write-protect fault", "missing": "not attached"}
    third["trust"]["probes"] += [{"event": "populate", "mechanism": "fentry", "symbol": f"f{i}",
                                  "misses": i} for i in range(20)]
    return rec


def several():
    compare("runs", report(os.path.join(GOLDEN, "runs.json")).stdout)
    path = write("boots.json", boots())
    done = report(path)
    compare("boots", done.stdout)
    compare("boots-by-backing", report("--by", "backing", path).stdout)
    text = done.stdout.decode()
    result("boots are apart, the failed run is named",
           None if "4 runs in 2 boots" in text and "Boot 2" in text
           and "run 2: killed by signal 9" in text else text)
    one = golden("lazy")
    for i in range(1001):
        one["runs"].append(dict(one["runs"][0], boot_id=f"boot {i}"))
    done = report(write("many.json", one))
    result("more than 1000 boots are refused, not mixed up",
           None if b"more than 1000 boots" in done.stdout else done.stdout[-300:])


def errors():
    lazy = os.path.join(GOLDEN, "lazy.json")
    empty = golden("lazy")
    empty["runs"] = []
    newer = golden("lazy")
    newer["schema"] = 2
    cases = (
        ("no file", [], 2, b"which recording"),
        ("two files", [lazy, lazy], 2, b"one word too many"),
        ("a missing file", [os.path.join(TMP, "nothing")], 4, b"No such file"),
        ("a directory", [TMP], 4, b"cannot be read"),
        ("an empty file", [os.devnull], 4, b"damaged at byte 0: the file is empty"),
        ("no JSON", [os.path.join(GOLDEN, "lazy.txt")], 4, b"damaged at byte "),
        ("no runs", [write("empty.json", empty)], 4, b"no runs"),
        ("a newer schema", [write("newer.json", newer)], 4, b"schema 2 is of a newer mmscope"),
        ("two recordings", [write("two.json", read(lazy).decode() * 2)], 4, b"a file holds one"),
        ("--run beyond the last", ["--run", "2", lazy], 2, b"'2' is not within the 1 run of "),
        ("--by what was not recorded", ["--by", "vm_ops", os.path.join(GOLDEN, "eager.json")], 2,
         b"record with --by vm_ops"),
    )
    for name, args, status, text in cases:
        done = report(*args, data=b"")
        lines = done.stderr.count(b"\n")
        result(f"{name}: one line, status {status}",
               None if done.returncode == status and lines == 1 and text in done.stderr
               and not done.stdout else (done.returncode, done.stderr, done.stdout[-200:]))
    done = report("--json", os.path.join(TMP, "nothing"))
    result("with --json the error is an object", None if json.loads(done.stderr)["error"]
           else done.stderr)
    with open("/dev/full", "wb") as full:
        done = report(lazy, stdout=full)
    result("a full disk is told", None if done.returncode == 70 and b"No space" in done.stderr
           else (done.returncode, done.stderr))


def fill(path, size):
    """A recording of `size` bytes, its runs all different."""
    rec = golden("misses")
    run = rec["runs"].pop()
    n = 0
    with open(path, "w", encoding="utf-8") as f:
        f.write(json.dumps(rec)[:-2])
        while f.tell() < size:
            run["boot_id"] = f"boot {n // 100}"
            run["start_ns"] += 1
            run["trust"]["probes"][n % 7]["misses"] = n
            f.write(("," if n else "") + json.dumps(run))
            n += 1
        f.write("]}\n")
    return n


def large():
    path = os.path.join(TMP, "large.json")
    runs = fill(path, 100 << 20)
    child = subprocess.Popen([STATIC, "report", path], stdout=subprocess.PIPE)
    first = child.stdout.readline().decode()
    child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    seconds = usage.ru_utime + usage.ru_stime   # the machine may be busy with other suites
    print(f"# {runs} runs, {usage.ru_maxrss >> 10} MiB, {seconds:.2f} s of CPU")
    result("100 MB are read, all of them", None if not status
           and first.startswith(f"{runs} runs in ") else (status, first))
    result("within 200 MB of memory", None if usage.ru_maxrss <= LIMIT_KIB
           else f"{usage.ru_maxrss} KiB")
    result("within 5 s", None if seconds <= LIMIT_SECONDS else f"{seconds} s")
    # The same, cut: the last byte decides.
    os.truncate(path, os.path.getsize(path) - 3)
    child = subprocess.run([STATIC, "report", path], capture_output=True, check=False)
    result("cut, it is refused", None if child.returncode == 4
           and b"ends before the recording does" in child.stderr else child.stderr)
    os.unlink(path)


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
as_live()
several()
errors()
large()
finish()
