# SPDX-License-Identifier: GPL-2.0-only
"""In a guest: mmscope lock against workloads that are known to collide on one lock."""
import os
import re
import subprocess
import sys

import lock_classes_guest
import lock_io_guest
import lock_rows_guest
import lock_user_guest
from lock_report import (REPORT, by_class, counts, lock, number, released, rows, samples, sums,
                         times)
from lock_report import known as waits_known
from robust_lib import note, result, strict

KERNEL = sys.argv[1]
THREADS = 4
HAS_VMA_LOCK = KERNEL != "6.1"
# Of 6 threads that fight for one page table, and for how long until there are so many: a
# busy machine takes longer.
PAGE_TABLE_WAITS = 2000
PAGE_TABLE_SECONDS = ("4", "20")
ROUNDS = 100


def page_table():
    for seconds in PAGE_TABLE_SECONDS:
        run = lock("mmscope", "bench", "contend", "page_table", "--threads", "6",
                   "--seconds", seconds)
        waits = by_class(counts(run)).get("page_table", 0)
        note(f"six threads on one page table: {waits} waits in {seconds} s")
        if waits >= PAGE_TABLE_WAITS:
            break
    wrong = sums(run, 7) + ([f"{waits} waits"] if waits < PAGE_TABLE_WAITS else [])
    # What they cost is measured in every fourth jiffy.
    timed = number(run, "lock_programs")
    if not 0 < timed <= sum(counts(run).values()):
        wrong.append(f"{timed} of {sum(counts(run).values())} waits have a cost")
    result("six threads on one page table wait for it thousands of times", "\n".join(wrong))


def known():
    """Each round of waits.c is one wait, the first and untold repeat's included."""
    run = lock("sh", "-c", f"waits rwsem {ROUNDS} 1; waits mutex {ROUNDS} 1",
               options=("--by", "comm"))
    wrong = sums(run, 0) + waits_known(run, 2 * ROUNDS)
    # Who holds it gives it back once for each, and nobody else waits for it.
    wrong += released(run, 2 * ROUNDS, ("inode", "other"))
    result("waits of a known number", "\n".join(wrong))


def writers_and_readers():
    run = lock("lock", "vma", "500")
    writers = by_class(counts(run)).get("vma_lock", 0)
    took = number(run, "lock_mmap_faults")
    wrong = sums(run, 5)
    if HAS_VMA_LOCK != bool(writers):
        wrong.append(f"{writers} writers waited")
    if HAS_VMA_LOCK != bool(took):
        wrong.append(f"{took} attempts took mmap_lock")
    note(f"500 mprotect, 3 threads that fault: {writers} writers waited, {took} took mmap_lock")
    result("writers of a VMA wait for readers, and readers take mmap_lock", "\n".join(wrong))


def parts():
    """Of faults: what is waiting is within their latency, and within all that was waited."""
    p = subprocess.run(["mmscope", "trace", "-e", "fault,lock", "--json", "-o", REPORT, "--",
                        "mmscope", "bench", "contend", "page_table", "--seconds", "2"],
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=True)
    ops = int(p.stdout.split()[1])
    with open(REPORT, "rb") as f:
        run = strict(f.read())["runs"][0]
    latency = sum(m["sum"] for m in samples(run, "fault_latency") if "sum" in m)
    waited = {m["labels"]["part"]: m["value"] for m in samples(run, "fault_waited")}
    table = sum(ns for (name, _, _), (_, ns) in times(run).items() if name == "page_table")
    faults = number(run, "fault_completed")
    lost = any(p.get("misses") for p in run["trust"]["probes"])
    wrong = sums(run, THREADS + 1)
    if not 0 < waited.get("page_table", 0) <= table:
        wrong.append(f"{waited} of faults, {table} ns for page tables in all")
    if sum(waited.values()) > latency:
        wrong.append(f"{waited} of a latency of {latency}")
    # Each operation is two faults, and a thread's stack may have a few.
    if not lost and not 2 * ops <= faults <= 2 * ops + 64:
        wrong.append(f"{faults} faults, {ops} pages")
    note(f"faults: {waited} ns of {latency}")
    result("of a fault's time, what is waiting", "\n".join(wrong))


def mutex():
    """Within a fault, under mmap_lock or the VMA's: a mutex for a huge page."""
    with open("/proc/sys/vm/nr_hugepages", "w") as f:
        f.write("4")
    run = lock("lock", "huge", "60")
    waits = sum(n for (_, mode, _), n in counts(run).items() if mode == "mutex")
    result("a mutex that is waited for while a semaphore is held", "\n".join(
        sums(run, 3) + ([] if waits else [f"none: {counts(run)}"])))
    with open("/proc/sys/vm/nr_hugepages", "w") as f:
        f.write("0")


