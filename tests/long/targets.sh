#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1500
#
# The targets of mmscope fault as far as make check leaves them out.
exec "$MMSCOPE_TREE/tests/vm/targets.py" 7.2 6.12 6.1=cgroups,names,old,namespaces,refusals,record
