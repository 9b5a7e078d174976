#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of results: that it says what the rows say, and that the one that is checked in is made
of the results that are checked in. Also the pure parts below it: links, matrices, plots' data."""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "bench"))

from experiments import EXPERIMENTS, report, suite  # noqa: E402
from experiments.explain import UNEXPLAINED, misses, why  # noqa: E402
from experiments.matrix import BUILT_IN, rack_name, read_matrix  # noqa: E402
from experiments.node import rebuilt_mbit, room_for_buffers  # noqa: E402
from experiments.paper import FIGURES  # noqa: E402
from experiments.views import VIEWS, series_of  # noqa: E402
from experiments.whole_blocks import fair_rates, timeslots  # noqa: E402
from labkit.inventory import read_inventory  # noqa: E402
from labkit.link_counter import count  # noqa: E402
from labkit.links import HEADERS_FACTOR, Links  # noqa: E402
from labkit.process import LabError, run  # noqa: E402
from labkit.stripes import MIB  # noqa: E402
from labkit.timeline import CountedLink, busiest_use, use_of  # noqa: E402

BIN_DIR = REPOSITORY / "build" / "release" / "bin"
MACHINE = {"cpu": "a CPU", "cores": 2, "kernel": "6.1", "memory_bytes": 8 << 30}


def row(scheme: str, seconds: float, theory: float | None = None, **more: Any) -> dict[str, Any]:
    """Of Figure 8(a): a block of 16 MiB whose direct send takes 0.7 s."""
    fields = {
        "experiment": "slices", "scheme": scheme, "seconds": [seconds, seconds * 1.1, seconds],
        "parameters": {"slice_bytes": 32768, "block_bytes": 16 * MIB, "code": "rs(14,10)",
                       "transport": "tcp", "rate_mbit": 200.0},
        "median_s": seconds, "spread_s": seconds * 0.1, "ratio_to_direct": seconds / 0.7,
        "ratios": [seconds / 0.7] * 3, "cpu_s": 0.5, "cores_busy": 1.0, "bound_s": 0.67,
        "busiest_link_bytes": 16 * MIB, "total_bytes": 160 * MIB, "sha256_ok": True,
        "direct_s": 0.7, "direct_wire_s": 0.7}
    if theory is not None:
        fields |= {"theory_ratio": theory, "over_theory": seconds / 0.7 / theory - 1}
    return fields | more


class Page(unittest.TestCase):
    def page_of(self, rows: list[dict[str, Any]]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "8a.json").write_text(json.dumps({
                "machine": MACHINE, "commit": "0123456789ab", "commands": ["slices --runs 3"],
                "took_s": 12.0, "rows": rows}))
            report.write(Path(folder), Path(folder, "RESULTS.md"))
            return Path(folder, "RESULTS.md").read_text()

    def test_paper_ours_theory_and_why(self) -> None:
        page = self.page_of([
            row("direct", 0.7, 1.0), row("conventional", 7.0, 10.0), row("ppr", 2.8, 4.0),
            row("rp", 0.84, 1.018, cores_busy=1.9)])
        self.assertIn("| rp at 32 KiB, less than conventional | 89.5 % | 88.0 % |", page)
        self.assertIn("| rp at 32 KiB, against the direct send | +8.8 % | +20.0 % |", page)
        self.assertIn("| rp, 32 KiB | 0.840 | 0.840-0.924 | 1.200 | 1.018 | +17.9 % | 0.670 ", page)
        self.assertIn("- rp, 32 KiB, +17.9 %: 127 ms more with the cores at their limit: "
                      "1.9 of 2 were busy, 0.6 of them with the programs of this repair.", page)
        self.assertIn("![8a](./8a.png)", page)
        self.assertIn("lab.py slices --runs 3", page)
        self.assertIn("Revision 0123456789ab", page)

    def test_what_is_missing_is_named(self) -> None:
        page = self.page_of([row("direct", 0.7, 1.0)])
        self.assertIn("## Figure 8(h): rack awareness\n\nNot measured in these results.", page)
        self.assertIn("All rows are within 5 % of theory.", page)
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(LabError):
            report.write(Path(folder), Path(folder, "RESULTS.md"))

    def test_the_page_that_is_checked_in(self) -> None:
        """And a plot for each of its figures, and no other file. One that needs a JDK may lack."""
        results, page = REPOSITORY / "bench" / "results", REPOSITORY / "bench" / "RESULTS.md"
        self.assertEqual(report.render(results, "results"), page.read_text())
        figures = [figure for figure in FIGURES
                   if not figure.needs_jdk or (results / f"{figure.name}.json").exists()]
        names = [figure.name for figure in figures]
        plots = [*names, *(name for figure in figures for name, _, _ in figure.more_views)]
        self.assertEqual({file.name for file in results.iterdir() if file.is_file()},
                         {f"{name}.{kind}" for name in names for kind in ("json", "csv")}
                         | {f"{name}.png" for name in plots})


