#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 180
"""mmscope bench: exact work, the control channel, errors, and leaving no trace.

Page faults are counted with the product's binary: sanitizers have faults of their own.
"""
import ctypes
import json
import os
import resource
import signal
import subprocess
import tempfile
import threading
import time

from tap import finish, result

BINARY = os.environ["MMSCOPE"]
EXACT = os.environ.get("MMSCOPE_STATIC", BINARY)
PAGE = os.sysconf("SC_PAGESIZE")
THP = "/sys/kernel/mm/transparent_hugepage"
REPEAT = 3
DIRECTORY = tempfile.mkdtemp()


def bench(*args, binary=BINARY, **more):
    more.setdefault("stdin", subprocess.DEVNULL)
    more.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([binary, "bench", *args], stderr=subprocess.PIPE, timeout=60,
                          text=True, check=False, **more)


def measured(*args, **more):
    """The JSON object of a run, or the reason why it cannot run here."""
    p = bench(*args, "--json", "--repeat", str(REPEAT), binary=EXACT, **more)
    if p.returncode == 3:
        return None, json.loads(p.stderr)["error"]
    if p.returncode or p.stderr:
        return None, AssertionError(f"status {p.returncode}, stderr {p.stderr}")
    return json.loads(p.stdout), None


def verify(name, args, **expected):
    """Each value equals the JSON's; a number stands for an array of it."""
    d, why = measured(*args)
    if d is None:
        if isinstance(why, AssertionError):
            result(name, why)
        else:
            result(name, skip=why)
        return None
    wrong = []
    for key, value in expected.items():
        have = d.get(key)
        if callable(value):
            good = value(d)
        else:
            good = have == ([value] * REPEAT if isinstance(have, list) else value)
        if not good:
            wrong.append(f"{key} is {have}, not {'as it must be' if callable(value) else value}")
    for key in ("mmap_ns", "touch_ns", "munmap_ns"):
        if len(d[key]) != REPEAT or not all(isinstance(v, int) and v >= 0 for v in d[key]):
            wrong.append(f"{key} is not an array of {REPEAT} times: {d[key]}")
    if d["pages_total"] != REPEAT * d["pages"]:
        wrong.append(f"pages_total is {d['pages_total']}")
    result(name, "\n".join(wrong))
    return d


