#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 600
#
# What observing costs, as far as it takes one boot: instructions, which do not depend on
# what else the machine does.
exec python3 "${MMSCOPE_TREE:?}/tests/long/cost.py" --reduced
