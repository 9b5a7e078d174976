#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The status page in a headless Chromium while blocks are rebuilt and moved: of a live cluster,
and of 500 stand-in helpers at a real coordinator.

    status_page_work_test.py --bin-dir DIR [--pictures FOLDER] [CLASS[.TEST]]
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import page_case
from page_case import WEB, LiveCase, PageCase

import case
from case import HANG
from labkit.cluster import COORDINATOR, Cluster
from labkit.process import wait_until
from scale import StandIns, load_stripes

RATE = r"[\d.]+\s[kM]B\/s"  # for Python and for JavaScript
TIME = r"\d\d:\d\d:\d\d"


class AtWork(LiveCase):
    """Blocks move, so slowly that one sees it, and at last at full speed to the end."""

    nodes = 9
    block_bytes = 2 << 20              # six seconds at this limit
    file_bytes = 15 * 4 * block_bytes  # ten blocks a node
    slow_mbit = 3

    def shows_work(self, title: str, done: str, links: int) -> None:
        """Of the one recovery or drain, and of the first of its repairs, which has so many links or
        more: how far it is, how fast, and when it ends; of blocks that wait, why."""
        self.says("#recoveries h3", f"{title}: running")
        self.says("#repairs summary", "running")
        self.page.wait_for(f"""(() => {{
            const told = name => [...document.querySelectorAll(
                `#repairs .graph .link ${{name}}`)].map(e => e.textContent);
            const titles = told('title'), texts = told('text');
            return titles.length >= {links} && texts.length === titles.length &&
                titles.every(title => /: {RATE}$/.test(title)) &&
                texts.every(text => /{RATE}/.test(text));
        }})()""", "a rate at each link of a pipeline")
        self.page.wait_for(f"""[...document.querySelectorAll('#repairs .graph ~ table td')].some(
            cell => /^{RATE}$/.test(cell.textContent))""", "rates in the table beside it")
        self.says("#repairs .graph", "at its limit")
        self.grows("#repairs summary .progress")
        self.matches("#repairs summary", rf"{RATE}, ends in: .+ \(at {TIME}\)")
        self.says("#queue table", "already, the limit of a node (--streams of this recovery)")
        self.assertEqual(self.page.evaluate("""[...document.querySelectorAll(
            '#queue td[data-title=Why], #queue td[data-title="Waits for"]')]
            .filter(cell => cell.innerText.trim() === '').length"""), 0)
        self.grows("#recoveries h3")
        self.matches("#recoveries .card", rf"\d {done}, .*{RATE} · ends in: .+ \(at {TIME}\)")
        self.matches("#overview", rf"1 recovery, all done in .+ \(at {TIME}\)")

    def matches(self, selector: str, pattern: str) -> None:
        wait_until(lambda: re.search(pattern, self.page.text(selector)), HANG,
                   f"{pattern!r} in {self.page.text(selector)!r}")

    def grows(self, selector: str) -> None:
        """The percentage there. Another repair may take the place of one that has ended."""
        seen: list[int] = []

        def grown() -> bool:
            if found := re.search(r"(\d+) %", self.page.text(selector)):
                seen.append(int(found[1]))
            return len(seen) > 1 and seen[-1] > seen[-2]
        wait_until(grown, HANG, f"progress in {self.page.text(selector)!r}")

    def ends(self, title: str, done: str) -> None:
        self.hurry()
        self.shows("healthy")
        self.says("#queue", "No block waits.")
        self.press_on("#recoveries summary")
        self.says("#recoveries", f"{title}: done, 100 %")
        self.assertRegex(self.page.text("#recoveries .card"), rf"[1-9]\d* {done} of")

    def test_recovery(self) -> None:
        node = self.cluster.node_ids[0]
        self.slow_down(self.slow_mbit)
        self.kill(node)
        self.shows("degraded")
        self.says("#overview", "1 dead node that no recovery rebuilds")
        waits = self.begin("recover-node", node, "--delay", "600")
        self.shows("repairing")
        self.says("#recoveries", "unless the node comes back")
        self.says("#queue tr[data-key]", "1 to spare")
        self.is_sound("waiting")
        self.cluster.cli("recovery", "cancel", str(waits))
        number = self.begin("recover-node", node, "--delay", "0", "--streams", "1",
                            "--scheme", "rp")
        title = f"Recovery {number} of {node}"
        self.shows_work(title, "rebuilt", links=4)
        self.says("#overview", "to rebuild")
        self.page.wait_for("""(() => {
            const links = [...document.querySelectorAll('#repairs .pipeline tbody tr')].map(
                row => [...row.cells].map(cell => cell.textContent));
            return links.length === 4 && links.every((link, i) => i === 0 ||
                link[0] === links[i - 1][1]);
        })()""", "the table in the order of the path")
        self.is_sound("recovering")
        self.is_sound("recovering-repairs", "#repairs")
        self.ends(title, "rebuilt")

    def test_drain(self) -> None:
        node = self.cluster.node_ids[-1]
        self.addCleanup(self.cluster.cli, "nodes", "readmit", node)
        self.slow_down(self.slow_mbit)
        title = f"Drain of {node}, recovery {self.begin('drain', node, '--streams', '1')}"
        self.shows_work(title, "moved", links=1)
        self.says("#overview", "to move off draining nodes")
        self.assertNotIn("to rebuild", self.page.text("#overview"))
        self.says(f"#nodes tr[data-key={node}]", "draining")
        self.is_sound("draining")
        self.ends(title, "moved")
        self.says(f"#nodes tr[data-key={node}]", "drained")


