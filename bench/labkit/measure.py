# SPDX-License-Identifier: Apache-2.0
"""One measurement: of one repair, or of the direct send of a block."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

from . import direct
from .cluster import REQUESTOR, Cluster
from .daemon import Daemon
from .host import LocalHost
from .links import LinkBytes
from .load import LoadWatch
from .process import retransmitted_segments
from .stripes import Block
from .timeline import LinkUse, counting

DIRECT = "direct"
DIRECT_SECONDS = 300.0
REPAIR_SECONDS = 300.0


@dataclass(frozen=True)
class Sample:
    """One repair, or one direct send, as it went."""

    scheme: str
    transport: str
    seconds: float
    cpu_seconds: float        # of all processes that took part
    busiest_link_bytes: int   # over all nodes, the larger of what went up and what came down
    total_bytes: int          # over all links, each byte counted where it is sent
    sha256_ok: bool
    detail: dict[str, Any]    # what the command itself reported
    cores_busy: float = 0.0   # of this machine meanwhile, with whatever else ran on it
    # Where links can be counted from one place:
    links_at_work: LinksAtWork | None = None


@dataclass(frozen=True)
class LinksAtWork:
    """Of the link that was busy for longest, by its bytes, and of TCP."""

    carried_s: float    # its bytes by its rate, packet headers included
    before_s: float     # from the repair's begin until it was at work
    after_s: float      # from then, when it no longer was, to the repair's end
    retransmitted: int  # segments, by all helpers


class Meter:
    """What a piece of work costs: bytes on links, CPU time of the daemons, how busy this machine
    was, if the nodes are on it, and how links were used meanwhile, if somebody sees them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.links: dict[str, LinkBytes] = {}
        self.cpu_seconds = 0.0
        self.cores_busy = 0.0
        self.link_use: LinkUse | None = None
        self.retransmitted = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        point = self.cluster.network.watch_point()
        if point is None:
            with self.counting_cost():
                yield
            return
        again = self._retransmitted_segments()
        with counting(point, self.cluster.base(REQUESTOR) / "logs" / "links.log") as uses:
            with self.counting_cost():
                yield
        self.retransmitted = self._retransmitted_segments() - again
        self.link_use = next(iter(uses), None)

    @contextmanager
    def counting_cost(self) -> Iterator[None]:
        """All but how links are used."""
        before, cpu = self.cluster.link_bytes(), self.cluster.cpu_seconds()
        load = LoadWatch() if isinstance(self.cluster.requestor, LocalHost) else None
        yield
        self.cores_busy = load.cores_busy() if load else 0.0
        self.cpu_seconds = self.cluster.cpu_seconds() - cpu
        self.links = self.cluster.traffic_since(before)

    def _retransmitted_segments(self) -> int:
        return sum(retransmitted_segments(helper.pid) for helper in self.cluster.helpers.values())

    def sample(self, scheme: str, transport: str, seconds: float, right: bool,
               detail: dict[str, Any], more_cpu_seconds: float = 0.0) -> Sample:
        return Sample(scheme, transport, seconds, self.cpu_seconds + more_cpu_seconds,
                      busiest(self.links), total(self.links), right, detail, self.cores_busy,
                      self._links_at_work(seconds, detail))

    def _links_at_work(self, seconds: float, detail: dict[str, Any]) -> LinksAtWork | None:
        """`detail` says when it began, or which repair the coordinator is to be asked for."""
        use = self.link_use
        if use is None:
            return None
        began = detail.get("started_unix_ms") or next(
            (repair["started_unix_ms"] for repair in self.cluster.status()["repairs"]
             if repair["repair_id"] == detail["repair_id"]), None)
        if began is None:
            return None
        return LinksAtWork(use.carried_s, max(0.0, use.first_unix_s - began / 1000),
                           max(0.0, began / 1000 + seconds - use.last_unix_s), self.retransmitted)


def busiest(links: Mapping[str, LinkBytes]) -> int:
    return max((max(link.up, link.down) for link in links.values()), default=0)


def total(links: Mapping[str, LinkBytes]) -> int:
    return sum(link.up for link in links.values())


def measure_repair(cluster: Cluster, block: Block, *, scheme: str, transport: str,
                   slice_bytes: int, arguments: Sequence[str] = (),
                   only_bytes: int | None = None) -> Sample:
    """Runs `ecpipe repair` at the requestor, counts, and checks the bytes that it wrote; of the
    block's first bytes only that they are as many, and links are not watched."""
    output = cluster.base(REQUESTOR) / "repaired"
    cluster.requestor.remove(output)
    meter = Meter(cluster)
    with meter.counting_cost() if only_bytes else meter.watching():
        detail = cluster.cli_json(
            "repair", block.block_id, "-o", output, "--scheme", scheme, "--transport", transport,
            "--slice-size", str(slice_bytes), *arguments,
            *(("--length", str(only_bytes)) if only_bytes else ()), timeout=REPAIR_SECONDS)
    right = (detail["bytes"] == only_bytes if only_bytes
             else cluster.requestor.sha256(output) == block.sha256)
    cluster.requestor.remove(output)
    return meter.sample(scheme, transport, float(detail["seconds"]), right, detail,
                        float(detail["cpu_seconds"]))


def measure_direct_send(cluster: Cluster, block: Block, receiver: str) -> Sample:
    """Sends a healthy block from the node that has it to another; see direct.py."""
    sender, target = cluster.network.host(block.node), cluster.network.host(receiver)
    log = cluster.base(block.node) / "logs" / "direct.log"
    sender.remove(log)
    address = cluster.network.address(block.node)
    sending = Daemon("the direct sender", [
        sender.python, sender.program(Path(direct.__file__)), "send",
        cluster.block_path(block.node, block.block_id), address], log, host=sender)
    meter = Meter(cluster)
    with meter.counting_cost():
        sending.start()
        try:
            port = first_report(sending)["port"]
            received = json.loads(target.run(
                [target.python, target.program(Path(direct.__file__)), "receive", address,
                 port, block.bytes], timeout=DIRECT_SECONDS).stdout)
            sending.process.wait(DIRECT_SECONDS)
        finally:
            sending.kill()
    sent = json.loads(sender.read_text(log).splitlines()[-1])
    cpu = received["cpu_seconds"] + sent["cpu_seconds"]
    if cluster.network.link_bytes() is None:  # the helpers, who count there, were not asked
        meter.links = {block.node: LinkBytes(block.bytes, 0), receiver: LinkBytes(0, block.bytes)}
    return Sample(DIRECT, "tcp", received["seconds"], cpu, busiest(meter.links),
                  total(meter.links), received["sha256"] == block.sha256, {}, meter.cores_busy)


def first_report(process: Daemon) -> dict[str, Any]:
    """The first line that a program of ours prints, which is JSON."""
    def printed() -> bool:
        return "\n" in process.host.read_text(process.log_file)
    process.wait_ready(printed, DIRECT_SECONDS)
    return json.loads(process.host.read_text(process.log_file).splitlines()[0])
