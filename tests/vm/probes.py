#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 600
"""mmscope probes about files that were brought from guests, whole and damaged."""
import os
import re
import subprocess

from guest import BINARY, TMP, result
import tap


def fetch(kernel):
    p = subprocess.run([BINARY, "vm", "--kernel", kernel, "--get",
                        f"/sys/kernel/btf/vmlinux:{TMP}/{kernel}.btf", "--get",
                        f"/proc/kallsyms:{TMP}/{kernel}.kallsyms", "--", "true"],
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    result(f"{kernel}: BTF and symbols", f"status {p.returncode}: {p.stderr}" if p.returncode
           else None)


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


for version in ("7.3", "6.1"):
    fetch(version)
files()
tap.finish()
