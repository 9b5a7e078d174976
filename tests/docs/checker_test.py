#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The extractor, on small texts; and that each thing that does not exist is found."""

from __future__ import annotations

import argparse
import re
import sys
import unittest
from pathlib import Path

import documented
from checker import Checker, completed
from documented import Named
from program_help import Programs, parse_help

BIN_DIR = Path()
REPOSITORY = Path(__file__).resolve().parents[2]

CLI11 = """ECPipe: read and rebuild.
Usage: ecpipe [OPTIONS] SUBCOMMAND

Options:
  -h,--help                   Print this help message and exit
  --coordinator TEXT [127.0.0.1:7700]  (Env:ECPIPE_COORDINATOR)
                              Address
  -q,--quiet                  Show no progress
  --missing Excludes: --quiet
                              What is not there
[Option Group: Where to]
  Options:
    -o,--output TEXT          The file

Subcommands:
  read                        Read a block
  recover-node                Rebuild all
"""
ARGPARSE = """usage: lab.py [-h] {single,all} ...

The lab.
    bench/lab.py single \\
                 --invented 1

positional arguments:
  {single,all}
    single         one block

options:
  -h, --help       show this help message and exit
  --json OUT, -j OUT
  --quick          small blocks
"""
CHOICE = "usage: inventory.py [-h] [--key KEY] {asia,africa} files [files ...]\n"
SHELL = "Usage: deploy/x.sh [--keep] [--days DAYS] DIRECTORY NAME=ROLE...\n  --keep   keep it\n"


class Extractor(unittest.TestCase):
    def test_fences(self) -> None:
        page = "a\n```sh\none\n```\n  ```toml\n  [x]\n  ```\n"
        self.assertEqual([(f.language, f.line, f.text) for f in documented.fences(page)],
                         [("sh", 3, "one"), ("toml", 6, "[x]")])
        with self.assertRaises(ValueError):
            documented.fences("```\nnever ends\n")

    def test_shell_lines(self) -> None:
        page = ("text\n\n    indented --here\n\n```\n$ one \\\n  two   # why\n"
                "cat > f <<'EOF'\nnot this\nEOF\nthree\n```\n```toml\nx = 1\n```\n")
        self.assertEqual([(line.line, line.text) for line in documented.shell_lines(page)],
                         [(6, "one  two   # why"), (8, "cat > f <<'EOF'"), (11, "three"),
                          (3, "indented --here")])

    def test_split_commands(self) -> None:
        split = documented.split_commands
        self.assertEqual(split("sudo X=1 ecpipe read 'a b' > out 2> err | wc & echo done # so"),
                         [["ecpipe", "read", "a b"], ["wc"], ["echo", "done"]])
        self.assertEqual(split("for i in 1 2; do ecpipe-helper --config n-$i.toml; done"),
                         [["for", "i", "in", "1", "2"], ["ecpipe-helper", "--config", "n-$i.toml"],
                          ["done"]])
        self.assertEqual(split("encode --code 'rs(6,4)' && build"),
                         [["encode", "--code", "rs(6,4)"], ["build"]])
        self.assertEqual(split("it's prose"), [])

    def test_spans_links_and_paths(self) -> None:
        page = ("See `a\nb` and [x](docs/y.md#part), [web](https://a.b/c), [here](#top).\n\n"
                "src/x/*.h, https://h/src/no and `tests/{a,b}.py`.\n```\ndocs/z.md\n```\n")
        self.assertEqual(documented.spans(page), [Named(1, "a b"), Named(4, "tests/{a,b}.py")])
        self.assertEqual(documented.links(page), [Named(2, "docs/y.md")])
        self.assertEqual([path.text for path in documented.paths(page)],
                         ["docs/y.md", "src/x/*.h", "tests/{a,b}.py", "docs/z.md"])

    def test_section(self) -> None:
        page = "# T\n## A\none\n### B\ntwo\n## C\nthree\n"
        self.assertEqual(documented.section(page, "A"), "\none\n### B\ntwo\n")
        with self.assertRaises(ValueError):
            documented.section(page, "D")


class Helps(unittest.TestCase):
    def test_cli11(self) -> None:
        found = parse_help(CLI11)
        self.assertEqual(found.takes_value, {
            "-h": False, "--help": False, "--coordinator": True, "-q": False, "--quiet": False,
            "--missing": False, "-o": True, "--output": True})
        self.assertEqual(found.subcommands, {"read", "recover-node"})

    def test_argparse(self) -> None:
        found = parse_help(ARGPARSE)
        self.assertEqual(found.subcommands, {"single", "all"})
        self.assertEqual(found.takes_value, {"-h": False, "--help": False, "--json": True,
                                             "-j": True, "--quick": False})
        choice = parse_help(CHOICE)
        self.assertEqual((choice.subcommands, choice.positionals), (set(), True))
        self.assertEqual(choice.takes_value, {"-h": False, "--key": True})

    def test_shell(self) -> None:
        found = parse_help(SHELL)
        self.assertEqual(found.takes_value, {"--keep": False, "--days": True})
        self.assertTrue(found.positionals)
        self.assertFalse(parse_help("Usage: x.sh [--keep]\n").positionals)


