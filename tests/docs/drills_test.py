#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the drills of docs/drills.md as a reader would, on the cluster of the README's worked
example, and looks for what the page says that one sees: the text that follows a drill's commands.
In it ... stands for what differs from run to run.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import unittest
from pathlib import Path

import documented
import worked_example_test
from labkit.process import free_port
from worked_example_test import AWAIT_NODES, ran, script_of

REPOSITORY = worked_example_test.REPOSITORY
PAGE = REPOSITORY / "docs" / "drills.md"
CLUSTER_ENDS = "**3. Tell the coordinator"  # in the README; what follows loses blocks
MARK = "=== drill at line"
BIN_DIR = Path()
# Of the kernel's; without them no helper has a file system of its own, and that drill is left out.
HAS_NAMESPACES = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "true"],
                                capture_output=True, check=False).returncode == 0


def steps(page: str) -> list[tuple[int, str, str]]:
    """The line, the commands, and what one sees of them; empty: nothing that the page shows."""
    found: list[tuple[int, str, str]] = []
    for fence in documented.fences(page):
        if fence.language == "sh":
            found.append((fence.line, fence.text, ""))
        elif fence.language == "text":
            line, commands, _ = found[-1]
            found[-1] = (line, commands, fence.text)
    return found


def missing(expected: str, said: str) -> list[str]:
    """Lines of the page that are not in what was said, or not in this order."""
    def words(text: str) -> str:
        return re.sub(r"\s+", " ", text).strip()
    lines, found = [words(line) for line in said.splitlines()], []
    for line in map(words, expected.splitlines()):
        pattern = ".*".join(map(re.escape, line.split("...")))
        at = next((i for i, each in enumerate(lines) if re.search(pattern, each)), None)
        if at is None:
            found.append(line)
        else:
            lines = lines[at + 1:]
    return found


class Drills(unittest.TestCase):
    def test_one_sees_what_the_page_says(self) -> None:
        cluster = (REPOSITORY / "README.md").read_text().split(CLUSTER_ENDS)[0]
        drills = [step for step in steps(PAGE.read_text())
                  if HAS_NAMESPACES or "unshare " not in step[1]]
        print(f"{len(drills)} drills, file systems of their own: {HAS_NAMESPACES}")
        self.assertGreater(len(drills), 8)
        parts = [script_of(cluster, BIN_DIR, free_port()), AWAIT_NODES, "exec 2>&1"]
        for line, commands, _ in drills:
            parts += [f"echo '{MARK} {line}'", commands]
        script = "\n".join(parts).replace("127.0.0.1:7701", f"127.0.0.1:{free_port()}")
        with ran(script) as (done, _):
            said = done.stdout + done.stderr
            self.assertEqual(done.returncode, 0, said)
        outputs = dict(re.findall(rf"^{MARK} (\d+)\n(.*?)(?=^{MARK}|\Z)", done.stdout,
                                  re.MULTILINE | re.DOTALL))
        for line, commands, expected in drills:
            with self.subTest(f"line {line}"):
                output = outputs[str(line)]
                self.assertEqual(missing(expected, output), [], f"{commands}\n\n{output}")

    def test_what_is_missing_is_found(self) -> None:
        said = "one  two 3\nfour\n"
        self.assertEqual(missing("one two ...\nfour", said), [])
        self.assertEqual(missing("four\none two", said), ["one two"])
        self.assertEqual(missing("five", said), ["five"])
        self.assertEqual(steps("```sh\na\n```\n```text\nb\n```\n```sh\nc\n```\n"),
                         [(2, "a", "b"), (8, "c", "")])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin-dir", type=Path, required=True)
    arguments, rest = parser.parse_known_args()
    BIN_DIR = arguments.bin_dir.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
