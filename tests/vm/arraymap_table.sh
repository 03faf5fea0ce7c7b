#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 3000
# needs: kernels
#
# The reduced table of the series arraymap: counts, and the targets that need no others.
exec python3 "${MMSCOPE_TREE:?}/tests/long/arraymap_table.py" --reduced
