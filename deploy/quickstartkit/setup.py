# SPDX-License-Identifier: Apache-2.0
"""How much data, which code, which schemes; the command line."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from labkit.stripes import MIB

N, K = 14, 10
NODES = 15  # one more than a stripe has blocks, so that stripes lie differently
LOST_NODE = "node-8"  # it has a block of each stripe
SLICE_BYTES = 32 * 1024
NAME = "usr"
# A rate at which two cores have time to spare for eleven hops: what is measured is the network.
LINK_MBIT = 200
# Of direct and rp over tcp, whose ratio counts most: the median of so many runs.
RUNS = 3
# Scheme and transport. `direct` copies a healthy block: what reading costs when nothing is lost.
REPAIRS = (("direct", "tcp"), ("conventional", "tcp"), ("ppr", "tcp"), ("rp", "tcp"),
           ("rp", "redis"))


@dataclass(frozen=True)
class Setup:
    """What one run works with."""

    block_bytes: int
    file_bytes: int  # of the real file; it does not fill the last stripe
    limited: bool    # whether links have a rate
    kill_mbit: int   # so slow that a small block's repair has a middle; 0: as links are

    @property
    def slices(self) -> int:
        return self.block_bytes // SLICE_BYTES

    def theory(self, scheme: str) -> float:
        """Times a direct read, over links of one rate. PPR: a binomial tree of k helpers and the
        requestor. RP: the first slice takes a slice's time on each of k links, and then the last
        link is busy until all have come."""
        return {"direct": 1.0, "conventional": float(K), "ppr": float(K.bit_length()),
                "rp": 1 + (K - 1) / self.slices}[scheme]


def setup_of(arguments: argparse.Namespace) -> Setup:
    """On loopback a block takes no time to speak of unless it is large. Any system that can build
    has so much in its folders of programs."""
    limited = not arguments.loopback
    if arguments.quick:
        return Setup((4 if limited else 8) * MIB, 72 * MIB, limited, LINK_MBIT // 8)
    return Setup((16 if limited else 64) * MIB, 600 * MIB, limited, 0)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="deploy/quickstart.sh")
    parser.add_argument("--loopback", action="store_true", help="no limits; only the table")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    parser.add_argument("--keep", action="store_true", help="keep the work directory")
    parser.add_argument("--hold", action="store_true", help="leave the cluster up until ctrl-C")
    parser.add_argument("--work-dir", type=Path, help="work here and keep it")
    return parser.parse_args()
