#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No program runs with an ISA-L that computes wrong bytes."""

from __future__ import annotations

import os
import subprocess
import unittest

import case
from case import FAILED, HANG, REPOSITORY


class BrokenLibrary(unittest.TestCase):
    def commands(self) -> list[list[str]]:
        coordinator, helper, ecpipe, c_client = (
            str(case.BIN_DIR / name)
            for name in ("ecpipe-coordinator", "ecpipe-helper", "ecpipe", "c_api_client"))
        samples = REPOSITORY / "deploy"
        return [[coordinator, "--config", str(samples / "coordinator.toml")],
                [helper, "--config", str(samples / "helper.toml")],
                [helper, "--requestor-only", "--config", str(samples / "requestor.toml")],
                [ecpipe, "status"],
                [ecpipe, "verify", "no.manifest.json", "--blocks", "."],
                [c_client, "127.0.0.1:1", os.devnull, "node-1", "block-1", "block-2"]]

    def assert_refused(self, what: str) -> None:
        environment = {**os.environ, "BROKEN_ISAL": what,
                       "LD_PRELOAD": str(case.BIN_DIR.parent / "lib" / "libbroken_isal.so")}
        for command in self.commands():
            with self.subTest(command=command):
                done = subprocess.run(command, env=environment, capture_output=True, text=True,
                                      timeout=HANG)
                self.assertEqual(done.returncode, FAILED, done.stderr)
                said = done.stdout + done.stderr
                self.assertIn(f"computes wrong {what}", said)
                self.assertIn("libbroken_isal.so" if what == "products" else "libisal", said)

    def test_wrong_products(self) -> None:
        self.assert_refused("products")

    def test_wrong_checksums(self) -> None:
        self.assert_refused("checksums")


if __name__ == "__main__":
    case.main()
