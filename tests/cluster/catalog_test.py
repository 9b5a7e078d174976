#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The life of the catalog: checked against what helpers have, copied, thinned; nodes that are
forgotten; recoveries that say what was verified; and dry runs, which change nothing."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import case
from case import FAILED, HANG, NO_SURVIVORS, NOT_FOUND, UNAVAILABLE, USAGE, ClusterCase
from labkit.process import wait_until


class CatalogCase(ClusterCase):
    block_bytes = 100_003
    file_bytes = 750_001

    def setUp(self) -> None:
        self.cluster.wait_live(self.cluster.node_ids)
        self.cluster.wait_settled()

    def stripes(self) -> list[dict[str, Any]]:
        return self.cluster.cli_json("catalog", "list", "--limit", "1000")

    def check(self) -> dict[str, Any]:
        """What the check says, whatever its exit code."""
        return json.loads(self.cluster.cli("catalog", "check", "--json", check=False).stdout)

    def wait_check(self, wrong: dict[str, str]) -> None:
        """Until the check finds these blocks, and no others, wrong; a helper that is late is asked
        again."""
        def found() -> bool:
            return {each["block_id"]: each["verdict"] for each in self.check()["wrong"]} == wrong
        wait_until(found, HANG, f"the check to find {wrong}")

    def effects(self, *arguments: str) -> str:
        return "\n".join(self.cluster.cli_json(*arguments, "--dry-run")["effects"])

    def blocks_on(self, node: str) -> list[dict[str, str]]:
        return [block for stripe in self.manifest["stripes"] for block in stripe["blocks"]
                if block["node"] == node]

    def kill(self, node: str) -> None:
        self.cluster.helpers[node].kill()
        wait_until(lambda: self.cluster.node_status()[node]["state"] == "dead", HANG,
                   f"{node} to be dead")


class Check(CatalogCase):
    def test_every_block_is_looked_for(self) -> None:
        self.wait_check({})
        self.assertIn("12 of 12 blocks verified", self.cluster.cli("catalog", "check").stdout)
        lost, cut = self.block(0, 0), self.block(1, 1)
        whole = self.bytes_of(lost["block_id"]), self.bytes_of(cut["block_id"])
        paths = [self.cluster.block_file(block["block_id"]) for block in (lost, cut)]
        taken = {block["node"] for block in self.manifest["stripes"][0]["blocks"]}
        other = next(node for node in self.cluster.node_ids if node not in taken)
        paths[0].rename(self.cluster.block_path(other, lost["block_id"]))
        paths[1].write_bytes(whole[1][:-1])
        # Its checksum file says that it was longer.
        self.wait_check({lost["block_id"]: "missing", cut["block_id"]: "unreadable"})
        self.assertEqual({each["block_id"]: each["also_on"] for each in self.check()["wrong"]},
                         {lost["block_id"]: [other], cut["block_id"]: []})
        self.assertIn(f"a file of it is on {other}",
                      self.cluster.cli("catalog", "check", check=False).stdout)
        self.cluster.block_path(other, lost["block_id"]).unlink()
        said = self.cluster.cli("catalog", "check", check=False)
        self.assertEqual(said.returncode, FAILED)
        self.assertIn("10 of 12 blocks verified", said.stdout)
        self.assertIn(cut["node"], said.stdout)
        for path, content in zip(paths, whole):
            path.write_bytes(content)
        self.wait_check({})

    def test_a_dead_node_cannot_say(self) -> None:
        block = self.block(0, 2)
        self.kill(block["node"])
        self.wait_check({each["block_id"]: "not asked" for each in self.blocks_on(block["node"])})
        self.fails(UNAVAILABLE, "catalog", "check")
        self.cluster.helpers[block["node"]].restart()

    def test_a_file_that_the_catalog_does_not_have(self) -> None:
        node = self.cluster.node_ids[0]
        stray = self.cluster.block_path(node, "stray")
        stray.write_bytes(b"stray")
        self.cluster.helpers[node].kill()
        self.cluster.helpers[node].restart()  # it counts anew at its start
        self.cluster.wait_live(self.cluster.node_ids)
        wait_until(lambda: self.check()["extra"] == {node: 1}, HANG, "the stray to be counted")
        stray.unlink()

    def test_a_range_of_none_reads_nothing(self) -> None:
        block, empty = self.block(0, 0)["block_id"], self.work / "empty"
        empty.write_bytes(b"older")
        self.assertEqual(self.cluster.cli("read", block, "--length", "0").stdout, "")
        self.cluster.cli("read", block, "--offset", "5", "--length", "0", "-o", empty)
        self.assertEqual(empty.read_bytes(), b"")
        self.fails(NOT_FOUND, "read", "nowhere", "--length", "0")


