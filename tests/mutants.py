#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes one operator of the code at a time, and asks whether a test notices.

    tests/mutants.py --sample 60 --seed 1            a random sample of all mutants
    tests/mutants.py --only slice_pipeline           those of the files with this in their names
    tests/mutants.py --again OUTPUT                  those that lived in an earlier run's output
    tests/mutants.py --list                          the mutants, without running any

A mutant is one file with one change: another comparison, + for -, && for ||, a constant more by
one, a statement left out. The file is compiled beside the tree and linked into the tests that cover
it, before the library that has the true one, so neither the tree nor the build folder changes. The
tests must have been built: cmake --build --preset dev --target unit_tests script_tests.

A mutant that fails a test, crashes it or keeps it from ending is found; one that passes all of them
lives, and is printed with its place. One that does not compile counts for nothing. The last line
has the numbers. Exit code 0, if all tests pass without a mutant.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import random
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
# Several times what any of the tests takes: of a core, of memory, and on a busy machine.
TEST_CORE_SECONDS = 20
TEST_BYTES = 4 << 30
TEST_SECONDS = 300

# Which tests cover a file: those first that find the most. Program and filter.
Tests = list[tuple[str, str]]
# What waits for time to pass, or writes to disk, finds little that the others do not.
SLOW = "-*Sqlite*:*Qfs*:RecoveryManager*:RepairsAtOnce*:*AThreadOfItsOwnChecks"
COORDINATOR = ("coordinator_unit_test", "coordinator_threads_unit_test")
PLANNERS: Tests = [
    ("planner_script_test", "*"),
    ("planning_unit_test", "*"),
]
# What becomes of a request before a scheme has it.
REQUESTS: Tests = [
    *((program, "*Facts*:*Versions*:*Attempt*:*Host*:*Repair*:CorruptReports*:Verification*"
       ":PlannedPaths*" + SLOW) for program in COORDINATOR),
    ("planning_unit_test", "*"),
]  # fmt: skip
TRACKER: Tests = [
    ("repairs_script_test", "*"),
    *((program, "*Attempt*:*Host*:*Repair*:*LeftOut*:*Straggler*:*Late*:*Lane*:*Look*:*Slow*"
       ":*Silent*:*WhoIsStuck*:*SpeedHistory*:CoordinatorMetrics*" + SLOW)
      for program in COORDINATOR),
    # Its small worlds; the others take many times as long.
    ("tracker_search_script_test",
     "*TrackerSearch*/ForARequestor2Faults0Ticks0Checks:*TrackerSearch*/Hosted1Faults0Ticks1Checks"
     ":*TrackerSearch*/TwoHosts1Faults1Ticks0Checks"),
]  # fmt: skip
COVERED_BY: list[tuple[str, Tests]] = [
    ("src/pipeline/slice_pipeline.cc", [
        ("pipeline_unit_test", "SlicePipeline*"), ("pipeline_unit_test", "*")]),
    ("src/net/frame.cc", [
        ("net_unit_test", "Frame*:Hello*:Token*"), ("net_unit_test", "*Hostile*")]),
    ("src/coordinator/repairs/left_out.cc", TRACKER),
    ("src/coordinator/repairs/tracker*.cc", TRACKER),
    ("src/coordinator/planning/[rw]*.cc", REQUESTS),  # repair_planner and wanted_blocks
    ("src/coordinator/planning/code_cache.cc", REQUESTS),
    ("src/coordinator/planning/*.cc", PLANNERS),
    ("src/coordinator/planning/schemes/rp.cc", [
        *PLANNERS, ("coordinator_unit_test", "PlannedPaths*")]),
    ("src/coordinator/planning/schemes/*.cc", PLANNERS),
]

