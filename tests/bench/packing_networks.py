# SPDX-License-Identifier: Apache-2.0
"""Networks to plan on, drawn at random or from the paper's tables, and what packing_plans makes of
them."""

from __future__ import annotations

import os
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

from experiments.matrix import read_matrix
from packing_bound import ROOT, Network

PROGRAM = Path(os.environ["ECPIPE_BIN_DIR"]) / "packing_plans"
MBIT = 1e6 / 8
BLOCK_BYTES = 64 << 20
SLICE_BYTES = 32 << 10


@dataclass(frozen=True)
class Lane:
    slices: int
    parents: dict[str, str]  # of each helper


@dataclass(frozen=True)
class Plan:
    seconds: float              # that planning took of the processor
    expected: dict[str, float]  # seconds that a scheme's plan takes
    lanes: list[Lane]


class Planner:
    def __enter__(self) -> Planner:
        self.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=60)

    def plan(self, network: Network) -> Plan:
        lines = [f"problem {network.n} {network.k} {BLOCK_BYTES} {SLICE_BYTES} "
                 f"{network.rack_speed}"]
        lines += [f"node {name} {network.up[name]} {network.down[name]} "
                  f"{network.rack.get(name, '-')}" for name in network.up]
        lines += [f"link {a} {b} {speed}" for (a, b), speed in network.pairs.items()]
        self.process.stdin.write("\n".join([*lines, "plan\n"]))
        self.process.stdin.flush()
        seconds, expected, lanes = 0.0, {}, []
        for line in self.process.stdout:
            kind, *words = line.split()
            if kind == "end":
                return Plan(seconds, expected, lanes)
            if kind == "planned":
                seconds = float(words[0])
            elif kind == "expected":
                expected[words[0]] = float(words[1])
            else:
                lanes.append(Lane(int(words[0]), dict(arc.split(">") for arc in words[1:])))
        raise RuntimeError("packing_plans has ended")


def names(n: int) -> list[str]:
    return [*map(str, range(n)), ROOT]


def of_node_links(drawn: random.Random, n: int, k: int) -> Network:
    """Each node has an up- and a downlink of 20 to 200 Mb/s."""
    def speeds() -> dict[str, float]:
        return {name: drawn.uniform(20, 200) * MBIT for name in names(n)}
    return Network(n, k, up=speeds(), down=speeds())


def of_busy_nodes(drawn: random.Random, n: int, k: int) -> Network:
    """Links of 200 Mb/s, of which other traffic leaves most nearly all and some next to nothing,
    as measured in clusters that run jobs."""
    def left() -> float:
        kind = drawn.random()
        if kind < 0.5:
            return 200 * drawn.uniform(0.97, 1)
        return 200 * (drawn.uniform(0.2, 0.97) if kind < 0.9 else drawn.uniform(0.005, 0.2))
    return Network(n, k, up={name: left() * MBIT for name in names(n)},
                   down={name: left() * MBIT for name in names(n)})


def of_pairs(drawn: random.Random, n: int, k: int) -> Network:
    """Each pair has a speed of its own, and nodes have links besides."""
    network = of_node_links(drawn, n, k)
    network.pairs = {(a, b): drawn.uniform(2, 60) * MBIT
                     for a in names(n) for b in names(n) if a != b}
    return network


def of_racks(drawn: random.Random, n: int, k: int) -> Network:
    """Racks of four nodes, whose links to the others are slower than those of their nodes."""
    network = of_node_links(drawn, n, k)
    network.rack = {name: f"rack-{i % ((n + 3) // 4)}" for i, name in enumerate(names(n))}
    network.rack_speed = drawn.uniform(50, 300) * MBIT
    return network


def equal(n: int, k: int) -> Network:
    return Network(n, k, up=dict.fromkeys(names(n), 100 * MBIT),
                   down=dict.fromkeys(names(n), 100 * MBIT))


def of_regions(node_mbit: float, n: int = 16, k: int = 12) -> Iterator[Network]:
    """The paper's Table 1, with the requestor in each region in turn."""
    for name in ("north-america", "asia"):
        matrix = read_matrix(name)
        for requestor in matrix.regions:
            region = {str(i): matrix.regions[i * len(matrix.regions) // n] for i in range(n)}
            region[ROOT] = requestor
            yield Network(n, k, up=dict.fromkeys(region, node_mbit * MBIT),
                          down=dict.fromkeys(region, node_mbit * MBIT),
                          pairs={pair: mbit * MBIT for pair, mbit in matrix.pairs(region).items()})