class StandInNodes(PageCase):
    """Helpers that speak the real protocol, in one process, at a real coordinator."""

    def test_500_nodes(self) -> None:
        work = Path(self.enterContext(tempfile.TemporaryDirectory()))
        cluster = Cluster(case.BIN_DIR, work, 0, logs_stay=False, coordinator_settings={
            **WEB, "timeouts": {"dead_after_seconds": 5.0}})
        load_stripes(case.BIN_DIR, work / "state" / COORDINATOR, 8000, 500)  # 224 blocks a node
        self.enterContext(cluster)
        stand_ins = self.enterContext(StandIns(
            case.BIN_DIR / "stand_in_helpers", cluster.coordinator.address, 500,
            work / "stand_ins.log", racks=20, part_ms=5000))
        self.page = page_case.browser.open(f"http://{cluster.coordinator.ready['web']}/")
        self.says("#nodes h2", "500: 500 live, 0 draining, 0 dead")
        self.shows("healthy")
        self.assertEqual(stand_ins.answer()["registered"], 500)
        for open_ones, number in (("", 20), ("[open]", 0)):
            self.assertEqual(self.page.evaluate(
                f"document.querySelectorAll('#nodes details{open_ones}').length"), number)
        self.assertEqual(stand_ins.ask("silence 2")["silenced"], 2)
        self.says("#nodes h2", "498 live, 0 draining, 2 dead")
        self.shows("degraded")
        self.says("#overview", "2 dead nodes that no recovery rebuilds")
        for node in ("node-498", "node-499"):  # they stand above the racks, which are folded
            self.says("#nodes > table", node)
        self.assertRegex(self.page.text("#nodes summary"), r"^rack-1\d: 25 nodes, ✖ 1 dead")
        cluster.cli("recover-node", "node-499", "--delay", "0", "--streams", "2", "--detach")
        self.shows("repairing")
        self.page.wait_for("document.querySelectorAll('#repairs > details').length === 24",
                           "as many repairs as are shown")
        self.says("#queue table", "already, the limit of a node")
        # Stand-ins send no bytes, and so nobody knows how fast.
        self.says("#overview", "speed not known yet")
        self.says("#repairs summary", "speed and end not known yet")
        self.page.wait_for("""(cells => cells.length > 0 && cells.every(
            cell => cell.textContent === 'not known'))([...document.querySelectorAll(
            '#repairs td[data-title=Speed], #repairs td[data-title^=Held]')])""",
                           "no figures of links")
        self.page.wait_for(r"/[1-9]\d* rebuilt, \d+ under way/.test(document.querySelector("
                           "'#recoveries .card')?.innerText)", "blocks that are rebuilt")
        self.press_on("#nodes summary")
        self.page.wait_for("document.querySelectorAll('#nodes details[open] tbody tr').length"
                           " === 25", "the nodes of a rack")
        self.is_sound("500-nodes")
        self.is_sound("500-nodes-racks", "#nodes")

if __name__ == "__main__":
    page_case.main()
