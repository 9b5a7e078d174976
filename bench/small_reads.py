#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long reads of small ranges of a lost block take: with all helpers well, and with one stopped.

Real daemons, on loopback or (--rate-mbit, root) in network namespaces with shaped links. Reads
follow one after the other, each as many as --reads by one scheme and then by the next, through one
client that keeps its connections (libecpipe), or each by a command of its own. In each round
another helper is stopped (SIGSTOP): before the reads, and it goes on after them; or, for each read,
--stop-ms at most after its beginning. A read's time is that of the requestor, from its call to its
last verified byte, without the start of the command. All bytes are compared. A read is planned
again when an attempt does without a helper that its plan needs. CPU time is that of the daemons.

    bench/small_reads.py [--kib 64,1024] [--clients library] [--stopped none,before,during]
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Iterator

from experiments.results import print_table
from labkit import netns, warm_reader
from labkit.cluster import COORDINATOR, REQUESTOR, Cluster, node_names
from labkit.command_line import add_bin_dir_argument, check_programs, print_error
from labkit.host import LocalHost
from labkit.links import Links
from labkit.process import LabError, die_with_parent, interruptible
from labkit.stripes import MIB, SEED, add_code_arguments, check_arguments, numbers, rs

BLOCK_MIB = 8
STOPPED = ("none", "before", "during")
CLIENTS = ("library", "command")
Report = dict[str, Any]


