# SPDX-License-Identifier: GPL-2.0-only
"""The suite of targets, its part inside a guest: prints one JSON object per result."""
import os
import subprocess
import sys
import time

from observer import Observer, Worker, unlike
from robust_lib import (REPORT, checked, completed, end, fault, left_behind, load, note, result,
                        skip, start, unlink, usage, wait_until)

EXACT = ["--exact"] if "exact" in sys.argv[1:] else []
CGROUPS = "/tmp/cgroup"


def numbered(run, name, label):
    """What a counter says of each value of an open label."""
    return {s["labels"][label]: (s["value"], s.get("max", s["value"])) for s in run["metrics"]
            if s["name"] == name and label in s.get("labels", {})}


def total(run, name):
    return sum(s["value"] for s in run["metrics"] if s["name"] == name)


def processes():
    @checked("-p: its threads, old and new, and its later children, and nobody else")
    def _():
        target, other = Worker(), Worker()
        observer = Observer("-p", str(target.pid), *EXACT)
        other.do("t500")
        other.do("f50")
        truth = sum(target.do(order) for order in ("t300", "s200", "n100", "m50", "f70"))
        other.do("s500")
        run = observer.run()
        target.kill()
        other.kill()
        return unlike(run, truth) if truth >= 720 else f"the worker took {truth} faults"

    @checked("-p twice: both, until both have ended")
    def _():
        first, second, other = Worker(), Worker(), Worker()
        observer = Observer("-p", str(first.pid), "-p", str(second.pid), *EXACT)
        truth = first.do("t100") + second.do("s200")
        first.end()
        other.do("t500")
        truth += second.do("n300")
        time.sleep(0.3)
        if observer.process.poll() is not None:
            return "it has ended with the first"
        second.kill()
        run = observer.run(ask=False)
        other.kill()
        return unlike(run, truth)

    @checked("-p: the same number again is another process")
    def _():
        target, kept = Worker(), Worker()
        observer = Observer("-p", str(target.pid), "-p", str(kept.pid), *EXACT)
        truth = target.do("t100") + target.do("s100")
        pid = target.pid
        target.kill()
        for _ in range(50):
            with open("/proc/sys/kernel/ns_last_pid", "w") as f:
                f.write(str(pid - 1))
            again = Worker()
            if again.pid == pid:
                break
            again.kill()
        if again.pid != pid:
            return f"the number {pid} does not come back"
        again.do("t1000")
        again.do("f100")
        truth += kept.do("t50")
        run = observer.run()
        again.kill()
        kept.kill()
        return unlike(run, truth)

    @checked("-p of a process that ends while the programs are attached")
    def _():
        for delay in (0.0, 0.5, 1.5):
            unlink(REPORT)
            target = Worker()
            p = start("-p", str(target.pid), "--json", "-o", REPORT, *EXACT)
            time.sleep(delay)
            target.do("t10")
            target.kill()
            status, out, err = end(p)
            # It may have ended before the tracer looked: that is said in one line.
            if not delay and status == 2 and b"there is no process" in err and not out:
                continue
            if status or out or err or completed(load()["runs"][0])[0] > 10:
                return f"after {delay} s: status {status}, {out}, {err}"
        return left_behind()


def thread_faults(worker):
    """That the second thread took, when it waits for an order."""
    words = []

    def waits():
        with open(f"/proc/{worker.pid}/task/{worker.second}/stat") as f:
            words[:] = f.read().rsplit(")", 1)[1].split()
        return words[0] == "S"

    if not wait_until(waits, 20):
        raise ValueError("the second thread does not come to rest")
    return int(words[7]) + int(words[9])


def threads():
    @checked("-t: that thread, not those it makes, not the others")
    def _():
        target = Worker()
        before = thread_faults(target)
        observer = Observer("-t", str(target.second), *EXACT)
        target.do("t500")
        target.do("n100")
        target.do("s200")
        # The new thread's pages are not meant, what making it costs the maker is; so is
        # what it writes to after a fork.
        target.do("m300")
        target.do("f50")
        truth = thread_faults(target) - before
        run = observer.run()
        target.kill()
        return unlike(run, truth) if 200 <= truth < 210 else f"the thread took {truth} faults"

    @checked("-t: its end is the end, though the process goes on")
    def _():
        target = Worker()
        observer = Observer("-t", str(target.second), *EXACT)
        truth = target.do("s100")
        target.do("x")
        if not wait_until(lambda: observer.process.poll() is not None, 20):
            return "it goes on"
        run = observer.run(ask=False)
        target.do("t100")
        target.kill()
        return unlike(run, truth)


def join(worker, path):
    with open(f"{CGROUPS}/{path}/cgroup.procs", "w") as f:
        f.write(str(worker.pid))


