#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/degraded.py with ECPipe's own planners: plans that are right, results that depend on seeds
only, errors that say what to do."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from degradedkit import advice, lasting, output, page, paper, scenarios
from degradedkit.placement import Cluster, Code
from degradedkit.planner import Planner, parse_streams
from degradedkit.reads import Block
from degradedkit.runs import Runs
from degradedkit.scenarios import Setting
from experiments.results import rounded
from labkit.process import LabError

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = REPOSITORY / "bench" / "degraded.py"
BIN_DIR = Path(os.environ.get("ECPIPE_BIN_DIR", REPOSITORY / "build" / "release" / "bin"))
SECONDS = 240.0
# RS(6, 4): two blocks in each of three racks of four nodes; block 0 is lost, node 11 reads.
CLUSTER = Cluster(nodes=12, racks=3, rack_rate=125e6)
STRIPE, CODE, LOST, READER, BLOCK = (0, 1, 4, 5, 8, 9), Code(6, 4), 0, 11, 128_000_000


class Plans(unittest.TestCase):
    def setUp(self) -> None:
        self.planner = self.enterContext(Planner(BIN_DIR))
        self.planner.describe(CLUSTER)

    def streams(self, scheme: str, reader: int = READER) -> list[tuple[int, int, int]]:
        return list(self.planner.streams(scheme, CODE, STRIPE, LOST, [5, 3, 1, 2, 4], reader,
                                         BLOCK))

    def test_each_scheme(self) -> None:
        """Bytes into the reader, and over all links, in blocks."""
        for scheme, into, total in (("conventional", 4, 4), ("ppr", 3, 4), ("rp", 1, 4),
                                    ("rp-rack", 1, 4), ("rp-weighted", 1, 4), ("rp-all", 1, 4)):
            streams = self.streams(scheme)
            with self.subTest(scheme):
                self.assertEqual(sum(count for _, _, count in streams), total * BLOCK)
                self.assertEqual(sum(count for _, to, count in streams if to == READER),
                                 into * BLOCK)
                self.assertLessEqual({node for stream in streams for node in stream[:2]},
                                     {*STRIPE[1:], READER})

    def test_the_star_takes_the_first_k(self) -> None:
        self.assertEqual(sorted(self.streams("conventional")),
                         [(node, READER, BLOCK) for node in (1, 4, 5, 9)])

    def test_the_rack_aware_path_crosses_each_rack_once(self) -> None:
        rack = CLUSTER.rack_of
        entered = Counter(rack(to) for sender, to, _ in self.streams("rp-rack")
                          if rack(sender) != rack(to))
        self.assertLessEqual(max(entered.values()), 1)

    def test_a_block_at_the_reader_does_not_travel(self) -> None:
        streams = self.streams("conventional", reader=9)
        self.assertEqual(sorted(streams), [(node, 9, BLOCK) for node in (1, 4, 5)])

    def test_patterns(self) -> None:
        self.assertEqual(self.planner.undecodable("rs(6,4)", 2), frozenset())
        self.assertEqual(len(self.planner.undecodable("rs(6,4)", 3)), 20)
        # 86 % of the 1820 patterns of four decode (Huang et al., ATC'12), and all smaller ones.
        self.assertEqual(self.planner.undecodable("lrc(12,2,2)", 3), frozenset())
        share = 1 - len(self.planner.undecodable("lrc(12,2,2)", 4)) / 1820
        self.assertAlmostEqual(share, 0.86, delta=0.005)

    def test_local_groups_are_the_codecs(self) -> None:
        """Blocks that a repair reads, of all patterns of at most two lost blocks and of every
        seventh of three, as lasting.py says to the chain."""
        self.planner.describe(Cluster(nodes=17, racks=1))
        code = next(code for code, _ in lasting.codes(self.planner) if code.groups)
        checked = 0
        for blocks in itertools.chain(itertools.combinations(range(16), 1),
                                      itertools.combinations(range(16), 2),
                                      list(itertools.combinations(range(16), 3))[::7]):
            pattern = sum(1 << block for block in blocks)
            survivors = [block for block in range(16) if block not in blocks]
            reads = min(len(parse_streams(self.planner.ask(
                f"plan conventional {code.name} 9 {block} {','.join(map(str, survivors))} "
                f"{','.join(map(str, range(16)))} 16"))) for block in blocks)
            self.assertEqual(reads, code.reads_of(pattern), blocks)
            checked += 1
        self.assertEqual(checked, 16 + 120 + 80)

    def test_mistakes(self) -> None:
        for question, answer in (("plan no-such rs(6,4) 9 0 1,2,3,4 0,1,2,3,4,5 9", "no-such"),
                                 ("plan rp rs(6,4) 9 0 1,2,3 0,1,2,3,4,5 9", "3"),
                                 ("plan rp rs(6,4) 9 0 1,x 0,1,2,3,4,5 9", "1,x"),
                                 ("plan rp rs(6,4) 9 0 1,2,3,4 0,1 9", "one node for each"),
                                 ("undecodable rs(30,20) 3", "too many"), ("", "neither")):
            with self.assertRaisesRegex(LabError, answer):
                self.planner.ask(question)
        self.planner.ask("undecodable rs(3,2) 1")  # it still answers

    def test_a_timeslot_is_a_result(self) -> None:
        """Alone, where nodes' links are the bottleneck: RP reads in one block's time, the
        conventional way in k, under each kind of links."""
        lost, stripes = frozenset({STRIPE[LOST]}), [STRIPE]
        for scheme, timeslots in (("rp", 1), ("rp-rack", 1), ("ppr", 3), ("conventional", 4)):
            for kind in scenarios.LINKS:
                setting = Setting(n=6, k=4, nodes=12, racks=3, rack_mbit=0, node_mbit=1000,
                                  scheme=scheme, links=kind)
                reads = scenarios.reads_of(setting, 1, stripes, lost, self.planner)
                links = scenarios.links_of(setting, reads.network.rates)
                self.planner.describe(setting.cluster())
                links.start(0.0, reads.degraded(Block(0, LOST), READER), 1)
                for _ in range(timeslots):
                    if done := links.ended(at := links.next_end()):
                        break
                self.assertEqual(done, [1], f"{scheme} {kind}")
                self.assertAlmostEqual(at, timeslots * 1.024, places=6)


