# SPDX-License-Identifier: GPL-2.0-only
"""The storm's part inside a guest. Arguments: virtual CPUs, seconds of a storm that is
counted by default (a third of it in other ways), the ways."""
import sys

from robust_lib import REPORT, checked, completed, fault, left_behind, load, note, unlink, usage

CPUS, SECONDS = sys.argv[1], int(sys.argv[2])
MODES = {"default": [], "exact": ["--exact"], "by-pid": ["--by", "pid"]}
ROWS_MAX = 1024     # values of a label found at run time
TRIES = 3


def total(run, name, skip=()):
    return sum(s["value"] for s in run["metrics"] if s["name"] == name and "value" in s and
               not set(s.get("labels", {})) & {"vm_ops", "pid", "comm", "file", "map", "order"} and
               s.get("labels", {}).get("reason") not in skip)


def storm(options):
    for _ in range(TRIES):
        unlink(REPORT)
        status, out, err = fault("--json", "-o", REPORT, *options, "--", "storm", "64",
                                 str(SECONDS // 3 if options else SECONDS))
        if status or err:
            return f"status {status}: {err}"
        run = load()["runs"][0]
        lost = {p["event"]: p["misses"] for p in run["trust"]["probes"] if p.get("misses")}
        # A child that did not become a target has no upper bound.
        if "fork" not in lost:
            break
        note(f"lost {lost}: once more")
    trust = run["trust"]
    low, high = completed(run)
    truth = usage(run)
    unknown = any(p["misses"] is None for p in trust["probes"] if p.get("mechanism"))
    note(f"{CPUS} CPUs {' '.join(options)}: {int(out)} rounds, [{low}, {high}] faults, rusage "
         f"{truth}, lost {lost}, unmatched {trust['unmatched']}")
    if not int(out) or truth < 1000:
        return "there was no storm"
    rows = [s["value"] for s in run["metrics"] if s["name"] == "fault_completed" and
            "pid" in s.get("labels", {})]
    # More processes than can be told apart are all in one row, which is said.
    full = trust["map_full"] if len(rows) < ROWS_MAX else 0
    if full or trust["events_lost"]:
        return f"{trust['map_full']} map full, {trust['events_lost']} events lost"
    if "pid" in options and not sum(rows) == low > max(rows) > 0:
        return f"{sum(rows)} in {len(rows)} rows, at most {max(rows)}, {low} in all"
    # A fault that is not counted, or twice, is accounted for by a lost run, or not at all.
    if not low <= truth <= high:
        return f"rusage {truth} is not in [{low}, {high}], lost {lost}"
    if not lost and not unknown and (low != truth or trust["unmatched"]):
        return f"{low} of {truth} with nothing lost, {trust['unmatched']} unmatched"
    attempts = total(run, "fault_attempts")
    ended = sum(total(run, f"fault_{how}") for how in ("completed", "failed", "retried"))
    ended += total(run, "fault_refused", ("vma_write_locked", "no_vma"))
    slack = sum(lost.get(event, 0) for event in ("fault entry", "fault exit"))
    if abs(attempts - ended) > slack and not unknown:
        return f"{attempts} attempts, {ended} ends, {slack} runs lost"
    return left_behind()


for mode in map(MODES.get, sys.argv[3].split(",")):
    @checked(f"64 threads on {CPUS} CPUs {' '.join(mode)}".rstrip())
    def _(mode=mode):
        return storm(mode)
