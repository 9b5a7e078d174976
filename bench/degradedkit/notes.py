# SPDX-License-Identifier: Apache-2.0
"""What the numbers of a figure mean. All numbers in these texts come from the rows."""

from __future__ import annotations

import statistics
from typing import Any, Callable, Sequence

from . import assumptions, beyond, formulas
from .figure import TOLERANCE, Measure
from .paper import AT_ONCE, BLOCKS, BOTH_LINKS, JOBS, SHUFFLES, WAYS, of_links
from .summary import Rows, find, mean

# Runtimes that are as good as equal, by that without failure.
EQUAL = 0.02


def saves(rows: Rows, algorithm: str = "EDF", other: str = "LF", **names: Any) -> str:
    return f"{100 * Measure(algorithm, other).of(rows, **names):.1f}"


def runtime(rows: Rows, algorithm: str, **names: Any) -> str:
    return f"{mean(find(rows, algorithm=algorithm, **names)):.2f}"


def average(rows: Rows, field: str, **names: Any) -> float:
    return statistics.mean(find(rows, **names)[field])


def listed(parts: Sequence[str]) -> str:
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]


def by_way(said: Callable[[str], str]) -> str:
    return "; ".join(f"{said(way)} (links {way})" for way in WAYS)


def of_blocks(rows: Rows) -> str:
    few, many = str(BLOCKS[0]), str(BLOCKS[-1])
    return f"""The paper finds that the saving drops with the number of blocks. Ours goes from
        {few} to {many} blocks: """ + by_way(lambda way: f"""from {saves(rows, links=way, blocks=few)}
        to {saves(rows, links=way, blocks=many)} %""") + "."


def by_formula(lost: int, mbit: float) -> tuple[float, float, float]:
    """The saving with so many lost nodes, and the seconds of reads and of rounds of map tasks."""
    one = formulas.Setting(n=20, k=15, rack_bytes_per_s=mbit * formulas.MEGABIT)
    reads = lost * formulas.all_degraded_reads_seconds(one)
    rounds = one.blocks * one.map_seconds / ((one.nodes - lost) * one.map_slots)
    late = formulas.normal_runtime(one) + reads + one.map_seconds
    return 100 * (1 - (max(rounds, reads) + one.map_seconds) / late), reads, rounds


def of_failures(rows: Rows) -> str:
    del rows
    (one, *_), (two, reads, rounds) = by_formula(1, 1000.0), by_formula(2, 1000.0)
    slow_one, slow_two = by_formula(1, 350.0)[0], by_formula(2, 350.0)[0]
    return f"""The paper's own formulas, with (20,15) and more lost nodes, say what to expect: at 1 Gb/s
        a saving of {one:.1f} % with one lost node and of {two:.1f} % with two. Two nodes' reads take
        {reads:.0f} s in each rack, which LF has in full; degraded first only has what they last
        longer than the {rounds:.0f} s of the other tasks. So the saving grows from one node to two, as
        ours does, and the paper's 22.3 % does not go with its 33.2 %. With links so slow that reads
        outlast all else already with one lost node it shrinks: {slow_one:.1f} and {slow_two:.1f} % by
        formula at 350 Mb/s."""


def of_shuffles(rows: Rows) -> str:
    least, most = (f"{share * 100:g} %" for share in (SHUFFLES[0], SHUFFLES[-1]))
    return f"""The paper says that LF is hardly affected, and that EDF gets slower, whose degraded tasks
        compete with the shuffle of tasks that run beside them. From {least} to {most}: """ + by_way(
        lambda way: f"""LF from {runtime(rows, "LF", links=way, shuffle=least)} to
        {runtime(rows, "LF", links=way, shuffle=most)}, EDF from
        {runtime(rows, "EDF", links=way, shuffle=least)} to
        {runtime(rows, "EDF", links=way, shuffle=most)}""") + """. How reducers fetch the paper does
        not say. Ours ask once a heartbeat for what is there."""


