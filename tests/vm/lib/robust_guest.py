# SPDX-License-Identifier: GPL-2.0-only
"""The robustness suite's part inside a guest: prints one JSON object per result.

Arguments: the groups of tests, comma-separated, and the number of short-lived
children. Attaching takes seconds on an emulated CPU: what can share a tracer does.
"""
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time

from robust_lib import (HELPER, REPORT, STARTED, begin, checked, completed, end, fault, left_behind,
                        load, note, start, state, strict, unlink, usage, wait_until)


ATTACHING = {}      # --exact or not: seconds that it took the last time


# ---- nothing is missed ----

def compare(command, status, exact):
    """Completed faults of a whole command against what wait4() says of it; None if equal."""
    mode = ["--exact"] if exact else []
    unlink(REPORT)
    started = time.clock_gettime(time.CLOCK_BOOTTIME)
    got, _, err = fault(*mode, "--json", "-o", REPORT, "--", *command)
    if got != status:
        return f"status {got}, not {status}: {err}"
    run = load()["runs"][0]
    ATTACHING[exact] = run["start_boot_ns"] / 1e9 - started
    low, high = completed(run)
    truth = usage(run)
    words = " ".join(command).split("\n", maxsplit=1)[0]
    note(f"[{low}, {high}] faults{' --exact' if exact else ''}, rusage {truth}, "
         f"{run['wall_ns'] / 1e9:.2f} s after {ATTACHING[exact]:.2f} s: {words[:40]}")
    trust = run["trust"]
    if exact and (low != high or trust["unmatched"] or trust["map_full"]):
        return f"lost with --exact: [{low}, {high}], {trust}"
    if run["exit_status"] != status:
        return f"recorded status {run['exit_status']}"
    if not low <= truth <= high or not truth:
        return f"{truth} not in [{low}, {high}]"
    return left_behind()


FIRST = [HELPER, "touch", "64"]     # 5 ms
TASKS = (
    (FIRST, 0),
    ([HELPER, "threads", "2", "500"], 0),
    ([HELPER, "threads", "8", "300"], 0),
    (["sh", "-c", f"{HELPER} touch 100 & {HELPER} touch 100; wait"], 0),
    (["sh", "-c", 'exec sh -c "exec true"'], 0),
    ([HELPER, "vforks", "30"], 0),
    ([HELPER, "clone", "30", "20"], 0),
    ([HELPER, "crash", "10"], 139),
)
PROGRAMS = (
    ([sys.executable, "-c",
      "import json\nx = [bytearray(8192) for _ in range(3000)]\njson.dumps([1] * 10000)"], 0),
    (["sqlite3", ":memory:",
      "create table t(a, b); insert into t select value, hex(randomblob(200)) from "
      "generate_series(1, 2000); select count(*), sum(length(b)) from t;"], 0),
)


def quoted(command):
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in command)


def nothing_missed(name, parts, exact):
    """All under one tracer; one by one only to find out which of them is at fault."""
    script = "; ".join(f"{quoted(c)}; [ $? -eq {s} ] || exit 99" for c, s in parts)

    @checked(f"{name}: faults {'= rusage with --exact' if exact else 'around rusage'}")
    def _():
        problem = compare(["sh", "-c", script], 0, exact)
        if not problem:
            return None
        single = [f"{' '.join(p)}: {compare(p, s, exact)}" for p, s in parts]
        return "\n".join([problem, "one by one:", *single])


# ---- signals ----

def interrupt(number, options, after):
    """Send a signal that long after the start: None if the command was not reached, or why not."""
    unlink(STARTED, REPORT)
    p = start(*options, "--json", "-o", REPORT, "--", "sh", "-c",
              f"echo $$ >{STARTED}.new; mv {STARTED}.new {STARTED}; exec sleep 60")
    time.sleep(after)
    p.send_signal(number)
    status, _, err = end(p)
    if os.path.exists(STARTED):
        with open(STARTED) as f:
            pid = int(f.read())
        if number == signal.SIGKILL:    # nothing ends the command then, and nothing stops it
            alive = state(pid)
            os.kill(pid, signal.SIGKILL)
            if alive not in "SR":
                raise ValueError(f"the command is in state {alive}")
        return True, status, err
    return False, status, err


