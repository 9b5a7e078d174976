# SPDX-License-Identifier: Apache-2.0
"""The experiment `qfs`: repairs of chunks of QFS, and of all chunks of a chunkserver (§6.3).

Chunk files are as QFS writes them, (9, 6), and helpers read them as such; the metaserver only
answers where they are. A chunk's size follows from its file's length. `qfs` among the schemes is
QFS itself: a recovery that is forced onto a chunkserver, by its own means alone. It needs an
installed QFS, which QFS_HOME names; elsewhere it is left out, and the reason is printed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

from labkit.cluster import COORDINATOR, REQUESTOR, Cluster, Helper, node_names
from labkit.daemon import Daemon
from labkit.links import Links
from labkit.measure import REPAIR_SECONDS, Meter, Sample, first_report
from labkit.netns import Network
from labkit.process import LabError
from labkit.qfs import metaserver
from labkit.qfs.chunk_files import QfsFile
from labkit.qfs.native import NativeQfs, Unavailable, home_of
from labkit.stripes import MIB, Block, add_runs_argument, check_arguments, numbers
from .one_block import LOST_NODE, OneBlock, add_rate_argument
from .recorder import Recorder
from .testbed import Testbed

EXPERIMENT = "qfs"
NEEDS_SHAPING = True
NATIVE, WRITER = "qfs", "writer"
N, K = 9, 6
CODE = "qfs-rs(6,3)"
METASERVER_PORT, CHUNKSERVER_PORT = 20000, 22000
FIXED_SLICE_BYTES = 32 * 1024  # the paper's, for the schemes whose slice size is not varied
AT_ONCE = 4                    # chunks that a chunkserver recovers at a time
RECOVERY = "recovery"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--chunk-mib", default="8",
                        help="sizes of chunks in MiB, separated by commas; QFS's largest is 64 "
                             "(default %(default)s)")
    parser.add_argument("--slice-kib", default="32",
                        help="slice sizes of rp in KiB, separated by commas; conventional has 32 "
                             "(default %(default)s)")
    parser.add_argument("--schemes", default=f"{NATIVE},conventional,rp",
                        help="schemes to measure, separated by commas; qfs is QFS without ECPipe "
                             "(default %(default)s)")
    parser.add_argument("--recover", type=int, default=0, metavar="FILES",
                        help="also recover a chunkserver that has a chunk of each of so many "
                             "files, of the first size (default: none)")
    add_rate_argument(parser)
    add_runs_argument(parser)


def run(arguments: argparse.Namespace, testbed: Testbed) -> list[dict[str, Any]]:
    """The rows, the direct send first. Raises LabError when a result's bytes are wrong."""
    check_arguments(arguments)
    sizes = [size * MIB for size in numbers(arguments, "chunk_mib")]
    slices = [kib * 1024 for kib in numbers(arguments, "slice_kib")]
    if max(sizes) > 64 * MIB or max(slices) > min(sizes):
        raise LabError("--chunk-mib: at most 64; --slice-kib: at most the smallest chunk")
    schemes = arguments.schemes.split(",")
    rate = arguments.rate_mbit or None
    with qfs_cluster(testbed, Links(rate), sizes, arguments.recover) as lab:
        recorder = Recorder(EXPERIMENT, {
            "code": CODE, "n": N, "k": K, "rate_mbit": rate or 0,
            "congestion_control": lab.cluster.network.congestion_control})
        for _ in range(arguments.runs):
            for size in sizes:
                measure_chunk(recorder, lab.chunks[size], schemes, slices)
            if arguments.recover:
                measure_recovery(recorder, lab, lab.chunks[sizes[0]], schemes)
    if NATIVE in schemes:
        try:
            measure_native(recorder, testbed, Links(
                rate, node_mbit={WRITER: (None, None)}), lab, arguments.runs)
        except Unavailable as reason:
            print(f"{NATIVE}: not measured: {reason}", flush=True)
    return [with_rate(row, lab) for row in recorder.rows()]


