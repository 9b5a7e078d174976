# SPDX-License-Identifier: Apache-2.0
"""What the numbers of a figure mean. All numbers in these texts come from the rows."""

from __future__ import annotations

import statistics
from typing import Any, Callable, Mapping, Sequence

from . import assumptions, beyond, formulas
from .figure import ALGORITHMS, TOLERANCE, Measure
from .paper import AT_ONCE, BLOCKS, BOTH_LINKS, JOBS, SHUFFLES, WAYS, of_links
from .summary import Rows, find, mean

# Runtimes that are as good as equal, by that without failure.
EQUAL = 0.02
RACK_AWARE = ("rp-rack", "rp-weighted")


def saves(rows: Rows, **names: Any) -> str:
    return f"{100 * Measure().of(rows, **names):.1f}"


def runtime(rows: Rows, algorithm: str, **names: Any) -> str:
    return f"{mean(find(rows, algorithm=algorithm, **names)):.2f}"


def average(rows: Rows, field: str, **names: Any) -> float:
    return statistics.mean(find(rows, **names)[field])


def listed(parts: Sequence[str]) -> str:
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]


def span(values: Sequence[float], form: str) -> str:
    low, high = (text if (text := form.format(value)) != "-0" else "0"
                 for value in (min(values), max(values)))
    between = " to " if "+" in form else "-"
    return low if low == high else low + between + high


def by_way(said: Callable[[str], str]) -> str:
    return "; ".join(f"{said(way)} (links {way})" for way in WAYS)


def of_blocks(rows: Rows) -> str:
    few, many = ({"blocks": str(blocks)} for blocks in (BLOCKS[0], BLOCKS[-1]))
    ends = by_way(lambda way: f"from {saves(rows, links=way, **few)} to "
                              f"{saves(rows, links=way, **many)} %")
    return f"""The paper finds that the saving drops with the number of blocks. Ours goes from
        {BLOCKS[0]} to {BLOCKS[-1]} blocks {ends}."""


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
    return f"""The paper's own formulas, with (20,15) and more lost nodes, say what to expect: at
        1 Gb/s a saving of {one:.1f} % with one lost node and of {two:.1f} % with two. Two nodes'
        reads take {reads:.0f} s in each rack, which LF has in full; degraded first only has what
        they last longer than the {rounds:.0f} s of the other tasks. So the saving grows from one
        node to two, as ours does, and the paper's 22.3 % does not go with its 33.2 % at 1 Gb/s.
        With links so slow that reads outlast all else already with one lost node it shrinks:
        {slow_one:.1f} and {slow_two:.1f} % by formula at 350 Mb/s."""


def of_shuffles(rows: Rows) -> str:
    least, most = ({"shuffle": f"{share * 100:g} %"} for share in (SHUFFLES[0], SHUFFLES[-1]))

    def ends(way: str, algorithm: str) -> str:
        return (f"{algorithm} from {runtime(rows, algorithm, links=way, **least)} to "
                f"{runtime(rows, algorithm, links=way, **most)}")
    said = by_way(lambda way: f"{ends(way, 'LF')}, {ends(way, 'EDF')}")
    return f"""The paper says that LF is hardly affected, and that EDF gets slower, whose degraded
        tasks compete with the shuffle of tasks that run beside them. From {least["shuffle"]} to
        {most["shuffle"]}: {said}. How reducers fetch the paper does not say. Ours ask once a
        heartbeat for what is there."""


def of_jobs(rows: Rows) -> str:
    def said(way: str) -> str:
        some = of_links(rows, way)
        each = [100 * Measure().of(some, job=job) for job in range(JOBS)]
        return f"the first {each[0]:.1f} %, the others {min(each[1:]):.1f} to {max(each[1:]):.1f} %"
    return f"""Runtimes are from a job's arrival to its end. EDF saves, of jobs in the order of
        their arrival: {by_way(said)}."""


