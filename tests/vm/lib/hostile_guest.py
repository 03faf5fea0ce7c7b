# SPDX-License-Identifier: GPL-2.0-only
"""The suite of hostile conditions, its part inside a guest: prints one JSON object per result."""
import os
import re
import signal
import subprocess
import sys
import time

from observer import Observer, Worker, unlike
from robust_lib import (REPORT, checked, completed, end, fault, left_behind, load, memory_told,
                        result, skip, start, strict, unlink, usage, wait_until)

EXACT = ["--exact"] if "exact" in sys.argv[2:] else []
LOST_PATTERN = r"mmscope: [^\n]+\n"


def counter(run, name, wanted=lambda labels: True):
    """[value, max] of the samples of a counter, of no open label."""
    low = slack = 0
    for s in run["metrics"]:
        if s["name"] != name or set(s.get("labels", {})) & {"vm_ops", "pid", "comm"}:
            continue
        if "value" not in s:
            raise ValueError(f"{name} is unavailable: {s['unavailable']}")
        if wanted(s["labels"]):
            low += s["value"]
            slack = max(slack, s.get("max", s["value"]) - s["value"])
    return low, low + slack


def misses(run):
    return sum(p["misses"] or 0 for p in run["trust"]["probes"] if p.get("mechanism"))


def unended(run):
    """Attempts of which no end was seen: exact only if no run was lost."""
    ended = sum(counter(run, f"fault_{how}")[0] for how in ("completed", "failed", "retried"))
    ended += counter(run, "fault_refused",
                     lambda k: k["reason"] not in ("vma_write_locked", "no_vma"))[0]
    return counter(run, "fault_attempts")[0] - ended


# ---- tasks that die in a fault ----

def in_fault(pid):
    """Threads of a process that wait for userfaultfd."""
    found = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/wchan") as f:
                found += f.read() == "handle_userfault"
        except (FileNotFoundError, ProcessLookupError):
            pass    # a thread that was joined may still be listed, and goes
    return found


def hang(worker, count):
    """So many of its threads hang in a fault: the faults that they took to start."""
    faults = worker.do(f"H{count}")
    if not wait_until(lambda: in_fault(worker.pid) == count):
        raise ValueError(f"{in_fault(worker.pid)} threads hang, not {count}")
    return faults + worker.do("t0")


def deaths():
    @checked("threads that hang in a fault, are reported, and are killed in it; in the middle "
             "of faults it is switched on: their ends are unmatched")
    def _():
        kept, dying, later = Worker(), Worker(), Worker()
        observer = Observer(*(word for worker in (kept, dying, later)
                              for word in ("-p", str(worker.pid))), *EXACT)
        observer.tell("enable")
        truth = kept.do("t50") + dying.do("t60") + hang(dying, 8)
        truth += dying.kill()
        truth += kept.do("t100") + kept.do("n100") + kept.do("f50")
        truth += kept.do("P20")
        if not wait_until(lambda: in_fault(kept.pid)):
            return "populating does not hang"
        truth += kept.do("t0")
        observer.tell("disable")
        kept.do("t1000")
        kept.do("R20")
        hang(later, 8)
        observer.tell("enable")
        truth += later.kill()
        # That it populates ends where it is seen in user space, whatever was not seen.
        truth += kept.do("t100") + kept.do("s10") + kept.do("G20")
        run = observer.run()
        kept.kill()
        unmatched = run["trust"]["unmatched"]
        # The end of the populating thread's fault is not seen; of the eight that began while
        # it was off only the ends are.
        if not misses(run) and (unended(run) != 1 or unmatched != 8):
            return f"{unended(run)} attempts without an end, {unmatched} unmatched instead of 8"
        for trigger, faults in (("populate", 0), ("gup", 20)):
            low, high = completed(run, trigger=trigger)
            if not low <= faults <= high:
                return f"[{low}, {high}] faults of {trigger}, the truth is {faults}"
        if counter(run, "fault_retried")[1] < 8:
            return "the eight that waited are not retried"
        return unlike(run, truth) or left_behind()

    @checked("attached in the middle of faults: nothing of them, and later ones right; "
             "a report while threads hang: they are attempts without an end")
    def _():
        kept, dying, hangs = Worker(), Worker(), Worker()
        hang(dying, 8)
        observer = Observer(*(word for worker in (kept, dying, hangs)
                              for word in ("-p", str(worker.pid))), *EXACT)
        truth = dying.kill() + kept.do("t100") + hang(hangs, 8)
        run = observer.run()
        hangs.kill()
        kept.kill()
        if run["trust"]["unmatched"] > 8 or (not misses(run) and unended(run) != 8):
            return f"{run['trust']['unmatched']} unmatched, {unended(run)} instead of 8 unended"
        return unlike(run, truth) or left_behind()

    @checked("a command that is killed in the middle of its fault")
    def _():
        unlink(REPORT)
        os.mkfifo("/tmp/orders")
        p = start("--json", "-o", REPORT, *EXACT, "--", "sh", "-c",
                  "worker </tmp/orders & echo h >/tmp/orders; wait", stdout=subprocess.PIPE)
        pid = int(b"".join(p.stdout.readline() for _ in range(2)).split()[4])
        wait_until(lambda: in_fault(pid))
        os.kill(pid, signal.SIGKILL)
        status, _, err = end(p)
        run = load()["runs"][0]
        low, high = completed(run)
        p.stdout.close()
        if err or not low <= usage(run) <= high:
            return f"status {status}, {err}, [{low}, {high}], rusage {usage(run)}"
        return None if misses(run) or not unended(run) else f"{unended(run)} without an end"