def of_jobs(rows: Rows) -> str:
    def said(way: str) -> str:
        some = of_links(rows, way)
        each = [100 * Measure().of(some, job=job) for job in range(JOBS)]
        return f"the first {each[0]:.1f} %, the others {min(each[1:]):.1f} to {max(each[1:]):.1f} %"
    return f"""Runtimes are from a job's arrival to its end. EDF saves, of jobs in the order of their
        arrival: {by_way(said)}."""


def of_remote_tasks(rows: Rows) -> str:
    clusters = ("homogeneous", "heterogeneous")
    few = {name: average(of_links(rows, AT_ONCE), "remote", algorithm="LF", cluster=name)
           for name in clusters}
    return f"""Few tasks are remote at all, of 1440: {listed([f"{few[name]:.1f} in the {name} cluster"
        for name in clusters])} (LF, links {AT_ONCE}). One task more or less is
        {100 / few["homogeneous"]:.0f} or {100 / few["heterogeneous"]:.0f} %."""


def of_bad_nodes(rows: Rows) -> str:
    lost = statistics.mean(find(rows, algorithm="LF")["degraded"])
    return f"""150 tasks are less than the 156 slots: one round of tasks, of which {lost:.1f} on average
        are degraded. EDF saves, of LF's runtime: """ + by_way(
        lambda way: f"{saves(of_links(rows, way))} %") + """: what decides is who asks last, and whether
        it is a slow node."""


def of_assumptions(rows: Rows) -> str:
    named = {"Figure 7(a)": (("(8,6)", 17.4), ("(20,15)", 32.9)),
             "Figure 7(d)": (("(20,15)", 33.2), ("two nodes", 22.3), ("a rack", 5.9))}
    fits = {figure: [name for name in assumptions.ASSUMPTIONS if all(
        abs(assumptions.saved(rows, name, case, "EDF") - paper) <= TOLERANCE
        for case, paper in wanted)] for figure, wanted in named.items()}
    both = [name for name in fits["Figure 7(a)"] if name in fits["Figure 7(d)"]]
    said = [f"{figure} {f'with {listed(names)}' if names else 'with none of them'}"
            for figure, names in fits.items()]
    return f"""All of the paper's numbers within {TOLERANCE:g} points: {"; ".join(said)}. Both figures
        at once: {f"with {listed(both)}" if both else "with none of these assumptions"}."""


def of_map_only(rows: Rows) -> str:
    def rp(rate: float) -> str:
        values = [100 * (1 - mean(find(rows, links=links, scheme="rp", mbit=rate, algorithm="LF"))
                         / mean(find(rows, links=links, scheme="conventional", mbit=rate,
                                     algorithm="LF"))) for links in BOTH_LINKS]
        return span(values, "{:.0f}")
    apart = [mean(find(rows, links=links, scheme="rp-rack", mbit=rate, algorithm="BDF"))
             - mean(find(rows, links=links, scheme="rp-rack", mbit=rate, algorithm="EDF"))
             for links in BOTH_LINKS for rate in (1000.0, 250.0)]
    path = span([mean(find(rows, links=links, scheme="rp-rack", mbit=250.0, algorithm="LF"))
                 for links in BOTH_LINKS], "{:.2f}")
    enhanced = span([mean(find(rows, links=links, scheme="conventional", mbit=250.0,
                               algorithm="EDF")) for links in BOTH_LINKS], "{:.2f}")
    return f"""The prototype said that plain RP gains little where racks are the bottleneck: under LF
        it takes {rp(1000.0)} % off at 1 Gb/s and {rp(250.0)} % at 250 Mb/s, since its path goes from
        rack to rack at random. It said that with rack-aware RP EDF wins nothing over BDF: the two
        are at most {max(map(abs, apart)):.2f} apart. Under LF and at 250 Mb/s rack-aware RP comes to
        {path}, conventional reads under EDF to {enhanced}."""


def span(values: Sequence[float], form: str) -> str:
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"


