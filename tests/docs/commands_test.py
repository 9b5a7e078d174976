#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents name nothing that does not exist, and their commands run.

Every command, flag, file, link, test and key of a configuration that a page names is looked up.
In addition the commands in fences run, in the order of the page, against a small cluster with the
names of the README's worked example. Those of ONLY_LOOKED_UP do not, for the reason beside them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Iterator

import documented
from checker import PROGRAMS, Checker
from etc_ecpipe import EtcEcpipe
from labkit.cluster import Cluster
from labkit.process import wait_until
from program_help import parse_help

REPOSITORY = Path(__file__).resolve().parents[2]
BIN_DIR = Path()
SECONDS = 60.0
PAGES = ("*.md", "docs/**/*.md", "integrations/**/*.md", "deploy/**/*.md", "bench/*.md")
# Sections that tests of their own run as a whole.
EXAMPLES = {"Your own blocks in five minutes": "worked_example_test.py",
            "Failure drills": "drills_test.py",
            "From a stock Hadoop to a degraded read": "tests/host/namespaces_test.py"}
STRIPE_NODES = [f"node-{i}" for i in range(1, 7)]
LOST_BLOCK, DEAD_NODE = "mine-s00000-b02", "node-5"
# A table or a key of a sample file that is not in force.
COMMENTED_OUT = re.compile(r"^# (\[\w+\](?=\s*(?:#|$))|\w+ = )", re.MULTILINE)
# By the beginning of the command.
ONLY_LOOKED_UP = {
    r"deploy/quickstart\.sh": "has a test of its own",
    r"deploy/install-deps\.sh": "installs packages, as root",
    r"deploy/make-packages\.sh": "tests/package makes and installs them",
    r"tests/run\.sh": "runs this test, among all others",
    r"tests/fuzz/run\.py": "takes hours; the label libfuzzer runs it",
    r"(bench/)?\w+\.py\b": "measures for minutes, most as root; the label lab has short runs",
    r"\./make_inventory\.py": "needs what Amazon EC2 says of its instances",
    r"(integrations/hdfs/)?itest\.sh": "starts a real HDFS; the label host runs it",
    r"qfs_chunk_reader": "needs a QFS chunk; the unit tests in tests/unit/qfs drive the library",
    r"build/": "benchmarks and simulation run for minutes; the label sim has short runs",
    r"ecpipe --tls-ca": "needs a cluster with TLS; tests/cluster/tls_test.py has one",
    r"ecpipe-helper --requestor-only|ecpipe-(helper|coordinator)": "daemons do not end: they check "
    "the configuration that is named instead",
}


def pages() -> list[Path]:
    return sorted({path for pattern in PAGES for path in REPOSITORY.glob(pattern)
                   if "build" not in path.relative_to(REPOSITORY).parts})


def why_not_run(command: str) -> str | None:
    return next((why for begin, why in ONLY_LOOKED_UP.items() if re.match(begin, command)), None)


class Everything(unittest.TestCase):
    """Each page against the repository and the programs."""

    def test_pages_name_nothing_that_does_not_exist(self) -> None:
        checker = Checker(REPOSITORY, BIN_DIR)
        problems = [problem for page in pages()
                    for problem in checker.check(page, page.read_text())]
        self.assertEqual(problems, [], "\n" + "\n".join(problems))

    def test_the_pages_are_there(self) -> None:
        names = {str(page.relative_to(REPOSITORY)) for page in pages()}
        self.assertLessEqual({"README.md", "CONTRIBUTING.md", "integrations/hdfs/README.md",
                              "deploy/ec2/README.md", "docs/wire.md"}, names)


