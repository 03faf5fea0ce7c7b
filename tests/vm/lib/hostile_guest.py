# SPDX-License-Identifier: GPL-2.0-only
"""The suite of hostile conditions, its part inside a guest: prints one JSON object per result."""
import json
import os
import re
import signal
import subprocess
import sys
import time

from observer import Observer, Worker, unlike
from robust_lib import (REPORT, checked, completed, end, fault, left_behind, load, start, strict,
                        unlink, usage, wait_until)

EXACT = ["--exact"] if "exact" in sys.argv[2:] else []
IO_URING = ["mmscope", "bench", "io_uring", "--entries", "1024", "--repeat", "1", "--json"]
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

def hanging(count):
    """A worker of which so many threads hang in a fault."""
    worker = Worker()
    worker.tell(f"H{count}")
    worker.hear()
    time.sleep(0.5)
    return worker


def deaths():
    @checked("threads that hang in a fault, are reported, and are killed in it")
    def _():
        kept, dying = Worker(), Worker()
        observer = Observer("-p", str(kept.pid), "-p", str(dying.pid), *EXACT)
        truth = kept.do("t50") + dying.do("t60") + dying.do("H8")
        time.sleep(1)
        dying.kill()
        truth += kept.do("t100") + kept.do("n100") + kept.do("f50")
        run = observer.run()
        kept.kill()
        trust = run["trust"]
        low, high = completed(run)
        # The threads' own start is in no rusage that was read: a few each.
        if not truth <= high or not low <= truth + 8 * 8:
            return f"[{low}, {high}], the truth is {truth}"
        if not misses(run) and (unended(run) or trust["unmatched"]):
            return f"{unended(run)} attempts without an end, {trust['unmatched']} unmatched"
        if counter(run, "fault_retried")[1] < 8:
            return "the eight that waited are not retried"
        return left_behind()

    @checked("a report while threads hang: they are attempts without an end")
    def _():
        target = Worker()
        observer = Observer("-p", str(target.pid), *EXACT)
        target.do("H8")
        time.sleep(1)
        run = observer.run()
        target.kill()
        return None if misses(run) or unended(run) == 8 else f"{unended(run)} instead of 8"

    @checked("attached in the middle of faults: nothing of them, and later ones right")
    def _():
        kept, dying = Worker(), hanging(8)
        observer = Observer("-p", str(kept.pid), "-p", str(dying.pid), *EXACT)
        dying.kill()
        truth = kept.do("t100")
        run = observer.run()
        kept.kill()
        if run["trust"]["unmatched"] > 8 or (not misses(run) and unended(run)):
            return f"{run['trust']['unmatched']} unmatched, {unended(run)} without an end"
        return unlike(run, truth)

    @checked("switched on in the middle of faults: their ends are unmatched")
    def _():
        kept, dying = Worker(), Worker()
        observer = Observer("-p", str(kept.pid), "-p", str(dying.pid), *EXACT)
        for word in (b"enable\n", b"disable\n"):
            os.write(observer.ctl, word)
            if os.read(observer.ack, 4) != b"ack\n":
                return "no answer"
        kept.do("t1000")
        dying.do("H8")
        time.sleep(1)
        os.write(observer.ctl, b"enable\n")
        os.read(observer.ack, 4)
        dying.kill()
        truth = kept.do("t100")
        run = observer.run()
        kept.kill()
        unmatched = run["trust"]["unmatched"]
        if unmatched != 8 and not misses(run):
            return f"{unmatched} unmatched instead of 8"
        return unlike(run, truth)

    @checked("a command that is killed in the middle of its fault")
    def _():
        unlink(REPORT)
        os.mkfifo("/tmp/orders")
        p = start("--json", "-o", REPORT, *EXACT, "--", "sh", "-c",
                  "worker </tmp/orders & echo h >/tmp/orders; wait", stdout=subprocess.PIPE)
        seen = b"".join(p.stdout.readline() for _ in range(2))
        time.sleep(0.5)
        os.kill(int(seen.split()[4]), signal.SIGKILL)
        status, _, err = end(p)
        run = load()["runs"][0]
        low, high = completed(run)
        p.stdout.close()
        if err or not low <= usage(run) <= high:
            return f"status {status}, {err}, [{low}, {high}], rusage {usage(run)}"
        return None if misses(run) or not unended(run) else f"{unended(run)} without an end"


# ---- how it ends ----

def ends():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
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
            if number == signal.SIGKILL:
                if status != 137 or err or os.path.exists(REPORT):
                    return f"status {status}, {err}"
                return left_behind()
            if status or out or err:
                return f"status {status}: {out} {err}"
            return unlike(load()["runs"][0], truth) or left_behind()

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


def hidden_backings():
    """What can be told apart without the addresses of symbols."""
    wrong = []
    for args, backing in ((("touch", "--backing", "sysv_shm", "--size", "1M"), "sysv_shm"),
                          (("touch", "--backing", "shmem", "--size", "1M"), "shmem"),
                          (("arraymap", "--size", "1M"), "bpf_array")):
        unlink(REPORT)
        status, _, err = fault("--json", "-o", REPORT, "--", "mmscope", "bench", *args,
                               "--repeat", "1")
        run = load()["runs"][0]
        have = {s["labels"]["backing"]: s["value"] for s in run["metrics"]
                if s["name"] == "ptes_installed" and s.get("value")}
        if status or err or set(have) != {backing} or have[backing] < 256:
            wrong.append(f"{backing}: status {status}, {have}, {err}")
    return "\n".join(wrong) or None


