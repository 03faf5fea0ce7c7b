#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""mmscope ab without a kernel: an emulator that only pretends, and boots recorded here.

Wrong usage; what is kept of a comparison that ended early; what --resume goes on with,
and what it refuses.
"""
import fcntl
import json
import os
import signal
import stat
import subprocess
import time

from tap import finish, result

MMSCOPE, TMP = os.environ["MMSCOPE"], os.environ["TMPDIR"]


def place(name):
    return os.path.join(TMP, name)


def write(name, data):
    with open(place(name), "wb") as f:
        f.write(data)
    return place(name)


def emulator(script):
    """The qemu that the next boots get."""
    path = place("bin/qemu-system-x86_64")
    with open(path, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\n" + script)
    os.chmod(path, stat.S_IRWXU)


# As much of a bzImage as tells a kernel from another file: boot protocol 2.10, no version.
image = bytearray(4096)
image[0x1f1], image[0x1fe:0x200], image[0x202:0x206] = 1, b"\x55\xaa", b"HdrS"
image[0x206:0x208] = b"\x0a\x02"
KERNEL = write("bzImage", bytes(image))
LARGE = write("large", b"")
os.truncate(LARGE, 64 << 20)
os.mkdir(place("bin"))
ENV = dict(os.environ, PATH=place("bin") + ":" + os.environ["PATH"],
           MMSCOPE_CACHE=place("cache"))
BASE = ["-A", KERNEL, "-B", KERNEL + " thp=never", "-n", "2"]
CMD = ["--", "mmscope", "bench", "touch", "--size", "1M"]


def ab(*args):
    return subprocess.run([MMSCOPE, "ab", *args], capture_output=True, check=False, env=ENV,
                          cwd=TMP, stdin=subprocess.DEVNULL, timeout=60)


def expect(name, done, status, text, lines=1, out=False):
    problem = None
    if done.returncode != status or text not in done.stderr.decode() or \
            done.stderr.count(b"\n") != lines or bool(done.stdout) != out:
        problem = f"status {done.returncode}, not {status}, or not '{text}' in {lines} lines:\n" \
                  f"{done.stderr.decode()}{done.stdout.decode()[:400]}"
    result(name, problem)


def kept(directory):
    return sorted(os.listdir(place(directory)))


def usage():
    for name, args, text in (
            ("nothing", [], "Give -A SPEC and -B SPEC"),
            ("one kernel", ["-A", "7.2", *CMD], "Give -A SPEC and -B SPEC"),
            ("a blank one", ["-A", "7.2", "-B", " ", *CMD], "Give -A SPEC and -B SPEC"),
            ("a command line without kernel", ["-A", "7.2", "-B", " quiet", *CMD],
             "-B: ' quiet' does not begin with a kernel"),
            ("no command", BASE, "no command: mmscope ab"),
            ("no command after --", [*BASE, "--"], "no command follows"),
            ("no --", [*BASE, "true"], "put -- before the command"),
            ("no boots", [*BASE, "-n", "0", *CMD], "'0' is not within 1 to 1000"),
            ("no runs", [*BASE, "--runs", "0", "--times", "0", *CMD], "leaves nothing to run"),
            ("a primary that is none", [*BASE, "--primary", "x{", *CMD], "--primary: 'x{'"),
            ("a colon in the directory", [*BASE, "-o", "a:b", *CMD], "has a colon in it"),
            ("an unknown option", [*BASE, "--nothing", *CMD], "unknown or ambiguous option"),
            ("nothing to go on with", [*BASE, "--resume", *CMD], "holds no comparison"),
            ("more CPUs than are counted", [*BASE, "--icount", "--cpus", "2", *CMD],
             "counts the instructions of one CPU"),
            ("a domain that is none", [*BASE, "-e", "fault,nosuch", *CMD], "'nosuch' is no domain"),
            ("an option of another domain", [*BASE, "-e", "lock", "--exact", *CMD],
             "--exact: is about faults"),
            ("a file that is not there", [*BASE, "--copy", "missing", *CMD], "--copy: 'missing'"),
            ("an environment that is none", [*BASE, "--env", "NAME", *CMD], "is not NAME=VALUE"),
            ("nodes without memory", [*BASE, "--numa", "32", *CMD], "32 nodes leave less than"),
            # These are found when a guest is made: what was begun is no comparison.
            ("files that need more memory", [*BASE, "-m", "128M", "--copy", LARGE, *CMD],
             "--memory: 128M is too little"),
    ):
        expect(name, ab(*args), 129, text)
        if os.path.exists(place("mmscope-ab")):
            result(f"{name}: leaves nothing behind", kept("mmscope-ab"))
    expect("a kernel that cannot be had", ab("-A", "9.9", "-B", KERNEL, *CMD), 125,
           "no such series is pinned")
    result("leaves nothing behind",
           None if not os.path.exists(place("mmscope-ab")) else kept("mmscope-ab"))
    os.mkdir(place("full"))
    write("full/x", b"")
    expect("a directory with other files", ab(*BASE, "-o", "full", *CMD), 129, "is not empty")
    done = ab("--help")
    result("--help", None if done.returncode == 0 and b"Usage: mmscope ab" in done.stdout and
           not done.stderr else done)


def boots(path, numbers, start):
    """A recording with one boot for each number, started in that order from `start` on."""
    made = place("made.json")
    subprocess.run([MMSCOPE, "record", "-n", "0", "--times", "1", "-o", made, "--", "true"],
                   check=True, capture_output=True)
    with open(made, encoding="utf-8") as f:
        data = json.load(f)
    run = data["runs"][0]
    data["runs"] = [dict(run, boot_id=f"boot-{n}", start_ns=start + n * 10**9) for n in numbers]
    with open(place(path), "w", encoding="utf-8") as f:
        json.dump(data, f)


def resume():
    emulator("echo 'mmscope-test: no such machine' >&2\nexit 1\n")
    here = [*BASE, "-o", "run"]
    expect("a guest that dies", ab(*here, *CMD), 125,
           "boot 1, A", lines=2)
    result("the comparison is kept", None if {"plan", "lock"} <= set(kept("run"))
           and "A.json" not in kept("run") else kept("run"))
    expect("begun anew in the same place", ab(*here, *CMD), 129, "--resume goes on with it")
    again = [*here, "--resume"]
    for name, args, text in (
            ("another A", [*again, "-A", "7.3", *CMD], f"there -A {KERNEL}, here -A 7.3"),
            ("another B", [*again, "-B", KERNEL, *CMD], "there -B "),
            ("another number of boots", [*again, "-n", "3", *CMD],
             "there --boots 2, here --boots 3"),
            ("another number of runs", [*again, "--times", "1", *CMD], "--times 3"),
            ("another memory", [*again, "-m", "512M", *CMD], "--memory"),
            ("another command", [*again, *CMD[:-1], "2M"], "there command 1M, here command 2M"),
            ("a longer command", [*again, *CMD, "x"], "there nothing, here command x"),
            ("a shorter command", [*again, *CMD[:-1]], "there command 1M, here nothing"),
    ):
        expect(f"--resume with {name}", ab(*args), 129, text)

    # Three of four boots: A B B, and the next is A's second.
    boots("run/A.json", [0], 10**18)
    boots("run/B.json", [1, 2], 10**18)
    expect("it goes on where it ended", ab(*again, *CMD), 125, "boot 4, A", lines=2)
    expect("and names what is kept", ab(*again, *CMD), 125, "3 boots are kept in run", lines=2)
    with open(place("run/order"), encoding="utf-8") as f:
        order = [line.split()[:3] for line in f]
    want = [["1", "A", "boot-0"], ["2", "B", "boot-1"], ["3", "B", "boot-2"]]
    result("the order is written down", None if order == want else order)

    emulator("exec sleep 60\n")
    process = subprocess.Popen([MMSCOPE, "ab", *again, *CMD], env=ENV, cwd=TMP,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    time.sleep(0.2)
    until = time.monotonic() + 30
    while not os.path.exists(place("run/boot-4-A.log")) and time.monotonic() < until:
        time.sleep(0.05)
    with open(place("run/lock"), "rb") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(f, fcntl.LOCK_UN)
            result("it holds a lock", "it does not")
        except BlockingIOError:
            result("it holds a lock")
    expect("two at once", ab(*again, *CMD), 129, "is in use by another mmscope ab")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    result("SIGINT ends it by that signal, and what is kept is told",
           None if process.returncode == -signal.SIGINT and not out and
           b"interrupted: 3 of 4 boots are in run, --resume goes on\n" in err
           else (process.returncode, err.decode()))

    # All are there: no boot, only the comparison.
    boots("run/A.json", [0, 3], 10**18)
    expect("with all boots it only compares", ab(*again, "--json", *CMD), 125, "", lines=0,
           out=True)
    done = ab(*again, *CMD)
    result("two boots of the same: cannot tell", None if b"CANNOT TELL" in done.stdout
           and b"2 and 2 boots in blocks" in done.stdout else done.stdout.decode())
    boots("run/A.json", [0, 3, 4], 10**18)
    expect("boots that were not taken in turns", ab(*again, *CMD), 125,
           "boots, 3 of A and 2 of B, that were not taken in turns")
    write("run/A.json", b"{")
    expect("a damaged recording", ab(*again, *CMD), 125, "damaged at byte")


usage()
resume()
finish()
