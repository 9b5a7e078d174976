# SPDX-License-Identifier: Apache-2.0
"""The experiment `implementations`: ways to repair and to transport, by block size; with
--rate-mbit 0 also what they make of the cores when no link is slow."""

from __future__ import annotations

import argparse
from typing import Any

from labkit.process import LabError
from . import blocks
from .testbed import Testbed

EXPERIMENT = "implementations"
NEEDS_SHAPING = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    blocks.add_arguments(parser, "1,8,64", "conventional,ppr,pipe-b,pipe-s,rp")
    parser.add_argument("--socket-kib", type=int, default=0,
                        help="what TCP may keep at either end of a connection, in KiB; 0: what "
                             "the machine allows (default 0)")


def run(arguments: argparse.Namespace, testbed: Testbed) -> list[dict[str, Any]]:
    """As `blocks`; rebuilt gigabytes for each second of CPU time are added to the rows."""
    if arguments.socket_kib < 0:
        raise LabError("--socket-kib must not be negative")
    rows = blocks.run(arguments, testbed, EXPERIMENT, arguments.socket_kib * 1024)
    for row in rows:
        if row["cpu_s"] > 0:
            row["gb_per_cpu_s"] = row["parameters"]["block_bytes"] / 1e9 / row["cpu_s"]
        row["gb_per_s"] = row["parameters"]["block_bytes"] / 1e9 / row["median_s"]
    return rows
