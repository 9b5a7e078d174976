# SPDX-License-Identifier: Apache-2.0
"""The runtime of a map-only job by the analysis of Li, Lee and Hu, "Degraded-First Scheduling for
MapReduce in Erasure-Coded Storage Clusters" (DSN'14), section IV-B. Pure. Seconds, bytes, bytes
per second; symbols as in the paper."""

from __future__ import annotations

from dataclasses import dataclass

MEGABIT = 125_000.0            # bytes
BLOCK_BYTES = 128 * 10**6      # the paper's "128MB" that gives its percentages


@dataclass(frozen=True)
class Setting:
    """The defaults are the paper's."""

    nodes: int = 40                         # N, in
    racks: int = 4                          # R equal racks
    map_slots: int = 4                      # L, of a node
    block_bytes: float = BLOCK_BYTES        # S
    rack_bytes_per_s: float = 1000 * MEGABIT  # W, into each rack
    map_seconds: float = 20.0               # T
    blocks: int = 1440                      # F, native blocks that the job reads
    n: int = 16
    k: int = 12


def degraded_read_seconds(setting: Setting) -> float:
    """(R-1)kS / (RW): of k blocks chosen at random all but one in R come from other racks. Also the
    threshold of EDF's rack awareness."""
    return ((setting.racks - 1) * setting.k * setting.block_bytes
            / (setting.racks * setting.rack_bytes_per_s))


def all_degraded_reads_seconds(setting: Setting) -> float:
    """F/(NR) degraded tasks in each rack, one read after another."""
    return setting.blocks / (setting.nodes * setting.racks) * degraded_read_seconds(setting)


def normal_runtime(setting: Setting) -> float:
    return setting.blocks * setting.map_seconds / (setting.nodes * setting.map_slots)


def locality_first_runtime(setting: Setting) -> float:
    """Local tasks, then all degraded reads, then one more map task."""
    return (normal_runtime(setting) + all_degraded_reads_seconds(setting) + setting.map_seconds)


def degraded_first_runtime(setting: Setting) -> float:
    """Reads hidden behind the rounds of local tasks, or else the reads; then one more map task."""
    rounds = (setting.blocks * setting.map_seconds
              / ((setting.nodes - 1) * setting.map_slots))
    return max(rounds, all_degraded_reads_seconds(setting)) + setting.map_seconds


def reduction(setting: Setting) -> float:
    """The share of locality-first's runtime that degraded-first saves."""
    return 1 - degraded_first_runtime(setting) / locality_first_runtime(setting)
