#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 600
#
# A short look with the fuzz targets, where clang has libFuzzer; tests/long/fuzz.sh
# looks longer.
exec "$MMSCOPE_TREE/tests/fuzz/run.sh" 10
