#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 3000
#
# Ten minutes of each fuzz target.
exec "$MMSCOPE_TREE/tests/fuzz/run.sh" 600
