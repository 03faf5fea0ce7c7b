#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1500
"""mmscope audit on the four kernels: every object, against the kernel's memory by /proc/kcore.

The oracle finds objects by their names and reads them without BPF; what a
member is comes from bpftool. Then workloads fault on what the objects stand
for, and the fault view must agree with what the audit says of them.
"""
import json
import os
import re
import subprocess

from tap import finish, result

BINARY = os.environ["MMSCOPE"]
TMP = os.environ.get("TMPDIR", "/tmp")
ORACLE = os.path.join(TMP, "vm_ops")
BPFTOOL = next((p for p in ("/usr/sbin/bpftool", "/sbin/bpftool") if os.path.exists(p)), "bpftool")
KERNELS = ("6.1", "6.12", "7.2", "7.3")
METHODS = ("fault", "map_pages", "huge_fault", "page_mkwrite", "pfn_mkwrite", "access")
# How the kernel's source names its objects; those that end otherwise by their whole names.
ENDINGS = "vm_ops,vmops,vma_ops,mmap_ops,=mmap_mem_ops,=sel_mmap_policy_ops"
WORDS = 32
# What is built in or loaded on all four, and what their sources have there: the members
# that are set, by name of the function.
KNOWN = {
    "generic_file_vm_ops": {"fault": "filemap_fault", "map_pages": "filemap_map_pages",
                            "page_mkwrite": "filemap_page_mkwrite"},
    "shmem_vm_ops": {"fault": "shmem_fault", "map_pages": "filemap_map_pages"},
    "shm_vm_ops": {"fault": "shm_fault"},
    "special_mapping_vmops": {"fault": "special_mapping_fault"},
    "secretmem_vm_ops": {"fault": "secretmem_fault"},
    "packet_mmap_ops": {},
}
MODULES = ("exfat", "ceph", "kvm")
GMEM = ("7.2", "7.3")       # guest_memfd that can be mapped, which a virtual machine has
EXFAT = {"fault": "filemap_fault", "page_mkwrite": "exfat_page_mkwrite"}
EXFAT_OPS = {
    "6.1": None,        # generic_file_vm_ops
    "6.12": {**EXFAT, "map_pages": "filemap_map_pages"},
    "7.2": EXFAT,
    "7.3": EXFAT,
}
MODULE_OPS = {
    ("kvm_vcpu_vm_ops", "kvm"): {"fault": "kvm_vcpu_fault"},
    ("ceph_vmops", "ceph"): {"fault": "ceph_filemap_fault", "page_mkwrite": "ceph_page_mkwrite"},
}

SCRIPT = r"""
mmscope audit --json >/root/audit.json || echo "audit $?"
mmscope audit >/root/audit.txt || echo "audit as text $?"
/usr/bin/vm_ops WORDS ENDINGS >/root/oracle || echo "oracle $?"
cat /sys/kernel/btf/vmlinux >/root/btf
mkdir /mnt/ramfs && mount -t ramfs ramfs /mnt/ramfs
mmscope fault --by vm_ops --json -o /root/fault.json -- sh -c '
	mmscope bench touch --backing memfd --touch read --size 1M --repeat 1 &&
	mmscope bench touch --backing file --path /mnt/ramfs/f --touch read --size 1M --repeat 1 &&
	mmscope bench touch --backing sysv_shm --touch read --size 1M --repeat 1 && GMEM &&
	mmscope bench arraymap --size 1M --touch read --repeat 1' >/dev/null || echo "fault $?"
echo 2 >/proc/sys/kernel/kptr_restrict
mmscope audit >/root/hidden 2>&1; echo "hidden $?" >>/root/hidden
"""
FILES = ("audit.json", "audit.txt", "oracle", "btf", "fault.json", "hidden")


