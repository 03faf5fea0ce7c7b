#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 60
"""The checkers of the oracle tests notice what is wrong. No guest is needed."""
import copy

import cases
import checks
import report as reports
import tap

N = 512


def sample(name, labels, value, **more):
    return {"name": name, "labels": labels, "value": value, **more}


def batch(name, labels, buckets, unit="ptes"):
    return {"name": name, "labels": labels, "unit": unit,
            "count": sum(b[2] for b in buckets), "sum": sum(b[0] * b[2] for b in buckets),
            "buckets": buckets}


def lazy_array():
    """What bench and fault say of 2M of a lazy BPF array, read."""
    k = {"backing": "bpf_array", "method": "per_page", "trigger": "access"}
    attempt = {"backing": "bpf_array", "trigger": "access"}
    run = {"metrics": [
        sample("fault_attempts", attempt, 2 * N),
        sample("fault_completed", dict(k, kind="minor"), N),
        sample("fault_refused", {"backing": "bpf_array", "reason": "no_map_pages"}, N),
        sample("ptes_installed", k, N),
        sample("rss_before", {}, 7 * N), sample("rss_after", {}, 8 * N),
        batch("ptes_per_hold", k, [[1, 2, N]]), batch("ptes_per_fault", k, [[1, 2, N]]),
        batch("fault_latency", k, [[4096, 4608, N]], "ns"),
        batch("fault_attempt_latency", {"backing": "bpf_array", "outcome": "completed"},
              [[2048, 2304, N]], "ns"),
        batch("fault_attempt_latency", {"backing": "bpf_array", "outcome": "refused"},
              [[1024, 1152, N]], "ns"),
    ], "trust": {"unmatched": 0, "map_full": 0, "events_lost": 0, "probes": [
        {"event": "fault entry", "mechanism": "kprobe", "symbol": "handle_mm_fault", "misses": 0},
        {"event": "PTE install", "mechanism": "kprobe", "symbol": "set_pte_range", "misses": 0}]}}
    bench = {"pages": N, "pages_total": N, "map_pages": N, "repeat": 1, "page_size": 4096,
             "minflt": N, "majflt": 0, "child_minflt": 0, "present": [N], "rss_kib": [4 * N],
             "anon_huge_kib": [0], "shmem_pmd_kib": [0], "file_pmd_kib": [0], "hugetlb_kib": [0],
             "rss_exact": True, "rss_anon_kib": [0], "rss_file_kib": [4 * N],
             "rss_shmem_kib": [0], "pgfault_inside": N, "pgfault_around": N + 1}
    return bench, run


def judge(bench, run, exact=True):
    truth = cases.array(False, True)(bench, False, True)
    return checks.case(bench, reports.Report([{"runs": [run]}]), truth, exact, False)


def metric(run, name):
    return next(m for m in run["metrics"] if m["name"] == name)


def edit(what, **values):
    """A change to one metric of the report."""
    return lambda bench, run: metric(run, what).update(values)


def drop(what):
    return lambda bench, run: run["metrics"].remove(metric(run, what))


def account(key, value):
    return lambda bench, run: bench.__setitem__(key, value)


def trust(key, value):
    return lambda bench, run: run["trust"].__setitem__(key, value)


def probe(**values):
    return lambda bench, run: run["trust"]["probes"][0].update(values)


def loses(n, *changes):
    """Some runs lost, with the intervals that follow, and then something else."""
    def change(bench, run):
        run["trust"]["probes"][0]["misses"] = n
        for m in run["metrics"]:
            if "value" in m:
                m["max"] = m["value"] + n
            else:
                m["lower_bound"] = True
        for c in changes:
            c(bench, run)
    return change


