# SPDX-License-Identifier: GPL-2.0-only
"""In a guest, after lock_guest: rows of waits, runs and intervals, and at last lockdown."""
import glob
import os
import re
import subprocess
import time

from robust_lib import note, result, strict

REPORT = "/tmp/rows.json"
SLEEPS = "20"   # of the threads that collide, for their lock: each was a wait
PROCESSES = 6
INTERVALS = 4
RUNS = 5
THREADS = 4
TRIES = 3


def words(*argv):
    """What it prints."""
    p = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=300,
                       check=False)
    if p.returncode:
        raise ValueError(f"{argv}: status {p.returncode}: {p.stderr.decode()}")
    return p.stdout.decode().split()


def recordings():
    with open(REPORT, "rb") as f:
        data = f.read()
    if data.count(b"\n{") and data.startswith(b'{"'):
        return [strict(line) for line in data.splitlines() if line]
    return [strict(data)]


def told(runs, name, label):
    """{value of the label: waits that began or ended}, of all the runs."""
    total = {}
    for one in runs:
        for m in one["metrics"]:
            key = m.get("labels", {}).get(label)
            if m["name"] == name and key is not None and "unavailable" not in m:
                total[key] = total.get(key, 0) + m.get("value", m.get("count", 0))
    return total


def missed(run):
    return any(p.get("misses") for p in run["trust"]["probes"])


def consistent(run, label):
    """What holds of rows whatever happened: problems."""
    began, ended = told([run], "lock_contended", label), told([run], "lock_wait", label)
    wrong = [f"{text}: {n} waits ended, {began.get(text, 0)} began"
             for text, n in ended.items() if n > began.get(text, 0)]
    classes = told([run], "lock_contended", "class")
    of = classes.get("other", 0) if label == "lock" else sum(classes.values())
    if sum(began.values()) != of:
        wrong.append(f"{sum(began.values())} waits in rows {began}, {of} in classes")
    return wrong


def single():
    (rec,) = recordings()
    (one,) = rec["runs"]
    return one


def collide():
    """Processes one after the other, whose address spaces lie where those before lay, and
    one that becomes another program."""
    return ["sh", "-c", f"for i in {' '.join('x' * PROCESSES)}; do lock map {SLEEPS}; done; "
            f"lock map {SLEEPS} /usr/bin/after map {SLEEPS}"]


def rows(label):
    pids = words("mmscope", "lock", "--by", label, "--json", "-o", REPORT, "--", *collide())
    one = single()
    began = told([one], "lock_contended", label)
    wrong = consistent(one, label)
    lost = missed(one)
    if len(pids) != PROCESSES + 2 or pids[-1] != pids[-2]:
        raise ValueError(f"the processes are {pids}")
    want = [f"lock-{pid}" for pid in pids[:PROCESSES]] + [f"after-{pids[-1]}"]
    if label == "owner":    # exec makes an address space
        want.append(f"lock-{pids[-1]}")
    wrong += [f"no row {text}" for text in want if not began.get(text) and not lost]
    if label == "pid" and f"lock-{pids[-1]}" in began:
        wrong.append("a process has the name that it had at first")
    if wrong:
        wrong.append(f"rows {began}")
    result(f"--by {label}: each process has its own row, under its name", "\n".join(wrong))


def namespace(label):
    """Processes have the numbers that whoever reads them knows; mmscope is 1 there."""
    pids = words("unshare", "--fork", "--pid", "--mount-proc", "mmscope", "lock", "--by", label,
                 "--json", "-o", REPORT, "--", "lock", "map", SLEEPS)
    began = told([single()], "lock_contended", label)
    if int(pids[0]) > 20:
        raise ValueError(f"{pids} is no number of a new namespace")
    result(f"--by {label} in a namespace: the number there", None if
           began.get(f"lock-{pids[0]}") or missed(single()) else f"{pids}: {began}")


def locks():
    """Readers of one descriptor wait for the lock of its position, in a slab object."""
    with open("/tmp/long", "wb") as f:
        f.write(bytes(8 << 20))
    words("mmscope", "lock", "--json", "-o", REPORT, "--", "lock", "read", SLEEPS, "/tmp/long")
    os.unlink("/tmp/long")
    one = single()
    began = told([one], "lock_contended", "lock")
    wrong = consistent(one, "lock")
    # Caches that were merged are one, under the name of the first.
    cache = os.path.realpath("/sys/kernel/slab/filp")
    names = {os.path.basename(path) for path in glob.glob("/sys/kernel/slab/*")
             if os.path.realpath(path) == cache}
    found = {text: n for text, n in began.items() if text.rpartition("+")[0] in names}
    if not missed(one) and not found:    # one wait may sleep several times
        wrong.append(f"{found} of {names}; all: {began}")
    note(f"locks without a class: {began}")
    result("a lock without a class: its slab cache", "\n".join(wrong))


def slept(pid):
    """How often the threads of the process's children have."""
    n = 0
    for path in glob.glob("/proc/[0-9]*/task/*/status"):
        try:
            with open(path, encoding="ascii", errors="replace") as f:
                fields = dict(line.split(":", 1) for line in f if ":" in line)
        except OSError:
            continue
        if int(fields["PPid"]) == pid:
            n += int(fields["voluntary_ctxt_switches"])
    return n


def recorded():
    """Runs while others wait all the time, in one of a few tries; of them, the recording."""
    with subprocess.Popen(["mmscope", "bench", "contend", "mmap_lock", "--threads", str(THREADS),
                           "--seconds", "600"], stdout=subprocess.DEVNULL) as bench:
        try:
            while slept(bench.pid) < int(SLEEPS) and bench.poll() is None:
                time.sleep(0.1)
            for _ in range(TRIES):
                words("mmscope", "record", "-e", "fault,lock", "--by", "comm", "--comm",
                      "mmscope", "-d", "0.3", "-n", str(RUNS), "-o", REPORT)
                (rec,) = recordings()
                if any(told([one], "lock_contended", "comm").get("mmscope")
                       for one in rec["runs"]):
                    return rec
        finally:
            bench.kill()
    raise ValueError("nobody waited")