def ftrace():
    """kernel.ftrace_enabled: off, probes are attached and do not run."""
    switch = "/proc/sys/kernel/ftrace_enabled"

    def turn(on):
        try:
            with open(switch, "w", encoding="ascii") as f:
                f.write(on)
        except OSError as e:
            return str(e)
        return None

    names = ("ftrace is off: refused, and nothing started",
             "ftrace is switched off meanwhile: what ran is a lower bound, 0 as well")
    why = turn("0")
    if why:
        for name in names:
            skip(name, f"this kernel does not switch it off: {why}")
        return

    @checked(names[0])
    def _():
        for command in (("fault",), ("lock",), ("fault", "--exact")):
            p = subprocess.run(["mmscope", *command, "--", "touch", "/tmp/started"],
                               stdin=subprocess.DEVNULL, capture_output=True, text=True,
                               timeout=90, check=False)
            if p.returncode != 3 or "kernel.ftrace_enabled is 0" not in p.stderr or \
               len(p.stderr.splitlines()) != 1 or os.path.exists("/tmp/started"):
                return f"{command}: status {p.returncode}: {p.stderr}"
        return None

    turn("1")

    @checked(names[1])
    def _():
        target = Worker()
        observer = Observer("-p", str(target.pid), *EXACT)
        truth = target.do("t100")
        turn("0")
        truth += target.do("t100")
        run = observer.run()
        turn("1")
        target.kill()
        low = completed(run)[0]
        told = [p["event"] for p in run["trust"]["probes"]
                if p.get("mechanism", "").startswith(("f", "k")) and p["misses"] is not None]
        sure = [s for s in run["metrics"] if s["name"] == "fault_completed" and
                not s.get("lower_bound")]
        if not 0 < low < truth or told or sure:
            return f"{low} of {truth}; misses are told of {told}, no lower bounds: {sure}"
        return left_behind()


# ---- how it ends ----

def ends():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        @checked(f"-p and {number.name}")
        def _(number=number):
            target = Worker()
            observer = Observer("-p", str(target.pid), *EXACT)
            truth = target.do("t100")
            observer.process.send_signal(number)
            status, out, err = end(observer.process)
            observer.close()
            target.do("t100")
            target.kill()
            if status or out or err:
                return f"status {status}: {out} {err}"
            return unlike(load()["runs"][0], truth) or left_behind()

    @checked("no memory for the report: one line, status 70, no file")
    def _():
        target = Worker()
        observer = Observer("-p", str(target.pid), *EXACT)
        target.do("t100")
        subprocess.run(["prlimit", f"--pid={observer.process.pid}", "--as=1048576"], check=True)
        observer.process.send_signal(signal.SIGINT)
        status, out, err = end(observer.process)
        observer.close()
        target.kill()
        if status != 70 or out or err.count(b"\n") != 1 or os.path.exists(REPORT):
            return f"status {status}: {out} {err}"
        return left_behind()

    @checked("... | head -1: quiet")
    def _():
        target = Worker()
        script = f"mmscope fault -p {target.pid} -i 300ms 2>/tmp/err | head -1"
        p = subprocess.run(["sh", "-c", script], capture_output=True, timeout=60, check=False)
        target.kill()
        with open("/tmp/err", "rb") as f:
            err = f.read()
        if p.returncode or p.stdout.count(b"\n") != 1 or p.stderr or err:
            return f"status {p.returncode}: {p.stdout} {p.stderr} {err}"
        return left_behind()

    @checked("standard output on a full disk: one line, status 70")
    def _():
        target = Worker()
        with open("/dev/full", "wb") as full:
            p = start("-p", str(target.pid), "-d", "500ms", stdout=full)
            status, _, err = end(p)
        target.kill()
        if status != 70 or err.count(b"\n") != 1 or b"No space left" not in err:
            return f"status {status}: {err}"
        return left_behind()

    @checked("a command has the signals and the limits that mmscope was started with")
    def _():
        script = "grep SigIgn /proc/self/status; ulimit -n; echo ${MMSCOPE_VALUES_FD-unset}"
        said = []
        for prefix in ("trap '' PIPE; ulimit -n 60", "ulimit -n 300"):
            p = subprocess.run(["sh", "-c", f"{prefix}; exec mmscope fault -o /dev/null -- "
                                f"sh -c '{script}'"], capture_output=True, text=True, timeout=90,
                               check=False)
            words = p.stdout.split()
            if p.returncode or p.stderr or len(words) != 4:
                return f"status {p.returncode}: {p.stdout} {p.stderr}"
            said.append((bool(int(words[1], 16) >> (signal.SIGPIPE - 1) & 1), int(words[2])))
        return None if said == [(True, 60), (False, 300)] else f"{said}"


