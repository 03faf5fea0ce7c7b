# SPDX-License-Identifier: GPL-2.0-only
"""Run a Python script in guests of several kernels; each line of JSON it prints is a result.

The guest needs Python and its library, packed once, and a few small programs.
"""
import compileall
import json
import os
import py_compile
import shutil
import subprocess
import sys
import time

from tap import result

BINARY = os.environ["MMSCOPE"]
TMP = os.environ["TMPDIR"]
LIB = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.realpath("/usr/bin/python3")   # the distribution's: it is a workload, too
LIBRARY = "/usr/lib/" + os.path.basename(PYTHON)
UNUSED = ("__pycache__", "asyncio", "concurrent", "config-*", "ctypes", "curses", "dbm",
          "dist-packages", "distutils", "email", "ensurepip", "html", "http", "idlelib",
          "lib-dynload", "lib2to3", "logging", "multiprocessing", "pydoc_data", "sqlite3",
          "test", "tkinter", "unittest", "urllib", "venv", "wsgiref", "xml", "xmlrpc", "zoneinfo")

def compiled(program, *options, name=None, linked="-static"):
    """A program of lib/ in TMP, or None if this machine cannot build it."""
    path = f"{TMP}/{name or program}"
    p = subprocess.run(["cc", linked, "-O1", *options, "-o", path, f"{LIB}/{program}.c"],
                       stderr=subprocess.DEVNULL if options[:1] == ("-m32",) else None, check=False)
    return None if p.returncode else path


def ext4(name, size):
    """An image of that file system in TMP: options for a VM, which has it as /dev/vda."""
    image = f"{TMP}/{name}.img"
    with open(image, "wb") as f:
        f.truncate(size)
    # Those of an administrator are not on everybody's path.
    mke2fs = shutil.which("mke2fs", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    # Everything is written now: nothing is left to be initialised later.
    subprocess.run([mke2fs, "-q", "-F", "-t", "ext4", "-E",
                    "lazy_itable_init=0,lazy_journal_init=0", image],
                   stdin=subprocess.DEVNULL, check=True)
    return "--module", "ext4", "--disk", image


def library():
    """As much of Python's library as the guest needs, compiled."""
    shutil.copytree(LIBRARY, f"{TMP}/library", ignore=shutil.ignore_patterns(*UNUSED))
    os.mkdir(f"{TMP}/library/lib-dynload")
    # Packing loses the times of files: the compiled ones must not depend on them.
    if PYTHON == os.path.realpath(sys.executable):
        compileall.compile_dir(f"{TMP}/library", quiet=2, invalidation_mode=py_compile.
                               PycInvalidationMode.UNCHECKED_HASH)
    else:
        subprocess.run([PYTHON, "-m", "compileall", "-qq", "--invalidation-mode",
                        "unchecked-hash", f"{TMP}/library"], check=False)


def run(kernel, script, args=(), copies=(), vm=()):
    """The script in a guest; a line of JSON is a result, or a note."""
    argv = [BINARY, "vm", "--kernel", kernel, "--timeout", "1800", *vm]
    for copy in (PYTHON, f"{TMP}/library:{LIBRARY}", *copies,
                 *(f"{LIB}/{name}.py:/root/{name}.py" for name in (script, "robust_lib"))):
        argv += ["--copy", copy]
    argv += ["--", "sh", "-c", f"exec {PYTHON} -ESs /root/{script}.py {' '.join(args)}"]
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
            result(f"{kernel}: {r['name']}", r["problem"], r.get("skip"))
        errors = p.stderr.read()
        status = p.wait()
    print(f"# {kernel}: {time.monotonic() - started:.0f} s")
    result(f"{kernel}: the guest ran to its end",
           f"status {status}: {errors[-2000:]}" if status or not results else None)