def of_remote_tasks(rows: Rows) -> str:
    few = {name: average(of_links(rows, AT_ONCE), "remote", algorithm="LF", cluster=name)
           for name in ("homogeneous", "heterogeneous")}
    said = listed([f"{count:.1f} in the {name} cluster" for name, count in few.items()])
    percents = " or ".join(f"{100 / count:.0f}" for count in few.values() if count)
    return f"""Few tasks are remote at all, of 1440: {said} (LF, links {AT_ONCE}). One task more or
        less is {percents} %."""


def of_bad_nodes(rows: Rows) -> str:
    lost = average(rows, "degraded", algorithm="LF")
    said = by_way(lambda way: f"{saves(of_links(rows, way))} %")
    return f"""150 tasks are less than the 156 slots: one round of tasks, of which {lost:.1f} on
        average are degraded. What decides is who asks when, and whether it is a slow node. EDF
        saves, of LF's runtime: {said}."""


def of_assumptions(rows: Rows) -> str:
    wanted = {"Figure 7(a)": (("(8,6)", 17.4), ("(20,15)", 32.9)),
              "Figure 7(d)": (("(20,15)", 33.2), ("two nodes", 22.3), ("a rack", 5.9))}
    fits = {figure: [name for name in assumptions.ASSUMPTIONS if all(
        abs(assumptions.saved(rows, name, case, "EDF") - paper) <= TOLERANCE
        for case, paper in cases)] for figure, cases in wanted.items()}
    fits["both"] = [name for name in fits["Figure 7(a)"] if name in fits["Figure 7(d)"]]

    def said(figure: str) -> str:
        names = [f"\"{name}\"" for name in fits[figure]]
        return f"{figure} with {listed(names)}" if names else f"{figure} with none of these"
    return f"""All of EDF's numbers within {TOLERANCE:g} points of the paper's, by these clusters:
        {"; ".join(map(said, fits))}."""


def of_map_only(rows: Rows) -> str:
    def values(scheme: str, algorithm: str, rate: float) -> list[float]:
        return [mean(find(rows, links=links, scheme=scheme, mbit=rate, algorithm=algorithm))
                for links in BOTH_LINKS]

    def off(rate: float) -> str:
        return span([100 * (1 - path / star) for path, star in zip(
            values("rp", "LF", rate), values("conventional", "LF", rate))], "{:.0f}")
    apart = max(abs(basic - enhanced) for rate in (1000.0, 250.0) for basic, enhanced in zip(
        values("rp-rack", "BDF", rate), values("rp-rack", "EDF", rate)))
    path = span(values("rp-rack", "LF", 250.0), "{:.2f}")
    enhanced = span(values("conventional", "EDF", 250.0), "{:.2f}")
    return f"""The prototype said that plain RP gains little where racks are the bottleneck: under
        LF it takes {off(1000.0)} % off at 1 Gb/s and {off(250.0)} % at 250 Mb/s, since its path
        goes from rack to rack at random. It said that with rack-aware RP EDF wins nothing over
        BDF: the two are at most {apart:.2f} apart. Under LF and at 250 Mb/s rack-aware RP comes to
        {path}, conventional reads under EDF to {enhanced}."""


