#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the worked example of the README as a reader would, and looks at what came out.

Three things differ from what a reader types: the programs are those of --bin-dir, the coordinator's
port is a free one, and after the start the script waits until all nodes are live.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Iterator

import documented
from labkit.process import free_port, wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
HEADING = "Your own blocks in five minutes"
SECONDS = 240.0
PORT = "7700"
BIN_DIR = Path()
AWAIT_NODES = """
for _ in $(seq 300); do
  [ "$(ecpipe status --json | grep -c '"state": "live"')" -ge 7 ] && break; sleep 0.2
done
"""


def script_of(page: str, bin_dir: Path, port: int) -> str:
    """The section's commands, as one script that ends at the first failure."""
    parts = ["set -euo pipefail", f"export ECPIPE_COORDINATOR=127.0.0.1:{port}"]
    for fence in documented.fences(documented.section(page, HEADING)):
        parts.append(fence.text.replace("$PWD/build/release/bin", str(bin_dir))
                     .replace(f"127.0.0.1:{PORT}", f"127.0.0.1:{port}"))
        if "ecpipe status" in fence.text:
            parts.append(AWAIT_NODES)
    return "\n".join(parts)


def processes_in(folder: Path) -> list[int]:
    """Processes whose working directory is below the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if Path(os.readlink(entry / "cwd")).is_relative_to(folder):
                    found.append(int(entry.name))
    return found


@contextlib.contextmanager
def ran(script: str) -> Iterator[tuple[subprocess.CompletedProcess[str], Path]]:
    """The script's result and the folder in which its temporary ones are. Whatever still runs in
    there in the end is killed."""
    with tempfile.TemporaryDirectory(prefix="ecpipe-readme-") as folder:
        try:
            # Into files: daemons that a failed script leaves behind would hold a pipe open.
            with Path(folder, "out").open("w+") as out, Path(folder, "err").open("w+") as err:
                code = subprocess.run(
                    ["bash", "-c", script], cwd=REPOSITORY, stdout=out, stderr=err,
                    timeout=SECONDS, stdin=subprocess.DEVNULL,
                    env={**os.environ, "TMPDIR": folder}).returncode
            yield subprocess.CompletedProcess(
                "", code, Path(out.name).read_text(), Path(err.name).read_text()), Path(folder)
        finally:
            for pid in processes_in(Path(folder)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


class WorkedExample(unittest.TestCase):
    def test_it_works_as_it_stands(self) -> None:
        page = (REPOSITORY / "README.md").read_text()
        with ran(script_of(page, BIN_DIR, free_port())) as (done, folder):
            said = done.stdout + done.stderr
            self.assertEqual(done.returncode, 0, said)
            wait_until(lambda: not processes_in(folder), 30, "the daemons' end")
        self.check_bytes(done.stdout, said)

    def check_bytes(self, output: str, said: str) -> None:
        """Sums come in pairs: of the lost block and the repaired one, and of the range."""
        sums = re.findall(r"^([0-9a-f]{64})  ", output, re.MULTILINE)
        self.assertEqual(len(sums), 4, said)
        self.assertEqual(sums[0], sums[1], said)
        self.assertEqual(sums[2], sums[3], said)
        self.assertIn("mine-s00000-b04 has the right bytes", output, said)
        self.assertEqual(output.count(" is valid\n"), 7, said)

    def test_a_command_that_does_not_exist_ends_it(self) -> None:
        page = (REPOSITORY / "README.md").read_text()
        broken = page.replace("--block-size 8MiB", "--block-length 8MiB")
        self.assertNotEqual(page, broken)
        with ran(script_of(broken, BIN_DIR, free_port())) as (done, _):
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("--block-length", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin-dir", type=Path, required=True)
    arguments, rest = parser.parse_known_args()
    BIN_DIR = arguments.bin_dir.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