def killed():
    @checked("-p and SIGKILL")
    def _():
        target = Worker()
        observer = Observer("-p", str(target.pid), *EXACT)
        target.do("t100")
        observer.process.kill()
        status, _, err = end(observer.process)
        observer.close()
        target.do("t100")
        target.kill()
        if status != 137 or err or os.path.exists(REPORT):
            return f"status {status}, {err}"
        return left_behind()


# ---- little privilege ----

def metrics_of(run):
    """Names that have values, and why others have none."""
    values, reasons = set(), {}
    for s in run["metrics"]:
        if "unavailable" in s:
            # What costs something is measured when it is asked for.
            if not s["unavailable"].startswith("only with "):
                reasons[s["name"]] = s["unavailable"]
        else:
            values.add(s["name"])
    return values - set(reasons), reasons


def observe_with(prefix, want=(), options=()):
    """A command under a shell prefix, held against rusage: None or the problem."""
    unlink(REPORT)
    script = f"{prefix} mmscope fault --json -o {REPORT} {' '.join(options)} -- worker </dev/null"
    p = subprocess.run(["sh", "-c", script], capture_output=True, timeout=120, check=False)
    if p.returncode or p.stderr:
        return f"status {p.returncode}: {p.stderr}"
    run = load()["runs"][0]
    reasons = metrics_of(run)[1]
    if set(reasons) - set(want):
        return f"unavailable: {reasons}"
    problem = unlike(run, usage(run))
    if problem:
        return problem
    if run["trust"]["unmatched"] or (not misses(run) and unended(run)):
        return f"{run['trust']['unmatched']} unmatched, {unended(run)} without an end"
    # Read from the page tables elsewhere: here it must at least add up.
    low, high = counter(run, "ptes_installed")
    return None if high >= low >= 64 else f"{low} PTEs installed"


def backings():
    """What can be told apart without the addresses of symbols, and pages of vm_insert_pages()."""
    unlink(REPORT)
    benches = [f"mmscope bench {args} --repeat 1 --json" for args in (
        "touch --backing sysv_shm --size 1M", "touch --backing shmem --size 1M",
        "arraymap --size 1M", "io_uring --entries 1024")]
    status, out, err = fault("--json", "-o", REPORT, "--", "sh", "-ec", "; ".join(benches))
    run = load()["runs"][0]
    have = {}
    for s in run["metrics"]:
        if s["name"] == "ptes_installed" and s.get("value") and "backing" in s["labels"]:
            have[s["labels"]["backing"]] = have.get(s["labels"]["backing"], 0) + s["value"]
    truth = strict(out.splitlines()[-1])["pages_total"]
    low, high = counter(run, "ptes_installed",
                        lambda k: k["method"] == "eager" and k["backing"] != "bpf_array")
    if status or err or run["trust"]["unmatched"]:
        return f"status {status}: {err} {run['trust']}"
    told = ("sysv_shm", "shmem", "bpf_array")
    if set(have) != {*told, "other"} or min(have[b] for b in told) < 256:
        return f"{have}"
    return None if low <= truth <= high and truth else f"[{low}, {high}], the truth is {truth}"


def refused(prefix, status, word):
    unlink("/tmp/ran")
    script = f"{prefix} mmscope fault -- sh -c ': >/tmp/ran'"
    p = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60,
                       check=False, stdin=subprocess.DEVNULL)
    if p.returncode != status or p.stdout or not re.fullmatch(LOST_PATTERN, p.stderr) or \
            word not in p.stderr:
        return f"status {p.returncode}: {p.stdout}{p.stderr}"
    return "the command ran" if os.path.exists("/tmp/ran") else None


NOBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups"
HOLDS = ("ptes_zapped", "ptes_per_zap_hold", "pmds_zapped")
CAPS = NOBODY + " --inh-caps=+bpf,+perfmon --ambient-caps=+bpf,+perfmon"