class FieldPage(unittest.TestCase):
    """docs/field.md has each test of tests/field, and each test that it names is where it says."""

    NAME = re.compile(r"\btest_\w+")

    def test_the_page_and_the_tests_agree(self) -> None:
        defined = {str(file.relative_to(REPOSITORY)): set(re.findall(r"def (test_\w+)",
                                                                     file.read_text()))
                   for file in REPOSITORY.glob("tests/*/*_test.py")}
        named = set()
        for line in (REPOSITORY / "docs" / "field.md").read_text().splitlines():
            for part in line.split(";"):
                files = re.findall(r"`(tests/\w+/\w+\.py)`", part)
                for name in self.NAME.findall(re.sub(r"`[^`]*`", "", part)):
                    named.add(name)
                    self.assertTrue(files and name in defined[files[0]], f"{name}: {line}")
        tests = {name for file, names in defined.items() if file.startswith("tests/field/")
                 for name in names}
        self.assertEqual(tests - named, set())


class WhatDoesNotExist(unittest.TestCase):
    """The proof that the test can fail: one wrong word a page."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.checker = Checker(REPOSITORY, BIN_DIR)

    def problems(self, text: str) -> list[str]:
        page = REPOSITORY / "docs" / "page.md"
        return [problem.split(": ", 1)[1] for problem in self.checker.check(page, text)]

    def finds(self, text: str, expected: str) -> None:
        found = self.problems(text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def test_what_exists_is_no_problem(self) -> None:
        self.assertEqual(self.problems(
            "[wire](wire.md) src/codec/*.h `[limits] repair_mbit` `ecpipe read --offset`\n\n"
            "```sh\necpipe plan B --scheme rp --json\ndeploy/make-certs.sh --days 3 d a=helper\n"
            "sudo bench/lab.py single --runs 3\ncmake --preset asan\n```\n"
            "```toml\n[hdfs]\nnamenodes = [\"http://n:9870\"]\n```\n"), [])

    def test_a_flag(self) -> None:
        self.finds("```\necpipe plan B --colour red\n```\n", "no option --colour of ecpipe plan")
        self.finds("```\nbench/lab.py single --rate 3\n```\n", "no option --rate of lab.py single")
        self.finds("Call `deploy/quickstart.sh --fast`.\n", "no option --fast of quickstart.sh")
        self.finds("```\necpipe-helper --conf x\n```\n", "no option --conf of ecpipe-helper")

    def test_a_subcommand(self) -> None:
        self.finds("```\necpipe rebuild B\n```\n", "no subcommand rebuild of ecpipe")
        self.finds("`ecpipe catalog paint`\n", "no subcommand paint of ecpipe catalog")
        self.finds("    bench/lab.py fly\n", "no subcommand fly of lab.py")

    def test_a_file(self) -> None:
        self.finds("see docs/nowhere.md\n", "no such file: docs/nowhere.md")
        self.finds("[x](nowhere.md)\n", "the link leads nowhere: nowhere.md")
        self.finds("`no_such_source.cc`\n", "no such file")
        self.finds("```\n./no_such_script.py --x\n```\n", "no such program")
        self.finds("```\nbuild/release/bin/no_such_bench\n```\n", "no target no_such_bench")
        self.finds("```\ncmake --preset fast\n```\n", "no preset fast")

    def test_a_key(self) -> None:
        self.finds("`[limits] speed`\n", "no key speed in [limits]")
        self.finds("`helper.colour = 1`\n", "no key colour in [helper]")
        self.finds("```toml\n[helper]\ncolour = 1\n```\n", "unknown key helper.colour")
        self.finds("```toml\n[recovery]\nmax_attempts = 0\n```\n", "recovery.max_attempts")
        self.finds("```toml\n[nothing]\n```\n", "no daemon has all of the tables nothing")
        self.finds("```toml\n[helper\n```\n", "no TOML")

    def test_a_test(self) -> None:
        nobodys = "_".join(("test", "that", "nobody", "wrote"))  # this file is searched as well
        self.finds(f"held by {nobodys}\n", f"no test {nobodys}")
        self.finds("held by base.NoSuchSuite.Works\n", "no test base.NoSuchSuite.Works")

    def test_a_fragment_is_completed(self) -> None:
        needed = {"helper": {"node_id": "n", "roots": ["r"]}}
        self.assertEqual(completed('[helper]\nroots = ["x"]\n', needed),
                         '[helper]\nnode_id = "n"\nroots = ["x"]\n')
        self.assertEqual(completed("[limits]\n", needed),
                         '[limits]\n\n[helper]\nnode_id = "n"\nroots = ["r"]\n')


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin-dir", type=Path, required=True)
    arguments, rest = parser.parse_known_args()
    BIN_DIR = arguments.bin_dir.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