def test_exact_work():
    pages = (8 << 20) // PAGE
    for how in ("read", "write", "cow"):
        for pattern, n in (("seq", pages), ("random", pages), ("stride=3", -(-pages // 3))):
            for threads in (1, 4):
                verify(f"anon {how} {pattern}, {threads} thread(s): a fault for each page",
                       ["touch", "--touch", how, "--pattern", pattern, "--threads",
                        str(threads), "--oracle"],
                       bench="touch", pages=n, minflt=n * REPEAT, majflt=0, present=n,
                       map_pages=pages)
    verify("anon write without --oracle: the same faults", ["touch"], minflt=pages * REPEAT)
    for backing in ("shmem", "memfd", "sysv_shm"):
        for how in ("read", "write"):
            verify(f"{backing} {how}: a fault for each page",
                   ["touch", "--backing", backing, "--touch", how, "--oracle"],
                   pages=pages, minflt=pages * REPEAT, present=pages)
    for how in ("write", "cow"):
        verify(f"file-private {how}: a fault for each page",
               ["touch", "--backing", "file-private", "--touch", how, "--oracle"],
               pages=pages, minflt=pages * REPEAT, majflt=0, present=pages)
    for backing in ("anon", "file", "file-private", "shmem", "memfd", "sysv_shm"):
        verify(f"{backing} fork: no fault in the parent",
               ["touch", "--backing", backing, "--touch", "fork", "--oracle"],
               pages=pages, minflt=0, majflt=0, present=pages,
               child_minflt=lambda d: d["child_minflt"] > 0)
    verify("one page", ["touch", "--size", str(PAGE), "--oracle"], pages=1, minflt=REPEAT,
           present=1)


def test_fault_around():
    """On tmpfs there are only small folios, so that windows tell the faults."""
    path = "/dev/shm"
    kind = subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True,
                          check=False).stdout.strip()
    if kind != "tmpfs":
        result("fault-around windows", skip="/dev/shm is not a tmpfs")
        return
    env = dict(os.environ, TMPDIR=path)
    for backing in ("file", "file-private"):
        for pattern in ("seq", "random", "stride=5", "stride=16", "stride=100"):
            d, why = measured("touch", "--backing", backing, "--touch", "read", "--pattern",
                              pattern, "--size", str(1037 * PAGE), "--oracle", env=env)
            name = f"{backing} read {pattern}: as many faults as windows"
            if d is None:
                result(name, why)
                continue
            result(name, None if d["minflt"] == sum(d["windows"]) and
                   0 < d["windows"][0] <= d["pages"] else f"{d['minflt']} and {d['windows']}")


def test_thp():
    if os.geteuid():
        result("huge pages", skip="not root")
        return
    pmd = int(open(f"{THP}/hpage_pmd_size").read()) if os.path.isdir(THP) else 0
    for backing, switch in (("anon", "enabled"), ("shmem", "shmem_enabled"),
                            ("memfd", "shmem_enabled")):
        for size in (65536, pmd):
            name = f"{backing} with folios of {size >> 10} KiB"
            args = ["touch", "--backing", backing, "--thp", str(size), "--oracle"]
            before = switches()
            d, why = measured(*args)
            if d is None:
                offered = (size == pmd and os.path.exists(f"{THP}/{switch}")) or \
                    os.path.exists(f"{THP}/hugepages-{size >> 10}kB/{switch}")
                writable = os.access(f"{THP}/{switch}", os.W_OK)
                if offered and writable:
                    result(name, why)
                else:
                    result(name, skip=why)
                continue
            key = "anon_huge_kib" if backing == "anon" else "shmem_pmd_kib"
            wrong = []
            # Memory may be too fragmented for a large folio now and then: then there are
            # more faults, never fewer.
            least = REPEAT * (8 << 20) // size
            if not least <= d["minflt"] < d["pages_total"] // 2:
                wrong.append(f"{d['minflt']} faults for at least {least}")
            if d["minflt"] == least and size == pmd and d[key] != [8192] * REPEAT:
                wrong.append(f"{key} is {d[key]}")
            if d["present"] != [d["pages"]] * REPEAT or d["pages"] != (8 << 20) // PAGE:
                wrong.append(f"present {d['present']} of {d['pages']}")
            if int(d["addr"][0], 16) % size:
                wrong.append(f"not aligned: {d['addr'][0]}")
            if switches() != before:
                wrong.append("the switches were not put back")
            result(name, "\n".join(wrong))


def switches():
    found = {}
    for directory, _, files in os.walk(THP):
        for name in files:
            if name.endswith("enabled"):
                with open(os.path.join(directory, name), encoding="ascii") as f:
                    found[os.path.join(directory, name)] = f.read()
    return found


def test_eager():
    for args, n in ((["arraymap", "--touch", "none"], 0),
                    (["arraymap", "--touch", "one"], 1),
                    (["arraymap", "--touch", "fork"], 2048),
                    (["arraymap", "--touch", "read"], 2048),
                    (["arraymap", "--touch", "write", "--populate"], 2048),
                    (["arraymap", "--touch", "none", "--populate"], 0)):
        def minflt_of(d, touched=n):
            # Populated by mmap: none; lazily: none untouched, at most one a page.
            most = d["map_pages"] * REPEAT if touched or "--populate" in args else 0
            return 0 <= d["minflt"] <= most
        present = {"present": 2048} if n > 1 or "--populate" in args else {}
        verify("bench " + " ".join(args), args + ["--oracle", "--size", str(2048 * PAGE)],
               pages=n, map_pages=2048, minflt=minflt_of, **present)
    n = 2 + 2 * (1 << 20) // PAGE
    verify("bench ringbuf: all pages present, no fault", ["ringbuf", "--oracle"], pages=n,
           minflt=0, present=n)
    verify("bench io_uring: all pages present, no fault", ["io_uring", "--oracle"], minflt=0,
           pages=lambda d: d["pages"] >= (256 * 64 + 512 * 16) // PAGE,
           present=lambda d: d["present"] == [d["pages"]] * REPEAT)


class Controller:
    """The far end of a control channel; notes what it is told and when."""

    def __init__(self, ack=b"ack\n", with_ack=True):
        self.ctl, far_ctl = os.pipe()
        far_ack, self.ack = os.pipe()
        self.far = [far_ctl, far_ack]
        self.answer = ack
        self.said = []
        self.minflt = []
        self.text = f"{far_ctl},{far_ack}" if with_ack else f"{far_ctl}"

    def start(self, *args, **env):
        p = subprocess.Popen([EXACT, "bench", *args, "--json"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             pass_fds=self.far,
                             env=dict(os.environ, MMSCOPE_CONTROL_FD=self.text, **env))
        for fd in self.far:
            os.close(fd)
        return p

    def serve(self, p):
        """Answer until the workload closes its end; note its faults while it waits."""
        data = b""
        while chunk := os.read(self.ctl, 4096):
            data += chunk
            while b"\n" in data:
                line, data = data.split(b"\n", 1)
                time.sleep(0.1)
                with open(f"/proc/{p.pid}/stat", encoding="ascii") as f:
                    self.minflt.append(int(f.read().rsplit(")", 1)[1].split()[7]))
                self.said.append(line.decode())
                if self.answer:
                    os.write(self.ack, self.answer)
        self.close()

    def close(self):
        os.close(self.ctl)
        os.close(self.ack)


def test_control():
    for args, regions in ((["touch", "--repeat", "4"], 1),
                          (["touch", "--repeat", "4", "--threads", "3"], 1),
                          (["touch", "--repeat", "4", "--oracle"], 1),
                          (["touch", "--repeat", "4", "--touch", "cow"], 4),
                          (["touch", "--repeat", "4", "--touch", "fork"], 4),
                          (["touch", "--repeat", "4", "--backing", "file", "--touch", "read"], 1)):
        for answer in (b"ack\n", b"ack\n\0"):
            c = Controller(answer)
            p = c.start(*args)
            c.serve(p)
            out, errors = p.communicate(timeout=60)
            name = f"bench {' '.join(args)}: the controller sees the region only, {answer}"
            if p.returncode or errors:
                result(name, f"status {p.returncode}, {errors}")
                continue
            d = json.loads(out)
            seen = sum(c.minflt[1::2]) - sum(c.minflt[0::2])
            wrong = []
            if c.said != ["enable", "disable"] * regions:
                wrong.append(f"it was told {c.said}")
            if seen != d["minflt"]:
                wrong.append(f"{seen} faults between the commands, {d['minflt']} reported")
            result(name, "\n".join(wrong))

    c = Controller(None, with_ack=False)
    p = c.start("touch")
    c.serve(p)
    p.communicate(timeout=60)
    result("without ACK nothing is waited for", None if p.returncode == 0 and
           c.said == ["enable", "disable"] else f"{p.returncode} {c.said}")

    def one_warning(name, p):
        out, errors = p.communicate(timeout=60)
        good = p.returncode == 0 and len(errors.splitlines()) == 1 and \
            "MMSCOPE_CONTROL_FD" in json.loads(errors)["warning"] and \
            json.loads(out)["pages"] > 0
        result(name, None if good else f"status {p.returncode}, {errors}")

    c = Controller()
    p = c.start("touch")
    c.close()
    one_warning("a controller that is gone from the start", p)

    c = Controller()
    p = c.start("touch", "--touch", "cow")
    os.read(c.ctl, 7)
    c.close()
    one_warning("a controller that dies before it answers", p)

    c = Controller(b"nak\n")
    p = c.start("touch")
    thread = threading.Thread(target=c.serve, args=(p,))
    thread.start()
    one_warning("a controller that answers nonsense", p)
    thread.join()


def one_line(name, p, status, word=""):
    lines = p.stderr.splitlines()
    good = p.returncode == status and len(lines) == 1 and not p.stdout and word in lines[0] and \
        "mmscope: " in lines[0]
    result(name, None if good else f"status {p.returncode}, stdout {p.stdout}, "
           f"stderr {p.stderr}")


def test_environment():
    r, w = os.pipe()
    for name, value in (("MMSCOPE_CONTROL_FD", "x"), ("MMSCOPE_CONTROL_FD", ""),
                        ("MMSCOPE_CONTROL_FD", f"{w},"), ("MMSCOPE_CONTROL_FD", "999"),
                        ("MMSCOPE_CONTROL_FD", f"{w},999"), ("MMSCOPE_CONTROL_FD", f"{r}"),
                        ("MMSCOPE_CONTROL_FD", f"{w},{w}"), ("MMSCOPE_VALUES_FD", "x"),
                        ("MMSCOPE_VALUES_FD", "999"), ("MMSCOPE_VALUES_FD", f"{r}"),
                        ("MMSCOPE_VALUES_FD", "1,2")):
        p = bench("touch", pass_fds=(r, w), env={**os.environ, name: value})
        one_line(f"{name}={value.replace(str(w), 'W').replace(str(r), 'R')} is refused", p, 2,
                 name)
    p = bench("touch", "--json", "--repeat", "5", pass_fds=(w,),
              env=dict(os.environ, MMSCOPE_VALUES_FD=str(w)))
    os.close(w)
    with os.fdopen(r) as f:
        lines = [line.split() for line in f.read().splitlines()]
    d = json.loads(p.stdout)
    want = [[k, str(sorted(d[k])[2]), "ns", "lower"] for k in ("mmap_ns", "touch_ns", "munmap_ns")]
    result("MMSCOPE_VALUES_FD gets the medians", None if lines == want else f"{lines}\n{want}")
    r, w = os.pipe()
    p = bench("touch", "--oracle", "--json", "--repeat", "3", pass_fds=(w,),
              env=dict(os.environ, MMSCOPE_VALUES_FD=str(w)))
    os.close(w)
    with os.fdopen(r) as f:
        last = f.read().splitlines()[-1].split()
    most = max(json.loads(p.stdout)["rss_kib"])
    result("with --oracle also the largest RSS", None if most >= 8192 and
           last == ["rss_kib", str(most), "KiB", "lower"] else f"{last}, {most}")
    with open("/dev/full", "wb") as full:
        p = bench("touch", pass_fds=(full.fileno(),),
                  env=dict(os.environ, MMSCOPE_VALUES_FD=str(full.fileno())))
        result("values that cannot be written are an error",
               None if p.returncode == 70 and len(p.stderr.splitlines()) == 1 else p.stderr)
        p = bench("touch", stdout=full)
        one_line("a report that cannot be written is an error", p, 70, "No space left")


def test_bad_input():
    small = os.path.join(DIRECTORY, "small")
    with open(small, "wb") as f:
        f.write(b"x" * PAGE)
    fifo = os.path.join(DIRECTORY, "fifo")
    os.mkfifo(fifo)
    file = ["touch", "--backing", "file"]
    for args, word in (
            ([], "workload"), (["nothing"], "nothing"), (["touch", "--size", "0"], "--size"),
            (["touch", "--size", "5000"], "page size"), (["touch", "--size", "8X"], "--size"),
            (["touch", "--size", "-4K"], "--size"), (["touch", "--size"], "--size"),
            (["touch", "--size", "99999G"], "--size"), (["touch", "--backing", "fil"], "--backing"),
            (["touch", "--backing", "huge"], "--backing"),
            (["touch", "--backing", "gmem", "--thp", "2M"], "--thp"),
            (["touch", "--backing", "hugetlb", "--thp", "2M"], "--thp"),
            (["touch", "--backing", "gmem", "--touch", "cow"], "cow"),
            (["touch", "--touch", "none"], "--touch"), (["touch", "--pattern", "x"], "--pattern"),
            (["touch", "--pattern", "stride=0"], "--pattern"),
            (["touch", "--pattern", "stride="], "--pattern"),
            (["touch", "--pattern", "stride=9999999"], "--pattern"),
            (["touch", "--threads", "0"], "--threads"),
            (["touch", "--threads", "257"], "--threads"),
            (["touch", "--size", str(4 * PAGE), "--threads", "5"], "--threads"),
            (["touch", "--pattern", "stride=2000", "--threads", "3"], "--threads"),
            (["touch", "--repeat", "0"], "--repeat"), (["touch", "--repeat", "1e3"], "--repeat"),
            (["touch", "--thp", "48K"], "--thp"), (["touch", "--thp", str(PAGE)], "--thp"),
            (["touch", "--thp", "16M"], "--thp"), (["touch", "--thp", "0"], "--thp"),
            (["touch", "--backing", "shmem", "--touch", "cow"], "cow"),
            (["touch", "--backing", "file", "--touch", "cow"], "cow"),
            (["touch", "--touch", "fork", "--threads", "2"], "--threads"),
            (["touch", "--path", small], "--path"), (["touch", "--path", ""], "--path"),
            (["touch", "--overwrite"], "--overwrite"), (["touch", "extra"], "extra"),
            (["touch", "--frobnicate"], "--frobnicate"), (["touch", "--json=1"], "--json"),
            (file + ["--touch", "read", "--path", small], "too small"),
            (file + ["--touch", "read", "--path", fifo], "regular file"),
            (file + ["--touch", "read", "--path", DIRECTORY], "regular file"),
            (file + ["--touch", "write", "--size", str(PAGE), "--path", small], "--overwrite"),
            (["arraymap", "--size", "100"], "page size"), (["arraymap", "--touch", "cow"], "cow"),
            (["arraymap", "x"], "x"), (["arraymap", "--size", "4G"], "--size"),
            (["ringbuf", "--size", str(3 * PAGE)], "power of two"),
            (["ringbuf", "--size", "12"], "page size"),
            (["io_uring", "--entries", "0"], "--entries"),
            (["io_uring", "--entries", "32769"], "--entries")):
        shown = " ".join(args).replace(DIRECTORY, "D")
        one_line(f"'bench {shown}' is refused", bench(*args), 2, word)
    p = bench(*file, "--path", os.path.join(DIRECTORY, "no", "such"))
    one_line("a path in no directory", p, 4, "No such file or directory")
    for args in ([], ["touch"], ["arraymap"], ["ringbuf"], ["io_uring"]):
        p = bench(*args, "--help")
        result(f"bench {' '.join(args + ['--help'])}", None if p.returncode == 0 and
               p.stdout.startswith("Usage: mmscope bench") and not p.stderr else p.stderr)


def test_not_permitted():
    try:
        with open("/proc/sys/kernel/unprivileged_bpf_disabled", encoding="ascii") as f:
            disabled = f.read().strip() != "0"
    except OSError:
        disabled = False
    for name in ("arraymap", "ringbuf"):
        if os.geteuid() == 0 and disabled:
            def drop():
                os.setgid(65534)
                os.setuid(65534)
            where = os.path.join(tempfile.mkdtemp(dir="/tmp"), "mmscope")
            subprocess.run(["cp", EXACT, where], check=True)
            os.chmod(os.path.dirname(where), 0o755)
            one_line(f"{name} without permission for bpf(2)",
                     bench(name, binary=where, preexec_fn=drop), 3, "bpf(2)")
            os.unlink(where)
            os.rmdir(os.path.dirname(where))
        else:
            result(f"{name} without permission for bpf(2)",
                   skip="needs root and kernel.unprivileged_bpf_disabled")


def test_files():
    mine = os.path.join(DIRECTORY, "mine")
    text = os.urandom(64 * PAGE)
    with open(mine, "wb") as f:
        f.write(text)
    before = os.stat(mine)
    for backing, how in (("file", "read"), ("file", "fork"), ("file-private", "read"),
                         ("file-private", "write"), ("file-private", "cow"),
                         ("file-private", "fork")):
        d, why = measured("touch", "--backing", backing, "--touch", how, "--path", mine, "--size",
                          str(64 * PAGE))
        with open(mine, "rb") as f:
            same = f.read() == text
        after = os.stat(mine)
        result(f"{backing} {how} leaves an existing file as it is",
               why if d is None else None if same and after.st_mtime_ns == before.st_mtime_ns and
               after.st_ino == before.st_ino else "it changed")
    p = bench("touch", "--backing", "file", "--touch", "write", "--overwrite", "--path", mine,
              "--size", str(32 * PAGE))
    with open(mine, "rb") as f:
        now = f.read()
    # The first byte of each page within the mapping and no other may differ.
    touched = {i for i in range(len(text)) if now[i] != text[i]}
    result("--overwrite changes one byte of each page that is touched",
           None if p.returncode == 0 and len(now) == len(text) and
           touched <= {i * PAGE for i in range(32)} and
           all(now[i * PAGE] == 1 for i in range(32)) else f"{p.stderr} {sorted(touched)[:9]}")
    made = os.path.join(DIRECTORY, "made")
    p = bench("touch", "--backing", "file", "--touch", "write", "--path", made)
    result("a file that bench made is gone afterwards",
           None if p.returncode == 0 and not os.path.exists(made) else p.stderr)
    p = bench("touch", "--backing", "file", "--path", made, preexec_fn=lambda: (
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))))
    one_line("a file that cannot be filled is an error", p, 4, "cannot fill it")
    result("and is removed", "it is there" if os.path.exists(made) else None)


def switchable_size():
    """A folio size for which bench must change a switch here, or 0."""
    if os.geteuid() or not os.path.exists(f"{THP}/hpage_pmd_size"):
        return 0
    with open(f"{THP}/hpage_pmd_size", encoding="ascii") as f:
        pmd = int(f.read())
    for size in (pmd, 65536):
        switch = f"{THP}/hugepages-{size >> 10}kB/enabled"
        if size == pmd and not os.path.exists(switch):
            switch = f"{THP}/enabled"
        if os.access(switch, os.W_OK) and "[madvise]" not in switches()[switch]:
            return size
    return 0


def test_signals():
    """SIGINT in the middle: the file that was made is removed, the switches put back."""
    size = switchable_size()
    made = os.path.join(DIRECTORY, "made")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for what, args in (("file", ["--backing", "file", "--path", made, "--touch", "read"]),
                           ("switches", ["--thp", str(size)])):
            name = f"{number.name} while it runs: {what} put back, killed by the signal"
            if what == "switches" and not size:
                result(name, skip="needs root and a switch to change")
                continue
            before = switches()
            c = Controller()
            kept = signal.signal(number, signal.SIG_DFL)    # nohup ignores one, and so would it
            p = c.start("touch", *args)
            signal.signal(number, kept)
            told = os.read(c.ctl, 16)       # in the region, waiting for our answer
            there = os.path.exists(made) if what == "file" else switches() != before
            p.send_signal(number)
            p.communicate(timeout=60)
            c.close()
            good = told == b"enable\n" and there and p.returncode == -number and \
                not os.path.exists(made) and switches() == before
            result(name, None if good else f"{told} {there} {p.returncode}")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(x) for x in f.read().split()]


