# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh disable=SC2154 # what comes from who reads it
#
# What kernel/build and kernel/source share: which kernel is meant, where the
# source is, what the series make of it. The file is read, not run.
#
# After read_kernel K: label ("kernel K", begins every message), name
# (vanilla, arraymap-2, patched-debug), series (names), steps (of the one series
# there is, or empty: all), config (plain or debug).

tree=$(cd "$(dirname "$0")/.." && pwd -P)
kernel=$tree/kernel
label='kernel'

say()
{
	printf 'mmscope: %s: %s\n' "$label" "$*" >&2
}

die()
{
	say "$@"
	exit 1
}

# The series that there are, in the order in which they are applied: by name.
all_series()
{
	for dir in "$kernel"/series/*/; do
		for file in "$dir"*.patch; do
			[ -e "$file" ] && basename "$dir" && break
		done
	done
}

# one_line LIST: "a b" of a list with a word on each line.
one_line()
{
	printf '%s\n' "$1" | tr '\n' ' ' | sed 's/ $//'
}

read_kernel()
{
	label="kernel $1" config=plain series='' steps=''
	spec=$1
	case $spec in
	*+debug) config=debug spec=${spec%+debug} ;;
	esac
	known=$(all_series)
	case $spec in
	vanilla) name=vanilla ;;
	patched)
		[ -n "$known" ] || die "there is no patch series in $kernel/series; use vanilla"
		name=patched series=$known
		;;
	patched:?*)
		name=${spec#patched:}
		series=${name%%@*}
		printf '%s\n' "$known" | grep -qxF -e "$series" ||
			die "no series of that name; there are: $(one_line "${known:-none}")"
		case $name in
		*@*) read_steps "${name#*@}" ;;
		esac
		;;
	*)
		say "what is this? vanilla[+debug] or patched[:SERIES[@N]][+debug]"
		exit 2
		;;
	esac
	[ $config = plain ] || name=$name-$config
}

read_steps()
{
	count=$(list_patches "$series" | wc -l)
	case $1 in
	'' | *[!0-9]* | 0* | ????*) count=0 steps=1 ;;
	*) steps=$1 ;;
	esac
	[ "$steps" -le "$count" ] ||
		die "which step? $series has $(list_patches "$series" | wc -l), counted from 1"
	name=$series-$steps
}

# The patch files of a series.
list_patches()
{
	for file in "$kernel/series/$1"/*.patch; do
		[ -e "$file" ] && printf '%s\n' "$file"
	done
}

# Those of the kernel that is meant.
wanted_patches()
{
	for one in $series; do
		list_patches "$one" | if [ -n "$steps" ]; then head -n "$steps"; else cat; fi
	done
}

# Sets source (a directory) and source_id (what it is, for a key). MMSCOPE_KERNEL_SOURCE names
# another one than Debian's package, which mmscope fetches.
find_source()
{
	if [ -n "${MMSCOPE_KERNEL_SOURCE:-}" ]; then
		source=$(cd "$MMSCOPE_KERNEL_SOURCE" 2>/dev/null && pwd -P) &&
			[ -f "$source/Makefile" ] && [ -d "$source/arch" ] ||
			die "MMSCOPE_KERNEL_SOURCE: $MMSCOPE_KERNEL_SOURCE is no kernel source"
		source_id=$(cd "$source" && find . -name .git -prune -o -type f \
			-printf '%P %s %T@\n' | sort | sha256sum)
		source_id="$source ${source_id%% *}"
	else
		mmscope=${MMSCOPE:-$tree/build/mmscope}
		[ -x "$mmscope" ] || die "$mmscope is not there: run make first"
		source=$("$mmscope" vm --source) || exit 1
		source_id=$(basename "$source")
	fi
	source_version=$(sed -n 's/^\(VERSION\|PATCHLEVEL\|SUBLEVEL\) *= *//p' "$source/Makefile" |
		head -n 3 | paste -s -d .)
}

# The files that patches name, one a line.
touched_by()
{
	sed -n 's/^--- a\/\([^	]*\).*/\1/p; s/^+++ b\/\([^	]*\).*/\1/p' "$@" | sort -u
}

# try_patches DIR FILE...: applies them in DIR, which gets the files they need. Prints
# "PATCH FILE" of the first that does not apply.
try_patches()
{
	dir=$1
	shift
	for file; do
		touched_by "$file" | while IFS= read -r path; do
			[ ! -e "$dir/.seen/$path" ] || continue
			mkdir -p "$dir/.seen/$(dirname "$path")" "$dir/$(dirname "$path")" || exit
			: >"$dir/.seen/$path"
			[ ! -e "$source/$path" ] || cp -p "$source/$path" "$dir/$path" || exit
		done || die 'a patched file cannot be written; is the disk full?'
		# No fuzz: a hunk that fits by guess is not what its author looked at.
		if ! patch -d "$dir" -p1 -s -f --fuzz=0 --no-backup-if-mismatch \
			<"$file" >"$dir/.said" 2>&1; then
			path=$(sed -n 's/.*saving rejects to file \(.*\)\.rej$/\1/p' "$dir/.said" |
				head -n 1)
			grep -q 'No space left' "$dir/.said" && die 'the disk is full'
			[ -n "$path" ] || path=$(touched_by "$file" | head -n 1)
			printf '%s %s\n' "$file" "$path"
			return 1
		fi
	done
}

