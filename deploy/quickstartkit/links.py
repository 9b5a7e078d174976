# SPDX-License-Identifier: Apache-2.0
"""Where the nodes are and what limits their links: network namespaces, also of a user without
rights; where there are none, loopback and the programs' own limits; or nothing."""

from __future__ import annotations

import contextlib
import os
import shlex
import textwrap
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

from labkit import netns
from labkit.cluster import COORDINATOR, REQUESTOR, Loopback, Network, node_names
from labkit.links import Links
from labkit.namespace import enter_user_namespace

from .setup import LINK_MBIT, NODES, Setup

OBSTACLE_CHARACTERS = 240


@dataclass(frozen=True)
class Place:
    network: Network
    text: str  # where the nodes are, for the user
    helper_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    receive_limit: Sequence[str] = ()  # of each `ecpipe read` and `ecpipe repair`
    enter: Sequence[str] = ()          # puts a command of another terminal on the requestor's node


def choose(setup: Setup, stack: contextlib.ExitStack) -> Place:
    if not setup.limited:
        return Place(Loopback(), "on loopback, where no link is slow")
    obstacle, in_user_namespace = netns.why_not(), False
    if obstacle and not enter_user_namespace():
        obstacle, in_user_namespace = netns.why_not(), True
    if obstacle:
        # A helper limits what it sends; what a requestor receives is limited by the command.
        return Place(Loopback(),
                     f"on loopback; helpers send, and the requestor receives, {LINK_MBIT} Mb/s at "
                     f"most, since {shortened(obstacle)}",
                     helper_settings={"limits": {"repair_mbit": LINK_MBIT}},
                     receive_limit=("--limit-mbit", str(LINK_MBIT)))
    network = netns.Network([COORDINATOR, REQUESTOR, *node_names(NODES)], Links(LINK_MBIT))
    stack.callback(network.close)
    network.__enter__()
    enter = list(network.host(REQUESTOR).prefix)
    if in_user_namespace:
        enter[1:1] = [f"--user=/proc/{os.getpid()}/ns/user", "--preserve-credentials"]
    elif os.environ.get("SUDO_UID"):
        enter.insert(0, "sudo")
    return Place(network, f"each in a network namespace, behind links of {LINK_MBIT} Mb/s",
                 enter=enter)


def shortened(obstacle: str) -> str:
    return textwrap.shorten(obstacle, OBSTACLE_CHARACTERS, placeholder=" ...")


def command_text(words: Sequence[object]) -> str:
    return shlex.join(map(str, words))
