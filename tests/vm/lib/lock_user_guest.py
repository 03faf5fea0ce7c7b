# SPDX-License-Identifier: GPL-2.0-only
"""In a guest: stacks that go on in user space, of processes that have ended by then."""
import os
import re
import signal
import subprocess
import time

from lock_report import REPORT, counts, lock, rows, sums
from robust_lib import note, result, strict, wait_until

TRIES = 3
MAPPED = 2000       # on each CPU, which is more than its ring has room for
# Of the same program at two places, of one that becomes another, and of a copy without
# symbols: what each waits for.
ROUNDS = {"first": 3, "second": 5, "before": 2, "other": 7, "bare": 4}
KERNEL = r"(?:[^;\[\]]+;)*"


def stacks(run):
    """{stack: waits} of those for the file"""
    return {text: n for text, n in rows(run, "stack").items() if text.endswith(";[inode write]")}


def waits(told, comm, frames):
    """Of stacks that have these frames, from main or what called it on, and no others."""
    form = re.compile(rf"{comm};(?:[^;]*;)*{';'.join(frames)};{KERNEL}\[inode write\]")
    return sum(n for text, n in told.items() if form.fullmatch(text))


def names(prefix):
    return ["main", *(f"{prefix}_{x}" for x in "abc"), "syscall"]


def lost_runs(run):
    return sum(p.get("misses") or 0 for p in run["trust"]["probes"])


def offsets(line):
    """{function: its offset in the file}, as the program says."""
    words = line.split()[1:]
    return dict(zip(words[::2], map(int, words[1::2])))


def in_function(starts, name, text):
    """Is "[bare+0x1234]" within this function? Those that follow start behind it."""
    m = re.fullmatch(r"\[bare\+0x([0-9a-f]+)\]", text)
    at = int(m[1], 16) if m else -1
    return starts[name] < at and not any(starts[name] < n < at for n in starts.values())


def bare_waits(told, starts):
    """Frames of the copy without symbols, by what it says of itself."""
    total = 0
    for text, n in told.items():
        frames = text.split(";")
        if frames[0] != "bare" or "syscall" not in frames:
            continue
        end = frames.index("syscall")
        if all(in_function(starts, name, frame)
               for name, frame in zip("abc", frames[end - 3:end])):
            total += n
    return total


def problems(run, told, starts):
    lost = lost_runs(run)
    wrong = sums(run, 0)
    found = {"lock_user": (waits(told, "lock_user", names("user")),
                           ROUNDS["first"] + ROUNDS["second"] + ROUNDS["before"]),
             "other": (waits(told, "other", names("other")), ROUNDS["other"]),
             "bare": (bare_waits(told, starts), ROUNDS["bare"])}
    for name, (n, want) in found.items():
        if not n <= want <= n + lost:
            wrong.append(f"{name}: {n} waits of {want}, {lost} runs lost")
    wrong += [f"of the other program: {text}" for text in told
              if re.search("^lock_user;.*;other_|^(?:other|bare);.*;user_", text)]
    return wrong


def ended():
    command = ("lock_user {first}; lock_user {second}; lock_user {before} /usr/bin/other {other}; "
               "bare {bare}").format(**ROUNDS)
    p = subprocess.run(["mmscope", "lock", "--user-stacks", "--stacks=4096", "--json", "-o",
                        REPORT, "--", "sh", "-c", command], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=300, check=False)
    if p.returncode or p.stderr:
        raise ValueError(f"status {p.returncode}: {p.stderr}")
    with open(REPORT, "rb") as f:
        run = strict(f.read())["runs"][0]
    told = stacks(run)
    wrong = problems(run, told, offsets(p.stdout.splitlines()[-1]))
    trust = run["trust"]
    frames, unnamed = trust["user_frames"], trust["user_frames_unnamed"]
    brackets = sum(text.count(";[bare+") for text in told)
    if not brackets <= unnamed < frames:
        wrong.append(f"{unnamed} of {frames} frames unnamed, {brackets} of bare")
    if wrong:
        wrong.append(f"stacks {told}")
    note(f"user space: {sum(told.values())} waits, {len(told)} stacks, {unnamed} of {frames} "
         "frames without a name")
    result("stacks of user space of processes that have ended, or are another program",
           "\n".join(wrong))


