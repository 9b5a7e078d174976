# SPDX-License-Identifier: Apache-2.0
"""What to type next: when all is over, and while the cluster is held."""

from __future__ import annotations

from pathlib import Path
from typing import Sequence

from labkit.cluster import Cluster

from .links import command_text
from .screen import say
from .setup import LOST_NODE


def print_next_steps() -> None:
    say("""
Look further:
  build/release/bin/ecpipe --help     the command: plan, repair, status, ...
  deploy/quickstart.sh --hold         leaves the cluster to you until ctrl-C
  deploy/quickstart.sh --keep         keeps blocks, configs and logs
  sudo bench/lab.py single --runs 3   the schemes, measured several times
  tests/run.sh                        the tests
  README.md, docs/                    what it is, and how it works""")


def print_how_to_use(cluster: Cluster, block_id: str, enter: Sequence[str]) -> None:
    """`enter`: what puts a command on the requestor's node."""
    command = command_text([*enter, cluster.bin_dir / "ecpipe", "--coordinator",
                            cluster.coordinator.address])
    say(f"""
The cluster runs, without {LOST_NODE}. Paste this into another terminal:
  ecpipe() {{ {command} "$@"; }}
  ecpipe status
  ecpipe plan {block_id} --scheme rp
  ecpipe repair {block_id} --scheme rp -o {command_text([Path(cluster.work_dir, "mine")])}
The work directory is {cluster.work_dir}. ctrl-C ends it all.""")
