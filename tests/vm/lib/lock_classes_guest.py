# SPDX-License-Identifier: GPL-2.0-only
"""In a guest: each class is seen where its lock is waited for, and nowhere else.

Workloads that collide on one lock each run one after the other under one tracer, whose
stacks tell them apart: a stack begins with the name of the thread and ends with the class,
and the functions between say which lock it was.
"""
import os
import re

from lock_report import lock, rows, samples, sums
from robust_lib import note, result, skip

# bench contend: its class is waited for the longest.
TOP = ("mmap_lock", "vma_lock", "page_table", "page_table_pmd", "i_pages", "folio",
       "i_mmap_rwsem", "lru")
# lock_classes.c: its class is waited for.
SEEN = {"zone": "zone", "anon_vma": "anon_vma", "invalidate_lock": "invalidate_lock",
        "inode": "inode", "memcg": "memcg", "memcg_stat": "memcg", "huge": "page_table_pmd"}
THREADS = 4
# In turn, for whose lock was not waited for, or another one for longer: a busy machine takes
# its time, and one preempted CPU that holds another lock outweighs thousands of waits.
SECONDS = (1, 1, 4, 10)
BIN = "/tmp/classes"

# What is between a function and the lock that it takes.
PRIMITIVE = re.compile(r"(native_|__pv_)?queued_spin_lock_slowpath|_?_?_raw_spin_(try)?lock\w*|"
                       r"rwsem_(down|optimistic)\w*|(__)?down_(read|write)\w*|__?mutex_lock\w*|"
                       r"mutex_lock\w*|__?pte_offset_map_lock|lock_anon_vma_root|.*_irqsave|"
                       r"__rwsem\w*|rwbase\w*")
# class: functions that take its lock, of all kernels of the matrix. One is on each stack.
TAKERS = {
    "zone": r"rmqueue\w*|__rmqueue\w*|free_pcppages_bulk|free_one_page|get_page_from_freelist|"
            r"__?free_(unref_)?(page|folio)\w*|drain_\w*",
    "anon_vma": r"anon_vma_(clone|fork)|unlink_anon_vmas|__?anon_vma_prepare|rmap_walk_anon|"
                r"folio_lock_anon_vma_read",
    "invalidate_lock": r"secretmem_(fault|setattr)|filemap_invalidate_\w*",
    "inode": r"inode_get_bytes",
    "memcg": r"peak_write|memory_peak_write|mem_cgroup_resize_max|mem_cgroup_write|"
             r"(mem_cgroup_|css_)\w*flush\w*|__css_rstat_lock|__css_rstat_flush",
    "page_table_pmd": r"madvise_free_huge_pmd|zap_huge_pmd|__split_huge_pmd|change_huge_pmd|"
                      r"(__)?do_huge_(pmd|zero)\w*|map_anon_folio_pmd\w*|__pmd_trans_huge_lock|"
                      r"__pte_alloc|pmd_install|set_pmd_migration_entry|page_vma_mapped_walk|"
                      r"try_to_free_pte|huge_pmd_set_accessed|follow_pmd_mask\w*|"
                      r"deferred_split\w*|move_huge_pmd|copy_huge_pmd|zap_pmd_range",
}
# class: the lock that these wait for by themselves is no other one.
TELLTALES = {
    "zone": r"rmqueue_bulk|free_pcppages_bulk",
    "anon_vma": r"anon_vma_clone|unlink_anon_vmas",
    "invalidate_lock": r"secretmem_(fault|setattr)",
    "inode": r"inode_get_bytes",
    "memcg": r"peak_write|memory_peak_write|mem_cgroup_resize_max|mem_cgroup_write|"
             r"css_rstat_flush|__css_rstat_lock",
    "page_table_pmd": r"madvise_free_huge_pmd|zap_huge_pmd|__split_huge_pmd|"
                      r"(__)?do_huge_pmd_anonymous_page|__pmd_trans_huge_lock",
}