class Reasons(unittest.TestCase):
    """Each from what was measured; what they do not cover is not made up."""

    def test_none_is_needed_within_the_tolerance(self) -> None:
        self.assertFalse(misses(row("rp", 0.74, 1.018)))
        self.assertFalse(misses(row("pipe-s", 2.0)))

    def test_the_beginning(self) -> None:
        reasons = why(row("rp", 0.78, 1.018, start_s=0.06), 2)
        self.assertEqual(reasons, ["the beginning: one slice alone takes 60 ms"])

    def test_the_burst_of_the_direct_send(self) -> None:
        reasons = why(row("conventional", 7.5, 10.0, direct_wire_s=0.755), 2)
        self.assertEqual(len(reasons), 1)
        self.assertIn("theory multiplies that by 10.00: +495 ms", reasons[0])

    def test_what_held_the_direct_send_up(self) -> None:
        """Does not hold the scheme up, and theory multiplies the whole of it."""
        reasons = why(row("rp", 0.62, 1.018, direct_wire_s=0.6), 2)
        self.assertEqual(len(reasons), 1)
        self.assertIn("theory multiplies that by 1.02: -102 ms", reasons[0])

    def test_a_run_that_was_disturbed(self) -> None:
        disturbed = {**row("rp", 0.87, 1.018),
                     "seconds": [0.72, 1.02], "ratios": [1.03, 1.02 / 0.7]}
        self.assertEqual(why(disturbed, 2), [
            "1 of 2 runs are within 5 % of theory; of the others: 1020 ms after a direct send of "
            "700 ms (700 ms by the rate)"])

    def test_nothing_that_was_measured(self) -> None:
        self.assertIn(UNEXPLAINED, why(row("rp", 2.0, 1.018), 2)[-1])
        self.assertIn(UNEXPLAINED, why(row("rp", 0.3, 1.018), 2)[-1])

    def test_a_slice_that_passes_at_once(self) -> None:
        """Theory counts the rate for a slice that full token buckets let through."""
        reasons = why(row("rp", 0.75, 1.14, start_s=0.012, start_theory_s=0.052), 2)
        self.assertEqual(reasons, ["the beginning: one slice alone takes 12 ms (full token buckets "
                                   "pass it at once), theory counts 52 ms for it: -40 ms"])

    def test_the_busiest_link(self) -> None:
        """The pieces make the whole."""
        links = {"link_carried_s": 0.71, "link_before_s": 0.02, "link_after_s": 0.03,
                 "link_retransmitted": 7}
        reasons = why(row("rp", 0.8, 1.018, **links), 2)
        self.assertEqual(len(reasons), 1)
        self.assertIn("of 800 ms the busiest link was busy for 710 ms, by its bytes; it began "
                      "after 20 ms, ended 30 ms before the repair did, and rested for 40 ms in "
                      "between, with 1.0 cores busy and 7 segments sent again", reasons[0])

    def test_a_recovery(self) -> None:
        recovery = row("rp x4", 2.0, 1.0, of_bound=0.6, link_carried_s=1.5, link_before_s=0.1,
                       link_after_s=0.2, link_retransmitted=0)
        recovery["bound_s"] = 1.2
        reasons = why(recovery, 2)
        self.assertEqual(reasons[0], "the bound is 1200 ms, and packet headers +55 ms")
        self.assertIn("1.20 times what the bound gives it, +245 ms", reasons[1])
        self.assertIn("rested for 200 ms in between", reasons[2])
        forwards = {**recovery, "timeslots": 11.0, "slipped_least": 11.6, "slipped_most": 15.8}
        self.assertIn("11.0 timeslots when all paths go in step", why(forwards, 2)[0])


