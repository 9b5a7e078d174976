# SPDX-License-Identifier: Apache-2.0
"""What the user sees: steps and their seconds, a table that grows, a line that lives."""

from __future__ import annotations

import contextlib
import sys
import textwrap
import time
from typing import Iterator, Sequence

WIDTH = 80
LINE_SECONDS = 1.0  # between lines that cannot be rewritten
ERASE = "\r\033[K"


def say(text: str = "") -> None:
    print(text, flush=True)


def say_wrapped(text: str, indent: str = "    ") -> None:
    """Over as many lines as it takes; below a step, unless `indent` says otherwise."""
    say(textwrap.fill(" ".join(text.split()), WIDTH, initial_indent=indent,
                      subsequent_indent=indent, break_on_hyphens=False))


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    print(f"==> {text} ", end="", flush=True)
    start = time.monotonic()
    yield
    say(f"({time.monotonic() - start:.1f} s)")


class Table:
    """Its columns have fixed widths, so that a row can be shown as soon as it is known."""

    def __init__(self, columns: Sequence[tuple[str, int]]) -> None:
        """Names and widths; of a negative width, what stands on the left."""
        self._widths = [width for _, width in columns]
        self.add([name for name, _ in columns])

    def add(self, cells: Sequence[str]) -> None:
        say("  ".join(cell.ljust(-width) if width < 0 else cell.rjust(width)
                      for cell, width in zip(cells, self._widths)).rstrip())


class LiveLine:
    """One line that is rewritten in place on a terminal; elsewhere a line a second. Use as a
    context manager: at its end the line is gone."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._next_line = time.monotonic() + LINE_SECONDS

    def __enter__(self) -> LiveLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal:
            with contextlib.suppress(OSError):
                print(ERASE, end="", flush=True)

    def hint(self, text: str) -> None:
        """Only on a terminal."""
        if self._terminal:
            print(f"{ERASE}{text}", end="", flush=True)

    def show(self, text: str) -> None:
        self.hint(f"    {text}")
        if not self._terminal and time.monotonic() >= self._next_line:
            self._next_line += LINE_SECONDS
            say(f"    {text}")