class Stacks:
    """Those of all runs: which class each workload waited for, and what is wrong with them."""

    def __init__(self):
        self.seen = {}      # (class, mode): stacks
        self.told = {}      # class: stacks that end in a telltale function
        self.wrong = {}     # class: stacks

    def add(self, run):
        """{workload: {class: [waits, ns]}}"""
        spent = {m["labels"]["stack"]: m["sum"] for m in samples(run, "lock_wait")
                 if "stack" in m.get("labels", {})}
        found = {}
        for text, waits in rows(run, "stack").items():
            if text == "(others)":
                continue
            comm, *frames, tag = text.split(";")
            name, mode = tag[1:-1].split()
            total = found.setdefault(comm, {}).setdefault(name, [0, 0])
            total[0] += waits
            total[1] += spent.get(text, 0)
            self.check(name, mode, [f.split(".")[0] for f in frames], text, comm)
        return found

    def check(self, name, mode, frames, text, comm):
        self.seen[name, mode] = self.seen.get((name, mode), 0) + 1
        if name in TAKERS and not any(re.fullmatch(TAKERS[name], f) for f in frames) and \
           (name != "inode" or (comm == "inode" and mode == "spin")):
            self.wrong.setdefault(name, []).append(text)
        while frames and PRIMITIVE.fullmatch(frames[-1]):
            frames.pop()
        last = frames[-1] if frames else ""
        for other, telltale in TELLTALES.items():
            if re.fullmatch(telltale, last):
                self.told[other] = self.told.get(other, 0) + 1
                if other != name:
                    self.wrong.setdefault(other, []).append(text)


def command(names, seconds):
    """All of them; what says that this kernel has not what it takes fails alone."""
    words = ["unset MMSCOPE_CONTROL_FD"]
    for name in names:
        words.append(f"{BIN}/{name} bench contend {name} --threads {THREADS} "
                     f"--seconds {seconds} >/dev/null || exit 1" if name in TOP else
                     f"lock_classes {name} {seconds} 2>/tmp/said || "
                     f"{{ echo {name} $? $(cat /tmp/said) >>/tmp/failed; }}")
    return "sh", "-c", "\n".join(words)


def failures():
    """{workload: (status, what it said)}"""
    try:
        with open("/tmp/failed", encoding="utf-8") as f:
            lines = [line.split(None, 2) for line in f]
    except FileNotFoundError:
        return {}
    os.unlink("/tmp/failed")
    return {name: (int(status), said.strip()) for name, status, said in lines}


def classes(kernel):
    os.mkdir(BIN)
    for name in TOP:
        os.symlink("/usr/bin/mmscope", f"{BIN}/{name}")
    waiting = [name for name in (*SEEN, *TOP) if (name, kernel) not in
               (("vma_lock", "6.1"), ("memcg_stat", "6.1"), ("memcg_stat", "6.12"))]
    stacks, wrong, last = Stacks(), [], {}
    for seconds in SECONDS:
        run = lock(*command(waiting, seconds), options=("--stacks=4096",))
        wrong += sums(run, THREADS + 1)
        found = stacks.add(run)
        failed = failures()
        for name in tuple(waiting):
            spent = found.get(name, {})
            last[name] = {c: (n, f"{ns / 1e6:.0f} ms") for c, (n, ns) in spent.items()}
            mine, (waits, ns) = SEEN.get(name, name), spent.get(SEEN.get(name, name), (0, 0))
            what = f"{name}: waited for" if name in SEEN else \
                f"{name}: the top entry of who contends for it"
            if name in failed and failed[name][0] == 77:
                skip(what, failed[name][1])
            elif name in failed:
                result(what, failed[name])
            elif waits and (name in SEEN or ns == max(t for _, t in spent.values())):
                note(f"{name}: {waits} waits for {mine}, {ns / 1e6:.0f} of "
                     f"{sum(t for _, t in spent.values()) / 1e6:.0f} ms")
                result(what)
            else:
                continue
            waiting.remove(name)
        if not waiting:
            break
    for name in waiting:
        result(f"{name}: waited for" if name in SEEN else
               f"{name}: the top entry of who contends for it", f"not in {SECONDS} s: {last[name]}")
    result("classes: what holds in each report", "\n".join(wrong))
    for name in TAKERS:
        problem = stacks.wrong.get(name, [])[:5]
        if not problem and not stacks.told.get(name):
            problem = ["no stack ends in " + TELLTALES[name]]
        note(f"{name}: {sum(n for (c, _), n in stacks.seen.items() if c == name)} stacks, "
             f"{stacks.told.get(name, 0)} by functions that take no other lock")
        result(f"{name}: by its stacks, and no other lock's", "\n".join(problem))


def main(kernel):
    try:
        classes(kernel)
    except (ValueError, KeyError, OSError) as e:
        result("classes", repr(e))
