#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a program's completion for bash, from what the program itself says with --help.

    bash_completion.py PROGRAM [--commands]

--commands: only lists the program's commands, one a line.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = 30.0
# What stands for a file in a help text; other values are for the user to type.
FILE_VALUES = re.compile(r"^(FILE|DIR|PATH|MANIFEST|TEXT)\b")

# The words of each command are looked up by the path of commands that was typed before.
TEMPLATE = """# bash completion for {name}, made from its --help
_{function}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} path="" each
  local -A words=(
{words}
  )
  for each in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [[ -v "words[$path $each]" ]] && path+=" $each"
  done
  case $previous in
    {files})
      COMPREPLY=($(compgen -f -- "$word"))
      compopt -o filenames
      return ;;
  esac
  COMPREPLY=($(compgen -W "${{words[$path]}}" -- "$word"))
  if ((${{#COMPREPLY[@]}} == 0)); then
    COMPREPLY=($(compgen -f -- "$word"))
    compopt -o filenames
  fi
}}
complete -F _{function} {name}
"""


@dataclass
class Level:
    """What a program, or one of its commands, takes."""

    options: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)  # options whose value is a file
    commands: list[str] = field(default_factory=list)


def read_level(text: str) -> Level:
    level, section = Level(), ""
    for line in text.splitlines():
        if match := re.match(r"^(\w+):$", line):
            section = match[1]
        elif section == "Subcommands" and (match := re.match(r"^  ([a-z][\w-]*)(  |$)", line)):
            level.commands.append(match[1])
        elif match := re.match(r"^ +(-[\w,-]+)(?: (\S+))?", line):
            names = match[1].split(",")
            level.options += names
            if FILE_VALUES.match(match[2] or ""):
                level.files += names
    return level


def levels_of(program: Path, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Level]:
    done = subprocess.run([program, *path, "--help"], capture_output=True, text=True,
                          timeout=SECONDS, check=True, stdin=subprocess.DEVNULL)
    level = read_level(done.stdout)
    levels = {path: level}
    for command in level.commands:
        levels |= levels_of(program, (*path, command))
    return levels


def completion(program: Path) -> str:
    levels = levels_of(program)
    everywhere = levels[()].options  # those of the program are taken after a command, too
    rows, files = [], set()
    for path, level in levels.items():
        words = dict.fromkeys([*level.commands, *level.options, *everywhere])
        rows.append(f'    ["{"".join(f" {each}" for each in path)}"]="{" ".join(words)}"')
        files.update(level.files)
    # An empty subscript is an error in bash.
    text = TEMPLATE.format(name=program.name, function=program.name.replace("-", "_"),
                           words="\n".join(rows), files="|".join(sorted(files)) or "--none")
    return text.replace('[""]=', '["."]=').replace('"${words[$path]}"', '"${words[${path:-.}]}"')


def main() -> None:
    program = Path(sys.argv[1])
    if "--commands" in sys.argv[2:]:
        print("\n".join(levels_of(program)[()].commands))
    else:
        print(completion(program), end="")


if __name__ == "__main__":
    main()
