#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""integrations/hdfs/itest/unit_tests.py: what it runs where Maven cannot fetch everything."""

from __future__ import annotations

import contextlib
import io
import sys
import unittest
from pathlib import Path
from unittest import mock

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "bench"), str(REPOSITORY / "integrations" / "hdfs" / "itest")]

import unit_tests  # noqa: E402
from labkit.hdfs.toolchain import Unavailable  # noqa: E402


class WithoutTheNetwork(unittest.TestCase):
    def run_where(self, *unavailable: str) -> tuple[int, list[tuple[str, ...]], str]:
        """With a Maven that lacks something for these arguments."""
        runs = []

        def maven(*arguments: str) -> None:
            runs.append(arguments)
            if set(unavailable) & set(arguments):
                raise Unavailable("out of reach")

        output = io.StringIO()
        with mock.patch.object(unit_tests, "maven", maven), \
                mock.patch.object(unit_tests, "require_tools"), contextlib.redirect_stdout(output):
            return unit_tests.main(), runs, output.getvalue()

    def test_with_the_native_library_all_tests_run_once(self) -> None:
        self.assertEqual(self.run_where(), (0, [("-Plibhadoop", "package")], ""))

    def test_without_the_native_library_the_others_run(self) -> None:
        code, runs, output = self.run_where("-Plibhadoop")
        self.assertEqual((code, runs), (0, [("-Plibhadoop", "package"), ("package",)]))
        self.assertRegex(output, "LEFT OUT: .*Unix sockets.*out of reach")

    def test_without_anything_it_is_skipped(self) -> None:
        code, _, output = self.run_where("package")
        self.assertEqual((code, output), (77, "SKIP: out of reach\n"))


if __name__ == "__main__":
    unittest.main()