def of_racks(rows: Rows) -> str:
    rates = list(dict.fromkeys(row["mbit"] for row in rows))

    def value(scheme: str, algorithm: str, rate: float, links: str) -> float:
        return mean(find(rows, scheme=scheme, algorithm=algorithm, mbit=rate, links=links))

    def where(holds: Callable[[float, str], bool]) -> str:
        found = {links: [f"{rate:g}" for rate in rates if holds(rate, links)]
                 for links in BOTH_LINKS}
        return "; ".join(f"{listed(some) + ' Mb/s' if some else 'nowhere'} (links {links})"
                         for links, some in found.items())
    others = [scheme for scheme in beyond.SCHEMES if scheme not in ("conventional", *RACK_AWARE)]
    gain = span([100 * (1 - value(scheme, "LF", rate, links)
                        / value("conventional", "LF", rate, links))
                 for scheme in others for rate in rates for links in BOTH_LINKS], "{:.0f}")
    apart = max(abs(value("rp-rack", algorithm, rate, links)
                    - value("rp-weighted", algorithm, rate, links))
                for algorithm in beyond.ALGORITHMS for rate in rates for links in BOTH_LINKS)
    return f"""`rp-rack` and `rp-weighted`, which knows racks' links as slow ones, cross each rack's
        link about once, and are at most {apart:.2f} apart. The others carry k blocks over racks'
        links: under LF {listed([f"`{scheme}`" for scheme in others])} take {gain} % off. Stock
        Hadoop's LF with `rp-rack` is faster than EDF with conventional reads at {where(
            lambda rate, links: value("rp-rack", "LF", rate, links)
            < value("conventional", "EDF", rate, links) - EQUAL)}. EDF is better than BDF by more
        than {EQUAL}, with conventional reads, at {where(
            lambda rate, links: value("conventional", "EDF", rate, links)
            < value("conventional", "BDF", rate, links) - EQUAL)}; with `rp-rack` at {where(
            lambda rate, links: value("rp-rack", "EDF", rate, links)
            < value("rp-rack", "BDF", rate, links) - EQUAL)}."""


RACK_AWARE = ("rp-rack", "rp-weighted")


def of_nics(rows: Rows) -> str:
    def value(scheme: str, algorithm: str) -> str:
        return span([mean(find(rows, scheme=scheme, algorithm=algorithm, mbit=100.0, links=links))
                     for links in BOTH_LINKS], "{:.2f}")

    def reading(scheme: str) -> float:
        return statistics.mean(average(rows, "degraded_read_s", scheme=scheme, algorithm="EDF",
                                       mbit=1000.0, links=links) for links in BOTH_LINKS)
    return f"""At 100 Mb/s, LF and EDF: conventional {value("conventional", "LF")} and
        {value("conventional", "EDF")}; `rp` {value("rp", "LF")} and {value("rp", "EDF")}; `rp-rack`,
        whose choice of helpers puts the work on fewer nodes, {value("rp-rack", "LF")} and
        {value("rp-rack", "EDF")}. A degraded read under EDF takes {reading("conventional"):.1f} s at
        1 Gb/s the conventional way, through the reader's own link, and {reading("rp"):.1f} s by
        `rp`; a block takes 1.0 s."""


def of_striped(rows: Rows) -> str:
    def three(scheme: str, rate: float, links: str) -> str:
        return " / ".join(runtime(rows, algorithm, scheme=scheme, mbit=rate, read="whole",
                                  links=links) for algorithm in beyond.ALGORITHMS)

    def moved(scheme: str, read: str) -> float:
        return beyond.gigabytes(rows, scheme=scheme, read=read, mbit=1000.0, links="held")
    share = average(rows, "degraded", read="whole", algorithm="LF") / beyond.SPLITS
    less = [100 * (1 - moved("rp-rack", read) / moved("conventional", read))
            for read, _ in beyond.STRIPED_READS[1:]]
    return f"""A whole split reads k nodes in any case. With a node lost {100 * share:.0f} % of all
        splits have lost a share. The conventional way decodes it from what is read anyway and one
        share more; pipelines add to that: {moved("conventional", "whole"):.0f} GB over racks' links,
        {moved("rp-rack", "whole"):.0f} by `rp-rack`, {moved("rp", "whole"):.0f} by `rp`. No task is
        local. Whole splits, conventional, LF / BDF / EDF: {three("conventional", 1000.0, "held")} at
        1 Gb/s and {three("conventional", 10000.0, "held")} at 10 Gb/s with links held,
        {three("conventional", 1000.0, "shared")} and {three("conventional", 10000.0, "shared")} with
        links shared: EDF's rule of racks leaves slots empty where so many tasks are degraded. Of
        partial reads `rp-rack` moves {less[0]:.0f} % less for five shares and {less[1]:.0f} % less for
        one."""