class Life(CatalogCase):
    def test_export_and_import(self) -> None:
        lines = self.work / "catalog.jsonl"
        self.cluster.cli("catalog", "export", lines)
        exported = [json.loads(line) for line in lines.read_text().splitlines()]
        self.assertEqual([stripe["stripe_id"] for stripe in exported],
                         [stripe["stripe_id"] for stripe in self.stripes()])
        self.assertEqual(exported[0]["blocks"][0]["sha256"], self.block(0, 0)["sha256"])
        self.assertEqual(self.cluster.cli("catalog", "export", "-").stdout, lines.read_text())

        names = [stripe["stripe_id"] for stripe in exported]
        self.assertIn("nowhere", self.fails(NOT_FOUND, "catalog", "remove", names[0], "nowhere"))
        self.assertEqual(len(self.stripes()), 2, "all or none")
        self.cluster.cli("catalog", "remove", *names)
        self.assertEqual(self.stripes(), [])
        self.assertEqual(self.cluster.cli("catalog", "export", "-").stdout, "")
        self.fails(NOT_FOUND, "catalog", "locate", self.block(0, 0)["block_id"])
        self.assertTrue(self.cluster.block_path(self.block(0, 0)["node"],
                                                self.block(0, 0)["block_id"]).exists())
        self.fails(NOT_FOUND, "catalog", "remove", names[0])

        self.refuse_bad_files(lines.read_text())
        self.assertIn("imported 2 stripes", self.cluster.cli("catalog", "import", lines).stdout)
        self.cluster.coordinator.kill()
        self.cluster.coordinator.restart()
        self.cluster.wait_live(self.cluster.node_ids)
        self.cluster.cli("catalog", "export", self.work / "again.jsonl")
        self.assertEqual((self.work / "again.jsonl").read_text(), lines.read_text())
        self.wait_check({})
        self.repair(self.block(0, 0)["block_id"], "--sha256", self.block(0, 0)["sha256"])

    def refuse_bad_files(self, good: str) -> None:
        """A file with anything wrong in it changes nothing."""
        first, second = good.splitlines()
        other = json.loads(second)
        other["stripe_id"] = "other"
        wrong_code = json.loads(second) | {"code": "rs(1,2)"}
        no_node = json.loads(second)
        no_node["blocks"][0]["node"] = "\x1b[31mred"
        for text, why in ((good + "{}\n", "bad.jsonl:3"),
                          (first + "\n" + json.dumps(no_node) + "\n", r"'\x1b[31mred'"),
                          (good + first + "\n", "twice"),
                          (good + json.dumps(other) + "\n", "bad.jsonl"),
                          (first + "\n" + json.dumps(wrong_code) + "\n", "RS(1,2)")):
            bad = self.work / "bad.jsonl"
            bad.write_text(text)
            said = self.cluster.cli("catalog", "import", bad, check=False)
            self.assertNotEqual(said.returncode, 0)
            self.assertIn(why, said.stderr)
            self.assertIn("nothing was imported", said.stderr)
            self.assertEqual(self.stripes(), [])
        self.fails(NOT_FOUND, "catalog", "import", self.work / "nowhere.jsonl")


