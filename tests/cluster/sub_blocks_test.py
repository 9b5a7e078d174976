#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A code over sub-blocks, Rotated RS: right bytes by every way to ask, and less to read."""

from __future__ import annotations

import itertools
import json
import subprocess

import case
from case import HANG, SCHEMES, USAGE, ClusterCase, sha256

UNIT, ROWS = 4096, 2
GROUP = UNIT * ROWS


class RotatedRs(ClusterCase):
    code = f"rotated-rs(9,6,{ROWS},{UNIT})"
    nodes = 11
    redis = True
    block_bytes = 13 * GROUP
    file_bytes = 6 * 13 * GROUP - 7

    def read(self, block_id: str, *arguments: str) -> bytes:
        return subprocess.run(self.cluster.command("-q", "read", block_id, *arguments),
                              capture_output=True, timeout=HANG, check=True).stdout

    def ids(self, *indices: int) -> list[str]:
        return [self.block(0, index)["block_id"] for index in indices]

    def blocks_read(self, *command: str) -> float:
        """How much all helpers read for it, in blocks."""
        read = self.grown(("block_bytes_read",), lambda: self.cluster.cli(*command))
        return sum(read["block_bytes_read"]) / self.block_bytes

    def test_schemes_and_transports(self) -> None:
        for i, (scheme, transport) in enumerate(itertools.product(SCHEMES, ("tcp", "redis"))):
            # Data blocks of each side of the cut, and a parity.
            for lost in (self.block(0, 0), self.block(0, 5), self.block(0, 8))[i % 3::2]:
                with self.subTest(scheme=scheme, transport=transport, lost=lost["block_id"]):
                    self.repair(lost["block_id"], "--scheme", scheme, "--transport", transport,
                                "--sha256", lost["sha256"])
        self.assert_nothing_left()

    def test_several_blocks_into_files(self) -> None:
        lost = self.ids(7, 1, 4)
        directory = self.work / "rebuilt"
        directory.mkdir()
        for scheme in SCHEMES:
            with self.subTest(scheme=scheme):
                self.cluster.cli("repair", *lost, "-d", directory, "--scheme", scheme, "-q")
                for index in (7, 1, 4):
                    block = self.block(0, index)
                    file = directory / block["block_id"]
                    self.assertEqual(sha256(file.read_bytes()), block["sha256"])
                    file.unlink()

    def test_nodes_store_blocks(self) -> None:
        for scheme in SCHEMES:
            with self.subTest(scheme=scheme):
                homes = {}
                for index in (2, 6):
                    file = self.cluster.block_file(self.ids(index)[0])
                    homes[index] = file.parent.name
                    file.unlink()
                self.cluster.cli("repair", *self.ids(2, 6), "--to",
                                 ",".join(homes.values()), "--scheme", scheme)
                for index, home in homes.items():
                    block = self.block(0, index)
                    file = self.cluster.data_dir() / home / block["block_id"]
                    self.assertEqual(sha256(file.read_bytes()), block["sha256"])

    def test_ranges_in_order_and_into_files(self) -> None:
        lost = self.block(0, 3)["block_id"]
        want = self.bytes_of(lost)
        end = self.block_bytes
        ranges = ((0, 1), (end - 1, 1), (UNIT - 1, 2), (GROUP - 1, 2), (GROUP, GROUP),
                  (5, 3 * GROUP + 7), (UNIT + 3, end - UNIT - 3), (0, end))
        for (offset, length), scheme in itertools.product(ranges, ("rp", "rp-cyclic")):
            with self.subTest(offset=offset, length=length, scheme=scheme):
                arguments = ("--offset", str(offset), "--length", str(length), "--scheme", scheme)
                self.assertEqual(self.read(lost, *arguments), want[offset:offset + length])
                report = self.repair(lost, *arguments)
                self.assertEqual((report["offset"], report["bytes"]), (offset, length))
                self.assertEqual((self.work / "out").read_bytes(), want[offset:offset + length])
        self.assertEqual(self.read(lost, "--offset", "5"), want[5:])

    def test_slice_sizes(self) -> None:
        lost = self.block(0, 2)
        want = self.bytes_of(lost["block_id"])
        for size in ("1", "4095", "4096", "10000", "1MiB"):
            with self.subTest(size=size):
                self.assertEqual(self.read(lost["block_id"], "--slice-size", size), want)
                self.repair(lost["block_id"], "--slice-size", size, "--sha256", lost["sha256"])

    def test_less_is_read(self) -> None:
        # Parity 1 rotates the first 2 of the 6 data blocks. Block 0's first row takes the other 5
        # and parity 0; the second takes, beside what has been read, block 1's and parity 1.
        out = str(self.work / "out")
        for scheme in ("conventional", "rp"):
            self.assertEqual(self.blocks_read("repair", *self.ids(0), "-o", out, "-q",
                                              "--scheme", scheme), (6 + 2) / 2)
        self.assertEqual(self.blocks_read("repair", *self.ids(6), "-o", out, "-q"), 6)
        # Only the groups that a range touches.
        self.assertEqual(self.blocks_read("repair", *self.ids(6), "-o", out, "-q", "--offset",
                                          str(GROUP - 1), "--length", "2"), 6 * 2 / 13)
        # Conventional repair carries what is read, and a path one block a link.
        report = self.repair(self.ids(0)[0], "--scheme", "conventional")
        self.assertEqual(report["total_bytes"], 4 * self.block_bytes)
        report = self.repair(self.ids(0)[0], "--scheme", "rp")
        self.assertEqual(report["busiest_link_bytes"], self.block_bytes)

    def test_plan(self) -> None:
        plan = json.loads(self.cluster.cli("plan", *self.ids(0), "--scheme", "rp", "--format",
                                           "json").stdout)
        self.assertEqual((plan["sub_blocks"], plan["unit_bytes"]), (ROWS, UNIT))
        read = {hop["block_index"]: hop["sub_blocks"]
                for hop in plan["lanes"][0]["hops"] if "block_id" in hop}
        self.assertEqual(read[6], [0], "parity 0 serves the even sub-block")
        self.assertEqual(read[7], [0], "parity 1's even sum has the odd one")
        text = self.cluster.cli("plan", *self.ids(0), "--scheme", "rp").stdout
        self.assertIn("of each of 2 sub-blocks", text)
        self.assertIn("sub-blocks 0,1 x [", text)

    def test_direct_and_decode(self) -> None:
        there = self.block(0, 5)
        report = self.repair(there["block_id"], "--scheme", "direct", "--sha256", there["sha256"])
        self.assertEqual(report["total_bytes"], self.block_bytes)
        self.assert_decodes()
        files = [self.cluster.block_file(block) for block in self.ids(0, 4, 7)]
        kept = [file.read_bytes() for file in files]
        for file in files:
            file.unlink()
        try:
            self.cluster.cli("decode", self.manifest_path, "--blocks", self.cluster.data_dir(),
                             "-o", self.work / "decoded")
            self.assertEqual((self.work / "decoded").read_bytes(), self.source.read_bytes())
        finally:
            for file, content in zip(files, kept):
                file.write_bytes(content)

    def test_blocks_are_whole_groups(self) -> None:
        said = self.fails(USAGE, "encode", self.source, "--out", self.work / "elsewhere", "--code",
                          self.code, "--block-size", str(GROUP + 1), "--name", "odd")
        self.assertIn(f"a multiple of {GROUP}", said)


if __name__ == "__main__":
    case.main()