def of_waiting(rows: Rows) -> str:
    def best(links: str, delay: float) -> dict[str, int]:
        count = dict.fromkeys(("LF that reads", "EDF that reads", "who waits"), 0)
        for scheme in ("conventional", "rp-rack"):
            for rate in (250.0, 1000.0):
                for recovery in beyond.RECOVERY_RATES:
                    values = [mean(find(rows, links=links, scheme=scheme, mbit=rate, delay=delay,
                                        recovery_mb=recovery, algorithm=algorithm, waits=waits))
                              for algorithm, waits in (("LF", False), ("EDF", False), ("LF", True))]
                    for name, value in zip(count, values):
                        count[name] += value <= min(values) + EQUAL
        return count
    lines = []
    for links in BOTH_LINKS:
        some = [f"{delay:g} s: {', '.join(str(value) for value in best(links, delay).values())}"
                for delay in beyond.DELAYS]
        lines.append(f"links {links}: {'; '.join(some)}")
    return f"""In how many of the eight settings a choice is the best, or within {EQUAL} of it (LF that
        reads, EDF that reads, who waits), by the delay: {". ".join(lines)}. A block that is read
        degraded by a task and rebuilt as well crosses the links twice."""


def of_thresholds(rows: Rows) -> str:
    def values(scheme: str, lost: str) -> str:
        found = [beyond.threshold_values(rows, links=links, scheme=scheme, lost=lost)
                 for links in BOTH_LINKS]
        return ", ".join(f"{name} {span([mean(some[i][1]) for some in found], '{:.2f}')}"
                         for i, (name, _) in enumerate(found[0]))
    return f"""EDF keeps a rack from a degraded task for as long as a conventional read takes. With a
        rack lost and `rp-rack`, whose reads take a fraction of that, this keeps links idle:
        {values("rp-rack", "rack")}. With a node lost: {values("rp-rack", "node")}."""


def of_sensitivity(rows: Rows) -> str:
    settings = [{name: row[name] for name in ("links", "scheme", "cluster", "change")}
                for row in rows if row["algorithm"] == "LF"]

    def value(names: dict[str, Any], algorithm: str) -> float:
        return mean(find(rows, algorithm=algorithm, **names))
    ahead = sum(value(names, "LF") > max(value(names, "BDF"), value(names, "EDF"))
                for names in settings)
    behind = [value(names, "EDF") - value(names, "BDF") for names in settings]
    moved = {change: [value(names, algorithm) - value({**names, "change": "the default"}, algorithm)
                      for names in settings if names["change"] == change
                      for algorithm in beyond.ALGORITHMS]
             for change, _ in beyond.SENSITIVITY[1:]}
    said = "; ".join(f"{change}: {span(values, '{:+.2f}')}" for change, values in moved.items())
    return f"""LF is behind BDF and EDF in {ahead} of {len(settings)} settings. EDF is at most
        {max(behind):.2f} behind BDF and up to {-min(behind):.2f} ahead. What each change does to
        runtimes by that without failure, which change, too: {said}."""


NOTES: dict[str, Callable[[Rows], str]] = {
    "7b": of_blocks, "7d": of_failures, "7e": of_shuffles, "7f": of_jobs, "8abc": of_remote_tasks,
    "8d": of_bad_nodes, "assumptions": of_assumptions, "map-only": of_map_only, "racks": of_racks,
    "nics": of_nics, "striped": of_striped, "waiting": of_waiting, "threshold": of_thresholds,
    "sensitivity": of_sensitivity}
