#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The status page in a headless Chromium: of live clusters in each state in which nothing is
moved, and of made-up answers.

    status_page_test.py --bin-dir DIR [--pictures FOLDER] [CLASS[.TEST]]
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import page_case
from page_case import WEB, LiveCase, PageCase

import answers
import case
from answers import HOSTILE, Stand
from case import HANG
from chromium import DESKTOP, PHONE
from labkit.cluster import Cluster
from labkit.process import wait_until

# All that Tab stops at below the head, as places among all elements; and the one where it is now.
STOPS = "[...document.querySelectorAll('main summary, main a[href], main [tabindex=\"0\"]')]"
TAB_STOPS = f"{STOPS}.map((_, place) => place)"
FOCUS = f"""(() => {{
  const focused = document.activeElement, box = focused.getBoundingClientRect();
  const style = getComputedStyle(focused);
  return {{place: {STOPS}.indexOf(focused), flaws: [
    ...(style.outlineStyle === 'solid' && parseFloat(style.outlineWidth) >= 2 ? [] : ['no frame']),
    ...(box.top >= document.querySelector('#verdict').getBoundingClientRect().bottom &&
        box.top < innerHeight ? [] : ['not seen'])]}};
}})()"""


class WithoutNodes(PageCase):
    def test_empty(self) -> None:
        with tempfile.TemporaryDirectory() as work:
            with Cluster(case.BIN_DIR, Path(work), 0, coordinator_settings=WEB,
                         logs_stay=False) as cluster:
                self.page = page_case.browser.open(f"http://{cluster.coordinator.ready['web']}/")
                self.shows("empty")
                self.says("#nodes", "No helper has registered")
                self.is_sound("empty")


class Live(LiveCase):
    nodes = 8
    block_bytes = 8 << 20
    file_bytes = 4 * block_bytes

    def test_healthy(self) -> None:
        for node in self.cluster.node_ids:
            self.says("#nodes", node)
        self.says("#overview", "nothing that is known")
        self.says("#queue", "No block waits.")
        self.is_sound("healthy")

    def test_stuck(self) -> None:
        dead = [self.block(0, index)["node"] for index in range(3)]
        self.kill(*dead)
        self.begin("recover-node", dead[0], "--delay", "0")
        self.shows("stuck")
        self.says("#overview", "too few survivors")
        self.says("#queue", "too few")
        self.is_sound("stuck")

    def test_throttled(self) -> None:
        """A repair that its nodes' limit slows down, with its pipeline."""
        self.slow_down(1)
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
        self.page = page_case.browser.open(self.stand.url)

    def test_each_trouble(self) -> None:
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
        self.is_sound("each-trouble")
        # Nobody knows how old the last heartbeat of a node is that has not been heard yet.
        self.press_on("#nodes details[data-key='rack hall-1/rack-07'] > summary")
        self.says("#nodes tr[data-key=node-7] td[data-title=Heartbeat]",
                  "none for 12 s, since the start")
        self.is_sound("none-since-the-start", "#nodes")

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
            return [boxes.length, graph.querySelectorAll('.link path').length,
                    new Set(boxes.map(b => b.getAttribute('x') + ' ' + b.getAttribute('y'))).size];
        })"""
        self.assertEqual(self.page.evaluate(places),
                         [[7, 6, 7], [7, 6, 7], [7, 12, 7], [6, 5, 6]])
        self.assertIn("the slowest", self.page.text("#repairs details:nth-of-type(4) table"))
        self.assertEqual(self.page.evaluate("""[...document.querySelectorAll('#repairs .graph')]
            .filter(graph => [...graph.querySelectorAll('.link path')].pop()
                .compareDocumentPosition(graph.querySelector('.link text'))
                !== Node.DOCUMENT_POSITION_FOLLOWING).length"""), 0, "lines through texts")
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

    def test_tab_goes_everywhere(self) -> None:
        """In the order of the page; what has the focus has a frame, and is seen."""
        self.open((200, answers.large()))
        self.shows("repairing")
        for size in (PHONE, DESKTOP):
            self.page.look(size)
            self.focus("main")
            for place in self.page.evaluate(TAB_STOPS):
                self.page.press("Tab", 9)
                self.assertEqual(self.page.evaluate(FOCUS), {"place": place, "flaws": []})

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

if __name__ == "__main__":
    page_case.main()