STACKS = 4095       # that have a row of their own
HELD = 5000         # threads of different names: as many stacks


def stacks():
    """Each thread waits once, in the same function, for the same file."""
    run = lock("lock", "hold", str(HELD), options=("--stacks=4096",))
    told = rows(run, "stack")
    others = told.pop("(others)", 0)
    wrong = sums(run, 0)
    full = [p for p in wrong if p.startswith("map_full")]
    wrong = [p for p in wrong if p not in full]
    mine = {text: n for text, n in told.items() if re.match(r"w\d{5};", text)}
    if sum(told.values()) + others != sum(counts(run).values()):
        wrong.append(f"{sum(told.values())} + {others} of {sum(counts(run).values())} waits")
    if run["trust"]["map_full"] != others:
        wrong.append(f"{others} waits without a stack, map_full {run['trust']['map_full']}")
    if not 0 < len(told) <= STACKS or others < HELD - STACKS:
        wrong.append(f"{len(told)} stacks, {others} waits without one")
    names = {}
    for text, n in mine.items():
        if not text.endswith("[inode write]"):
            continue
        name = text.split(";")[0]
        names[name] = names.get(name, 0) + n
        # The innermost function is not asked for: 7.2 jumps to its trampoline.
        if not re.search(r";\w*pwrite\w*;.*file_write_iter\b.*;\[", text):
            wrong.append(text)
    wrong += [f"{name} waited {n} times" for name, n in names.items() if n != 1][:5]
    waits = counts(run).get(("inode", "write", "none"), 0)
    if waits != HELD:
        wrong.append(f"{waits} waits for the file of {HELD} threads")
    note(f"{HELD} stacks: {len(names)} told, {others} counted without one")
    result("more stacks than there is room for: each is another's, or none's", "\n".join(wrong))


def holder():
    pid = []

    def held(*options):
        p = subprocess.run(["mmscope", "lock", *options, "--json", "-o", REPORT, "--", "lock",
                            "hold", "40"], stdin=subprocess.DEVNULL, capture_output=True,
                           timeout=300, check=True)
        pid.append(p.stdout.decode().strip())
        with open(REPORT, "rb") as f:
            return strict(f.read())["runs"][0]

    run = held("--by", "holder")
    told = rows(run, "holder")
    wrong = sums(run, 0)
    waits = counts(run)
    mine = told.get(f"lock-{pid[0]}", 0)
    # Its threads wait for each other's mmap_lock, too: no more than what is not for the file.
    rest = sum(waits.values()) - 40
    if waits.get(("inode", "write", "none")) != 40 or not 40 <= mine <= 40 + rest:
        wrong.append(f"not 40 waits for lock-{pid[0]}, of {rest} others: {told}, {waits}")
    # Of 41 the last one leaves nobody waiting.
    wrong += released(run, 40, ("inode",))
    result("who holds what 40 threads wait for", "\n".join(wrong))


# A stack that is whole starts where the kernel was entered.
ENTERED = ("entry_SYSCALL_64_after_hwframe", "asm_exc_page_fault")


def within():
    """By the stacks, which know nothing of the path that was asked for."""
    for path, function, command in (
            ("fault", "asm_exc_page_fault", ("mmscope", "bench", "contend", "page_table")),
            ("munmap", "__vm_munmap", ("mmscope", "bench", "contend", "mmap_lock")),
            ("populate", "__mm_populate", ("lock", "populate", "5000"))):
        for _ in range(5):
            run = lock(*command, options=("--in", path, "--stacks=4096"))
            told = rows(run, "stack")
            whole = [t.split(";") for t in told if any(f";{e};" in t for e in ENTERED)]
            if whole:
                break
        wrong = sums(run, THREADS + 1)
        # A stack ends with the way into the kernel: a fault in a system call is not one.
        wrong += [";".join(t) for t in whole if function not in t or
                  (path == "fault") != (t[1] == "asm_exc_page_fault")][:3]
        if not whole:
            wrong.append(f"nobody waited: {told}")
        note(f"in {path}: {sum(told.values())} waits, {len(whole)} stacks")
        result(f"only waits in {path}", "\n".join(wrong))


