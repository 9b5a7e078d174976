# SPDX-License-Identifier: Apache-2.0
"""What the tests of the status page share: a headless Chromium, live clusters, and a main. It takes
--bin-dir, and with --pictures keeps pictures of each state: desktop and phone, light and dark."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "cluster"))

import case  # noqa: E402
from case import HANG, ClusterCase  # noqa: E402
from chromium import DESKTOP, PHONE, Chromium, Page, Unavailable  # noqa: E402
from labkit.process import free_port, wait_until  # noqa: E402

SKIPPED = 77
WEB = {"web": {"listen": "127.0.0.1:0"}}
PICTURES: Path | None = None
browser: Chromium

# What everybody can use: a table's heads say what they head, what can be pressed and each drawing
# has a name, nothing has a script or a style of its own. It only shows: there is nothing to send.
FLAWS = """[
  ...[...document.querySelectorAll('th')].filter(th => !th.scope).map(() => 'th without scope'),
  ...[...document.querySelectorAll('summary, a, h1, h2, h3')]
      .filter(e => e.textContent.trim() === '').map(e => 'nameless ' + e.nodeName),
  ...[...document.querySelectorAll('svg[role=img]')]
      .filter(e => !e.getAttribute('aria-label')).map(() => 'nameless drawing'),
  ...[...document.querySelectorAll('main [style], main [onclick], main script, main img')]
      .map(e => 'markup ' + e.outerHTML),
  ...[...document.querySelectorAll('.name')]
      .filter(e => e.textContent.length < 16 && e.offsetHeight > 34)
      .map(e => 'broken name ' + e.textContent),
  ...[...document.querySelectorAll('form, button, input, select, textarea, [contenteditable]')]
      .map(e => 'control ' + e.outerHTML),
  ...(/NaN|undefined|Infinity|\\[object|(?<![-\\d.,])1 (blocks|nodes|repairs|recoveries|links)\\b/
      .exec(document.body.innerText) ?? [])
      .map(words => 'no words: ' + words),
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
        asked = self.page.requests()
        self.assertIn(("GET", f"{self.page.url}status.json"), asked)
        self.assertEqual([(method, url) for method, url in asked
                          if method != "GET" or not url.startswith(self.page.url)], [])

    def focus(self, selector: str) -> None:
        self.page.evaluate(f"document.querySelector({selector!r}).focus()")

    def press_on(self, selector: str) -> None:
        self.focus(selector)
        self.page.press("Enter", 13)


class LiveCase(PageCase, ClusterCase):
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

    def begin(self, *command: str) -> int:
        """A recovery or a drain; its number."""
        number = self.cluster.cli_json(*command, "--detach")["recovery_id"]
        self.addCleanup(self.cluster.cli, "recovery", "cancel", str(number), check=False)
        return number

    def slow_down(self, mbit: int) -> None:
        nodes = ",".join(self.cluster.node_ids)
        self.cluster.cli("limits", "set", "--node", nodes, "--repair-mbit", str(mbit))
        self.addCleanup(self.hurry)
        wait_until(lambda: all(node["repair_mbit"] == mbit for node
                               in self.cluster.cli_json("limits")["nodes"]), HANG, "the limits")

    def hurry(self) -> None:
        self.cluster.cli("limits", "reset", "--node", ",".join(self.cluster.node_ids))


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
