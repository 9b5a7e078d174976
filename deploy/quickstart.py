#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repairs a lost block of a real file by each scheme, on a cluster of real processes.

deploy/quickstart.sh builds first and then runs this.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "bench"))
sys.dont_write_bytecode = True  # the checkout may be somebody else's
os.environ["PATH"] += ":/usr/sbin:/sbin"  # tc is there, and not every user looks there

from labkit.cluster import Cluster  # noqa: E402
from labkit.command_line import check_programs, default_bin_dir  # noqa: E402
from labkit.process import LabError, interruptible  # noqa: E402
from labkit.stripes import MIB  # noqa: E402
from quickstartkit import hold, links, schemes, trials, workplace  # noqa: E402
from quickstartkit.screen import say, say_wrapped, step  # noqa: E402
from quickstartkit.setup import (  # noqa: E402
    K, LOST_NODE, N, NAME, NODES, Setup, parse_arguments, setup_of)


def encode(cluster: Cluster, file: Path, setup: Setup) -> Path:
    cluster.cli("encode", file, "--out", cluster.data_dir(), "--code", f"rs({N},{K})",
                "--block-size", str(setup.block_bytes), "--name", NAME,
                "--nodes", ",".join(cluster.node_ids))
    return cluster.data_dir() / f"{NAME}.manifest.json"


def lose_node(cluster: Cluster, stripes: list[dict]) -> list[Path]:
    """Stops a node and takes away all that it had, as a dead machine would. Its blocks, by the
    manifest: beside them it has files with their checksums."""
    helper = cluster.helpers[LOST_NODE]
    helper.stop()
    lost_dir = helper.root.rename(cluster.work_dir / "lost")
    return [lost_dir / block["block_id"] for stripe in stripes for block in stripe["blocks"]
            if block["node"] == LOST_NODE]


def run(arguments: argparse.Namespace, stack: contextlib.ExitStack) -> bool:
    """True when everything held: all bytes right, and each trial as it should be."""
    setup = setup_of(arguments)
    check_programs(default_bin_dir(REPOSITORY))
    work = (workplace.given_folder(stack, arguments.work_dir) if arguments.work_dir
            else workplace.temporary_folder(stack, arguments.keep))
    place = links.choose(setup, stack)
    say(f"==> A cluster of 1 coordinator and {NODES} helpers on this machine")
    say_wrapped(place.text)
    with step(f"Making a real file: {setup.file_bytes // MIB} MiB of a tar of "
              f"{workplace.tar_folders()}"):
        file = workplace.make_file(work, setup)
    cluster = Cluster(default_bin_dir(REPOSITORY), work, NODES, redis=True, network=place.network,
                      helper_settings=place.helper_settings)
    stack.callback(cluster.stop)
    with step(f"Starting the coordinator, {NODES} helpers, {NODES} redis-servers"):
        cluster.start()
    with step(f"Encoding {file.stat().st_size // MIB} MiB with rs({N},{K})"):
        manifest = encode(cluster, file, setup)
    with step("Loading the catalog"):
        cluster.cli("catalog", "load", manifest)
    stripes = json.loads(manifest.read_text())["stripes"]
    with step(f"Losing {LOST_NODE} and all its blocks"):
        lost = lose_node(cluster, stripes)[0]
    samples = schemes.repair_by_each(cluster, setup, lost, place.receive_limit)
    schemes.print_reading(samples, setup)
    held = all(sample.sha256_ok for sample in samples)
    if setup.limited:
        held &= trials.read_range(cluster, setup, lost, place.receive_limit)
        held &= trials.kill_helper(cluster, setup, lost, place.receive_limit)
        held &= trials.recover_node(cluster, stripes)
    hold.print_next_steps()
    if arguments.hold:
        hold.print_how_to_use(cluster, lost.name, place.enter)
        while True:
            signal.pause()
    cluster.stop()
    cluster.check_ends()
    return held


def main() -> int:
    arguments, start = parse_arguments(), time.monotonic()
    try:
        with interruptible() as stack:
            held = run(arguments, stack)
    except workplace.Refused as error:
        print(f"quickstart: {error}", file=sys.stderr)
        return 1
    except LabError as error:
        where = (f"the logs are in {arguments.work_dir}/logs" if arguments.work_dir
                 else "the logs are in the kept folder's logs/" if arguments.keep
                 else "run it again with --keep to look at the logs")
        print(f"\nquickstart: {error}\nquickstart: {where}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # who reads this has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if not held:
        print("\nquickstart: WRONG BYTES, or a recovery that did not end well: see above",
              file=sys.stderr)
        return 1
    say(f"\nDone in {time.monotonic() - start:.0f} s; nothing is left running.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
