#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1200
"""Every backing and every path into a fault is told apart on 6.1: see lib/backings.py."""

import backings

backings.main("6.1")
