# SPDX-License-Identifier: Apache-2.0
"""Continuous-time Markov chains with one absorbing state. Pure."""

from __future__ import annotations

from typing import Mapping, Sequence

LOST = -1


def mean_time_to_loss(rates: Sequence[Mapping[int, float]], start: int = 0) -> float:
    """From state `start` to LOST. `rates[i]`: from state i to each other state, per unit of time.

    States are eliminated one after another. It only adds, multiplies and divides, so that nothing
    is cancelled where repairs are 10^9 times as fast as failures (Grassmann, Taksar and Heyman,
    "Regenerative Analysis and Steady State Distributions for Markov Chains", 1985); a solver of
    linear equations loses all digits there."""
    left = [dict(row) for row in rates]
    stay = [1.0] * len(left)  # time spent, by the state's rate of leaving
    for state in [state for state in range(len(left)) if state != start]:
        out = left[state]
        leaving = sum(rate for to, rate in out.items() if to != state)
        for other, row in enumerate(left):
            rate = row.pop(state, 0.0)
            if other == state or not rate:
                continue
            stay[other] += rate * stay[state] / leaving
            for to, onward in out.items():
                if to not in (state, other):
                    row[to] = row.get(to, 0.0) + rate * onward / leaving
        left[state] = {}
    return stay[start] / left[start][LOST]