class Theory(unittest.TestCase):
    def plan(self, *lanes: list[tuple[str, list[int]]], slices: int = 10) -> dict[str, Any]:
        """Lanes of (node, hops that it takes from); the slices go to the lanes in turn."""
        return {"bytes": 1_000_000, "slice_bytes": 1_000_000 // slices, "slice_count": slices,
                "lanes": [{"slices": [{"first": i, "count": slices // len(lanes),
                                       "stride": len(lanes)}],
                           "hops": [{"node": node, "inputs": [
                               {"from_hop": hop, "rows": [0]} for hop in inputs]}
                               for node, inputs in lane]} for i, lane in enumerate(lanes)]}

    def test_a_path_and_a_star(self) -> None:
        links = Links(8.0)  # a megabyte a second
        path = self.plan([("a", []), ("b", [0]), ("c", [1]), ("requestor:x", [2])])
        self.assertAlmostEqual(links.plan_seconds(path, "r"), 1 + 2 / 10)
        star = self.plan([("a", []), ("b", []), ("c", []), ("requestor:x", [0, 1, 2])])
        self.assertAlmostEqual(links.plan_seconds(star, "r"), 3.0)
        self.assertIsNone(Links().plan_seconds(star, "r"))

    def test_what_racks_share(self) -> None:
        links = Links(80.0, racks={"a": "/1", "b": "/1", "r": "/2"}, rack_mbit=8.0)
        star = self.plan([("a", []), ("b", []), ("requestor:x", [0, 1])])
        self.assertAlmostEqual(links.plan_seconds(star, "r"), 2.0)
        self.assertAlmostEqual(links.bound_seconds(1_000_000, "r", ["a", "b"]), 1.0)

    def test_pairs_and_lanes(self) -> None:
        links = Links(pair_mbit={("a", "r"): 4.0, ("b", "r"): 8.0, ("a", "b"): 80.0,
                                 ("b", "a"): 80.0})
        ring = self.plan([("a", []), ("b", [0]), ("requestor:x", [1])],
                         [("b", []), ("a", [0]), ("requestor:x", [1])])
        self.assertAlmostEqual(links.plan_seconds(ring, "r"), 1.0, delta=0.02)
        self.assertAlmostEqual(links.bound_seconds(1_000_000, "r", ["a", "b"]), 8 / 12)

    def test_what_uplinks_can_rebuild(self) -> None:
        held = [13 / 15] * 15
        self.assertAlmostEqual(rebuilt_mbit([50.0] * 15, held, 10), 75.0)
        uneven = [50.0] * 7 + [25.0] * 8
        rate = rebuilt_mbit(uneven, held, 10)
        self.assertAlmostEqual(sum(min(up, rate * 13 / 15) for up in uneven), 10 * rate)
        self.assertLess(rate, sum(uneven) / 10)
        self.assertAlmostEqual(rebuilt_mbit([50.0] * 15, [1.0] * 13 + [0.0] * 2, 10), 65.0)
        self.assertAlmostEqual(rebuilt_mbit([10.0, 10.0, 5.0], [2 / 3] * 3, 2), 7.5)

    def test_table_1(self) -> None:
        for name in BUILT_IN:
            matrix = read_matrix(name)
            self.assertEqual((len(matrix.regions), len(matrix.mbit)), (4, 16))
        self.assertEqual(read_matrix("asia").mbit["Seoul", "Tokyo"], 183.2)
        self.assertEqual(read_matrix("north-america").mbit["Oregon", "Canada"], 50.2)


class WholeBlocks(unittest.TestCase):
    NODES = [f"node-{i}" for i in range(1, 9)]

    def test_one_path_takes_a_timeslot_a_hop(self) -> None:
        self.assertAlmostEqual(timeslots([self.NODES], 4, ["spare"], 8), 4)

    def test_the_requestors_link_takes_one_block_after_the_other(self) -> None:
        """Paths without a node in common but for the requestor: both last hops share its link."""
        self.assertAlmostEqual(timeslots([["a", "b"], ["c", "d"]], 2, ["spare"], 8), 3)

    def test_as_many_at_once_as_a_node_has_room_for(self) -> None:
        self.assertAlmostEqual(timeslots([["a", "b"], ["c", "d"]], 2, ["spare"], 1), 4)
        with self.assertRaises(LabError):
            timeslots([["a", "b"]], 2, ["a"], 8)

    def test_fair_rates(self) -> None:
        up, down, other = ("up", "a"), ("down", "b"), ("down", "c")
        self.assertEqual(fair_rates([(up, down), (up, other), (("up", "d"), other)]),
                         [0.5, 0.5, 0.5])
        self.assertEqual(fair_rates([(up, down)] * 4), [0.25] * 4)

    def test_slipping_is_repeatable(self) -> None:
        given = ([self.NODES] * 3, 4, ["spare"], 8)
        self.assertEqual(timeslots(*given, 0.3, 1), timeslots(*given, 0.3, 1))
        self.assertNotEqual(timeslots(*given, 0.3, 1), timeslots(*given, 0.3, 2))


