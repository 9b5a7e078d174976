# SPDX-License-Identifier: Apache-2.0
"""The tc commands for one end of a link: a token bucket, or one for each of its destinations."""

from __future__ import annotations

from typing import Mapping

# The bucket holds two of the largest packets that a veth hands over (64 KiB): smaller ones are
# cut up by the CPU, larger ones let bursts past the rate.
BURST_BYTES = 128 * 1024
QUEUE_LATENCY_MS = 20
# Above what a machine's veths carry: for a node whose pairs have rates and whose uplink has none.
NO_LIMIT_MBIT = 100_000.0


def tbf_arguments(rate_mbit: float) -> list[str]:
    return ["rate", kbit(rate_mbit), "burst", str(BURST_BYTES), "latency", f"{QUEUE_LATENCY_MS}ms"]


def kbit(rate_mbit: float) -> str:
    return f"{int(rate_mbit * 1000)}kbit"


def one_rate(device: str, rate_mbit: float) -> list[str]:
    return [f"qdisc replace dev {device} root tbf {' '.join(tbf_arguments(rate_mbit))}"]


def rate_per_destination(device: str, up_mbit: float | None,
                         to_mbit: Mapping[str, float]) -> list[str]:
    """An uplink whose streams to some addresses have rates of their own: a leaf of htb for each,
    and one for all other destinations. Leaves borrow what they send from the uplink's class, so
    that together they do not exceed it."""
    uplink = up_mbit or NO_LIMIT_MBIT
    leaves = {3 + i: address for i, address in enumerate(to_mbit)}
    lines = [f"qdisc replace dev {device} root handle 1: htb default 2 r2q 1000",
             f"class add dev {device} parent 1: classid 1:1 htb {_rates(uplink, uplink)}",
             *_leaf(device, 2, uplink, uplink / (len(leaves) + 1))]
    for number, address in leaves.items():
        lines += _leaf(device, number, min(to_mbit[address], uplink),
                       uplink / (len(leaves) + 1))
        lines.append(f"filter add dev {device} parent 1: protocol ip u32 match ip dst "
                     f"{address}/32 flowid 1:{number:x}")
    return lines


def _leaf(device: str, number: int, mbit: float, share_mbit: float) -> list[str]:
    queue_bytes = int(mbit * 1e6 / 8 * QUEUE_LATENCY_MS / 1000) + BURST_BYTES
    return [f"class add dev {device} parent 1:1 classid 1:{number:x} htb "
            f"{_rates(min(mbit, share_mbit), mbit)}",
            f"qdisc add dev {device} parent 1:{number:x} bfifo limit {queue_bytes}"]


def _rates(rate_mbit: float, ceiling_mbit: float) -> str:
    """The quantum, what a leaf may borrow in a turn, is one packet of a veth."""
    return (f"rate {kbit(rate_mbit)} ceil {kbit(ceiling_mbit)} burst {BURST_BYTES} "
            f"cburst {BURST_BYTES} quantum {BURST_BYTES // 2}")