def with_rate(row: dict[str, Any], lab: Lab) -> dict[str, Any]:
    if row["scheme"].endswith(RECOVERY):
        row["mib_per_s"] = lab.lost_bytes / MIB / row["median_s"]
    return row


# ---- Chunk files and their cluster -------------------------------------------------------------

class QfsCluster(Cluster):
    """Each helper is beside a chunkserver of its own."""

    def _make_helper(self, node: str) -> Helper:
        helper = super()._make_helper(node)
        helper.settings["helper"] |= {
            "store": "qfs",
            "chunkserver": f"{self.network.address(node)}:{CHUNKSERVER_PORT}"}
        return helper


@dataclass(frozen=True)
class PlacedFile:
    nodes: list[str]  # chunk i is on nodes[i]
    lost: Block
    healthy: Block    # the bytes of the chunk after the lost one, in a file beside it


class LostChunk(OneBlock):
    """A chunk of LOST_NODE, whose helper is stopped. The direct send of a run is that of another
    chunk's bytes, from a file of their own."""

    def __init__(self, cluster: Cluster, placed: PlacedFile) -> None:
        self.cluster, self.code = cluster, CODE
        self._rack, self._settled = (), False
        self.lost, self.healthy = placed.lost, placed.healthy
        self.block_bytes = self.lost.bytes
        self.survivors = [node for node in placed.nodes if node != LOST_NODE]

    def direct(self) -> Sample:
        self.last_direct = super().direct()
        return self.last_direct