def test_child():
    """The child that shares the pages: killed, or left alone by a killed parent."""
    c = Controller()
    p = c.start("touch", "--touch", "cow", "--repeat", "1")
    os.read(c.ctl, 16)
    if not os.path.exists(f"/proc/{p.pid}/task/{p.pid}/children"):
        p.kill()
        p.communicate()
        result("the child that shares the pages", skip="/proc shows no children")
        return
    for child in children(p.pid):
        os.kill(child, signal.SIGKILL)
    thread = threading.Thread(target=c.serve, args=(p,))
    os.write(c.ack, b"ack\n")
    thread.start()
    _, errors = p.communicate(timeout=60)
    thread.join()
    result("a child that is killed is an error",
           None if p.returncode == 70 and "killed" in errors and
           len(errors.splitlines()) == 1 else f"{p.returncode} {errors}")

    c = Controller()
    p = c.start("touch", "--touch", "cow", "--repeat", "1")
    os.read(c.ctl, 16)
    held = children(p.pid)
    p.kill()
    p.communicate()
    c.close()
    deadline = time.monotonic() + 10
    while any(alive(child) for child in held) and time.monotonic() < deadline:
        time.sleep(0.02)
    result("a killed parent leaves no child behind",
           None if len(held) == 1 and not alive(held[0]) else f"{held} still alive")