def series():
    """No wait and no fault is of two runs."""
    rec = recorded()
    wrong = [] if len(rec["runs"]) == RUNS else [f"{len(rec['runs'])} runs"]
    for one in rec["runs"]:
        wrong += consistent(one, "comm")
        began, ended = told([one], "lock_contended", "class"), told([one], "lock_wait", "class")
        wrong += [f"{name}: {n} waits ended, {began.get(name, 0)} began"
                  for name, n in ended.items() if n > began.get(name, 0)]
        wrong += [f"{m['labels']}: {m['sum']} ns in {m['count']} waits" for m in one["metrics"]
                  if m["name"] == "lock_wait" and m.get("sum", 0) > m["count"] * one["wall_ns"]]
        # Each thread, and who waits for them, may be in a fault when a run begins.
        late = one["trust"]["unmatched"]
        if (late > THREADS + 1 and not missed(one)) or one["trust"]["events_lost"]:
            wrong.append(f"{one['trust']['unmatched']} unmatched, "
                         f"{one['trust']['events_lost']} lost")
        entered = sum(told([one], "fault_attempts", "backing").values())
        left = sum(sum(told([one], name, "backing").values()) for name in
                   ("fault_completed", "fault_failed", "fault_retried"))
        if left > entered and not missed(one):
            wrong.append(f"{left} attempts ended, {entered} began")
    result("record -e lock: no wait and no fault is of two runs", "\n".join(wrong))
    saved(rec)


def mmscope(*args):
    p = subprocess.run(["mmscope", *args], stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, timeout=60, check=False)
    return p.returncode, p.stdout, p.stderr


def saved(rec):
    """What reads recordings takes this one: report, diff, check."""
    wrong = []
    for args, status, text in (
            (("report", REPORT), 0, r"lock_contended +mmap_lock write +[1-9]"),
            (("report", "--by", "comm", REPORT), 0, r"lock_contended +mmscope +[1-9]"),
            (("report", "--by", "owner", REPORT), 2, "record with --by owner"),
            (("diff", REPORT, REPORT), 125, "CANNOT TELL")):
        got, out, err = mmscope(*args)
        if got != status or not re.search(text, out + err):
            wrong.append(f"{' '.join(args)}: status {got}, not {status}: {out[-2000:]}{err}")
    least = min(sum(told([one], "lock_contended", "class").values()) for one in rec["runs"])
    with open("/tmp/expect", "w", encoding="ascii") as f:
        f.write(f"lock_contended >= {least}\nlock_contended < {least}\n")
    got, out, err = mmscope("check", "/tmp/expect", REPORT)
    if got != 1 or "\nok 1 " not in out or "\nnot ok 2 " not in out:
        wrong.append(f"check: status {got}: {out}{err}")
    result("a recording of waits: report, diff and check", "\n".join(wrong))


def intervals():
    """What is new in each: all that began before an end, and no less in rows."""
    words("mmscope", "lock", "-i", "0.2", "--by", "pid", "--json", "-o", REPORT, "--", "sh", "-c",
          f"for i in {' '.join('x' * INTERVALS)}; do lock map {SLEEPS}; sleep 0.3; done")
    runs = [one for rec in recordings() for one in rec["runs"]]
    began, ended = told(runs, "lock_contended", "pid"), told(runs, "lock_wait", "pid")
    wrong = [f"{text}: {n} waits ended, {began.get(text, 0)} began"
             for text, n in ended.items() if n > began.get(text, 0)]
    mine = {text for text in began if text.startswith("lock-")}
    if len(mine) < INTERVALS and not any(missed(one) for one in runs):
        wrong.append(f"rows {began}")
    note(f"{len(runs)} intervals, {sum(began.values())} waits")
    result("-i: waits and rows of all intervals", "\n".join(wrong))


def lockdown():
    try:
        with open("/sys/kernel/security/lockdown", "w", encoding="ascii") as f:
            f.write("confidentiality")
    except OSError as e:
        note(f"this kernel has no lockdown: {e}")
        return
    words("mmscope", "lock", "--json", "-o", REPORT, "--", "lock", "map", SLEEPS)
    one = single()
    wrong = []
    for m in one["metrics"]:
        of_spin = m.get("labels", {}).get("mode") == "spin"
        if m["name"] == "lock_interrupt_wait" and "lockdown" not in m.get("unavailable", ""):
            wrong.append(f"interrupts: {m}")
        if m["name"] in ("lock_contended", "lock_wait", "lock_events") and of_spin and \
           m.get("value", m.get("count", 0)) and not m.get("inferred"):
            wrong.append(f"not inferred: {m}")
    if told([one], "lock_contended", "lock"):
        wrong.append("there are rows")
    if not told([one], "lock_contended", "class").get("mmap_lock") and not missed(one):
        wrong.append("nobody waited for mmap_lock")
    result("lockdown: interrupts are not seen, spinlocks are inferred", "\n".join(wrong))


def main(whole=True):
    for case, *args in (((rows, "pid"), (rows, "owner"), (namespace, "owner"), (locks,), (series,),
                         (intervals,)) if whole else ()) + ((lockdown,),):
        try:
            case(*args)
        except (ValueError, KeyError, OSError, subprocess.SubprocessError) as e:
            result(f"{case.__name__} {' '.join(args)}", repr(e))


if __name__ == "__main__":
    main()
