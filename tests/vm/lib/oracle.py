# SPDX-License-Identifier: GPL-2.0-only
"""Run the cases in a guest, check them on the host, print TAP.

Attaching costs seconds on some kernels, so one tracer observes many workloads:
it runs with `-i`, observes their regions only, and prints one line an interval.
A case ends when a line was printed after it; what was printed from its start to
its end, added up, is its report.
"""
import json
import os
import subprocess
import time

import cases
import checks
import guest
from report import Report
import tap

INTERVAL = "0.2"
IMAGE = 64 << 20

# Without a process that need not be: the guest is emulated.
FUNCTIONS = r"""
now() {
	read -r seconds idle < /proc/uptime
	echo "$1 $seconds"
}
run() {     # NUMBER COMMAND...
	now "@case $1"
	shift
	"$@"
	echo "@status $?"
	: > /tmp/mark
	until [ /tmp/reports -nt /tmp/mark ]; do sleep 0.1; done
	now @end
}
# PATTERN HOLDS NUMBER COMMAND...: while it says that, while runs were lost, and while the
# report has another number of holds in which PTEs were removed ("": of no interest):
# that twice at most, as what comes more often is no chance.
again() {
	pattern=$1 holds=$2 cuts=0
	shift 2
	for try in 1 2 3 4 5 6; do
		seen=$(wc -c < /tmp/reports)
		run "$@" > /tmp/said
		tail -c +$((seen + 1)) /tmp/reports > /tmp/last
		grep -q "$pattern" /tmp/said || grep -q '"misses": *[1-9]' /tmp/last ||
			cut_short || break
	done
	cat /tmp/said
}
cut_short() {
	[ -n "$holds" ] && grep -o '"ptes_per_zap_hold"[^[]*"count": *[0-9]*' /tmp/last \
		> /tmp/zapped && ! grep -q ": *$holds$" /tmp/zapped &&
		cuts=$((cuts + 1)) && [ $cuts -le 2 ]
}
"""

PREPARE = r"""
mkdir -p /mnt/ramfs /mnt/ext4 && mount -t ramfs ramfs /mnt/ramfs &&
mount -t ext4 /dev/vda /mnt/ext4 || exit 99
# Written in large pieces: where ext4 has large folios they are larger than a window.
head -c 4M /dev/zero > /tmp/zero && cat /tmp/zero > LARGE && sync && rm /tmp/zero || exit 99
"""

SESSION = r"""
session() { # NAME BINARY OPTIONS...
	now "@session $1"
	name=$1 binary=$2
	shift 2
	"$binary" fault "$@" -i INTERVAL --json -o - -- sh "/tmp/cases.$name" \
		2> /tmp/log > /tmp/reports
	echo "@exit $?"
	cat /tmp/log
	echo "@reports"
	cat /tmp/reports
	now @finish
}
"""

PROGRAM = r"""
report() { # OPTIONS... -- COMMAND...
	mmscope fault "$@" > /dev/null 2>&1
	echo "@program $?"
	cat /tmp/report
	now @finish
}
program() { # OPTIONS...
	cp /usr/bin/mmscope /mnt/ext4/program && sync && echo 3 > /proc/sys/vm/drop_caches
	mmscope fault "$@" --json -o /tmp/report -- /mnt/ext4/program list > /dev/null
	echo "@program $?"
	cat /tmp/report
	now @finish
}
"""


class Session:
    """One tracer: a name, a binary of the guest, options, cases."""

    def __init__(self, name, which, options="", binary="mmscope"):
        self.name, self.which, self.options, self.binary = name, which, options, binary
        self.exact = "--exact" in options
        self.status, self.reports, self.results = None, [], {}
        self.log, self.started, self.seconds = [], 0.0, 0.0

    def script(self, kernel):
        lines = [f"{c.run} {i} {c.command}" for i, c in enumerate(self.which) if not c.skip(kernel)]
        # The first region of all starts the counts anew, within an interval.
        return FUNCTIONS + "\n".join(["run first mmscope bench touch --size 4K",
                                      *lines]) + "\n"

    def between(self, start, end):
        """What was reported while a case ran, by the clock of the guest in seconds."""
        found = []
        for r in self.reports:
            done = (r["runs"][0]["start_boot_ns"] + r["runs"][0]["wall_ns"]) / 1e9
            # /proc/uptime has hundredths, cut off; no case is as short as that.
            if start + 0.01 < done <= end + 0.01:
                found.append(r)
        return found


