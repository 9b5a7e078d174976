#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a large cluster costs its coordinator: a real one, made-up stripes, stand-in helpers.

One process stands for all helpers (bench/stand_in_helpers.cc): each has its own control port on
loopback, registers, sends a heartbeat a second, and reports its parts as done after a while. No
block byte moves. It needs about 3 descriptors a node; the stripes of --keep are loaded once and
used again.

    bench/scale.py [--nodes 1000] [--stripes 200000] [--seconds 10] [--keep FOLDER] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, Callable

from experiments.results import print_table
from labkit.cluster import COORDINATOR, Cluster
from labkit.command_line import add_bin_dir_argument, check_programs, print_error
from labkit.process import (LabError, cpu_seconds, die_with_parent, interruptible, run,
                            wait_until)

PROGRAMS = ("catalog_load", "stand_in_helpers")
LOAD_SECONDS = 7200.0     # of ten million stripes on a busy machine
STEP_SECONDS = 300.0
RATE_MBIT = 1_000_000     # the cluster's, so high that nobody is held up
SCRAPES = 5
PART_MS = 200
MOST_SILENT = 50


class StandIns:
    """The process that stands for all helpers."""

    def __init__(self, program: Path, coordinator: str, nodes: int, log: Path, *, racks: int = 0,
                 part_ms: int = PART_MS) -> None:
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [program, f"--coordinator={coordinator}", f"--nodes={nodes}",
                 f"--part-ms={part_ms}", f"--racks={racks}"], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
                preexec_fn=die_with_parent)

    def __enter__(self) -> StandIns:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def answer(self) -> dict[str, int]:
        """Its next line; it says so when it has ended instead."""
        line = self.process.stdout.readline()
        if not line:
            raise LabError(f"stand_in_helpers ended, exit code {self.process.wait()}")
        return json.loads(line)

    def ask(self, line: str) -> dict[str, int]:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.answer()

    def counts(self) -> dict[str, int]:
        return self.ask("count")

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.process.pid)