class Damaged(CatalogCase):
    def damage(self, stripe: str) -> None:
        self.cluster.coordinator.kill()
        directory = self.cluster.coordinator.settings["coordinator"]["data_directory"]
        with contextlib.closing(sqlite3.connect(Path(directory) / "catalog.db")) as db, db:
            db.execute("UPDATE stripes SET block_bytes = block_bytes + 1 WHERE stripe_id = ?",
                       [stripe])
        self.cluster.coordinator.restart()
        self.cluster.wait_live(self.cluster.node_ids)

    def test_damaged_stripes_are_named_and_the_others_listed(self) -> None:
        lines = self.work / "catalog.jsonl"
        self.cluster.cli("catalog", "export", lines)
        damaged, other = (stripe["stripe_id"] for stripe in self.stripes())
        self.damage(damaged)
        named = f"1 stripe of the catalog cannot be read: {damaged};"
        for options in ([], ["--json"], ["--limit", "1"]):
            said = self.cluster.cli("catalog", "list", *options, check=False)
            self.assertEqual(said.returncode, FAILED)
            self.assertIn(named, said.stderr)
            self.assertIn(other, said.stdout)
            self.assertNotIn(damaged, said.stdout)
        listed = self.cluster.cli("catalog", "list", "--json", check=False).stdout
        self.assertEqual([stripe["stripe_id"] for stripe in json.loads(listed)], [other])
        self.assertEqual(self.cluster.cli("catalog", "list", "--after", damaged).stderr, "")
        checked = self.cluster.cli("catalog", "check", check=False)
        self.assertEqual(checked.returncode, FAILED)
        self.assertIn("6 of 6 blocks verified", checked.stdout)
        self.assertIn(named, checked.stderr)
        self.assertIn(named, self.fails(FAILED, "catalog", "export", self.work / "part.jsonl"))
        self.assertFalse((self.work / "part.jsonl").exists())
        # What is damaged can be put again.
        self.cluster.cli("catalog", "import", lines)
        self.assertEqual([stripe["stripe_id"] for stripe in self.stripes()], [damaged, other])


class InUse(CatalogCase):
    block_bytes = 16 << 20  # a read of one can be held, since no sockets hold as much
    file_bytes = 60 << 20   # one stripe

    def test_a_stripe_in_use_is_not_removed(self) -> None:
        stripe, block = self.stripes()[0]["stripe_id"], self.block(0, 1)
        lines = self.work / "in-use.jsonl"
        self.cluster.cli("catalog", "export", lines)
        process = self.begin_read(block["block_id"])
        self.assertIn("being repaired", self.fails(NO_SURVIVORS, "catalog", "remove", stripe))
        # Nor is another one loaded under its id.
        self.cluster.cli("catalog", "import", lines)
        changed = json.loads(lines.read_text())
        changed["blocks"][0]["node"] = "elsewhere"
        lines.write_text(json.dumps(changed) + "\n")
        for dry in ([], ["--dry-run"]):
            self.assertIn("being repaired",
                          self.fails(NO_SURVIVORS, "catalog", "import", lines, *dry))
        process.kill()
        process.wait()
        self.kill(block["node"])
        self.cluster.cli("recover-node", block["node"], "--detach", "--delay", "1000")
        wait_until(lambda: self.cluster.node_status() and
                   "being recovered" in self.cluster.cli("catalog", "remove", stripe,
                                                         check=False).stderr,
                   HANG, "the read to end")
        self.assertEqual(len(self.stripes()), 1)
        self.places_do_not_change()
        self.cluster.cli("recovery", "cancel", "1")
        self.cluster.cli("catalog", "remove", stripe)
        self.assertEqual(self.stripes(), [])


    def places_do_not_change(self) -> None:
        """A recovery moves blocks, so an export from before it must not be imported."""
        lines = self.work / "catalog.jsonl"
        self.cluster.cli("catalog", "export", lines)
        self.cluster.cli("catalog", "import", lines)
        changed = json.loads(lines.read_text())
        changed["blocks"][0]["node"] = "elsewhere"
        lines.write_text(json.dumps(changed) + "\n")
        for dry in ([], ["--dry-run"]):
            self.assertIn("moves blocks",
                          self.fails(NO_SURVIVORS, "catalog", "import", lines, *dry))


