#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""mmscope audit where it cannot look: status 3 and a reason, as text and as JSON."""
import json
import os
import re
import subprocess

from tap import finish, result

MMSCOPE = os.environ["MMSCOPE"]
REASONS = (r"no permission: .*", "lockdown forbids reading memory", r"no BTF: .*",
           r"addresses of symbols are hidden: .*", r"no symbols of data: .*", r"no symbols: .*",
           r"the program that reads memory does not load: .*")


def audit(*args, **kwargs):
    kwargs.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([MMSCOPE, "audit", *args], stdin=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, timeout=60, check=False, **kwargs)


def nobody():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


def refused(p, as_json):
    """One line on stderr, nothing on stdout, a reason that is known."""
    line = p.stderr
    if as_json:
        try:
            line = "mmscope: " + json.loads(line)["error"] + "\n"
        except (ValueError, KeyError) as e:
            return f"{e!r}: {line}"
    good = p.returncode == 3 and not p.stdout and re.fullmatch(
        r"mmscope: audit: unavailable \((" + "|".join(REASONS) + r")\)\n", line)
    return None if good else f"status {p.returncode}: {p.stdout[:200]}{p.stderr}"


probe = audit()
for name, args in (("unavailable", []), ("unavailable, as JSON", ["--json"])):
    if probe.returncode == 0:
        result(name, skip="this kernel can be looked at")
    else:
        result(name, refused(audit(*args), bool(args)))
if os.geteuid():
    result("without privilege", skip="needs root, to lose it")
else:
    result("without privilege", refused(audit(preexec_fn=nobody), False))
p = audit("--help")
result("help", None if p.returncode == 0 and p.stdout.startswith("Usage: mmscope audit ") and
       "--module" in p.stdout and not p.stderr else p.stdout + p.stderr)
finish()