class Results(unittest.TestCase):
    def write(self, figure: page.Figure, planner: Planner) -> dict[str, bytes]:
        with tempfile.TemporaryDirectory() as folder:
            output.write_figure(Path(folder), figure, Runs(planner), 2)
            return {file.name: file.read_bytes() for file in Path(folder).iterdir()
                    if file.suffix != ".png"}

    def test_the_same_seeds_give_the_same_files(self) -> None:
        figure = next(figure for figure in page.FIGURES if figure.name == "8d")
        with Planner(BIN_DIR) as planner, Planner(BIN_DIR) as other:
            first = self.write(figure, planner)
            self.assertEqual(set(first), {"8d.json", "8d.csv"})
            self.assertEqual(first, self.write(figure, other))
        data = json.loads(first["8d.json"])
        self.assertEqual(data["seeds"], [0, 1])
        self.assertEqual(data["parameters"]["heartbeat"], 3.0)
        self.assertEqual(data["rows"][0]["setting"]["slow_nodes"], 5)
        self.assertEqual(len(first["8d.csv"].splitlines()), 1 + 2 * len(data["rows"]))

    def test_every_figure_has_tables_of_its_rows(self) -> None:
        """With small jobs in place of each setting's; 180 blocks are whole stripes of each code."""
        results: dict[str, Any] = {}
        with Planner(BIN_DIR) as planner:
            runs = Runs(planner)
            for figure in page.FIGURES:
                rows = [runs.row(replace(cell.setting, blocks=180, reduces=4), algorithm, 1,
                                 **cell.names)
                        for cell in figure.cells for algorithm in cell.algorithms]
                results[figure.name] = {"rows": rows, "seeds": [0]}
        for figure in page.FIGURES:
            with self.subTest(figure.name):
                text = page.section(figure, results, "results")
                self.assertIn("| --- |", text)
                self.assertNotIn("not looked for", text)
                self.assertNotIn("nan", text)
                panels = figure.panels(results[figure.name]["rows"])
                self.assertTrue(panels)
                for panel in panels:
                    self.assertTrue(panel["groups"])
                    for series in panel["series"]:
                        drawn = series.get("boxes") or series.get("points") or series["dots"]
                        self.assertEqual(len(drawn), len(panel["groups"]))
                        self.assertNotIn(None, drawn, f"{figure.name}: {panel['title']}")


