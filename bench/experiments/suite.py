# SPDX-License-Identifier: Apache-2.0
"""The command `all`: measures every figure of the paper, and writes NAME.json, .csv and .png for
each into a folder. Until all commands of a figure have ended, NAME.partial.json has the rows of
those that have."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Callable

from labkit.process import LabError
from . import EXPERIMENTS, plots, results
from .figures import Figure
from .paper import FIGURES
from .testbed import Testbed

NAME = "all"


def add_arguments(parser: argparse.ArgumentParser, out: Path) -> None:
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--quick", action="store_true",
                      help="small blocks and few runs; 69 minutes on two cores, 50 of them for the "
                           "figures of trees")
    size.add_argument("--full", action="store_true",
                      help="the paper's block sizes in most figures, and up to ten runs; it takes "
                           "ten and a half hours without the figures of trees")
    parser.add_argument("--figures", help="figures to measure, separated by commas, of "
                        + ", ".join(figure.name for figure in FIGURES) + " (default: all "
                        "that need no JDK and no Maven)")
    parser.add_argument("--out", type=Path, default=out,
                        help="directory for the results (default: %(default)s)")


def chosen(arguments: argparse.Namespace) -> list[Figure]:
    names = (arguments.figures.split(",") if arguments.figures
             else [figure.name for figure in FIGURES if not figure.needs_jdk])
    if unknown := set(names) - {figure.name for figure in FIGURES}:
        raise LabError(f"--figures: there is no figure {', '.join(sorted(unknown))}; known are "
                       f"{', '.join(figure.name for figure in FIGURES)}")
    return [figure for figure in FIGURES if figure.name in names]


def parse_command(words: tuple[str, ...]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    EXPERIMENTS[words[0]].add_arguments(parser)
    return parser.parse_args(words[1:])


def run(arguments: argparse.Namespace, testbed: Testbed, repository: Path,
        after_each: Callable[[], None]) -> None:
    """What has been measured is written before the next command or figure begins."""
    plots.check_available()
    arguments.out.mkdir(parents=True, exist_ok=True)
    whole = time.monotonic()
    for figure in chosen(arguments):
        begin, rows = time.monotonic(), []
        print(f"\n==== {figure.title}", flush=True)
        commands: list[str] = []
        partial = arguments.out / f"{figure.name}.partial.json"
        for words in figure.quick if arguments.quick else figure.full:
            commands.append(" ".join(words))
            print(f"lab.py {commands[-1]}", flush=True)
            rows += EXPERIMENTS[words[0]].run(parse_command(words), testbed)
            results.write_json(partial, rows, repository, {
                "commands": commands, "took_s": round(time.monotonic() - begin, 1)})
        partial.replace(arguments.out / f"{figure.name}.json")
        seconds = time.monotonic() - begin
        results.print_rows(rows)
        results.write_csv(arguments.out / f"{figure.name}.csv", rows)
        draw(figure, rows, arguments.out)
        after_each()
        print(f"==== {figure.name}: {seconds:.0f} s, {time.monotonic() - whole:.0f} s in all",
              flush=True)


def draw(figure: Figure, rows: list[results.Row], folder: Path) -> None:
    plots.draw(folder / f"{figure.name}.png", rows, figure.title, figure.main_view())
    for name, title, view in figure.more_views:
        plots.draw(folder / f"{name}.png", rows, title, view)
