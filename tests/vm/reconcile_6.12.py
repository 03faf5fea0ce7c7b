#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1200
"""Resident sets and what is torn down, on 6.12: see lib/reconcile.py."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import reconcile

sys.exit(reconcile.main("6.12"))
