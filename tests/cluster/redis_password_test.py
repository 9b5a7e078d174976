#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repairs through redis-servers that want a password."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path
from typing import Any

import case
from case import FAILED, HANG, USAGE, ClusterCase

PASSWORD, ANOTHER = "open sesame", "close sesame"


def ask_redis(address: str, *words: str) -> str:
    """One command of RESP, and the first line of its reply."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), HANG) as connection:
        command = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
        connection.sendall(command.encode())
        with connection.makefile("r", encoding="utf-8", newline="\r\n") as reply:
            return reply.readline().strip()


class Password(ClusterCase):
    redis = True

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.of_helpers = cls.password_file("of-helpers", PASSWORD)
        cls.mine = cls.password_file("mine", PASSWORD)
        cls.helper_settings = {**ClusterCase.helper_settings,
                               "redis": {"password_file": str(cls.of_helpers)}}
        super().setUpClass()
        for helper in cls.cluster.helpers.values():
            said = ask_redis(helper.settings["redis"]["address"], "CONFIG", "SET", "requirepass",
                             PASSWORD)
            assert said == "+OK", said

    @classmethod
    def password_file(cls, name: str, password: str) -> Path:
        path = cls.folder / name
        path.touch(0o600)
        path.write_text(password + "\n")
        return path

    def tearDown(self) -> None:
        self.password_file("of-helpers", PASSWORD)
        self.assert_nothing_left()

    def by_redis(self, *options: Any, scheme: str = "rp") -> tuple[Any, ...]:
        return (*options, "repair", self.block(0, 0)["block_id"], "-o", self.work / "out",
                "--transport", "redis", "--scheme", scheme)

    def test_whoever_has_it_repairs(self) -> None:
        said = ask_redis(self.cluster.helpers["node-1"].settings["redis"]["address"], "PING")
        self.assertTrue(said.startswith("-NOAUTH"), said)
        lost = self.block(0, 0)
        for scheme in ("rp", "ppr", "conventional"):
            self.cluster.cli(*self.by_redis("--redis-password-file", self.mine, scheme=scheme))
            self.assertEqual((self.work / "out").read_bytes(), self.bytes_of(lost["block_id"]))

    def test_helpers_need_no_word_of_the_requestor(self) -> None:
        lost = self.block(1, 0)["block_id"]
        holders = {block["node"] for block in self.manifest["stripes"][1]["blocks"]}
        spare = next(node for node in self.cluster.node_ids if node not in holders)
        whole = self.bytes_of(lost)
        self.cluster.cli("repair", lost, "--to", spare, "--transport", "redis", "--scheme", "rp")
        self.assertEqual((self.cluster.data_dir() / spare / lost).read_bytes(), whole)

    def test_without_one(self) -> None:
        said = self.fails(FAILED, *self.by_redis())
        self.assertIn("wants a password, and none is configured", said)
        self.assertIn("--redis-password-file", said)

    def test_a_wrong_one(self) -> None:
        wrong = self.password_file("wrong", ANOTHER)
        said = self.fails(FAILED, *self.by_redis("--redis-password-file", wrong))
        self.assertIn(f"does not take the password in {wrong}", said)

    def test_helpers_with_a_wrong_one(self) -> None:
        self.password_file("of-helpers", ANOTHER)
        done = self.cluster.cli(*self.by_redis("--redis-password-file", self.mine), check=False,
                                timeout=HANG)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"does not take the password in {self.of_helpers}", done.stderr)

    def test_a_file_that_others_may_read(self) -> None:
        open_file = self.password_file("open", PASSWORD)
        open_file.chmod(0o644)
        said = self.fails(USAGE, *self.by_redis("--redis-password-file", open_file))
        self.assertIn(f"redis: cannot use the secret in {open_file}", said)


if __name__ == "__main__":
    case.main()