class LinkUses(unittest.TestCase):
    """A link of 80 Mb/s, counted every 10 ms: 4 packets of 64 KiB need 28 ms."""

    MBIT = 80.0
    STEP = 80e6 / 8 / HEADERS_FACTOR / 100  # bytes that it carries in 10 ms

    def counts(self, busy: str) -> tuple[list[float], list[int]]:
        """For each step whether the link was busy."""
        carried, unix_s = [0], [0.0]
        for number, step in enumerate(busy, 1):
            unix_s.append(number / 100)
            carried.append(carried[-1] + round(self.STEP) * (step == "x"))
        return unix_s, carried

    def test_before_between_and_after(self) -> None:
        use = use_of(*self.counts("." * 20 + "x" * 30 + "." * 10 + "x" * 30 + "." * 20), self.MBIT)
        assert use is not None
        self.assertAlmostEqual(use.carried_s, 0.6, delta=0.001)
        self.assertAlmostEqual(use.first_unix_s, 0.2, delta=0.03)
        self.assertAlmostEqual(use.last_unix_s, 0.9, delta=0.03)

    def test_never_at_work(self) -> None:
        self.assertIsNone(use_of(*self.counts("....x...." * 9), self.MBIT))

    def test_the_busiest_by_its_rate(self) -> None:
        unix_s, slow = self.counts("x" * 50)
        counts = {"unix_s": unix_s, "interfaces": {
            "a": {"received": slow, "sent": slow}, "b": {"received": slow, "sent": slow}}}
        use = busiest_use(counts, [CountedLink("a", "sent", self.MBIT * 2),
                                   CountedLink("b", "received", self.MBIT)])
        assert use is not None
        self.assertAlmostEqual(use.carried_s, 0.5, delta=0.001)
        self.assertIsNone(busiest_use(counts, []))

    def test_proc_net_dev(self) -> None:
        text = ("Inter-|   Receive |  Transmit\n face |bytes packets |bytes packets\n"
                "    lo: 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n"
                "node-1:12 1 0 0 0 0 0 0 34 1 0 0 0 0 0 0\n")
        self.assertEqual(count(text), {"lo": (1, 3), "node-1": (12, 34)})


class Suite(unittest.TestCase):
    def test_every_command_is_one(self) -> None:
        for figure in FIGURES:
            for words in (*figure.quick, *figure.full):
                suite.parse_command(words)
        self.assertEqual(set(VIEWS), set(EXPERIMENTS))

    def test_rows_of_a_figure_whose_later_command_fails_are_kept(self) -> None:
        figure = next(figure for figure in FIGURES if len(figure.quick) > 1)
        rows = [row("rp", 0.8, 1.0)]
        experiment = mock.Mock(**{"run.side_effect": [rows, LabError("a node is gone")]})
        with tempfile.TemporaryDirectory() as name, \
                mock.patch.object(suite.plots, "check_available"), \
                mock.patch.object(suite, "parse_command"), \
                mock.patch.dict(EXPERIMENTS, {figure.quick[0][0]: experiment}):
            folder = Path(name)
            (folder / f"{figure.name}.json").write_text("of an earlier run")
            with self.assertRaisesRegex(LabError, "a node is gone"):
                suite.run(argparse.Namespace(figures=figure.name, out=folder, quick=True),
                          mock.Mock(), REPOSITORY, lambda: None)
            kept = json.loads((folder / f"{figure.name}.partial.json").read_text())
            self.assertEqual([each["scheme"] for each in kept["rows"]], ["rp"])
            self.assertEqual(kept["commands"], [" ".join(figure.quick[0])])
            self.assertEqual((folder / f"{figure.name}.json").read_text(), "of an earlier run")

    def test_helpers_have_room_for_whole_blocks_on_all_streams(self) -> None:
        def room(policy: str, **options: int) -> Any:
            return room_for_buffers(argparse.Namespace(**options), [(policy, "1")])
        self.assertIsNone(room("rp-all", streams=32, block_mib=64))
        self.assertEqual(room("pipe-rep", streams=0, block_mib=1),
                         {"limits": {"max_buffer_bytes": "512MiB"}})
        mib = int(room("pipe-rep", streams=8, block_mib=64)["limits"]["max_buffer_bytes"][:-3])
        self.assertGreaterEqual(mib * 3 / 4, 8 * 2 * 64)

    def test_rows_without_the_parameter_are_drawn_across(self) -> None:
        rows = [row("direct", 0.7, 1.0), row("rp", 0.8, 1.0), row("rp", 0.9, 1.0)]
        del rows[0]["parameters"]["slice_bytes"]
        rows[2]["parameters"]["slice_bytes"] = 4096
        picture = series_of(rows, VIEWS["slices"])
        self.assertEqual(picture["ticks"], ["4", "32"])
        self.assertEqual([point["x"] for line in picture["series"] for point in line["points"]],
                         [None, "32", "4"])


