#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of schemes in docs/schemes.md and the schemes that are built agree.

What the table names must exist and take the time that the table says; every scheme of the paper
must be in it. A scheme beyond the paper need not be, so that adding one changes no document: the
programs list it (`ecpipe schemes`).
"""

from __future__ import annotations

import argparse
import sys
import unittest
from pathlib import Path
from typing import Any, Sequence

import documented
from labkit import schemes

BIN_DIR = Path()
PAGE = Path(__file__).resolve().parents[2] / "docs" / "schemes.md"
OF_THE_PAPER = "§"  # how their source begins


def table(page: str) -> dict[str, str]:
    """The timeslots of each scheme of the table."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in documented.section(page, "Schemes").splitlines() if line.startswith("|")]
    assert rows[0][0] == "scheme" and rows[0][2] == "timeslots", rows[0]
    return {row[0].strip("`"): row[2] for row in rows[2:]}


def problems(page: str, registered: Sequence[dict[str, Any]]) -> list[str]:
    known = {scheme["scheme"]: scheme for scheme in registered}
    shown = table(page)
    shown.pop("auto", None)  # it takes the one of the others that is fastest
    return [*(f"{name} is no scheme" for name in shown if name not in known),
            *(f"{name} takes {known[name]['timeslots']}, not {said}"
              for name, said in shown.items()
              if name in known and said != known[name]["timeslots"]),
            *(f"{name} is missing" for name, scheme in known.items()
              if scheme["source"].startswith(OF_THE_PAPER) and name not in shown)]


class Schemes(unittest.TestCase):
    def test_the_table_agrees(self) -> None:
        self.assertEqual(problems(PAGE.read_text(), schemes.registered(BIN_DIR)), [])

    def test_what_does_not_agree_is_found(self) -> None:
        page = ("## Schemes\n\n| scheme | what | timeslots |\n|---|---|---|\n| `a` | x | 1 |\n"
                "| `b` | y | 2 |\n| `auto` | z | |\n")
        one = {"scheme": "a", "timeslots": "1", "source": "§3"}
        other = {"scheme": "b", "timeslots": "2", "source": "beyond the paper"}
        self.assertEqual(problems(page, [one, other]), [])
        self.assertEqual(problems(page, [one]), ["b is no scheme"])
        self.assertEqual(problems(page, [one, {**other, "timeslots": "3"}]), ["b takes 3, not 2"])
        self.assertEqual(problems(page, [one, other, {**one, "scheme": "c"}]), ["c is missing"])
        self.assertEqual(problems(page, [one, other, {**other, "scheme": "c"}]), [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin-dir", type=Path, required=True)
    arguments, rest = parser.parse_known_args()
    BIN_DIR = arguments.bin_dir.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
