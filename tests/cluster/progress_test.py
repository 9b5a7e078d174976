#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What long commands show of themselves: a bar on a terminal, next to nothing elsewhere."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path
from typing import Any, Callable

import case
from case import HANG, ClusterCase

ERASE = "\r\x1b[K"


class OnTerminal:
    """A command whose standard error is a terminal; its standard output is a pipe."""

    def __init__(self, test: ClusterCase, *arguments: Any, columns: int = 80) -> None:
        self.master, slave = pty.openpty()
        test.addCleanup(os.close, self.master)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            test.cluster.command(*arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=slave, env={**os.environ, "TERM": "xterm"})
        os.close(slave)
        test.addCleanup(self.process.stdout.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(lambda: self.process.poll() is None and self.process.kill())
        self.shown = ""

    def read(self, seconds: float) -> bool:
        """Takes what is there within that time; False at the end."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            got = os.read(self.master, 65536)
        except OSError:  # nobody has the other end any more
            return False
        self.shown += got.decode()
        return bool(got)

    def await_shown(self, pattern: str) -> None:
        deadline = time.monotonic() + HANG
        while not re.search(pattern, self.shown):
            if time.monotonic() > deadline or not self.read(1.0):
                raise AssertionError(f"no {pattern!r} in {self.shown!r}")

    def slowly(self, enough: Callable[[], bool]) -> None:
        """Lets the command work for a small part of the time, so that it becomes long work: until
        this is enough, or it has ended."""
        deadline = time.monotonic() + HANG
        while self.process.poll() is None and not enough():
            if time.monotonic() > deadline:
                raise AssertionError(f"has not ended: {self.shown!r}")
            self.process.send_signal(signal.SIGSTOP)
            self.read(0)
            time.sleep(0.08)
            self.process.send_signal(signal.SIGCONT)
            time.sleep(0.002)  # a fast core verifies all of the blocks in some 20 ms

    def finish(self) -> str:
        """Waits for the end; what came on standard output."""
        deadline = time.monotonic() + HANG
        while self.read(1.0):
            if time.monotonic() > deadline:
                raise AssertionError(f"has not ended: {self.shown!r}")
        self.process.wait(timeout=HANG)
        return self.process.stdout.read().decode()

    def frames(self) -> list[str]:
        return [frame for frame in self.shown.split(ERASE) if frame]


class ProgressTest(ClusterCase):
    block_bytes = 2 << 20
    file_bytes = 16 * block_bytes

    def assert_bar(self, shown: OnTerminal, amount: str, columns: int = 80) -> None:
        """Frames of one line each that grow, and nothing left of them at the end."""
        shown.finish()
        self.assertEqual(shown.process.returncode, 0, shown.shown)
        self.assertTrue(shown.shown.endswith(ERASE), shown.shown)
        self.assertNotIn("\n", shown.shown)
        frames = shown.frames()
        self.assertGreater(len(frames), 1)
        percents = [int(re.search(r"(\d+) %", frame)[1]) for frame in frames]
        self.assertEqual(percents, sorted(percents))
        for frame in frames:
            self.assertLess(len(frame), columns)
            self.assertRegex(frame, r"^\S+ \[#* *\] +\d+ %" + amount)

    def encode(self, out: Path) -> tuple[Any, ...]:
        return ("encode", self.source, "--out", out, "--code", self.code, "--block-size",
                str(self.block_bytes), "--name", "big")

    def test_files(self) -> None:
        out = self.work / "encoded"
        manifest = out / "big.manifest.json"
        amount = r"  \d+\.\d of [\d.]+ MiB  .*/s  (-:--|\d+:\d\d|finishing)"
        for arguments in (self.encode(out), ("verify", manifest, "--blocks", out),
                          ("decode", manifest, "--blocks", out, "-o", self.work / "decoded")):
            with self.subTest(arguments[0]):
                shown = OnTerminal(self, *arguments)
                shown.slowly(lambda: len(shown.frames()) >= 3)
                self.assert_bar(shown, amount)
        self.assertEqual((self.work / "decoded").read_bytes(), self.source.read_bytes())

    def test_narrow_terminal(self) -> None:
        shown = OnTerminal(self, *self.encode(self.work / "narrow"), columns=40)
        shown.slowly(lambda: len(shown.frames()) >= 3)
        self.assert_bar(shown, r"  \S+( left)?$", columns=40)

    def test_quiet_and_json_show_nothing(self) -> None:
        for option in ("--quiet", "--json"):
            with self.subTest(option):
                shown = OnTerminal(self, option, *self.encode(self.work / option))
                long_work = time.monotonic() + 1
                shown.slowly(lambda: time.monotonic() > long_work)
                shown.finish()
                self.assertEqual((shown.process.returncode, shown.shown), (0, ""))

    def test_short_work_without_a_terminal_says_nothing(self) -> None:
        done = self.cluster.cli(*self.encode(self.work / "plain"))
        self.assertEqual(done.stderr, "")
        self.assertIn("32 MiB in ", done.stdout)

    def test_interrupt_takes_the_bar_away(self) -> None:
        shown = OnTerminal(self, *self.encode(self.work / "interrupted"))
        shown.slowly(lambda: "big [" in shown.shown)
        shown.process.send_signal(signal.SIGINT)
        shown.finish()
        self.assertEqual(shown.process.returncode, -signal.SIGINT)
        self.assertTrue(shown.shown.endswith(ERASE), shown.shown)

    def test_catalog_load(self) -> None:
        manifest = self.work / "many.json"
        manifest.write_text(json.dumps(self.many_stripes(2500)))
        self.cluster.coordinator.pause()
        try:
            shown = OnTerminal(self, "--timeout", str(HANG), "catalog", "load", manifest)
            shown.await_shown(r"many \[ *\]   0 %  0 of 2500 stripes ")
        finally:
            self.cluster.coordinator.resume()
        self.assertEqual(shown.finish(), "loaded 2500 stripes\n")
        self.assertTrue(shown.shown.endswith(ERASE), shown.shown)

    def many_stripes(self, count: int) -> dict[str, Any]:
        """A manifest of a file that nobody has, of small blocks."""
        digest = "ab" * 32
        stripes = [{"stripe_id": f"many-s{s:05}",
                    "blocks": [{"block_id": f"many-s{s:05}-b{b:02}", "node": node,
                                "sha256": digest}
                               for b, node in enumerate(self.cluster.node_ids[:3])]}
                   for s in range(count)]
        return {"format": "ecpipe-manifest-1", "name": "many", "file_bytes": 2 * count,
                "file_sha256": digest, "code": "rs-cauchy(3,2)", "block_bytes": 1,
                "stripes": stripes}


if __name__ == "__main__":
    case.main()