class Watched:
    """The coordinator's process, from outside, and its page of metrics."""

    def __init__(self, cluster: Cluster) -> None:
        self.pid = cluster.coordinator.pid
        self.cluster = cluster
        self.url = f"http://{cluster.coordinator.ready['web']}/metrics"

    def page(self) -> str:
        with urllib.request.urlopen(self.url, timeout=STEP_SECONDS) as response:
            return response.read().decode()

    def metric(self, name: str) -> float:
        """Of a sample with exactly this name and these labels."""
        found = re.search(rf"^{re.escape(name)} (\S+)$", self.page(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    def scrape_ms(self) -> float:
        def once() -> float:
            began = time.perf_counter()
            self.page()
            return (time.perf_counter() - began) * 1000
        return statistics.median(once() for _ in range(SCRAPES))

    def cpu_share(self, seconds: float) -> float:
        """Of one core, over this time."""
        began, before = time.monotonic(), self.cluster.coordinator.cpu_seconds()
        time.sleep(seconds)
        return (self.cluster.coordinator.cpu_seconds() - before) / (time.monotonic() - began)

    def size(self) -> dict[str, float]:
        status = Path(f"/proc/{self.pid}/status").read_text()
        kib = {name: int(value) for name, value in re.findall(r"^(VmRSS|VmHWM):\s+(\d+)", status,
                                                              re.MULTILINE)}
        return {"resident_mib": kib["VmRSS"] / 1024, "peak_resident_mib": kib["VmHWM"] / 1024,
                "threads": int(re.search(r"^Threads:\s+(\d+)", status, re.MULTILINE)[1]),
                "descriptors": len(list(Path(f"/proc/{self.pid}/fd").iterdir()))}


def load_stripes(bin_dir: Path, folder: Path, stripes: int, nodes: int) -> None:
    """Into the catalog of the coordinator whose state is in this folder, unless it is there."""
    catalog = folder / "catalog.db"
    if catalog.exists():
        return
    run([bin_dir / "catalog_load", folder, f"--stripes={stripes}", f"--nodes={nodes}",
         "--lookups=1"], timeout=LOAD_SECONDS)
    for suffix in ("", "-wal", "-shm"):
        made = Path(f"{folder}/ecpipe.db{suffix}")
        if made.exists():
            made.rename(f"{catalog}{suffix}")


def heartbeats(cluster: Cluster, watched: Watched, stand_ins: StandIns,
               seconds: float) -> dict[str, float]:
    """The coordinator's share of a core, without a rate of the cluster and with one."""
    before = stand_ins.counts()
    plain = watched.cpu_share(seconds)
    cluster.cli("limits", "set", "--cluster", "--repair-mbit", str(RATE_MBIT))
    with_rate = watched.cpu_share(seconds)
    cluster.cli("limits", "reset", "--cluster")
    after = stand_ins.counts()
    return {"heartbeat_cores": plain, "heartbeat_cores_with_rate": with_rate,
            "heartbeats": after["heartbeats"] - before["heartbeats"],
            "lost_heartbeats": after["lost_heartbeats"] - before["lost_heartbeats"]}


def deaths(watched: Watched, stand_ins: StandIns, count: int) -> dict[str, float]:
    """How long it takes until the coordinator takes nodes for dead that fall silent together."""
    dead = 'ecpipe_nodes{state="dead"}'
    began = time.monotonic()
    silenced = stand_ins.ask(f"silence {count}")["silenced"]
    wait_until(lambda: watched.metric(dead) >= silenced, STEP_SECONDS, f"{silenced} dead nodes")
    return {"silent_nodes": silenced, "noticed_seconds": time.monotonic() - began}


def begin_recovery(cluster: Cluster, stand_ins: StandIns, node: str) -> tuple[int, float]:
    """The recovery's number, and the time until the first part of it that stores a block runs."""
    wait_until(lambda: cluster.node_status()[node]["state"] == "dead", STEP_SECONDS,
               f"{node} to be dead")
    began = time.time()
    recovery = cluster.cli_json("recover-node", node, "--delay", "0", "--detach")["recovery_id"]
    wait_until(lambda: stand_ins.counts()["first_block_ms"] > 0, STEP_SECONDS, "the first block")
    return recovery, stand_ins.counts()["first_block_ms"] / 1000 - began


def recover(cluster: Cluster, watched: Watched, stand_ins: StandIns, node: str,
            seconds: float) -> dict[str, float]:
    recovery, first = begin_recovery(cluster, stand_ins, node)
    blocks, began = stand_ins.counts()["blocks"], time.monotonic()
    plans = "ecpipe_plan_seconds"
    planned, planning = (watched.metric(f"{plans}_{of}") for of in ("count", "sum"))
    stand_in_cpu = stand_ins.cpu_seconds()
    cores = watched.cpu_share(seconds)
    stand_in_cpu = stand_ins.cpu_seconds() - stand_in_cpu
    begun = stand_ins.counts()["blocks"] - blocks
    rate = begun / (time.monotonic() - began)
    planned = watched.metric(f"{plans}_count") - planned
    planning = watched.metric(f"{plans}_sum") - planning
    figures = {"first_block_seconds": first, "block_starts_per_second": rate, "plans": planned,
               "plan_ms": planning / planned * 1000 if planned else 0.0,
               "recovery_cores": cores,
               "coordinator_ms_per_start": cores / rate * 1000 if begun else 0.0,
               "stand_in_ms_per_start": stand_in_cpu / begun * 1000 if begun else 0.0,
               "scrape_ms_in_recovery": watched.scrape_ms()}
    def show() -> dict[str, Any]:
        return cluster.cli_json("recovery", "show", str(recovery))
    wait_until(lambda: show()["done_blocks"] > 0, STEP_SECONDS, "the first block to be there")
    shown = show()
    figures["recovery_blocks"] = shown["blocks"]
    figures["recovery_done_blocks"] = shown["done_blocks"]
    cluster.cli("recovery", "cancel", str(recovery), check=False)
    return figures


def measure(arguments: argparse.Namespace, folder: Path,
            say: Callable[[str], None]) -> dict[str, float]:
    cluster = Cluster(arguments.bin_dir, folder, [], logs_stay=False, coordinator_settings={
        "web": {"listen": "127.0.0.1:0"}, "log": {"level": "warning"}})
    say(f"loading {arguments.stripes} stripes")
    load_stripes(arguments.bin_dir, folder / "state" / COORDINATOR, arguments.stripes,
                 arguments.nodes)
    with cluster:
        watched = Watched(cluster)
        log = folder / "logs" / "stand_ins.log"
        with StandIns(arguments.bin_dir / "stand_in_helpers", cluster.coordinator.address,
                      arguments.nodes, log) as stand_ins:
            say(f"waiting for {arguments.nodes} nodes")
            stand_ins.answer()
            say("measuring heartbeats")
            figures = heartbeats(cluster, watched, stand_ins, arguments.seconds)
            figures["scrape_ms"] = watched.scrape_ms()
            say("silencing nodes")
            figures |= deaths(watched, stand_ins, min(MOST_SILENT, arguments.nodes // 10))
            say("recovering a node")
            figures |= recover(cluster, watched, stand_ins, f"node-{arguments.nodes - 1}",
                               arguments.seconds)
            figures["scrape_ms_after_recovery"] = watched.scrape_ms()
            return figures | watched.size()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000,
                        help="stand-ins, 20 or more (default %(default)s)")
    parser.add_argument("--stripes", type=int, default=200_000,
                        help="of 14 blocks (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0,
                        help="length of each measurement (default %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER",
                        help="works there, and uses the stripes that it finds there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes the figures there, too")
    add_bin_dir_argument(parser, Path(__file__).resolve().parents[1])
    arguments = parser.parse_args()
    if arguments.nodes < 20:
        parser.error("--nodes must be 20 or more")
    try:
        check_programs(arguments.bin_dir, PROGRAMS)
        with interruptible() as stack:
            folder = arguments.keep or Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="ecpipe-scale-")))
            folder.mkdir(parents=True, exist_ok=True)
            figures = measure(arguments, folder.resolve(),
                              lambda step: print(step, file=sys.stderr, flush=True))
    except LabError as error:
        print_error("scale.py", error)
        sys.exit(1)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    print_table(["figure", "value"], [[name, f"{value:.4g}"] for name, value in figures.items()])


if __name__ == "__main__":
    main()