class CheckedIn(unittest.TestCase):
    RESULTS = REPOSITORY / "bench" / "results" / "degraded"

    def test_the_page_is_that_of_the_results(self) -> None:
        self.assertEqual(page.render(self.RESULTS, "results/degraded"),
                         (REPOSITORY / "bench" / "DEGRADED.md").read_text())

    def test_the_design_note_has_the_numbers_of_the_results(self) -> None:
        note = (REPOSITORY / "docs" / "design" / "014-degraded-first.md").read_text()
        self.assertEqual(advice.replaced(note, advice.lines(page.load_all(self.RESULTS))), note)
        self.assertIn("\n9. ", note)
        with self.assertRaisesRegex(LabError, "no lines"):
            advice.replaced("# 014\n", [])

    def test_the_papers_figures_have_all_seeds_and_ways(self) -> None:
        results = page.load_all(self.RESULTS)
        self.assertEqual(set(results), {*(figure.name for figure in page.FIGURES), lasting.NAME})
        for figure in paper.FIGURES:
            rows = results[figure.name]["rows"]
            self.assertEqual(results[figure.name]["seeds"], list(range(30)))
            self.assertEqual({row["links"] for row in rows}, set(paper.WAYS))
            self.assertEqual({len(row["normalized"]) for row in rows}, {30})

    def test_a_stored_run_comes_out_again(self) -> None:
        """One of each figure: the rows' own setting, by seed 0."""
        with Planner(BIN_DIR) as planner:
            runs = Runs(planner)
            for figure in page.FIGURES:
                row = page.load_all(self.RESULTS)[figure.name]["rows"][-1]
                again = runs.row(replace(Setting(), **row["setting"]), row["algorithm"], 1)
                for field in ("normalized", "runtime_s"):
                    self.assertEqual(rounded(again[field])[0], row[field][0], figure.name)


class Command(unittest.TestCase):
    def command(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, COMMAND, *map(str, arguments)], text=True,
                              capture_output=True, timeout=SECONDS, check=False)

    def test_a_setting_of_the_users_own(self) -> None:
        done = self.command("simulate", "--bin-dir", BIN_DIR, "--seeds", 1, "--set",
                            "scheme=conventional,rp-rack", "--set", "blocks=150")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()[1:]],
                         ["scheme", "conventional", "rp-rack"])

    def test_mistakes(self) -> None:
        for arguments, said in ((("--set", "colour=red"), "--set colour=red: there are n, k"),
                                (("--set", "links=loose"), "none of held, shared, circuits"),
                                (("--set", "n=many"), "many is no int"),
                                (("--set", "waits=perhaps"), "neither yes nor no"),
                                (("--set", "n=17"), "has no place in 4 racks"),
                                (("--set", "blocks=100"), "take a multiple of 15"),
                                (("--set", "scheme=no-such"), "no-such"),
                                (("--figures", "9z"), "no figure 9z; there are 7a")):
            done = self.command("simulate", "--bin-dir", BIN_DIR, "--seeds", 1, *arguments)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn(said, done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_without_the_program(self) -> None:
        done = self.command("simulate", "--bin-dir", "/nowhere", "--set", "n=20")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--target plan_bytes", done.stderr)

    def test_durability_inputs_are_the_labs(self) -> None:
        conventional, pipelined = lasting.schemes(REPOSITORY / "bench" / "results")
        self.assertAlmostEqual(conventional.timeslots(10), 10.0, delta=0.5)
        self.assertAlmostEqual(pipelined.timeslots(10), 1.0, delta=0.1)
        with self.assertRaisesRegex(LabError, "bench/lab.py all"):
            lasting.schemes(Path("/nowhere"))


if __name__ == "__main__":
    unittest.main()
