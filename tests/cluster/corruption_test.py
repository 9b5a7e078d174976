#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Blocks with a flipped bit: found by checksum files or by parity, never handed over, reported,
left out from then on, and repaired by the command that the status proposes."""

from __future__ import annotations

import json
import random
import shlex
import shutil
import subprocess
import unittest
from pathlib import Path
from typing import Any, Callable

import case
from case import FAILED, HANG, NO_SURVIVORS, SCHEMES, USAGE, ClusterCase, sha256
from labkit.process import wait_until


class CorruptionCase(ClusterCase):
    nodes = 8
    code = "rs(7,4)"

    def setUp(self) -> None:
        # Of survivors that do equally much the first are read, and so a corrupt one.
        self.cluster.wait_settled()

    def flip(self, block_id: str, at: int = 500_000) -> None:
        path = self.cluster.block_file(block_id)
        content = bytearray(path.read_bytes())
        content[at] ^= 0x10
        # In place: the file must stay the one that it is.
        with path.open("r+b") as file:
            file.write(content)

    def checksum_file(self, block_id: str) -> Path:
        path = self.cluster.block_file(block_id)
        return path.with_name(f".crc32c.{path.name}")

    def corrupt_blocks(self) -> list[dict[str, Any]]:
        return self.cluster.cli_json("status")["corrupt_blocks"]

    def wait_reported(self, block: dict[str, str]) -> dict[str, Any]:
        # Others that were read with it may be suspects until they have been checked.
        wait_until(lambda: [(each["block_id"], each["node"]) for each in self.corrupt_blocks()]
                   == [(block["block_id"], block["node"])], HANG, "the corrupt block to be known")
        known = self.corrupt_blocks()
        self.assertIn(block["block_id"], self.cluster.cli("status").stdout)
        return known[0]

    def repair_as_proposed(self, known: dict[str, Any], content: bytes) -> None:
        command = shlex.split(known["repair"])
        self.assertEqual(command[0], "ecpipe")
        self.cluster.cli(*command[1:])
        self.assertEqual(self.bytes_of(known["block_id"]), content)
        self.assertEqual(self.corrupt_blocks(), [])
        self.repair(known["block_id"], "--scheme", "direct", "--sha256", sha256(content))

    def read_some(self, block_id: str, *arguments: str) -> tuple[int, bytes, str]:
        done = self.cluster.cli("read", block_id, "-o", self.work / "read", *arguments,
                                check=False)
        path = self.work / "read"
        return done.returncode, path.read_bytes() if path.exists() else b"", done.stderr


class WithChecksumFiles(CorruptionCase):
    def test_flipped_bit(self) -> None:
        lost, bad = self.block(0, 0), self.block(0, 1)
        content = self.bytes_of(bad["block_id"])
        self.flip(bad["block_id"])
        # Ends with the reason, or goes on without the block: wrong bytes it never gives.
        done = self.cluster.cli("repair", lost["block_id"], "-o", self.work / "first",
                                "--scheme", "rp", check=False)
        if done.returncode == 0:
            self.assertEqual(sha256((self.work / "first").read_bytes()), lost["sha256"])
        else:
            self.assertEqual(done.returncode, FAILED, done.stderr)
            self.assertIn(bad["block_id"], done.stderr)
            self.assertIn("do not match their checksum", done.stderr)
            self.assertFalse((self.work / "first").exists())
        known = self.wait_reported(bad)
        self.assertIn("499712", known["reason"])
        for scheme in SCHEMES:
            report = self.repair(lost["block_id"], "--scheme", scheme, "--sha256", lost["sha256"])
            self.assertEqual(report["attempts"], 1)
        said = self.fails(NO_SURVIVORS, "read", bad["block_id"], "--scheme", "direct",
                          "-o", self.work / "never")
        self.assertIn("it is corrupt", said)
        self.repair_as_proposed(known, content)
        self.assert_decodes()
        self.assert_nothing_left()

    def test_truncated_block_is_known_as_it_is_opened(self) -> None:
        lost, bad = self.block(1, 0), self.block(1, 1)
        content = self.bytes_of(bad["block_id"])
        self.cluster.block_file(bad["block_id"]).write_bytes(content[:-7])
        report = self.repair(lost["block_id"], "--sha256", lost["sha256"])
        self.assertEqual(report["attempts"], 2)
        self.repair_as_proposed(self.wait_reported(bad), content)

    def test_stored_blocks_have_checksums(self) -> None:
        moved = self.block(0, 2)
        old = self.cluster.block_file(moved["block_id"])
        content = old.read_bytes()
        taken = {block["node"] for block in self.manifest["stripes"][0]["blocks"]}
        spare = next(node for node in self.cluster.node_ids if node not in taken)
        old.unlink()
        self.cluster.cli("repair", moved["block_id"], "--to", spare)
        path = next(self.cluster.data_dir().glob(f"{spare}/{moved['block_id']}"))
        self.assertEqual(path.read_bytes(), content)
        with path.open("r+b") as file:
            file.write(bytes([content[0] ^ 1]))
        said = self.fails(NO_SURVIVORS, "read", moved["block_id"], "--scheme", "direct",
                          "-o", self.work / "never")
        self.assertIn("do not match their checksum", said)
        known = self.wait_reported({**moved, "node": spare})
        self.cluster.cli(*shlex.split(known["repair"])[1:])
        self.assertEqual(path.read_bytes(), content)
        # Back where the manifest has it, for the other tests.
        self.cluster.cli("repair", moved["block_id"], "--to", moved["node"])

    def test_wrong_checksum_file_is_undone_by_a_repair(self) -> None:
        bad = self.block(0, 3)
        content = self.bytes_of(bad["block_id"])
        stale = self.checksum_file(self.block(0, 4)["block_id"]).read_bytes()
        self.checksum_file(bad["block_id"]).write_bytes(stale)
        self.fails(NO_SURVIVORS, "read", bad["block_id"], "--scheme", "direct",
                   "-o", self.work / "never")
        self.repair_as_proposed(self.wait_reported(bad), content)

    def load_another(self, seed: int, but: int | None = None) -> list[dict[str, str]]:
        """Encodes other data under the same name, and loads them. The blocks of its only stripe, of
        which the one with the index `but` does not get to its node."""
        source, made = self.work / "other", self.work / f"made-{seed}"
        source.write_bytes(random.Random(seed).randbytes(400_000))
        self.cluster.cli("encode", source, "--out", made, "--code", self.code, "--block-size",
                         "100000", "--name", "doc", "--nodes", ",".join(self.cluster.node_ids))
        manifest = made / "doc.manifest.json"
        blocks = json.loads(manifest.read_text())["stripes"][0]["blocks"]
        for index, block in enumerate(blocks):
            for file in (made / block["node"]).iterdir() if index != but else ():
                shutil.copy2(file, self.cluster.data_dir() / block["node"])
        self.cluster.cli("catalog", "load", manifest)
        self.other = {block["block_id"]: (made / block["node"] / block["block_id"]).read_bytes()
                      for block in blocks}
        return blocks

    def assert_ranges_are_right(self, blocks: list[dict[str, str]]) -> None:
        for block in blocks:
            for scheme in ("auto", "rp"):
                code, content, said = self.read_some(block["block_id"], "--scheme", scheme,
                                                     "--offset", "777", "--length", "5000")
                self.assertEqual(code, 0, said)
                self.assertEqual(content, self.other[block["block_id"]][777:5777], scheme)

    def test_an_old_generation_and_exchanged_files(self) -> None:
        self.addCleanup(self.cluster.cli, "catalog", "remove", "doc-s00000")
        self.load_another(1)
        blocks = self.load_another(2, but=1)  # as if its node had been away
        stale = blocks[1]
        done = self.cluster.cli("catalog", "check", "--json", check=False)
        self.assertEqual([(each["block_id"], each["verdict"])
                          for each in json.loads(done.stdout)["wrong"]],
                         [(stale["block_id"], "corrupt")])
        # Where nothing else has found it, the first read does.
        self.wait_reported(stale)
        self.cluster.cli("corrupt", "clear", stale["block_id"])
        self.assert_ranges_are_right(blocks)
        known = self.wait_reported(stale)
        self.assertIn("another one than the catalog has", known["reason"])
        self.repair_as_proposed(known, self.other[stale["block_id"]])
        # Two blocks change places, each with its checksum file.
        a, b = blocks[2], blocks[3]
        for name in (lambda path: path, lambda path: path.with_name(f".crc32c.{path.name}")):
            of_a, of_b = (name(self.cluster.block_file(each["block_id"])) for each in (a, b))
            content = of_a.read_bytes()
            of_a.write_bytes(of_b.read_bytes())
            of_b.write_bytes(content)
        self.assert_ranges_are_right(blocks)
        wait_until(lambda: {each["block_id"] for each in self.corrupt_blocks()}
                   == {a["block_id"], b["block_id"]}, HANG, "both to be known")
        for known in self.corrupt_blocks():
            self.assertIn("its checksum file is for block doc-s00000-b0", known["reason"])
            self.cluster.cli(*shlex.split(known["repair"])[1:])
        self.assertEqual(self.corrupt_blocks(), [])
        for block in blocks:
            self.assertEqual(self.bytes_of(block["block_id"]), self.other[block["block_id"]])
            self.repair(block["block_id"], "--scheme", "direct", "--sha256", block["sha256"])
        self.assert_nothing_left()

    def test_loading_the_manifest_again_says_nothing_of_a_mark(self) -> None:
        bad = self.block(0, 3)
        self.flip(bad["block_id"])
        self.fails(NO_SURVIVORS, "read", bad["block_id"], "--scheme", "direct",
                   "-o", self.work / "never")
        self.wait_reported(bad)
        self.cluster.cli("catalog", "load", self.manifest_path)
        self.wait_reported(bad)
        self.flip(bad["block_id"])
        self.cluster.cli("corrupt", "check", bad["block_id"])
        wait_until(lambda: not self.corrupt_blocks(), HANG, "the check to decide")
        self.repair(bad["block_id"], "--scheme", "direct", "--sha256", bad["sha256"])


class WithoutChecksumFiles(CorruptionCase):
    encode_arguments = ("--no-checksums",)

    def test_sound_blocks_verify_by_every_scheme(self) -> None:
        lost = self.block(0, 0)
        for scheme in SCHEMES:
            for verify in ("parity", "locate"):
                self.repair(lost["block_id"], "--scheme", scheme, "--verify", verify,
                            "--sha256", lost["sha256"])
        self.repair(lost["block_id"], "--offset", "12345", "--length", "54321", "--verify",
                    "parity", "--sha256",
                    sha256(self.bytes_of(lost["block_id"])[12345:12345 + 54321]))
        self.assert_nothing_left()

    def test_flipped_bit_is_located_by_parity(self) -> None:
        lost, bad = self.block(0, 0), self.block(0, 2)
        content = self.bytes_of(bad["block_id"])
        self.flip(bad["block_id"])
        done = self.cluster.cli("repair", lost["block_id"], "-o", self.work / "first",
                                "--scheme", "rp", "--verify", "parity", check=False)
        if done.returncode == 0:
            self.assertEqual(sha256((self.work / "first").read_bytes()), lost["sha256"])
        else:
            self.assertEqual(done.returncode, FAILED, done.stderr)
            self.assertIn(f"block {bad['block_id']} on node {bad['node']} is corrupt", done.stderr)
            self.assertFalse((self.work / "first").exists())
        known = self.wait_reported(bad)
        self.repair(lost["block_id"], "--verify", "parity", "--sha256", lost["sha256"])
        self.repair_as_proposed(known, content)
        self.assert_nothing_left()

    def wrong_at_the_end(self, bad: dict[str, str], act: Callable[[], object]) -> None:
        """Flips a bit of a block, lets `act` read it, and waits until it is found and rebuilt."""
        good = self.bytes_of(bad["block_id"])
        self.flip(bad["block_id"])
        act()
        known = self.wait_reported(bad)
        self.cluster.cli(*shlex.split(known["repair"])[1:])
        self.assertEqual(self.bytes_of(bad["block_id"]), good)
        self.checksum_file(bad["block_id"]).unlink()

    def test_a_block_that_its_manifest_does_not_know_is_not_taken(self) -> None:
        lost, bad = self.block(1, 0), self.block(1, 1)
        content = self.bytes_of(lost["block_id"])
        # Only k are left beside the one that is wanted, so that each repair reads the corrupt one.
        away = [self.cluster.helpers[self.block(1, index)["node"]] for index in (5, 6)]
        for helper in away:
            helper.stop()

        def says_that_it_is_wrong(*arguments: Any) -> None:
            said = self.fails(FAILED, "repair", lost["block_id"], *arguments)
            self.assertIn("was rebuilt with SHA-256", said)
            self.assertIn("expected", said)

        for scheme in SCHEMES:
            self.wrong_at_the_end(bad, lambda scheme=scheme: says_that_it_is_wrong(
                "-o", self.work / "never", "--scheme", scheme))
            self.assertFalse((self.work / "never").exists())
        several = self.work / "several"
        several.mkdir()
        self.wrong_at_the_end(bad, lambda: says_that_it_is_wrong(
            self.block(1, 5)["block_id"], "-d", several))
        self.assertEqual(list(several.iterdir()), [])

        # Of a range the manifest knows nothing. A reader has had the bytes when their end is
        # compared, and is told.
        place = self.cluster.block_file(lost["block_id"])

        def read() -> None:
            self.repair(lost["block_id"], "--offset", "0", "--length", "1000",
                        "--sha256", sha256(content[:1000]))
            place.unlink()
            done = subprocess.run(self.cluster.command("-q", "read", lost["block_id"]),
                                  capture_output=True, timeout=HANG, check=False)
            self.assertEqual(done.returncode, FAILED)
            self.assertIn("was rebuilt with SHA-256", done.stderr.decode())
            self.assertNotEqual(done.stdout, content)
            place.write_bytes(content)

        self.wrong_at_the_end(bad, read)
        good = self.bytes_of(bad["block_id"])
        self.flip(bad["block_id"])
        place.unlink()
        says_that_it_is_wrong("--to", lost["node"])
        self.assertFalse(place.exists())
        self.assert_nothing_left()
        known = self.wait_reported(bad)
        self.fails(NO_SURVIVORS, "repair", lost["block_id"], "--to", lost["node"])
        for helper in away:
            helper.start()
        self.cluster.wait_live(self.cluster.node_ids)
        self.cluster.cli("repair", lost["block_id"], "--to", lost["node"])
        self.assertEqual(self.bytes_of(lost["block_id"]), content)
        self.repair_as_proposed(known, good)

    def test_a_corrupt_block_is_known_when_it_is_read_directly(self) -> None:
        bad = self.block(1, 4)
        content = self.bytes_of(bad["block_id"])
        # What somebody expects who is wrong says nothing of the block.
        self.fails(FAILED, "repair", bad["block_id"], "-o", self.work / "never", "--scheme",
                   "direct", "--sha256", "0" * 64)
        self.assertEqual(self.corrupt_blocks(), [])
        self.flip(bad["block_id"])
        self.fails(FAILED, "repair", bad["block_id"], "-o", self.work / "never", "--scheme",
                   "direct")
        self.repair_as_proposed(self.wait_reported(bad), content)

    def test_recovery_locates_what_made_a_block_wrong(self) -> None:
        lost, bad = self.block(0, 0), self.block(0, 1)
        content, good = self.bytes_of(lost["block_id"]), self.bytes_of(bad["block_id"])
        self.flip(bad["block_id"])
        self.cluster.block_file(lost["block_id"]).unlink()
        self.cluster.cli("recover-node", lost["node"], "--to", lost["node"], "--even-if-live")
        self.assertEqual(self.bytes_of(lost["block_id"]), content)
        said = [repair["detail"] for repair in self.cluster.status()["repairs"]]
        self.assertTrue(any("was rebuilt with SHA-256" in detail for detail in said), said)
        self.repair_as_proposed(self.wait_reported(bad), good)
        self.assert_nothing_left()

    def test_hosts_verify_too(self) -> None:
        lost, bad = self.block(1, 0), self.block(1, 2)
        content = self.bytes_of(lost["block_id"])
        good = self.bytes_of(bad["block_id"])
        self.flip(bad["block_id"])
        command = ("repair", lost["block_id"], "--to", lost["node"], "--verify", "locate")
        done = self.cluster.cli(*command, check=False)
        if done.returncode != 0:
            self.assertEqual(done.returncode, FAILED, done.stderr)
            self.assertIn(f"block {bad['block_id']} on node {bad['node']}", done.stderr)
        self.assertEqual(self.bytes_of(lost["block_id"]), content)
        known = self.wait_reported(bad)
        self.repair_as_proposed(known, good)
        self.cluster.cli(*command)
        self.assertEqual(self.bytes_of(lost["block_id"]), content)

    def test_what_cannot_be_verified_says_so(self) -> None:
        block = self.block(0, 0)["block_id"]
        for arguments, code, says in (
                (("--verify", "twice"), USAGE, "none, parity, locate"),
                (("--verify", "parity", "--scheme", "direct"), USAGE, "direct")):
            said = self.fails(code, "repair", block, "-o", self.work / "never", *arguments)
            self.assertIn(says, said)


class FewSurvivors(CorruptionCase):
    """As nodes go, the corrupt block can be told from the others, then only by its SHA-256."""

    encode_arguments = ("--no-checksums",)

    def test_one_more_finds_and_none_more_refuses(self) -> None:
        lost, bad = self.block(0, 0), self.block(0, 1)
        self.flip(bad["block_id"])
        self.cluster.helpers[self.block(0, 6)["node"]].stop()
        said = self.fails(FAILED, "repair", lost["block_id"], "-o", self.work / "never",
                          "--verify", "parity")
        self.assertIn("is corrupt", said)
        self.assertIn("it is not known which block", said)
        self.assertIn("needs 6 survivors, but only 5 can be used", said)
        self.assertFalse((self.work / "never").exists())
        # The catalog has the SHA-256 of each, so the survivors' own helpers find it.
        self.wait_reported(bad)
        self.repair(lost["block_id"], "--sha256", sha256(self.bytes_of(lost["block_id"])))
        self.fails(NO_SURVIVORS, "repair", lost["block_id"], "-o", self.work / "never",
                   "--verify", "locate")
        self.cluster.helpers[self.block(0, 5)["node"]].stop()
        said = self.fails(NO_SURVIVORS, "repair", lost["block_id"], "-o", self.work / "never",
                          "--verify", "parity")
        self.assertIn("4 blocks are needed, but only 3 survivors can be used", said)
        self.assert_nothing_left()


class VerifiedByDefault(CorruptionCase):
    coordinator_settings = {"defaults": {"verify": "parity"}}
    encode_arguments = ("--no-checksums",)

    def test_the_coordinators_default(self) -> None:
        lost, bad = self.block(0, 0), self.block(0, 1)
        plan = self.cluster.cli_json("plan", lost["block_id"])
        readers = {hop["block_id"] for lane in plan["lanes"] for hop in lane["hops"]
                   if hop.get("block_id")}
        self.assertEqual(len(readers), 5)
        self.repair(lost["block_id"], "--sha256", lost["sha256"])
        self.repair(bad["block_id"], "--scheme", "direct", "--sha256", bad["sha256"])
        self.flip(bad["block_id"])
        code, content, said = self.read_some(lost["block_id"])
        if code != 0:
            self.assertIn(bad["block_id"], said)
        self.assertIn(content, (b"", self.bytes_of(lost["block_id"])))
        self.wait_reported(bad)


if __name__ == "__main__":
    case.main()
