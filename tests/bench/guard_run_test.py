#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs of bench/guard.py as a whole: with programs that make their figures up, and with a small
repository whose benchmark is a real one."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from labkit.process import wait_until

GUARD = Path(__file__).resolve().parents[2] / "bench" / "guard.py"
PATIENCE_SECONDS = 120.0

# Stands in for a google-benchmark program: prints the times that TIMES gives for each benchmark,
# one after the other, or does not end.
PROGRAM = """#!{python}
import json, os, re, sys, time
from pathlib import Path
TIMES = {times}
options = dict(word[2:].split("=", 1) for word in sys.argv[1:])
names = [name for name in TIMES if re.search(options["benchmark_filter"], name)]
if options.get("benchmark_list_tests") == "true":
    print("\\n".join(names))
    sys.exit()
state = Path(__file__).with_suffix(".runs")
run = int(state.read_text()) if state.exists() else 0
state.write_text(str(run + 1))
if {hangs}:
    Path(__file__).with_suffix(".pid").write_text(str(os.getpid()))
    time.sleep(600)
print(json.dumps({{"benchmarks": [
    {{"name": name, "run_type": "iteration", "time_unit": "ns", "real_time": 1,
      "cpu_time": TIMES[name][run % len(TIMES[name])]}} for name in names]}}))
"""

CMAKE = """cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
find_package(benchmark CONFIG REQUIRED)
add_executable(spin_bench bench/spin_bench.cc)
target_link_libraries(spin_bench PRIVATE benchmark::benchmark)
"""
PRESETS = {
    "version": 6,
    "configurePresets": [{"name": "release", "generator": "Ninja",
                          "binaryDir": "${sourceDir}/build/${presetName}",
                          "cacheVariables": {"CMAKE_BUILD_TYPE": "Release"}}],
    "buildPresets": [{"name": "release", "configurePreset": "release"}],
}
SPIN = """#include <benchmark/benchmark.h>
static void Spin(benchmark::State& state) {
  for (auto _ : state) {
    for (int i = 0; i < TURNS; ++i) benchmark::DoNotOptimize(i);
  }
}
BENCHMARK(Spin);
BENCHMARK_MAIN();
"""


def make_program(folder: Path, name: str, times: dict[str, list[float]],
                 hangs: bool = False) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(PROGRAM.format(python=sys.executable, times=times, hangs=hangs))
    path.chmod(0o755)


class GuardRun(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory(prefix="ecpipe-guard-test-")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.a, self.b = self.folder / "a", self.folder / "b"
        # What the guard puts into the temporary folder is seen, and must be gone at the end.
        self.scratch = self.folder / "tmp"
        self.scratch.mkdir()

    def guard(self, *arguments: str | Path) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, GUARD, *arguments], capture_output=True, text=True,
            timeout=PATIENCE_SECONDS, env={**os.environ, "TMPDIR": str(self.scratch)})
        self.assertEqual(list(self.scratch.iterdir()), [])
        return done.returncode, done.stdout + done.stderr

    def compare_dirs(self, *arguments: str | Path) -> tuple[int, str]:
        return self.guard("--bin-dirs", self.a, self.b, "--rounds", "3", *arguments)


