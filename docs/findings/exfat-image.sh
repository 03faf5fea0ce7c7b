#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# exfat-image.sh FILE: an empty exFAT file system of 32 MiB (needs exfatprogs).
set -eu

PATH=$PATH:/usr/sbin:/sbin
image=${1:?exfat-image.sh FILE}
rm -f "$image"
truncate -s 32M "$image"
mkfs.exfat "$image" >/dev/null
