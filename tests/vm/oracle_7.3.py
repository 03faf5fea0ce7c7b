#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1500
"""What mmscope fault counts on 7.3 is the truth: see lib/."""

import oracle

oracle.main("7.3")
