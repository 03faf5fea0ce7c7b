# SPDX-License-Identifier: GPL-2.0-only
"""Hold a report against the truth. Each function returns a list of what is wrong.

Numbers are held exactly wherever the report itself claims certainty (no lost
runs: always with --exact). Elsewhere the truth must lie in the printed interval.
"""
PMD_PTES = 512

# 6.1 inlines it, and then infers what it would have told.
QUIET = {"page-table lock", "anon fault"}


# A kernel that inlines the lock, and a kretprobe, do not show which table is locked.
OLD_QUIET = {"zap hold", "huge page rmap"}
HOLDS_HIDDEN = {"ptes_zapped", "ptes_per_zap_hold", "pmds_zapped"}

# Ways to grow and to shrink that are no faults. They, and what is torn down, have suites
# of their own: reconcile.py.
WAYS = {"rss_fork_copy": 1, "rss_uffd_copy": 1, "rss_khugepaged": 1, "rss_swapoff": 1,
        "rss_zapped": -1, "rss_unmapped": -1}
ELSEWHERE = HOLDS_HIDDEN | set(WAYS) | {
    "rss_before", "rss_after", "ptes_rss_unchanged", "pages_moved", "pages_migrated",
    "munmap_latency", "exit_mmap_latency"}


class Expect:
    """The truth of a case. None: not known beforehand, the general checks must do.

    completed, refused, failed, pmd: labels -> number; holds, faults: labels ->
    {PTEs: number}; installed: labels -> number (None: from holds). around: backing
    -> Windows. before, zapped: PTEs that were present before the region, and that
    it replaced. zero: PTEs of the page of zeroes, which Rss leaves out (huge_zero: PMDs
    of the huge one, in zero as well). huge_before: of `before`, PMDs that are there
    still. mkwrite: backing -> calls of page_mkwrite, or "completed": one a fault. rss:
    which of RssAnon, RssFile, RssShmem the mapping is in. elsewhere: other processes install
    PTEs as well, which the workload's page tables do not show. unheld: metrics whose
    truth nobody can tell here, so that no check would notice a small error.
    """

    def __init__(self, **known):
        self.completed = self.refused = self.failed = self.retried = None
        self.installed = self.holds = self.faults = self.around = None
        self.pmd, self.mkwrite = {}, {}
        self.extra, self.touched = {}, {}   # with --yield
        self.before = self.zapped = self.zero = self.huge_zero = self.huge_before = 0
        self.rss, self.elsewhere, self.unheld = None, False, ()
        self.more = []              # further checks: function(bench, report) -> list
        for key, value in known.items():
            if not hasattr(self, key):
                raise AttributeError(key)
            setattr(self, key, value)


def held(what, count, truth):
    return [] if count.holds(truth) else [f"{what}: {count}, the truth is {truth}"]


def same(what, a, b):
    return [] if a.meets(b) else [f"{what}: {a} and {b} cannot be one number"]


def counters(report, name, truth):
    """All samples of a metric: those of `truth`, and no others."""
    wrong = []
    for labels in sorted(set(truth) | set(report.labels(name)), key=str):
        wrong += held(f"{name}{{{','.join(labels)}}}", report.count(name, labels),
                      truth.get(labels, 0))
    return wrong


def histogram(what, h, truth):
    count, total = sum(truth.values()), sum(k * v for k, v in truth.items())
    if h.lower_bound:
        moved = h.count - h.least
        if h.least > count or h.sum > total + moved * PMD_PTES:
            return [f"{what}: at least {h.least} of sum {h.sum}, "
                    f"the truth is {count} of sum {total}"]
        return []
    if h.buckets != truth or h.count != count or h.sum != total:
        return [f"{what}: {h.buckets}, count {h.count}, sum {h.sum}; the truth is {truth}"]
    return []


def histograms(report, name, truth):
    wrong = []
    seen = {k for k, h in report.histograms.get(name, {}).items() if h.count}
    for labels in sorted(set(truth) | seen, key=str):
        wrong += histogram(f"{name}{{{','.join(labels)}}}", report.histogram(name, labels),
                           truth.get(labels, {}))
    return wrong


def sane(report):
    """A histogram that contradicts itself."""
    wrong = []
    for name, by_labels in report.histograms.items():
        for labels, h in by_labels.items():
            what = f"{name}{{{','.join(labels)}}}"
            if sum(h.buckets.values()) != h.count:
                wrong.append(f"{what}: buckets of {sum(h.buckets.values())}, count {h.count}")
            # One value a bucket up to 512, so the sum is theirs.
            exact = sum(low * n for low, n in h.buckets.items())
            if name.startswith("ptes_") and max(h.buckets, default=0) < 512 and exact != h.sum:
                wrong.append(f"{what}: buckets of sum {exact}, sum {h.sum}")
    return wrong


