# SPDX-License-Identifier: GPL-2.0-only
"""In a guest with an ext4 disk: of the time of faults, what waits for it."""
import json
import os
import re
import subprocess

from lock_report import counts, lost_runs, number, samples, sums
from robust_lib import note, result, strict

REPORT = "/tmp/io.json"
DISK, PLACE, GROUPS = "/dev/vda", "/mnt/disk", "/mnt/groups"
FILE = PLACE + "/file"
PAGES = 1024
STEP = 64           # pages: more than is read ahead
READS = 10          # that the disk is allowed in a second
TRIES = 5
TICK = 10**7        # ns, of clock ticks as /proc tells them
UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}


def set_to(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def prepare():
    for path in (PLACE, GROUPS):
        os.makedirs(path, exist_ok=True)
    subprocess.run(["mount", "-t", "ext4", DISK, PLACE], check=True)
    subprocess.run(["mount", "-t", "cgroup2", "none", GROUPS], check=True)
    set_to("/proc/sys/kernel/task_delayacct", "1")
    with open(FILE, "wb") as f:
        f.write(bytes(PAGES * 4096))
        os.fsync(f.fileno())
    os.makedirs(GROUPS + "/slow")
    set_to(GROUPS + "/cgroup.subtree_control", "+io")
    with open(f"/sys/block/{os.path.basename(DISK)}/dev", encoding="ascii") as f:
        device = f.read().strip()
    set_to(GROUPS + "/slow/io.max", f"{device} riops={READS}")


def faults(how, threads):
    """(what the workload says, the run): it alone is in the slow group."""
    command = (f"echo $$ >{GROUPS}/slow/cgroup.procs && "
               f"exec lock_io {how} {FILE} {STEP} {threads}")
    p = subprocess.run(["mmscope", "trace", "-e", "fault,lock", "--json", "-o", REPORT, "--",
                        "sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True,
                       timeout=300, check=False)
    if p.returncode:
        raise ValueError(f"status {p.returncode}: {p.stderr.decode()}")
    with open(REPORT, "rb") as f:
        return json.loads(p.stdout), strict(f.read())["runs"][0]


def parts(run):
    waited = {m["labels"]["part"]: m["value"] for m in samples(run, "fault_waited")}
    return waited, sum(m["sum"] for m in samples(run, "fault_latency"))


def adds_up(run):
    """The parts that are printed and the rest are all of the latency that `fault` has."""
    text = subprocess.run(["mmscope", "report", REPORT], capture_output=True, text=True,
                          check=True).stdout
    table = text[text.index("OF FAULTS"):].split("\n\n")[0].splitlines()[1:]
    told, unsure = {}, 0
    for line in table:
        m = re.match(r"(\w+)(?:, at most)?\s+([\d.,]+) (\w+)\+?\s", line)
        if not m:
            return [f"not a row: {line}"]
        unit = UNITS[m[3]]
        told[m[1]] = float(m[2].replace(",", "")) * unit
        unsure += unit / 2 / 10 ** len(m[2].partition(".")[2])
    waited, latency = parts(run)
    whole = told.pop("all")
    wrong = []
    if abs(sum(told.values()) - whole) > unsure:
        wrong.append(f"{told} make no {whole} ns")
    if abs(whole - latency) > unsure or sum(waited.values()) > latency:
        wrong.append(f"{waited} of a latency of {latency} ns, printed as {whole}")
    return wrong


def account_holds():
    """
    Is what the kernel says of sleeps true, and by the clock that the programs read? Where a
    task is dequeued late (since 6.12) the time may begin for whoever runs then, and last from
    an earlier sleep on; the clocks differ where the TSC is unstable.
    """
    with open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
              encoding="ascii") as f:
        return os.uname().release.startswith("6.1.") and f.read().strip() == "tsc"


def cold(threads):
    """
    No more than the faults took, by the same clock; no less than the kernel accounts for
    the thread, which sleeps for nothing else: as many sleeps, and their time.
    """
    for _ in range(TRIES):
        said, run = faults("cold", threads)
        lost = lost_runs(run)
        took, sleeps, ticks = (sum(t[i] for t in said["threads"]) for i in range(3))
        # Who is slow itself finds that the disk may read at once.
        if not lost and sleeps:
            break
    waited, latency = parts(run)
    io, folio = waited.get("io", 0), waited.get("folio", 0)
    waits = sum(n for (_, mode, _), n in counts(run).items() if mode != "spin")
    wrong = sums(run, threads) + adds_up(run)
    if said["cached"]:
        wrong.append(f"{said['cached']} pages were cached")
    if not sleeps:
        wrong.append(f"nobody slept for the disk: {said}")
    if number(run, "fault_completed") < said["touched"] or not 0 < io + folio <= took:
        wrong.append(f"{number(run, 'fault_completed')} faults, {io} + {folio} of {took} ns")
    # Nobody else locks a page that it reads.
    if threads == 1 and not lost and not (io > folio and sleeps <= waits):
        wrong.append(f"{io} and {folio} ns; {sleeps} sleeps, {waits} waits")
    if threads == 1 and not lost and account_holds() and io < ticks * TICK:
        wrong.append(f"{io} ns for the disk, {ticks * TICK} asleep for it")
    note(f"{threads} threads: {io / 1e6:.1f} ms io, {folio / 1e6:.1f} ms folio of "
         f"{latency / 1e6:.1f}; took {took / 1e6:.1f}, asleep {ticks * TICK / 1e6:.0f}; "
         f"{sleeps} sleeps, {waits} waits; {lost} lost")
    result(f"io: {threads} that fault what is on a disk sleep as long as is told",
           "\n".join(wrong))


def warm(threads):
    said, run = faults("warm", threads)
    waited, _ = parts(run)
    wrong = sums(run, threads) + adds_up(run)
    if said["cached"] != PAGES:
        wrong.append(f"{said['cached']} pages of {PAGES} were cached")
    if waited.get("io") or any("unavailable" in m for m in samples(run, "fault_waited")):
        wrong.append(f"{waited}")
    result(f"io: {threads} that fault what is in memory have none", "\n".join(wrong))


def main():
    try:
        prepare()
        for case, threads in ((cold, 1), (warm, 1), (cold, 4), (warm, 4)):
            case(threads)
    except (ValueError, KeyError, OSError, subprocess.SubprocessError) as e:
        result("io", repr(e))


if __name__ == "__main__":
    main()