def inserted():
    """Pages of vm_insert_pages(), against the workload's own account."""
    unlink(REPORT)
    status, out, err = fault("--json", "-o", REPORT, "--", *IO_URING)
    run = load()["runs"][0]
    truth = strict(out)["pages_total"]
    low, high = counter(run, "ptes_installed", lambda k: k["method"] == "eager")
    if status or err or run["trust"]["unmatched"]:
        return f"status {status}: {err} {run['trust']}"
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
CAPS = NOBODY + " --inh-caps=+bpf,+perfmon --ambient-caps=+bpf,+perfmon"


def privileges():
    os.chmod("/tmp", 0o1777)
    checked("ulimit -l 64")(lambda: observe_with("ulimit -l 64;"))
    checked("ulimit -n 20")(lambda: observe_with("ulimit -n 20;"))
    checked("ulimit -n 20 that may not be raised: status 3, one line")(
        lambda: refused(f"ulimit -n 20; {CAPS}", 3, "ulimit -n is 20"))
    checked("not root: status 3, one line")(lambda: refused(NOBODY, 3, "no permission"))
    checked("CAP_BPF and CAP_PERFMON only")(lambda: observe_with(CAPS))
    checked("... and -p of somebody else's process")(foreign)
    with open("/proc/sys/kernel/kptr_restrict", "w") as f:
        f.write("2")
    checked("kptr_restrict=2: counts")(lambda: observe_with(""))
    checked("kptr_restrict=2: backings")(hidden_backings)
    subprocess.run("umount /sys/kernel/debug /sys/kernel/tracing 2>/dev/null", shell=True,
                   check=False)
    if not os.listdir("/sys/kernel/tracing") and not os.path.exists("/sys/kernel/debug/tracing"):
        checked("no tracefs")(lambda: observe_with(""))
        checked("no tracefs, --exact")(lambda: observe_with("", options=["--exact"]))
    checked("pages of vm_insert_pages")(inserted)
    with open("/sys/kernel/security/lockdown", "w") as f:
        f.write("confidentiality")
    checked("lockdown=confidentiality: counts, fault-around's present pages not")(
        lambda: observe_with("", ["fault_around_present"]))
    checked("lockdown: backings")(hidden_backings)
    checked("lockdown: pages of vm_insert_pages")(inserted)
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
    @checked("two tracers of one process: each has all, and one may leave")
    def _():
        target = Worker()
        first = Observer("-p", str(target.pid), *EXACT)
        truth = target.do("t100")
        second = Observer("-p", str(target.pid), report="/tmp/second.json")
        both = target.do("t200") + target.do("n50") + target.do("f50")
        problem = unlike(first.run(), truth + both, "the first")
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

    @checked("-p of a tracer")
    def _():
        target = Worker()
        inner = Observer("-p", str(target.pid), report="/tmp/inner.json")
        outer = Observer("-p", str(inner.process.pid), *EXACT)
        truth = target.do("t300")
        problem = unlike(inner.run(), truth, "the inner")
        if not wait_until(lambda: outer.process.poll() is not None, 30):
            outer.process.kill()
            return "it did not end with the other"
        run = outer.run()
        target.kill()
        return problem or (None if completed(run)[1] else "the tracer took no faults")


# ---- many possible CPUs ----

def memory():
    """Of the maps of a running tracer, by the kernel's own account."""
    @checked("maps take what probes says, with CPUs that may come")
    def _():
        p = subprocess.run(["mmscope", "probes"], capture_output=True, text=True, timeout=90,
                           check=True)
        said = re.search(r"Memory of the maps: ([0-9.]+) MiB.* of ([0-9]+) possible", p.stdout)
        with open("/sys/devices/system/cpu/possible") as f:
            possible = int(f.read().strip().rsplit("-", 1)[-1]) + 1
        target = Worker()
        observer = Observer("-p", str(target.pid), *EXACT)
        total = 0
        seen = set()
        for name in os.listdir(f"/proc/{observer.process.pid}/fdinfo"):
            with open(f"/proc/{observer.process.pid}/fdinfo/{name}") as f:
                info = dict(line.split(":", 1) for line in f if ":" in line)
            if "map_id" in info and info["map_id"] not in seen:
                seen.add(info["map_id"])
                total += int(info["memlock"])
        truth = target.do("t500") + target.do("f20")
        problem = unlike(observer.run(), truth)
        target.kill()
        print(json.dumps({"note": f"maps: {total >> 10} KiB in {len(seen)}; probes: "
                          f"{said.group(1)} MiB, {possible} possible CPUs"}))
        if int(said.group(2)) != possible or possible < 2:
            return f"{said.group(2)} possible CPUs, there are {possible}"
        if not 0.8 * total <= float(said.group(1)) * 2**20 + 2**16 or not total:
            return f"{total} bytes in maps, probes says {said.group(1)} MiB"
        if total > float(said.group(1)) * 2**20 * 1.05 + 2**17:
            return f"{total} bytes in maps, more than probes says: {said.group(1)} MiB"
        return problem


GROUPS = {"deaths": deaths, "ends": ends, "two": two, "memory": memory, "privileges": privileges}

for group in sys.argv[1].split(","):
    GROUPS[group]()
