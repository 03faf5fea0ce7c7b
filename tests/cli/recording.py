#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""JSON through a strict parser: the golden recordings, and mmscope list.

Strict: duplicate keys, NaN and Infinity, numbers beyond 2^63-1, bytes that are
not UTF-8 and raw control characters are all refused.
"""
import glob
import json
import os
import re
import subprocess

from tap import finish, result

TREE = os.environ.get("MMSCOPE_TREE", ".")
MMSCOPE = os.environ["MMSCOPE"]
LARGEST = 2**63 - 1


UNLABELLED = {"ptes_rss_unchanged", "rss_before", "rss_after", "rss_fork_copy", "rss_uffd_copy",
              "rss_khugepaged", "rss_swapoff", "rss_zapped", "rss_unmapped", "pages_moved",
              "pages_migrated", "munmap_latency", "exit_mmap_latency"}


def unique(pairs):
    keys = [k for k, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError(f"duplicate key in {keys}")
    return dict(pairs)


def refuse(word):
    raise ValueError(f"{word} is not JSON")


def whole(digits):
    if not -LARGEST <= int(digits) <= LARGEST:
        raise ValueError(f"{digits} is beyond 2^63-1")
    return int(digits)


def strict(data):
    text = data.decode("utf-8")
    for c in text:
        if (ord(c) < 0x20 and c != "\n") or 0x7f <= ord(c) < 0xa0:
            raise ValueError(f"raw control character {ascii(c)}")
    return json.loads(text, object_pairs_hook=unique, parse_constant=refuse, parse_int=whole)


def sample_problems(s):
    """One sample against the contract of the recording format."""
    if not re.fullmatch(r"[a-z_]+", s["name"]):
        yield f"name {s['name']}"
    if "unavailable" in s:
        if set(s) - {"name", "labels", "unavailable"}:
            yield f"an unavailable sample has a value: {s}"
        return
    if not s.get("labels") and s["name"] not in UNLABELLED:
        yield f"no labels: {s}"
    if "value" in s:
        if "max" in s and s["max"] <= s["value"]:
            yield f"max not above value: {s}"
        return
    total = low_sum = high_sum = end = 0
    for low, high, n in s["buckets"]:
        if low < end or n <= 0 or (high is not None and high <= low):
            yield f"bucket {low}, {high}, {n} after {end}"
        end = LARGEST if high is None else high
        total += n
        low_sum += low * n
        high_sum += (end - 1) * n
    if s.get("saturated"):
        return
    if total != s["count"]:
        yield f"buckets hold {total}, count is {s['count']}"
    if not low_sum <= s["sum"] <= high_sum:
        yield f"sum {s['sum']} not within {low_sum} to {high_sum}"


def recording_problems(rec):
    for key in ("schema", "mmscope", "machine", "command", "primary", "runs"):
        if key not in rec:
            yield f"no {key}"
    for run in rec["runs"]:
        for key in ("boot_id", "start_ns", "wall_ns", "metrics", "trust"):
            if key not in run:
                yield f"no {key} in a run"
        partial = {s["name"] for s in run["metrics"] if "unavailable" in s}
        for s in run["metrics"]:
            yield from sample_problems(s)
            zero = s.get("value", s.get("count")) == 0 and "max" not in s
            if zero and s["name"] not in partial and "lower_bound" not in s:
                yield f"a zero that goes without saying: {s}"
        for probe in run["trust"]["probes"]:
            if ("mechanism" in probe) == ("missing" in probe):
                yield f"probe neither attached nor missing: {probe}"


def golden():
    paths = sorted(glob.glob(os.path.join(TREE, "tests/golden/*.json")))
    result("golden recordings exist", [] if len(paths) >= 10 else [f"only {len(paths)}"])
    for path in paths:
        name = os.path.basename(path)
        try:
            with open(path, "rb") as f:
                problems = list(recording_problems(strict(f.read())))
        except (ValueError, KeyError) as e:
            problems = [f"{name}: {e!r}"]
        result(f"{name} is a strict recording", problems)


def hostile():
    with open(os.path.join(TREE, "tests/golden/hostile.json"), "rb") as f:
        command = strict(f.read())["command"]
    want = ['a"b\\\n\x1b[31m', "\ufffd\ufffdbad", "\u00e9\u20ac\U0001f600", "\x9b31m\x7f",
            "\ufffd" * 5, ""]
    result("a hostile command reads back, what is not UTF-8 as U+FFFD",
           [] if command == want else [f"{command} is not {want}"])


def parser():
    """The parser itself: a check that cannot fail proves nothing."""
    refused = [b'{"a":1,"a":2}', b'{"a":NaN}', b'{"a":Infinity}', b'{"a":9223372036854775808}',
               b'{"a":"\xff"}', b'{"a":"\x1b"}', b'{"a":"\xc2\x9b"}', b'{"a":1,}', b"{}{}"]
    passed = []
    for data in refused:
        try:
            strict(data)
            passed.append(data)
        except ValueError:
            pass
    result("the parser is strict", passed)


def mmscope(*args, **kwargs):
    kwargs.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([MMSCOPE, *args], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          timeout=60, check=False, **kwargs)


def listing():
    done = mmscope("list", "--json")
    try:
        tables = strict(done.stdout)
        names = [m["name"] for m in tables["metrics"]]
        problems = [] if done.returncode == 0 and "ptes_per_hold" in names else [done.stderr]
        for m in tables["metrics"]:
            problems += [f"{m['name']}: label {x}" for x in m["labels"]
                         if x not in tables["labels"]]
    except (ValueError, KeyError) as e:
        problems = [repr(e)]
        names = []
    result("list --json is strict, and names its labels", problems)

    with open(os.path.join(TREE, "docs/metrics.md"), "rb") as f:
        current = f.read()
    done = mmscope("list", "--markdown")
    result("docs/metrics.md is current",
           [] if done.stdout == current and done.returncode == 0
           else ["differs: mmscope list --markdown >docs/metrics.md"])

    done = mmscope("list")
    lines = done.stdout.decode().split("\n")
    problems = [x for x in lines if len(x) > 100 or x != x.rstrip()]
    problems += [f"no {x}" for x in names if x not in [y.split(" ")[0] for y in lines]]
    result("list has every metric within 100 columns",
           problems if done.returncode == 0 and names else ["failed"])

    for args in (["--nothing"], ["word"], ["--json", "--markdown"], ["--json=1"]):
        done = mmscope("list", *args)
        one_line = re.fullmatch(rb"mmscope: [^\n]+\n", done.stderr)
        result(f"list {' '.join(args)} is one line and status 2",
               [] if done.returncode == 2 and one_line and not done.stdout
               else [done.returncode, done.stderr])

    with open("/dev/full", "wb") as full:
        for args in ([], ["--json"], ["--markdown"]):
            done = mmscope("list", *args, stdout=full)
            result(f"list {' '.join(args)} on a full disk says so",
                   [] if done.returncode == 70 and b"No space left" in done.stderr
                   else [done.returncode, done.stderr])


parser()
golden()
hostile()
listing()
finish()
