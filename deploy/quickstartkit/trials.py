# SPDX-License-Identifier: Apache-2.0
"""What an operator of storage wants to see next: a degraded read of a range, a helper that is
killed in mid-repair, and the recovery of the lost node. Each returns whether it held."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Sequence

from labkit.cluster import REQUESTOR, Cluster
from labkit.host import sha256_of
from labkit.measure import total
from labkit.process import LabError, die_with_parent, wait_until
from labkit.stripes import MIB

from .screen import LiveLine, say, say_wrapped
from .setup import K, LOST_NODE, SLICE_BYTES, Setup

WAIT_SECONDS = 60.0
RECOVERY_SECONDS = 300.0
POLL_SECONDS = 0.1
KILL_AT = 1 / 3     # of the block that has passed the helper
KILL_ATTEMPTS = 5   # on a busy machine the repair may be over before the helper is killed


def read_range(cluster: Cluster, setup: Setup, lost: Path, receive_limit: Sequence[str]) -> bool:
    length = MIB
    offset = setup.block_bytes // 2 + 4097  # not at the beginning of anything
    say(f"\n==> A degraded read: {length // MIB} MiB of the lost block, from byte {offset} on")
    output = cluster.work_dir / "range"
    before = cluster.link_bytes()
    report = cluster.cli_json("read", lost.name, "--offset", offset, "--length", length,
                              "--scheme", "rp", "-o", output, *receive_limit)
    carried = cluster.traffic_since(before)
    with lost.open("rb") as file:
        file.seek(offset)
        right = file.read(length) == output.read_bytes()
    output.unlink()
    say_wrapped(
        f"{'the same bytes as the original' if right else 'WRONG BYTES'}, in "
        f"{report['seconds']:.3f} s; {carried[REQUESTOR].down / MIB:.2f} MiB came to the reader, "
        f"{total(carried) / MIB:.1f} MiB went over all links (the whole block: "
        f"{setup.block_bytes // MIB} and {K * setup.block_bytes // MIB})")
    return right


def kill_helper(cluster: Cluster, setup: Setup, lost: Path, receive_limit: Sequence[str]) -> bool:
    slow = setup.kill_mbit
    say("\n==> A helper killed in the middle of a repair"
        + (f" (at {slow} Mb/s, to have a middle)" if slow else ""))
    with _send_limit(cluster, slow) if slow else nullcontext():
        for _ in range(KILL_ATTEMPTS):
            killed = _repair_and_kill(cluster, setup, lost, receive_limit)
            if killed:
                return _report_killed(cluster, setup, lost, killed)
    raise LabError(f"{KILL_ATTEMPTS} repairs were over before a helper could be killed: the "
                   "machine is too busy, try again")


@contextmanager
def _send_limit(cluster: Cluster, mbit: int) -> Iterator[None]:
    """Of each helper that lives."""
    nodes = [name for name in cluster.node_ids if name != LOST_NODE]

    def limited() -> list[str]:
        return [node["node"] for node in cluster.cli_json("limits")["nodes"]
                if node["node"] in nodes and node["repair_mbit"] == mbit]
    cluster.cli("limits", "set", "--node", ",".join(nodes), "--repair-mbit", str(mbit))
    wait_until(lambda: len(limited()) == len(nodes), WAIT_SECONDS, "the helpers' limits")
    yield
    cluster.cli("limits", "reset", "--node", ",".join(nodes))
    wait_until(lambda: not limited(), WAIT_SECONDS, "the helpers without limits")


@dataclass(frozen=True)
class Killed:
    victim: str
    percent: float             # of the block, that had passed it
    report: dict[str, Any]     # of the command
    read_before: dict[str, int]  # bytes, by each helper


def _report_killed(cluster: Cluster, setup: Setup, lost: Path, killed: Killed) -> bool:
    right = sha256_of(cluster.work_dir / "repaired") == sha256_of(lost)
    # Who took part before and after read the block, and some of its slices twice.
    read = {name: node["block_bytes_read"] - killed.read_before[name]
            for name, node in cluster.wait_idle().items() if name != killed.victim}
    repeated = max(0, max(read.values()) - setup.block_bytes) / SLICE_BYTES
    report = killed.report
    say_wrapped(
        f"{killed.victim} got SIGKILL at {killed.percent:.0f} %; {_verdict(right)}, in "
        f"{report['seconds']:.3f} s and {report['attempts']} attempts; "
        f"{repeated:.0f} of {setup.slices} slices were repeated, and "
        f"{report['bytes_received'] / setup.block_bytes:.2f} blocks came to the reader")
    cluster.helpers[killed.victim].restart()
    cluster.wait_live([killed.victim])
    return right


def _repair_and_kill(cluster: Cluster, setup: Setup, lost: Path,
                     receive_limit: Sequence[str]) -> Killed | None:
    """None when the repair was over before, or did not need the helper any more."""
    before = cluster.wait_idle()
    command = cluster.command("--json", "repair", lost.name, "-o", cluster.work_dir / "repaired",
                              "--scheme", "rp", "--slice-size", str(SLICE_BYTES), *receive_limit)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True,
                          preexec_fn=die_with_parent) as repair:
        try:
            victim, sent = "", 0

            def far_enough() -> bool:
                nonlocal victim, sent
                nodes = cluster.node_status()
                at_work = [name for name, node in nodes.items() if node.get("active_sessions")]
                if at_work and not victim:
                    victim = at_work[len(at_work) // 2]
                if victim and nodes[victim]["answers"]:
                    sent = nodes[victim]["data_bytes_sent"] - before[victim]["data_bytes_sent"]
                return repair.poll() is not None or sent >= KILL_AT * setup.block_bytes
            wait_until(far_enough, WAIT_SECONDS, "a part of the block repaired")
            if repair.poll() is not None:
                return None
            cluster.helpers[victim].kill()
            told, said = repair.communicate(timeout=WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise LabError(f"the repair did not end within {WAIT_SECONDS:g} s after {victim} was "
                           "killed") from None
        finally:
            repair.kill()
    if repair.returncode != 0:
        raise LabError(f"the repair failed after {victim} was killed: {said.strip()}")
    report = json.loads(told)
    if report["attempts"] == 1:
        cluster.helpers[victim].restart()
        cluster.wait_live([victim])
        return None
    return Killed(victim, min(100.0, 100 * sent / setup.block_bytes), report,
                  {name: node["block_bytes_read"] for name, node in before.items()})


def recover_node(cluster: Cluster, stripes: Sequence[dict[str, Any]]) -> bool:
    wanted = {block["block_id"]: block["sha256"] for stripe in stripes
              for block in stripe["blocks"] if block["node"] == LOST_NODE}
    others = len(cluster.node_ids) - 1
    say(f"\n==> Recovering {LOST_NODE}: its {len(wanted)} blocks, on the {others} other nodes")
    wait_until(lambda: cluster.node_status()[LOST_NODE]["state"] == "dead", WAIT_SECONDS,
               f"the coordinator takes {LOST_NODE} for dead")
    number = cluster.cli_json("recover-node", LOST_NODE, "--delay", "0", "--detach")["recovery_id"]
    report = _follow(cluster, number)
    places = {block["block_id"]: block["node"]
              for stripe in cluster.cli_json("catalog", "list", "--limit", "1000")
              for block in stripe["blocks"]}
    right = [name for name, sha256 in wanted.items() if places[name] != LOST_NODE
             and sha256_of(cluster.block_path(places[name], name)) == sha256]
    seconds = (report["ended_unix_ms"] - report["started_unix_ms"]) / 1000
    say_wrapped(
        f"{len(right)} of {len(wanted)} blocks {_verdict(len(right) == len(wanted))}, in "
        f"{seconds:.1f} s: {report['done_bytes'] / MIB / seconds:.1f} MiB/s, "
        f"on {len({places[name] for name in right})} nodes")
    return report["state"] == "done" and len(right) == len(wanted)


def _follow(cluster: Cluster, number: int) -> dict[str, Any]:
    """Shows how the recovery goes until it has ended."""
    deadline = time.monotonic() + RECOVERY_SECONDS
    with LiveLine() as line:
        while True:
            report = cluster.cli_json("recovery", "show", number)
            if report["ended_unix_ms"]:
                return report
            if time.monotonic() > deadline:
                raise LabError(f"the recovery of {LOST_NODE} has not ended within "
                               f"{RECOVERY_SECONDS:g} s: {report}")
            line.show(_progress_text(report))
            time.sleep(POLL_SECONDS)


def _progress_text(report: dict[str, Any]) -> str:
    """The rate is known when the first block is done."""
    text = (f"{report['done_blocks']} of {report['blocks']} blocks, "
            f"{report['running_blocks']} under way")
    if report["bytes_per_second"] > 0:
        text += f", {report['bytes_per_second'] / MIB:.1f} MiB/s"
    if report["eta_seconds"] is not None:
        text += f", {report['eta_seconds']:.0f} s left"
    return text


def _verdict(right: bool) -> str:
    return "sha256 ok" if right else "WRONG BYTES"
