#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1500
#
# What hostile.py proves of the newest kernel, on the oldest.
exec "$MMSCOPE_TREE/tests/vm/hostile.py" 6.1
