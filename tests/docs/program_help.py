# SPDX-License-Identifier: Apache-2.0
"""Whether a command line fits what a program says of itself with --help."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Sequence

SECONDS = 60.0
NEEDS_VALUE = " needs a value"
PLACEHOLDER = re.compile(r"^(\.\.\.|…)$")


@dataclass
class Help:
    """What a program, or one of its subcommands, takes."""

    takes_value: dict[str, bool] = field(default_factory=dict)  # by option
    subcommands: set[str] = field(default_factory=set)
    positionals: bool = False


def parse_help(text: str) -> Help:
    """Reads the forms of CLI11, argparse and our shell scripts."""
    found, section = Help(), ""
    has_sections = re.search(r"^options:$", text, re.MULTILINE | re.IGNORECASE) is not None
    has_subparsers = re.search(r"(^\s+|\} )\.\.\.$", text, re.MULTILINE) is not None
    for line in text.splitlines():
        stripped = line.strip()
        if re.match(r"^usage:", line, re.IGNORECASE):
            section = "usage"
        elif re.match(r"^\S.*[:\]]$", line):
            section = "options" if line.startswith("[Option Group") else stripped.lower()
            found.positionals |= section in ("positionals:", "positional arguments:")
        elif not stripped and section == "usage":
            section = ""
        if section == "usage":
            _read_usage(stripped, found)
        elif stripped.startswith("-") and (section.startswith("options") or not has_sections):
            _read_option(stripped, found)
        elif section == "subcommands:" and (match := re.match(r"^  ([a-z][\w-]*)", line)):
            found.subcommands.add(match[1])
        elif has_subparsers and (match := re.match(r"^  \{([\w,-]+)\}", line)):
            found.subcommands |= set(match[1].split(","))
    return found


def _read_usage(line: str, found: Help) -> None:
    """Shell scripts name what they take here only: [--keep] [--work-dir DIR] DIRECTORY."""
    for match in re.finditer(r"\[(-{1,2}[A-Za-z][\w-]*)(?:[ =]([^\]|]+))?\]", line):
        found.takes_value.setdefault(match[1], match[2] is not None)
    rest = re.sub(r"\[-[^\]]*\]|^usage: *\S+|\[?OPTIONS\]?", " ", line, flags=re.IGNORECASE)
    found.positionals |= any(not word.startswith("-") for word in rest.split())


def _read_option(line: str, found: Help) -> None:
    line = re.sub(r" (Excludes|Needs): .*", "", line)  # CLI11 names other options there
    words = re.split(r"[,\s=]+", re.split(r" {2,}", line)[0])
    for name in (word for word in words if word.startswith("-")):
        found.takes_value[name] = any(word[:1] not in ("-", "") for word in words)


class Programs:
    """Asks each program once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], Help] = {}

    def help_of(self, program: Path, *subcommands: str) -> Help:
        key = (str(program), *subcommands)
        if key not in self._known:
            done = subprocess.run([*key, "--help"], capture_output=True, text=True,
                                  timeout=SECONDS, stdin=subprocess.DEVNULL)
            if done.returncode != 0:
                raise ValueError(f"{' '.join(key)} --help: exit code {done.returncode}: "
                                 f"{done.stderr.strip()}")
            self._known[key] = parse_help(done.stdout)
        return self._known[key]

    def problem(self, program: Path, arguments: Sequence[str]) -> str | None:
        """Why the program would not take these arguments, as far as its help tells."""
        path: list[str] = []
        levels = [self.help_of(program)]
        words = [word.strip("[]") for word in arguments if not PLACEHOLDER.match(word)]
        while words:
            word = words.pop(0)
            if word.startswith("-") and word != "-":
                name, _, value = word.partition("=")
                level = next((level for level in reversed(levels) if name in level.takes_value),
                             None)
                if level is None:
                    return f"no option {name} of {' '.join([program.name, *path])}"
                if level.takes_value[name] and not value:
                    if not words or words[0].startswith("--"):
                        return name + NEEDS_VALUE
                    words.pop(0)
            elif levels[-1].subcommands:
                if word not in levels[-1].subcommands:
                    return f"no subcommand {word} of {' '.join([program.name, *path])}"
                path.append(word)
                levels.append(self.help_of(program, *path))
            elif not levels[-1].positionals:
                return f"{' '.join([program.name, *path])} takes no argument such as {word}"
        return None
