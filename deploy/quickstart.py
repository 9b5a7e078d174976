#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repairs a lost block of a real file by each scheme, on a cluster of real processes on loopback.

deploy/quickstart.sh builds first and then runs this.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Iterator

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "bench"))

from labkit.cluster import Cluster  # noqa: E402
from labkit.host import sha256_of  # noqa: E402
from labkit.measure import Sample, measure_repair  # noqa: E402
from labkit.process import LabError, interruptible  # noqa: E402
from labkit.results import print_table  # noqa: E402
from labkit.stripes import MIB, Block  # noqa: E402

BIN_DIR = REPOSITORY / "build" / "release" / "bin"
N, K, BLOCK_MIB, SLICE_BYTES = 14, 10, 64, 32 * 1024
NODES = 15  # one more than a stripe has blocks, so that the second stripe lies differently
LOST_NODE = "node-4"
NAME = "usr"
# A tar of these is the real file. More than one stripe's worth of data, so that the last stripe is
# a partly filled one.
TAR_FOLDERS = ("usr", "var", "opt")
FILE_MAX_BYTES = 768 * MIB
FILE_MIN_BYTES = K * BLOCK_MIB * MIB
TAR_SECONDS = 300.0
CHUNK_BYTES = 4 * MIB
# Scheme and transport. `direct` copies a healthy block: what reading costs when nothing is lost.
REPAIRS = (("direct", "tcp"), ("conventional", "tcp"), ("ppr", "tcp"), ("rp", "tcp"),
           ("rp", "redis"))


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    print(f"==> {text} ", end="", flush=True)
    start = time.monotonic()
    yield
    print(f"({time.monotonic() - start:.1f} s)", flush=True)


