# SPDX-License-Identifier: GPL-2.0-only
"""What is mapped, and by which way: the workloads of paths_*.c and of bench, and the truth."""
from cases import Case, RAMFS, TMPFS, file, newer, simple
from checks import Expect, PMD_PTES, identities, trusted
from report import windows

PATHS = "/run/paths"


class Path(Case):
    """A workload of paths_*.c."""

    def __init__(self, args, truth, skip=lambda kernel: None):
        super().__init__(args, truth, skip, repeat=1)
        self.command = f"{PATHS} {args}"


def since(release, what):
    return lambda kernel: None if newer(kernel, release) else what


def no_gmem(kernel):
    return None if newer(kernel, (7, 2)) else "no guest_memfd that can be mapped before 6.18"


def refused(backing, old, n):
    """Without ->map_pages the VMA's lock does not do; 6.1 has none."""
    return {} if old else {(backing, "no_map_pages"): n}


def each(backing, method, ptes=1, pages=None, no_around=False, **more):
    """One fault for each touch, each with a hold of its own that installs `ptes` PTEs."""
    def truth(bench, old, lazy):
        n = bench["pages_total"] if pages is None else pages
        k = (backing, method, "access")
        installs = {k: {ptes: n}} if ptes and n else {}
        known = dict(completed={k + ("minor",): n}, failed={}, retried={}, around={},
                     refused=refused(backing, old, n) if no_around else {},
                     holds=installs, faults=installs)
        known.update({key: f(bench) if callable(f) else f for key, f in more.items()})
        return Expect(**known)
    return truth


def pages(bench):
    return bench["pages_total"]


def huge_pages(bench):
    return bench["pages_total"] * PMD_PTES


def retried(backing, wp=False, **more):
    """Each fault waits for its handler once, and finds then that the page is there. 6.1 gives
    no write permission when it takes write protection away: a second fault does."""
    def truth(bench, old, lazy):
        n, method = bench["pages_total"], "reuse" if wp and old else "uffd"
        # What is made again under mmap_lock counts as major; under the VMA's lock, not.
        kind = "major" if old else "minor"
        known = dict(completed={(backing, method, "access", kind): n}, failed={}, refused={},
                     retried={(backing, "access"): n}, holds={}, faults={}, around={})
        known.update({key: f(bench) if callable(f) else f for key, f in more.items()})
        return Expect(**known)
    return truth


def huge(method, maps=True, retries=False, **more):
    """hugetlb: an entry of a higher table for each touch."""
    def truth(bench, old, lazy):
        n = bench["pages_total"]
        kind = "major" if retries and old else "minor"
        known = dict(completed={("hugetlb", method, "access", kind): n}, failed={}, refused={},
                     retried={("hugetlb", "access"): n} if retries else {}, installed={},
                     holds={}, faults={}, around={},
                     pmd={("hugetlb", "access"): n} if maps else {})
        known.update({key: f(bench) if callable(f) else f for key, f in more.items()})
        return Expect(**known)
    return truth


def bench_huge(method, **more):
    """The same of `bench touch`, which touches each of the 512 pages."""
    def truth(bench, old, lazy):
        n = bench["map_pages"] * bench["repeat"] // PMD_PTES
        known = dict(completed={("hugetlb", method, "access", "minor"): n}, failed={},
                     refused={}, retried={}, installed={}, holds={}, faults={}, around={},
                     pmd={("hugetlb", "access"): n})
        known.update({key: f(n) for key, f in more.items()})
        return Expect(**known)
    return truth


def sysv(bench, old, lazy):
    """2M by one entry, refused once: shm_vm_ops has no map_pages."""
    n = bench["map_pages"] * bench["repeat"] // PMD_PTES
    return Expect(completed={("sysv_shm", "pmd", "access", "minor"): n}, failed={}, retried={},
                  refused=refused("sysv_shm", old, n), installed={}, holds={}, faults={},
                  around={}, rss="shmem", pmd={("sysv_shm", "access"): n})