def privileges():
    os.chmod("/tmp", 0o1777)
    checked("ulimit -l 64 and -n 20")(lambda: observe_with("ulimit -l 64; ulimit -n 20;"))
    checked("ulimit -n 20 that may not be raised: status 3, one line")(
        lambda: refused(f"ulimit -n 20; {CAPS}", 3, "ulimit -n is 20"))
    checked("not root: status 3, one line")(lambda: refused(NOBODY, 3, "no permission"))
    # 6.1 inlines the page-table lock, and its trampolines take six arguments.
    hidden = (*HOLDS, "rss_uffd_copy") if os.uname().release.startswith("6.1.") else ()
    checked("CAP_BPF and CAP_PERFMON only, with --reconcile")(
        lambda: observe_with(CAPS, hidden, ["--reconcile"]))
    checked("... and -p of somebody else's process")(foreign)
    with open("/proc/sys/kernel/kptr_restrict", "w") as f:
        f.write("2")
    subprocess.run("umount /sys/kernel/debug /sys/kernel/tracing 2>/dev/null", shell=True,
                   check=False)
    if os.listdir("/sys/kernel/tracing") or os.path.exists("/sys/kernel/debug/tracing"):
        result("no tracefs", "it is still there")
    checked("kptr_restrict=2, no tracefs: counts")(lambda: observe_with(""))
    checked("kptr_restrict=2, no tracefs: counts with --exact")(
        lambda: observe_with("", options=["--exact"]))
    checked("kptr_restrict=2, no tracefs: backings")(backings)
    with open("/sys/kernel/security/lockdown", "w") as f:
        f.write("confidentiality")
    checked("lockdown=confidentiality: counts, fault-around's present pages not")(
        lambda: observe_with("", ["fault_around_present"]))
    checked("lockdown: backings")(backings)
    checked("lockdown and little privilege")(
        lambda: observe_with(CAPS, ["fault_around_present"]))
    subprocess.run(["mount", "-t", "tmpfs", "none", "/sys/kernel/btf"], check=True)
    checked("BTF hidden by a mount: status 3, one line")(lambda: refused("", 3, "no BTF"))


def foreign():
    target = Worker()
    unlink(REPORT)
    script = (f"{CAPS} mmscope fault --json -o {REPORT} -p {target.pid} -d 2")
    with subprocess.Popen(["sh", "-c", script], stderr=subprocess.PIPE) as p:
        while p.poll() is None:
            target.do("t10")
            time.sleep(0.01)
        err = p.stderr.read()
    target.kill()
    high = completed(load()["runs"][0])[1]
    return None if not p.returncode and not err and high >= 10 else \
        f"status {p.returncode}, {high} faults: {err}"


# ---- two of them ----

def two():
    @checked("two tracers of one process: each has all, and one may leave; -p of a tracer")
    def _():
        target = Worker()
        first = Observer("-p", str(target.pid), *EXACT)
        truth = target.do("t100")
        second = Observer("-p", str(target.pid), report="/tmp/second.json")
        outer = Observer("-p", str(first.process.pid), *EXACT, report="/tmp/outer.json")
        truth += (both := target.do("t200") + target.do("n50") + target.do("f50"))
        problem = unlike(first.run(), truth, "the first")
        if not wait_until(lambda: outer.process.poll() is not None, 30):
            outer.process.kill()
            return "what observed the first did not end with it"
        if not completed(outer.run(ask=False))[1]:
            problem = problem or "the tracer took no faults"
        both += target.do("t70")
        problem = problem or unlike(second.run(), both, "the second")
        target.kill()
        return problem or left_behind()

    @checked("a tracer traced: both hold against rusage")
    def _():
        unlink(REPORT, "/tmp/inner.json")
        status, out, err = fault("--json", "-o", REPORT, *EXACT, "--", "mmscope", "fault", "--json",
                                 "-o", "/tmp/inner.json", "--", "worker")
        if status or err:
            return f"status {status}: {out} {err}"
        outer, inner = (load(path)["runs"][0] for path in (REPORT, "/tmp/inner.json"))
        return unlike(outer, usage(outer), "the outer") or \
            unlike(inner, usage(inner), "the inner") or left_behind()


# ---- many possible CPUs ----

def memory():
    """Of the maps of a running tracer, by the kernel's own account."""
    @checked("maps take what probes says, with CPUs that may come")
    def _():
        p = subprocess.run(["mmscope", "probes"], capture_output=True, text=True, timeout=90,
                           check=True)
        target = Worker()
        observer = Observer("-p", str(target.pid), *EXACT)
        problem = memory_told(observer.process.pid, p.stdout)
        truth = target.do("t500") + target.do("f20")
        problem = problem or unlike(observer.run(), truth)
        target.kill()
        return problem


GROUPS = {"deaths": deaths, "killed": killed, "ends": ends, "two": two, "memory": memory,
          "ftrace": ftrace,
          "privileges": privileges}

for group in sys.argv[1].split(","):
    GROUPS[group]()