def of_racks(rows: Rows) -> str:
    rates = list(dict.fromkeys(row["mbit"] for row in rows))

    def value(scheme: str, algorithm: str, rate: float, links: str) -> float:
        return mean(find(rows, scheme=scheme, algorithm=algorithm, mbit=rate, links=links))

    def where(better: tuple[str, str], worse: tuple[str, str]) -> str:
        found = {links: [f"{rate:g}" for rate in rates if value(*better, rate, links)
                         < value(*worse, rate, links) - EQUAL] for links in BOTH_LINKS}
        return "; ".join(f"{listed(some) + ' Mb/s' if some else 'nowhere'} (links {links})"
                         for links, some in found.items())
    others = [scheme for scheme in beyond.SCHEMES if scheme not in ("conventional", *RACK_AWARE)]
    gain = span([100 * (1 - value(scheme, "LF", rate, links)
                        / value("conventional", "LF", rate, links))
                 for scheme in others for rate in rates for links in BOTH_LINKS], "{:.0f}")
    apart = max(abs(value(RACK_AWARE[0], algorithm, rate, links)
                    - value(RACK_AWARE[1], algorithm, rate, links))
                for algorithm in ALGORITHMS for rate in rates for links in BOTH_LINKS)
    named = listed([f"`{scheme}`" for scheme in others])
    stock = where(("rp-rack", "LF"), ("conventional", "EDF"))
    star, path = (where((scheme, "EDF"), (scheme, "BDF")) for scheme in ("conventional", "rp-rack"))
    return f"""`rp-rack` and `rp-weighted`, which knows racks' links as slow ones, cross each rack's
        link about once, and are at most {apart:.2f} apart. The others carry k blocks over racks'
        links: under LF {named} take {gain} % off. Stock Hadoop's LF with `rp-rack` is faster than
        EDF with conventional reads at {stock}. EDF is better than BDF by more than {EQUAL} with
        conventional reads at {star}; with `rp-rack` at {path}."""


def of_nics(rows: Rows) -> str:
    def value(scheme: str) -> str:
        return " and ".join(
            span([mean(find(rows, scheme=scheme, algorithm=algorithm, mbit=100.0, links=links))
                  for links in BOTH_LINKS], "{:.2f}") for algorithm in ("LF", "EDF"))

    def reading(scheme: str) -> float:
        return statistics.mean(average(rows, "degraded_read_s", scheme=scheme, algorithm="EDF",
                                       mbit=1000.0, links=links) for links in BOTH_LINKS)
    return f"""At 100 Mb/s, LF and EDF: conventional {value("conventional")}; `rp` {value("rp")};
        `rp-rack`, whose choice of helpers puts the work on fewer nodes, {value("rp-rack")}. At
        1 Gb/s a degraded read under EDF takes {reading("conventional"):.1f} s the conventional way,
        through the reader's own link, and {reading("rp"):.1f} s by `rp`; a block takes 1.0 s."""


def of_striped(rows: Rows) -> str:
    def three(rate: float, links: str) -> str:
        return " / ".join(runtime(rows, algorithm, scheme="conventional", mbit=rate, read="whole",
                                  links=links) for algorithm in ALGORITHMS)

    def moved(scheme: str, read: str) -> float:
        return beyond.gigabytes(rows, scheme=scheme, read=read, mbit=1000.0, links="held")
    share = 100 * average(rows, "degraded", read="whole", algorithm="LF") / beyond.SPLITS
    star, path, rack = (f"{moved(scheme, 'whole'):.0f}"
                        for scheme in ("conventional", "rp", "rp-rack"))
    five, one = (f"{100 * (1 - moved('rp-rack', read) / moved('conventional', read)):.0f}"
                 for read, _ in beyond.STRIPED_READS[1:])
    said = "; ".join(f"{three(1000.0, links)} at 1 Gb/s and {three(10000.0, links)} at 10 Gb/s "
                     f"(links {links})" for links in BOTH_LINKS)
    return f"""A whole split reads k nodes in any case. With a node lost {share:.0f} % of all splits
        have lost a share. The conventional way decodes it from what is read anyway and one share
        more; pipelines add to that: {star} GB over racks' links, {rack} by `rp-rack`, {path} by
        `rp`. No task is local. Whole splits, conventional, LF / BDF / EDF: {said}. EDF's rule of
        racks leaves slots empty where so many tasks are degraded. Of partial reads `rp-rack` moves
        {five} % less for five shares and {one} % less for one."""


