#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1500
#
# What robust.py proves of the newest kernel, on the others.
exec "$MMSCOPE_TREE/tests/vm/robust.py" 6.1 7.2 6.12
