#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over src with the checks that .clang-tidy lists. Exit code 1: it found something.

    tests/check_tidy.py --build build/asan    a build that clang compiles, with generated headers
    tests/check_tidy.py --self-test           that each check finds what it is for

The compile commands of that build say what to read: where files are compiled together, they are
read together, so that the headers of gRPC are read once a group.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
CONFIG = REPOSITORY / ".clang-tidy"
TIDY = "clang-tidy-19"
FINDING = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+):\d+: (?:warning|error): (?P<text>.*)$")
UNIT_SECONDS = 600  # of one process; the longest takes 15 CPU seconds

# What each check has to find.
BAD = {
    "bugprone-use-after-move":
        "std::string F(std::string a) { std::string b = std::move(a); return a + b; }",
    "bugprone-dangling-handle":
        "std::string G(); std::string_view F() { std::string_view v = G(); return v; }",
    "bugprone-unused-raii":
        "struct Lock { Lock(int*); ~Lock(); int* p; }; void F(int* m) { Lock{m}; ++*m; }",
    "bugprone-infinite-loop": "int F() { int n = 0; int m = 0; while (n < 9) { ++m; } return m; }",
    "bugprone-inaccurate-erase":
        "void F(std::vector<int>& v) { v.erase(std::remove(v.begin(), v.end(), 1)); }",
    "bugprone-undelegated-constructor":
        "struct S { S(); S(int) { S(); } };",
    "bugprone-redundant-branch-condition":
        "void G(); void F(bool on) { if (on) { if (on) { G(); } } }",
    "misc-redundant-expression": "bool F(int a) { return a == a; }",
    "misc-definitions-in-headers": "",  # in a header: see bad_files
    "performance-for-range-copy":
        "size_t F(const std::vector<std::string>& v) {\n"
        "  size_t n = 0;\n  for (const std::string s : v) n += s.size();\n  return n;\n}",
}
HEAD = ("#include <algorithm>\n#include <string>\n#include <string_view>\n#include <utility>\n"
        "#include <vector>\n")


def units_of(build: Path) -> list[str]:
    """The sources of src in the compile commands, and groups of them."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    roots = (f"{REPOSITORY}/src/", f"{build.resolve()}/src/")
    return sorted({entry["file"] for entry in commands if entry["file"].startswith(roots)})


def tidy(arguments: list[str]) -> list[str]:
    """Findings as FILE:LINE: TEXT [CHECK]; a failure without findings is one too."""
    done = subprocess.run([TIDY, f"--config-file={CONFIG}", "--quiet", *arguments],
                          capture_output=True, text=True, timeout=UNIT_SECONDS)
    found = []
    for line in done.stdout.splitlines():
        if match := FINDING.match(line):
            name = match["file"].removeprefix(f"{REPOSITORY}/")
            found.append(f"{name}:{match['line']}: {match['text']}")
    if done.returncode and not found:
        found.append(f"{' '.join(arguments)}: {TIDY} failed: {done.stderr.strip()[-400:]}")
    return found


def check_build(build: Path, jobs: int) -> int:
    units = units_of(build)
    if not units:
        print(f"{build}: no sources of src in compile_commands.json", file=sys.stderr)
        return 1
    with ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda unit: tidy(["-p", str(build), unit]), units)
        found = sorted({finding for result in results for finding in result})
    for finding in found:
        print(finding)
    print(f"{len(units)} units: {len(found)} problems")
    return 1 if found else 0


def self_test() -> int:
    listed = set(re.findall(r"^ {2}([a-z]+-[a-z-]+),?$", CONFIG.read_text(encoding="utf-8"), re.M))
    wrong = [f"{check}: no example of what it finds" for check in sorted(listed - set(BAD))]
    wrong += [f"{check}: not in .clang-tidy" for check in sorted(set(BAD) - listed)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "src")
        folder.mkdir()
        for check, text in BAD.items():
            file = folder / f"{check}.cc"
            file.write_text(HEAD + text + "\n", encoding="utf-8")
            if check == "misc-definitions-in-headers":
                (folder / "bad.h").write_text("int F() { return 1; }\n", encoding="utf-8")
                file.write_text('#include "bad.h"\n', encoding="utf-8")
            found = tidy([str(file), "--", "-std=c++20"])
            if not any(f"[{check}" in finding for finding in found):
                wrong.append(f"{check}: found {found or 'nothing'}")
        good = folder / "good.cc"
        good.write_text(HEAD + "std::string F(std::string a) { return a; }\n", encoding="utf-8")
        if found := tidy([str(good), "--", "-std=c++20"]):
            wrong.append(f"clean code: {found}")
    print("\n".join(wrong) or f"{len(BAD)} checks find what they are for")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--build", type=Path, help="a build folder, such as build/asan")
    what.add_argument("--self-test", action="store_true")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)),
                        help="processes at once (default: one a core)")
    arguments = parser.parse_args()
    return self_test() if arguments.self_test else check_build(arguments.build, arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())
