# SPDX-License-Identifier: GPL-2.0-only
"""In a guest: names of per-CPU locks, why faults took mmap_lock, and who held what."""
import collections
import os
import re
import subprocess
import sys

from lock_report import counts, samples, sums
from robust_lib import checked, note, skip, strict

KERNEL = sys.argv[1]
REPORT = "/tmp/names.json"
TRIES = 5               # of a workload, until it did what it is for
RQ = "20000"
NO_VMA, NO_MAP_PAGES, UFFD = 200, 300, 100
HAS_VMA_LOCK = KERNEL != "6.1"
CERTAIN = (f"names no_vma {NO_VMA}; names no_map_pages {NO_MAP_PAGES}; names uffd {UFFD}; "
           "names retried 300 /tmp/ram")


def observe(*argv):
    p = subprocess.run(["mmscope", *argv[:-1], "--json", "-o", REPORT, "--", "sh", "-c", argv[-1]],
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)
    if p.returncode:
        raise ValueError(f"{argv}: status {p.returncode}: {p.stderr.decode()}")
    with open(REPORT, "rb") as f:
        return strict(f.read())["runs"][0]


def screen():
    """What the report says in words."""
    return subprocess.run(["mmscope", "report", REPORT], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=True).stdout


def rows(run, label):
    return {m["labels"][label]: m["value"] for m in samples(run, "lock_contended")
            if label in m.get("labels", {})}


def reasons(run, name):
    """{reason: number}, and the samples that are inferred."""
    total, inferred = collections.Counter(), set()
    for m in samples(run, name):
        key = m["labels"]["reason"]
        total[key] += m["value"]
        if m.get("inferred"):
            inferred.add(key)
    return total, inferred


def lost(run):
    return sum(p.get("misses") or 0 for p in run["trust"]["probes"])


def near(a, b, slack):
    return abs(a - b) <= slack


# ---- names ----

def innermost(stack):
    """The function that takes the spinlock, and how it does: 7.2 and 7.3 jump to it."""
    frames = stack.split(";")[1:-1]
    while frames and re.match(r".*queued_spin_lock_slowpath$|_raw_spin_lock$", frames[-1]):
        frames.pop()
    return frames[-1] if frames else ""


def of_queue(stack):
    """Waits for the lock of a CPU's queue. That of the task is taken before, as _irqsave."""
    return bool(re.match(r"_*task_rq_lock$|raw_spin_rq_lock", innermost(stack)))


def alone():
    """In mmscope lock, without the programs of faults."""
    script = f"names rq {RQ}; {CERTAIN}" if HAS_VMA_LOCK else f"names rq {RQ}"
    for _ in range(TRIES):
        run = observe("lock", "--stacks=4096", script)
        told = rows(run, "lock")
        stacks = {text: n for text, n in rows(run, "stack").items()
                  if text.endswith((";[other spin]", "(others)"))}
        queue = sum(n for text, n in stacks.items() if of_queue(text))
        if queue:
            break
    unnamed = {text: n for text, n in told.items() if text.startswith("(")}
    note(f"locks without a class: {told}")
    note(f"stacks that wait for the lock of a CPU's queue: {queue} waits")

    @checked("the lock of a CPU's queue: as many waits as stacks of who takes it")
    def _():
        mine = sum(n for text, n in told.items()
                   if re.fullmatch(r"runqueues(\+0x[0-9a-f]+)? \(per CPU\)", text))
        # It may be inlined elsewhere; with interrupts off all along, what is taken is another.
        most = sum(n for text, n in stacks.items() if innermost(text) != "_raw_spin_lock_irqsave")
        if not queue or not queue <= mine <= most or "(others)" in stacks:
            return f"{queue} waits in stacks {stacks}, rows {told}"
        return "\n".join(sums(run, 8))

    text = screen()

    @checked("the share without a class and a name is in the first line")
    def _():
        found = re.search(r"without a class (\d+) waits, [^,]*, of these without a name (\d+) waits",
                          text)
        want = (sum(told.values()), sum(unnamed.values()))
        return None if found and tuple(map(int, found.groups())) == want else \
            f"not {want}: {text[:400]}"

    if not HAS_VMA_LOCK:
        skip("why faults took mmap_lock", "no per-VMA lock: all do")
        return

    @checked("faults that took mmap_lock, by reason, where nothing else of them is seen")
    def _():
        found, inferred = reasons(run, "lock_mmap_faults")
        note(f"lock alone: {dict(found)}")
        wrong = certain(found, inferred, lost(run))
        if f"no_map_pages ~{found['no_map_pages']}," not in text and not lost(run):
            wrong.append(text)
        return "\n".join(wrong)


# ---- reasons ----