def while_attaching(number, options, fractions, attach):
    for fraction in fractions:
        @checked(f"{number.name} after {fraction} of attaching {' '.join(options)}")
        def _(after=attach * fraction):
            # A machine that is less busy than before attaches faster: be earlier then.
            for _ in range(4):
                late, status, err = interrupt(number, options, after)
                if status != 128 + number or (err and number != signal.SIGKILL):
                    return f"status {status}: {err}"
                problem = left_behind()
                if problem or not late:
                    break
                after /= 2
            if late:
                problem = "the command started each time"
            elif os.path.exists(REPORT):
                problem = "there is a report of nothing"
            return problem


def killed(attach, options):
    while_attaching(signal.SIGKILL, options, (0.3, 0.6, 0.9), attach)

    @checked(f"SIGKILL during the run: the command goes on {' '.join(options)}")
    def _():
        p, pid = begin(f"n=0; while [ $n -lt 20 ]; do n=$((n + 1)); {HELPER} touch 10; done; "
                       f"sleep 0.5; : >{STARTED}.2; sleep 60", *options)
        p.kill()
        status, _, err = end(p)
        going = wait_until(lambda: os.path.exists(STARTED + ".2"))
        unlink(STARTED + ".2")
        alive = state(pid)
        os.kill(pid, signal.SIGKILL)
        if status != 137 or err or not going or alive not in "SR":
            return f"status {status}, goes on {going}, {alive}: {err}"
        return left_behind()


def interrupted(attach, options):
    while_attaching(signal.SIGINT, options, (0.5,), attach)
    while_attaching(signal.SIGTERM, options, (0.75,), attach)


def signals(options):
    @checked(f"SIGTERM goes to the command, whose status it is {' '.join(options)}")
    def _():
        p, _ = begin(f"trap 'exit 7' TERM; {HELPER} touch 100; : >{STARTED}.2; "
                     "while :; do sleep 0.1; done", *options)
        if not wait_until(lambda: os.path.exists(STARTED + ".2")):
            return "the command does not get on"
        unlink(STARTED + ".2")
        p.send_signal(signal.SIGTERM)
        status, _, err = end(p)
        low, high = completed(load()["runs"][0])
        if status != 7 or err or high < 100:
            return f"status {status}, [{low}, {high}] faults, {err}"
        return left_behind()

    @checked(f"SIGINT ends a command that does not care {' '.join(options)}")
    def _():
        p, _ = begin("exec sleep 60", *options)
        p.send_signal(signal.SIGINT)
        status, _, err = end(p)
        if status != 130 or err or not completed(load()["runs"][0])[1]:
            return f"status {status}: {err}"
        return left_behind()

    @checked(f"SIGINT twice leaves a command that ignores it {' '.join(options)}")
    def _():
        p, pid = begin("while :; do sleep 0.1; done", *options, first="trap '' INT")
        p.send_signal(signal.SIGINT)
        if not wait_until(lambda: os.path.exists(REPORT)):
            return "no report after the first"
        time.sleep(0.5)
        if p.poll() is not None:
            return "the tracer does not wait for the command"
        p.send_signal(signal.SIGINT)
        status, _, err = end(p)
        alive = state(pid)
        os.kill(pid, signal.SIGKILL)
        if status != 130 or err or alive not in "SR":
            return f"status {status}, command {alive}: {err}"
        return left_behind()

# ---- exit statuses and output ----

