# SPDX-License-Identifier: Apache-2.0
"""What the cluster tests share: a cluster with an encoded file, and a main that takes --bin-dir."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from labkit import schemes
from labkit.certificates import Certificates
from labkit.cluster import COORDINATOR, REQUESTOR, Cluster, node_names
from labkit.links import Links
from labkit.netns import Network
from labkit.process import interruptible, wait_until

# Exit codes of the `ecpipe` command, as its --help lists them.
FAILED, USAGE, NOT_FOUND, UNAVAILABLE, NO_SURVIVORS = 1, 2, 3, 4, 5

HANG = 60.0  # seconds; what takes longer is taken to hang, how long it takes is no test's matter

BIN_DIR = Path()
SCHEMES: list[str] = []      # all that rebuild lost blocks; main() asks the programs
AUTO_SCHEMES: list[str] = []  # those that `auto` may take
REPOSITORY = Path(__file__).resolve().parents[2]


class ClusterCase(unittest.TestCase):
    """One cluster for all tests of the class, with one encoded file in its catalog."""

    nodes = 7
    redis = False
    network_links: Links | None = None  # network namespaces behind these; None: all on loopback
    tls = False                  # of all programs, with certificates from deploy/make-certs.sh
    code = "rs(6,4)"
    block_bytes = 1_000_003      # slices do not divide it
    file_bytes = 7_500_001       # two stripes, the last one padded
    encode_arguments: tuple[str, ...] = ()
    coordinator_settings: Mapping[str, Mapping[str, Any]] = {}
    helper_settings: Mapping[str, Mapping[str, Any]] = {
        "timeouts": {"stall_seconds": 3.0, "drain_seconds": 5.0}}

    @classmethod
    def setUpClass(cls) -> None:
        cls.work = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        certificates = network = None
        if cls.network_links:
            network = cls.enterClassContext(
                Network([COORDINATOR, REQUESTOR, *node_names(cls.nodes)], cls.network_links))
        if cls.tls:
            certificates = Certificates(cls.work / "certificates")
            certificates.make_for_cluster(COORDINATOR, REQUESTOR, node_names(cls.nodes))
        cls.cluster = cls.enterClassContext(Cluster(
            BIN_DIR, cls.work, cls.nodes, redis=cls.redis, network=network,
            certificates=certificates,
            coordinator_settings=cls.coordinator_settings, helper_settings=cls.helper_settings,
            logs_stay=False))
        cls.source = cls.work / "source"
        noise = random.Random(7)
        with cls.source.open("wb") as file:  # randbytes cannot make more than 256 MiB at once
            for start in range(0, cls.file_bytes, 1 << 20):
                file.write(noise.randbytes(min(1 << 20, cls.file_bytes - start)))
        cls.cluster.cli("encode", cls.source, "--out", cls.cluster.data_dir(), "--code", cls.code,
                        "--block-size", str(cls.block_bytes), "--name", "file",
                        "--nodes", ",".join(cls.cluster.node_ids), *cls.encode_arguments)
        cls.manifest_path = cls.cluster.data_dir() / "file.manifest.json"
        cls.cluster.cli("catalog", "load", cls.manifest_path)
        cls.manifest = json.loads(cls.manifest_path.read_text())

    def block(self, stripe: int, index: int) -> dict[str, str]:
        return self.manifest["stripes"][stripe]["blocks"][index]

    def bytes_of(self, block_id: str) -> bytes:
        return self.cluster.block_file(block_id).read_bytes()

    def repair(self, block_id: str, *arguments: str, output: str = "out") -> dict[str, Any]:
        return self.cluster.cli_json("repair", block_id, "-o", self.work / output, *arguments)

    def begin_read(self, block_id: str, *arguments: str) -> subprocess.Popen:
        """Begins a read that cannot end before somebody takes its output: the block is larger than
        what all sockets on its way can hold."""
        process = subprocess.Popen(
            self.cluster.command("-q", *arguments, "read", block_id, "--scheme", "rp"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        wait_until(lambda: len(self.helpers_at_work()) == 4, HANG, "the repair to run")
        return process

    def helpers_at_work(self) -> list[str]:
        return [name for name, node in self.cluster.node_status().items()
                if node.get("active_sessions")]

    def grown(self, counters: Sequence[str], act: Callable[[], object]) -> dict[str, list[int]]:
        """By how much each node's counters grow while `act` runs. A small read begins again without
        a helper that is late, when others may have read: then `act` runs once more."""
        def late() -> int:
            return self.cluster.coordinator.log_tail(10_000).count("repair.helper_late")
        for _ in range(10):
            late_before = late()
            before = self.cluster.wait_idle()
            act()
            after = self.cluster.wait_idle()
            if late() == late_before:
                return {counter: [after[node][counter] - before[node][counter] for node in after]
                        for counter in counters}
        self.fail("a helper was late in each of 10 runs")

    def fails(self, code: int, *arguments: Any, timeout: float = HANG) -> str:
        """Runs the command, which must end with this code, and returns what it says."""
        done = self.cluster.cli(*arguments, check=False, timeout=timeout)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stderr}")
        return done.stderr

    def assert_decodes(self) -> None:
        """The blocks on the nodes verify, and make the file again."""
        data = self.cluster.data_dir()
        self.cluster.cli("verify", self.manifest_path, "--blocks", data)
        self.cluster.cli("decode", self.manifest_path, "--blocks", data,
                         "-o", self.work / "decoded")
        self.assertEqual((self.work / "decoded").read_bytes(), self.source.read_bytes())

    def assert_nothing_left(self) -> None:
        """No session, no buffer, no temporary file outlives a repair."""
        for name, node in self.cluster.wait_idle().items():
            self.assertEqual(node["buffer_bytes"], 0, name)
        self.assertEqual([file.name for file in self.work.iterdir()
                          if file.name.startswith(".ecpipe-tmp-")], [])


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def main() -> None:
    global BIN_DIR
    at = sys.argv.index("--bin-dir")
    BIN_DIR = Path(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    # Test classes read it from this module, under its import name.
    sys.modules["case"].BIN_DIR = BIN_DIR
    SCHEMES.extend(schemes.names(BIN_DIR, schemes.REPAIRS, schemes.BASELINE))
    AUTO_SCHEMES.extend(schemes.names(BIN_DIR, schemes.REPAIRS))
    with interruptible():
        unittest.main(module="__main__", verbosity=2)
