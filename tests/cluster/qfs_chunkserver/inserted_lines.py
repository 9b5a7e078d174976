#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes what integrations/qfs/README.md has one insert into QFS out of it: each part to a file
PART.inc, for the stand-in that includes it where QFS gets it.

    inserted_lines.py README FOLDER    writes FOLDER/A.inc to FOLDER/I.inc
    inserted_lines.py README --count   prints how many lines they are
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PARTS = "ABCDEFGHI"
BLOCK = re.compile(r"^ *```cpp\n(?P<text> *// A\n.*?)^ *```$", re.MULTILINE | re.DOTALL)
PART = re.compile(r"^ *// (?P<name>[A-Z])(:.*)?$")


def inserted(readme: str) -> dict[str, list[str]]:
    """The lines of each part. ValueError: the README has other parts."""
    blocks = BLOCK.findall(readme)
    if len(blocks) != 1:
        raise ValueError(f"{len(blocks)} blocks of C++ begin with part A, not 1")
    parts: dict[str, list[str]] = {}
    name = ""
    for line in blocks[0].splitlines():
        if match := PART.match(line):
            name = match["name"]
            parts[name] = []
        else:
            parts[name].append(line)
    if "".join(parts) != PARTS or not all(parts.values()):
        raise ValueError(f"the parts are {', '.join(parts)}, not {', '.join(PARTS)}")
    return parts


def main() -> None:
    readme, target = Path(sys.argv[1]), sys.argv[2]
    parts = inserted(readme.read_text(encoding="utf-8"))
    if target == "--count":
        print(sum(len(lines) for lines in parts.values()))
        return
    for name, lines in parts.items():
        Path(target, f"{name}.inc").write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
