# SPDX-License-Identifier: GPL-2.0-only
"""The workloads, and the truth about each on each kernel of the matrix."""
import sys

from checks import Expect, PMD_PTES
from report import windows

RAMFS, EXT4, TMPFS = "/mnt/ramfs", "/mnt/ext4", "/tmp"
LARGE = f"{EXT4}/large"         # of 4M, made by the guest's script


class Case:
    """
    args: of mmscope bench; command: with that. truth: function(bench, old, lazy) -> Expect. skip:
    function(kernel) -> why the kernel cannot run it, or None. run: the guest's function for it.
    """

    run = "run"

    def __init__(self, args, truth, skip=lambda kernel: None, repeat=2):
        self.command = f"mmscope bench {args} --repeat {repeat} --json --oracle"
        self.name, self.truth, self.skip = args, truth, skip


def newer(kernel, than):
    return tuple(map(int, kernel.split("."))) >= than


def whole(kernel):
    """Everything? make check proves what faults count on each kernel; what counts it in
    another way, and the rest, on the oldest and the newest; tests/long/kernels.sh on all."""
    return kernel in ("6.1", "7.3") or "all" in sys.argv[1:]


def no_mthp(kernel):
    return None if newer(kernel, (6, 8)) else "no folios between a page and a PMD before 6.8"


def no_shmem_mthp(kernel):
    return None if newer(kernel, (6, 11)) else "no such folios in shared memory before 6.11"


def simple(backing, method, trigger="access", ptes=1, **more):
    """Every fault installs `ptes` PTEs in one hold; none is refused, none fails."""
    def truth(bench, old, lazy):
        n = bench["pages_total"] // ptes
        k = (backing, method, trigger)
        known = dict(completed={k + ("minor",): n}, refused={}, failed={}, retried={},
                     holds={k: {ptes: n}}, faults={k: {ptes: n}}, around={},
                     rss={"anon": "anon", "shmem": "shmem"}.get(backing, "file"))
        # Functions of the number of faults, for what differs.
        known.update({key: f(n) if callable(f) else f for key, f in more.items()})
        return Expect(**known)
    return truth


def zero_page(trigger="access"):
    return simple("anon", "zero_page", trigger, zero=lambda n: n)


def cow(backing, trigger="access"):
    """The pages were there; each is replaced by a copy."""
    return simple(backing, "cow", trigger, before=lambda n: n, zapped=lambda n: n, rss="anon")


def read_around(backing, trigger="access"):
    """Cached in small folios: the windows follow from the addresses."""
    def truth(bench, old, lazy):
        w = windows(bench)
        k = (backing, "fault_around", trigger)

        def same_windows(bench, report):
            if "windows" in bench and sum(bench["windows"]) != w.faults:
                return [f"windows: {bench['windows']} by bench, {w.faults} here"]
            return []

        return Expect(completed={k + ("minor",): w.faults}, refused={}, failed={}, retried={},
                      holds={k: w.sizes}, faults={k: w.sizes}, around={backing: w},
                      rss="shmem" if backing == "shmem" else "file", more=[same_windows])
    return truth


def beyond(trigger):
    """Each touch fails, after asking for its window: nothing of the file is there."""
    def truth(bench, old, lazy):
        return Expect(completed={}, refused={}, failed={("shmem", trigger): bench["pages_total"]},
                      retried={}, holds={}, faults={}, around={"shmem": windows(bench, False)},
                      rss="shmem")
    return truth


def pmd(backing, **more):
    def truth(bench, old, lazy):
        n = bench["map_pages"] * bench["repeat"] // PMD_PTES
        known = dict(completed={(backing, "pmd", "access", "minor"): n}, refused={}, failed={},
                     retried={}, holds={}, faults={}, installed={}, rss=backing,
                     pmd={(backing, "access"): n})
        known.update({key: f(n) for key, f in more.items()})
        return Expect(**known)
    return truth


def children(bench, old, lazy):
    """The parent's pages were all there. The children fault in some of the program's text:
    how often rusage tells, but their page tables are gone."""
    def parent(bench, report):
        anon = report.total("ptes_installed", lambda k: k[0] == "anon")
        return [f"{anon} PTEs of anonymous memory: fork() makes no fault"] if anon.low else []
    return Expect(refused={}, failed={}, retried={}, more=[parent], elsewhere=True,
                  unheld=("fault_around_asked", "fault_around_present"))