def unpaged(backing, trigger="access"):
    """Of bench: a page a fault, each taken twice where there is a VMA lock."""
    def truth(bench, old, lazy):
        e = simple(backing, "per_page", trigger, around={})(bench, old, lazy)
        e.rss = "shmem" if backing == "sysv_shm" else "file"
        if trigger == "access":
            e.refused = refused(backing, old, bench["pages_total"])
        return e
    return truth


def remapped(bench, old, lazy):
    """mmap() maps all of it: the part of each page table in one hold."""
    k = ("device", "eager", "mmap")
    n, head = bench["pages_total"], bench["head"]
    holds = {head: 1} if n == head else {head: 1, n - head: 1}
    return Expect(completed={}, failed={}, retried={}, refused={}, faults={}, around={},
                  holds={k: holds}, elsewhere=True)


def udmabuf(bench, old, lazy):
    """vmf_insert_pfn() for the page and, since 7.x, for all others of the mapping, too: in
    each case one PTE and one hold for each, in one fault or in as many."""
    k = ("device", "per_page", "access")
    n, faults = bench["pages_total"], bench["minflt"]
    return Expect(completed={k + ("minor",): faults}, failed={}, retried={}, around={},
                  refused=refused("device", old, faults), holds={k: {1: n}},
                  faults={k: {n // max(faults, 1): faults}}, elsewhere=True,
                  more=[lambda b, r: [] if faults in (1, n) else
                        [f"{faults} faults for {n} pages: neither one nor all"]])


def reused(bench, old, lazy):
    """No longer shared: written where it is, or copied if somebody else refers to it still."""
    n, copied = bench["pages_total"], bench["copied"]
    k = ("anon", "cow", "access")
    installs = {k: {1: copied}} if copied else {}
    return Expect(completed={("anon", "reuse", "access", "minor"): n - copied,
                             k + ("minor",): copied}, failed={}, refused={}, retried={},
                  around={}, holds=installs, faults=installs, before=n, zapped=copied,
                  more=[lambda b, r: [] if b["held"] <= copied < n // 2 else
                        [f"{copied} of {n} were copied, {b['held']} were held"]])


def swapped(backing, method):
    """A page that is still in the swap cache, because somebody refers to it or because it was
    read ahead with another, is a minor fault: how many rusage tells."""
    def truth(bench, old, lazy):
        k = (backing, method, "access")
        n, major = bench["pages_total"], bench["majflt"]
        return Expect(completed={k + ("minor",): n - major, k + ("major",): major}, failed={},
                      refused={}, retried={}, holds={k: {1: n}}, faults={k: {1: n}}, around={},
                      more=[lambda b, r: [] if major * 16 >= n else
                            [f"{major} major faults of {n}: it was not swapped out"]])
    return truth


def mkwrite(method, ptes, backing="file"):
    def truth(bench, old, lazy):
        e = each(backing, method, ptes, before=pages if not ptes else 0)(bench, old, lazy)
        e.mkwrite = {(backing,): bench["pages_total"]}
        return e
    return truth


def hints(bench, report, old):
    """Everything was there and is only touched again: every fault is a hint. How many come is
    the scanner's choice, and when: rusage is read just inside and just around the region. What
    a hint gives back may lack the right to write: one more fault."""
    wrong = trusted(report, True, old) + identities(report)
    found = report.total("fault_completed", lambda k: k[1] == "numa_hint")
    reused = report.total("fault_completed", lambda k: k[1] == "reuse")
    total = report.total("fault_completed")
    inside, around = bench["minflt"], bench["minflt_around"]
    if not inside <= total.low <= around:
        wrong.append(f"{total} faults; rusage {inside} inside, {around} around the region")
    if total.low != found.low + reused.low or reused.low > found.low:
        wrong.append(f"{found} hints and {reused} reuses of {total} faults")
    if not 1000 < found.low <= bench["numa_around"]:
        wrong.append(f"{found} hints; numa_hint_faults {bench['numa_around']}")
    return wrong


BACKINGS = [
    Case("touch --backing sysv_shm --size 2M", unpaged("sysv_shm")),
    Case("touch --backing sysv_shm --touch read --pattern random --size 2M",
         unpaged("sysv_shm")),
    Case("touch --backing sysv_shm --by populate --size 2M", unpaged("sysv_shm", "populate")),
    Case("touch --backing sysv_shm --thp 2M --size 4M", sysv),
    Case("touch --backing hugetlb --size 4M", bench_huge("pmd")),
    Case("touch --backing hugetlb --touch read --size 4M", bench_huge("pmd")),
    Case("touch --backing hugetlb --touch cow --size 4M",
         bench_huge("cow", before=lambda n: n * PMD_PTES, zapped=lambda n: n * PMD_PTES)),
    Case("touch --backing gmem --size 1M", unpaged("guest_memfd"), no_gmem),
    Case("touch --backing gmem --touch read --pattern random --size 1M", unpaged("guest_memfd"),
         no_gmem),
    Case("touch --backing gmem --by populate --size 1M", unpaged("guest_memfd", "populate"),
         no_gmem),
    Path("hugetlb private", huge("pmd")),
    Path("hugetlb shared", huge("pmd")),
    Path("hugetlb reuse", huge("reuse", False, before=huge_pages, huge_before=pages)),
    Path("reuse", reused),
    Path("reuse 9", reused),    # so many are in a pipe as well
    Path("zero-cow", each("anon", "cow", before=pages, zapped=pages)),
    Path("mkwrite /mnt/ext4/written", mkwrite("per_page", 1)),
    Path("mkwrite-mapped /mnt/ext4/written", mkwrite("reuse", 0)),
    Path("mkwrite /tmp/written", each("shmem", "per_page")),
    Path("swap-read", swapped("anon", "swap_in")),
    Path("swap-write", swapped("anon", "swap_in")),
    Path("swap-shmem", swapped("shmem", "per_page")),
    Path("uffd missing", retried("anon", before=pages)),
    Path("uffd shmem", retried("shmem", before=pages)),
    Path("uffd wp", retried("anon", wp=True, before=pages)),
    Path("uffd hugetlb", huge("uffd", False, True, before=huge_pages, huge_before=pages)),
    Path("arena", each("bpf_arena", "per_page", no_around=True),
         since((6, 9), "no BPF arenas before 6.9")),
    Path("vdso", each("device", "per_page", no_around=True, before=lambda b: b["before"])),
    Path("vvar", each("device", "per_page", no_around=True, elsewhere=True)),
    Path("udmabuf", udmabuf, since((6, 12), "this kernel is built without udmabuf")),
    Path("devmem", remapped),
]

# For the other mechanisms: one of each way.
ONCE = [c for c in BACKINGS if isinstance(c, Path) or "cow" in c.name or c.name in (
    "touch --backing sysv_shm --size 2M", "touch --backing gmem --size 1M")]


def yields(backing):
    """With fault-around off each page that is touched faults. Of those that the windows
    would have held besides, all are touched later but the ones that open a window."""
    def truth(bench, old, lazy):
        w, n = windows(bench, around=AROUND), bench["pages_total"]
        k = (backing, "per_page", "access")
        return Expect(completed={k + ("minor",): n}, failed={}, retried={}, refused={},
                      holds={k: {1: n}}, faults={k: {1: n}}, around={},
                      extra={(backing,): w.mapped - w.faults},
                      touched={(backing,): n - w.faults})
    return truth


AROUND = 65536      # the kernel's default window

YIELD = [
    *[Case(f"touch {file(kind, where, f'--touch read {p}')}", yields(backing))
      for kind, where, backing, p in (
          ("file", TMPFS, "shmem", "--pattern seq --size 2100K"),
          ("file-private", RAMFS, "file", "--pattern random --size 1932K"),
          ("file", RAMFS, "file", "--pattern stride=3 --size 2100K"),
          ("file-private", TMPFS, "shmem", "--pattern stride=16 --size 4M"))],
    # No read, no window.
    Case(f"touch {file('file', TMPFS, '--touch write --size 1M')}", simple("shmem", "per_page")),
]

NUMA = [Path("numa", None)]
