#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes one operator of the code at a time, and asks whether a test notices.

    tests/mutants.py --sample 60 --seed 1            a random sample of all mutants
    tests/mutants.py --only slice_pipeline           those of the files with this in their names
    tests/mutants.py --list                          the mutants, without running any

A mutant is one file with one change: another comparison, + for -, && for ||, a constant more by
one, a statement left out. The file is compiled beside the tree and linked into the tests that cover
it, before the library that has the true one, so neither the tree nor the build folder changes. The
tests must have been built: cmake --build --preset dev --target unit_tests.

A mutant that fails a test, crashes it or keeps it from ending is found; one that passes all of them
lives, and is printed with its place. One that does not compile counts for nothing. The last line
has the numbers. Exit code 0, if all tests pass without a mutant.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import re
import resource
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
# Several times what any of the tests takes: of a core, and on a busy machine.
TEST_CORE_SECONDS = 20
TEST_SECONDS = 900

# Which tests cover a file: the fastest first. Program and filter.
Tests = list[tuple[str, str]]
PLANNERS: Tests = [
    ("planner_script_test", "*"),
    ("coordinator_unit_test",
     "*Plan*:*Scheme*:*Path*:*Tree*:*Pack*:*Cost*:*Survivor*:*Facts*:*Versions*"),
]
TRACKER: Tests = [
    ("repairs_script_test", "*"),
    ("coordinator_unit_test",
     "*Attempt*:*Hosted*:*Repair*:*LeftOut*:*Straggler*:*Tracker*:*Silent*:*WhoIsStuck*:*Search*"),
]
COVERED_BY: list[tuple[str, Tests]] = [
    ("src/pipeline/slice_pipeline.cc", [
        ("pipeline_unit_test", "SlicePipeline*"), ("pipeline_unit_test", "*")]),
    ("src/net/frame.cc", [("net_unit_test", "*Frame*:*Hello*:*Hostile*")]),
    ("src/coordinator/repairs/left_out.cc", TRACKER),
    ("src/coordinator/repairs/tracker*.cc", TRACKER),
    ("src/coordinator/planning/*.cc", PLANNERS),
    ("src/coordinator/planning/schemes/*.cc", PLANNERS),
]

SWAPS = [
    (" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "),
    (" == ", " != "), (" != ", " == "), (" + ", " - "), (" - ", " + "),
    (" && ", " || "), (" || ", " && "), (" += ", " -= "), (" -= ", " += "),
    ("std::min", "std::max"), ("std::max", "std::min"),
    ("true", "false"), ("false", "true"),
]  # fmt: skip
NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.'])")
STATEMENT = re.compile(
    r"^\s+(?!return|using|const|auto|break|continue|else|case|static|for|if|while)"
    r"[\w:.>()\-\[\]*+]+(\(.*\)| [-+^|&]?= .*|)(\+\+|--)?;$")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Mutant:
    path: Path
    line: int  # from 1
    column: int  # from 0, where `old` begins
    old: str
    new: str

    def __str__(self) -> str:
        name = self.path.relative_to(REPOSITORY)
        return f"{name}:{self.line}:{self.column + 1}: '{self.old.strip()}' -> '{self.new.strip()}'"

    def text(self) -> str:
        lines = self.path.read_text(encoding="utf-8").split("\n")
        line = lines[self.line - 1]
        end = self.column + len(self.old)
        assert line[self.column : end] == self.old
        lines[self.line - 1] = line[: self.column] + self.new + line[end:]
        return "\n".join(lines)


def without_text(line: str) -> str:
    """The line with spaces for what is in quotes or in a comment."""
    hidden = re.sub(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'', lambda m: " " * len(m[0]), line)
    comment = hidden.find("//")
    return hidden if comment < 0 else hidden[:comment] + " " * (len(hidden) - comment)


def mutants_of(path: Path) -> Iterator[Mutant]:
    left_out = False  # this build leaves out what follows
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        code = without_text(line)
        if code.startswith("#"):
            left_out = code.startswith("#if")
        if left_out or code.startswith(("#", "template")):
            continue
        for old, new in SWAPS:
            for found in re.finditer(re.escape(old), code):
                before, after = code[: found.start()][-1:], code[found.end() :][:1]
                if old[0] == " " or not (before + after).replace(" ", "").isidentifier():
                    yield Mutant(path, number, found.start(), old, new)
        for found in NUMBER.finditer(code):
            yield Mutant(path, number, found.start(), found[0], str(int(found[0]) + 1))
        if STATEMENT.match(code):
            indent = len(code) - len(code.lstrip())
            yield Mutant(path, number, indent, line[indent:], ";")


