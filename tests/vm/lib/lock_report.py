# SPDX-License-Identifier: GPL-2.0-only
"""A run of mmscope lock, and what it holds."""
import os
import subprocess

from robust_lib import strict

REPORT = "/tmp/lock.json"
# The tracepoint is newer than 6.12; and what 6.1 inlines cannot be probed.
RELEASES = not os.uname().release.startswith("6.")
NOT_HERE = () if RELEASES else ("contended release",)
if os.uname().release.startswith("6.1."):
    NOT_HERE += ("page-table lock",)


def lock(*command, options=()):
    """The run that `mmscope lock` reports of the command; raises what it says if it fails."""
    p = subprocess.run(["mmscope", "lock", *options, "--json", "-o", REPORT, "--", *command],
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)
    if p.returncode:
        raise ValueError(f"status {p.returncode}: {p.stderr.decode()}")
    with open(REPORT, "rb") as f:
        return strict(f.read())["runs"][0]


def samples(run, name):
    return [m for m in run["metrics"] if m["name"] == name]


def times(run, name="lock_wait"):
    """{(class, mode, mm): (number, ns)}"""
    return {tuple(m["labels"][x] for x in ("class", "mode", "mm")): (m["count"], m["sum"])
            for m in samples(run, name) if "class" in m.get("labels", {})}


def counts(run):
    return {tuple(m["labels"][x] for x in ("class", "mode", "mm")): m["value"]
            for m in samples(run, "lock_contended")
            if "class" in m.get("labels", {}) and "value" in m}


def rows(run, label, name="lock_contended"):
    """{text of an open label: waits}"""
    return {m["labels"][label]: m["value"] for m in samples(run, name)
            if label in m.get("labels", {}) and "value" in m}


def number(run, name):
    return sum(m.get("value", m.get("count", 0)) for m in samples(run, name))


def by_class(values):
    total = {}
    for (name, _, _), n in values.items():
        total[name] = total.get(name, 0) + n
    return total


def released(run, times, names):
    """Locks of these classes were given back so often while others waited: problems."""
    found = {m["labels"]["class"]: m["value"] for m in samples(run, "lock_released")
             if "class" in m.get("labels", {})}
    lost = sum(p.get("misses") or 0 for p in run["trust"]["probes"])
    if not RELEASES:
        why = samples(run, "lock_released")[0].get("unavailable")
        return [] if why == "no such tracepoint" and not found else [f"{found}: {why}"]
    return [f"{name}: given back {found.get(name, 0)} times, not {times}" for name in names
            if not found.get(name, 0) <= times <= found.get(name, 0) + lost]


def sums(run, threads):
    """What holds in each report: problems, one a line."""
    wrong = []
    begun, ended = counts(run), times(run)
    modes = {}
    for (_, mode, _), n in begun.items():
        modes[mode] = modes.get(mode, 0) + n
    told = {m["labels"]["mode"]: m["value"] for m in samples(run, "lock_events") if m["value"]}
    if {k: v for k, v in modes.items() if v} != told:
        wrong.append(f"classes give {modes}, mechanisms {told}")
    for key, (n, ns) in ended.items():
        if n > begun.get(key, 0):
            wrong.append(f"{key}: {n} waits ended, {begun.get(key, 0)} began")
        if n and ns > n * run["wall_ns"]:
            wrong.append(f"{key}: {ns} ns in {n} waits within {run['wall_ns']} ns")
    open_waits = sum(begun.values()) - sum(n for n, _ in ended.values())
    if open_waits > threads:
        wrong.append(f"{open_waits} waits did not end, of {threads} threads")
    trust = run["trust"]
    lost = any(p.get("misses") for p in trust["probes"])
    for key in ("map_full", "events_lost") + (() if lost else ("unmatched",)):
        if trust[key]:
            wrong.append(f"{key} {trust[key]}")
    wrong += [f"{p['event']}: {p['missing']}" for p in trust["probes"] if "missing" in p and
              p["event"] not in NOT_HERE]
    return wrong


def lost_runs(run):
    return sum(p.get("misses") or 0 for p in run["trust"]["probes"])


def known(run, waits, alone=True):
    """Of lib/waits.c's two locks, each waited for so often: problems. alone: only it is seen."""
    lost, wrong = lost_runs(run), []
    for what, counted in (
            ("inode, write", counts(run).get(("inode", "write", "none"), 0)),
            ("mutex", sum(n for (_, mode, _), n in counts(run).items() if mode == "mutex"))):
        if not (counted <= waits or not alone) or not waits <= counted + lost:
            wrong.append(f"{what}: {counted} waits of {waits}, {lost} runs lost")
    return wrong