def guest(kernel, script, files, *options):
    path = os.path.join(TMP, "script")
    with open(path, "w", encoding="utf-8") as f:
        f.write(script)
    gets = [w for name in files for w in ("--get", f"{name}:{TMP}/{kernel}.{name}")]
    p = subprocess.run([BINARY, "vm", "--kernel", kernel, "--copy", f"{ORACLE}:/usr/bin/vm_ops",
                        *options, *gets, "--copy", path, "--", "sh", path],
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    problem = p.stdout + p.stderr if p.returncode or p.stdout else None
    result(f"{kernel}: runs", problem)
    return not problem


def read(kernel, name):
    with open(f"{TMP}/{kernel}.{name}", encoding="utf-8") as f:
        return f.read()


def members(kernel):
    """Name and word of each member, and the size in words, as bpftool tells them."""
    dump = subprocess.run([BPFTOOL, "btf", "dump", "file", f"{TMP}/{kernel}.btf"],
                          capture_output=True, text=True, check=True).stdout
    part = re.search(r"STRUCT 'vm_operations_struct' size=(\d+) .*\n((?:\t.*\n)+)", dump)
    found = re.findall(r"\t'(\w+)' .*bits_offset=(\d+)", part[2])
    return {name: int(bits) // 64 for name, bits in found}, int(part[1]) // 8


def oracle(kernel):
    """By (symbol, module): functions of the members that are set; None where it is no object."""
    place, words = members(kernel)
    pointers = {w for name, w in place.items() if name != "uffd_ops"}
    found = {}
    for line in read(kernel, "oracle").splitlines():
        name, module, content = line.split()
        word = content.split(",")[:words]
        good = len(word) == words and all(word[w] != "?" for w in pointers) and \
            any(word[w] != "0" for w in pointers)
        found[name, module] = {m: word[place[m]] for m in METHODS
                               if word[place[m]] != "0"} if good else None
    return found


def expected_class(name, methods):
    if name == "hugetlb_vm_ops":
        return "hugetlb"
    if "map_pages" in methods:
        return "fault_around"
    if "fault" in methods:
        return "no_fault_around"
    return "write_refused" if {"page_mkwrite", "pfn_mkwrite"} & set(methods) else "no_fault"


def objects(audit):
    return {(o["name"], o["module"] or "-"): {m: f for m, f in o["methods"].items() if f}
            for o in audit["objects"]}


def compare(kernel, audit):
    """Every object, in both directions."""
    truth, found = oracle(kernel), objects(audit)
    ruled_out = {(o["name"], o["module"] or "-") for o in audit["ruled_out"]}
    real = {k: v for k, v in truth.items() if v is not None}
    result(f"{kernel}: the oracle has some", None if len(real) > 15 else real)
    result(f"{kernel}: no object is missing",
           [k for k in real if k not in found])
    result(f"{kernel}: no object is made up", [k for k in found if k not in real])
    result(f"{kernel}: methods", [f"{k}: {v}, in memory {real[k]}" for k, v in found.items()
                                  if k in real and v != real[k]])
    result(f"{kernel}: what is named so is an object or ruled out",
           [k for k in truth if re.search(r"(vm_ops|vmops)(\.|$)", k[0])
            and (k in found) == (k in ruled_out)])
    result(f"{kernel}: what is ruled out is none", [k for k in ruled_out if real.get(k)])
    result(f"{kernel}: members as in the source",
           [f"{n}: {found.get((n, '-'))}" for n, m in KNOWN.items() if found.get((n, "-")) != m])
    result(f"{kernel}: classes",
           [o for o in audit["objects"] if o["class"] != expected_class(
               o["name"], {m for m, f in o["methods"].items() if f})])
    result(f"{kernel}: none by its name alone",
           [o for o in audit["objects"] if o["by_name"]])
    order = [(list(audit["classes"]).index(o["class"]), o["module"] or "", o["name"])
             for o in audit["objects"]]
    result(f"{kernel}: worst first", None if order == sorted(order) else order)
    counts = {c: sum(o["class"] == c for o in audit["objects"]) for c in audit["classes"]}
    result(f"{kernel}: sums", None if counts == audit["classes"] else audit["classes"])
    result(f"{kernel}: per-VMA lock",
           None if audit["vma_lock"] == (kernel != "6.1") else audit["vma_lock"])


def text(kernel, audit):
    lines = read(kernel, "audit.txt")
    wrong = [f"first line: {lines[:200]}"] if not lines.startswith(
        f"{audit['classes']['no_fault_around']} of {len(audit['objects'])} ") else []
    for o in audit["objects"]:
        name = o["name"] + (f" [{o['module']}]" if o["module"] else "")
        row = [name, *("yes" if o["methods"][m] else "-" for m in METHODS)]
        if not re.search("^" + r" +".join(map(re.escape, row)) + "$", lines, re.M):
            wrong.append(f"no row {row}")
    wrong += [f"wide: {line}" for line in lines.splitlines() if len(line) > 100]
    result(f"{kernel}: text", "\n".join(wrong))


def agrees(kernel, audit):
    """What faults did on an object is what the audit says of it."""
    seen, refused = {}, {}
    run = json.loads(read(kernel, "fault.json"))["runs"][0]
    for s in run["metrics"]:
        ops = s.get("labels", {}).get("vm_ops")
        into = {"fault_completed": seen, "fault_refused": refused}.get(s["name"])
        if ops and "value" in s and into is not None:
            # Runs that the kernel lost may have been of any of them.
            low, high = into.get(ops, (0, 0))
            into[ops] = low + s["value"], high + s.get("max", s["value"])
    found = {o["name"]: o for o in audit["objects"]}
    wrong = []
    for ops, n in seen.items():
        o = found.get(ops)
        if not o:
            wrong.append(f"{n} faults on {ops}, which the audit does not have")
        elif not o["methods"]["fault"]:
            wrong.append(f"{n} faults on {ops}, which has no ->fault")
    want = {"shmem_vm_ops", "generic_file_vm_ops", "shm_vm_ops"}
    want |= {"bpf_map_lazy_vmops"} if kernel == "7.3" else set()
    want |= {"kvm_gmem_vm_ops"} if kernel in GMEM else set()
    # memfd may be either of shmem's two objects.
    names = {"shmem_vm_ops" if n == "shmem_anon_vm_ops" else n for n in seen}
    result(f"{kernel}: faults on objects that the audit knows", wrong or want - names)
    none = (0, 0)
    single = {o: n for o, n in seen.items() if o in found and
              found[o]["class"] == "no_fault_around"}
    windows = {o: n for o, n in seen.items() if o in found and
               found[o]["class"] == "fault_around"}
    asked = {s["labels"]["backing"] for s in run["metrics"] if s["name"] == "fault_around_asked"
             and s.get("value") and "backing" in s.get("labels", {})}
    result(f"{kernel}: only what has ->map_pages is asked for windows",
           None if {"shmem", "file"} <= asked and
           not asked & {"sysv_shm", "guest_memfd", "bpf_array"} else asked)
    if audit["vma_lock"]:
        result(f"{kernel}: each fault on what has no ->map_pages is refused, on others few",
               [f"{o}: {refused[o]} of {n} refused" for o, n in windows.items()
                if refused.get(o, none)[0] > n[1] // 8] +
               [f"{o}: {n} faults, {refused.get(o, none)} refused" for o, n in single.items()
                if n[0] > 16 and not (refused.get(o, none)[0] <= n[1] and
                                      n[0] <= refused.get(o, none)[1])])


def main():
    subprocess.run(["cc", "-O2", "-Wall", "-Werror", "-static", "-o", ORACLE,
                    "tests/vm/lib/vm_ops.c"], check=True)
    for kernel in KERNELS:
        gmem = "mmscope bench touch --backing gmem --size 1M --repeat 1"
        script = SCRIPT.replace("WORDS", str(WORDS)).replace("ENDINGS", ENDINGS)
        script = script.replace("GMEM", gmem if kernel in GMEM else "true")
        modules = MODULES + (("kvm_amd",) if kernel in GMEM else ())
        options = [w for m in modules for w in ("--module", m)]
        if not guest(kernel, script, FILES, *options):
            continue
        audit = json.loads(read(kernel, "audit.json"))
        compare(kernel, audit)
        text(kernel, audit)
        agrees(kernel, audit)
        found = objects(audit)
        result(f"{kernel}: objects of modules",
               [f"{k}: {found.get(k)}" for k, m in
                (*MODULE_OPS.items(), (("exfat_file_vm_ops", "exfat"), EXFAT_OPS[kernel]))
                if found.get(k) != m])
        result(f"{kernel}: hidden addresses", None if re.fullmatch(
            r"mmscope: audit: unavailable \(addresses of symbols are hidden: .*\)\nhidden 3\n",
            read(kernel, "hidden")) else read(kernel, "hidden"))
    if guest("7.3", "mmscope audit --json >/root/refused 2>&1; echo \"status $?\" >>/root/refused",
             ["refused"], "--append", "lockdown=confidentiality"):
        text_refused = read("7.3", "refused")
        result("7.3: lockdown", None if text_refused == '{"error": "audit: unavailable '
               '(lockdown forbids reading memory)"}\nstatus 3\n' else text_refused)
    finish()


main()
