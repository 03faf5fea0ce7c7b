#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The manual and `--help` tell the same options; `mmscope help CMD` is `mmscope CMD --help`."""
import glob
import os
import re
import subprocess

from tap import finish, result

TREE = os.environ.get("MMSCOPE_TREE", ".")
MMSCOPE = os.environ["MMSCOPE"]
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-[a-zA-Z])(?![\w-])")
ROW = re.compile(r"^  (?:    |(-.), )(--[a-z-]+)(?:\[=\w+\])?(?: \S+)? +\S", re.M)
PROGRAM = {"--help", "-h", "--version"}


def run(*args):
    return subprocess.run([MMSCOPE, *args], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60, check=False)


def names(text):
    """Of the commands, or of the workloads, that a help lists."""
    return re.findall(r"^  ([a-z_]+) +\S", text, re.M)


def helped(*command):
    """The options of a command, and the words that they can be."""
    text = run(*command, "--help").stdout
    options = {word for row in ROW.findall(text) for word in row if word}
    if command == ("bench",):
        for workload in names(text):
            more, words = helped("bench", workload)
            options |= more
            text += "one of " + "|".join(words) + "\n"
        options |= {"-h", "--help"}
    return options, {word for line in re.findall(r"one of (\S+)$", text, re.M)
                     for word in line.split("|")}


class Page:
    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            text = f.read().replace("\\\n", "")
        text = re.sub(r"\\f(?:\(..|.)", "", text.replace("\\-", "-").replace("\\(aq", "'"))
        self.text = text
        lines = text.split("\n")
        self.commands = re.findall(r"mmscope-(\w+)", lines[lines.index(".SH NAME") + 1])
        heads = [plain(lines[i + 1]) for i, line in enumerate(lines) if line in (".TP", ".TQ")]
        self.tags = {o for head in heads if head[:1] == "-" for o in OPTION.findall(head)}
        self.synopsis = set(OPTION.findall(plain(
            text.partition(".SH SYNOPSIS\n")[2].partition("\n.SH ")[0])))
        self.all = set(OPTION.findall(plain(text)))
        # "Those of mmscope-fault(1), without --this and --that, and"
        also = re.search(r"^\.SH OPTIONS\nThose of\n\.BR mmscope-(\w+) \(1\),\n"
                         r"(?:without\n(.*)\n)?", text, re.M)
        self.like = also and also[1]
        self.without = set(OPTION.findall(plain(also[2] or ""))) if also else set()


def plain(line):
    """Without the requests and the quotes."""
    return re.sub(r'^\.[A-Z]+ |"', "", line, flags=re.M)


def manual():
    pages = [Page(p) for p in sorted(glob.glob(os.path.join(TREE, "docs/mmscope-*.1")))]
    of = {c: page for page in pages for c in page.commands}
    every = {c: helped(c) for c in commands}
    known = PROGRAM.union(*(options for options, _ in every.values()))
    for name in commands:
        if name not in of:
            result(f"{name}: has a page", "none")
            continue
        options, words = every[name]
        page, tags, wrong = of[name], set(of[name].tags), []
        text = page.text
        if page.like:
            tags |= of[page.like].tags - page.without
            text += of[page.like].text
        elif page.without:
            wrong.append(f"{page.without} of what?")
        if len(options) < 2:
            wrong.append(f"only {options} in --help")
        wrong += [f"not in the page: {o}" for o in sorted(options - tags)]
        wrong += [f"not a word of the page: {w}" for w in sorted(words)
                  if not re.search(rf"(?<![\w-]){w}(?![\w-])", text)]
        result(f"{name}: the page has each option, and each word that one can be", wrong)
        if page.like:
            wrong = [f"{o} is left out, and is an option" for o in page.without & options]
            wrong += [f"is no option of it: {o}"
                      for o in of[page.like].tags - page.without - options]
            result(f"{name}: what it has of {page.like}", wrong)
    with open(os.path.join(TREE, "docs/mmscope.1"), encoding="utf-8") as f:
        section = f.read().partition("\n.SH COMMANDS\n")[2].partition("\n.SH ")[0]
    told = re.findall(r"^\.TP\n\.B (\w+)$", section, re.M)
    result("mmscope(1) has each command, in the order of --help", None if told == commands
           else f"{told}, not {commands}")
    with open(os.path.join(TREE, "README.md"), encoding="utf-8") as f:
        told = set(re.findall(r"^    mmscope (\w+)", f.read(), re.M))
    result("README has each command", None if told == set(commands)
           else f"{told ^ set(commands)}")
    for page in pages:
        have = set().union(*(every[c][0] for c in page.commands if c in every))
        wrong = [f"no option of {page.commands}: {o}"
                 for o in sorted((page.tags | page.synopsis) - have)]
        # In the text those of others may be meant.
        wrong += [f"no option of any command: {o}"
                  for o in sorted(page.all - known) if o.startswith("--")]
        result(f"the page of {' and '.join(page.commands)} has no others", wrong)


def helps():
    for command in (*((c,) for c in commands), ("bench", "touch")):
        asked, direct = run("help", *command), run(*command, "--help")
        result(f"help {' '.join(command)}", None if asked.stdout == direct.stdout
               and f"Usage: mmscope {' '.join(command)}" in asked.stdout
               and (asked.returncode, asked.stderr) == (0, "") else asked)
    alone = run("help")
    result("help", None if alone.stdout == run("--help").stdout and not alone.returncode
           and "Usage: mmscope COMMAND" in alone.stdout else alone)
    other = run("help", "nothing")
    result("help nothing", None if other.returncode == 2 and not other.stdout
           and other.stderr.startswith("mmscope: nothing: no such command") else other)


def alike():
    """A letter is of one word in all commands; -n is how often, of whatever that is."""
    words = {}
    for command in commands:
        for letter, word in ROW.findall(run(command, "--help").stdout):
            if letter not in ("", "-n"):
                words.setdefault(letter, {}).setdefault(word, []).append(command)
    result("a letter is of one word in all commands",
           [f"{letter}: {found}" for letter, found in words.items() if len(found) > 1])


commands = names(run("--help").stdout)
result("there are commands", None if {"fault", "lock", "ab"} <= set(commands) else commands)
manual()
helps()
alike()
finish()
