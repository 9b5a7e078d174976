# SPDX-License-Identifier: Apache-2.0
"""Encoded noise on the nodes of a cluster, and the arguments that say how much of it."""

from __future__ import annotations

import argparse
import json
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Sequence

from .cluster import REQUESTOR, Cluster
from .host import LocalHost
from .process import LabError, run

MIB = 1 << 20
SEED = 20170712
WRITE_BYTES = 8 * MIB
ENCODE_SECONDS = 900.0
# The nodes of a stripe's blocks, by the stripe's number.
Place = Callable[[int], Sequence[str]]


@dataclass(frozen=True)
class Block:
    block_id: str
    node: str
    sha256: str
    bytes: int


def add_code_arguments(parser: argparse.ArgumentParser, *, n: int = 14, k: int = 10) -> None:
    parser.add_argument("--n", type=int, default=n, help="blocks in a stripe (default %(default)s)")
    parser.add_argument("--k", type=int, default=k,
                        help="data blocks in a stripe (default %(default)s)")


def add_size_arguments(parser: argparse.ArgumentParser, *, block_mib: int) -> None:
    parser.add_argument("--block-mib", type=int, default=block_mib,
                        help="block size in MiB (default %(default)s)")
    parser.add_argument("--slice-kib", type=int, default=32,
                        help="slice size in KiB (default 32)")


def add_runs_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=5,
                        help="how often each measurement is repeated (default 5)")


def check_arguments(arguments: argparse.Namespace) -> None:
    """Those of the functions above that an experiment has."""
    n, k = getattr(arguments, "n", 2), getattr(arguments, "k", 1)
    if not 1 <= k < n <= 255:
        raise LabError(f"--n {n} --k {k}: a code needs 1 <= k < n <= 255")
    for name in ("block_mib", "slice_kib", "runs"):
        if isinstance(getattr(arguments, name, 1), int) and getattr(arguments, name, 1) < 1:
            raise LabError(f"--{name.replace('_', '-')} must be at least 1")


def numbers(arguments: argparse.Namespace, name: str) -> list[int]:
    """A comma-separated option of whole numbers from 1 on."""
    texts = getattr(arguments, name).split(",")
    if not all(text.isdigit() and int(text) > 0 for text in texts):
        raise LabError(f"--{name.replace('_', '-')} {getattr(arguments, name)}: "
                       "give whole numbers of at least 1, separated by commas")
    return [int(text) for text in texts]


def code_parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    return {"n": arguments.n, "k": arguments.k, "block_bytes": arguments.block_mib * MIB,
            "slice_bytes": arguments.slice_kib * 1024}


def rs(n: int, k: int) -> str:
    return f"rs({n},{k})"


def code_shape(code: str) -> tuple[int, int]:
    """n and k of rs(n,k) and the like, or of lrc(k,groups,global)."""
    family, *values = re.findall(r"^[a-z-]+|[0-9]+", code)
    shape = [int(value) for value in values]
    if family == "lrc" and len(shape) == 3:
        return sum(shape), shape[0]
    if len(shape) != 2 or not 1 <= shape[1] < shape[0]:
        raise LabError(f"'{code}' is not a code; write FAMILY(n,k), such as rs(14,10), or "
                       "lrc(k,groups,global)")
    return shape[0], shape[1]


def write_noise(path: Path, size: int) -> None:
    noise = random.Random(SEED)
    with path.open("wb") as file:
        for start in range(0, size, WRITE_BYTES):
            file.write(noise.randbytes(min(WRITE_BYTES, size - start)))


def encode(cluster: Cluster, *, code: str, block_bytes: int, stripes: int = 1, name: str = "lab",
           nodes: Sequence[str] | None = None, place: Place | None = None,
           checksums: bool = False) -> list[list[Block]]:
    """Puts so many stripes of seeded noise on the nodes (default: all; each stripe begins one node
    further on, unless `place` has another rule) and into the catalog. The blocks of each stripe.
    `checksums`: with checksum files, which the paper's blocks have not."""
    here = LocalHost()
    source, staging = cluster.work_dir / "source", cluster.data_dir()
    staging.mkdir(parents=True, exist_ok=True)
    write_noise(source, stripes * code_shape(code)[1] * block_bytes)
    run([cluster.bin_dir / "ecpipe", "encode", source, "--out", staging, "--code", code,
         "--block-size", str(block_bytes), "--name", name,
         "--nodes", ",".join(nodes or cluster.node_ids),
         *(() if checksums else ("--no-checksums",))], timeout=ENCODE_SECONDS)
    here.remove(source)
    listed = json.loads(_manifest(cluster, name).read_text())
    for number, stripe in enumerate(listed["stripes"]):
        placed = place(number) if place else [block["node"] for block in stripe["blocks"]]
        for block, node in zip(stripe["blocks"], placed, strict=True):
            block_id = block["block_id"]
            for file_name in (block_id, *((f".crc32c.{block_id}",) if checksums else ())):
                file = staging / block["node"] / file_name
                path = cluster.block_path(node, block_id).with_name(file_name)
                cluster.network.host(node).put(file, path)
                if file != path:
                    here.remove(file)
            block["node"] = node
    if place:
        _manifest(cluster, name).write_text(json.dumps(listed))
    load_catalog(cluster, name)
    return [[Block(block["block_id"], block["node"], block["sha256"], block_bytes)
             for block in stripe["blocks"]] for stripe in listed["stripes"]]


def load_catalog(cluster: Cluster, name: str = "lab") -> None:
    """Says where the blocks of these stripes are; again, when they have been moved since."""
    path = cluster.base(REQUESTOR) / "data" / _manifest(cluster, name).name
    cluster.requestor.put(_manifest(cluster, name), path)
    cluster.cli("catalog", "load", path)


def _manifest(cluster: Cluster, name: str) -> Path:
    return cluster.data_dir() / f"{name}.manifest.json"