class Samples(unittest.TestCase):
    """deploy/*.toml, by the daemons themselves: as they are, and with every key that is commented
    out."""

    def said(self, name: str, text: str) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, f"{name}.toml")
            file.write_text(EtcEcpipe(Path(folder)).stand_in(text))
            program = "ecpipe-coordinator" if name == "coordinator" else "ecpipe-helper"
            more = ["--requestor-only"] if name == "requestor" else []
            done = subprocess.run([BIN_DIR / program, *more, "--check-config", "--config", file],
                                  capture_output=True, text=True, timeout=SECONDS)
            return done.returncode, (done.stdout + done.stderr).replace(f"{folder}/", "")

    def test_as_they_are(self) -> None:
        for name in ("coordinator", "helper", "requestor"):
            with self.subTest(name):
                text = (REPOSITORY / "deploy" / f"{name}.toml").read_text()
                self.assertEqual(self.said(name, text), (0, f"{name}.toml is valid\n"))

    def test_with_all_keys(self) -> None:
        for name in ("coordinator", "helper", "requestor"):
            with self.subTest(name):
                text = (REPOSITORY / "deploy" / f"{name}.toml").read_text()
                all_keys, keys = COMMENTED_OUT.subn(r"\1", text)
                self.assertGreater(keys, 5)
                all_keys = all_keys.replace('"host:port"', '"host:1"')
                self.assertEqual(self.said(name, all_keys), (0, f"{name}.toml is valid\n"))

    def test_a_bad_key_or_value_is_named_with_its_line(self) -> None:
        text = (REPOSITORY / "deploy" / "helper.toml").read_text()
        for old, new, expected in (('level = "info"', 'level = "loud"', "log level 'loud'"),
                                   ("max_sessions = ", "max_session = ", "limits.max_session"),
                                   ('control = "127.0.0.1:7711"', 'control = "0.0.0.0:1"',
                                    "0.0.0.0:1 is not a loopback address")):
            code, said = self.said("helper", text.replace(old, new))
            self.assertEqual(code, 2, said)
            self.assertIn("helper.toml:", said)
            self.assertIn(expected, said)


class Words(unittest.TestCase):
    """What no command takes, whatever else it is given."""

    def refused(self, *words: str | bytes | Path) -> str:
        done = subprocess.run([BIN_DIR / "ecpipe", *words], capture_output=True, timeout=SECONDS,
                              env={**os.environ, "ECPIPE_COORDINATOR": "127.0.0.1:1"})
        said = done.stderr.decode()
        self.assertEqual(done.returncode, 2, said)
        self.assertLess(len(said), 6000)
        return said

    def numbers(self, *path: str) -> Iterator[tuple[tuple[str, ...], str, str]]:
        """Commands, their options that take numbers, and of what kind."""
        text = subprocess.run([BIN_DIR / "ecpipe", *path, "--help"], capture_output=True, text=True,
                              timeout=SECONDS, check=True).stdout
        for option, kind in re.findall(r"(--[\w-]+) (MBIT|SECONDS|TIME|COUNT|SIZE)\b", text):
            yield path, option, kind
        for command in sorted(parse_help(text).subcommands):
            yield from self.numbers(*path, command)

    def test_numbers_that_are_none(self) -> None:
        numbers = list(self.numbers())
        self.assertGreater(len(numbers), 20)
        self.assertIn((("read",), "--limit-mbit", "MBIT"), numbers)
        for path, option, kind in numbers:
            for number in ("nan", "-nan", "inf", "1e400"):
                with self.subTest(" ".join([*path, option, number])):
                    value = number + ("s" if kind == "TIME" else "")
                    self.assertRegex(self.refused(*path, f"{option}={value}"),
                                     r"\b(nans?|infs?|1e400)\b")

    def test_words_that_are_not_utf8(self) -> None:
        for path in (["read"], ["plan"], ["recover-node"], ["catalog", "locate"],
                     ["corrupt", "check"], ["nodes", "forget"], ["encode"]):
            with self.subTest(" ".join(path)):
                self.assertIn(r"'a\xff\xfe' is not UTF-8", self.refused(*path, b"a\xff\xfe"))

    def test_a_message_is_no_longer_than_a_page(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "m.json")
            for text in (" " * 1_000_000 + "x", '"' + "a" * 5_000_000,
                         '{"format": "x", "code": "%s"}' % ("a" * 1_000_000)):
                file.write_text(text)
                self.assertIn("m.json", self.refused("catalog", "load", file))
        self.refused("read", "b", "--length", "9" * 100_000)
        self.refused("read", "b", "--limit-mbit", "9" * 100_000)

    def test_a_range_of_no_bytes_is_not_all_bytes(self) -> None:
        for size in ("0", "0KiB"):
            for command in (["repair", "b", "-o", "x"], ["plan", "b"]):
                self.assertIn("--length 0", self.refused(*command, "--length", size))


