# SPDX-License-Identifier: GPL-2.0-only
"""Recordings that are made up."""
import json
import os

TMP = os.environ.get("TMPDIR", "/tmp")
EVENTS = ["fault entry", "fault exit", "PTE install", "page-table lock", "fault-around"]


def machine(**changes):
    m = {"release": "7.2.12-cloud-amd64", "version": "Linux", "arch": "x86_64", "boot_id": None,
         "cpus_possible": 2, "cpus_online": 2, "memory_kib": 1000000, "page_size": 4096,
         "fault_around_bytes": 65536, "thp": "always", "shmem_thp": "never",
         "mthp": {"2048kB": "inherit"}, "numa_balancing": 0, "virt": "none",
         "config": {"PREEMPT_LAZY": "y", "HZ": "250", "DEBUG_VM": "n", "KASAN": "n",
                    "PROVE_LOCKING": "n"}}
    m.update(changes)
    return m


def counter(name, value, **labels):
    return {"name": name, "labels": labels, "value": value}


def batch(name, buckets, **labels):
    return {"name": name, "labels": labels, "unit": "ptes",
            "count": sum(n for _, n in buckets), "sum": sum(v * n for v, n in buckets),
            "buckets": [[v, v + 1, n] for v, n in buckets]}


def run(boot, start, metrics=(), values=(), **changes):
    r = {"boot_id": f"00000000-0000-4000-8000-{boot:012d}",
         "start_ns": 1790000000000000000 + start * 10**9, "start_boot_ns": 42 * 10**9,
         "wall_ns": 10**9, "exit_status": 0,
         "rusage": {"user_ns": 5 * 10**6, "sys_ns": 10**8, "minflt": 100, "majflt": 0,
                    "maxrss_kib": 100000},
         "anon_huge_kib": 0,
         "values": [{"name": n, "value": v, "unit": u, "better": b} for n, v, u, b in values],
         "metrics": list(metrics),
         "trust": {"probes": [{"event": e, "mechanism": "fentry", "symbol": "f", "misses": 0}
                              for e in EVENTS],
                   "unmatched": 0, "map_full": 0, "events_lost": 0}}
    r.update(changes)
    return r


def recording(runs, primary=(), **changes):
    return {"schema": 1, "mmscope": "0.1", "machine": machine(**changes),
            "command": ["mmscope", "bench", "arraymap"], "primary": list(primary), "runs": runs}


def write(name, rec):
    path = os.path.join(TMP, name)
    with open(path, "w") as f:
        json.dump(rec, f)
    return path