def sha256_text(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Lab:
    """Files of one group, each of whose chunks is on another node of `nodes`."""

    def __init__(self, cluster: Cluster, chunks: dict[int, LostChunk], files: list[Block]) -> None:
        self.cluster = cluster
        self.chunks = chunks  # by size
        self.files = files    # the lost chunk of each file of a recovery
        self.lost_bytes = sum(block.bytes for block in files)


@contextlib.contextmanager
def qfs_cluster(testbed: Testbed, links: Links, sizes: list[int], recover: int) -> Iterator[Lab]:
    nodes = node_names(N)
    with testbed.network([COORDINATOR, REQUESTOR, *nodes], links) as (network, work):
        places = metaserver.FakeMetaServer()
        files = [put(network, work, places, file_id, size, nodes[file_id % N:] +
                     nodes[:file_id % N])
                 for file_id, size in enumerate([*sizes, *[sizes[0]] * recover], 1)]
        places.save(work / "files.json")
        address = network.address(COORDINATOR)
        host = network.host(COORDINATOR)
        serving = Daemon("the metaserver", [
            host.python, host.program(Path(metaserver.__file__)), address,
            str(METASERVER_PORT), work / "files.json"], work / "metaserver.log", host=host)
        serving.start()
        try:
            first_report(serving)
            with QfsCluster(testbed.bin_dir, work, nodes, network=network, coordinator_settings={
                    "qfs": {"metaservers": [f"{address}:{METASERVER_PORT}"]}}) as cluster:
                chunks = {size: LostChunk(cluster, file) for size, file in zip(sizes, files)}
                cluster.helpers[LOST_NODE].stop()
                yield Lab(cluster, chunks, [file.lost for file in files[len(sizes):]])
        finally:
            serving.kill()


def put(network: Network, work: Path, places: metaserver.FakeMetaServer, file_id: int, size: int,
        nodes: list[str]) -> PlacedFile:
    """Makes a file whose chunks have this size."""
    file = QfsFile(file_id, K * size)
    for chunk, node in zip(file.chunks, nodes):
        folder = work / "data" / node
        folder.mkdir(parents=True, exist_ok=True)
        file.put(folder, chunk.index)
        places.places[chunk.chunk_id] = (
            [] if node == LOST_NODE else [f"{network.address(node)} {CHUNKSERVER_PORT}"])
    lost = nodes.index(LOST_NODE)
    sender = (lost + 1) % N
    plain = f"plain-{file_id}"
    (work / "data" / nodes[sender] / plain).write_bytes(file.chunk(sender).content)
    placed = PlacedFile(nodes, block_of(file, lost, file.name(lost), LOST_NODE),
                        block_of(file, sender, plain, nodes[sender]))
    places.files[f"/file-{file_id}"] = file
    file.drop_contents()
    return placed


def block_of(file: QfsFile, index: int, name: str, node: str) -> Block:
    chunk = file.chunk(index)
    return Block(name, node, sha256_text(chunk.content), chunk.bytes)


# ---- Measuring ---------------------------------------------------------------------------------

def measure_chunk(recorder: Recorder, one: LostChunk, schemes: list[str],
                  slices: list[int]) -> None:
    direct = one.direct()
    recorder.add_direct(direct, parameters={"block_bytes": one.block_bytes},
                        **one.link_fields(direct))
    given = {"block_bytes": one.block_bytes}
    for scheme in schemes:
        if scheme != NATIVE:
            for size in slices if scheme == "rp" else [FIXED_SLICE_BYTES]:
                start = one.start_fields(scheme, size, "tcp")
                theory = one.theory(scheme, size)
                recorder.add(scheme, one.repair(scheme, size), direct, theory=theory,
                             parameters={**given, "slice_bytes": size}, **start,
                             **one.link_fields(direct))


def measure_recovery(recorder: Recorder, lab: Lab, one: LostChunk, schemes: list[str]) -> None:
    """All chunks of a chunkserver, as its successor asks for them: AT_ONCE at a time."""
    direct = one.direct()
    for scheme in schemes:
        if scheme != NATIVE:
            received = K if scheme == "conventional" else 1
            recorder.add(f"{scheme} {RECOVERY}", recover(lab, scheme), direct,
                         theory=(float(len(lab.files) * received)
                                 if lab.cluster.network.links.shaped() else None),
                         parameters={"block_bytes": one.block_bytes, "files": len(lab.files)},
                         **{name: value for name, value in one.link_fields(direct).items()
                            if name != "bound_s"})


def recover(lab: Lab, scheme: str) -> Sample:
    cluster = lab.cluster
    folder = cluster.base(REQUESTOR) / "recovered"
    cluster.requestor.make_directory(folder)

    def rebuild(block: Block) -> None:
        cluster.cli("repair", block.block_id, "-o", folder / block.block_id, "--scheme", scheme,
                    "--slice-size", str(FIXED_SLICE_BYTES), timeout=REPAIR_SECONDS)
    meter = Meter(cluster)
    with meter.watching(), ThreadPoolExecutor(AT_ONCE) as chunkserver:
        begun = time.time()
        list(chunkserver.map(rebuild, lab.files))
        seconds = time.time() - begun
    right = all(cluster.requestor.sha256(folder / block.block_id) == block.sha256
                for block in lab.files)
    for block in lab.files:
        cluster.requestor.remove(folder / block.block_id)
    return meter.sample(scheme, "tcp", seconds, right, {"started_unix_ms": begun * 1000})


def measure_native(recorder: Recorder, testbed: Testbed, links: Links, lab: Lab,
                   runs: int) -> None:
    """QFS alone: its tenth chunkserver recovers a chunk. Compared with the direct send over links
    of the same rates."""
    home = home_of()
    nodes = node_names(N + 1)
    with testbed.network([COORDINATOR, WRITER, *nodes], links) as (network, work):
        with NativeQfs(home, work, network, COORDINATOR, nodes) as qfs:
            for size, one in lab.chunks.items():
                name = qfs.write(WRITER, K * size, f"/file-{size}")
                for _ in range(runs):
                    before, cpu = network.link_bytes(), cpu_seconds(qfs)
                    seconds = qfs.recover(name)
                    carried = [after - before[node]
                               for node, after in network.link_bytes().items()]
                    recorder.add(NATIVE, Sample(
                        NATIVE, "tcp", seconds, cpu_seconds(qfs) - cpu,
                        max(max(link.up, link.down) for link in carried),
                        sum(link.up for link in carried), True, {}), one.last_direct,
                        theory=float(K) if links.shaped() else None,
                        parameters={"block_bytes": size})


def cpu_seconds(qfs: NativeQfs) -> float:
    return sum(daemon.cpu_seconds() for daemon in qfs.daemons)