SWAPS = [
    (" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "),
    (" == ", " != "), (" != ", " == "), (" + ", " - "), (" - ", " + "),
    (" && ", " || "), (" || ", " && "), (" += ", " -= "), (" -= ", " += "),
    ("std::min", "std::max"), ("std::max", "std::min"),
    ("true", "false"), ("false", "true"),
]  # fmt: skip
NUMBER = re.compile(r"(?<![\w.'])(?<!\de-)\d+(?![\w.'])")  # whole, of one digit group
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
        # One more changes no order, and the order has a test.
        is_rank = code.lstrip().startswith(".rank = ")
        if left_out or is_rank or code.startswith(("#", "template")):
            continue
        for old, new in SWAPS:
            for found in re.finditer(re.escape(old), code):
                before, after = code[: found.start()][-1:], code[found.end() :][:1]
                if old[0] == " " or not (before + after).replace(" ", "").isidentifier():
                    yield Mutant(path, number, found.start(), old, new)
        for found in NUMBER.finditer(code):
            yield Mutant(path, number, found.start(), found[0], str(int(found[0]) + 1))
        # Nobody misses a check that never fails.
        if STATEMENT.match(code) and not code.lstrip().startswith("ECPIPE_CHECK("):
            indent = len(code) - len(code.lstrip())
            yield Mutant(path, number, indent, line[indent:], ";")


