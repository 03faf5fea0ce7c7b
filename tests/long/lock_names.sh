#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1800
#
# Names of locks and reasons of faults on the kernels that make check leaves out.
exec "$MMSCOPE_TREE/tests/vm/lock_names.py" 7.2 6.12 6.1