def array(populate, touch):
    """Up to 7.2 mmap() fills the array's mapping; 7.3 leaves it to faults, each of one
    PTE, which an access takes twice, because the mapping has no map_pages."""
    def truth(bench, old, lazy):
        n = bench["map_pages"] * bench["repeat"]
        known = dict(refused={}, failed={}, retried={}, completed={}, holds={}, faults={},
                     around={}, rss="file")
        k = ("bpf_array", "per_page", "populate" if populate else "access")
        if not lazy:
            known["holds"] = {("bpf_array", "eager", "mmap"): {1: n}}
        elif populate or touch:
            known.update(completed={k + ("minor",): n}, holds={k: {1: n}}, faults={k: {1: n}})
            if not populate:
                known["refused"] = {("bpf_array", "no_map_pages"): n}
                known["more"] = [lambda bench, report: [] if report.count(
                    "fault_attempts", k[::2]).holds(2 * n) else [
                        f"attempts: {report.count('fault_attempts', k[::2])}, not twice {n}"]]
        return Expect(**known)
    return truth


def eager(backing):
    """One vm_insert_page() and one hold for each page."""
    def truth(bench, old, lazy):
        n = bench["pages_total"]
        return Expect(completed={}, refused={}, failed={}, retried={}, faults={}, around={},
                      holds={(backing, "eager", "mmap"): {1: n}}, rss="file")
    return truth


