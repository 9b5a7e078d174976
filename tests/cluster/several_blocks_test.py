#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several blocks of one stripe in one request: into files, and on nodes that store them."""

from __future__ import annotations

import itertools
import signal
import subprocess
from pathlib import Path

import case
from case import FAILED, HANG, NOT_FOUND, NO_SURVIVORS, SCHEMES, USAGE, ClusterCase, sha256
from labkit.process import wait_until

INTERRUPTED = 130


class SeveralCase(ClusterCase):
    redis = True
    code = "rs(7,4)"
    nodes = 10
    block_bytes = 300_007
    file_bytes = 4 * 300_007

    def ids(self, *indices: int) -> list[str]:
        return [self.block(0, index)["block_id"] for index in indices]

    def sha256s(self, block_ids: list[str]) -> list[str]:
        known = {block["block_id"]: block["sha256"]
                 for block in self.manifest["stripes"][0]["blocks"]}
        return [known[block_id] for block_id in block_ids]


class IntoFiles(SeveralCase):
    def test_schemes_and_transports(self) -> None:
        lost = self.ids(5, 0, 3)
        directory = self.work / "rebuilt"
        directory.mkdir()
        for scheme, transport in itertools.product(SCHEMES, ("tcp", "redis")):
            with self.subTest(scheme=scheme, transport=transport):
                report = self.cluster.cli_json("repair", *lost, "-d", directory, "--scheme", scheme,
                                               "--transport", transport)
                self.assertEqual([block["block_id"] for block in report["blocks"]], lost)
                self.assertEqual([block["sha256"] for block in report["blocks"]],
                                 self.sha256s(lost))
                self.assertEqual(report["bytes"], 3 * self.block_bytes)
                files = sorted(directory.iterdir())
                self.assertEqual([file.name for file in files], sorted(lost))
                for file in files:
                    self.assertEqual(sha256(file.read_bytes()), self.sha256s([file.name])[0])
                    file.unlink()
        self.assert_nothing_left()

    def test_each_helper_reads_its_block_once(self) -> None:
        read = self.grown(("block_bytes_read",), lambda: self.cluster.cli(
            "repair", *self.ids(0, 1), "-d", self.work, "--scheme", "rp", "-q",
            "--offset", "1000", "--length", "200000"))["block_bytes_read"]
        self.assertEqual(sorted(read)[-5:], [0, 200_000, 200_000, 200_000, 200_000])

    def test_what_is_refused(self) -> None:
        one, two = self.ids(0, 1)
        self.fails(USAGE, "repair", one, two, "-o", self.work / "out")
        self.fails(USAGE, "repair", one, two, "-d", self.work, "--sha256", "0" * 64)
        self.fails(USAGE, "repair", one, two)
        self.fails(USAGE, "repair", one, two, "-d", self.work, "--to", "node-8,node-9")
        self.fails(USAGE, "repair", one, one, "-d", self.work)
        self.assertIn("not of stripe", self.fails(USAGE, "repair", one, "other", "-d", self.work))
        self.fails(NOT_FOUND, "repair", "other", one, "-d", self.work)
        self.fails(NO_SURVIVORS, "repair", *self.ids(0, 1, 2, 3), "-d", self.work)
        self.fails(NOT_FOUND, "repair", one, two, "-d", self.work / "nowhere")
        self.assert_nothing_left()