class Ec2(unittest.TestCase):
    """deploy/ec2, as far as it can be checked without an account."""

    FOLDER = REPOSITORY / "deploy" / "ec2"

    def describe(self, folder: Path, spare: int) -> list[str]:
        """What `aws ec2 describe-instances` would print, a file a region; `spare` nodes too many in
        one of them."""
        files = []
        with (self.FOLDER / "instances.csv").open(newline="") as table:
            for number, line in enumerate(csv.DictReader(table)):
                count = int(line["count"]) + (spare if number == 0 else 0)
                file = folder / f"{number}.json"
                file.write_text(json.dumps({"Reservations": [{"Instances": [{
                    "PublicIpAddress": f"198.51.{number}.{i}",
                    "PrivateIpAddress": f"10.{number}.0.{i}",
                    "Placement": {"AvailabilityZone": line["aws_region"] + "b"},
                    "Tags": [{"Key": "ecpipe", "Value": line["role"]}]} for i in range(count)]}]}))
                files.append(str(file))
        return files

    def test_the_inventory_of_the_papers_clusters(self) -> None:
        for name in BUILT_IN:
            with tempfile.TemporaryDirectory() as folder:
                words = [sys.executable, self.FOLDER / "make_inventory.py", name]
                done = run([*words, *self.describe(Path(folder), 0)])
                hosts = Path(folder, "hosts.toml")
                hosts.write_text(done.stdout)
                inventory = read_inventory(hosts)
                self.assertEqual(run([*words, *self.describe(Path(folder), 1)],
                                     check=False).returncode, int(name == "north-america"))
            self.assertEqual(len(inventory.nodes), 16)
            racks = [rack_name(region) for region in read_matrix(name).regions]
            self.assertEqual([machine.rack for machine in inventory.requestors], racks)
            self.assertEqual([machine.rack for machine in inventory.nodes[::4]], racks)

    def test_user_data_installs_what_the_programs_need(self) -> None:
        """Asks the packages of this machine, a Debian 12 on x86-64 as the instances are. A program
        that lacks a library says so on the first of many machines, an hour into it."""
        script = (self.FOLDER / "user-data.sh").read_text()
        listed = script.split("--no-install-recommends \\\n")[1].split("\nupdate-rc.d")[0].split()
        needed = {library for name in ("ecpipe", "ecpipe-coordinator", "ecpipe-helper")
                  for library in re.findall(r"\(NEEDED\).*\[([^\]]+)\]", run(
                      ["readelf", "-d", BIN_DIR / name]).stdout)}
        of_every_debian = {"ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libgcc_s.so.1"}
        self.assertLess(of_every_debian, needed)
        for library in needed - of_every_debian:
            owners = run(["dpkg", "-S", f"*/{library}"]).stdout.splitlines()
            self.assertTrue({owner.split(":")[0] for owner in owners} & set(listed), owners)
        self.assertIn("libhiredis0.14", listed)  # loaded, not linked

    def test_an_inventory_that_is_not_one(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "hosts.toml")
            for text in ("[coordinator]\nssh = 'a'\n", "[node]\nnode = 1\n", "x = [", ""):
                file.write_text(text)
                with self.assertRaises(LabError):
                    read_inventory(file)


if __name__ == "__main__":
    if "--bin-dir" in sys.argv:  # as all lab tests are given it
        at = sys.argv.index("--bin-dir")
        BIN_DIR = Path(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    unittest.main(verbosity=2)