def percentile(values: list[float], share: float) -> float:
    """The least value that at least this share of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * int(share * 100) // 100) - 1)]


class Reads:
    """Reads of one lost block, whose own helper is stopped for good."""

    def __init__(self, cluster: Cluster, work_dir: Path, arguments: argparse.Namespace) -> None:
        self.cluster = cluster
        self._arguments = arguments
        self._output = work_dir / "read"
        self._noise = random.Random(SEED)
        source = work_dir / "source"
        source.write_bytes(os.urandom(arguments.k * BLOCK_MIB * MIB))
        cluster.cli("encode", source, "--out", cluster.data_dir(), "--code",
                    rs(arguments.n, arguments.k), "--block-size", f"{BLOCK_MIB}MiB", "--name",
                    "file", "--nodes", ",".join(cluster.node_ids))
        manifest = cluster.data_dir() / "file.manifest.json"
        cluster.cli("catalog", "load", manifest)
        self._block = json.loads(manifest.read_text())["stripes"][0]["blocks"][0]["block_id"]
        self._lost = cluster.block_path(cluster.node_ids[0], self._block).read_bytes()
        cluster.helpers[cluster.node_ids[0]].stop()
        library = cluster.bin_dir.parent / "lib" / "libecpipe.so"
        assert isinstance(cluster.requestor, LocalHost)
        self._library = subprocess.Popen(
            cluster.requestor.command([cluster.requestor.python, Path(warm_reader.__file__),
                                       library, cluster.coordinator.address]),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)

    def close(self) -> None:
        self._library.communicate()

    def _forget_pages(self) -> None:
        """Of all blocks and their checksums: the next read goes to the disk."""
        for file in self.cluster.data_dir().glob("*/*"):
            with file.open("rb") as opened:
                os.fdatasync(opened.fileno())  # what is not written yet stays
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def one(self, client: str, kib: int, scheme: str) -> Report:
        if self._arguments.cold:
            self._forget_pages()
        offset = self._noise.randrange((BLOCK_MIB - 1) * MIB)
        size, slice_bytes = kib * 1024, (self._arguments.slice_kib or 0) * 1024
        if client == "library":
            report = self._through_library({"block": self._block, "offset": offset, "bytes": size,
                                            "scheme": scheme, "slice_bytes": slice_bytes})
        else:
            more = ["--slice-size", str(slice_bytes)] if slice_bytes else []
            report = dict(self.cluster.cli_json(
                "repair", self._block, "-o", self._output, "--offset", str(offset), "--length",
                str(size), "--scheme", scheme, *more))
            report["sha256"] = hashlib.sha256(self._output.read_bytes()).hexdigest()
        wanted = self._lost[offset:offset + size]
        if report["sha256"] != hashlib.sha256(wanted).hexdigest():
            raise LabError(f"wrong bytes from byte {offset} on")
        return report

    def _through_library(self, wanted: Report) -> Report:
        assert self._library.stdin is not None and self._library.stdout is not None
        self._library.stdin.write(json.dumps(wanted) + "\n")
        self._library.stdin.flush()
        line = self._library.stdout.readline()
        if not line:
            raise LabError("the client that keeps its connections has ended")
        return dict(json.loads(line))

    def several(self, stopped: str, turn: int, client: str, kib: int, scheme: str) -> list[Report]:
        count = range(self._arguments.reads)
        if stopped == "none":
            return [self.one(client, kib, scheme) for _ in count]
        if stopped == "before":
            with self._paused(turn):
                return [self.one(client, kib, scheme) for _ in count]
        reports = []
        for at in count:
            with self._paused(turn * len(count) + at,
                              self._noise.uniform(0, self._arguments.stop_ms / 1000)):
                reports.append(self.one(client, kib, scheme))
        return reports

    @contextlib.contextmanager
    def _paused(self, turn: int, after: float = 0.0) -> Iterator[None]:
        """One of the helpers; it runs for so many seconds still."""
        nodes = self.cluster.node_ids[1:]
        victim = self.cluster.helpers[nodes[turn % len(nodes)]]
        timer = threading.Timer(after, victim.pause)
        timer.start()
        if not after:
            timer.join()
        try:
            yield
        finally:
            timer.join()
            victim.resume()
            self.cluster.wait_live(nodes)


def measure(arguments: argparse.Namespace, cluster: Cluster, work_dir: Path) -> None:
    table = []
    with contextlib.closing(Reads(cluster, work_dir, arguments)) as reads:
        for kib in numbers(arguments, "kib"):
            for stopped in arguments.stopped.split(","):
                reports: dict[tuple[str, str], list[Report]] = {}
                cpu: dict[tuple[str, str], float] = {}
                for turn in range(arguments.rounds):
                    for client in arguments.clients.split(","):
                        for scheme in arguments.schemes.split(","):
                            before = cluster.cpu_seconds()
                            reports.setdefault((client, scheme), []).extend(
                                reads.several(stopped, turn, client, kib, scheme))
                            cpu[client, scheme] = (cpu.get((client, scheme), 0.0)
                                                   + cluster.cpu_seconds() - before)
                table += [row(str(kib), stopped, *key, reports[key], cpu[key]) for key in reports]
    print_table(["KiB", "stopped", "client", "scheme", "reads", "p50 ms", "p90 ms", "p99 ms",
                 "most ms", "planned again", "KiB received", "CPU ms"], table)


def row(kib: str, stopped: str, client: str, scheme: str, reports: list[Report],
        cpu_seconds: float) -> list[str]:
    """The means of the last two, all others as they are."""
    times = [float(report["seconds"]) * 1000 for report in reports]
    again = sum(int(report["attempts"]) > 1 for report in reports)
    received = sum(int(report["bytes_received"]) for report in reports) / len(reports) / 1024
    return [kib, stopped, client, scheme, str(len(times)),
            *(f"{percentile(times, share):.1f}" for share in (0.5, 0.9, 0.99)),
            f"{max(times):.1f}", str(again), f"{received:.0f}",
            f"{cpu_seconds * 1000 / len(reports):.1f}"]


@contextlib.contextmanager
def made(arguments: argparse.Namespace, folder: Path) -> Iterator[Cluster]:
    nodes = node_names(arguments.n)
    with contextlib.ExitStack() as stack:
        network = None
        if arguments.rate_mbit:
            network = stack.enter_context(netns.Network([COORDINATOR, REQUESTOR, *nodes],
                                                        Links(arguments.rate_mbit)))
        yield stack.enter_context(Cluster(arguments.bin_dir, folder, nodes, network=network))


def check_choices(arguments: argparse.Namespace) -> None:
    check_arguments(arguments)
    for name, known in (("stopped", STOPPED), ("clients", CLIENTS)):
        if unknown := set(getattr(arguments, name).split(",")) - set(known):
            raise LabError(f"--{name}: {', '.join(sorted(unknown))} is not one of "
                           f"{', '.join(known)}")
    if arguments.rate_mbit and (obstacle := netns.why_not()):
        raise LabError(obstacle)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_code_arguments(parser)
    parser.add_argument("--kib", default="64,1024",
                        help="sizes of reads in KiB, separated by commas (default %(default)s)")
    parser.add_argument("--slice-kib", type=int,
                        help="slice size in KiB (default: the coordinator's)")
    parser.add_argument("--rounds", type=int, default=10, help="default %(default)s")
    parser.add_argument("--reads", type=int, default=10,
                        help="reads in each round (default %(default)s)")
    parser.add_argument("--schemes", default="auto",
                        help="of reads, separated by commas (default %(default)s)")
    parser.add_argument("--clients", default="library",
                        help="library: one that keeps its connections; command: a new one each "
                             "(default %(default)s)")
    parser.add_argument("--stopped", default="none,before",
                        help=f"when a helper is stopped, of {', '.join(STOPPED)} "
                             "(default %(default)s)")
    parser.add_argument("--stop-ms", type=float, default=5,
                        help="stopped during a read: so long after its beginning at most "
                             "(default %(default)s)")
    parser.add_argument("--cold", action="store_true",
                        help="blocks are not in memory: the page cache forgets them before each "
                             "read")
    parser.add_argument("--rate-mbit", type=float, default=0,
                        help="rate of each link in Mb/s, in namespaces (default: loopback)")
    add_bin_dir_argument(parser, Path(__file__).resolve().parents[1])
    arguments = parser.parse_args()
    try:
        check_choices(arguments)
        check_programs(arguments.bin_dir)
        with interruptible(), tempfile.TemporaryDirectory(prefix="ecpipe-reads-") as folder, \
                made(arguments, Path(folder)) as cluster:
            measure(arguments, cluster, Path(folder))
    except LabError as error:
        print_error("small_reads.py", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
