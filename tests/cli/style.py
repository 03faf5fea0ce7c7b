#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What every file of the tree keeps to, whatever formatter wrote it."""
import os
import re
import sys

TREE = os.environ.get("MMSCOPE_TREE", ".")
SKIP_DIRS = {".git", "build"}
NO_LICENCE_LINE = (".gitignore", "LICENSE", ".md", ".json", ".txt", ".patch")
SOURCE = re.compile(r"(\.(c|h|sh|py)|^Makefile|^tests/run|^\.ci/run)$")
ENDING_TEXT = re.compile(r'^.{0,80}"[^"]*"[,;) }:?]*$')
LONG_FILE = 600     # about 500 is the aim
FORGOTTEN = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")

problems = {}
names = ("licence line", "whitespace", "width", "indentation", "length", "unfinished", "text",
         "execute permission")


def problem(kind, path, line, what):
    where = f"{path}:{line}" if line else path
    problems.setdefault(kind, []).append(f"{where}: {what}")


def files():
    for directory, subdirectories, found in os.walk(TREE):
        subdirectories[:] = sorted(set(subdirectories) - SKIP_DIRS)
        for name in sorted(set(found) - SKIP_DIRS):     # .git of a work tree is a file
            path = os.path.join(directory, name)
            if os.path.islink(path):
                continue
            yield os.path.relpath(path, TREE), path


def golden(path):
    """What tests compare byte by byte is as it is."""
    return path.startswith(("tests/golden/", "tests/data/"))


def check(path, full):
    with open(full, "rb") as f:
        data = f.read()
    if golden(path):
        return
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        problem("text", path, 0, f"not UTF-8 at byte {e.start}")
        return
    if path == "LICENSE" or not text:
        return
    lines = text.split("\n")
    if lines.pop():
        problem("whitespace", path, len(lines) + 1, "no newline at the end of the file")
    if not path.endswith(NO_LICENCE_LINE) and not any(
            "SPDX-License-Identifier: GPL-2.0-only" in line for line in lines[:2]):
        problem("licence line", path, 0, "no SPDX line at the top")
    script = lines[:1] and lines[0].startswith("#!")
    if script and not os.access(full, os.X_OK):
        problem("execute permission", path, 0, "a script that cannot be executed")
    source = SOURCE.search(path)
    if source and len(lines) > LONG_FILE:
        problem("length", path, 0, f"{len(lines)} lines")
    tabs = path.endswith((".c", ".h", ".sh"))
    quoted = False      # inside a here-document or a string of a script
    for number, line in enumerate(lines, 1):
        # An empty line of a patch's context is a blank.
        if line != line.rstrip() and not (path.endswith(".patch") and line == " "):
            problem("whitespace", path, number, "trailing white space")
        wide = line.expandtabs(8)
        # A text that people search for is not broken: the line may end with it.
        if source and len(wide) > 100 and not ENDING_TEXT.search(wide):
            problem("width", path, number, f"{len(wide)} columns")
        if source and FORGOTTEN.search(line):
            problem("unfinished", path, number, line.strip())
        if path.endswith(".sh") and "<<" in line:
            quoted = True
        if tabs and not quoted and re.match(r" {8}| +\t", line):
            problem("indentation", path, number, "spaces where a tab belongs")


count = 0
for relative, absolute in files():
    check(relative, absolute)
    count += 1

for i, kind in enumerate(names, 1):
    found = problems.get(kind, [])
    print(f"{'not ok' if found else 'ok'} {i} - {kind}")
    for entry in found:
        print(f"# {entry}")
print(f"# {count} files")
print(f"1..{len(names)}")
sys.exit(1 if problems or not count else 0)
