#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libecpipe as programs use it: blocking and submitted calls of the C interface, on a cluster that
works, that is down, and that dies meanwhile. What the programs check, they say in C."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import case
from case import HANG, ClusterCase
from labkit.cluster import REQUESTOR


class LibraryCase(ClusterCase):
    block_bytes = 8_000_003
    file_bytes = 20_000_001

    def setUp(self) -> None:
        self.blocks = [self.block(0, index)["block_id"] for index in (1, 2)]
        nodes = {self.block(0, index)["node"] for index in range(6)}
        self.spare_node = next(node for node in self.cluster.node_ids if node not in nodes)

    def environment(self) -> dict[str, str]:
        """Whose certificate the programs show, where there are any."""
        if self.cluster.certificates is None:
            return dict(os.environ)
        files = self.cluster.certificates.settings(REQUESTOR)
        return {**os.environ, "ECPIPE_TLS_CA": files["ca"],
                "ECPIPE_TLS_CERT": files["certificate"], "ECPIPE_TLS_KEY": files["key"]}

    def run_client(self, *command: str | Path, timeout: float = 3 * HANG) -> str:
        done = subprocess.run([case.BIN_DIR / command[0], *command[1:]], capture_output=True,
                              text=True, timeout=timeout, env=self.environment())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def event_loop(self, scenario: str, coordinator: str | None = None) -> str:
        return self.run_client(
            "event_loop_client", scenario, coordinator or self.cluster.coordinator.address,
            self.cluster.block_file(self.blocks[0]), *self.blocks)

    def check_blocking_calls(self) -> None:
        output = self.work / "from-c"
        said = self.run_client("c_api_client", self.cluster.coordinator.address, output,
                               self.spare_node, *self.blocks)
        self.assertEqual(output.read_bytes(), self.bytes_of(self.blocks[0]))
        self.assertEqual(Path(f"{output}.other").read_bytes(), self.bytes_of(self.blocks[1]))
        stored = self.cluster.data_dir() / self.spare_node / self.blocks[0]
        self.assertEqual(stored.read_bytes(), output.read_bytes())
        # The host's OpenSSL cleans up at exit, after the last client is closed.
        self.assertEqual(said.splitlines(), ["ok", "openssl cleans up"])

    def check_dead_peers(self) -> None:
        """All daemons are killed while the program reads: it gets an error and no SIGPIPE."""
        program = subprocess.Popen(
            [case.BIN_DIR / "event_loop_client", "dead-peers", self.cluster.coordinator.address,
             self.source, *self.blocks],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=self.environment())
        self.addCleanup(lambda: program.poll() is None and program.kill())
        assert program.stdout is not None
        self.assertEqual(program.stdout.readline(), "reading\n")
        for helper in self.cluster.helpers.values():
            helper.kill()
        self.cluster.coordinator.kill()
        out, err = program.communicate("go on\n", timeout=5 * HANG)
        self.assertEqual((program.returncode, out), (0, "ok\n"), err)


class Library(LibraryCase):
    redis = True

    def test_blocking_calls(self) -> None:
        self.check_blocking_calls()
        self.assert_nothing_left()

    def test_cpp(self) -> None:
        output = self.work / "from-cpp"
        said = self.run_client("cpp_client", self.cluster.coordinator.address, output,
                               self.block(0, 2)["node"], self.blocks[1], self.blocks[0])
        self.assertEqual(said, "ok\n")
        self.assertEqual(output.read_bytes(), self.bytes_of(self.blocks[1]))
        self.assert_nothing_left()

    def test_many_reads_at_once(self) -> None:
        self.event_loop("many")
        self.assert_nothing_left()

    def test_whoever_takes_nothing_holds_helpers_up(self) -> None:
        self.event_loop("back-pressure")

    def test_cancel_in_each_state(self) -> None:
        self.event_loop("cancel")
        self.assert_nothing_left()

    def test_submitted_repairs(self) -> None:
        output = self.work / "submitted"
        self.run_client("event_loop_client", "repair", self.cluster.coordinator.address, output,
                        *self.blocks)
        self.assertEqual(output.read_bytes(), self.bytes_of(self.blocks[0]))
        self.assertEqual(Path(f"{output}.other").read_bytes(), self.bytes_of(self.blocks[1]))
        self.assert_nothing_left()

    def test_too_many_calls(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self.event_loop("too-many", f"127.0.0.1:{silent.getsockname()[1]}")

    def test_close_with_calls_under_way(self) -> None:
        self.event_loop("close")
        self.assert_nothing_left()

    def test_threads_take_no_signals(self) -> None:
        self.event_loop("signals")

    def test_no_coordinator(self) -> None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))  # and does not listen
            self.event_loop("down", f"127.0.0.1:{closed.getsockname()[1]}")

    def test_silent_coordinator(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self.event_loop("silent", f"127.0.0.1:{silent.getsockname()[1]}")


class DeadPeers(LibraryCase):
    def test_dead_peers(self) -> None:
        self.check_dead_peers()


class TlsLibrary(LibraryCase):
    tls = True

    def test_blocking_calls(self) -> None:
        self.check_blocking_calls()

    def test_many_reads_at_once(self) -> None:
        self.event_loop("many")

    def test_silent_coordinator(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self.event_loop("silent", f"127.0.0.1:{silent.getsockname()[1]}")


class TlsDeadPeers(LibraryCase):
    tls = True

    def test_dead_peers(self) -> None:
        self.check_dead_peers()


if __name__ == "__main__":
    case.main()
