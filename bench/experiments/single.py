# SPDX-License-Identifier: Apache-2.0
"""The experiment `single`: one lost block, rebuilt by each scheme over equal, shaped links.

Every run sends one block directly first and then lets each scheme repair the same block, so that
all of them see the machine in the same state.
"""

from __future__ import annotations

import argparse
from typing import Any

from labkit.cluster import REQUESTOR, Cluster, node_names
from labkit.links import Links
from labkit.measure import DIRECT
from labkit.process import LabError
from labkit.stripes import (
    MIB, add_code_arguments, add_runs_argument, add_size_arguments, check_arguments, rs)
from . import bare_chain
from .bare_chain import BARE_CHAINS, measure_bare_chain
from .one_block import VERIFICATIONS, OneBlock, add_scheme_arguments, transports
from .recorder import Recorder
from .testbed import Testbed

EXPERIMENT = "single"
NEEDS_SHAPING = False
# Reads one healthy block through our own engine: what the engine costs without any coding.
ENGINE_DIRECT = "engine-direct"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_code_arguments(parser)
    add_size_arguments(parser, block_mib=64)
    add_runs_argument(parser)
    parser.add_argument("--rate-mbit", type=float, default=1000,
                        help="rate of each node's uplink and downlink in Mb/s; 0: not limited "
                             "(default 1000)")
    parser.add_argument("--requestor-mbit", type=float,
                        help="rate of the requestor's links in Mb/s (default: as the others)")
    add_scheme_arguments(parser, "direct,conventional,ppr,rp")
    parser.add_argument("--verify", choices=VERIFICATIONS,
                        help="also measure each scheme with its blocks verified by parity")
    parser.add_argument("--checksums", action="store_true",
                        help="write checksum files, so that helpers check the blocks they read")
    parser.add_argument("--tls", action="store_true",
                        help="measure the schemes again in a cluster with TLS")
    parser.epilog = ("Further schemes: engine-direct reads a healthy block through ECPipe, "
                     "bare-chain is the least that RP's path costs on this machine, and "
                     "bare-chain-crc the least with the checksums that the engine makes.")


def programs(arguments: argparse.Namespace) -> tuple[str, ...]:
    chains = set(BARE_CHAINS) & set(arguments.schemes.split(","))
    return (bare_chain.PROGRAM,) if chains else ()


def run(arguments: argparse.Namespace, testbed: Testbed) -> list[dict[str, Any]]:
    """The rows, the direct send first. Raises LabError when a result's bytes are wrong."""
    check_arguments(arguments)
    if min(arguments.rate_mbit, arguments.requestor_mbit or 0) < 0:
        raise LabError("--rate-mbit and --requestor-mbit must not be negative")
    chosen = transports(arguments)
    special = [scheme for scheme in (*BARE_CHAINS, ENGINE_DIRECT)
               if scheme in arguments.schemes.split(",")]
    schemes = [scheme for scheme in arguments.schemes.split(",")
               if scheme not in (DIRECT, *special)]
    if arguments.verify:
        schemes = [each for scheme in schemes for each in (scheme, f"{scheme}+{arguments.verify}")]
    if arguments.tls and "redis" in chosen:
        raise LabError("--tls --transport redis: slices over redis are never encrypted")
    rate, rows = arguments.rate_mbit or None, []
    requestor = arguments.requestor_mbit or rate
    links = Links(rate, node_mbit={REQUESTOR: (requestor, requestor)})
    for tls in (False, True) if arguments.tls else (False,):
        with testbed.cluster(node_names(arguments.n), links, redis="redis" in chosen,
                             tls=tls) as cluster:
            rows += measure(arguments, cluster, schemes, chosen, [] if tls else special, {
                "n": arguments.n, "k": arguments.k,
                "rate_mbit": cluster.network.links.rate_mbit or 0,
                "requestor_mbit": cluster.network.links.down(REQUESTOR) or 0,
                "congestion_control": cluster.network.congestion_control,
                **({"checksums": True} if arguments.checksums else {}),
                **({"tls": tls} if arguments.tls else {})})
    return rows


def measure(arguments: argparse.Namespace, cluster: Cluster, schemes: list[str],
            chosen: list[str], special: list[str],
            parameters: dict[str, Any]) -> list[dict[str, Any]]:
    recorder = Recorder(EXPERIMENT, parameters)
    one = OneBlock(cluster, rs(arguments.n, arguments.k), arguments.block_mib * MIB,
                   checksums=arguments.checksums)
    slice_bytes = arguments.slice_kib * 1024
    for _ in range(arguments.runs):
        one.measure_all(recorder, schemes, slice_bytes, transports=chosen,
                        direct=measure_special(recorder, one, special, slice_bytes))
    return recorder.rows()


def measure_special(recorder: Recorder, one: OneBlock, special: list[str],
                    slice_bytes: int) -> Any:
    """The direct send of a run, and what else is there to compare with."""
    parameters = {"code": one.code, "block_bytes": one.block_bytes}
    direct = one.direct()
    fields = one.link_fields(direct)
    recorder.add_direct(direct, parameters=parameters, **fields)
    parameters["slice_bytes"] = slice_bytes
    for chain in BARE_CHAINS:
        if chain in special:
            recorder.add(chain, measure_bare_chain(one.cluster, one.lost, slice_bytes, chain),
                         direct, theory=one.theory("rp", slice_bytes), parameters=parameters,
                         **fields)
    if ENGINE_DIRECT in special:
        recorder.add(ENGINE_DIRECT, one.repair(DIRECT, slice_bytes, block=one.healthy), direct,
                     theory=None, parameters=parameters, **fields)
    return direct
