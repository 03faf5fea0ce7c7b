#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1800
#
# The locks of the kernels that make check leaves out.
exec "$MMSCOPE_TREE/tests/vm/lock.py" 7.2 6.12
