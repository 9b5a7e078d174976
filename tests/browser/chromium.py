# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, told what to do over its DevTools protocol: JSON through two pipes.

    with Chromium(folder) as browser:
        page = browser.open("http://127.0.0.1:9700/")
        page.wait_for("document.title.startsWith('x')", "the title")

Every wait is bounded. It and all that it has started end with the `with`.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from labkit.process import LabError, die_with_parent, wait_until

WAIT = 60.0  # seconds; what takes longer is taken to hang
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
DESKTOP, PHONE = (1280, 900), (390, 844)
# What pages tell of themselves and somebody reads.
KEPT_EVENTS = {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded",
               "Network.requestWillBeSent"}
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--disable-breakpad", "--no-proxy-server", "--mute-audio",
    "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows", "--hide-scrollbars", "--lang=en-US",
)


class Unavailable(Exception):
    """No Chromium runs here; the message says why."""


class Gone(Exception):
    """It ended, or does not answer."""


class Chromium:
    """`folder` keeps its profile and its log."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._calls = 0
        self.events: list[dict[str, Any]] = []  # that nobody has taken yet

    def __enter__(self) -> Chromium:
        program = next(filter(None, map(shutil.which, PROGRAMS)), None)
        if program is None:
            raise Unavailable("no chromium here (deploy/install-deps.sh browser installs it)")
        profile = self._folder / "profile"
        profile.mkdir(parents=True)
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()

        def take_pipes() -> None:
            """It reads descriptor 3 and writes to 4."""
            die_with_parent()
            high = [fcntl.fcntl(end, fcntl.F_DUPFD, 16) for end in (to_browser, from_browser)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._log = self._folder / "chromium.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, close_fds=False,
                preexec_fn=take_pipes, start_new_session=True,
                env={**os.environ, "HOME": str(self._folder), "XDG_CONFIG_HOME": str(profile),
                     "XDG_CACHE_HOME": str(profile)})
        os.close(to_browser)
        os.close(from_browser)
        try:
            self.version = self.call("Browser.getVersion")["product"]
            self.open("data:text/html,<title>it runs</title>").wait_for(
                "document.title === 'it runs'", "a page that a renderer shows")
        except (Gone, LabError, AssertionError) as error:
            self.__exit__()
            tail = self._log.read_text(errors="replace").splitlines()[-5:]
            raise Unavailable(f"chromium does not start here: {error} {' / '.join(tail)}") from None
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        assert process is not None
        with contextlib.suppress(Gone, ValueError):
            self.call("Browser.close", seconds=5)
        # Its own session, which lasts until it is waited for: it, and what it has started.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(WAIT)
        os.close(self._to)
        os.close(self._from)

    def open(self, url: str) -> Page:
        """A new tab. The tab before is closed: what is not seen may be slowed down."""
        for target in self.call("Target.getTargets")["targetInfos"]:
            if target["type"] == "page" and target["url"] != "about:blank":
                self.call("Target.closeTarget", {"targetId": target["targetId"]})
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})
        return Page(self, session["sessionId"], url)

    def call(self, method: str, parameters: dict[str, Any] | None = None, session: str = "",
             seconds: float = WAIT) -> dict[str, Any]:
        """Gone: it has ended, or has not answered in time. ValueError: it refuses."""
        self._calls += 1
        message = {"id": self._calls, "method": method, "params": parameters or {}}
        if session:
            message["sessionId"] = session
        try:
            os.write(self._to, json.dumps(message).encode() + b"\0")
        except OSError as error:
            raise Gone(f"{method}: {error}") from None
        deadline = time.monotonic() + seconds
        while True:
            answer = self._read(deadline, method)
            if answer.get("id") == self._calls:
                if "error" in answer:
                    raise ValueError(f"{method}: {answer['error']}")
                return answer["result"]
            if answer.get("method") in KEPT_EVENTS:
                self.events.append(answer)

    def _read(self, deadline: float, what: str) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._from], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise Gone(f"{what}: no answer in time.")
            data = os.read(self._from, 1 << 16)
            if not data:
                raise Gone(f"{what}: it has ended.")
            self._unread += data
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)


class Page:
    """A tab that stays where it went first."""

    def __init__(self, browser: Chromium, session: str, url: str) -> None:
        self._browser, self._session, self.url = browser, session, url
        self._asked: set[tuple[str, str]] = set()
        browser.events.clear()  # of the page before
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self.look(DESKTOP)
        self._call("Page.navigate", url=url)

        def arrived() -> bool:
            try:
                return self.evaluate(
                    "location.href !== 'about:blank' && document.readyState === 'complete'")
            except ValueError:  # it is between two documents
                return False
        wait_until(arrived, WAIT, f"{url} in the browser")

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, parameters, self._session)

    def look(self, size: tuple[int, int], scheme: str = "light") -> None:
        """The size of the screen, and whether its user likes it light or dark."""
        self._call("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1],
                   deviceScaleFactor=1, mobile=size == PHONE)
        self._call("Emulation.setEmulatedMedia",
                   features=[{"name": "prefers-color-scheme", "value": scheme}])

    def evaluate(self, expression: str) -> Any:
        """What an expression comes to, as JSON has it. AssertionError when it throws."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression: str, what: str) -> None:
        """Until the expression is true. Says what stood there when it never was."""
        try:
            wait_until(lambda: bool(self.evaluate(f"!!({expression})")), WAIT, what)
        except LabError as error:
            raise AssertionError(f"{error}; the page:\n{self.text()}") from None

    def text(self, selector: str = "body") -> str:
        """What is seen of an element, "" without one; with plain spaces."""
        seen = self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        return seen.replace("\u00a0", " ").replace("\ufe0e", "")

    def press(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self._call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                       windowsVirtualKeyCode=code, **text)

    def complaints(self) -> list[str]:
        """What the browser has against the page since the last time: errors of its scripts, and
        what its policy forbids. That a server does not answer is no fault of the page."""
        found = []
        for event in self._take("Runtime.exceptionThrown", "Runtime.consoleAPICalled",
                                "Log.entryAdded"):
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(event["params"]["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded":
                entry = event["params"]["entry"]
                if entry["level"] in ("warning", "error") and entry["source"] != "network":
                    found.append(f"{entry['source']}: {entry['text']}")
            elif (event["method"] == "Runtime.consoleAPICalled"
                  and event["params"]["type"] in ("warning", "error", "assert")):
                found.append(str(event["params"]["args"]))
        return found

    def requests(self) -> set[tuple[str, str]]:
        """Method and address of what the page has asked for since it was opened."""
        for event in self._take("Network.requestWillBeSent"):
            request = event["params"]["request"]
            self._asked.add((request["method"], request["url"]))
        return self._asked

    def _take(self, *methods: str) -> list[dict[str, Any]]:
        events = self._browser.events
        taken = [event for event in events if event["method"] in methods]
        self._browser.events = [event for event in events if event["method"] not in methods]
        return taken

    def picture(self, file: Path) -> None:
        data = self._call("Page.captureScreenshot", format="png")["data"]
        file.write_bytes(base64.b64decode(data))
