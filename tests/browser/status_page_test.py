#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The status page in a headless Chromium: of live clusters in each state, and of made-up answers.

    status_page_test.py --bin-dir DIR [--pictures FOLDER] [CLASS[.TEST]]

--pictures keeps pictures of each state: desktop and phone, light and dark.
"""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "cluster"))

import answers  # noqa: E402
import case  # noqa: E402
from answers import HOSTILE, Stand  # noqa: E402
from case import HANG, ClusterCase  # noqa: E402
from chromium import DESKTOP, PHONE, Chromium, Page, Unavailable  # noqa: E402
from labkit.cluster import Cluster  # noqa: E402
from labkit.process import free_port, wait_until  # noqa: E402

SKIPPED = 77
WEB = {"web": {"listen": "127.0.0.1:0"}}
PICTURES: Path | None = None
browser: Chromium

# What everybody can use: a table's heads say what they head, what can be pressed and each drawing
# has a name, nothing has a script or a style of its own.
FLAWS = """[
  ...[...document.querySelectorAll('th')].filter(th => !th.scope).map(() => 'th without scope'),
  ...[...document.querySelectorAll('summary, a, h1, h2, h3')]
      .filter(e => e.textContent.trim() === '').map(e => 'nameless ' + e.nodeName),
  ...[...document.querySelectorAll('svg[role=img]')]
      .filter(e => !e.getAttribute('aria-label')).map(() => 'nameless drawing'),
  ...[...document.querySelectorAll('main [style], main [onclick], main script, main img')]
      .map(e => 'markup ' + e.outerHTML),
  ...(document.documentElement.scrollWidth > innerWidth ? ['wider than the screen'] : []),
]"""


class PageCase(unittest.TestCase):
    page: Page

    def shows(self, state: str) -> None:
        self.page.wait_for(f"document.querySelector('#verdict .state')?.dataset.state === "
                           f"'{state}'", f"the state {state}")

    def says(self, selector: str, words: str) -> None:
        wait_until(lambda: words in self.page.text(selector), HANG,
                   f"{words!r} in {self.page.text(selector)!r}")

    def is_sound(self, name: str, place: str = "body") -> None:
        """Nothing is wrong with it on any screen. Keeps pictures of `place` if they are wanted."""
        for size, screen in ((PHONE, "phone"), (DESKTOP, "desktop")):
            for scheme in ("light", "dark"):
                self.page.look(size, scheme)
                self.assertEqual(self.page.evaluate(FLAWS), [], f"{name} on a {screen}")
                if PICTURES:
                    self.page.evaluate(f"document.querySelector('{place}').scrollIntoView()")
                    self.page.picture(PICTURES / f"{name}-{screen}-{scheme}.png")
        self.page.look(DESKTOP)
        self.assertEqual(self.page.complaints(), [])


class WithoutNodes(PageCase):
    def test_empty(self) -> None:
        with tempfile.TemporaryDirectory() as work:
            with Cluster(case.BIN_DIR, Path(work), 0, coordinator_settings=WEB,
                         logs_stay=False) as cluster:
                self.page = browser.open(f"http://{cluster.coordinator.ready['web']}/")
                self.shows("empty")
                self.says("#nodes", "No helper has registered")
                self.is_sound("empty")


class Live(PageCase, ClusterCase):
    nodes = 8
    block_bytes = 8 << 20
    file_bytes = 4 * block_bytes
    coordinator_settings = {
        "timeouts": {"dead_after_seconds": 5.0}, "recovery": {"first_pause_seconds": 0.1}}

    @classmethod
    def setUpClass(cls) -> None:
        # Not one that the system chooses: while the coordinator is away a connection might have it.
        cls.coordinator_settings = {**cls.coordinator_settings,
                                    "web": {"listen": f"127.0.0.1:{free_port()}"}}
        super().setUpClass()

    def setUp(self) -> None:
        self.page = browser.open(f"http://{self.cluster.coordinator.ready['web']}/")
        self.shows("healthy")

    def kill(self, *nodes: str) -> None:
        for node in nodes:
            self.addCleanup(self.cluster.helpers[node].restart)
            self.cluster.helpers[node].kill()
        wait_until(lambda: all(self.cluster.node_status()[node]["state"] == "dead"
                               for node in nodes), HANG, f"death of {nodes}")

    def recover(self, node: str, delay: int) -> None:
        number = self.cluster.cli_json("recover-node", node, "--delay", str(delay),
                                       "--detach")["recovery_id"]
        self.addCleanup(self.cluster.cli, "recovery", "cancel", str(number), check=False)

    def test_healthy(self) -> None:
        for node in self.cluster.node_ids:
            self.says("#nodes", node)
        self.says("#overview", "nothing that is known")
        self.says("#queue", "No block waits.")
        self.is_sound("healthy")

    def test_recovering(self) -> None:
        node = self.block(0, 0)["node"]
        self.kill(node)
        self.shows("degraded")
        self.says("#overview", "1 dead node that no recovery rebuilds")
        self.recover(node, 600)
        self.shows("repairing")
        self.says("#recoveries", f"of {node}: running")
        self.says("#recoveries", "unless the node comes back")
        self.says("#queue", self.block(0, 0)["block_id"])
        self.says("#queue", "1 to spare")
        self.is_sound("recovering")

    def test_stuck(self) -> None:
        dead = [self.block(0, index)["node"] for index in range(3)]
        self.kill(*dead)
        self.recover(dead[0], 0)
        self.shows("stuck")
        self.says("#overview", "too few survivors")
        self.says("#queue", "too few")
        self.is_sound("stuck")

    def test_throttled(self) -> None:
        """A repair that its nodes' limit slows down, with its pipeline."""
        nodes = ",".join(self.cluster.node_ids)
        self.cluster.cli("limits", "set", "--node", nodes, "--repair-mbit", "1")
        self.addCleanup(self.cluster.cli, "limits", "reset", "--node", nodes)
        wait_until(lambda: all(node["repair_mbit"] == 1 for node
                               in self.cluster.cli_json("limits")["nodes"]), HANG, "the limits")
        reader = self.cluster.requestor.spawn(self.cluster.command(
            "-q", "repair", self.block(0, 0)["block_id"], "-o", self.work / "slow",
            "--scheme", "rp"), self.work / "reader.log")
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        self.shows("throttled")
        self.says("#repairs", "as much as its limit allows")
        self.says("#repairs", "at its limit")
        self.page.wait_for("document.querySelectorAll('#repairs .graph .node').length === 5",
                           "four helpers and a requestor")
        self.page.wait_for("document.querySelectorAll('#repairs .graph .held').length >= 2",
                           "the mark at what holds it back")
        self.says("#repairs table", "kB/s")
        self.is_sound("throttled")
        self.is_sound("throttled-repairs", "#repairs")

    def test_coordinator_gone(self) -> None:
        self.cluster.coordinator.kill()
        self.shows("lost")
        self.says("#verdict", "The coordinator cannot be reached.")
        self.says("#nodes", "node-1")  # what was known stays
        self.assertIn("out of date", self.page.evaluate("document.title"))
        self.is_sound("gone")
        self.cluster.coordinator.restart()
        self.cluster.wait_live(self.cluster.node_ids)
        self.shows("healthy")