def folded():
    p = subprocess.run(["mmscope", "lock", "--folded", "-o", "-", "--", "mmscope", "bench",
                        "contend", "mmap_lock", "--seconds", "1"], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=300, check=True)
    lines = p.stdout.splitlines()
    form = re.compile(r"[^;]+(;[^; ]+)*;\[\w+ \w+\] \d+|\(others\) \d+")
    result("folded stacks, a line each", "\n".join(
        [x for x in lines if not form.fullmatch(x)][:3] +
        ([] if any(";[mmap_lock write] " in x for x in lines) else ["none for mmap_lock"])))


def killed():
    script = ("for i in 1 2 3; do mmscope bench contend mmap_lock --threads 8 --seconds 60 & "
              "sleep 0.7; kill -9 $!; wait; done 2>/dev/null; lock map 20 >/dev/null")
    # What the killed workload says to its controller must not end the observation.
    run = lock("sh", "-c", script)
    wrong = sums(run, 0)
    if not by_class(counts(run)).get("mmap_lock"):
        wrong.append("nobody waited")
    result("tasks that are killed while they wait: each wait ends", "\n".join(wrong))


def programs():
    """{name: runs}, by the kernel's own count."""
    told = {}
    text = subprocess.run(["lock", "runs"], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        name, n = line.split()
        told[name] = told.get(name, 0) + int(n)
    return told


def oracle():
    """As many waits as runs of the programs that see them: for spinlocks in interrupts or not."""
    with open("/proc/sys/kernel/bpf_stats_enabled", "w") as f:
        f.write("1")
    ctl, ours = os.pipe()
    ack, theirs = os.pipe()
    with subprocess.Popen(["mmscope", "lock", "-a", "--json", "-o", REPORT, "--control",
                           f"fd:{ctl},{theirs}"], pass_fds=(ctl, theirs)) as tracer:
        def tell(word):
            os.write(ours, word + b"\n")
            os.read(ack, 4)

        tell(b"disable")
        outer = programs()
        tell(b"enable")
        inner = programs()
        for command in (("mmscope", "bench", "contend", "page_table"),
                        ("mmscope", "bench", "contend", "mmap_lock"), ("lock", "vma", "500")):
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        inner = {name: n - inner.get(name, 0) for name, n in programs().items()}
        tell(b"disable")
        outer = {name: n - outer.get(name, 0) for name, n in programs().items()}
        tracer.terminate()
        tracer.wait(60)
    for fd in (ctl, ours, ack, theirs):
        os.close(fd)
    with open(REPORT, "rb") as f:
        run = strict(f.read())["runs"][0]
    wrong = sums(run, 8)
    # The kernel keeps 15 characters of a program's name.
    for mode, program in (("spin", "SPIN_WAIT__fent"), ("read", "READ_WAIT__fent"),
                          ("write", "WRITE_WAIT__fen")):
        waits = by_class({key: n for key, n in counts(run).items() if key[1] == mode})
        # Where a VMA has a reference count its writers come another way.
        if any(name.startswith("VMA_WAIT_") for name in inner):
            waits.pop("vma_lock", None)
        least, most, n = inner.get(program, 0), outer.get(program, 0), sum(waits.values())
        # Semaphores of each CPU are seen by an event, and have no class.
        others = 0 if mode == "spin" else waits.get("other", 0)
        elsewhere = number(run, "lock_interrupt_wait") if mode == "spin" else 0
        note(f"{mode}: {n} waits of tasks, {elsewhere} in interrupts, {others} without a class; "
             f"the program ran {least} to {most} times")
        if not (least <= n + elsewhere and n - others + elsewhere <= most):
            wrong.append(f"{mode}: {n} + {elsewhere} counted, {least} to {most} runs")
        if not least and mode != "read":
            wrong.append(f"{mode}: nobody waited")
    result("as many waits as the kernel ran the programs", "\n".join(wrong))
    with open("/proc/sys/kernel/bpf_stats_enabled", "w") as f:
        f.write("0")


COUNTED = (page_table, known, writers_and_readers, parts, oracle)
for case in COUNTED + (() if sys.argv[2] == "some" else
                       (mutex, killed, stacks, holder, within, folded)):
    try:
        case()
    except (ValueError, KeyError, OSError, subprocess.SubprocessError) as e:
        result(case.__name__, repr(e))
if sys.argv[2] != "some":
    lock_classes_guest.main(KERNEL)
    lock_user_guest.main()
    lock_io_guest.main()
lock_rows_guest.main(sys.argv[2] != "some")