@contextlib.contextmanager
def work_directory(arguments: argparse.Namespace) -> Iterator[Path]:
    if arguments.work_dir:
        arguments.work_dir.mkdir(parents=True, exist_ok=True)
        yield arguments.work_dir
        return
    folder = Path(tempfile.mkdtemp(prefix="ecpipe-quickstart-"))
    try:
        yield folder
    finally:
        if arguments.keep:
            print(f"Kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def make_file(path: Path) -> None:
    """A tar of real files, cut off at FILE_MAX_BYTES. An earlier one of the same place serves."""
    if path.exists() and path.stat().st_size >= FILE_MIN_BYTES:
        return
    partial = path.with_suffix(".partial")
    folders = [name for name in TAR_FOLDERS if Path("/", name).is_dir()]
    tar = subprocess.Popen(["tar", "--create", "--file=-", "--directory=/", *folders],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert tar.stdout is not None
        with partial.open("wb") as file:
            deadline = time.monotonic() + TAR_SECONDS
            while chunk := tar.stdout.read(min(CHUNK_BYTES, FILE_MAX_BYTES - file.tell())):
                file.write(chunk)
                if time.monotonic() > deadline:
                    raise LabError(f"tar took longer than {TAR_SECONDS:g} s")
    finally:
        # It still has more to say, or is done; its exit code says nothing either way.
        tar.kill()
        tar.wait()
    if partial.stat().st_size < FILE_MIN_BYTES:
        raise LabError(f"a tar of {', '.join('/' + name for name in folders)} has only "
                       f"{partial.stat().st_size // MIB} MiB; {FILE_MIN_BYTES // MIB} are needed")
    partial.rename(path)


def encode(cluster: Cluster, file: Path) -> Path:
    cluster.cli("encode", file, "--out", cluster.data_dir(), "--code", f"rs({N},{K})",
                "--block-size", f"{BLOCK_MIB}MiB", "--name", NAME,
                "--nodes", ",".join(cluster.node_ids))
    return cluster.data_dir() / f"{NAME}.manifest.json"


def lose_node(cluster: Cluster, manifest: Path) -> list[Path]:
    """Stops a node and takes away all that it had, as a dead machine would. Its blocks, by the
    manifest: beside them it has files with their checksums."""
    helper = cluster.helpers[LOST_NODE]
    helper.stop()
    lost_dir = helper.root.rename(cluster.work_dir / "lost")
    stripes = json.loads(manifest.read_text())["stripes"]
    return [lost_dir / block["block_id"] for stripe in stripes for block in stripe["blocks"]
            if block["node"] == LOST_NODE]


def repair_by_all_schemes(cluster: Cluster, lost: Path) -> list[Sample]:
    healthy = cluster.block_file(f"{NAME}-s00000-b00")
    samples = []
    for scheme, transport in REPAIRS:
        original = healthy if scheme == "direct" else lost
        with step(f"{scheme} over {transport}"):
            block = Block(original.name, LOST_NODE, sha256_of(original), original.stat().st_size)
            samples.append(measure_repair(cluster, block, scheme=scheme, transport=transport,
                                          slice_bytes=SLICE_BYTES))
    return samples


def print_samples(samples: list[Sample], lost: Path) -> None:
    print(f"\nBlock {lost.name} ({BLOCK_MIB} MiB) of a rs({N},{K}) stripe, "
          f"slices of {SLICE_BYTES // 1024} KiB:\n")
    print_table(
        ["scheme", "transport", "seconds", "busiest link MiB", "CPU s", "result"],
        [[sample.scheme, sample.transport, f"{sample.seconds:.3f}",
          f"{sample.busiest_link_bytes / MIB:.1f}", f"{sample.cpu_seconds:.2f}",
          "sha256 ok" if sample.sha256_ok else "WRONG BYTES"] for sample in samples])
    print("""
direct reads a healthy block and rebuilds nothing: the yardstick.
CPU s counts all daemons, the redis-servers and the command. On loopback no link is slow, so the
seconds are those of the CPU; what counts in a network is the busiest link. bench/lab.py shows the
times on links that are limited.""")


def print_next_steps(cluster: Cluster, arguments: argparse.Namespace, lost: Path) -> None:
    print(f"""
Look further:
  build/release/bin/ecpipe --help          the command: plan, read, repair, status, ...
  deploy/quickstart.sh --hold              the same, and leaves the cluster to you until ctrl-C
  deploy/quickstart.sh --keep              keeps blocks, configs and logs
  sudo bench/lab.py single --runs 3        the schemes on links of 1 Gb/s (network namespaces)
  tests/run.sh                             all tests
  README.md, docs/                         what it is, and how it works""")
    if arguments.hold:
        print(f"""
The cluster runs, without {LOST_NODE}. In another terminal:
  export ECPIPE_COORDINATOR={cluster.coordinator.address}
  {BIN_DIR}/ecpipe status
  {BIN_DIR}/ecpipe plan {lost.name} --format text
  {BIN_DIR}/ecpipe repair {lost.name} -o {cluster.work_dir}/mine --scheme rp
Work directory: {cluster.work_dir}
ctrl-C ends it.""", flush=True)
        signal.pause()


def forget_earlier_cluster(work: Path) -> None:
    """A kept work directory holds the blocks and catalog of the last time; only the file serves."""
    for name in ("data", "lost", "config", "logs", "state", "run", "redis"):
        shutil.rmtree(work / name, ignore_errors=True)


def run(arguments: argparse.Namespace, work: Path) -> bool:
    """True when every result had the right bytes."""
    forget_earlier_cluster(work)
    file = work / f"{NAME}.tar"
    with step(f"A real file: tar of /{TAR_FOLDERS[0]}, up to {FILE_MAX_BYTES // MIB} MiB"):
        make_file(file)
    cluster = Cluster(BIN_DIR, work, NODES, redis=True)
    print(f"==> Starting 1 coordinator, {NODES} helpers, {NODES} redis-servers", flush=True)
    with cluster:
        with step(f"Encoding {file.stat().st_size // MIB} MiB with rs({N},{K})"):
            manifest = encode(cluster, file)
        with step("Loading the catalog"):
            cluster.cli("catalog", "load", manifest)
        with step(f"Losing {LOST_NODE}"):
            lost = lose_node(cluster, manifest)
        samples = repair_by_all_schemes(cluster, lost[0])
        print_samples(samples, lost[0])
        print_next_steps(cluster, arguments, lost[0])
    return all(sample.sha256_ok for sample in samples)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="keep the work directory")
    parser.add_argument("--hold", action="store_true", help="leave the cluster up until ctrl-C")
    parser.add_argument("--work-dir", type=Path, help="work here and keep it")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    try:
        with interruptible(), work_directory(arguments) as work:
            right = run(arguments, work)
    except LabError as error:
        print(f"\nquickstart: {error}", file=sys.stderr)
        return 1
    if not right:
        print("\nquickstart: a repaired block has wrong bytes", file=sys.stderr)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