def living():
    """It runs before it is observed, so that its mappings are read and not told."""
    ctl, ours = os.pipe()
    ack, theirs = os.pipe()
    with subprocess.Popen(["lock_user", "6"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as p:
        p.stdout.readline()
        with subprocess.Popen(["mmscope", "lock", "-p", str(p.pid), "--user-stacks", "--folded",
                               "-o", "/tmp/folded", "--control", f"fd:{ctl},{theirs}"],
                              pass_fds=(ctl, theirs)) as tracer:
            os.write(ours, b"ping\n")
            os.read(ack, 4)
            p.stdin.close()
            p.wait(300)
            status = tracer.wait(300)
    for fd in (ctl, ours, ack, theirs):
        os.close(fd)
    with open("/tmp/folded") as f:
        lines = f.read().splitlines()
    form = re.compile(r"lock_user;(?:[^;]*;)*" + ";".join(names("user")) + ";" + KERNEL +
                      r"\[inode write\] \d+")
    wrong = [] if status == 0 else [f"status {status}"]
    if not any(form.fullmatch(line) for line in lines):
        wrong.append(f"no stack of it: {lines}")
    result("folded stacks of user space, of a process that runs already", "\n".join(wrong))


def spinning():
    """Where a spinlock is waited for: the function that touches pages, and what it calls."""
    for _ in range(TRIES):
        run = lock("mmscope", "bench", "contend", "page_table", "--seconds", "1",
                   options=("--user-stacks", "--stacks=16384"))
        told = rows(run, "stack")
        mine = [text for text in told if text.endswith("[page_table spin]")]
        if mine:
            break
    wrong = [text for text in sums(run, 5) if not text.startswith("map_full")]
    # The innermost frame needs no frame pointer.
    if not any(";work_page_table;asm_exc_page_fault;" in text for text in mine):
        wrong.append(f"no stack from user space: {mine[:5]} of {len(told)}")
    note(f"spinlocks: {len(mine)} stacks of {len(told)}")
    result("stacks of user space where a spinlock is waited for", "\n".join(wrong))


def stat(pid):
    """State, and CPU time in ticks."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        words = f.read().rsplit(")", 1)[1].split()
    return words[0], int(words[11]) + int(words[12])


def rests(pid):
    """A task that was woken does, once it sleeps again and goes on sleeping."""
    before = stat(pid)
    time.sleep(0.5)
    return before[0] == "S" and stat(pid) == before


def overrun():
    """The tracer sleeps while more is mapped than is kept for it, and one more program runs."""
    script = "for i in 3 5 7; do lock_user $i </dev/null; echo; read x; done; exit 0"
    with subprocess.Popen(["mmscope", "lock", "--user-stacks", "--stacks=4096", "--json", "-o",
                           REPORT, "--", "sh", "-c", script], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, bufsize=0) as tracer:
        def wait():
            while tracer.stdout.readline().strip():
                pass

        wait()
        os.kill(tracer.pid, signal.SIGSTOP)
        try:
            subprocess.run(["lock", "executable", str(MAPPED)], check=True)
            tracer.stdin.write(b"\n")
            wait()
        finally:
            os.kill(tracer.pid, signal.SIGCONT)
        # It reads what there is, and has room for what the third one maps.
        if not wait_until(lambda: rests(tracer.pid)):
            raise ValueError("the tracer does not come to rest")
        tracer.stdin.write(b"\n")
        wait()
        tracer.stdin.close()
        status = tracer.wait(300)
    with open(REPORT, "rb") as f:
        run = strict(f.read())["runs"][0]
    told, lost = stacks(run), lost_runs(run)
    wrong = sums(run, 0) + ([] if status == 0 else [f"status {status}"])
    named = waits(told, "lock_user", names("user"))
    unknown = sum(n for text, n in told.items() if "[unknown]" in text)
    # The second has no name, the first and the third have.
    if not named <= 3 + 7 <= named + lost or not unknown <= 5 <= unknown + lost:
        wrong.append(f"{named} named, {unknown} not: {told}")
    note(f"while the tracer sleeps: {named} named, {unknown} not")
    result("what ran while nobody listened has no name, rather than a wrong one",
           "\n".join(wrong))


def unasked():
    """Without it nothing is told, and nothing counted."""
    run = lock("lock_user", "3", options=("--stacks=4096",))
    told = stacks(run)
    wrong = [text for text in told if "user_a" in text or "main" in text]
    if "user_frames" in run["trust"] or not told or not counts(run):
        wrong.append(f"{run['trust']}, {told}")
    result("without --user-stacks there are none", "\n".join(wrong))


def main():
    for case in (ended, living, overrun, spinning, unasked):
        try:
            case()
        except (ValueError, KeyError, IndexError, OSError, subprocess.SubprocessError) as e:
            result(case.__name__, repr(e))


if __name__ == "__main__":
    main()
