#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1500
#
# What robust.py proves of the newest kernel, on the oldest.
exec "$MMSCOPE_TREE/tests/vm/robust.py" 6.1
