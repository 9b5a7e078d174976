#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Codes other than Reed-Solomon's Cauchy form: the lost bytes come back by every scheme."""

from __future__ import annotations

import itertools
import json

import case
from case import SCHEMES, ClusterCase


class LocalGroups(ClusterCase):
    """A code whose single failures are repaired from a part of the stripe."""

    code = "lrc(4,2,1)"  # two groups of two data blocks and their parity, and one global parity
    redis = True

    def helpers_of(self, block_id: str, scheme: str) -> set[str]:
        plan = json.loads(self.cluster.cli("plan", block_id, "--format", "json",
                                           "--scheme", scheme).stdout)
        return {hop["block_id"] for lane in plan["lanes"] for hop in lane["hops"]
                if "block_id" in hop}

    def test_a_single_failure_stays_in_its_group(self) -> None:
        blocks = [self.block(0, index) for index in range(7)]
        groups = ({0, 1, 4}, {2, 3, 5})
        for index, scheme in itertools.product(range(7), SCHEMES):
            transport = ("tcp", "redis")[index % 2]
            with self.subTest(index=index, scheme=scheme, transport=transport):
                helpers = self.helpers_of(blocks[index]["block_id"], scheme)
                group = next((g for g in groups if index in g), None)
                if group is None:
                    self.assertEqual(len(helpers), 4, "any k blocks make a global parity")
                else:
                    self.assertEqual(helpers, {blocks[i]["block_id"] for i in group - {index}})
                # Each scheme rebuilds some of the blocks, and each block is rebuilt by some.
                if (index + SCHEMES.index(scheme)) % 3 == 0:
                    self.repair(blocks[index]["block_id"], "--scheme", scheme,
                                "--transport", transport, "--sha256", blocks[index]["sha256"])

    def test_without_its_group_the_global_parity_helps(self) -> None:
        lost, mate = self.block(1, 2), self.block(1, 3)
        file = self.cluster.block_file(mate["block_id"])
        content = file.read_bytes()
        file.unlink()
        try:
            for scheme in SCHEMES:
                self.repair(lost["block_id"], "--scheme", scheme, "--sha256", lost["sha256"])
        finally:
            file.write_bytes(content)

    def test_decode_and_verify(self) -> None:
        self.assert_decodes()


class EveryScheme:
    """Each scheme and transport rebuilds the first data block, or the last parity, of the class's
    code."""

    redis = True
    block_bytes = 100_003
    file_bytes = 12 * 100_003

    def test_schemes_and_transports(self) -> None:
        blocks = self.manifest["stripes"][0]["blocks"]
        for i, scheme in enumerate(SCHEMES):
            for transport, lost in zip(("tcp", "redis"), (blocks[-(i % 2)], blocks[i % 2 - 1])):
                with self.subTest(scheme=scheme, transport=transport, lost=lost["block_id"]):
                    self.repair(lost["block_id"], "--scheme", scheme, "--transport", transport,
                                "--sha256", lost["sha256"])
        self.assert_nothing_left()


class Vandermonde(EveryScheme, ClusterCase):
    code = "rs-vandermonde(9,6)"
    nodes = 9


class Xor(EveryScheme, ClusterCase):
    code = "xor(3,2)"
    nodes = 3


class AzureLrc(EveryScheme, ClusterCase):
    code = "lrc(12,2,2)"
    nodes = 16


if __name__ == "__main__":
    case.main()
