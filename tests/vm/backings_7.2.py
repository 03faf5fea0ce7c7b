#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1200
"""Every backing and every path into a fault is told apart on 7.2: see lib/backings.py."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import backings

sys.exit(backings.main("7.2"))
