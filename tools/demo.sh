#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# How 8 MiB of a BPF array are populated by two kernels: the same workload under
# `mmscope fault` on Debian's 7.2 and 7.3, each in a virtual machine, and on this
# machine where BPF is permitted. What the last lines say is read from the two
# reports above them.
set -eu

mmscope=${MMSCOPE:-build/mmscope}
old=7.2
new=7.3

die()
{
	echo "demo: $1" >&2
	exit 1
}

dir=$(mktemp -d) || die 'no directory for temporary files'
trap 'rm -rf "$dir"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# What is observed is the same everywhere. Its report is on stdout; what the
# workload itself says goes to stderr, with the progress and the errors.
observe()
{
	status=0
	"$@" fault -o - -- mmscope bench arraymap --size 8M --touch read --repeat 1 \
		>"$report" </dev/null || status=$?
	# mmscope has said why, unless a signal ended it.
	[ "$status" -lt 128 ] || echo "demo: $where: ended by signal $((status - 128))" >&2
	[ "$status" = 0 ] || exit "$status"
	echo
	cat "$report"
}

# in_guest KERNEL
in_guest()
{
	report=$dir/$1
	where="kernel $1"
	printf "\n==== 8 MiB of a BPF array on Debian's kernel %s (in a virtual machine)\n\n" "$1"
	observe "$mmscope" vm --kernel "$1" -- mmscope
}

here()
{
	report=$dir/here
	where='this machine'
	printf '\n==== 8 MiB of a BPF array on this machine (%s)\n\n' "$(uname -r)"
	# The workload's command is "mmscope" here, too.
	ln -s "$(realpath "$mmscope")" "$dir/mmscope"
	PATH=$dir:$PATH observe "$dir/mmscope"
}

# The last three lines, from the tables of the two reports. A cell is N, or N-M or
# N+ where runs of a probe were lost, or ~N where it was inferred; so are sums.
difference()
{
	awk '
	function add(name, cell,	part) {
		if (cell !~ /^~?[0-9]+([+]|-[0-9]+)?$/)
			wrong = 1
		if (sub(/^~/, "", cell))
			mark[nr, name] = "~"
		if (sub(/[+]$/, "", cell))
			open[nr, name] = 1
		n[nr, name] += cell
		most[nr, name] += split(cell, part, "-") > 1 ? part[2] : cell
	}
	function text(report, name,	tail) {
		if (open[report, name])
			tail = "+"
		else if (most[report, name] > n[report, name])
			tail = "-" most[report, name]
		return mark[report, name] (n[report, name] + 0) tail
	}
	# How many of a name there are for each of another, from what was seen.
	function each(report, name, other) {
		if (!n[report, other])
			return "no"
		return sprintf("%.2f", n[report, name] / n[report, other])
	}
	function line(report) {
		return sprintf("%s: mmap() installed %s PTEs; %s faults installed %s," \
			       " in %s attempts, %s refused", kernel[report], text(report, "eager"),
			       text(report, "faults"), text(report, "ptes"),
			       text(report, "attempts"), text(report, "refused"))
	}

	FNR == 1 { nr++; section = "" }
	/^kernel / { kernel[nr] = $2; sub(/[-+,].*/, "", kernel[nr]) }
	/^(Populated|Attempts)$/ {
		section = $1
		if ((getline) <= 0)
			exit
		split("", at)
		for (i = 1; i <= NF; i++)	# "PMD maps" is one column: after those read here
			at[$i] = i
		next
	}
	!NF { section = "" }
	section && $1 == "bpf_array" {
		if (section == "Attempts") {
			add("attempts", $at["attempts"])
			add("refused", $at["refused"])
			next
		}
		add("all", $at["PTEs"])
		add("holds", $at["holds"])
		if ($at["method"] == "eager") {
			add("eager", $at["PTEs"])
		} else {
			add("ptes", $at["PTEs"])
			add("faults", $at["minor"])
			add("faults", $at["major"])
		}
	}
	END {
		if (wrong || nr != 2 || !n[1, "all"] || !n[2, "all"] || !n[1, "holds"] ||
		    !n[2, "holds"] || kernel[1] == "" || kernel[2] == "")
			exit 1
		print line(1)
		print line(2)
		if (n[1, "eager"] == n[2, "all"] && !n[2, "eager"])
			printf "The work moved from mmap() to the first access"
		else
			printf "mmap() installs %s PTEs (was %s)", text(2, "eager"),
			       text(1, "eager")
		printf ": %s attempts a PTE (was %s), %s PTEs a hold (was %s)\n",
		       each(2, "attempts", "all"), each(1, "attempts", "all"),
		       each(2, "all", "holds"), each(1, "all", "holds")
	}' "$dir/$old" "$dir/$new"
}

began=$(date +%s)
if "$mmscope" probes >/dev/null 2>&1; then
	here
fi
in_guest "$old"
in_guest "$new"
difference >"$dir/lines" || die 'the reports cannot be read: no tables with a BPF array in them'
printf '\n==== What the difference means\n\n'
cat "$dir/lines"
printf '\ndemo: done in %d s\n' $(($(date +%s) - began))