def statuses():
    with open("/tmp/text", "w") as f:
        f.write("no program\n")
    for what, status in ((["/tmp/text"], 126), (["nowhere"], 127)):
        @checked(f"status {status} of {what[0]}")
        def _(what=what, status=status):
            got, out, err = fault("--", *what)
            if got != status or out:
                return f"{got}, {out}, {err}"
            if (err.count(b"\n") != 1 or not err.startswith(b"mmscope: ")):
                return f"not one line: {err}"
            return None


def output():
    @checked("-o -: the report has stdout, the command's goes to stderr")
    def _():
        status, out, err = fault("--json", "-o", "-", "--", "sh", "-c", "echo hello; exit 4")
        if status != 4 or err != b"hello\n":
            return f"status {status}, {err}"
        return None if usage(strict(out)["runs"][0]) else "no faults"

    @checked("-o /dev/full: one line, and it stays a device")
    def _():
        status, out, err = fault("-o", "/dev/full", "--", "true")
        one = err.count(b"\n") == 1 and b"No space left" in err
        if status != 70 or out or not one:
            return f"status {status}: {err}"
        return None if stat.S_ISCHR(os.stat("/dev/full").st_mode) else "it was replaced"

    @checked("-o on a full file system: one line, nothing left there")
    def _():
        os.mkdir("/tmp/tiny")
        subprocess.run([HELPER, "tiny", "/tmp/tiny"], check=True, timeout=60)
        with open("/tmp/tiny/filler", "wb", 0) as f:
            f.write(bytes(4096))
        status, out, err = fault("--json", "-o", "/tmp/tiny/report", "--", "true")
        if status != 70 or out or err.count(b"\n") != 1 or b"No space left" not in err:
            return f"status {status}: {err}"
        left = os.listdir("/tmp/tiny")
        return None if left == ["filler"] else f"left: {left}"

    @checked("-o in a missing directory: one line before anything starts")
    def _():
        unlink(STARTED)
        status, out, err = fault("-o", "/tmp/none/report", "--", "sh", "-c", f": >{STARTED}")
        if status != 2 or out or err.count(b"\n") != 1:
            return f"status {status}: {err}"
        return "the command ran" if os.path.exists(STARTED) else None

    @checked("a reader that leaves: quiet end of -a -i")
    def _():
        p = start("-a", "-i", "300ms", stdout=subprocess.PIPE)
        line = p.stdout.readline()
        p.stdout.close()
        status, _, err = end(p)
        if status != 141 or err or not line:
            return f"status {status}, {line}, {err}"
        return left_behind()


def hostile():
    @checked("hostile names of a command and its arguments")
    def _():
        names = [b'a"b\\\n\x1b[31m', b"\xff\xfe\x9bm", b"\xc3("]
        command = [b"/tmp/" + names[0], *names[1:]]
        shutil.copy(shutil.which("true"), command[0])
        status, out, err = fault("--json", "--", *command)
        if status or out:
            return f"status {status}"
        # One U+FFFD for each byte, or for each sequence: both are right.
        recording = strict(err)
        low, high = completed(recording["runs"][0])
        # As short as a command can be.
        if not 0 < low <= usage(recording["runs"][0]) <= high:
            return f"[{low}, {high}] faults, rusage {usage(recording['runs'][0])}"
        have, want = ([re.sub("\ufffd+", "\ufffd", text) for text in texts] for texts in
                      (recording["command"], [c.decode("utf-8", "replace") for c in command]))
        return None if have == want else f"{ascii(have)} is not {ascii(want)}"


# ---- time ----

