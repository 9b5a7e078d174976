#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small runs of the lab's experiments: each row is there, with right bytes, and where links have
rates no link carried more than theory has it carry, and none was faster than it allows. How much
slower a repair is than that is the host's matter, and no test's.

Exit code 77 with "SKIP: reason" where namespaces cannot be used.
"""

from __future__ import annotations

import json
import sys
import tempfile
import unittest
from pathlib import Path

from lab_command import REPOSITORY, rows_of
from experiments.testbed import Emulated
from labkit import netns, timeline
from labkit.links import Links
from labkit.netns import Network
from labkit.process import interruptible, run

EXIT_SKIPPED = 77
SMALL = ("--n", "6", "--k", "4")
BIN_DIR = Path()
# Of what a scheme takes by the links in theory: each token bucket lets its burst of 128 KiB pass at
# once, and several lanes pass several.
FASTEST = 0.7
# The busiest link's bytes by its rate may be more than the time: bursts, and bytes sent again.
MORE_BY_LINKS = 1.2


class Experiments(unittest.TestCase):
    def run_rows(self, experiment: str, *arguments: str) -> dict[tuple, dict]:
        """By scheme, and whatever parameters beside it tell rows apart."""
        self.rows = rows_of(BIN_DIR, experiment, *arguments)
        for row in self.rows:
            self.assertTrue(row["sha256_ok"], row["scheme"])
            theory_s = row.get("theory_ratio", 0.0) * row.get("direct_wire_s", 0.0)
            self.assertGreater(row["median_s"], FASTEST * theory_s, row["scheme"])
            # A link that others hold back to less than that is never at work: timeline.py.
            if row.get("link_carried_s", 0.0) >= timeline.AT_WORK * row["median_s"]:
                pieces = row["link_carried_s"] + row["link_before_s"] + row["link_after_s"]
                self.assertLess(pieces, row["median_s"] * MORE_BY_LINKS, row["scheme"])
                if theory_s:
                    self.assertLess(row["link_carried_s"], MORE_BY_LINKS * theory_s, row["scheme"])
        return {(row["scheme"], row["parameters"].get(self.by)): row for row in self.rows}

    by = ""

    def test_edge(self) -> None:
        """At a fifth of the other links' rate: rp takes as long as a direct send, rp-cyclic shares
        the requestor's links among k - 1 helpers."""
        self.by = "edge_mbit"
        rows = self.run_rows("edge", *SMALL, "--block-mib", "2", "--rate-mbit", "100",
                             "--edge-mbit", "100,20")
        self.assertAlmostEqual(rows["rp", 20]["theory_ratio"], 1.0, delta=0.02)
        self.assertAlmostEqual(rows["rp-cyclic", 20]["theory_ratio"], 1 / 3, delta=0.02)
        self.assertEqual(len(rows), 6)
        self.assertTrue(all("link_carried_s" in rows[key] for key in rows if key[0] != "direct"))

    def test_rack(self) -> None:
        """Algorithm 1 enters the requestor's rack once; conventional repair takes what the four or
        more helpers elsewhere send over the rack's one link."""
        self.by = "cross_mbit"
        rows = self.run_rows("rack", "--block-mib", "2", "--rate-mbit", "400", "--racks", "3",
                             "--cross-mbit", "50")
        cross = 400 / 50
        self.assertAlmostEqual(rows["rp-rack", 50]["theory_ratio"], cross, delta=1.5)
        self.assertGreaterEqual(rows["conventional", 50]["theory_ratio"], 4 * cross)

    def test_geo(self) -> None:
        """With Table 1: Algorithm 2 is no slower than a random path."""
        self.by = "requestor_region"
        rows = self.run_rows("geo", "--matrix", "asia", "--regions", "Tokyo", "--block-mib", "1",
                             "--schemes", "rp,rp-weighted")
        self.assertLessEqual(rows["rp-weighted", "Tokyo"]["theory_ratio"],
                             rows["rp", "Tokyo"]["theory_ratio"])
        for row in self.rows:
            self.assertLess(row["busiest_link_bytes"], 1.05 * (1 << 20), row["scheme"])

    def test_geo_with_a_matrix_of_ones_own(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            matrix = Path(folder, "two.txt")
            matrix.write_text("Mb/s a b\na 100 10  # slow\nb 20 100\n")
            self.by = "requestor_region"
            rows = self.run_rows("geo", "--matrix", str(matrix), *SMALL, "--block-mib", "1",
                                 "--schemes", "rp-weighted")
        # The lost block's region is a, whose link to a requestor in b is the slow one.
        self.assertAlmostEqual(rows["direct", "b"]["bound_s"], 8 * 1.048576 / (3 * 100 + 2 * 10),
                               delta=0.001)
        self.assertEqual({row["parameters"]["matrix"] for row in self.rows}, {"two"})

    def test_links(self) -> None:
        """Two regions whose pairs are slow beside what nodes have: by trees the block comes sooner
        than by any path."""
        with tempfile.TemporaryDirectory() as folder:
            matrix = Path(folder, "two.txt")
            matrix.write_text("Mb/s a b\na 20 10\nb 10 20\n")
            self.by = "links"
            rows = self.run_rows("links", "--matrix", str(matrix), *SMALL, "--block-mib", "4",
                                 "--scale", "1", "--node-mbit", "40", "--regions", "b",
                                 "--schemes", "rp-weighted,rp-flow")
        self.assertLess(rows["rp-flow", "b"]["theory_ratio"],
                        0.7 * rows["rp-weighted", "b"]["theory_ratio"])

    def test_links_at_random(self) -> None:
        """Nothing is written down: the links are probed, and then planned with."""
        self.by = "scale"
        rows = self.run_rows("links", "--matrix", "random:1", *SMALL, "--block-mib", "4",
                             "--scale", "0.5", "--schemes", "rp-weighted,rp-flow")
        self.assertLessEqual(rows["rp-flow", 0.5]["theory_ratio"],
                             1.1 * rows["rp-weighted", 0.5]["theory_ratio"])

    def test_qfs(self) -> None:
        """Chunk files, of two sizes, and all chunks of a chunkserver, whose downlink takes k blocks
        for each with conventional repair, and one with rp."""
        self.by = "block_bytes"
        rows = self.run_rows("qfs", "--chunk-mib", "1,2", "--slice-kib", "32", "--recover", "3",
                             "--rate-mbit", "100", "--schemes", "conventional,rp")
        self.assertEqual(len(rows), 8)
        for size in (1 << 20, 2 << 20):
            self.assertAlmostEqual(rows["conventional", size]["theory_ratio"], 6.0, delta=0.1)
            self.assertLess(rows["rp", size]["theory_ratio"], 1.3)
        self.assertEqual(rows["conventional recovery", 1 << 20]["theory_ratio"], 18.0)
        self.assertEqual(rows["rp recovery", 1 << 20]["theory_ratio"], 3.0)
        self.assertGreater(rows["rp recovery", 1 << 20]["mib_per_s"], 0)

    def test_slices_blocks_implementations(self) -> None:
        self.by = "slice_bytes"
        slices = self.run_rows("slices", *SMALL, "--block-mib", "1", "--rate-mbit", "100",
                               "--slice-kib", "32,1024", "--fixed-schemes", "ppr")
        self.assertAlmostEqual(slices["rp", 1 << 20]["theory_ratio"], 4.0)
        self.by = "block_bytes"
        blocks = self.run_rows("blocks", *SMALL, "--block-mib", "1,2", "--rate-mbit", "100",
                               "--schemes", "rp")
        self.assertEqual(len(blocks), 4)
        rows = self.run_rows("implementations", *SMALL, "--block-mib", "1", "--rate-mbit", "0",
                             "--schemes", "pipe-b,pipe-s,rp", "--transport", "tcp,redis")
        self.assertEqual(len(self.rows), 7)
        self.assertGreater(rows["rp", 1 << 20]["gb_per_cpu_s"], 0)
        self.assertNotIn("theory_ratio", rows["rp", 1 << 20])

    def test_codes(self) -> None:
        """LRC repairs with its local group. A code that the programs do not take is left out."""
        self.by = "code"
        rows = self.run_rows("codes", "--codes", "rs(6,4),lrc(4,2,1),rotated-rs(16,12)",
                             "--block-mib", "1", "--rate-mbit", "100", "--schemes", "conventional")
        self.assertAlmostEqual(rows["conventional", "rs(6,4)"]["theory_ratio"], 4.0)
        self.assertAlmostEqual(rows["conventional", "lrc(4,2,1)"]["theory_ratio"], 2.0)

    def test_codes_by_the_mean_of_all_blocks(self) -> None:
        """Of eight blocks six are repaired from two others, and the two global parities from
        four."""
        self.by = "code"
        rows = self.run_rows("codes", "--codes", "lrc(4,2,2)", "--every-block", "--block-mib", "1",
                             "--rate-mbit", "100", "--schemes", "conventional")
        row = rows["conventional", "lrc(4,2,2)"]
        self.assertAlmostEqual(row["theory_ratio"], (6 * 2 + 2 * 4) / 8)
        self.assertEqual(len(row["seconds"]), 1)

    def test_single_with_tls_beside(self) -> None:
        self.by = "tls"
        rows = self.run_rows("single", *SMALL, "--block-mib", "2", "--rate-mbit", "100", "--tls",
                             "--schemes", "rp")
        self.assertEqual(set(rows), {(scheme, tls) for scheme in ("direct", "rp")
                                     for tls in (False, True)})
        with tempfile.TemporaryDirectory() as folder, \
                Emulated(BIN_DIR, Path(folder)).cluster(["node-1"], Links(), tls=True) as cluster:
            done = cluster.requestor.run([BIN_DIR / "ecpipe", "--coordinator",
                                          cluster.coordinator.address, "status"], check=False)
            self.assertNotEqual(done.returncode, 0, "without a certificate")
            cluster.cli("status")

    def test_a_recovery_of_blocks_at_random(self) -> None:
        """Each stripe has a block on the lost node, which rotated ones have not."""
        self.by = "placement"
        rows = self.run_rows("node", *SMALL, "--nodes", "10", "--stripes", "5", "--block-mib", "1",
                             "--rate-mbit", "100", "--placement", "random",
                             "--policies", "rp-balanced")
        self.assertEqual(rows["rp-balanced xall", "random"]["parameters"]["lost_blocks"], 5)

    def test_small_socket_buffers_are_those_of_the_namespaces_alone(self) -> None:
        file = "/proc/sys/net/ipv4/tcp_rmem"
        before = Path(file).read_text()
        with Network(["one", "other"], Links(100, socket_bytes=16384)) as network:
            self.assertEqual(network.host("one").run(["cat", file]).stdout.split(),
                             ["4096", "16384", "16384"])
        self.assertEqual(Path(file).read_text(), before)
        self.by = "socket_bytes"
        rows = self.run_rows("implementations", *SMALL, "--block-mib", "1", "--rate-mbit", "100",
                             "--socket-kib", "16", "--schemes", "pipe-s,rp")
        self.assertIn(("pipe-s", 16384), rows)

    def test_reads_alone_and_beside_a_recovery(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "rows.json")
            run([sys.executable, REPOSITORY / "bench" / "lab.py", "load", "--nodes", "8",
                 "--n", "6", "--k", "4", "--stripes", "48", "--rate-mbit", "100",
                 "--p99-ms", "20000", "--from-rate", "5", "--to-rate", "5", "--seconds", "1",
                 "--bin-dir", BIN_DIR, "--json", file], timeout=200)
            rows = json.loads(file.read_text())["rows"]
        self.assertEqual([(row["reads"], row["beside"]) for row in rows], [
            ("healthy", "nothing"), ("degraded", "nothing"),
            ("healthy", "a recovery"), ("degraded", "a recovery")])
        for row in rows:
            self.assertEqual(row["reads_per_s"], 5, row)
            self.assertGreater(row["count"], 0, row)
            self.assertGreater(row["p50_ms"], 0, row)


def main() -> int:
    global BIN_DIR
    at = sys.argv.index("--bin-dir")
    BIN_DIR = Path(sys.argv[at + 1]).resolve()
    del sys.argv[at:at + 2]
    if obstacle := netns.why_not():
        print(f"SKIP: {obstacle}")
        return EXIT_SKIPPED
    with interruptible():
        return 0 if unittest.main(verbosity=2, exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
