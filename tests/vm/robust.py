#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1500
"""mmscope fault misses nothing, survives signals, leaves nothing, and says what is wrong.

The tests run inside a guest of each kernel (lib/robust_guest.py); this side
boots them, and asks `probes` about files that were brought back from one.
"""
import compileall
import json
import os
import py_compile
import re
import shutil
import subprocess
import sys
import time

TREE = os.environ.get("MMSCOPE_TREE", ".")
BINARY = os.environ["MMSCOPE"]
TMP = os.environ["TMPDIR"]
LIB = os.path.join(TREE, "tests/vm/lib")
SOME = "exact,killed-exact"
MOST = SOME + ",more,default,signals,control"
ALL = MOST + ",killed,statuses,output,hostile,timed"
# Kernel, groups of tests done there, short-lived children.
KERNELS = (("7.3", ALL, 5000), ("6.1", MOST, 1000), ("7.2", SOME, 0), ("6.12", SOME, 0))
PYTHON = os.path.realpath("/usr/bin/python3")   # the distribution's: it is a workload, too
LIBRARY = "/usr/lib/" + os.path.basename(PYTHON)
UNUSED = ("__pycache__", "asyncio", "concurrent", "config-*", "ctypes", "curses", "dbm",
          "dist-packages", "distutils", "email", "ensurepip", "html", "http", "idlelib",
          "lib-dynload", "lib2to3", "logging", "multiprocessing", "pydoc_data", "sqlite3",
          "test", "tkinter", "unittest", "urllib", "venv", "wsgiref", "xml", "xmlrpc", "zoneinfo")

count = 0
failed = False


def result(name, problem=None):
    global count, failed
    count += 1
    failed |= bool(problem)
    for line in str(problem or "").splitlines():
        print("# " + line)
    print(f"{'not ok' if problem else 'ok'} {count} - {name}")
    sys.stdout.flush()


def build():
    """The helper, and as much of Python's library as the guest needs, compiled."""
    subprocess.run(["cc", "-static", "-O1", "-pthread", "-Wall", "-Wextra", "-Werror",
                    "-o", f"{TMP}/robust", f"{LIB}/robust.c"], check=True)
    shutil.copytree(LIBRARY, f"{TMP}/library", ignore=shutil.ignore_patterns(*UNUSED))
    os.mkdir(f"{TMP}/library/lib-dynload")
    # Packing loses the times of files: the compiled ones must not depend on them.
    if PYTHON == os.path.realpath(sys.executable):
        compileall.compile_dir(f"{TMP}/library", quiet=2, invalidation_mode=py_compile.
                               PycInvalidationMode.UNCHECKED_HASH)
    else:
        subprocess.run([PYTHON, "-m", "compileall", "-qq", "--invalidation-mode",
                        "unchecked-hash", f"{TMP}/library"], check=False)


def guest(kernel, groups, children):
    copies = [f"{TMP}/robust:/usr/bin/robust", PYTHON, f"{TMP}/library:{LIBRARY}",
              f"{LIB}/robust_guest.py:/root/robust_guest.py",
              f"{LIB}/robust_lib.py:/root/robust_lib.py"]
    copies += [os.path.realpath(shutil.which(tool)) + f":/usr/bin/{tool}"
               for tool in ("sqlite3",)]
    argv = [BINARY, "vm", "--kernel", kernel, "--timeout", "900"]
    for copy in copies:
        argv += ["--copy", copy]
    argv += ["--get", f"/sys/kernel/btf/vmlinux:{TMP}/{kernel}.btf",
             "--get", f"/proc/kallsyms:{TMP}/{kernel}.kallsyms"]
    argv += ["--", "sh", "-c",
             f"exec {PYTHON} -ESs /root/robust_guest.py {groups} {children}"]
    started = time.monotonic()
    results = 0
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as p:
        for line in p.stdout:
            try:
                r = json.loads(line)
            except ValueError:
                r = {"note": f"? {line.rstrip()}"}
            if "note" in r:
                print(f"# {kernel}: {r['note']}")
                continue
            results += 1
            result(f"{kernel}: {r['name']}", r["problem"])
        errors = p.stderr.read()
        status = p.wait()
    print(f"# {kernel}: {time.monotonic() - started:.0f} s")
    result(f"{kernel}: the guest ran to its end",
           f"status {status}: {errors[-2000:]}" if status or not results else None)


# ---- probes about files ----

