# SPDX-License-Identifier: Apache-2.0
"""Finds the functions of a C++ file, as far as its braces tell them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterator

# What may hold braces that open nothing: comments, strings, characters, preprocessor lines.
NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ ]*#[^\n]*',
    re.S | re.M)
SCOPE = re.compile(r"\b(namespace|class|struct|union|extern)\b")
# `struct` after the last bracket names a class; before it, a parameter or a result.
TYPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b[^()]*$")


@dataclass(frozen=True)
class Function:
    line: int   # where its head begins, from 1
    lines: int  # head and body
    head: str   # the first line of it


def cpp_functions(text: str) -> Iterator[Function]:
    """Those of namespaces and classes; a lambda belongs to the function that it stands in."""
    code = NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    open_braces: list[tuple[str, int]] = []  # of each: what it opens, where its head begins
    head_start = 0
    for position, character in enumerate(code):
        if character == "{":
            head = code[head_start:position]
            in_scope = not open_braces or open_braces[-1][0] == "scope"
            open_braces.append(
                (kind_of(head) if in_scope else "block",
                 head_start + len(head) - len(head.lstrip())))
            head_start = position + 1
        elif character == "}" and open_braces:
            kind, begin = open_braces.pop()
            head_start = position + 1
            if kind == "function":
                line = code.count("\n", 0, begin) + 1
                yield Function(line, code.count("\n", begin, position) + 1,
                               text[begin:].split("\n", 1)[0])
        elif character == ";":
            head_start = position + 1


def kind_of(head: str) -> str:
    if "(" in head and not TYPE.search(head):
        return "function"
    return "scope" if SCOPE.search(head) else "block"
