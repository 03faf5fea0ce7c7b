# SPDX-License-Identifier: GPL-2.0-only
"""Run the cases of rss.c in a guest, and read what mmscope fault and smaps said of them."""
import json
import os
import subprocess

from report import Report

TREE = os.environ.get("MMSCOPE_TREE", ".")
TMP = os.environ.get("TMPDIR", "/tmp")
LIB = os.path.join(TREE, "tests/vm/lib")
KERNELS = ("6.1", "6.12", "7.2", "7.3")
PAGES_OF_A_TABLE = 512


class Case:
    """One run: its name, the tracer's options, and what both sides said."""

    def __init__(self, name, options):
        self.name, self.options = name, options
        self.status, self.bench, self.report, self.said = None, {}, None, []

    def problem(self):
        """Why nothing can be said of it."""
        if self.status != 0 or not self.report or self.bench.get("error"):
            return [f"status {self.status}", self.bench.get("error"), *self.said]
        return []

    def value(self, name):
        """A number without labels, or the sum over them; None when it is unavailable."""
        if name in self.report.unavailable:
            return None
        return sum(self.report.counters.get(name, {}).values())

    def holds(self, name):
        """The histogram of a metric, all its labels together: size -> number."""
        sizes = {}
        for h in self.report.histograms.get(name, {}).values():
            for size, n in h.buckets.items():
                sizes[size] = sizes.get(size, 0) + n
        return sizes

    def skip(self):
        """Lost runs are in the report, but no number is exact then; with --exact none are."""
        lost = self.report.lost() if self.report and "--exact" not in self.options else 0
        return self.bench.get("skip") or (f"the kernel lost {lost} runs" if lost else "")

    def inferred(self, name):
        return any(n == name for n, _labels in self.report.inferred)


def build():
    subprocess.run(["cc", "-std=gnu11", "-static", "-O1", "-pthread", "-Wall", "-Wextra",
                    "-Werror", "-o", f"{TMP}/rss", f"{LIB}/rss.c"], check=True)


def boot(kernel, groups):
    """One boot; groups of (options, cases). Returns the cases that ran, and the guest's error."""
    image = f"{TMP}/swap.img"
    with open(image, "wb") as f:
        f.truncate(16 << 20)
    script = "\n".join(f"sh /run/rss_guest.sh '{options}' {' '.join(names)}"
                       for options, names in groups) + "\n"
    with open(f"{TMP}/rss_all.sh", "w") as f:
        f.write("mkdir -p /dev/shm; mount -t tmpfs tmpfs /dev/shm\n" + script)
    p = subprocess.run(
        [os.environ["MMSCOPE"], "vm", "--kernel", kernel, "--numa", "2", "--disk", image,
         "--timeout", "900", "--copy", f"{TMP}/rss:/usr/bin/rss",
         "--copy", f"{LIB}/rss_guest.sh:/run/rss_guest.sh",
         "--copy", f"{TMP}/rss_all.sh:/run/rss_all.sh", "--", "sh", "/run/rss_all.sh"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    cases = read(p.stdout.splitlines(), [o for o, names in groups for _ in names])
    wrong = []
    if p.returncode or len(cases) != sum(len(names) for _o, names in groups):
        wrong = [f"status {p.returncode}, {len(cases)} cases", *p.stderr.splitlines()[-20:]]
    return cases, wrong


def read(lines, options):
    cases, where, text = [], "", []
    for line in [*lines, "@case"]:
        word = line.split()
        if word[:1] == ["@case"]:
            if cases and text:
                cases[-1].report = Report([json.loads("\n".join(text))])
            if len(word) == 2:
                cases.append(Case(word[1], options[len(cases)]))
            where, text = "case", []
        elif word[:1] == ["@status"]:
            cases[-1].status, where = int(word[1]), "log"
        elif line == "@report":
            where = "report"
        elif where == "report":
            text.append(line)
        elif where == "case" and line.startswith("{"):
            cases[-1].bench = json.loads(line)
        elif cases:
            cases[-1].said.append(line)
    return cases