class OnNodes(SeveralCase):
    def places(self) -> list[str]:
        return [block["node"] for block in self.cluster.cli_json("catalog", "list")[0]["blocks"]]

    def free_nodes(self) -> list[str]:
        """Those that have no block of the stripe."""
        places = self.places()
        return [node for node in self.cluster.node_ids if node not in places]

    def file_of(self, index: int) -> Path:
        return (self.cluster.helpers[self.places()[index]].root / self.ids(index)[0])

    def lose(self, *indices: int) -> list[str]:
        for index in indices:
            self.file_of(index).unlink()
        return self.ids(*indices)

    def assert_stored(self, indices: tuple[int, ...], nodes: list[str]) -> None:
        self.assertEqual([self.places()[index] for index in indices], nodes)
        for index in indices:
            self.assertEqual([sha256(self.file_of(index).read_bytes())],
                             self.sha256s(self.ids(index)))
        self.assertEqual(sorted(self.cluster.data_dir().glob("*/.ecpipe-tmp-*")), [])

    def test_schemes_and_transports(self) -> None:
        for scheme, transport in itertools.product(SCHEMES, ("tcp", "redis")):
            with self.subTest(scheme=scheme, transport=transport):
                to = self.free_nodes()[:2]
                lost = self.lose(1, 4)
                report = self.cluster.cli_json("repair", *lost, "--to", ",".join(to), "--scheme",
                                               scheme, "--transport", transport)
                self.assertEqual(report["scheme"], scheme)
                self.assertEqual([block["place"] for block in report["blocks"]], to)
                self.assert_stored((1, 4), to)
        self.assert_nothing_left()

    def test_a_single_block_goes_home(self) -> None:
        home = self.places()[2]
        said = self.cluster.cli("repair", *self.lose(2), "--to", home).stdout
        self.assertIn(f"-> {home}", said)
        self.assert_stored((2,), [home])

    def test_two_restarts_of_the_coordinator_forget_nothing(self) -> None:
        # Back to their own nodes: that the catalog names these proves nothing.
        home = [self.places()[index] for index in (2, 5)]
        process = self.begin(home, self.lose(2, 5))
        for end in (self.cluster.coordinator.stop, self.cluster.coordinator.kill):
            end()
            self.cluster.coordinator.restart()
        self.assertEqual(self.cluster.status()["repairs"][0]["state"], "running")
        error = process.communicate(timeout=240)[1]
        self.assertEqual(process.returncode, 0, error)
        self.cluster.wait_live(self.cluster.node_ids)
        self.assert_stored((2, 5), home)

    def test_plan(self) -> None:
        to = ",".join(self.free_nodes()[:2])
        text = self.cluster.cli("plan", *self.ids(1, 4), "--to", to, "--scheme", "mixed").stdout
        self.assertIn("stores block 1", text)
        self.assertIn("stores block 4", text)

    def begin(self, to: list[str], lost: list[str]) -> subprocess.Popen:
        """Begins a repair that takes some seconds, through the smallest slices."""
        process = subprocess.Popen(
            self.cluster.command("repair", *lost, "--to", ",".join(to), "--scheme", "rp",
                                 "--slice-size", "1"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        wait_until(lambda: set(to) <= set(self.helpers_at_work()), HANG, "the hosts to run")
        return process

    def await_failure(self, process: subprocess.Popen, code: int) -> str:
        error = process.communicate(timeout=HANG)[1]
        self.assertEqual(process.returncode, code, error)
        self.cluster.wait_idle()
        self.assertEqual(sorted(self.cluster.data_dir().glob("*/.ecpipe-tmp-*")), [])
        return error

    def test_an_interrupted_command_ends_its_repair(self) -> None:
        to = self.free_nodes()[:2]
        before = self.places()
        lost = self.lose(0, 6)
        process = self.begin(to, lost)
        process.send_signal(signal.SIGINT)
        self.await_failure(process, INTERRUPTED)
        self.assertEqual(self.cluster.status()["repairs"][0]["state"], "cancelled")
        self.assertEqual(self.places(), before)
        self.cluster.cli("repair", *lost, "--to", ",".join(to))
        self.assert_stored((0, 6), to)

    def test_a_host_that_is_killed(self) -> None:
        to = self.free_nodes()[:2]
        lost = self.lose(0, 6)
        process = self.begin(to, lost)
        host = self.cluster.helpers[to[1]]
        host.kill()
        error = process.communicate(timeout=HANG)[1]
        self.assertEqual(process.returncode, FAILED, error)
        self.assertIn(f"stored 1 of 2 blocks; {lost[1]} on {to[1]}: ", error)
        self.assert_stored((0,), to[:1])  # a bad target does not cost the other one its block
        host.restart()
        self.cluster.wait_live([to[1]])
        self.cluster.cli("repair", lost[1], "--to", to[1])
        self.assert_stored((0, 6), to)

    def test_a_coordinator_that_is_killed(self) -> None:
        to = self.free_nodes()[:2]
        process = self.begin(to, self.lose(0, 6))
        self.cluster.coordinator.kill()
        self.cluster.coordinator.restart()
        output, error = process.communicate(timeout=240)
        self.assertEqual(process.returncode, 0, error)
        self.assertIn(f"-> {to[0]}, {to[1]}", output)
        self.cluster.wait_live(self.cluster.node_ids)
        self.assert_stored((0, 6), to)


if __name__ == "__main__":
    case.main()
