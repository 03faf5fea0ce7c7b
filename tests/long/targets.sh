#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1500
#
# The targets of mmscope fault on the kernels that make check leaves out.
exec "$MMSCOPE_TREE/tests/vm/targets.py" 7.2 6.12 6.1=namespaces,refusals,record