def identities(report):
    """What must agree inside a report, whatever was run."""
    wrong = sane(report)
    completed = report.total("fault_completed")
    ended = completed + report.total("fault_failed") + report.total("fault_retried")
    ended += report.total("fault_refused", lambda k: k[1] not in ("vma_write_locked", "no_vma"))
    wrong += same("attempts, and completed + failed + retried + refused",
                  report.total("fault_attempts"), ended)

    certain = not report.lost()
    held = set(report.histograms.get("ptes_per_hold", {}))
    for labels in set(report.labels("ptes_installed")) | held:
        installed = report.count("ptes_installed", labels)
        h = report.histogram("ptes_per_hold", labels)
        if h.sum > installed.high or (certain and h.sum != installed.low):
            wrong.append(f"ptes_per_hold{{{','.join(labels)}}}: sum {h.sum}, "
                         f"ptes_installed {installed}")
    in_faults = report.total("ptes_installed", lambda k: k[1] != "eager")
    of_faults = sum(h.sum for h in report.histograms.get("ptes_per_fault", {}).values())
    if of_faults > in_faults.high or (certain and of_faults != in_faults.low):
        wrong.append(f"ptes_per_fault: sum {of_faults}, installed by faults: {in_faults}")

    wrong += same("fault_around_mapped, and PTEs installed by fault-around",
                  report.total("fault_around_mapped"),
                  report.total("ptes_installed", lambda k: k[1] == "fault_around"))

    # A latency for each fault; a fault of several attempts has one for each of them.
    for labels in set(report.histograms.get("fault_latency", {})) | {
            k[:3] for k in report.labels("fault_completed")}:
        n = report.histogram("fault_latency", labels).count
        faults = report.total("fault_completed", lambda k: k[:3] == labels)
        if n > faults.high or (certain and n != faults.low):
            wrong.append(f"fault_latency{{{','.join(labels)}}}: {n} of {faults} faults")
    for outcome, name, which in (
            ("failed", "fault_failed", lambda k: True),
            ("retried", "fault_retried", lambda k: True),
            ("refused", "fault_refused", lambda k: k[1] not in ("vma_write_locked", "no_vma"))):
        n = sum(h.count for k, h in report.histograms.get("fault_attempt_latency", {}).items()
                if k[1] == outcome)
        events = report.total(name, which)
        if n > events.high or (certain and n != events.low):
            wrong.append(f"fault_attempt_latency {outcome}: {n} of {events}")
    second = sum(h.count for k, h in report.histograms.get("fault_attempt_latency", {}).items()
                 if k[1] == "completed")
    if second > completed.high:
        wrong.append(f"fault_attempt_latency: {second} later attempts of {completed} faults")
    return wrong


def by_faults(report):
    """Pages that faults and mmap made resident."""
    pages = sum(report.counters.get("ptes_installed", {}).values())
    pages -= sum(report.counters.get("ptes_rss_unchanged", {}).values())
    return pages + PMD_PTES * sum(n for k, n in report.counters.get("pmd_maps", {}).items()
                                  if k[0] != "hugetlb")


def reconciled(report):
    """The resident set grew by what faults and the other ways brought, and by no page more."""
    def value(name):
        return sum(report.counters.get(name, {}).values())

    # Other threads' faults are in what 6.1 counts before and after.
    if report.lost() or "rss_zapped" in {name for name, _labels in report.inferred}:
        return []
    grew = value("rss_after") - value("rss_before")
    ways = sum(sign * value(name) for name, sign in WAYS.items())
    faults = by_faults(report)
    return [] if grew == faults + ways else [
        f"the resident set grew by {grew}: {faults} by faults, {ways} by other ways"]


def trusted(report, exact, old):
    """The trust line: nothing odd, and with --exact nothing lost."""
    wrong = [f"{key} is {n}" for key, n in report.trust.items()
             if n and not (key == "unmatched" and report.lost())]
    hidden = HOLDS_HIDDEN if old or exact else ()
    wrong += [f"{name}: unavailable: {why}" for name, why in report.unavailable.items()
              if name not in hidden and not why.startswith("only with --")]
    wrong += [f"no probe for {event}: {why}" for event, why in report.missing.items()
              if not (old and event in QUIET | OLD_QUIET) and not (exact and event == "zap hold")]
    if exact:
        wrong += [f"lost with --exact: {n} of {key}" for key, n in report.misses.items() if n]
        wrong += [f"slack with --exact: {n} of {name}" for name, n in report.slack.items() if n]
        # Before 6.7 kprobes' losses are not counted, and the trampolines are preferred.
        if report.mechanisms - ({"fentry", "fexit", "tp_btf", "iter"} if old else
                                {"kprobe", "kretprobe", "tp_btf", "iter"}):
            wrong.append(f"mechanisms with --exact: {report.mechanisms}")
    return wrong