class Commands(unittest.TestCase):
    """Those in fences, page by page, each against a cluster of its own."""

    def test_they_run(self) -> None:
        ran = 0
        for page in pages():
            commands = list(self.commands_of(page))
            if commands:
                with self.subTest(str(page.relative_to(REPOSITORY))):
                    ran += len(commands)
                    self.run_all(commands)
        self.assertGreater(ran, 20)

    def commands_of(self, page: Path) -> Iterator[tuple[int, list[str], str]]:
        """The ones that run: the line, the words, and the file that takes their output."""
        text = page.read_text()
        for heading in EXAMPLES:
            if f"# {heading}\n" in text:
                example = documented.section(text, heading)
                text = text.replace(example, "\n" * example.count("\n"))
        for line in documented.shell_lines(text):
            for words in documented.split_commands(line.text):
                if words[0] in PROGRAMS or words[0].startswith("deploy/"):
                    if "BP-" in line.text:  # needs a real HDFS
                        continue
                    redirected = re.search(r"(?<!\d)> *(\S+)", line.text)
                    yield line.line, words, redirected[1] if redirected else ""

    def run_all(self, commands: list[tuple[int, list[str], str]]) -> None:
        with tempfile.TemporaryDirectory(prefix="ecpipe-docs-") as folder:
            work = Path(folder, "cluster")
            with Cluster(BIN_DIR, work, 7) as cluster:
                self.prepare(cluster, Path(folder))
                for line, words, output in commands:
                    words, why = list(words), why_not_run(" ".join(words))
                    if words[0] in ("ecpipe-helper", "ecpipe-coordinator") and "--config" in words:
                        words += [] if "--check-config" in words else ["--check-config"]
                    elif why:
                        continue
                    done = self.run_one(cluster, words, Path(folder), output)
                    self.assertEqual(done.returncode, 0, f"line {line}: {' '.join(words)}: "
                                                         f"{done.stdout}{done.stderr}")

    def prepare(self, cluster: Cluster, folder: Path) -> None:
        """The state that the pages speak of: a lost block and a dead node."""
        blocks = folder / "blocks"
        blocks.symlink_to(cluster.data_dir())
        (folder / "deploy").symlink_to(REPOSITORY / "deploy")
        source = folder / "mine"
        source.write_bytes(os.urandom(9 << 20))
        cluster.cli("encode", source, "--out", blocks, "--code", "rs(6,4)", "--block-size", "2MiB",
                    "--name", "mine", "--nodes", ",".join(STRIPE_NODES))
        cluster.cli("catalog", "load", blocks / "mine.manifest.json")

    def run_one(self, cluster: Cluster, words: list[str], folder: Path, output: str,
                ) -> subprocess.CompletedProcess[str]:
        if words[:2] == ["ecpipe", "recover-node"]:
            helper = cluster.helpers[DEAD_NODE]
            helper.kill()
            shutil.rmtree(helper.root)
            wait_until(lambda: cluster.node_status()[DEAD_NODE]["state"] == "dead", SECONDS,
                       f"{DEAD_NODE} dead")
        program = BIN_DIR / words[0] if words[0] in PROGRAMS else REPOSITORY / words[0]
        with open(folder / output if output else os.devnull, "wb") as taken:
            done = subprocess.run(
                [program, *words[1:]], cwd=folder, timeout=SECONDS, stdin=subprocess.DEVNULL,
                stdout=taken, stderr=subprocess.PIPE, env={
                    **os.environ, "ECPIPE_COORDINATOR": cluster.coordinator.address})
        if words[:2] == ["ecpipe", "verify"]:  # from here on the block is lost
            (folder / "blocks" / "node-3" / LOST_BLOCK).unlink()
        return subprocess.CompletedProcess(words, done.returncode, "", done.stderr.decode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin-dir", type=Path, required=True)
    arguments, rest = parser.parse_known_args()
    BIN_DIR = arguments.bin_dir.resolve()
    os.environ["ECPIPE_SKIP_DEPS"] = "1"  # for tests/run.sh --help
    unittest.main(argv=[sys.argv[0], *rest])