def timed():
    @checked("-i: what the intervals say adds up to the whole")
    def _():
        # On a busy machine several ends of an interval may become one: then it takes longer.
        for rounds in (5, 20, 80):
            script = (f"n=0; while [ $n -lt {rounds} ]; do n=$((n + 1)); {HELPER} touch 200; "
                      "sleep 0.2; done")
            status, out, err = fault("--exact", "--json", "-i", "300ms", "-o", "-", "--", "sh",
                                     "-c", script)
            runs = [strict(line)["runs"] for line in out.splitlines()]
            if status or err or not runs or any(len(r) != 1 for r in runs):
                return f"status {status}, {len(runs)} lines, {err}"
            if [("rusage" in r[0]) for r in runs] != [False] * (len(runs) - 1) + [True]:
                return "rusage belongs to the last one only"
            total, truth = sum(completed(r[0])[0] for r in runs), usage(runs[-1][0])
            if total != truth:
                return f"{total} in {len(runs)} intervals, rusage {truth}"
            if len(runs) >= 3 and sum(completed(r[0])[0] > 0 for r in runs) >= 2:
                return None
        return f"{len(runs)} intervals, all faults in one"

    @checked("-d with a command: the report is of that time, the status the command's")
    def _():
        # What follows the report is not in it. The first part may take longer than -d: then
        # more time is given.
        os.mkfifo("/tmp/go")

        def go():
            try:
                with open(os.open("/tmp/go", os.O_WRONLY | os.O_NONBLOCK), "wb", 0) as f:
                    f.write(b"\n")
            except OSError:     # it does not read yet
                return False
            return True

        for duration in (1, 5, 25):
            unlink(REPORT)
            p = start("-d", str(duration), "--json", "-o", REPORT, "--", "sh", "-c",
                      f"{HELPER} touch 50; read line </tmp/go; {HELPER} touch 1000; exit 6")
            if not wait_until(lambda: os.path.exists(REPORT), 120) or not wait_until(go):
                p.terminate()
                return f"no report while the command waits: {end(p)}"
            status, _, err = end(p)
            run = load()["runs"][0]
            low, high = completed(run)
            seconds = run["wall_ns"] / 1e9
            if status != 6 or err or low >= 1000 or "rusage" in run or seconds < duration - 0.01:
                return f"-d {duration}: status {status}, [{low}, {high}], {seconds} s: {err}"
            if high >= 50:
                return None
        return f"at most {high} faults in {seconds} s"

    @checked("-a -d -i --json: a recording in each line, of everything that runs")
    def _():
        for duration in (2, 10, 40):
            p = start("-a", "-d", str(duration), "-i", f"{duration / 4}", "--json")
            touched = 0
            while p.poll() is None:
                subprocess.run([HELPER, "touch", "500"], check=True, timeout=60)
                touched += 1
            status, out, err = end(p)
            recordings = [strict(line)["runs"] for line in out.splitlines()]
            if status or err or not 1 <= len(recordings) <= 5 or \
                    any(len(r) != 1 for r in recordings):
                return f"status {status}, {len(recordings)} lines: {err}"
            runs = [r[0] for r in recordings]
            begun = [r["start_boot_ns"] for r in runs]
            ended = [r["start_boot_ns"] + r["wall_ns"] for r in runs]
            if any(a > b for a, b in zip(ended, begun[1:])):
                return f"they overlap: {begun}, {ended}"
            if ended[-1] - begun[0] < (duration - 0.01) * 1e9:
                return f"{(ended[-1] - begun[0]) / 1e9} s of {duration}"
            # Those before and after the observation are not in it.
            high = sum(completed(r)[1] for r in runs)
            if len(runs) >= 3 and high >= 500:
                return None
        return f"{len(runs)} lines, {high} faults while {touched} x 500 pages were touched"

    @checked("-a -- CMD: at least the command")
    def _():
        unlink(REPORT)
        status, _, err = fault("-a", "--json", "-o", REPORT, "--", HELPER, "touch", "300")
        run = load()["runs"][0]
        high = completed(run)[1]
        return None if not status and not err and high >= usage(run) >= 300 else \
            f"status {status}, at most {high} of {usage(run)}: {err}"


# ---- control ----

CONTROLLER = """
cd /tmp
exec 3<>ctl 4<>ack 5<>in 6<>out
mmscope fault --exact --json -o report.json --control fd:3,4 -- \
	robust gated 100 300 50 <&5 >&6 &
say()
{
	echo "$1" >&3
	read -r answer <&4
	echo "$1 $answer"
}
read -r line <&6
say enable
echo go >&5
read -r line <&6
say nonsense
say ping
say disable
echo go >&5
wait $!
echo "status $?"
"""


