#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repairs through real daemons: the lost bytes come back, and nothing more than they travels."""

from __future__ import annotations

import itertools
import json
import subprocess

import case
from case import AUTO_SCHEMES, HANG, SCHEMES, ClusterCase, sha256
from labkit import schemes

HEADER_BYTES = 40


class Repairs(ClusterCase):
    redis = True

    def test_schemes_and_transports(self) -> None:
        lost = self.block(0, 1)
        want = self.bytes_of(lost["block_id"])
        for scheme, transport in itertools.product(SCHEMES, ("tcp", "redis")):
            with self.subTest(scheme=scheme, transport=transport):
                report = self.repair(lost["block_id"], "--scheme", scheme,
                                     "--transport", transport, "--sha256", lost["sha256"])
                self.assertEqual((self.work / "out").read_bytes(), want)
                self.assertEqual(report["scheme"], scheme)
                self.assertEqual(report["transport"], transport)
                self.assertEqual(report["blocks"][0]["sha256"], sha256(want))
        self.assert_nothing_left()

    def test_encode_has_defaults(self) -> None:
        """It gets as far as its file without a code and a block size."""
        said = self.fails(case.NOT_FOUND, "encode", self.work / "no-such-file", "-o", self.work)
        self.assertIn("no-such-file", said)

    def test_encode_says_what_it_would_write(self) -> None:
        source, out = self.work / "seven", self.work / "nothing"
        source.write_bytes(b"7" * 700)
        words = ("encode", source, "-o", out, "--code", "rs(6,4)", "--block-size", "100")
        self.assertIn("would write 12 blocks of 100 B in 2 stripes of ",
                      self.cluster.cli(*words, "--dry-run").stdout)
        self.assertFalse(out.exists())
        self.cluster.cli(*words)
        self.assertIn("exists", self.fails(case.FAILED, *words, "--dry-run"))

    def test_every_block_of_a_stripe(self) -> None:
        for index in range(6):
            block = self.block(1, index)
            self.repair(block["block_id"], "--sha256", block["sha256"])

    def test_slice_sizes(self) -> None:
        lost = self.block(0, 0)
        for size in ("257", "4KiB", "32KiB", "1000003", "2MiB"):
            for scheme in SCHEMES:
                with self.subTest(size=size, scheme=scheme):
                    self.repair(lost["block_id"], "--scheme", scheme, "--slice-size", size,
                                "--sha256", lost["sha256"])

    def test_ranges(self) -> None:
        lost = self.block(0, 2)
        want = self.bytes_of(lost["block_id"])
        end = self.block_bytes
        for offset, length in ((0, 1), (end - 1, 1), (5, 70_000), (65_535, 65_538), (end - 3, 3)):
            with self.subTest(offset=offset, length=length):
                done = subprocess.run(
                    self.cluster.command("-q", "read", lost["block_id"], "--offset", str(offset),
                                         "--length", str(length), "--scheme", "rp"),
                    capture_output=True, timeout=HANG, check=True)
                self.assertEqual(done.stdout, want[offset:offset + length])
        done = subprocess.run(
            self.cluster.command("-q", "read", lost["block_id"], "--offset", "999000"),
            capture_output=True, timeout=HANG, check=True)
        self.assertEqual(done.stdout, want[999_000:])

    def test_only_the_range_travels(self) -> None:
        reports = []
        counters = ("data_bytes_sent", "data_bytes_received", "block_bytes_read")
        grown = self.grown(counters, lambda: reports.append(self.repair(
            self.block(0, 3)["block_id"], "--scheme", "rp",
            "--offset", "100000", "--length", "100000", "--slice-size", "30000")))
        # Four slices over each of the k = 4 streams, each with its header.
        stream = 100_000 + 4 * HEADER_BYTES
        self.assertEqual(reports[-1]["bytes_received"], stream)
        self.assertEqual([sum(grown[counter]) for counter in counters],
                         [4 * stream, 3 * stream, 4 * 100_000])

    def test_several_repairs_at_once(self) -> None:
        targets = [self.block(stripe, index) for stripe in range(2) for index in range(6)]
        running = [subprocess.Popen(
            self.cluster.command("repair", target["block_id"], "-o", self.work / f"many-{i}",
                                 "--sha256", target["sha256"], "-q",
                                 "--scheme", SCHEMES[i % len(SCHEMES)]),
            stdout=subprocess.DEVNULL) for i, target in enumerate(targets)]
        for process in running:
            self.assertEqual(process.wait(timeout=HANG), 0)
        self.assert_nothing_left()

    def test_direct_and_defaults(self) -> None:
        there = self.block(0, 5)
        report = self.repair(there["block_id"], "--scheme", "direct", "--sha256", there["sha256"])
        self.assertEqual(report["total_bytes"], self.block_bytes)
        report = self.repair(there["block_id"])
        self.assertEqual(report["scheme"], "rp", "auto takes the fastest: the range has 31 slices")

    def test_plan(self) -> None:
        block_id = self.block(0, 0)["block_id"]
        for scheme in SCHEMES:
            plan = json.loads(self.cluster.cli("plan", block_id, "--format", "json",
                                               "--scheme", scheme).stdout)
            self.assertEqual(plan["scheme"], scheme)
            self.assertEqual(plan["total_bytes"], 4 * self.block_bytes)
            self.assertEqual(len(plan["lanes"][0]["hops"]), 5)
            self.assertEqual([prediction["scheme"] for prediction in plan["predictions"]],
                             AUTO_SCHEMES)
        self.assertIn("expected:", self.cluster.cli("plan", block_id).stdout)
        dot = self.cluster.cli("plan", block_id, "--format", "dot").stdout
        self.assertTrue(dot.startswith("digraph"))

    def test_schemes_are_listed(self) -> None:
        done = subprocess.run([case.BIN_DIR / "ecpipe-coordinator", "--schemes"],
                              capture_output=True, text=True, timeout=HANG, check=True)
        self.assertEqual(self.cluster.cli("schemes").stdout, done.stdout)
        listed = json.loads(self.cluster.cli("schemes", "--json").stdout)
        self.assertEqual(listed, list(schemes.registered(case.BIN_DIR)))
        self.assertEqual([scheme["scheme"] for scheme in listed], [
            line.split()[0] for line in done.stdout.split("\n\n")[0].splitlines()[1:]])
        self.assertTrue(set(SCHEMES) < {scheme["scheme"] for scheme in listed}, "direct as well")

    def test_decode_and_verify(self) -> None:
        self.assert_decodes()

    def test_catalog(self) -> None:
        listed = json.loads(self.cluster.cli("catalog", "list", "--json").stdout)
        self.assertEqual([stripe["stripe_id"] for stripe in listed], ["file-s00000", "file-s00001"])
        located = self.cluster.cli_json("catalog", "locate", self.block(1, 4)["block_id"])
        self.assertEqual(located["block_index"], 4)
        self.assertEqual(located["blocks"][4]["node"], self.block(1, 4)["node"])


if __name__ == "__main__":
    case.main()
