#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 3600
#
# The locks of the kernels that make check leaves out, or does not ask for all.
exec "$MMSCOPE_TREE/tests/vm/lock.py" 7.2 6.12 6.1
