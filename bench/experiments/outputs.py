# SPDX-License-Identifier: Apache-2.0
"""Where results of an experiment go: the options for it, and the writing."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Sequence

from . import plots, results


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="OUT",
                        help="write the results to this JSON file")


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    add_json_argument(parser)
    parser.add_argument("--csv", type=Path, metavar="OUT",
                        help="write one line for each sample to this CSV file")
    parser.add_argument("--png", type=Path, metavar="OUT", help="draw a plot into this PNG file")


def check_output_arguments(arguments: argparse.Namespace) -> None:
    """Before anything is measured."""
    if arguments.png:
        plots.check_available()


def write_outputs(arguments: argparse.Namespace, rows: Sequence[results.Row],
                  repository: Path) -> None:
    if arguments.json:
        results.write_json(arguments.json, rows, repository)
    if arguments.csv:
        results.write_csv(arguments.csv, rows)
    if arguments.png:
        plots.draw(arguments.png, rows)