def eager_batches(bench, old, lazy):
    """vm_insert_pages() takes the lock for 8 pages at a time, less at the end of a call or
    of a page table; calls are made for two areas a repeat, whose addresses are not known."""
    k = ("other", "eager", "mmap")
    n = bench["pages_total"]

    def holds(bench, report):
        h = report.histogram("ptes_per_hold", k)
        least = bench["pages"] // 8 * bench["repeat"]
        most = (bench["pages"] // 8 + 4) * bench["repeat"]
        if h.sum != n or not least <= h.count <= most or max(h.buckets, default=0) > 8:
            return [f"ptes_per_hold: {h.buckets}, count {h.count}, sum {h.sum}: not {n} pages "
                    f"in {least} to {most} holds of 8 at most"]
        return []
    return Expect(completed={}, refused={}, failed={}, retried={}, faults={}, around={},
                  installed={k: n}, rss="file", more=[holds])


def large_folios(write):
    """ext4 from 6.16 on has folios of unknown sizes, and each fault maps all of one: how
    many faults there are only rusage knows, how many PTEs only pagemap."""
    def truth(bench, old, lazy):
        n = bench["pages_total"]

        def batched(bench, report):
            faults = report.total("fault_completed").high
            if not 0 < faults * 17 < n:
                return [f"{faults} faults for {n} pages: no large folios, nothing is proved"]
            wanted = "large_folio" if write else "fault_around"
            other = report.total("ptes_installed", lambda k: k != ("file", wanted, "access"))
            return [f"{other} PTEs by other methods than {wanted}"] if other.high else []
        e = Expect(refused={}, failed={}, rss="file", more=[batched])
        if write:
            e.around = {}
            e.mkwrite = "completed"
        else:
            # Where a fault asks follows from where the folio before it ended.
            e.unheld = ("fault_around_asked",)
            e.more.append(lambda bench, report: [] if report.total("fault_around_asked").low <=
                          16 * report.total("fault_completed").high else
                          ["more pages asked for than 16 a fault"])
        return e
    return truth


def on_ext4(small, write):
    def truth(bench, old, lazy):
        return (large_folios(write) if bench["_large_folios"] else small)(bench, old, lazy)
    return truth


def general(**known):
    """Only the general checks: where threads decide which of them takes a fault. Of the
    windows, each page is mapped by one of them, found present, or skipped because the
    other holds its folio's lock just then (next_uptodate_folio() only tries it)."""
    def around(bench, report):
        asked, found = report.total("fault_around_asked"), report.total("fault_around_mapped")
        found += report.total("fault_around_present")
        return [] if found.low <= asked.high else [f"asked {asked}, mapped and present {found}"]
    names = tuple(f"fault_around_{x}" for x in ("asked", "mapped", "present"))
    return lambda bench, old, lazy: Expect(refused={}, failed={}, more=[around],
                                           **{"unheld": names, **known})


def touch(args, truth, **more):
    return Case(f"touch {args}", truth, **more)


def file(kind, where, args):
    return f"--backing {kind} --path {where}/mmscope-file {args}"


PATTERNS = ("--pattern seq --size 2100K", "--pattern random --size 1932K",
            "--pattern stride=16 --size 4M", "--pattern stride=7 --size 2100K")

CASES = [
    Case("arraymap --size 8M --touch none", array(False, False)),
    Case("arraymap --size 8M --touch read", array(False, True)),
    Case("arraymap --size 8M --touch write", array(False, True)),
    Case("arraymap --size 8M --touch none --populate", array(True, False)),
    Case("arraymap --size 8M --touch read --populate", array(True, True)),
    Case("ringbuf --size 1M", eager("bpf_ringbuf")),
    Case("io_uring --entries 4096", eager_batches),

    touch("--touch read --size 8M", zero_page()),
    touch("--touch write --size 8M", simple("anon", "per_page")),
    touch("--touch write --pattern random --threads 2 --size 4M", simple("anon", "per_page")),
    touch("--touch write --threads 8 --size 8M", simple("anon", "per_page")),
    touch("--touch write --pattern stride=16 --size 8M", simple("anon", "per_page")),
    touch("--touch cow --size 4M", cow("anon")),
    touch("--touch cow --threads 2 --size 4M", cow("anon")),
    touch("--touch fork --size 4M", children),
    touch("--thp 64K --size 4M", simple("anon", "large_folio", ptes=16), skip=no_mthp),
    touch("--thp 2M --size 8M", pmd("anon")),
    touch("--thp 2M --touch read --size 8M",
          pmd("anon", zero=lambda n: n * PMD_PTES, huge_zero=lambda n: n)),

    touch("--backing shmem --size 4M", simple("shmem", "per_page", around={})),
    touch("--backing memfd --pattern random --size 4M", simple("shmem", "per_page")),
    touch("--backing memfd --thp 64K --size 4M", simple("shmem", "large_folio", ptes=16),
          skip=no_shmem_mthp),
    touch("--backing shmem --thp 2M --size 8M", pmd("shmem")),

    *[touch(file(kind, TMPFS, f"--touch read {p}"), read_around("shmem"))
      for kind, p in zip(("file", "file-private", "file", "file-private"), PATTERNS)],
    *[touch(file(kind, RAMFS, f"--touch read {p}"), read_around("file"))
      for kind, p in zip(("file-private", "file", "file-private", "file"), PATTERNS)],
    touch(file("file", TMPFS, "--touch read --threads 2 --size 4M"), general(rss="shmem")),
    # The generic page_mkwrite of such file systems only checks, but it is called.
    touch(file("file", RAMFS, "--touch write --size 2M"),
          simple("file", "per_page", mkwrite="completed")),
    touch(file("file", TMPFS, "--touch write --pattern random --size 2M"),
          simple("shmem", "per_page")),
    touch(file("file-private", RAMFS, "--touch write --size 2M"),
          simple("file", "cow", rss="anon")),
    touch(file("file-private", RAMFS, "--touch cow --size 2M"), cow("file")),
    touch(file("file-private", TMPFS, "--touch cow --threads 8 --size 2M"), cow("shmem")),
    touch(f"--backing file --path {LARGE} --touch read --size 4M",
          on_ext4(read_around("file"), False)),
    touch(f"--backing file-private --path {LARGE} --touch read --pattern random --size 4M",
          on_ext4(read_around("file"), False)),
    touch(f"--backing file --path {LARGE} --touch write --overwrite --size 4M",
          on_ext4(simple("file", "per_page", mkwrite="completed"), True)),
    touch(file("file-private", EXT4, "--touch cow --size 2M"), cow("file")),

    touch("--by gup --touch read --size 2M", zero_page("gup")),
    touch("--by gup --touch write --pattern random --size 2M",
          simple("anon", "per_page", "gup")),
    touch("--by gup --touch cow --size 2M", cow("anon", "gup")),
    touch(file("file", RAMFS, "--by gup --touch read --size 2100K"), read_around("file", "gup")),
    touch("--by populate --touch read --size 2M", zero_page("populate")),
    touch("--by populate --touch write --size 2M", simple("anon", "per_page", "populate")),
    touch(file("file", TMPFS, "--by populate --touch read --size 2100K"),
          read_around("shmem", "populate")),
    touch("--backing memfd --touch beyond --size 1M", beyond("access")),
    touch("--backing memfd --touch beyond --by gup --pattern random --size 1M", beyond("gup")),
    touch("--backing memfd --touch beyond --by populate --size 1M", beyond("populate")),
]

# Of the other build of the BPF programs, which must load on every kernel and count alike.
FEW = [c for c in CASES if c.name in (
    "arraymap --size 8M --touch read", "touch --touch write --size 8M",
    "touch --touch cow --size 4M",
    f"touch {file('file', TMPFS, '--touch read --pattern seq --size 2100K')}")]

# Of the whole system, held against /proc/vmstat.
SYSTEM = [c for c in CASES if c.name in (
    "arraymap --size 8M --touch read", "touch --touch write --threads 8 --size 8M",
    f"touch {file('file', RAMFS, '--touch read --pattern random --size 1932K')}",
    "touch --thp 2M --size 8M", "touch --backing memfd --touch beyond --size 1M")]
