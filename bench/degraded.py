#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MapReduce over erasure-coded blocks while nodes are lost: who should read lost blocks, when, and
by which scheme. Analysis and simulation after Li, Lee and Hu, "Degraded-First Scheduling for
MapReduce in Erasure-Coded Storage Clusters" (DSN'14), with degraded reads from ECPipe's own
planners. Needs no root, and of a release build the program plan_bytes.

    bench/degraded.py analysis                       Figure 5
    bench/degraded.py simulate --figures 7a,8d       figures of the paper, and new ones
    bench/degraded.py simulate --set scheme=rp,rp-rack --set rack_mbit=250 --seeds 10
                                                     a setting of your own, to standard output
    bench/degraded.py durability                     how long stripes last
    bench/degraded.py all                            all of it, and the page
    bench/degraded.py report                         the page from bench/results/degraded/
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any, Mapping

from degradedkit import advice, analysis, lasting, output, page, pictures
from degradedkit.figure import PAPER_SEEDS
from degradedkit.planner import Planner
from degradedkit.runs import Runs
from degradedkit.settings import parse_changes, print_settings
from labkit.command_line import add_bin_dir_argument, print_error
from labkit.process import LabError, interruptible

REPOSITORY = Path(__file__).resolve().parents[1]
LAB_RESULTS = REPOSITORY / "bench" / "results"
RESULTS = LAB_RESULTS / "degraded"
NOTE = REPOSITORY / "docs" / "design" / "014-degraded-first.md"
PAGE = REPOSITORY / "bench" / "DEGRADED.md"


def parse_arguments() -> argparse.Namespace:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--out", type=Path, default=RESULTS,
                        help="directory of the results (default: bench/results/degraded)")
    with_planner = argparse.ArgumentParser(add_help=False)
    add_bin_dir_argument(with_planner, REPOSITORY)
    seeded = argparse.ArgumentParser(add_help=False)
    seeded.add_argument("--seeds", type=int, default=PAPER_SEEDS,
                        help="clusters for each setting, at most; new figures have fewer "
                             "(default: %(default)s)")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("analysis", parents=[common], help="Figure 5, by three formulas")
    simulate = commands.add_parser("simulate", parents=[common, with_planner, seeded],
                                   help="Figures 7 and 8, new ones, or a setting of your own")
    simulate.add_argument("--figures", default="", metavar="NAMES",
                          help="comma-separated, of "
                               f"{', '.join(figure.name for figure in page.FIGURES)} "
                               "(default: all)")
    simulate.add_argument("--set", action="append", default=[], dest="changes",
                          metavar="NAME=VALUE[,VALUE...]",
                          help="a field of degradedkit/scenarios.py's Setting; prints LF, BDF and "
                               "EDF of each combination")
    commands.add_parser("durability", parents=[common, with_planner],
                        help="how long stripes last, by a Markov chain")
    commands.add_parser("all", parents=[common, with_planner, seeded],
                        help="everything, and the page")
    commands.add_parser("report", parents=[common], help="the page, its pictures and the numbers "
                                                         "of the design note, from results")
    return parser.parse_args()


def chosen(names: str) -> list[page.Figure]:
    by_name = {figure.name: figure for figure in page.FIGURES}
    wanted = [name for name in names.split(",") if name] or list(by_name)
    if unknown := [name for name in wanted if name not in by_name]:
        raise LabError(f"no figure {', '.join(unknown)}; there are {', '.join(by_name)}")
    return [by_name[name] for name in wanted]


def write_report(out: Path) -> None:
    """The page of results elsewhere is beside them. The design note is that of the results which
    are checked in."""
    target = PAGE if out == RESULTS else out / PAGE.name
    page.write(out, target, os.path.relpath(out, target.parent))
    if out == RESULTS:
        advice.write(page.load_all(out), NOTE)


def redraw(out: Path) -> None:
    for figure in page.FIGURES:
        if data := page.load(out, figure.name):
            output.draw_figure(out, figure, data["rows"])
    draw_analysis(out)
    if data := page.load(out, lasting.NAME):
        draw_durability(out, data)


def write_analysis(out: Path) -> None:
    output.write_rows(out, analysis.NAME, {"seeds": [], "rows": analysis.rows()})
    draw_analysis(out)


def draw_analysis(out: Path) -> None:
    pictures.draw(out / f"{analysis.NAME}.png", analysis.TITLE, analysis.panels())


def write_durability(out: Path, planner: Planner) -> None:
    data = lasting.results(planner, LAB_RESULTS)
    output.write_rows(out, lasting.NAME, data)
    draw_durability(out, data)


def draw_durability(out: Path, data: Mapping[str, Any]) -> None:
    pictures.draw(out / f"{lasting.NAME}.png", lasting.TITLE, lasting.panels(data),
                  lasting.COLUMNS)


def write_figures(arguments: argparse.Namespace, planner: Planner, names: str) -> None:
    runs = Runs(planner)
    for figure in chosen(names):
        begun, before = cpu_seconds(planner), runs.done
        output.write_figure(arguments.out, figure, runs, arguments.seeds)
        spent = cpu_seconds(planner) - begun
        output.write_cost(arguments.out, figure.name, spent, runs.done - before)
        print(f"{figure.name}: {spent:.1f} s of CPU, {runs.done - before} runs", flush=True)


def cpu_seconds(planner: Planner) -> float:
    """Of this process, its planner, and of pictures that are drawn."""
    return sum(os.times()[:4]) + planner.cpu_seconds()


def run_command(arguments: argparse.Namespace) -> None:
    if arguments.command == "simulate" and arguments.changes:
        with Planner(arguments.bin_dir) as planner:
            print_settings(parse_changes(arguments.changes), planner, arguments.seeds)
        return
    pictures.check_available()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.command in ("analysis", "all"):
        write_analysis(arguments.out)
        print("\n".join(analysis.page_lines()))
    if arguments.command in ("simulate", "durability", "all"):
        with Planner(arguments.bin_dir) as planner:
            if arguments.command != "simulate":
                begun = cpu_seconds(planner)
                write_durability(arguments.out, planner)
                output.write_cost(arguments.out, lasting.NAME, cpu_seconds(planner) - begun, 0)
            if arguments.command != "durability":
                write_figures(arguments, planner, getattr(arguments, "figures", ""))
    if arguments.command == "report":
        redraw(arguments.out)
    if arguments.command in ("all", "report"):
        write_report(arguments.out)


def main() -> int:
    arguments = parse_arguments()
    try:
        with interruptible():
            run_command(arguments)
    except LabError as error:
        print_error("degraded.py", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
