# SPDX-License-Identifier: Apache-2.0
"""Why a row is not where theory has it, from what was measured beside its time.

Theory counts bytes by rates. What else a repair takes, or saves:

- The direct send, to which all is compared, is helped by the emulation: a token bucket that is full
  lets its burst pass at once. It is `direct_wire_s - direct_s`, and theory multiplies it.
- The beginning: `start_s` is what the repair of one slice alone takes, and `start_theory_s` what
  the links allow for that slice. It is less where full token buckets pass a slice at once.
- Links that rest: `link_carried_s` is the busiest link's bytes by its rate, `link_before_s` how
  long it took to begin, `link_after_s` how long the rest took when it was done; see timeline.py.
- Segments that TCP sent again (`link_retransmitted`), and the cores: `cores_busy` of those that
  the machine has, whoever kept them busy.
"""

from __future__ import annotations

from labkit.links import HEADERS_FACTOR
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
        return why_recovery(row)
    if some := disturbed_runs(row):
        return [some]
    # By the runs' own theories: they differ where helpers are chosen at random.
    theory_s = row["median_s"] / (1 + row["over_theory"])
    reasons, rest = [], row["median_s"] - theory_s
    gained = row["direct_wire_s"] - row["direct_s"]
    # The scheme's own links have such a burst as well, once; but not what held the direct send up.
    # Below 1 its links are faster than the direct send's, and their bursts shorter by as much.
    credit = gained * (max(0.0, row["theory_ratio"] - 1) if gained > 0 else row["theory_ratio"])
    if abs(credit) > NOTEWORTHY * theory_s:
        reason = ("token buckets let their burst pass at once"
                  if row["direct_wire_s"] > row["direct_s"] else "a beginning, and what else ran")
        reasons.append(
            f"the direct send took {ms(row['direct_s'])}, its packets by the rate "
            f"{ms(row['direct_wire_s'])} ({reason}), and theory multiplies that by "
            f"{row['theory_ratio']:.2f}: {signed_ms(credit)}")
        rest -= credit
    start = row.get("start_s", 0.0) - row.get("start_theory_s", 0.0)
    if start * rest > 0 and abs(start) > NOTEWORTHY * theory_s:
        reasons.append(beginning(row, start))
        rest -= start if abs(start) < abs(rest) else rest
    if abs(rest) <= TOLERANCE * theory_s and reasons:
        return reasons
    if rest < 0:
        return [*reasons, f"{ms(-rest)} faster than that: " + UNEXPLAINED]
    if row["cores_busy"] > CORES_BUSY * cores:
        return [*reasons, *links_at_rest(row), f"{ms(rest)} more with the cores at their limit: "
                f"{row['cores_busy']:.1f} of {cores} were busy, "
                f"{row['cpu_s'] / row['median_s']:.1f} of them with the programs of this repair"]
    return [*reasons, *(links_at_rest(row) or [
        f"{ms(rest)} more with {row['cores_busy']:.1f} of {cores} cores busy: " + UNEXPLAINED])]


def disturbed_runs(row: Row) -> str | None:
    """Where some runs are as theory has it, what happened in the others; None where none is."""
    runs = list(zip(row["seconds"], row["ratios"],
                    row.get("theories", [row["theory_ratio"]] * len(row["ratios"]))))
    off = [(seconds, seconds / ratio) for seconds, ratio, theory in runs
           if abs(ratio / theory - 1) > TOLERANCE]
    if len(off) == len(runs):
        return None
    took = ", ".join(f"{ms(seconds)} after a direct send of {ms(direct)}"
                     for seconds, direct in off)
    return (f"{len(runs) - len(off)} of {len(runs)} runs are within {TOLERANCE * 100:.0f} % of "
            f"theory; of the others: {took}" + (
                f" ({ms(row['direct_wire_s'])} by the rate)" if "direct_wire_s" in row else ""))


def beginning(row: Row, start: float) -> str:
    text = f"one slice alone takes {ms(row['start_s'])}"
    if "start_theory_s" not in row:
        return f"the beginning: {text}"
    saved = " (full token buckets pass it at once)" if start < 0 else ""
    return (f"the beginning: {text}{saved}, theory counts {ms(row['start_theory_s'])} for it: "
            f"{signed_ms(start)}")


def links_at_rest(row: Row) -> list[str]:
    """What the time is made of; nothing where nobody watched the links."""
    if "link_carried_s" not in row:
        return []
    # Medians of several runs, each of its own, may add up to more than the whole.
    between = max(0.0, row["median_s"] - row["link_carried_s"] - row["link_before_s"]
                  - row["link_after_s"])
    return [f"of {ms(row['median_s'])} the busiest link was busy for {ms(row['link_carried_s'])}, "
            f"by its bytes; it began after {ms(row['link_before_s'])}, ended "
            f"{ms(row['link_after_s'])} before the repair did, and rested for {ms(between)} in "
            f"between, with {row['cores_busy']:.1f} cores busy and "
            f"{row['link_retransmitted']:.0f} segments sent again"]


def why_recovery(row: Row) -> list[str]:
    """What is beyond the bound, piece by piece. Of whole blocks that are forwarded: what theory
    hangs on, and when the busiest link was at work."""
    if "timeslots" in row:
        return [f"{row['timeslots']:.1f} timeslots when all paths go in step; with transfers that "
                f"differ by up to 30 % at random it is {row['slipped_least']:.1f} to "
                f"{row['slipped_most']:.1f}", *links_at_rest(row)]
    rate = row["parameters"]["rate_mbit"] * 1e6
    carried_s = row.get("link_carried_s", row["busiest_link_bytes"] * HEADERS_FACTOR * 8 / rate)
    headers_s = row["bound_s"] * (HEADERS_FACTOR - 1)
    uneven_s = carried_s - row["bound_s"] - headers_s
    reasons = [f"the bound is {ms(row['bound_s'])}, and packet headers {signed_ms(headers_s)}"]
    if uneven_s > NOTEWORTHY * row["bound_s"]:
        reasons.append(f"links are not used evenly: the busiest one carries "
                       f"{carried_s / (row['bound_s'] + headers_s):.2f} times what the bound gives "
                       f"it, {signed_ms(uneven_s)}")
    return [*reasons, *links_at_rest(row)]


def signed_ms(seconds: float) -> str:
    return f"{seconds * 1000:+.0f} ms"


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