class Build:
    """The commands of a build folder, with one file changed."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder = folder
        self.scratch = scratch
        entries = json.loads((folder / "compile_commands.json").read_text(encoding="utf-8"))
        # Some files are compiled once more for the simulation, with a bug on demand.
        self.compiles = {entry["file"]: entry["command"] for entry in entries
                         if " -o src/" in entry["command"]}  # fmt: skip
        self.links: dict[str, str] = {}
        self.headers: dict[Path, Path] = {}
        self.lock = threading.Lock()

    def flags(self, path: Path) -> list[str]:
        """The compiler and what it needs to know, for quick results."""
        words = shlex.split(self.compiles[str(path)])
        # No mutant is compiled twice: in the compiler's cache it would only take up room.
        caches = [at for at, word in enumerate(words) if Path(word).name == "ccache"]
        words = words[caches[0] + 1 if caches else 0 : words.index("-o")]
        # The assertions of the library find what the sanitizers would.
        kept = [word for word in words if word != "-Werror"]
        return [*kept, "-w", "-g0", "-O0", "-D_GLIBCXX_ASSERTIONS"]

    def compiled_headers(self, path: Path) -> Path:
        """What the file includes, which takes longer to compile than the file itself."""
        with self.lock:
            if path not in self.headers:
                text = path.read_text(encoding="utf-8")
                includes = [line for line in text.split("\n") if line.startswith("#include")]
                header = self.scratch / f"{len(self.headers)}.h"
                header.write_text("\n".join(includes) + "\n", encoding="utf-8")
                output = header.with_suffix(".pch")
                subprocess.run(
                    [*self.flags(path), "-fpch-instantiate-templates", "-x", "c++-header",
                     str(header), "-o", str(output)],
                    cwd=self.folder, check=True)  # fmt: skip
                self.headers[path] = output
            return self.headers[path]

    def compile(self, path: Path, text: str, into: Path) -> Path | None:
        source, output = into / path.name, into / "mutant.o"
        source.write_text(text, encoding="utf-8")
        headers = str(self.compiled_headers(path))
        words = [*self.flags(path), "-include-pch", headers, "-c", str(source), "-o", str(output)]
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

    def source_folder(self, program: str) -> Path:
        """Where ctest runs it."""
        found = re.search(r" (tests/\S+?)/CMakeFiles/", self.link_command(program))
        assert found
        return REPOSITORY / found[1]

    def link(self, program: str, mutant: Path, into: Path) -> Path:
        output = into / program
        words = shlex.split(self.link_command(program))
        at = words.index("-o")
        words[at : at + 2] = [str(mutant), "-Wl,--strip-debug", "-o", str(output)]
        subprocess.run(words, cwd=self.folder, capture_output=True, check=True)
        return output


def fails(program: Path, tests: str, folder: Path) -> str:
    """Why; empty if all tests pass."""
    words = ["prlimit", f"--cpu={TEST_CORE_SECONDS}", f"--as={TEST_BYTES}", str(program),
             f"--gtest_filter={tests}", "--gtest_brief=1", "--gtest_fail_fast"]  # fmt: skip
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True,
                              errors="replace", timeout=TEST_SECONDS, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"{program.name} does not end"
    if done.returncode == 0:
        return ""
    failed = re.search(r"\[  FAILED  \] (\S+)", done.stdout)
    return failed[1].rstrip(",") if failed else f"{program.name} ends with {done.returncode}"


def judge(mutant: Mutant, tests: Tests, build: Build) -> str:
    """Which test finds it; "lived"; "not compiled"."""
    with tempfile.TemporaryDirectory(prefix="ecpipe-mutant-") as folder:
        into = Path(folder)
        compiled = build.compile(mutant.path, mutant.text(), into)
        if compiled is None:
            return "not compiled"
        for program, chosen in tests:
            why = fails(build.link(program, compiled, into), chosen, build.source_folder(program))
            if why:
                return f"found by {why}"
    return "lived"


def all_mutants(only: str) -> list[tuple[Mutant, Tests]]:
    tests_of: dict[Path, Tests] = {}
    for pattern, tests in COVERED_BY:
        for path in sorted(REPOSITORY.glob(pattern)):
            if re.search(only, str(path)):
                tests_of.setdefault(path, tests)
    return [(mutant, tests) for path, tests in tests_of.items() for mutant in mutants_of(path)]


def check_tests(chosen: list[tuple[Mutant, Tests]], build: Build) -> None:
    for program, tests in sorted({test for _, tests in chosen for test in tests}):
        binary = build.folder / "bin" / program
        if not binary.exists():
            sys.exit(f"{binary} is not there: cmake --build --preset dev --target {program}")
        if why := fails(binary, tests, build.source_folder(program)):
            sys.exit(f"{program} fails without any mutant: {why}; mend that first")


def run(chosen: list[tuple[Mutant, Tests]], build: Build, jobs: int) -> dict[str, int]:
    counts = {"found": 0, "lived": 0, "not compiled": 0}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        verdicts = pool.map(lambda pair: judge(*pair, build), chosen)
        for (mutant, _), verdict in zip(chosen, verdicts, strict=True):
            counts["found" if verdict.startswith("found") else verdict] += 1
            print(f"{mutant}: {verdict}", flush=True)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--build-dir", type=Path, default=REPOSITORY / "build" / "dev")
    parser.add_argument("--sample", type=int, default=0, help="so many mutants; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--only", default="", help="part of the files' names, a regular expression")
    parser.add_argument("--again", type=Path, help="the output of a run: only what lived in it")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="mutants judged side by side")
    parser.add_argument("--list", action="store_true", help="print the mutants, and end")
    arguments = parser.parse_args()
    chosen = all_mutants(arguments.only)
    everything = len(chosen)
    if arguments.sample > 0:
        # A smaller sample is the beginning of a larger one.
        random.Random(arguments.seed).shuffle(chosen)
        del chosen[arguments.sample :]
    if arguments.again:
        lived = {line.removesuffix(": lived") for line in arguments.again.read_text().splitlines()}
        chosen = [(mutant, tests) for mutant, tests in chosen if str(mutant) in lived]
    if arguments.list:
        for mutant, _ in chosen:
            print(mutant)
        return 0
    with tempfile.TemporaryDirectory(prefix="ecpipe-mutants-") as scratch:
        build = Build(arguments.build_dir.resolve(), Path(scratch))
        check_tests(chosen, build)
        counts = run(chosen, build, arguments.jobs)
    ran = counts["found"] + counts["lived"]
    print(f"{counts['found']} of {ran} found, {counts['lived']} lived, "
          f"{counts['not compiled']} not compiled; {everything} mutants in all")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