# make_patched DIR: DIR, which is not there, holds the touched files as the series leave
# them, and in .seen the names of all that they touched.
make_patched()
{
	rm -rf "$1"
	mkdir -p "$1/.seen" || die "$1: cannot be made"
	wanted_patches >"$1/.patches"
	[ -s "$1/.patches" ] || return 0
	# shellcheck disable=SC2046 # names of this tree, without spaces below kernel/
	failed=$(IFS='
'; try_patches "$1" $(cat "$1/.patches")) && return 0
	[ -n "$failed" ] || exit 1
	file=${failed%% *} path=${failed#* }
	one=$(basename "$(dirname "$file")")
	file=$(basename "$file")
	# Alone, is it in order?
	for other in $series; do
		[ "$other" != "$one" ] || break
		list_patches "$other" | tr '\n' '\0' | xargs -0 cat | touched_by |
			grep -qxF -e "$path" && foe="${foe:+$foe and }$other"
	done
	if [ -n "${foe:-}" ]; then
		rm -rf "$1"
		mkdir -p "$1/.seen"
		# shellcheck disable=SC2046
		(IFS='
'; try_patches "$1" $(list_patches "$one") >/dev/null) &&
			die "series $one conflicts with $foe: after it, $file does not apply to $path"
	fi
	die "series $one: $file does not apply to $path of $source_version"
}

# Configuring and building, of whoever sets: linux (the tree), source (where its Makefile's
# date is from), objects (a directory for notes), log (a file), name and config.

fragments()
{
	echo "$kernel/config/vm.config"
	[ "$config" = plain ] || echo "$kernel/config/$config.config"
}

# The fragments as one: where both have an option, the last one counts.
merged_config()
{
	# shellcheck disable=SC2046
	awk '/^CONFIG_/ { split($0, part, "="); want[part[1]] = $0 }
	     /^# CONFIG_[A-Za-z0-9_]* is not set$/ { want[$2] = $0 }
	     END { for (o in want) print want[o] }' $(fragments) | sort
}

# run_make HOW ARGUMENTS; HOW is nothing, or for the background "exec setsid": $! is then
# make itself, and the group of all that it starts.
#
# kbuild takes much from its environment: it gets nothing of ours, and no Rust, which shows
# in the configuration if it is installed. Equal input gives an
# equal kernel: no time of today, no name of this machine.
run_make()
{
	how=$1
	shift
	$how env -i PATH="$PATH" HOME=/ LC_ALL=C TMPDIR="${TMPDIR:-/tmp}" \
		KBUILD_BUILD_TIMESTAMP="$(date -u -r "$source/Makefile")" \
		KBUILD_BUILD_USER=mmscope KBUILD_BUILD_HOST=mmscope KBUILD_BUILD_VERSION=1 \
		KCONFIG_ALLCONFIG="$objects/fragments" LOCALVERSION="-mmscope-$name" \
		make -C "$linux" -j"$(nproc)" RUSTC=false "$@" </dev/null
}

# The first line of the log that tells why.
first_error()
{
	if grep -q 'No space left on device' "$log"; then
		echo 'the disk is full'
	else
		# make's own words only if there are no others.
		grep -v '^make' "$log" >"$log.other"
		grep -m 1 -E '(^|[ :])([Ee]rror|ERROR|fatal error):|undefined reference' \
			"$log.other" ||
			grep -m 1 -E 'not found$|No such file' "$log.other" ||
			grep -m 1 -F '***' "$log" || echo 'make failed without a reason'
		rm -f "$log.other"
	fi | sed "s|$linux/||g"
}

configure()
{
	merged_config >"$objects/fragments" || die "$objects: cannot be written"
	run_make '' -s alldefconfig >"$log" 2>&1 ||
		die "cannot be configured: $(first_error) ($log)"
	while IFS= read -r line; do
		case $line in
		CONFIG_*) option=${line%%=*} ;;
		*) option=${line#\# } option=${option%% *} ;;
		esac
		got=$(grep -E "^(# )?${option}[= ]" "$linux/.config")
		[ "$line" != "$got" ] && [ "$line" != "# $option is not set$got" ] || continue
		# shellcheck disable=SC2046
		file=$(grep -lxF -e "$line" $(fragments) | tail -n 1)
		die "$line (${file#"$tree"/}) is not in the final .config, which has" \
			"${got:-nothing of it}: an option that it depends on or that selects it decides"
	done <"$objects/fragments"
}

# What builds into the cache: cache and, for what is being built, work.

find_cache()
{
	cache=${MMSCOPE_CACHE:-${HOME:+$HOME/.cache/mmscope}}
	[ -n "$cache" ] || die 'neither MMSCOPE_CACHE nor HOME names a directory'
	mkdir -p "$cache/build" "$cache/kernels" 2>/dev/null ||
		die "$cache: cannot be used as cache; MMSCOPE_CACHE names another"
	cache=$(cd "$cache" && pwd -P)
	work=$cache/build
	case $work in
	*[[:space:]:]*) die "$work: make cannot work below a name with spaces or colons" ;;
	esac
}

take_lock()
{
	exec 9>>"$work/lock" || die "$work/lock: cannot be opened"
	if ! flock -n 9; then
		read -r who <"$work/lock"
		say "waiting for the build of ${who:-another kernel}"
		flock 9
	fi
	echo "$name, process $$, since $(date +%H:%M)" >"$work/lock"
}

# check_space KIB
check_space()
{
	free=$(df -Pk "$work" | awk 'NR == 2 { print $4 }')
	[ "${free:-$1}" -ge "$1" ] ||
		die "$work: $((free / 1024))M free, $(($1 / 1024))M are needed;" \
			"MMSCOPE_CACHE names another place"
}

# drop_damaged DIR: a compiler that was killed may leave half an object, newer than the note
# that kbuild made of its last one, and make would take it for finished.
drop_damaged()
{
	find "$1" -name '*.o' | while IFS= read -r file; do
		note=${file%/*}/.${file##*/}.cmd
		[ -e "$note" ] && [ -z "$(find "$file" -newer "$note")" ] || rm -f "$file"
	done
}
