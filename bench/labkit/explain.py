# SPDX-License-Identifier: Apache-2.0
"""Why a row is not where theory has it, from what was measured beside its time.

Theory counts bytes by rates, from the first byte on. What a repair takes beyond that:

- The direct send, to which all is compared, is helped by the emulation: a token bucket that is full
  lets its burst pass at once. It is `direct_wire_s - direct_s`, and theory multiplies it.
- The beginning: `start_s` is what the repair of one slice alone takes.
- The cores: `cores_busy` of those that the machine has, whoever kept them busy.
- Links that rest: the busiest link's bytes by its rate against the time.
"""

from __future__ import annotations

from .links import HEADERS_FACTOR
from .views import Row

TOLERANCE = 0.05
CORES_BUSY = 0.85       # of all cores: then they are what a repair waits for
NOTEWORTHY = 0.01       # of the theoretical time
UNEXPLAINED = "not explained by what was measured"


def misses(row: Row) -> bool:
    return "theory_ratio" in row and abs(row["over_theory"]) > TOLERANCE


def why(row: Row, cores: int) -> list[str]:
    """Reasons, each with its measurement; the last one says what remains, if anything does."""
    if "of_bound" in row:
        return why_recovery(row, cores)
    theory_s = row["theory_ratio"] * row["direct_s"]
    reasons, rest = [], row["median_s"] - theory_s
    # The scheme's own links have such a burst as well, once.
    credit = (row["theory_ratio"] - 1) * (row["direct_wire_s"] - row["direct_s"])
    if abs(credit) > NOTEWORTHY * theory_s:
        reason = ("token buckets let their burst pass at once"
                  if row["direct_wire_s"] > row["direct_s"] else "a beginning, and what else ran")
        reasons.append(
            f"the direct send took {ms(row['direct_s'])}, its packets by the rate "
            f"{ms(row['direct_wire_s'])} ({reason}), and theory multiplies that by "
            f"{row['theory_ratio']:.2f}: {signed_ms(credit)}")
        rest -= credit
    start = row.get("start_s", 0.0)
    if rest > 0 and start > NOTEWORTHY * theory_s:
        reasons.append(f"the beginning: one slice alone takes {ms(start)}")
        rest -= min(start, rest)
    if abs(rest) <= TOLERANCE * theory_s:
        return reasons or [f"the runs differ, by {ms(row['spread_s'])}: by medians it is within "
                           f"{TOLERANCE * 100:.0f} %"]
    if rest < 0:
        return [*reasons, f"{ms(-rest)} faster than that: " + UNEXPLAINED]
    if rest_of_links := links_at_rest(row):
        reasons.append(rest_of_links)
    if row["cores_busy"] > CORES_BUSY * cores:
        return [*reasons, f"{ms(rest)} more with the cores at their limit: "
                          f"{row['cores_busy']:.1f} of {cores} were busy, "
                          f"{row['cpu_s'] / row['median_s']:.1f} of them with the programs of this "
                          "repair"]
    return [*reasons, f"{ms(rest)} more with {row['cores_busy']:.1f} of {cores} cores busy: "
                      + UNEXPLAINED]


def links_at_rest(row: Row) -> str | None:
    """Where all links have one rate."""
    rate = row["parameters"].get("rate_mbit")
    if not rate or row["experiment"] in ("edge", "rack"):
        return None
    carried_s = row["busiest_link_bytes"] * HEADERS_FACTOR * 8 / (rate * 1e6)
    return f"the busiest link was busy for {ms(carried_s)} of {ms(row['median_s'])}, by its bytes"


def why_recovery(row: Row, cores: int) -> list[str]:
    rate = row["parameters"]["rate_mbit"] * 1e6
    carried_s = row["busiest_link_bytes"] * HEADERS_FACTOR * 8 / rate
    reasons = []
    if carried_s > 1.01 * row["bound_s"]:
        reasons.append(f"the busiest link carried {carried_s / row['bound_s']:.2f} times what the "
                       f"bound counts, {HEADERS_FACTOR:.3f} times for packet headers, the rest "
                       "since links are not used evenly")
    rests = 1 - carried_s / row["median_s"]
    if rests > 0.02:
        reasons.append(f"it rested for {rests * 100:.0f} % of the time, with "
                       f"{row['cores_busy']:.1f} of {cores} cores busy")
    return reasons or [UNEXPLAINED]


def signed_ms(seconds: float) -> str:
    return f"{seconds * 1000:+.0f} ms"


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