class Build:
    """The commands of a build folder, with one file changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        entries = json.loads((folder / "compile_commands.json").read_text(encoding="utf-8"))
        self.compiles = {entry["file"]: entry["command"] for entry in entries}
        self.links: dict[str, str] = {}

    def compile(self, path: Path, text: str, into: Path) -> Path | None:
        source, output = into / path.name, into / "mutant.o"
        source.write_text(text, encoding="utf-8")
        words = shlex.split(self.compiles[str(path)])
        words[words.index("-o") + 1] = str(output)
        words[words.index("-c") + 1] = str(source)
        words = [word for word in words if word != "-Werror"] + ["-w"]
        done = subprocess.run(words, cwd=self.folder, capture_output=True, check=False)
        return output if done.returncode == 0 else None

    def link_command(self, program: str) -> str:
        if program not in self.links:
            listed = subprocess.run(
                ["ninja", "-t", "commands", "-s", f"bin/{program}"],
                cwd=self.folder, capture_output=True, text=True, check=True)  # fmt: skip
            # What follows the link lists the tests.
            self.links[program] = listed.stdout.strip().split("&&")[1]
        return self.links[program]

    def link(self, program: str, mutant: Path, into: Path) -> Path:
        output = into / program
        words = shlex.split(self.link_command(program))
        at = words.index("-o")
        words[at : at + 2] = [str(mutant), "-o", str(output)]
        subprocess.run(words, cwd=self.folder, capture_output=True, check=True)
        return output


def limit_core_time() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (TEST_CORE_SECONDS, TEST_CORE_SECONDS))


def fails(program: Path, tests: str, folder: Path) -> str:
    """Why; empty if all tests pass."""
    words = [str(program), f"--gtest_filter={tests}", "--gtest_brief=1", "--gtest_fail_fast"]
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True,
                              errors="replace", timeout=TEST_SECONDS, check=False,
                              preexec_fn=limit_core_time)  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"{program.name} does not end"
    if done.returncode == 0:
        return ""
    failed = re.search(r"\[  FAILED  \] (\S+)", done.stdout)
    return failed[1].rstrip(",") if failed else f"{program.name} ends with {done.returncode}"


def source_folder(program: str) -> Path:
    """Where ctest runs it."""
    room, label = program.removesuffix("_test").rsplit("_", 1)
    return REPOSITORY / "tests" / ("script" if label == "script" else f"unit/{room}")


def judge(mutant: Mutant, tests: Tests, build: Build) -> str:
    """Which test finds it; "lived"; "not compiled"."""
    with tempfile.TemporaryDirectory(prefix="ecpipe-mutant-") as folder:
        into = Path(folder)
        compiled = build.compile(mutant.path, mutant.text(), into)
        if compiled is None:
            return "not compiled"
        for program, chosen in tests:
            why = fails(build.link(program, compiled, into), chosen, source_folder(program))
            if why:
                return f"found by {why}"
    return "lived"


def all_mutants(only: str) -> list[tuple[Mutant, Tests]]:
    chosen = []
    for pattern, tests in COVERED_BY:
        for path in sorted(REPOSITORY.glob(pattern)):
            if only in str(path):
                chosen += [(mutant, tests) for mutant in mutants_of(path)]
    return chosen


def check_tests(chosen: list[tuple[Mutant, Tests]], build: Build) -> None:
    for program, tests in sorted({test for _, tests in chosen for test in tests}):
        binary = build.folder / "bin" / program
        if not binary.exists():
            sys.exit(f"{binary} is not there: cmake --build --preset dev --target {program}")
        if why := fails(binary, tests, source_folder(program)):
            sys.exit(f"{program} fails without any mutant: {why}; mend that first")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--build-dir", type=Path, default=REPOSITORY / "build" / "dev")
    parser.add_argument("--sample", type=int, default=0, help="so many mutants; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--only", default="", help="part of the names of the files")
    parser.add_argument("--list", action="store_true", help="print the mutants, and end")
    arguments = parser.parse_args()
    chosen = all_mutants(arguments.only)
    everything = len(chosen)
    if arguments.sample > 0:
        # A smaller sample is the beginning of a larger one.
        random.Random(arguments.seed).shuffle(chosen)
        del chosen[arguments.sample :]
    if arguments.list:
        for mutant, _ in chosen:
            print(mutant)
        return 0
    build = Build(arguments.build_dir.resolve())
    check_tests(chosen, build)
    counts = {"found": 0, "lived": 0, "not compiled": 0}
    for mutant, tests in chosen:
        verdict = judge(mutant, tests, build)
        counts["found" if verdict.startswith("found") else verdict] += 1
        print(f"{mutant}: {verdict}", flush=True)
    ran = counts["found"] + counts["lived"]
    print(f"{counts['found']} of {ran} found, {counts['lived']} lived, "
          f"{counts['not compiled']} not compiled; {everything} mutants in all")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
