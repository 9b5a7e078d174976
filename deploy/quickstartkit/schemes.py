# SPDX-License-Identifier: Apache-2.0
"""The table: one repair by each scheme."""

from __future__ import annotations

from pathlib import Path
from typing import Sequence

from labkit.cluster import Cluster
from labkit.host import sha256_of
from labkit.measure import Sample, measure_repair
from labkit.stripes import MIB, Block

from .screen import LiveLine, Table, say, say_wrapped
from .setup import K, LOST_NODE, N, NAME, REPAIRS, RUNS, SLICE_BYTES, Setup

COLUMNS = (("scheme", -12), ("transport", -9), ("seconds", 7), ("x direct", 8), ("theory", 6),
           ("link MiB", 8), ("CPU s", 5), ("result", -11))
MEASURED_OFTEN = (("direct", "tcp"), ("rp", "tcp"))
OF_LIMITED_LINKS = ("x direct", "theory")


def repair_by_each(cluster: Cluster, setup: Setup, lost: Path,
                   receive_limit: Sequence[str]) -> list[Sample]:
    """Repairs the lost block by each scheme and prints the table meanwhile."""
    healthy = cluster.block_file(f"{NAME}-s00000-b00")
    say(f"\nBlock {lost.name}, {setup.block_bytes // MIB} MiB of a rs({N},{K}) stripe, was lost "
        f"with {LOST_NODE}.\nBy each scheme, in slices of {SLICE_BYTES // 1024} KiB, it is rebuilt "
        "in:\n")
    columns = [column for column in COLUMNS if setup.limited or column[0] not in OF_LIMITED_LINKS]
    table, samples = Table(columns), []
    for scheme, transport in REPAIRS:
        original = healthy if scheme == "direct" else lost
        block = Block(original.name, LOST_NODE, sha256_of(original), original.stat().st_size)
        runs = RUNS if (scheme, transport) in MEASURED_OFTEN else 1
        with LiveLine() as line:
            line.hint(f"{scheme} over {transport} ...")
            samples.append(median_of([
                measure_repair(cluster, block, scheme=scheme, transport=transport,
                               slice_bytes=SLICE_BYTES, arguments=receive_limit)
                for _ in range(runs)]))
        row = row_of(samples[-1], samples[0], setup)
        table.add([row[name] for name, _ in columns])
    return samples


def median_of(samples: list[Sample]) -> Sample:
    """By its time. One with wrong bytes goes before all."""
    wrong = [sample for sample in samples if not sample.sha256_ok]
    return (wrong or sorted(samples, key=lambda sample: sample.seconds))[len(wrong or samples) // 2]


def row_of(sample: Sample, direct: Sample, setup: Setup) -> dict[str, str]:
    return {"scheme": sample.scheme, "transport": sample.transport,
            "seconds": f"{sample.seconds:.3f}",
            "x direct": f"{sample.seconds / direct.seconds:.2f}",
            "theory": f"{setup.theory(sample.scheme):.2f}",
            "link MiB": f"{sample.busiest_link_bytes / MIB:.1f}",
            "CPU s": f"{sample.cpu_seconds:.2f}",
            "result": "sha256 ok" if sample.sha256_ok else "WRONG BYTES"}


def print_reading(samples: Sequence[Sample], setup: Setup) -> None:
    """What the table says, in a sentence or two."""
    by_name = {(sample.scheme, sample.transport): sample for sample in samples}
    direct, rp = by_name["direct", "tcp"], by_name["rp", "tcp"]
    conventional = by_name["conventional", "tcp"]
    say()
    if not setup.limited:
        say_wrapped(f"""On loopback no link is slow, so the seconds are those of the CPU. In a
                    network the busiest link counts: the conventional way loads one with {K} blocks,
                    rp loads each with one. Without --loopback links have a rate, and the seconds
                    show it.""", "")
        return
    by_rp, by_convention = (sample.seconds / direct.seconds for sample in (rp, conventional))
    say_wrapped(f"""By rp a lost block is read in {by_rp:.2f} times the time of a healthy one
                (direct). The conventional way takes {by_convention:.1f} times as long: it pulls
                {K} blocks over one link.""", "")
    say_wrapped(f"""direct, and rp over tcp: the median of {RUNS} runs. theory: block times on equal
                links. link MiB: what the busiest link carried. CPU s: all daemons, the
                redis-servers and the command.""", "")
