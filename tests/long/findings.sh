#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1800
#
# What docs/findings.md says of perf, which is built for it.
exec "$MMSCOPE_TREE/tests/vm/findings.py" perf
