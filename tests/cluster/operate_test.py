#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What operators see of nodes and repairs: tables that fit the terminal, and JSON."""

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
from typing import Any, Callable

import case
from case import HANG, USAGE, ClusterCase
from labkit.process import wait_until

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Operate(ClusterCase):
    block_bytes = 64 << 20  # a read of one can be held, since no sockets hold as much
    file_bytes = 4 * (64 << 20)

    def setUp(self) -> None:
        self.cluster.wait_settled()

    def on_terminal(self, columns: int, *arguments: str, **environment: str) -> str:
        """What the command writes to a terminal of this width."""
        controller, terminal = pty.openpty()
        try:
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
            clean = {name: value for name, value in os.environ.items()
                     if name not in ("COLUMNS", "NO_COLOR")}
            process = subprocess.Popen(self.cluster.command(*arguments), stdout=terminal,
                                       env={**clean, "TERM": "xterm", **environment})
            os.close(terminal)
            written = b""
            end = time.monotonic() + HANG
            while time.monotonic() < end:
                try:
                    piece = os.read(controller, 65536)
                except OSError:  # the other side is closed
                    break
                if not piece:
                    break
                written += piece
            self.assertEqual(process.wait(timeout=HANG), 0)
            return written.decode().replace("\r\n", "\n")
        finally:
            os.close(controller)

    def begin_watch(self, columns: int, rows: int,
                    *options: str) -> tuple[subprocess.Popen[bytes], int]:
        """`ecpipe watch` on a terminal of this size, and the terminal's other end."""
        controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        clean = {name: value for name, value in os.environ.items()
                 if name not in ("COLUMNS", "NO_COLOR")}
        process = subprocess.Popen(
            self.cluster.command("watch", "--interval", "0.2", *options), stdout=terminal,
            stderr=subprocess.PIPE, env={**clean, "TERM": "xterm"}, start_new_session=True)
        os.close(terminal)
        self.addCleanup(os.close, controller)
        self.addCleanup(lambda: process.stderr and process.stderr.close())
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process, controller

    def read_until(self, controller: int, done: Callable[[str], bool]) -> str:
        """What is written to the terminal, until it is enough, or the other side is closed."""
        written, end = b"", time.monotonic() + HANG
        while time.monotonic() < end:
            if done(written.decode(errors="replace")):
                break
            ready, _, _ = select.select([controller], [], [], 1.0)
            if not ready:
                continue
            try:
                piece = os.read(controller, 65536)
            except OSError:
                break
            if not piece:
                break
            written += piece
        return written.decode(errors="replace")

    def rows(self, text: str) -> list[list[str]]:
        return [line.split() for line in text.splitlines()]

    def test_nodes(self) -> None:
        nodes = self.cluster.cli_json("nodes", "--sort", "node")
        self.assertEqual([node["node_id"] for node in nodes], sorted(self.cluster.node_ids))
        for node in nodes:
            self.assertEqual(node["state"], "live")
            self.assertGreater(node["free_bytes"], 0)
            self.assertGreaterEqual(node["disk_bytes"], node["free_bytes"])
            self.assertIn("check-rows", node["features"])
            self.assertRegex(node["version"], r"^\d+\.\d+")
            self.assertEqual(node["sends_bytes_per_second"], 0)
        table = self.rows(self.cluster.cli("nodes", "--sort", "blocks").stdout)
        self.assertEqual(table[0][:4], ["node", "rack", "state", "blocks"])
        counts = [int(row[3]) for row in table[1:]]
        self.assertEqual(counts, sorted(counts, reverse=True))
        backwards = self.rows(self.cluster.cli("nodes", "--sort", "node", "--reverse").stdout)
        self.assertEqual([row[0] for row in backwards[1:]],
                         sorted(self.cluster.node_ids, reverse=True))
        self.fails(USAGE, "nodes", "--sort", "colour")

    def test_tables_fit_the_terminal(self) -> None:
        self.repair(self.block(0, 0)["block_id"])
        for columns in (40, 60, 80, 200):
            for command in ("nodes", "repairs"):
                text = self.on_terminal(columns, command)
                self.assertIn("\x1b[", text, "states have colours")
                longest = max(len(line) for line in ESCAPE.sub("", text).splitlines())
                self.assertLessEqual(longest, columns, text)
        self.assertNotIn("\x1b", self.on_terminal(80, "nodes", NO_COLOR="1"))
        narrow = ESCAPE.sub("", self.on_terminal(200, "nodes", COLUMNS="50"))
        self.assertLessEqual(max(len(line) for line in narrow.splitlines()), 50)
        # What is no terminal gets all of it, and no colours.
        whole = self.cluster.cli("nodes").stdout
        self.assertIn("version", whole)
        self.assertNotIn("\x1b", whole)

    def test_a_node_that_is_gone(self) -> None:
        node = self.cluster.node_ids[-1]
        helper = self.cluster.helpers[node]
        helper.kill()

        def state() -> dict[str, Any]:
            return next(each for each in self.cluster.cli_json("nodes") if each["node_id"] == node)
        wait_until(lambda: not state()["answers"], HANG, "the node to be seen as gone")
        self.assertIsNone(state()["sends_bytes_per_second"])
        self.assertRegex(self.cluster.cli("nodes").stdout, rf"{node} .*(silent|dead)")
        helper.restart()
        self.cluster.wait_live(self.cluster.node_ids)

    def test_repairs(self) -> None:
        block = self.block(0, 2)["block_id"]
        self.repair(block)
        latest = self.cluster.cli_json("repairs")[0]
        self.assertEqual((latest["block_ids"], latest["state"]), ([block], "done"))
        process = self.begin_read(self.block(0, 1)["block_id"])
        self.repair(block)  # ends later than the other has begun
        running = self.cluster.cli_json("repairs", "--running")
        self.assertEqual([each["state"] for each in running], ["running"])
        every = self.cluster.cli_json("repairs")
        self.assertEqual([each["state"] for each in every][:2], ["running", "done"])
        table = self.rows(self.cluster.cli("repairs").stdout)
        self.assertEqual([row[1] for row in table[1:3]], ["running", "done"])
        process.kill()
        process.wait(timeout=HANG)
        wait_until(lambda: not self.cluster.cli_json("repairs", "--running"), HANG,
                   "the repair to end")
        self.assertIn("no repair runs", self.cluster.cli("repairs", "--running").stdout)

    def test_watch_gives_the_screen_back(self) -> None:
        last = self.cluster.node_ids[-1]
        for number in (signal.SIGINT, signal.SIGTERM):
            process, controller = self.begin_watch(80, 30)
            shown = self.read_until(controller, lambda text: text.count(last) >= 2)
            self.assertTrue(shown.startswith("\x1b[?1049h"), shown[:40])
            self.assertIn("7 live", shown)
            process.send_signal(number)
            rest = self.read_until(controller, lambda text: False)
            self.assertEqual(process.wait(timeout=HANG), -number)
            self.assertTrue((shown + rest).endswith("\x1b[?25h\x1b[?1049l"), rest[-40:])

    def test_watch_follows_the_size_of_the_terminal(self) -> None:
        process, controller = self.begin_watch(200, 30)
        self.read_until(controller, lambda text: "version" in text)
        fcntl.ioctl(controller, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 50, 0, 0))
        process.send_signal(signal.SIGWINCH)

        def last_frame(text: str) -> list[str]:
            frames = text.split("\x1b[H")
            return (ESCAPE.sub("", frames[-2]).replace("\r", "").split("\n")
                    if len(frames) > 2 else [])

        def fits(text: str) -> bool:
            lines = last_frame(text)
            return bool(lines) and len(lines) <= 12 and max(map(len, lines)) <= 50
        text = self.read_until(controller, fits)
        self.assertTrue(fits(text), last_frame(text))
        process.send_signal(signal.SIGTERM)
        self.read_until(controller, lambda _: False)
        process.wait(timeout=HANG)

    def test_watch_says_that_the_coordinator_is_gone(self) -> None:
        process, controller = self.begin_watch(100, 40)
        self.read_until(controller, lambda text: "7 live" in text)
        self.cluster.coordinator.kill()
        self.assertIn("not newer", self.read_until(controller, lambda text: "not newer" in text))
        self.cluster.coordinator.restart()
        self.cluster.wait_live(self.cluster.node_ids)
        back = self.read_until(
            controller, lambda text: "7 live" in text.rsplit("not newer", 1)[-1])
        self.assertIn("7 live", back.rsplit("not newer", 1)[-1])
        process.send_signal(signal.SIGTERM)
        self.read_until(controller, lambda _: False)
        process.wait(timeout=HANG)

    def test_watch_says_at_once_that_nobody_answers(self) -> None:
        self.cluster.coordinator.pause()
        self.addCleanup(self.cluster.wait_live, self.cluster.node_ids)
        self.addCleanup(self.cluster.coordinator.resume)
        process, controller = self.begin_watch(100, 40)
        shown = self.read_until(controller, lambda text: "no answer yet" in text)
        self.assertIn("no answer yet", shown)
        process.send_signal(signal.SIGTERM)
        self.read_until(controller, lambda _: False)
        process.wait(timeout=HANG)

    def test_a_watch_that_ends_without_an_answer_has_failed(self) -> None:
        self.cluster.coordinator.kill()
        process, controller = self.begin_watch(100, 40, "--count", "1")
        self.read_until(controller, lambda _: False)
        self.assertEqual(process.wait(timeout=HANG), 4)  # nobody answers
        self.cluster.coordinator.restart()
        self.cluster.wait_live(self.cluster.node_ids)

    def test_watch_prints_once_where_there_is_no_terminal(self) -> None:
        said = self.cluster.cli("watch").stdout
        self.assertNotIn("\x1b", said)
        for node in self.cluster.node_ids:
            self.assertIn(node, said)

    def test_watch_as_json_is_an_object_a_line(self) -> None:
        said = self.cluster.cli("watch", "--json", "--interval", "0.2", "--count", "3").stdout
        frames = [json.loads(line) for line in said.splitlines()]
        self.assertEqual(len(frames), 3)
        for frame in frames:
            self.assertEqual(frame["error"], "")
            self.assertEqual([node["node_id"] for node in frame["nodes"]],
                             sorted(self.cluster.node_ids))
            self.assertEqual(frame["nodes"][0]["sends_bytes_per_second"], 0)
        times = [frame["now_unix_ms"] for frame in frames]
        self.assertEqual(times, sorted(set(times)))

    def test_watch_as_json_goes_on_while_nobody_answers(self) -> None:
        process = subprocess.Popen(self.cluster.command("watch", "--json", "--interval", "0.2"),
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        assert process.stdout is not None
        self.addCleanup(process.stdout.close)
        frames = map(json.loads, process.stdout)
        self.assertEqual(next(frames)["error"], "")
        self.cluster.coordinator.kill()
        stale = next(frame for frame in frames if frame["error"])
        self.assertEqual(len(stale["nodes"]), 7, "what was known last")
        self.cluster.coordinator.restart()
        self.cluster.wait_live(self.cluster.node_ids)
        self.assertTrue(next(frame for frame in frames if not frame["error"])["answered"])
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=HANG), -signal.SIGINT)


if __name__ == "__main__":
    case.main()