class MadeUpFigures(GuardRun):
    def test_a_slowdown_fails_and_is_named(self) -> None:
        make_program(self.a, "x_bench", {"Same/1": [100], "Slow/1": [100], "Fast/1": [100]})
        make_program(self.b, "x_bench", {"Same/1": [101], "Slow/1": [120], "Fast/1": [80]})
        out = self.folder / "out.json"
        code, text = self.compare_dirs("--json", out)
        self.assertEqual(code, 1, text)
        self.assertRegex(text, r"x_bench Slow/1 +1\.200 .*SLOWER: 1\.200 when measured again")
        self.assertRegex(text, r"x_bench Fast/1 +0\.800 .*faster")
        self.assertIn("3 compared: 1 slower, 1 faster", text)
        rows = {row["name"]: row for row in json.loads(out.read_text())["rows"]}
        self.assertTrue(rows["x_bench Slow/1"]["confirmed"])
        self.assertFalse(rows["x_bench Same/1"]["confirmed"])

    def test_the_same_times_pass(self) -> None:
        for folder in (self.a, self.b):
            make_program(folder, "x_bench", {"Same/1": [100, 103, 98]})
        code, text = self.compare_dirs()
        self.assertEqual(code, 0, text)

    def test_a_slowdown_within_the_noise_passes(self) -> None:
        # Each build's first runs of a round take 30 % longer than its last ones.
        make_program(self.a, "x_bench", {"Noisy": [130, 100]})
        make_program(self.b, "x_bench", {"Noisy": [156, 120]})
        code, text = self.compare_dirs()
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"Noisy +1\.200")

    def test_a_slowdown_that_does_not_come_back_passes(self) -> None:
        make_program(self.a, "x_bench", {"Once": [100]})
        make_program(self.b, "x_bench", {"Once": [120] * 6 + [100] * 6})
        code, text = self.compare_dirs()
        self.assertEqual(code, 0, text)
        self.assertIn("noise: 1.000 when measured again", text)

    def test_what_only_one_side_has_is_listed(self) -> None:
        make_program(self.a, "x_bench", {"Same": [100], "Old": [100]})
        make_program(self.b, "x_bench", {"Same": [100], "New": [100]})
        make_program(self.b, "y_bench", {"All": [100]})
        code, text = self.compare_dirs()
        self.assertEqual(code, 0, text)
        for line in ("only in A: x_bench Old", "only in B: x_bench New", "only in B: y_bench All",
                     "1 compared"):
            self.assertIn(line, text)

    def test_the_filter_chooses(self) -> None:
        make_program(self.a, "x_bench", {"Same": [100], "Slow": [100]})
        make_program(self.b, "x_bench", {"Same": [100], "Slow": [200]})
        self.assertEqual(self.compare_dirs("--filter", "Same")[0], 0)
        self.assertEqual(self.compare_dirs("--filter", "Slow")[0], 1)

    def test_nothing_to_compare_is_an_error(self) -> None:
        make_program(self.a, "x_bench", {"Old": [100]})
        make_program(self.b, "x_bench", {"New": [100]})
        code, text = self.compare_dirs()
        self.assertEqual(code, 2, text)
        self.assertIn("no benchmark in common", text)

    def test_a_program_that_fails_is_an_error(self) -> None:
        make_program(self.a, "x_bench", {"Same": [100]})
        make_program(self.b, "x_bench", {"Same": [0]})
        code, text = self.compare_dirs()
        self.assertEqual(code, 2, text)
        self.assertIn("took no time", text)

    def test_an_interrupt_ends_the_program_under_way(self) -> None:
        make_program(self.a, "x_bench", {"Same": [100]}, hangs=True)
        make_program(self.b, "x_bench", {"Same": [100]})
        guard = subprocess.Popen(
            [sys.executable, GUARD, "--bin-dirs", self.a, self.b],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            pid_file = self.a / "x_bench.pid"
            wait_until(lambda: pid_file.exists() and pid_file.read_text() != "",
                       PATIENCE_SECONDS, "the program runs")
            guard.send_signal(signal.SIGINT)
            _, errors = guard.communicate(timeout=PATIENCE_SECONDS)
        finally:
            guard.kill()
            guard.wait()
        self.assertEqual(guard.returncode, 128 + signal.SIGINT, errors)
        with self.assertRaises(ProcessLookupError):
            os.kill(int(pid_file.read_text()), 0)


class RealBuilds(GuardRun):
    def setUp(self) -> None:
        super().setUp()
        self.repository = self.folder / "repository"
        (self.repository / "bench").mkdir(parents=True)
        (self.repository / "CMakeLists.txt").write_text(CMAKE)
        (self.repository / "CMakePresets.json").write_text(json.dumps(PRESETS))
        (self.repository / ".gitignore").write_text("/build/\n")
        self.git("init", "--quiet")
        self.spin(1000)
        self.git("add", "--all")
        self.git("-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet",
                 "-m", "spin")

    def git(self, *arguments: str) -> str:
        return subprocess.run(["git", "-C", self.repository, *arguments], check=True,
                              capture_output=True, text=True).stdout

    def spin(self, turns: int) -> None:
        (self.repository / "bench" / "spin_bench.cc").write_text(SPIN.replace("TURNS", str(turns)))

    def files(self) -> set[Path]:
        return {path for path in self.repository.rglob("*") if path.is_file()}

    def compare(self, *revisions: str) -> tuple[int, str]:
        return self.guard("--repository", self.repository, "--rounds", "3", "--min-time", "0.005",
                          "--work-dir", self.folder / "work", *revisions)

    def test_finds_what_the_working_tree_made_slower(self) -> None:
        self.spin(4000)
        before = self.files()
        code, text = self.compare("HEAD")
        self.assertEqual(code, 1, text)
        ratio = float(re.search(r"spin_bench Spin +([\d.]+)", text).group(1))
        self.assertGreater(ratio, 2, text)
        self.assertEqual(self.files(), before)
        self.assertEqual(self.git("status", "--porcelain"), " M bench/spin_bench.cc\n")

        # The folder serves for other revisions, too.
        code, text = self.compare("HEAD", "HEAD")
        self.assertNotEqual(code, 2, text)
        ratio = float(re.search(r"spin_bench Spin +([\d.]+)", text).group(1))
        self.assertLess(ratio, 2, text)

        code, text = self.compare("HEAD", "no-such-revision")
        self.assertEqual(code, 2, text)
        self.assertIn("has no revision", text)


if __name__ == "__main__":
    unittest.main()