def control():
    @checked("--control: a shell with fifos, one region, an unknown word")
    def _():
        unlink(REPORT)
        for name in ("ctl", "ack", "in", "out"):
            os.mkfifo("/tmp/" + name)
        p = subprocess.run(["sh", "-c", CONTROLLER], capture_output=True, text=True, timeout=100,
                           stdin=subprocess.DEVNULL, check=False)
        want = "enable ack\nnonsense ack\nping ack\ndisable ack\nstatus 0\n"
        if p.stdout != want:
            return f"{p.stdout}{p.stderr}"
        if p.stderr.count("\n") != 1 or "'nonsense'" not in p.stderr:
            return f"not one line about the unknown word: {p.stderr}"
        low, high = completed(load()["runs"][0])
        return None if (low, high) == (300, 300) else f"[{low}, {high}] faults in the region"

    @checked("--control: a controller that is gone")
    def _():
        unlink(REPORT)
        ctl, there = os.pipe()
        here, ack = os.pipe()
        os.write(there, b"enable\n")
        os.close(there)
        os.close(here)
        status, _, err = fault("--json", "-o", REPORT, "--control", f"fd:{ctl},{ack}", "--", "sh",
                               "-c", f"sleep 1; {HELPER} touch 200", pass_fds=(ctl, ack))
        os.close(ctl)
        os.close(ack)
        high = completed(load()["runs"][0])[1]
        return None if not status and not err and high >= 200 else \
            f"status {status}, {high} faults: {err}"

    @checked("a command that opens a region and dies in it")
    def _():
        unlink(REPORT)
        status, _, err = fault("--json", "-o", REPORT, "--", "sh", "-c",
                               f"{HELPER} enable-and-die; {HELPER} touch 100; exit 3")
        low, high = completed(load()["runs"][0])
        return None if status == 3 and high >= 164 else f"status {status}, [{low}, {high}]: {err}"

    @checked("two benches at once: their regions, not their start")
    def _():
        unlink(REPORT)
        status, out, err = fault("--exact", "--json", "-o", REPORT, "--", "sh", "-c",
                                 "for n in 1 2; do mmscope bench touch --size 2M --repeat 2 --json"
                                 " || exit 8 & done; wait")
        run = load()["runs"][0]
        low, high = completed(run)
        if status or err or len(out.splitlines()) != 2:
            return f"status {status}: {out} {err}"
        pages = [sum([r["pages"]] * len(r["touch_ns"])) for r in map(strict, out.splitlines())]
        return None if low == high and sum(pages) <= low < usage(run) else \
            f"[{low}, {high}] faults, {pages} pages, rusage {usage(run)}"


def attach_time(exact):
    if exact not in ATTACHING:
        compare(FIRST, 0, exact)    # what is read first takes longer
        compare(FIRST, 0, exact)
    return ATTACHING[exact]


def exact():
    forks = sys.argv[2]
    programs = (*PROGRAMS, ([HELPER, "forks", forks], 0)) if forks != "0" else PROGRAMS[:1]
    nothing_missed(f"threads, jobs, exec chains, vfork, clone, a crash, {forks} forks, python3",
                   TASKS + programs, True)


def default():
    nothing_missed("threads, jobs, exec chains, vfork, clone, a crash", TASKS, False)


GROUPS = {
    "exact": exact,
    "default": default,
    "killed": lambda: killed(attach_time(False), []),
    "killed-exact": lambda: killed(attach_time(True), ["--exact"]),
    "interrupted": lambda: interrupted(attach_time(False), []),
    "signals": lambda: signals([]),
    "statuses": statuses,
    "output": output,
    "hostile": hostile,
    "timed": timed,
    "control": control,
}

for group in sys.argv[1].split(","):
    GROUPS[group]()