WRONG = {
    "a fault too many": edit("fault_completed", value=N + 1),
    "a fault too few": edit("fault_completed", value=N - 1),
    "a fault that is not there": drop("fault_completed"),
    "a wrong method": lambda b, r: metric(r, "fault_completed")["labels"].update(method="none"),
    "a wrong trigger": lambda b, r: metric(r, "ptes_installed")["labels"].update(trigger="gup"),
    "a major fault": lambda b, r: metric(r, "fault_completed")["labels"].update(kind="major"),
    "a wrong reason": lambda b, r: metric(r, "fault_refused")["labels"].update(reason="other"),
    "no refusals": drop("fault_refused"),
    "a PTE too many": edit("ptes_installed", value=N + 1),
    "two PTEs in a hold": edit("ptes_per_hold", buckets=[[1, 2, N - 2], [2, 3, 1]], count=N - 1),
    "a histogram whose count is wrong": edit("ptes_per_fault", count=N + 1),
    "a histogram whose sum is wrong": edit("ptes_per_fault", sum=N + 1),
    "a latency too few": edit("fault_latency", count=N - 1, buckets=[[4096, 4608, N - 1]]),
    "an unavailable metric": lambda b, r: r["metrics"].append(
        {"name": "pmd_maps", "unavailable": "no probe"}),
    "a sample from nowhere": lambda b, r: r["metrics"].append(
        sample("fault_failed", {"backing": "anon", "trigger": "gup"}, 1)),
    "pagemap says less": account("present", [N - 1]),
    "smaps says less": account("rss_kib", [4 * N - 4]),
    "RssFile says less": account("rss_file_kib", [4 * N - 4]),
    "anonymous pages": account("rss_anon_kib", [4]),
    "rusage says more": account("minflt", N + 1),
    "unmatched": trust("unmatched", 1),
    "map full": trust("map_full", 1),
    "a lost run with --exact": probe(misses=1),
    "a missing probe": probe(mechanism=None, missing="no symbol"),
    "a trampoline with --exact": probe(mechanism="fentry"),
}

good = lazy_array()
tap.result("a right report passes", judge(*copy.deepcopy(good)))
for name, change in WRONG.items():
    bench, run = copy.deepcopy(good)
    change(bench, run)
    tap.result(f"refused: {name}", [] if judge(bench, run) else ["it passed"])

for name, change in (("nothing", None),
                     ("a page that nobody brought", edit("rss_after", value=8 * N + 1)),
                     ("a page that is said to be unmapped", lambda b, r: r["metrics"].append(
                         sample("rss_zapped", {}, 1)))):
    bench, run = copy.deepcopy(good)
    if change:
        change(bench, run)
    wrong = checks.reconciled(reports.Report([{"runs": [run]}]))
    tap.result(f"what a resident set grew by: {name}",
               wrong if not change else [] if wrong else ["it passed"])

# By default, runs may be lost: then the truth must lie in the interval, no further.
for name, change, passes in (
        ("lost runs, the truth inside",
         loses(3, edit("fault_completed", value=N - 3, max=N)), True),
        ("lost runs, the truth above", loses(3, edit("fault_completed", value=N - 4, max=N - 1)),
         False),
        ("lost runs, a value above the truth", loses(3, edit("fault_attempts", value=2 * N + 7,
                                                            max=2 * N + 10)), False),
        ("lost runs, a histogram above the truth",
         loses(3, edit("ptes_per_hold", count=N + 1, sum=N + 1, buckets=[[1, 2, N + 1]])), False)):
    bench, run = copy.deepcopy(good)
    change(bench, run)
    wrong = judge(bench, run, exact=False)
    tap.result(name, wrong if passes else [] if wrong else ["it passed"])

bench, run = copy.deepcopy(good)
for faults, passes in ((N, True), (N + 1, True), (N - 1, False), (N + 2, False)):
    metric(run, "fault_completed")["value"] = faults
    wrong = [w for w in checks.whole_system(bench, reports.Report([{"runs": [run]}]), False)
             if w.startswith("faults")]
    tap.result(f"the whole system: {faults} faults {'pass' if passes else 'are refused'}",
               wrong if passes else [] if wrong else ["it passed"])
bench["pgfault_around"] = 2 * N
tap.result("the whole system: refused when it is not quiet",
           [] if checks.whole_system(bench, reports.Report([{"runs": [run]}]), False)
           else ["it passed"])

# A window of 16 pages in a mapping that starts 3 pages before a multiple of 16.
w = reports.Windows()
w.touch((16 * 7 + 13) << 12, 40, range(40), 65536, 4096)
tap.result("windows of an unaligned mapping", [] if (w.faults, w.asked, w.mapped, w.present) ==
           (4, 16 + 16 + 16 + 5, 40, 13) else [f"{vars(w)}"])
tap.result("a random order is a permutation",
           [] if sorted(reports.order("random", 999)) == list(range(999)) else ["it is not"])
tap.finish()
