#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 7200
# needs: kernels, also: debug
#
# The functional tests of mapped BPF arrays with KASAN, lockdep and checks of page
# tables, where a report in the guest's log fails the run, and on the steps between.
exec sh "${MMSCOPE_TREE:?}/tests/vm/arraymap_functional.sh" patched+debug ramp vanilla+debug eager \
	patched:arraymap@3 fault patched:arraymap@4 window
