# SPDX-License-Identifier: Apache-2.0
"""Holds one page against the repository: paths, links, commands and TOML that it names must exist.

Each check returns problems as "PAGE:LINE: what". Pages and programs are looked at, nothing is
changed; what is run is run by commands_test.py.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator, Sequence

import documented
from etc_ecpipe import EtcEcpipe
from program_help import NEEDS_VALUE, SECONDS, Programs

PROGRAMS = ("ecpipe", "ecpipe-coordinator", "ecpipe-helper", "qfs_chunk_reader")
FOLDERS = ("src", "docs", "bench", "deploy", "tests", "integrations", "proto", "cmake")
SCRIPT = re.compile(r"^[\w./-]+\.(py|sh)$")
BUILT = re.compile(r"^build/[\w-]+/bin/(?P<name>\w+)$")
SOURCE = re.compile(r"^[A-Za-z][\w./-]*\.(h|cc|proto|java|py|sh)$")
KEY_SPAN = re.compile(r"^\[(?P<section>\w+)\] (?P<key>\w+)(?: = .*)?$")
LONE_KEY_SPAN = re.compile(r"^(?P<section>helper|coordinator|topology|limits|timeouts|endpoint"
                           r"|probe|defaults|recovery|listen|requestor)"
                           r"\.(?P<key>(?!txt$|toml$|db$)\w+)(?: = .*)?$")
# Which daemon a table belongs to; helper and coordinator have some of one name.
TABLES = {
    "coordinator": ("coordinator", "defaults", "topology", "hdfs", "qfs", "recovery", "probe",
                    "limits", "timeouts", "log", "web", "tls", "audit"),
    "helper": ("helper", "listen", "redis", "endpoint", "limits", "timeouts", "log", "web",
               "tls", "audit"),
    "requestor": ("requestor", "endpoint", "log", "web", "tls"),
}
# What a fragment leaves out.
NEEDED = {
    "coordinator": {"coordinator": {"data_directory": "state"}},
    "helper": {"helper": {"node_id": "node-1", "coordinator": "127.0.0.1:1", "roots": ["blocks"]}},
    "requestor": {"requestor": {"coordinator": "127.0.0.1:1"},
                  "endpoint": {"address": "unix:/endpoint.sock"}},
}
PYTHON_TEST = re.compile(r"\b(test_[a-z0-9_]+)\b(?!\.py|/)")
CPP_TEST = re.compile(r"\b(?:base|model|net|codec|coordinator|helper|pipeline|requestor|rpc)"
                      r"\.(?P<suite>[A-Z]\w+)(?:\.(?P<name>[A-Z]\w+))?")


@dataclass
class Checker:
    repository: Path
    bin_dir: Path
    programs: Programs = field(default_factory=Programs)

    def __post_init__(self) -> None:
        listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                                cwd=self.repository, capture_output=True, text=True)
        self._files = [name for name in listed.stdout.splitlines()
                       if (self.repository / name).exists()] or [
            str(path.relative_to(self.repository)) for path in self.repository.rglob("*")
            if path.is_file()]
        self._presets = self._read_presets()
        self._test_sources = "\n".join(
            (self.repository / name).read_text() for name in self._files
            if name.startswith("tests/") and name.endswith((".py", ".cc")))

    def _read_presets(self) -> set[str]:
        file = self.repository / "CMakePresets.json"
        if not file.exists():
            return set()
        return {preset["name"] for preset in json.loads(file.read_text())["configurePresets"]}

    def check(self, page: Path, text: str) -> list[str]:
        found = []
        for number, problem in (*self.links(page, text), *self.paths(text),
                                *self.commands(page, text), *self.spans(page, text),
                                *self.toml(text), *self.tests(text)):
            found.append(f"{page.relative_to(self.repository)}:{number}: {problem}")
        return found

    # ---- Files -------------------------------------------------------------------------------

    def links(self, page: Path, text: str) -> Iterator[tuple[int, str]]:
        for link in documented.links(text):
            if not (page.parent / link.text).exists():
                yield link.line, f"the link leads nowhere: {link.text}"

    def paths(self, text: str) -> Iterator[tuple[int, str]]:
        for path in documented.paths(text):
            if not self.exists(path.text.rstrip(".,")):
                yield path.line, f"no such file: {path.text}"

    def exists(self, name: str) -> bool:
        """Of the repository; * and {a,b} as in a shell."""
        if match := re.search(r"\{([^{}]*)\}", name):
            return all(self.exists(name.replace(match[0], each)) for each in match[1].split(","))
        return (self.repository / name).exists() or any(self.repository.glob(name))

    def has_source(self, name: str) -> bool:
        return any(file == name or file.endswith("/" + name) for file in self._files)

    def tests(self, text: str) -> Iterator[tuple[int, str]]:
        """Tests that a page names: test_helper_killed, coordinator.Attempts.AreBounded."""
        for number, line in enumerate(text.splitlines(), start=1):
            for match in PYTHON_TEST.finditer(line):
                if match[1] not in self._test_sources:
                    yield number, f"no test {match[1]}"
            for match in CPP_TEST.finditer(line):
                named = rf"TEST(_F|_P)?\({match['suite']}\w*,\s*{match['name'] or ''}"
                if not re.search(named, self._test_sources):
                    yield number, f"no test {match[0]}"

    # ---- Commands ----------------------------------------------------------------------------

    def commands(self, page: Path, text: str) -> Iterator[tuple[int, str]]:
        for line in documented.shell_lines(text):
            for words in documented.split_commands(line.text):
                if problem := self.command(page, words):
                    yield line.line, f"{' '.join(words)}: {problem}"

    def command(self, page: Path, words: Sequence[str]) -> str | None:
        """Why this command cannot be; None for others' programs."""
        if words[0] == "cmake" and "--preset" in words:
            preset = words[words.index("--preset") + 1]
            return None if preset in self._presets else f"no preset {preset}"
        if match := BUILT.match(words[0]):
            return self._built(match["name"], words[1:])
        program = self.program(page, words[0])
        if program is None or program.name.endswith("_test.py"):
            return None  # a test takes its class as an argument; see tests()
        if not program.exists():
            return "no such program"
        try:
            return self.programs.problem(program, words[1:])
        except (ValueError, OSError, subprocess.TimeoutExpired) as error:
            return str(error)

    def _built(self, name: str, arguments: Sequence[str]) -> str | None:
        if (self.bin_dir / name).exists() and "_bench" not in name:
            return self.programs.problem(self.bin_dir / name, arguments)
        names = "|".join(("add_executable", "ecpipe_bench", "ecpipe_sim", "ecpipe_fuzz"))
        room = f"ecpipe_room_test\\({name.removesuffix('_unit_test')}"
        for file in self._files:
            if file.endswith("CMakeLists.txt") and re.search(
                    rf"(({names})\({name}|{room})\b", (self.repository / file).read_text()):
                return None
        return f"no target {name}"

    def program(self, page: Path, word: str) -> Path | None:
        """The file of one of our programs; None: it is somebody else's."""
        if word in PROGRAMS:
            return self.bin_dir / word
        if not SCRIPT.match(word):
            return None
        for place in (self.repository / word, page.parent / word):
            if place.exists():
                return place
        if word.split("/")[0] in (*FOLDERS, "."):
            return self.repository / word
        named = [file for file in self._files if file.endswith("/" + word)]
        return self.repository / named[0] if named else None

    def spans(self, page: Path, text: str) -> Iterator[tuple[int, str]]:
        """Inline code: a command, a source file, a key of a configuration."""
        for span in documented.spans(text):
            problem = None
            if match := KEY_SPAN.match(span.text) or LONE_KEY_SPAN.match(span.text):
                problem = self.key(match["section"], match["key"])
            elif SOURCE.match(span.text):
                problem = None if self.has_source(span.text) else "no such file"
            elif commands := documented.split_commands(span.text):
                problem = self.command(page, commands[0])
                if problem and problem.endswith(NEEDS_VALUE) and commands[0][-1].startswith("-"):
                    problem = None  # prose names an option without its value
            if problem:
                yield span.line, f"`{span.text}`: {problem}"

    # ---- Configurations ----------------------------------------------------------------------

    def toml(self, text: str) -> Iterator[tuple[int, str]]:
        for fence in documented.fences(text):
            if fence.language == "toml" and (problem := self.configuration(fence.text)):
                yield fence.line, problem

    def configuration(self, text: str) -> str | None:
        """Why no daemon takes this configuration, or this part of one."""
        try:
            tables = set(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            return f"no TOML: {error}"
        said = f"no daemon has all of the tables {', '.join(sorted(tables))}"
        for daemon, known in TABLES.items():
            if tables <= set(known):
                said = self.refusal(daemon, completed(text, NEEDED[daemon]))
                if not said:
                    return None
        return said

    def key(self, section: str, key: str) -> str | None:
        """Known keys are refused for their value, or not at all."""
        for daemon, tables in TABLES.items():
            if section in tables:
                said = self.refusal(daemon, completed(f"[{section}]\n{key} = []\n", NEEDED[daemon]))
                if "unknown key" not in said:
                    return None
        return f"no key {key} in [{section}]"

    def refusal(self, daemon: str, text: str) -> str:
        """What the daemon itself says of a configuration; empty: it is valid."""
        program = "ecpipe-coordinator" if daemon == "coordinator" else "ecpipe-helper"
        more = ["--requestor-only"] if daemon == "requestor" else []
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "page.toml")
            names_files = "/etc/ecpipe/" in text
            file.write_text(EtcEcpipe(Path(folder)).stand_in(text) if names_files else text)
            done = subprocess.run(
                [self.bin_dir / program, *more, "--config", file, "--check-config"],
                capture_output=True, text=True, timeout=SECONDS)
            return "" if done.returncode == 0 else done.stderr.strip().replace(str(file), "line")


def completed(text: str, needed: dict[str, dict[str, object]]) -> str:
    """A fragment with the keys that the daemon cannot do without."""
    given = tomllib.loads(text)
    for section, keys in needed.items():
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items()
                        if key not in given.get(section, {}))
        if section in given:
            text = re.sub(rf"^\[{section}\].*\n", lambda match: match[0] + lines, text, count=1,
                          flags=re.MULTILINE)
        else:
            text += f"\n[{section}]\n{lines}"
    return text
