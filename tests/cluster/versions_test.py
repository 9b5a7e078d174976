#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of two versions in one cluster: no wrong byte, and no failure but of repairs that need
what an older program lacks.

Without --old-bin the older programs are stand-ins: today's, which announce no feature and lose the
fields that a program before features did not know. With --old-bin DIR they are the real programs of
another revision (`tests/cluster/build_revision.sh REVISION DIR` builds them)."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import case
from case import HANG, NO_SURVIVORS, UNAVAILABLE, ClusterCase, sha256
from labkit.cluster import EcpipeDaemon

OLD_BIN: Path | None = None
OLDER = ("--test-features", "none")
WORKERS = 3
ROTATED = "rotated-rs(9,6,2,4096)"


@dataclass
class Load:
    """What the workers saw."""

    done: int = 0
    lacking: int = 0  # refused because somebody lacks a feature
    away: int = 0     # the coordinator was away
    bad: list[str] = field(default_factory=list)


class Versions(ClusterCase):
    nodes = 10
    code = "rs(7,4)"  # a verified read goes on while one node restarts
    file_bytes = 4_000_001

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        data = cls.cluster.data_dir()
        cls.cluster.cli("encode", cls.source, "--out", data, "--code", ROTATED, "--block-size",
                        str(100 * 8192), "--name", "rotated", "--nodes",
                        ",".join(cls.cluster.node_ids))
        cls.cluster.cli("catalog", "load", data / "rotated.manifest.json")
        cls.newer = {daemon.name: list(daemon.command)
                     for daemon in (cls.cluster.coordinator, *cls.cluster.helpers.values())}
        # By file: the ids of each stripe. And the SHA-256 of each block.
        cls.stripes: dict[str, list[list[str]]] = {}
        cls.want: dict[str, str] = {}
        for name in ("file", "rotated"):
            manifest = json.loads((data / f"{name}.manifest.json").read_text())
            cls.stripes[name] = [[block["block_id"] for block in stripe["blocks"]]
                                 for stripe in manifest["stripes"]]
            cls.want.update((block["block_id"], block["sha256"]) for stripe in manifest["stripes"]
                            for block in stripe["blocks"])

    def setUp(self) -> None:
        self.older: set[str] = set()
        for daemon in (self.cluster.coordinator, *self.cluster.helpers.values()):
            if list(daemon.command) != self.newer[daemon.name]:
                self.become(daemon, old=False)
        self.cluster.wait_live(self.cluster.node_ids)

    def become(self, daemon: EcpipeDaemon, old: bool) -> None:
        """Ends it as an upgrade does, and starts it in that version."""
        words = self.newer[daemon.name]
        if old and OLD_BIN:
            words = [OLD_BIN / Path(words[0]).name, *words[1:]]
        elif old:
            words = [*words, *OLDER]
        daemon.command = words
        daemon.restart()
        (self.older.add if old else self.older.discard)(daemon.name)

    def ecpipe(self, old: bool, *arguments: str) -> list[str]:
        words = self.cluster.command(*arguments)
        if old and OLD_BIN:
            return [str(OLD_BIN / "ecpipe"), *words[1:]]
        return [words[0], *OLDER, *words[1:]] if old else words

    def ask(self, old: bool, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(self.ecpipe(old, "-q", *arguments), capture_output=True,
                              timeout=HANG, check=False)

    # ---- Load ------------------------------------------------------------------------------

    def question(self, dice: random.Random, plain: bool) -> list[str]:
        """`plain`: one that a program before features understands."""
        block, other = dice.sample(dice.choice(self.stripes["file"]), 2)
        kind = dice.randrange(3 if plain else 6)
        if kind < 3:
            return ["read", block, "--scheme", ("rp", "rp-cyclic", "auto")[kind]]
        if kind == 3:
            return ["read", block, "--verify", "parity", "--scheme", "rp"]
        if kind == 4:
            return ["repair", block, other, "--scheme", dice.choice(("conventional", "auto"))]
        return ["read", dice.choice(self.stripes["rotated"][0]), "--scheme", "rp"]

    def ask_on(self, seed: int, plain: bool, stop: threading.Event, load: Load) -> None:
        dice = random.Random(seed)
        folder = self.work / f"worker-{seed}"
        folder.mkdir(exist_ok=True)
        while not stop.is_set():
            old = dice.random() < 0.4
            words = self.question(dice, plain)
            into = ["-d", str(folder)] if words[0] == "repair" else []
            done = self.ask(old, *words, *into)
            self.judge(old, words, done, folder, load)

    def judge(self, old: bool, words: Sequence[str], done: subprocess.CompletedProcess[bytes],
              folder: Path, load: Load) -> None:
        said = f"{'older ' if old else ''}{words}: {done.returncode} {done.stderr.decode()}"
        if done.returncode == NO_SURVIVORS and "lacks" in said and (old or self.older):
            load.lacking += 1
        elif done.returncode == UNAVAILABLE and self.away:
            load.away += 1
        elif done.returncode != 0:
            load.bad.append(said)
        else:
            load.done += 1
            got = ({words[1]: done.stdout} if words[0] == "read" else
                   {block: (folder / block).read_bytes() for block in words[1:3]})
            load.bad += [f"wrong bytes of {block}: {said}" for block, content in got.items()
                         if sha256(content) != self.want[block]]

    def under_load(self, change, plain: bool) -> Load:
        load, stop, self.away = Load(), threading.Event(), False
        workers = [threading.Thread(target=self.ask_on, args=(seed, plain, stop, load))
                   for seed in range(WORKERS)]
        for worker in workers:
            worker.start()
        try:
            change()
        finally:
            stop.set()
            for worker in workers:
                worker.join()
        print(f"{self._testMethodName}: {load.done} done, {load.lacking} refused for what an older "
              f"program lacks, {load.away} without a coordinator", file=sys.stderr)
        self.assertEqual(load.bad, [])
        self.assertGreater(load.done, 0)
        return load

    # ---- Tests -----------------------------------------------------------------------------

    def test_helpers_are_upgraded_one_by_one_and_taken_back(self) -> None:
        def roll() -> None:
            for old in (True, False):
                for node in self.cluster.node_ids:
                    self.become(self.cluster.helpers[node], old)
                    self.cluster.wait_live([node])
                time.sleep(1)

        load = self.under_load(roll, plain=False)
        self.assertGreater(load.lacking, 0, "a stand-in that lacks nothing shows nothing")

    def test_the_coordinator_is_the_older_one(self) -> None:
        def roll() -> None:
            for old in (True, False):
                self.away = True
                self.become(self.cluster.coordinator, old)
                self.cluster.wait_live(self.cluster.node_ids)
                self.away = False
                for node in self.cluster.node_ids[:3]:
                    self.become(self.cluster.helpers[node], not old)
                    self.cluster.wait_live([node])

        self.under_load(roll, plain=OLD_BIN is None)

    def test_who_lacks_something_is_left_out_by_name(self) -> None:
        block = self.stripes["rotated"][0][0]
        self.assertEqual(sha256(self.ask(False, "read", block, "--scheme", "rp").stdout),
                         self.want[block])
        for node in self.cluster.node_ids[:6]:
            self.become(self.cluster.helpers[node], old=True)
        self.cluster.wait_live(self.cluster.node_ids)
        done = self.ask(False, "read", block, "--scheme", "rp")
        self.assertEqual(done.returncode, NO_SURVIVORS, done.stderr)
        self.assertIn(b"the version of its helper lacks sub-blocks", done.stderr)
        # Nobody on the path needs anything to add partial sums.
        plain = self.stripes["file"][0][0]
        self.assertEqual(sha256(self.ask(True, "read", plain, "--scheme", "rp").stdout),
                         self.want[plain])
        verified = self.ask(True, "read", plain, "--scheme", "rp", "--verify", "parity")
        self.assertEqual(verified.returncode, NO_SURVIVORS, verified.stderr)
        self.assertIn(b"the requestor's version lacks check-rows", verified.stderr)


if __name__ == "__main__":
    if "--old-bin" in sys.argv:
        at = sys.argv.index("--old-bin")
        OLD_BIN = Path(sys.argv[at + 1]).resolve()
        del sys.argv[at:at + 2]
    case.main()