def faults_of(report, minflt, majflt):
    """Completed faults against rusage."""
    wrong = held("completed faults against rusage", report.total("fault_completed"),
                 minflt + majflt)
    wrong += held("major faults against rusage",
                  report.total("fault_completed", lambda k: k[3] == "major"), majflt)
    return wrong


def populated(bench, report, e):
    """PTEs installed against what the page tables hold."""
    grown = report.total("ptes_installed")
    pmd = report.total("pmd_maps")
    grown.low += PMD_PTES * pmd.low + e.before - e.zapped
    grown.high += PMD_PTES * pmd.high + e.before - e.zapped
    wrong = held("PTEs installed, less those replaced, against pagemap", grown,
                 sum(bench["present"]))
    wrong += held("the same without the page of zeroes against smaps", grown,
                  sum(bench["rss_kib"] + bench["hugetlb_kib"]) * 1024 // bench["page_size"] +
                  e.zero)
    pmd.low += e.huge_before
    pmd.high += e.huge_before
    wrong += held("PMD maps against smaps", pmd,
                  sum(sum(bench[k]) for k in ("anon_huge_kib", "shmem_pmd_kib", "file_pmd_kib",
                                              "hugetlb_kib"))
                  // (PMD_PTES * bench["page_size"] // 1024) + e.huge_zero)
    # Detected by trial in the guest: on most releases these counters lag.
    if bench["rss_exact"] and e.rss:
        for kind in ("anon", "file", "shmem"):
            pages = sum(bench[f"rss_{kind}_kib"]) * 1024 // bench["page_size"]
            if kind == e.rss:
                wrong += held(f"the same against Rss of {kind}", grown, pages + e.zero)
            elif pages:
                wrong.append(f"the workload holds {pages} pages in Rss of {kind}")
    return wrong


def case(bench, report, e, exact, old):
    """All that is known about one traced workload."""
    wrong = trusted(report, exact, old) + identities(report)
    wrong += faults_of(report, bench["minflt"] + bench["child_minflt"], bench["majflt"])
    if not e.elsewhere:
        wrong += populated(bench, report, e)
    # A fault more than the pages take, when rusage says so too: the CPU was slow to see
    # an entry that was there. Nothing is installed by it.
    extra = bench["minflt"] + bench["child_minflt"] + bench["majflt"]
    extra -= sum((e.completed or {}).values())
    if e.completed and extra > 0:
        first = next(iter(e.completed))
        e.completed = {**e.completed, (first[0], "none", first[2], "minor"): extra}
    mkwrite = e.mkwrite
    if mkwrite == "completed":      # each fault is a write, of which the file system is told
        mkwrite = None
        wrong += same("page_mkwrite and completed faults", report.total("page_mkwrite"),
                      report.total("fault_completed"))
    for name, truth in (("fault_completed", e.completed), ("fault_refused", e.refused),
                        ("fault_failed", e.failed), ("fault_retried", e.retried),
                        ("ptes_installed", e.installed), ("pmd_maps", e.pmd),
                        ("page_mkwrite", mkwrite), ("fault_around_extra", e.extra),
                        ("fault_around_touched", e.touched)):
        if truth is not None:
            wrong += counters(report, name, truth)
    if e.holds is not None:
        wrong += histograms(report, "ptes_per_hold", e.holds)
        if e.installed is None:
            wrong += counters(report, "ptes_installed",
                              {k: sum(n * c for n, c in h.items()) for k, h in e.holds.items()})
    if e.faults is not None:
        wrong += histograms(report, "ptes_per_fault", e.faults)
    if e.around is not None:
        for name in ("asked", "mapped", "present"):
            wrong += counters(report, f"fault_around_{name}",
                              {(k,): getattr(w, name) for k, w in e.around.items()})
    for check in e.more:
        wrong += check(bench, report)
    return wrong


def whole_system(bench, report, per_attempt):
    """Everything against /proc/vmstat, read just inside and just around the region.

    Kernels up to 6.1 count pgfault for each attempt, later ones for each fault
    that was completed or failed.
    """
    wrong = identities(report)
    faults = report.total("fault_attempts") if per_attempt else \
        report.total("fault_completed") + report.total("fault_failed")
    inside, around = bench["pgfault_inside"], bench["pgfault_around"]
    if faults.high < inside or faults.low > around:
        wrong.append(f"faults: {faults}; pgfault: {inside} inside the region, {around} around it")
    # What the tracer's own switching costs is not known: bounded, and not by much.
    if around - inside > max(inside // 100, 8):
        wrong.append(f"not a quiet guest: pgfault {inside} inside, {around} around the region")
    return wrong