class Forget(CatalogCase):
    nodes = 8

    def test_a_node_that_is_gone(self) -> None:
        node = self.block(0, 1)["node"]
        lost = self.blocks_on(node)
        self.assertIn("--force", self.fails(NO_SURVIVORS, "nodes", "forget", node))
        self.fails(NOT_FOUND, "nodes", "forget", "nobody")
        self.kill(node)
        self.assertIn(f"{len(lost)} blocks, ", self.fails(NO_SURVIVORS, "nodes", "forget", node))
        self.cluster.cli("recover-node", node, "--detach", "--delay", "1000")
        self.assertIn("being recovered",
                      self.fails(NO_SURVIVORS, "nodes", "forget", node, "--force"))
        self.cluster.cli("recovery", "cancel", "1")
        self.assertIn(node, self.cluster.node_status())
        self.cluster.cli("recover-node", node, "--delay", "0")
        # It has nothing left: it may be forgotten, and with that its limits.
        self.cluster.cli("limits", "set", "--node", node, "--max-sessions", "3")
        self.cluster.cli("nodes", "forget", node)
        self.assertNotIn(node, self.cluster.node_status())
        self.assertNotIn(node, [each["node"] for each in self.cluster.cli_json("limits")["nodes"]])
        self.fails(NOT_FOUND, "nodes", "forget", node)
        # A node that lives comes back by itself.
        other = self.block(0, 2)["node"]
        self.cluster.cli("nodes", "forget", other, "--force")
        wait_until(lambda: self.cluster.node_status().get(other, {}).get("state") == "live", HANG,
                   "the node to register again")
        self.cluster.helpers[node].restart()
        self.cluster.wait_live(self.cluster.node_ids)


class Clean(CatalogCase):
    nodes = 8

    def outcomes(self, *arguments: str) -> dict[str, str]:
        said = self.cluster.cli_json("nodes", "clean", "--older-than", "0s", *arguments)
        return {each["block_id"]: each["kept_because"] for each in said["copies"]}

    def test_a_node_that_came_back(self) -> None:
        node = self.block(0, 1)["node"]
        lost = self.blocks_on(node)
        self.kill(node)
        self.cluster.cli("recover-node", node, "--delay", "0")
        self.assertIn("start its helper", self.fails(NO_SURVIVORS, "nodes", "clean", node))
        self.cluster.helpers[node].restart()
        self.cluster.wait_live(self.cluster.node_ids)
        stranger = self.cluster.block_path(node, "stranger")
        stranger.write_bytes(b"of something else")
        # The holder of one of them has lost it: this copy may be the last.
        only = lost[0]["block_id"]
        holder = next(block["node"] for stripe in self.stripes() for block in stripe["blocks"]
                      if block["block_id"] == only)
        at_holder = self.cluster.block_path(holder, only)
        content = at_holder.read_bytes()
        at_holder.unlink()
        young = self.cluster.cli_json("nodes", "clean", node)
        self.assertEqual((young["removed"], young["kept"]), (0, len(lost) + 1))
        expected = {block["block_id"]: "" for block in lost}
        expected["stranger"] = "the catalog does not have it"
        for dry in (["--dry-run"], []):
            found = self.outcomes(node, *dry)
            self.assertIn(f"{holder} does not have it", found[only])
            self.assertEqual(found, {**expected, only: found[only]})
        gone = [block["block_id"] for block in lost if block["block_id"] != only]
        for block_id in gone:
            self.assertFalse(self.cluster.block_path(node, block_id).exists())
        self.assertTrue(self.cluster.block_path(node, only).exists())
        # It comes back rotten: with the right length, and its SHA-256 is in the catalog.
        at_holder.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        self.assertEqual(self.outcomes(node, "--dry-run")[only], "")
        self.assertRegex(self.outcomes(node)[only], "it is (suspect|corrupt)")
        self.assertTrue(self.cluster.block_path(node, only).exists())
        at_holder.write_bytes(content)
        self.cluster.cli("corrupt", "check", only)
        said = self.cluster.cli("nodes", "clean", node, "--older-than", "0s").stdout
        self.assertIn("1 copy, 97.7 KiB removed; kept 1 copy, 17 B", said)
        stranger.unlink()
        self.assertEqual(sorted(path.name for path in stranger.parent.iterdir()), [])
        self.wait_check({})
        self.assertEqual(self.outcomes(node), {})


