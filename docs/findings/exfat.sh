#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# In the virtual machine: 4 MiB of a file that is in the page cache, each page
# read once, in order, through a mapping.
set -eu

mkdir -p /mnt/exfat
mount -t exfat /dev/vda /mnt/exfat
mmscope fault --exact -- mmscope bench touch --backing file --path /mnt/exfat/file \
	--touch read --size 4M --repeat 1 >/dev/null