def best_choices(rows: Rows, links: str, delay: float) -> list[int]:
    """In how many settings LF that reads, EDF that reads, and who waits, are as good as any."""
    count = [0, 0, 0]
    for scheme in ("conventional", "rp-rack"):
        for rate in (250.0, 1000.0):
            for recovery in beyond.RECOVERY_RATES:
                values = [mean(find(rows, links=links, scheme=scheme, mbit=rate, delay=delay,
                                    recovery_mb=recovery, algorithm=algorithm, waits=waits))
                          for algorithm, waits in (("LF", False), ("EDF", False), ("LF", True))]
                for number, value in enumerate(values):
                    count[number] += value <= min(values) + EQUAL
    return count


def of_waiting(rows: Rows) -> str:
    said = ". ".join(f"Links {links}: " + "; ".join(
        f"{delay:g} s: {', '.join(map(str, best_choices(rows, links, delay)))}"
        for delay in beyond.DELAYS) for links in BOTH_LINKS)
    return f"""In how many of the eight settings a choice is the best, or within {EQUAL} of it (LF
        that reads, EDF that reads, who waits), by the delay. {said}. A block that is read degraded
        by a task and rebuilt as well crosses the links twice."""


def of_thresholds(rows: Rows) -> str:
    def values(lost: str) -> str:
        found = [beyond.threshold_values(rows, links=links, scheme="rp-rack", lost=lost)
                 for links in BOTH_LINKS]
        return ", ".join(f"{name} {span([mean(some[i][1]) for some in found], '{:.2f}')}"
                         for i, (name, _) in enumerate(found[0]))
    return f"""EDF keeps a rack from a degraded task for as long as a conventional read takes, which
        with `rp-rack` is much longer than a read. That is a part of what EDF is behind BDF where a
        rack is lost: {values("rack")}. A node lost: {values("node")}."""


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
                      for algorithm in ALGORITHMS] for change, _ in beyond.SENSITIVITY[1:]}
    said = "; ".join(f"{change}: {span(values, '{:+.2f}')}" for change, values in moved.items())
    return f"""LF is behind BDF and EDF in {ahead} of {len(settings)} settings. EDF is at most
        {max(behind):.2f} behind BDF and up to {-min(behind):.2f} ahead. What each change does to
        runtimes by that without failure, which changes, too: {said}."""


def of_kinds_of_links(results: Mapping[str, Mapping[str, Any]]) -> str:
    codes, jobs, waits = (results[name]["rows"] for name in ("7a", "7f", "waiting"))
    wide = {"code": "(20,15)"}

    def both(said: Callable[[str], str]) -> str:
        return f"{said('held')} with links held and {said('shared')} with links shared"

    def later(links: str) -> str:
        each = [100 * Measure().of(jobs, links=links, job=job) for job in range(1, JOBS)]
        return f"{statistics.mean(each):.1f} %"

    def reading(links: str) -> str:
        return f"{average(codes, 'degraded_read_s', algorithm='LF', links=links, **wide):.0f} s"
    late, basic, enhanced = (
        both(lambda links, algorithm=algorithm: runtime(codes, algorithm, links=links, **wide))
        for algorithm in ALGORITHMS)
    waiting = both(lambda links: str(best_choices(waits, links, 60.0)[2]))
    return f"""Degraded reads of LF take {both(reading)} ((20,15), Figure 7(a)), where all of them
        end together instead of one after another; the runtime is {late}. BDF, whose reads overlap,
        comes to {basic}, EDF, which keeps them apart, to {enhanced}. Of ten jobs (Figure 7(f))
        those after the first gain {both(later)} by EDF. To wait for a recovery that begins after a
        minute is as good as any choice in {waiting}, of eight settings."""


NOTES: dict[str, Callable[[Rows], str]] = {
    "7b": of_blocks, "7d": of_failures, "7e": of_shuffles, "7f": of_jobs, "8abc": of_remote_tasks,
    "8d": of_bad_nodes, "assumptions": of_assumptions, "map-only": of_map_only, "racks": of_racks,
    "nics": of_nics, "striped": of_striped, "waiting": of_waiting, "threshold": of_thresholds,
    "sensitivity": of_sensitivity}