class Result:
    """Of one workload: when it ran, how it ended, its own account, what else it said."""

    def __init__(self, first):
        self.first, self.last, self.status, self.bench, self.said = first, None, None, None, []


def session_script(sessions, kernel):
    """The sessions' cases as files of the guest, and what runs them."""
    lines = []
    for s in sessions:
        lines += [f"cat > /tmp/cases.{s.name} <<'END-OF-CASES'", s.script(kernel), "END-OF-CASES"]
    return "\n".join([*lines, FUNCTIONS + SESSION.replace("INTERVAL", INTERVAL)])


def run_session(s):
    return f"session {s.name} {s.binary} {s.options}"


def guest_script(sessions, programs, kernel):
    return "\n".join([session_script(sessions, kernel), PREPARE.replace("LARGE", cases.LARGE),
                      PROGRAM, *map(run_session, sessions),
                      *(f"program {options}" for options in programs)]) + "\n"


def boot(binary, kernel, text, directory, copies, options=()):
    """One boot: everything that the guest printed."""
    script = os.path.join(directory, "guest.sh")
    with open(script, "w") as f:
        f.write(text)
    command = [binary, "vm", "--kernel", kernel, *options, *guest.ext4("oracle", IMAGE),
               "--copy", f"{script}:/run/guest.sh"]
    for c in copies:
        command += ["--copy", c]
    return subprocess.run(command + ["--", "sh", "/run/guest.sh"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", check=False)


def parse(lines, sessions):
    """Fill the sessions; returns the recordings of whole programs, with their status."""
    by_name = {s.name: s for s in sessions}
    programs, session, result, where, text = [], None, None, None, []
    for line in lines:
        word = line.split(" ")
        if word[0] == "@session":
            session, where = by_name[word[1]], "log"
            session.started = float(word[2])
        elif word[0] == "@exit":
            session.status = int(word[1])
        elif word[0] == "@case":
            result = Result(float(word[2]))
            session.results[word[1]] = result
        elif word[0] == "@status":
            result.status = int(word[1])
        elif word[0] == "@end":
            result.last = float(word[1])
            result = None
        elif word[0] == "@reports":
            where = "reports"
        elif word[0] == "@program":
            where, text = "program", [int(word[1])]
        elif word[0] == "@finish":
            if where == "reports":
                session.seconds = float(word[1]) - session.started
            if where == "program":
                programs.append((text[0], json.loads("\n".join(text[1:]) or "null")))
            where = None
        elif where == "reports":
            session.reports.append(json.loads(line))
        elif where == "program":
            text.append(line)
        elif result and line.startswith('{"bench"'):
            result.bench = json.loads(line)
        else:
            (result.said if result else session.log if session else []).append(line)
    return programs


def doctored(bench, report, check, unheld):
    """Every number of a report, one more and one less: how many, and what no check noticed."""
    tried, passed = 0, []
    for name, by_labels in report.counters.items():
        if name in unheld or name in checks.ELSEWHERE:
            continue
        for labels, value in by_labels.items():
            for n in (value + 1, value - 1) if value else (1,):
                by_labels[labels] = n
                tried += 1
                if not check(bench, report):
                    passed.append(f"{name}{{{','.join(labels)}}} {n} for {value}")
            by_labels[labels] = value
    for name, by_labels in report.histograms.items():
        if name in checks.ELSEWHERE:
            continue
        for labels, h in by_labels.items():
            # How many faults took later attempts, only their number bounds.
            if name == "fault_attempt_latency" and labels[1] == "completed":
                continue
            # One event's latency is as good as another's: one bucket stands for all.
            for low in list(h.buckets)[:1 if name.endswith("latency") else None]:
                for step in (1, -1):
                    h.change(low, step)
                    tried += 1
                    if not check(bench, report):
                        passed.append(f"{name}{{{','.join(labels)}}} {step} in bucket {low}")
                    h.change(low, -step)
    return tried, passed


def check_session(s, kernel, judge, old, lazy):
    tap.result(f"{s.name}: the tracer runs all", [] if s.status == 0 and s.reports else
               [f"status {s.status}, {len(s.reports)} reports", *s.log])
    tried, unnoticed, lost = 0, [], 0
    for i, c in enumerate(s.which):
        name = f"{s.name}: {c.name}"
        if c.skip(kernel):
            tap.result(name, skip=c.skip(kernel))
            continue
        r = s.results.get(str(i))
        if not r or r.status != 0 or r.bench is None or r.last is None:
            tap.result(name, [f"status {r.status if r else 'unknown'}",
                              *(r.said if r else ["it did not run"])])
            continue
        report = Report(s.between(r.first, r.last))
        lost += report.lost()
        check = judge(c)
        wrong = check(r.bench, report)
        tap.result(name, wrong)
        if report.lost():
            tap.note(f"lost: {', '.join(f'{n} of {k[0]}' for k, n in report.misses.items() if n)}")
        if not wrong and not report.lost() and not s.name.startswith("system"):
            n, passed = doctored(r.bench, report, check, c.truth(r.bench, old, lazy).unheld)
            tried += n
            unnoticed += [f"{c.name}: {p}" for p in passed]
    tap.note(f"{s.name}: {lost} runs of programs lost, {s.seconds:.0f} s")
    return tried, unnoticed


def check_program(status, recording, options, old):
    """A program from a cold disk, from its first instruction to its last."""
    name = f"a whole program {options or 'by default'}: faults equal its rusage"
    if status or not recording:
        tap.result(name, [f"status {status}"])
        return
    report, usage = Report([recording]), recording["runs"][0]["rusage"]
    wrong = checks.trusted(report, bool(options), old) + checks.identities(report)
    wrong += checks.faults_of(report, usage["minflt"], usage["majflt"])
    if not usage["majflt"]:
        wrong.append("no major fault: the program was cached, nothing is proved")
    tap.result(name, wrong)


def main(kernel):
    start = time.monotonic()
    binary, clang = os.environ["MMSCOPE"], os.environ.get("MMSCOPE_CLANG")
    old, lazy = not cases.newer(kernel, (6, 4)), cases.newer(kernel, (7, 3))
    sessions = [Session("default", cases.CASES), Session("system", cases.SYSTEM, "-a")]
    copies, modes = [], ("", "--exact") if cases.whole(kernel) else ("",)
    if "--exact" in modes:
        sessions += [Session("exact", cases.CASES, "--exact"),
                     Session("system-exact", cases.SYSTEM, "-a --exact")]
    if clang and os.access(clang, os.X_OK):
        copies = [f"{clang}:/usr/bin/mmscope-clang"]
        sessions += [Session("clang" + m[1:], cases.FEW, m, "mmscope-clang") for m in modes]
    p = boot(binary, kernel, guest_script(sessions, modes, kernel),
             os.environ.get("TMPDIR", "/tmp"), copies)
    tap.result("the guest runs all", [] if p.returncode == 0 else
               [f"status {p.returncode}", *p.stderr.splitlines()[-20:]])
    programs = parse(p.stdout.splitlines(), sessions)

    def judge(s):
        def one(c):
            if s.name.startswith("system"):
                return lambda bench, report: checks.whole_system(bench, report, old)

            def check(bench, report):
                bench["_large_folios"] = cases.newer(kernel, (6, 16))
                return checks.case(bench, report, c.truth(bench, old, lazy), s.exact, old)
            return check
        return one

    for s in sessions:
        tried, unnoticed = check_session(s, kernel, judge(s), old, lazy)
        if not s.name.startswith("system"):
            tap.result(f"{s.name}: {tried} reports with one number changed are refused",
                       unnoticed if tried else ["nothing could be tried"])
    if not copies:
        tap.result("the other build of the BPF programs loads",
                   [f"{clang} is not there: make check-build"] if clang else [],
                   None if clang else "MMSCOPE_CLANG does not name it")
    for i, options in enumerate(modes):
        check_program(*(programs[i] if i < len(programs) else (None, None)), options, old)
    tap.note(f"{kernel}: {time.monotonic() - start:.0f} s")
    tap.finish()
