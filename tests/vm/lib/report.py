# SPDX-License-Identifier: GPL-2.0-only
"""What mmscope fault reported, as intervals, and what a workload's own account says."""

INFINITY = float("inf")

LABELS = ("backing", "method", "trigger", "kind", "reason", "outcome")


def below(samples):
    """How much a sum of (min, value) may be too high: all lack the same lost runs."""
    if any(value and not low for low, value in samples):
        return sum(v - low for low, v in samples)
    return max((v - low for low, v in samples), default=0)


class Count:
    """A number that lies in [low, high]; of a histogram also its buckets."""

    def __init__(self, low=0, high=None):
        self.low = low
        self.high = low if high is None else high

    def __add__(self, other):
        return Count(self.low + other.low, self.high + other.high)

    def __str__(self):
        return str(self.low) if self.low == self.high else f"[{self.low}, {self.high}]"

    def holds(self, truth):
        return self.low <= truth <= self.high

    def meets(self, other):
        return self.low <= other.high and other.low <= self.high


class Histogram:
    def __init__(self):
        self.count = self.sum = self.least = 0
        self.buckets = {}           # first value of the bucket -> number
        self.lower_bound = False

    def add(self, sample):
        self.count += sample["count"]
        self.sum += sample["sum"]
        self.lower_bound |= sample.get("lower_bound", False)
        for low, _high, n in sample["buckets"]:
            self.buckets[low] = self.buckets.get(low, 0) + n

    def change(self, low, n):
        """Make it tell of n more values in a bucket, consistently."""
        self.buckets[low] += n
        self.count += n
        self.sum += low * n


class Report:
    """One or more runs of one tracer, added up: what `-i` printed while a case ran."""

    def __init__(self, recordings):
        self.counters, self.histograms = {}, {}     # name -> labels -> value
        self.slack, self.inferred, self.unavailable = {}, set(), {}
        self.least = []             # of each run: name -> labels -> (min, value)
        self.at_least = set()       # metric, or metric and labels, without an upper end
        self.misses, self.missing, self.mechanisms = {}, {}, set()
        self.trust = {"unmatched": 0, "map_full": 0, "events_lost": 0}
        self.runs = [run for r in recordings for run in r["runs"]]
        for run in self.runs:
            self.add(run)

    def add(self, run):
        slack, least = {}, {}
        self.least.append(least)
        for s in run["metrics"]:
            name = s["name"]
            if "unavailable" in s:
                self.unavailable[name] = s["unavailable"]
                continue
            labels = tuple(s.get("labels", {}).get(k) for k in LABELS if k in s.get("labels", {}))
            if s.get("inferred"):
                self.inferred.add((name, labels))
            if "buckets" in s:
                h = self.histograms.setdefault(name, {})
                h.setdefault(labels, Histogram()).add(s)
                h[labels].least += s.get("min", s["count"])
            else:
                least.setdefault(name, {})[labels] = (s.get("min", s["value"]), s["value"])
                c = self.counters.setdefault(name, {})
                c[labels] = c.get(labels, 0) + s["value"]
                # The slack of all samples of a metric stands for the same lost runs.
                if s.get("lower_bound"):
                    self.at_least |= {name, (name, labels)}
                slack[name] = max(slack.get(name, 0), s.get("max", s["value"]) - s["value"])
        for name, n in slack.items():
            self.slack[name] = self.slack.get(name, 0) + n
        trust = run["trust"]
        for key in self.trust:
            self.trust[key] += trust[key]
        for p in trust["probes"]:
            key = (p["event"], p.get("symbol"))
            if not p.get("mechanism"):
                self.missing[p["event"]] = p["missing"]
                continue
            self.mechanisms.add(p["mechanism"])
            self.misses[key] = self.misses.get(key, 0) + (p["misses"] or 0)

    def count(self, name, labels):
        """Of one combination of labels."""
        value = self.counters.get(name, {}).get(labels, 0)
        high = INFINITY if (name, labels) in self.at_least else value + self.slack.get(name, 0)
        return Count(value - sum(below([r.get(name, {}).get(labels, (0, 0))])
                                 for r in self.least), high)

    def total(self, name, wanted=None):
        """Of all labels, or of those that are wanted."""
        value = sum(v for k, v in self.counters.get(name, {}).items() if not wanted or wanted(k))
        high = INFINITY if name in self.at_least else value + self.slack.get(name, 0)
        if not wanted and name != "fault_refused":
            return Count(value, high)       # under a wrong label, but in it
        return Count(value - sum(below([v for k, v in r.get(name, {}).items()
                                        if not wanted or wanted(k)]) for r in self.least), high)

    def labels(self, name):
        return [k for k, v in self.counters.get(name, {}).items() if v]

    def histogram(self, name, labels):
        return self.histograms.get(name, {}).get(labels, Histogram())

    def lost(self):
        return sum(self.misses.values())


def order(pattern, pages):
    """The pages in the order in which `bench touch --pattern` of one thread touches them."""
    if pattern.startswith("stride="):
        return list(range(0, pages, int(pattern[7:])))
    pages = list(range(pages))
    if pattern == "random":
        state, mask = 0x6d6d73636f7065, (1 << 64) - 1
        for i in range(len(pages), 1, -1):
            state ^= state << 13 & mask
            state ^= state >> 7
            state ^= state << 17 & mask
            j = state % i
            pages[i - 1], pages[j] = pages[j], pages[i - 1]
    return pages


class Windows:
    """The fault-around windows of read touches, from nothing but the addresses."""

    def __init__(self):
        self.asked = self.mapped = self.present = self.faults = 0
        self.sizes = {}             # PTEs of a fault -> faults

    def touch(self, addr, pages, touched, bytes_around, page_size, cached=True):
        """cached: all of the file, in small folios; else none of it, and each touch fails."""
        window, table = max(bytes_around // page_size, 1), page_size // 8
        base = addr // page_size % table
        mapped = set()
        for page in touched:
            if page in mapped:
                continue
            slot = base + page
            first = max(slot - slot % window, base)
            end = min(first + window, slot - slot % table + table, base + pages)
            inside = set(range(first - base, end - base))
            self.faults += 1
            self.asked += len(inside)
            if not cached:
                continue
            new = inside - mapped
            self.mapped += len(new)
            self.present += len(inside) - len(new)
            self.sizes[len(new)] = self.sizes.get(len(new), 0) + 1
            mapped |= new


def windows(bench, cached=True, around=None):
    """The windows of all repeats of a `bench touch` with one thread; around: their bytes,
    unless they are what the bench found set."""
    w = Windows()
    touched = order(bench["pattern"], bench["map_pages"])
    for addr in bench["addr"]:
        w.touch(int(addr, 16), bench["map_pages"], touched,
                around or bench["fault_around_bytes"],
                bench["page_size"], cached)
    return w
