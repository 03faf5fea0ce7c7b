# SPDX-License-Identifier: GPL-2.0-only
"""In a guest: a tracer of tasks that run already, and a process that faults when it is told to."""
import os
import select
import signal
import subprocess

from robust_lib import REPORT, completed, end, load, start, unlink

WORKER = "/usr/bin/worker"


class Worker:
    """Answers each order with its process, its second thread and the faults taken so far."""

    def __init__(self, *prefix, **more):
        self.process = subprocess.Popen([*prefix, WORKER], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, **more)
        self.hear()
        self.faults = 0
        self.do("t0")

    def hear(self):
        words = self.process.stdout.readline().split()
        if len(words) != 4:
            raise ValueError("the worker is gone")
        self.pid, self.second, own, children = map(int, words)
        return own + children

    def tell(self, order):
        self.process.stdin.write(order.encode() + b"\n")
        self.process.stdin.flush()

    def do(self, order):
        """Faults that it took, its children and threads included."""
        before = self.faults
        self.tell(order)
        self.faults = self.hear()
        return self.faults - before

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(60)

    def kill(self):
        """Faults since it answered last: to die takes some as well."""
        self.process.kill()
        self.process.stdin.close()
        self.process.stdout.close()
        # All its threads are dead then, and it still tells of itself.
        os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        with open(f"/proc/{self.process.pid}/stat") as f:
            faults = f.read().rsplit(")", 1)[1].split()[7:11]
        self.process.wait()
        return sum(map(int, faults)) - self.faults


class Observer:
    """mmscope fault without a command, observing from here on."""

    def __init__(self, *options, report=REPORT, **more):
        self.report = report
        unlink(report)
        ctl, self.ctl = os.pipe()
        self.ack, ack = os.pipe()
        self.process = start(*options, "--json", "-o", report, "--control", f"fd:{ctl},{ack}",
                             pass_fds=(ctl, ack), **more)
        os.close(ctl)
        os.close(ack)
        try:
            self.tell("ping")
        except ValueError:
            self.close()
            raise ValueError(f"the tracer does not observe: {end(self.process)}") from None

    def tell(self, word):
        """It has done it when this returns."""
        os.write(self.ctl, word.encode() + b"\n")
        ready = select.select([self.ack], [], [], 120)[0]
        if not ready or os.read(self.ack, 4) != b"ack\n":
            raise ValueError(f"{word}: no answer")

    def close(self):
        os.close(self.ctl)
        os.close(self.ack)

    def run(self, ask=True, status=0):
        """Its report; ask: it does not end by itself."""
        if ask:
            self.process.send_signal(signal.SIGINT)
        got, _, err = end(self.process)
        self.close()
        if got != status or err:
            raise ValueError(f"status {got}, not {status}: {err}")
        return load(self.report)["runs"][0]


def unlike(run, truth, what="faults"):
    """None if the completed faults of a report can be as many."""
    low, high = completed(run)
    trust = run["trust"]
    if trust["map_full"] or trust["events_lost"]:
        return f"{what}: {trust}"
    if low <= truth <= high and (high == low or sum(p["misses"] or 0 for p in trust["probes"]
                                                    if p.get("mechanism"))):
        return None
    return f"{what}: [{low}, {high}], the truth is {truth}"
