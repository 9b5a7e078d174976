# SPDX-License-Identifier: Apache-2.0
"""Encoded noise on the nodes of a cluster, and the arguments that say how much of it."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

from .cluster import Cluster
from .measure import MIB
from .process import LabError

STRIPE_NAME = "lab"
SEED = 20170712
WRITE_BYTES = 8 * MIB
ENCODE_SECONDS = 900.0


def add_code_arguments(parser: argparse.ArgumentParser, *, block_mib: int) -> None:
    parser.add_argument("--n", type=int, default=14, help="blocks a stripe (default 14)")
    parser.add_argument("--k", type=int, default=10, help="data blocks a stripe (default 10)")
    parser.add_argument("--block-mib", type=int, default=block_mib,
                        help="block size (default %(default)s)")
    parser.add_argument("--slice-kib", type=int, default=32, help="slice size (default 32)")
    parser.add_argument("--runs", type=int, default=5, help="repeats (default 5)")


def check_code_arguments(arguments: argparse.Namespace) -> None:
    if not 1 <= arguments.k < arguments.n <= 255:
        raise LabError(f"--n {arguments.n} --k {arguments.k}: needs 1 <= k < n <= 255")
    for name in ("block_mib", "slice_kib", "runs"):
        if getattr(arguments, name) < 1:
            raise LabError(f"--{name.replace('_', '-')} must be at least 1")


def code_parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    return {"n": arguments.n, "k": arguments.k, "block_bytes": arguments.block_mib * MIB,
            "slice_bytes": arguments.slice_kib * 1024, "runs": arguments.runs}


def write_noise(path: Path, size: int) -> None:
    noise = random.Random(SEED)
    with path.open("wb") as file:
        for start in range(0, size, WRITE_BYTES):
            file.write(noise.randbytes(min(WRITE_BYTES, size - start)))


def manifest_of(cluster: Cluster) -> Path:
    return cluster.data_dir() / f"{STRIPE_NAME}.manifest.json"


def encode(cluster: Cluster, arguments: argparse.Namespace,
           stripes: int = 1) -> list[dict[str, Any]]:
    """Puts so many stripes of seeded noise on the nodes and into the catalog. Their entries in the
    manifest."""
    source = cluster.work_dir / "source"
    write_noise(source, stripes * arguments.k * arguments.block_mib * MIB)
    cluster.cli("encode", source, "--out", cluster.data_dir(),
                "--code", f"rs({arguments.n},{arguments.k})",
                "--block-size", f"{arguments.block_mib}MiB", "--name", STRIPE_NAME,
                "--nodes", ",".join(cluster.node_ids), timeout=ENCODE_SECONDS)
    source.unlink()
    cluster.cli("catalog", "load", manifest_of(cluster))
    return json.loads(manifest_of(cluster).read_text())["stripes"]