def probes(name, args, status, *patterns):
    p = subprocess.run([BINARY, "probes", *args], stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, timeout=60, check=False)
    wrong = []
    if p.returncode != status:
        wrong.append(f"status {p.returncode}, not {status}")
    if status == 4 and (p.stdout or not re.fullmatch(r"mmscope: [^\n]+\n", p.stderr)):
        wrong.append("not one line on stderr alone")
    wrong += [f"no '{x}'" for x in patterns if not re.search(x, p.stdout + p.stderr, re.M)]
    result(f"probes: {name}", "\n".join(wrong + [p.stdout, p.stderr]) if wrong else None)


def write(name, data):
    path = os.path.join(TMP, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def files():
    for kernel in ("7.3", "6.1"):
        installs = "do_set_pte" if kernel == "6.1" else "set_pte_range"
        probes(f"BTF of {kernel}", ["--btf", f"{TMP}/{kernel}.btf"], 0, installs)
        probes(f"BTF and kallsyms of {kernel}", ["--btf", f"{TMP}/{kernel}.btf", "--kallsyms",
               f"{TMP}/{kernel}.kallsyms"], 0, "^fault entry +fentry +handle_mm_fault", installs)
    with open(f"{TMP}/7.3.btf", "rb") as f:
        btf = f.read()
    with open(f"{TMP}/7.3.kallsyms") as f:
        symbols = f.read().splitlines()
    good = f"{TMP}/7.3.btf"
    damage = (("truncated header", btf[:20]), ("truncated types", btf[:len(btf) // 2]),
              ("truncated by a byte", btf[:-1]), ("empty", b""), ("text", b"no BTF\n" * 99),
              ("zeros", bytes(4096)), ("broken types", btf[:24] + b"\xff" * 64 + btf[88:]))
    for name, data in damage:
        probes(f"BTF: {name}", ["--btf", write("damaged", data)], 4, "damaged")
    probes("BTF: missing file", ["--btf", f"{TMP}/none"], 4, "none")
    probes("BTF: a directory", ["--btf", TMP], 4)
    probes("kallsyms: missing file", ["--btf", good, "--kallsyms", f"{TMP}/none"], 4, "none")
    probes("kallsyms: a directory", ["--btf", good, "--kallsyms", TMP], 4)
    probes("kallsyms: empty", ["--btf", good, "--kallsyms", write("sym", b"")], 4, "sym")
    probes("kallsyms: not symbols", ["--btf", good, "--kallsyms", write("sym", b"\xff\n" * 99)], 4)

    def crafted(name, change, status, *patterns):
        lines = []
        for line in symbols:
            words = line.split()
            lines += change(line, words) if words[2] == "set_pte_range" else [line]
        path = write("sym", "\n".join(lines).encode() + b"\n")
        probes(name, ["--btf", good, "--kallsyms", path], status, *patterns)

    def plus(suffix):
        return lambda line, words: [line, line + suffix]

    for suffix in (".isra.0", ".constprop.0", ".part.0"):
        crafted(f"only {suffix}", lambda line, words, suffix=suffix: [line + suffix], 0,
                r"^PTE install +unavailable .*only as set_pte_range" + re.escape(suffix),
                r"^  ptes_installed")
        crafted(f"plain and {suffix}", plus(suffix), 0,
                r"^PTE install +fentry .*also as set_pte_range" + re.escape(suffix))
    crafted("plain and .cold", plus(".cold"), 0, r"^PTE install +fentry +set_pte_range *$")
    crafted("two of the same name", lambda line, words: [line, line], 0,
            r"^PTE install +unavailable .*2 functions of this name")
    path = write("sym", "\n".join(x for x in symbols
                                  if x.split()[2] != "handle_mm_fault").encode() + b"\n")
    probes("a symbol that is in BTF only", ["--btf", good, "--kallsyms", path], 3,
           "handle_mm_fault: no symbol: inlined or not built")

    p = subprocess.run([BINARY, "probes", "--kernel", "6.12"], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=120, check=False)
    result("probes --kernel 6.12", None if not p.returncode and
           re.search(r"^fault entry +fentry +handle_mm_fault", p.stdout, re.M) and
           re.search(r"^Memory of the maps", p.stdout, re.M)
           else f"status {p.returncode}: {p.stdout}{p.stderr}")


build()
# By hand: robust.py 7.3=output,control 6.1 probes
chosen = dict((word.split("=") + [None])[:2] for word in sys.argv[1:])
for version, parts, forks in KERNELS:
    if not chosen or version in chosen:
        guest(version, chosen.get(version) or parts, forks)
if not chosen or "probes" in chosen:
    files()
print(f"1..{count}")
sys.exit(failed)