def cgroups():
    os.makedirs(CGROUPS, exist_ok=True)
    subprocess.run(["mount", "-t", "cgroup2", "none", CGROUPS], check=True)
    os.makedirs(f"{CGROUPS}/a/b/c")
    os.makedirs(f"{CGROUPS}/other")

    @checked("--cgroup: those in it and below, from when they come until they go")
    def _():
        inside, below, moved, other = Worker(), Worker(), Worker(), Worker()
        join(inside, "a")
        join(below, "a/b/c")
        join(other, "other")
        observer = Observer("--cgroup", f"{CGROUPS}/a", *EXACT)
        truth = inside.do("t100") + below.do("n200") + below.do("f50")
        other.do("t1000")
        moved.do("t1000")
        join(moved, "a/b")
        truth += moved.do("t70")
        join(moved, "other")
        moved.do("t1000")
        join(below, "other")
        below.do("f30")
        late = Worker()
        join(late, "a")
        truth += late.do("s30")
        run = observer.run()
        for worker in (inside, below, moved, other, late):
            worker.kill()
        return unlike(run, truth) or (f"unmatched: {run['trust']}" if run["trust"]["unmatched"] and
                                      EXACT else None)


def names():
    @checked("--comm: threads while they have the name")
    def _():
        target, other = Worker(), Worker()
        observer = Observer("--comm", "name-1", *EXACT)
        target.do("t1000")
        target.do("c1")
        truth = target.do("t100")
        target.do("s1000")      # the second thread has its own name
        truth += target.do("n50")   # a new one has that of its maker
        other.do("c2")
        other.do("t1000")
        target.do("c11")
        target.do("t1000")
        run = observer.run()
        target.kill()
        other.kill()
        # Changing the name is done without faults, or with few.
        return unlike(run, truth)

    @checked("--by comm and pid: all of it, told apart")
    def _():
        first, second = Worker(), Worker()
        problems = []
        for label in ("pid", "comm"):
            observer = Observer("-p", str(first.pid), "-p", str(second.pid), "--by", label, *EXACT)
            first.do("c1")
            second.do("c2")
            truth = {"1": first.do("t100") + first.do("n10"), "2": second.do("t200")}
            first.do("c3")
            truth["3"] = first.do("t50")
            run = observer.run()
            if label == "pid":
                want = {f"name-3-{first.pid}": truth["1"] + truth["3"],
                        f"name-2-{second.pid}": truth["2"]}
            else:
                want = {f"name-{n}": faults for n, faults in truth.items()}
            have = {k: v for k, v in numbered(run, "fault_completed", label).items()
                    if k in want or v[0] > 5}
            if set(have) != set(want) or not all(have[k][0] <= n <= have[k][1]
                                                 for k, n in want.items()):
                problems.append(f"{label}: {have}, the truth is {want}")
            problems.append(unlike(run, sum(truth.values()), label))
            second.do("c3")
            first.do("c4")
        first.kill()
        second.kill()
        return "\n".join(filter(None, problems)) or None

    @checked("--by pid: more processes than there is room for")
    def _():
        target = Worker()
        observer = Observer("-p", str(target.pid), "--by", "pid", *EXACT)
        truth = target.do("F1100")
        run = observer.run()
        target.kill()
        low, high = completed(run)
        rows = numbered(run, "fault_completed", "pid")
        total = sum(v[0] for v in rows.values())
        trust = run["trust"]
        if not low <= truth <= high or "(others)" not in rows or len(rows) != 1024:
            return f"[{low}, {high}], the truth is {truth}; {len(rows)} rows"
        if total != low or not trust["map_full"] or trust["events_lost"]:
            return f"{total} of {low} in the rows, {trust}"
        return None


def namespace():
    """Runs as the first process of a PID namespace, with its own /proc."""
    subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
    with open("/proc/sys/kernel/ns_last_pid", "w") as f:
        f.write("1")
    target = Worker()
    if target.pid != 2:
        print(f"the worker is {target.pid}")
    observer = Observer("-p", "2", "--by", "pid", *EXACT)
    parts = [target.do(order) for order in ("t100", "s100", "n100", "f100")]
    run = observer.run()
    problem = unlike(run, sum(parts), str(parts))
    rows = numbered(run, "fault_completed", "pid")
    children = {k: v for k, v in rows.items() if k != "worker-2"}
    if "worker-2" not in rows or len(children) != 1 or not children.popitem()[1][1] >= 100:
        problem = problem or "rows"
    problem = problem and f"{problem}; {rows}"
    observer = Observer("-t", str(target.second), *EXACT)
    target.do("t100")
    truth = target.do("s100")
    print(problem or unlike(observer.run(), truth, "-t") or "right")
    target.kill()


def namespaces():
    @checked("-p 2 and -t inside a PID namespace: its own numbers")
    def _():
        p = subprocess.run(["unshare", "--fork", "--pid", "--mount", sys.executable, "-ESs",
                            __file__, "namespace", *sys.argv[2:]], capture_output=True, text=True,
                           timeout=300, check=False)
        return None if p.stdout == "right\n" else f"{p.stdout}{p.stderr}"