class Recover(CatalogCase):
    nodes = 8

    def test_a_recovery_says_what_was_verified(self) -> None:
        node = self.block(0, 1)["node"]
        lost = self.blocks_on(node)
        self.kill(node)
        for block in lost:
            self.cluster.block_path(node, block["block_id"]).unlink()
        report = self.cluster.cli_json("recover-node", node, "--delay", "0")
        self.assertEqual((report["state"], report["verified_blocks"], report["not_verified"]),
                         ("done", len(lost), []))
        said = self.cluster.cli("recover-node", node, "--delay", "0").stdout
        self.assertIn("0 of 0 blocks verified", said)
        self.cluster.helpers[node].restart()

    def test_what_is_not_rebuilt_is_not_verified(self) -> None:
        node = self.block(0, 2)["node"]
        self.kill(node)
        process = subprocess.Popen(
            self.cluster.command("-q", "recover-node", node, "--delay", "1000"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: process.poll() is None and process.kill())

        def running() -> list[str]:
            return [str(each["recovery_id"]) for each in self.cluster.cli_json("recovery", "list")
                    if each["state"] == "running"]
        wait_until(lambda: len(running()) == 1, HANG, "the recovery to begin")
        self.cluster.cli("recovery", "cancel", running()[0])
        output, said = process.communicate(timeout=HANG)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn(f"0 of {len(self.blocks_on(node))} blocks verified", output)
        self.assertIn("cancelled", said)
        self.cluster.helpers[node].restart()


class DryRuns(CatalogCase):
    def test_catalog(self) -> None:
        lines = self.work / "catalog.jsonl"
        self.cluster.cli("catalog", "export", lines)
        names = [stripe["stripe_id"] for stripe in self.stripes()]
        self.assertIn("leave 2 as they are", self.effects("catalog", "import", str(lines)))
        self.assertIn("would remove 2 stripes with 12 blocks",
                      self.effects("catalog", "remove", *names))
        self.assertEqual(len(self.stripes()), 2, "a dry run removes nothing")
        self.fails(NOT_FOUND, "catalog", "remove", "nowhere", "--dry-run")
        changed = json.loads(lines.read_text().splitlines()[0])
        changed["blocks"][0]["node"] = "elsewhere"
        lines.write_text(json.dumps(changed) + "\n")
        self.assertIn("add 0 stripes, replace 1", self.effects("catalog", "import", str(lines)))
        self.cluster.cli("catalog", "remove", *names)
        self.assertIn("would add 1 stripes", self.effects("catalog", "import", str(lines)))
        self.assertIn("would add 2 stripes",
                      self.effects("catalog", "load", str(self.manifest_path)))
        self.assertEqual(self.stripes(), [], "a dry run adds nothing")
        self.cluster.cli("catalog", "load", self.manifest_path)

    def test_limits_and_repairs(self) -> None:
        before = self.cluster.cli_json("limits")
        self.assertIn("no limit becomes 100.0 Mb/s",
                      self.effects("limits", "set", "--cluster", "--repair-mbit", "100"))
        node = self.cluster.node_ids[0]
        self.assertIn("as configured becomes 7",
                      self.effects("limits", "set", "--node", node, "--max-sessions", "7"))
        self.fails(USAGE, "limits", "set", "--cluster", "--repair-mbit", "0.5", "--dry-run")
        self.assertEqual(self.cluster.cli_json("limits")["cluster"], before["cluster"])
        self.fails(NOT_FOUND, "corrupt", "clear", self.block(0, 0)["block_id"], "--dry-run")
        output = self.work / "dry"
        self.assertIn("rp", self.cluster.cli("repair", self.block(0, 0)["block_id"], "-o", output,
                                             "--scheme", "rp", "--dry-run").stdout)
        self.assertFalse(output.exists())

    def test_nodes(self) -> None:
        node = self.block(0, 1)["node"]
        self.fails(NO_SURVIVORS, "recover-node", node, "--dry-run")
        self.fails(NO_SURVIVORS, "nodes", "forget", node, "--dry-run")
        self.kill(node)
        would = self.effects("recover-node", node, "--delay", "0")
        self.assertIn(f"of {len(self.blocks_on(node))} blocks", would)
        self.assertIn("at once", would)
        self.assertEqual(self.cluster.cli_json("recovery", "list"), [], "it has not begun")
        self.assertIn("would forget", self.effects("nodes", "forget", node, "--force"))
        self.assertIn(node, self.cluster.node_status())
        self.fails(NOT_FOUND, "recovery", "cancel", "77", "--dry-run")
        self.cluster.cli("recover-node", node, "--detach", "--delay", "1000")
        self.assertIn("would cancel recovery 1", self.effects("recovery", "cancel", "1"))
        self.assertEqual(self.cluster.cli_json("recovery", "show", "1")["state"], "running")
        self.cluster.cli("recovery", "cancel", "1")
        self.cluster.helpers[node].restart()


if __name__ == "__main__":
    case.main()