def test_contend():
    """Processes that collide: one of them is killed, or the one that began them."""
    for who in ("member", "parent"):
        with subprocess.Popen([BINARY, "bench", "contend", "i_mmap_rwsem", "--threads", "3",
                               "--seconds", "600"], stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as p:
            if not os.path.exists(f"/proc/{p.pid}/task/{p.pid}/children"):
                p.kill()
                result("processes that collide", skip="/proc shows no children")
                return
            # From when there are processes on, be they ready or not.
            while not (held := children(p.pid)) and p.poll() is None:
                time.sleep(0.001)
            os.kill(held[-1] if who == "member" else p.pid, signal.SIGKILL)
            _, errors = p.communicate(timeout=60)
        deadline = time.monotonic() + 30
        while any(alive(child) for child in held) and time.monotonic() < deadline:
            time.sleep(0.02)
        good = not any(alive(child) for child in held) and \
            (who == "parent" or (p.returncode == 70 and "ended early" in errors and
                                 len(errors.splitlines()) == 1))
        result(f"processes that collide: the {who} is killed, and all end",
               None if good else f"{p.returncode} {errors} {held}")


def test_no_huge_pages():
    p = bench("contend", "page_table_pmd", "--seconds", "0.1", stdout=subprocess.PIPE,
              preexec_fn=lambda: ctypes.CDLL(None).prctl(41, 1, 0, 0, 0))   # PR_SET_THP_DISABLE
    good = p.returncode == 3 and "there are no huge pages" in p.stderr and not p.stdout and \
        len(p.stderr.splitlines()) == 1
    result("contend without huge pages", None if good else
           f"{p.returncode} {p.stdout} {p.stderr}")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_text():
    p = bench("touch", "--repeat", "3", "--oracle", "--backing", "file-private", "--touch", "read")
    words = ("minimum", "median", "max - min", "2048 touched per repeat", "6144 in 3 repeats",
             "faults of these repeats:", "windows", "mmap ", "touch ", "munmap ")
    missing = [w for w in words if w not in p.stdout]
    longest = max(map(len, p.stdout.splitlines()), default=0)
    result("the text report has its parts and fits 100 columns",
           f"missing {missing}, {longest} columns, {p.stderr}"
           if missing or longest > 100 or p.returncode else None)
    p = subprocess.Popen([BINARY, "bench", "touch"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    p.stdout.close()
    errors = p.stderr.read()
    p.wait()
    result("a reader that has gone is met with silence", errors)


try:
    for test in (test_exact_work, test_fault_around, test_thp, test_eager, test_control,
                 test_environment, test_bad_input, test_not_permitted, test_files, test_signals,
                 test_child, test_contend, test_no_huge_pages, test_text):
        test()
finally:
    subprocess.run(["rm", "-rf", DIRECTORY], check=True)
finish()