def old_programs():
    if not os.path.exists("/usr/bin/small"):
        skip("a program of 32-bit x86", "the compiler cannot make one")
        return

    @checked("a program of 32-bit x86: its faults, no others")
    def _():
        unlink(REPORT)
        status, out, err = fault("--json", "-o", REPORT, *EXACT, "--", "/usr/bin/small")
        if status or out or err:
            return f"status {status}: {out} {err}"
        run = load()["runs"][0]
        wrong = [f"{s['name']}: {s['labels']}" for s in run["metrics"]
                 if s.get("labels", {}).get("backing") not in (None, "anon", "file", "shmem")
                 and s.get("value")]
        if usage(run) < 100 or wrong or run["trust"]["unmatched"]:
            return f"{usage(run)} faults, {run['trust']['unmatched']} unmatched, {wrong}"
        return unlike(run, usage(run))


def refusals():
    target = Worker()
    os.makedirs("/tmp/plain", exist_ok=True)
    for args, word in ((("-p", "3999999"), b"no process 3999999"), (("-p", "x"), b"'x'"),
                       (("-p", "0"), b"'0'"), (("-p", "-1"), b"'-1'"),
                       (("-p", str(target.second)), b"-t " + str(target.second).encode()),
                       (("-t", "3999999"), b"no thread 3999999"),
                       (("--cgroup", "/tmp/plain"), b"/tmp/plain is not a cgroup"),
                       (("--cgroup", "/tmp/none"), b"/tmp/none"),
                       (("-p", str(target.pid), "--", "true"), b"command"),
                       (("-a", "-p", str(target.pid)), b"-a")):
        @checked(f"refused in one line: {' '.join(args)}")
        def _(args=args, word=word):
            status, out, err = fault(*args)
            if status != 2 or out or err.count(b"\n") != 1 or word not in err:
                return f"status {status}, {out}, {err}"
            return None
    target.kill()


def in_poll(pid):
    """A tracer that waits for what happens: it observes."""
    with open(f"/proc/{pid}/syscall") as f:
        return f.read().split()[0] == "7"


def recorded_once(duration):
    """A problem; None; or, if it took too long to be within its runs, False."""
    target, other = Worker(), Worker()
    unlink(REPORT)
    p = start("-o", REPORT, "-n", "4", "-d", str(duration), "-p", str(target.pid), "--reconcile",
              *EXACT, command="record")
    if not wait_until(lambda: in_poll(p.pid), 120):
        return f"it does not observe: {end(p)}"
    within = [time.clock_gettime(time.CLOCK_BOOTTIME)]
    truth = target.do("t300") + target.do("f50")
    within.append(time.clock_gettime(time.CLOCK_BOOTTIME))
    other.do("t500")
    # The first run is over, the second under way; in between nothing is seen.
    time.sleep(max(0, within[0] + duration + 1 - time.clock_gettime(time.CLOCK_BOOTTIME)))
    wait_until(lambda: in_poll(p.pid))
    died = [time.clock_gettime(time.CLOCK_BOOTTIME)]
    truth += target.kill()
    died.append(time.clock_gettime(time.CLOCK_BOOTTIME))
    other.kill()
    status, out, err = end(p)
    runs = load()["runs"]
    if len(runs) == 4 and (status, out, err) == (0, b"", b""):
        return False
    if status or out or err.count(b"\n") != 1 or b"the target has ended" not in err:
        return f"status {status}: {out} {err}"
    if not 1 <= len(runs) < 4 or any("rusage" in r for r in runs):
        return f"{len(runs)} runs"

    def inside(times, run):
        # The next tenth may be gone before the run says when it began.
        begun = run["start_boot_ns"] / 1e9
        return begun <= times[0] and times[1] <= begun + 0.9 * duration

    if len(runs) < 2 or not inside(within, runs[0]) or not inside(died, runs[1]):
        return False
    low, high = (sum(n) for n in zip(*map(completed, runs)))
    if len(runs) > 2 or not low <= truth <= high:
        return f"{len(runs)} runs, [{low}, {high}] faults, the truth is {truth}"
    grew = [total(r, "rss_after") - total(r, "rss_before") for r in runs]
    return None if grew[0] >= 300 and total(runs[0], "rss_fork_copy") else \
        f"the resident set grew by {grew}, copied: {total(runs[0], 'rss_fork_copy')}"


def recorded():
    @checked("record -p --reconcile: two runs, and the end of the process")
    def _():
        for duration in (3, 8, 24):
            problem = recorded_once(duration)
            if problem is not False:
                return problem
        return "whatever time it has, the work does not come within a run"


GROUPS = {"processes": processes, "threads": threads, "cgroups": cgroups, "names": names,
          "namespaces": namespaces, "old": old_programs, "refusals": refusals,
          "namespace": namespace, "record": recorded}

for group in sys.argv[1].split(","):
    GROUPS[group]()
