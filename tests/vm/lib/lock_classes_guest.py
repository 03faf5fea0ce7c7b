# SPDX-License-Identifier: GPL-2.0-only
"""In a guest: each class is seen where its lock is waited for, and nowhere else.

Workloads that collide on one lock each run one after the other under one tracer, whose
stacks tell them apart: a stack begins with the name of the thread and ends with the class,
and the functions between say which lock it was.
"""
import os
import re
import sys

from lock_report import lock, rows, samples, sums
from robust_lib import note, result, skip

# bench contend: its class is waited for the longest.
TOP = ("mmap_lock", "vma_lock", "page_table", "page_table_pmd", "i_pages", "folio",
       "i_mmap_rwsem", "lru")
# lock_classes.c: its class is waited for.
SEEN = {"zone": "zone", "anon_vma": "anon_vma", "invalidate_lock": "invalidate_lock",
        "inode": "inode", "memcg": "memcg", "memcg_event": "memcg", "memcg_stat": "memcg",
        "huge": "page_table_pmd", "split": "page_table"}
# Kernels of the matrix that have no such lock.
NOT_OF = {"vma_lock": ("6.1",), "memcg_stat": ("6.1", "6.12"),
          "memcg_event": ("6.12", "7.2", "7.3")}
THREADS = 4
# In turn, for whose lock was not waited for, or another one for longer: a busy machine takes
# its time, and one preempted CPU that holds another lock outweighs thousands of waits.
SECONDS = (1, 1, 4, 10)
BIN = "/tmp/classes"

# What is between a function and the lock that it takes.
PRIMITIVE = re.compile(r"(native_|__pv_)?queued_spin_lock_slowpath|_raw_spin_lock\w*|"
                       r"rwsem_down_\w*|(__)?down_(read|write)\w*|(__)?mutex_lock\w*")
# workload: functions of all kernels of the matrix that take its lock: one is on each stack.
TAKERS = {
    "zone": r"(__)?rmqueue\w*|free_pcppages_bulk|get_page_from_freelist|(__)?free_\w*|"
            r"pagetypeinfo\w*|walk_zones_in_node|drain_\w*",
    "anon_vma": r"anon_vma_(clone|fork)|unlink_anon_vmas|(__)?anon_vma_prepare",
    "invalidate_lock": r"secretmem_(fault|setattr)",
    "inode": r"inode_get_bytes|d_find_(any_)?alias|find_inode\w*|ilookup5\w*|iput|dput",
    "memcg": r"peak_(write|release)|mem_cgroup_(resize_max|write)",
    "memcg_event": r"(__)?mem_cgroup_usage_register_event|memcg_(write_event_control|event_wake)",
    "memcg_stat": r"css_rstat_flush",
    "page_table_pmd": r"madvise_free_huge_pmd",
    # ... of whole page tables, where what takes it may be part of the function of all faults
    "huge": r"(__)?do_huge_pmd_\w*|__split_huge_pmd|zap_huge_pmd|__pte_alloc|pmd_install|"
            r"finish_fault|__handle_mm_fault",
}
# Who starts a program or ends takes the locks of many things by the way.
BY_THE_WAY = re.compile(r"do_exit|bprm_execve|task_work_run")
# class: of these, the lock that they wait for by themselves is no other one.
TELLTALES = {
    "zone": r"rmqueue_bulk|__rmqueue_pcplist|free_pcppages_bulk",
    "anon_vma": r"anon_vma_clone|unlink_anon_vmas",
    "invalidate_lock": r"secretmem_(fault|setattr)",
    "inode": r"inode_get_bytes|d_find_alias",
    "memcg": r"peak_write|mem_cgroup_resize_max|(__)?mem_cgroup_usage_register_event",
    # Since 6.5 one function takes it; before, those who write to the zero page do it alone.
    "page_table": r"(__)?pte_offset_map_lock|wp_page_copy",
    "page_table_pmd": r"madvise_free_huge_pmd|zap_huge_pmd|__split_huge_pmd|"
                      r"do_huge_pmd_anonymous_page|__pmd_trans_huge_lock",
}


class Stacks:
    """Those of all runs, and what is wrong with them."""

    def __init__(self):
        self.told = {name: 0 for name in TELLTALES}     # stacks that end in such a function
        self.mine = {name: 0 for name in TAKERS}
        self.wrong = []

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
            # A rwsem of the inode's own is another matter.
            if comm in TAKERS and name == SEEN.get(comm, comm) and (name, mode) not in \
               (("inode", "read"), ("inode", "write")):
                self.takes(comm, [f.split(".")[0] for f in frames], text)
            self.tells(name, [f.split(".")[0] for f in frames], text)
        return found

    def takes(self, comm, frames, text):
        self.mine[comm] += 1
        if not any(re.fullmatch(TAKERS[comm], f) or BY_THE_WAY.fullmatch(f) for f in frames):
            self.wrong.append(f"no function that takes it: {text}")

    def tells(self, name, frames, text):
        while frames and PRIMITIVE.fullmatch(frames[-1]):
            frames.pop()
        for other, telltale in TELLTALES.items():
            if frames and re.fullmatch(telltale, frames[-1]):
                self.told[other] += 1
                if other != name:
                    self.wrong.append(f"a function that takes {other}: {text}")


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
    waiting = [name for name in (*SEEN, *TOP) if kernel not in NOT_OF.get(name, ())]
    stacks, wrong, last, skipped = Stacks(), [], {}, set()
    for seconds in SECONDS:
        run = lock(*command(waiting, seconds), options=("--stacks=4096",))
        wrong += sums(run, THREADS + 1 + sum(p.get("misses") or 0
                                             for p in run["trust"]["probes"]))
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
                skipped.add(SEEN[name])
            elif name in failed:
                result(what, failed[name])
            elif waits and (stacks.told[mine] if name in SEEN else
                            ns == max(t for _, t in spent.values())):
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
    note(f"stacks of workloads {stacks.mine}, by functions that take no other lock {stacks.told}")
    result("classes: by their stacks, and no other lock's", "\n".join(
        stacks.wrong[:10] + [f"no stack tells {name}" for name, n in stacks.told.items()
                             if not n and name not in skipped]))


def main(kernel):
    try:
        classes(kernel)
    except (ValueError, KeyError, OSError) as e:
        result("classes", repr(e))


if __name__ == "__main__":
    main(sys.argv[1])
