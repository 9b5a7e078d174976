#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which mutants tests/mutants.py makes of a file, and what it makes of tests that find them."""

from __future__ import annotations

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutants import Build, Mutant, all_mutants, fails, mutants_of, without_text  # noqa: E402


class Mutants(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def made_of(self, text: str) -> list[Mutant]:
        path = self.folder / "a.cc"
        path.write_text(text, encoding="utf-8")
        return list(mutants_of(path))

    def changes(self, text: str) -> set[tuple[str, str]]:
        return {(mutant.old.strip(), mutant.new.strip()) for mutant in self.made_of(text)}

    def test_operators_and_constants(self) -> None:
        self.assertEqual(self.changes("  if (a < 7 && b == c) return x + y;"),
                         {("<", "<="), ("7", "8"), ("&&", "||"), ("==", "!="), ("+", "-")})
        self.assertEqual(self.changes("  bool done = true;"), {("true", "false")})

    def test_statements(self) -> None:
        self.assertEqual(self.changes("  ++count_;"), {("++count_;", ";")})
        self.assertEqual(self.changes("  lanes.clear();"), {("lanes.clear();", ";")})
        self.assertEqual(self.changes("  return lane;"), set())

    def test_text_comments_and_templates_are_left_alone(self) -> None:
        self.assertEqual(self.changes('  return "a < b + 1";  // c && d'), set())
        self.assertEqual(self.changes("  std::vector<Lane> lanes;"), set())
        self.assertEqual(self.changes("bool is_true_name;"), set())
        self.assertEqual(without_text('f("//", a); // b'), "f(    , a);     ")

    def test_what_is_not_compiled_is_left_alone(self) -> None:
        text = "#ifdef OTHER\nint a = 1;\n#else\nint a = 2;\n#endif\n"
        self.assertEqual(self.changes(text), {("2", "3")})

    def test_numbers_are_changed_as_a_whole(self) -> None:
        self.assertEqual(self.changes("  double a = 50e-6 * 23'000;"), set())
        self.assertEqual(self.changes("    .rank = 60,"), set(), "of an order")

    def test_each_mutant_is_made_once(self) -> None:
        made = [str(mutant) for mutant, _ in all_mutants("planning/.*er.cc")]
        self.assertEqual(len(made), len(set(made)))
        self.assertTrue(any("planning/planner.cc:" in name for name in made))

    def test_a_file_is_compiled_as_the_library_has_it(self) -> None:
        entries = [
            {"file": "/a.cc", "command": f"/usr/bin/ccache c++ -D{name} -Werror -o {into} -c /a.cc"}
            for name, into in (("LIBRARY", "src/a.o"), ("CANARY", "tests/sim/a.o"))
        ]
        (self.folder / "compile_commands.json").write_text(json.dumps(entries))
        flags = Build(self.folder, self.folder).flags(Path("/a.cc"))
        self.assertEqual(flags[:3], ["c++", "-DLIBRARY", "-w"])

    def test_a_mutant_changes_one_place(self) -> None:
        (first, second) = self.made_of("x = a + b + c\n")
        self.assertEqual(first.text(), "x = a - b + c\n")
        self.assertEqual(second.text(), "x = a + b - c\n")

    def test_a_test_that_fails_is_named(self) -> None:
        program = self.folder / "some_test"
        program.write_text("#!/bin/sh\necho '[  FAILED  ] Room.Thing (3 ms)'; exit 1\n")
        program.chmod(0o755)
        self.assertEqual(fails(program, "*", self.folder), "Room.Thing")
        program.write_text("#!/bin/sh\nexit 0\n")
        self.assertEqual(fails(program, "*", self.folder), "")
        program.write_text("#!/bin/sh\nkill -ABRT $$\n")
        self.assertIn("some_test ends with", fails(program, "*", self.folder))


if __name__ == "__main__":
    unittest.main()
