#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""namenode.py ADDRESS PORT GROUPS: a stand-in for a NameNode, until it is killed. It lists so many
block groups, and there are no DataNodes that have blocks of them."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cluster"))
from fake_namenode import FakeNameNode  # noqa: E402
from hdfs_group import Group  # noqa: E402

if __name__ == "__main__":
    with FakeNameNode(sys.argv[1], int(sys.argv[2])) as namenode:
        namenode.groups = [Group(6 * 65536, number=number)
                           for number in range(1, 1 + int(sys.argv[3]))]
        signal.pause()
