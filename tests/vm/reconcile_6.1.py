#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1200
"""Resident sets and what is torn down, on 6.1: see lib/reconcile.py."""

import reconcile

reconcile.main("6.1")