class MadeUp(PageCase):
    """The coordinator's own files, beside answers of a test."""

    @classmethod
    def setUpClass(cls) -> None:
        work = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cluster = cls.enterClassContext(
            Cluster(case.BIN_DIR, work, 0, coordinator_settings=WEB, logs_stay=False))
        cls.coordinator = cluster.coordinator.ready["web"]

    def setUp(self) -> None:
        self.stand = self.enterContext(Stand(self.coordinator))

    def open(self, *told: tuple[int, answers.Json | str]) -> None:
        self.stand.answers = list(told)
        self.page = browser.open(self.stand.url)

    def press_on(self, selector: str) -> None:
        self.page.evaluate(f"document.querySelector({selector!r}).focus()")
        self.page.press("Enter", 13)

    def test_500_nodes(self) -> None:
        self.open((200, answers.large()))
        self.shows("repairing")
        self.says("#overview", "769 blocks to rebuild")
        self.says("#overview", "all done in 11 min 33 s")
        self.says("#overview", "the link node-230 → node-311")
        # Those that need somebody stand first, the racks are folded, the worst one above.
        self.says("#nodes table", "node-33")
        self.assertIn("Input/output error", self.page.text("#nodes table"))
        for node, free in (("node-12", "1.24 TB of 4.00 TB"), ("node-33", "not known")):
            self.assertEqual(self.page.text(f"#nodes tr[data-key={node}] td[data-title=Free]"),
                             free)
        self.assertEqual(self.page.evaluate("document.querySelectorAll('#nodes details').length"),
                         20)
        self.assertEqual(self.page.evaluate(
            "document.querySelectorAll('#nodes details[open]').length"), 0)
        self.assertIn("hall-1/rack-13: 25 nodes, ✖ 1 dead, ▲ 1 in trouble",
                      self.page.text("#nodes summary"))
        # What a maintenance has announced is told, and troubles nobody.
        self.says("#nodes", "1 in maintenance, 2 dead")
        self.says("#recoveries", "Maintenance of node-7: ends in 1 h 30 min")
        self.assertNotRegex(self.page.text("#overview"), r"node-7\b")
        # The link that holds the first pipeline back is marked, and said.
        self.assertEqual(self.page.evaluate(
            "[...document.querySelectorAll('#repairs .link.held title')].map(t => t.textContent)"),
            ["node-230 → node-311: 3.10\u00a0MB/s"])
        self.assertIn("holds it back", self.page.text("#repairs .graph"))
        self.is_sound("500-nodes")
        # Nobody knows how old the last heartbeat of a node is that has not been heard yet.
        self.press_on("#nodes details[data-key='rack hall-1/rack-07'] > summary")
        self.says("#nodes tr[data-key=node-7] td[data-title=Heartbeat]",
                  "not since the start, 12 s ago")
        self.is_sound("500-nodes-rack-07", "#nodes")

    def test_pipelines(self) -> None:
        """A star, cyclic lanes and a tree, drawn; in each, every node has a place of its own."""
        tree = [answers.link(start, end, speed) for start, end, speed in (
            ("a", "b", 50e6), ("c", "d", 50e6), ("b", "d", 49e6), ("e", "d", 5e6),
            ("d", "requestor:x", None))]
        told = answers.large()
        told["repairs"]["shown"][3] = answers.repair(4, tree)
        self.open((200, told))
        self.shows("repairing")
        for number in (1, 2, 3):
            self.press_on(f"#repairs details:nth-of-type({number + 1}) > summary")
        self.page.wait_for("document.querySelectorAll('#repairs .graph').length === 4", "4 graphs")
        places = """[...document.querySelectorAll('#repairs .graph')].map(graph => {
            const boxes = [...graph.querySelectorAll('.node rect')];
            return [boxes.length, graph.querySelectorAll('.link').length,
                    new Set(boxes.map(b => b.getAttribute('x') + ' ' + b.getAttribute('y'))).size];
        })"""
        self.assertEqual(self.page.evaluate(places),
                         [[7, 6, 7], [7, 6, 7], [7, 12, 7], [6, 5, 6]])
        self.assertIn("the slowest", self.page.text("#repairs details:nth-of-type(4) table"))
        self.is_sound("pipelines", "#repairs")

    def test_hostile_words(self) -> None:
        self.open((200, answers.hostile()))
        self.shows("stuck")
        for fold in ("#ended summary", "#nodes summary", "#repairs summary"):
            if not self.page.evaluate(f"document.querySelector('{fold}').parentNode.open"):
                self.press_on(fold)
        for part in ("#verdict", "#nodes", "#nodes table", "#repairs .graph", "#repairs table",
                     "#queue", "#recoveries", "#ended table", "#foot"):
            self.page.wait_for(f"document.querySelector('{part}').textContent.includes("
                               f"{HOSTILE!r})", f"the words in {part}")
        self.assertEqual(self.page.evaluate("document.querySelectorAll('body img, body script')"
                                            ".length"), 0)
        self.is_sound("hostile")

    def test_keyboard(self) -> None:
        """All that folds opens by keys, and stays open, with the focus, when new answers come."""
        self.open((200, answers.large()))
        self.shows("repairing")
        self.page.press("Tab", 9)
        self.assertEqual(self.page.evaluate("document.activeElement.className"), "skip")
        self.press_on("#nodes summary")
        self.page.wait_for("document.querySelector('#nodes details').open &&"
                           " document.querySelector('#nodes details table')", "the rack")
        asked = self.stand.asked
        wait_until(lambda: self.stand.asked > asked + 2, HANG, "two answers")
        self.assertTrue(self.page.evaluate("document.querySelector('#nodes details').open"))
        self.assertEqual(self.page.evaluate(
            "document.activeElement === document.querySelector('#nodes summary')"), True)
        self.page.press("Enter", 13)
        self.page.wait_for("!document.querySelector('#nodes details').open", "the rack folded")
        self.assertEqual(self.page.complaints(), [])

    def test_answers_that_are_none(self) -> None:
        """What is shown stays, with the reason, until there is an answer again."""
        self.open((503, "The first answer is being made"))
        self.shows("lost")
        self.says("#verdict", "503: The first answer is being made")
        for told, words in (((500, "broken"), "500: broken"), ((200, "{not JSON"), "JSON"),
                            ((200, {"unix_ms": 1}), "cannot show the answer")):
            self.stand.answers = [(200, answers.answer())]
            self.shows("healthy")
            self.stand.answers = [told]
            self.shows("lost")
            self.says("#verdict", words)
            self.says("#nodes", "node-2")
        self.stand.answers = [(200, answers.answer())]
        self.shows("healthy")

    def test_the_same_answer_for_ever(self) -> None:
        self.stand.ticking = False
        self.open((200, answers.answer()))
        self.shows("lost")
        self.says("#verdict", "gives no new answer")
        self.stand.ticking = True
        self.shows("healthy")


def main() -> None:
    global PICTURES, browser
    if "--pictures" in sys.argv:
        at = sys.argv.index("--pictures")
        PICTURES = Path(sys.argv[at + 1])
        PICTURES.mkdir(parents=True, exist_ok=True)
        del sys.argv[at:at + 2]
    with tempfile.TemporaryDirectory() as folder:
        try:
            with Chromium(Path(folder) / "chromium") as browser:
                print(f"in {browser.version}", file=sys.stderr)
                case.main()
        except Unavailable as error:
            print(f"SKIP: {error}")
            sys.exit(SKIPPED)


if __name__ == "__main__":
    main()