def agreed(found, refused, retried, slack, alone):
    """Problems: what has to hold between what was found and what the attempts said. alone: no
    other thread has made the anon_vma by the time that mmap_lock is taken for want of it."""
    wrong = []
    total = sum(refused.values()) + retried
    if not near(sum(found.values()), total, slack):
        wrong.append("not all are there")
    if not near(found["no_vma"], refused["no_vma"], slack):
        wrong.append("no_vma")
    if found["no_map_pages"] < refused["no_map_pages"] - slack:
        wrong.append("no_map_pages")
    # Told by state alone, or not told: it is one of those that the attempt did not see.
    least = found["anon_vma"] + (0 if alone else found["vma_write_locked"])
    if not refused["anon_vma"] - slack <= least or found["anon_vma"] > \
            refused["anon_vma"] + refused["vma_write_locked"] + slack:
        wrong.append("anon_vma")
    if found["retried"] + found["uffd"] > retried + slack:
        wrong.append("more came again than attempts were given up")
    return [f"{', '.join(wrong)}: found {found}, refused {refused}, retried {retried}, "
            f"{slack} runs lost"] if wrong else []


def both(script, enough, alone):
    """By fault's programs and by lock's in one run, of a workload that did what it is for."""
    for _ in range(TRIES):
        run = observe("trace", "-e", "fault,lock", script)
        found, inferred = reasons(run, "lock_mmap_faults")
        refused, _ = reasons(run, "fault_refused")
        retried = sum(m["value"] for m in samples(run, "fault_retried")
                      if m["labels"]["trigger"] == "access")
        note(f"found {dict(found)}, refused {dict(refused)}, retried {retried}")
        if enough(refused, retried):
            return found, inferred, agreed(found, refused, retried, lost(run), alone)
    return found, inferred, [f"not in {TRIES} tries: refused {refused}, retried {retried}"]


def certain(found, inferred, slack):
    wrong = []
    for reason, n in (("no_map_pages", NO_MAP_PAGES), ("uffd", UFFD)):
        # Mappings of the kernel's own, as the vdso, lack it as well.
        if found[reason] < n - slack or (reason == "uffd" and found[reason] > n):
            wrong.append(f"{reason}: {found[reason]} of {n}")
    if not found["no_vma"] >= NO_VMA - slack:
        wrong.append(f"no_vma: {found['no_vma']}")
    if inferred & {"no_vma", "retried"} or not inferred >= {"no_map_pages", "uffd"}:
        wrong.append(f"inferred {inferred}")
    return wrong


def why():
    if not HAS_VMA_LOCK:
        return

    @checked("faults that took mmap_lock, by reason, agree with their attempts")
    def _():
        found, _, wrong = both(CERTAIN, lambda refused, retried: retried > UFFD, False)
        return "\n".join(wrong)

    @checked("... while mappings are written, and have no anon_vma")
    def _():
        _, inferred, wrong = both("names anon_vma 1000; names written 100", lambda refused, _:
                                  refused["anon_vma"] and refused["vma_write_locked"], True)
        if not inferred >= {"anon_vma", "vma_write_locked"}:
            wrong.append(f"not inferred: {inferred}")
        return "\n".join(wrong)


# ---- holders ----

def holders():
    @checked("who holds mmap_lock while its waiters queue: one of the process, or nobody")
    def _():
        for _ in range(TRIES):
            run = observe("lock", "--by", "holder",
                          "mmscope bench contend mmap_lock --threads 6 --seconds 1")
            told = rows(run, "holder")
            if told.get("(nobody)"):
                break
        spin = sum(n for (_, mode, _), n in counts(run).items() if mode in ("spin", "wait"))
        note(f"holders {told}; {spin} waits for spinlocks and folios")
        wrong = sums(run, 8)
        if sum(told.values()) != sum(counts(run).values()):
            wrong.append(f"{counts(run)}")
        if not told.get("(nobody)") or told.get("(not known)", 0) < spin:
            wrong.append(f"{told}, {spin} spin")
        return "\n".join(wrong)

    if not HAS_VMA_LOCK:
        skip("who holds the lock of a mapping", "it has none")
        return

    @checked("who holds the lock of a mapping that a writer waits for: readers")
    def _():
        for _ in range(TRIES):
            run = observe("lock", "--by", "holder", "names readers 64")
            told, waits = rows(run, "holder"), counts(run)
            of_vma = sum(n for (name, _, _), n in waits.items() if name == "vma_lock")
            # More of them than there were waits for anything else: some are of a mapping.
            if told.get("(readers)", 0) > sum(waits.values()) - of_vma:
                break
        note(f"holders {told}; waits {waits}")
        wrong = sums(run, 8)
        if told.get("(readers)", 0) <= sum(waits.values()) - of_vma:
            wrong.append(f"{told}, {waits}")
        return "\n".join(wrong)


# ---- refusals ----

STARTED = "/tmp/started"


def refusal():
    @checked("--in of a function that takes no further program: refused, nothing started")
    def _():
        p = subprocess.run(["names", "occupy", "__vm_munmap", "mmscope", "lock", "--in", "munmap",
                            "--", "touch", STARTED], stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=300, check=False)
        note(f"{p.stdout.strip()} programs are on it: {p.stderr.strip()}")
        if p.returncode != 3 or os.path.exists(STARTED) or p.stderr.count("\n") != 1 or \
           not p.stderr.startswith("mmscope: --in: cannot be told here: __vm_munmap: "):
            return f"status {p.returncode}, started {os.path.exists(STARTED)}: {p.stderr}"
        return None


alone()
why()
holders()
refusal()
