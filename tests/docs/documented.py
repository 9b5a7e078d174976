# SPDX-License-Identifier: Apache-2.0
"""What a Markdown page names: commands, TOML, links and paths. Pure: text in, lists out."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\s*$")
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
SPAN = re.compile(r"`([^`]+)`")
HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")
SKIPPED_LANGUAGES = ("toml", "xml", "java", "json", "c", "cpp", "python")
# In front of a program's name.
BEFORE = re.compile(r"^(sudo|time|exec|nohup|then|do|else|if|while|until|!|\{|\(|[A-Z_]+=\S*)$")
INDENTED = 4
# Where our files are; a path in the text that begins with one of these must exist.
PATH = re.compile(r"(?<![\w/.:<-])(?:src|docs|bench|deploy|tests|integrations|proto|cmake)"
                  r"/[\w./*{},-]*[\w*}]")


@dataclass(frozen=True)
class Fence:
    """A fenced block: `line` is the number of its first line of text."""

    language: str
    line: int
    text: str


@dataclass(frozen=True)
class Named:
    """Something that the page names, and the line that names it."""

    line: int
    text: str


def fences(page: str) -> list[Fence]:
    found: list[Fence] = []
    opened: re.Match[str] | None = None
    first, body = 0, []
    for number, line in enumerate(page.splitlines(), start=1):
        match = FENCE.match(line)
        if opened is None and match:
            opened, first, body = match, number + 1, []
        elif opened is not None and match and not match["language"]:
            found.append(Fence(opened["language"], first, "\n".join(body)))
            opened = None
        elif opened is not None:
            body.append(line.removeprefix(opened["indent"]))
    if opened is not None:
        raise ValueError(f"line {first - 1}: the fence does not end")
    return found


def without_fences(page: str) -> list[Named]:
    """The lines of prose."""
    inside, lines = False, []
    for number, line in enumerate(page.splitlines(), start=1):
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            lines.append(Named(number, line))
    return lines


def logical_lines(lines: list[Named]) -> list[Named]:
    """Lines that end with a backslash joined, bodies of here-documents and prompts left out."""
    found: list[Named] = []
    ends_heredoc = ""
    joined: Named | None = None
    for line in lines:
        if ends_heredoc:
            ends_heredoc = "" if line.text.strip() == ends_heredoc else ends_heredoc
            continue
        text = line.text.strip().removeprefix("$ ")
        joined = Named(joined.line, f"{joined.text} {text}") if joined else Named(line.line, text)
        if text.endswith("\\"):
            joined = replace(joined, text=joined.text[:-1])
            continue
        if heredoc := HEREDOC.search(joined.text):
            ends_heredoc = heredoc[1]
        found.append(joined)
        joined = None
    return found + ([joined] if joined else [])


def split_commands(line: str) -> list[list[str]]:
    """The simple commands of a line of shell, as words, without redirections and what precedes the
    program's name. Empty where the line is no shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|<>")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        tokens = list(lexer)
    except ValueError:  # prose: an apostrophe
        return []
    commands: list[list[str]] = [[]]
    skip = False
    for token in tokens:
        if skip:
            skip = False
        elif set(token) <= set("<>&") and set(token) & set("<>"):
            if commands[-1] and commands[-1][-1].isdigit():
                commands[-1].pop()
            skip = True
        elif set(token) <= set(";&|"):
            commands.append([])
        elif commands[-1] or not BEFORE.match(token):
            commands[-1].append(token)
    return [words for words in commands if words]


def shell_lines(page: str) -> list[Named]:
    """Lines that a reader would type: of fences, and indented ones."""
    lines: list[Named] = []
    for fence in fences(page):
        if fence.language not in SKIPPED_LANGUAGES:
            lines += logical_lines([Named(fence.line + i, text)
                                    for i, text in enumerate(fence.text.splitlines())])
    indented = [line for line in without_fences(page)
                if line.text.startswith(" " * INDENTED) or line.text.endswith("\\")]
    return lines + logical_lines(indented)


def spans(page: str) -> list[Named]:
    """Inline code; one that goes on in the next line counts as one."""
    prose, found = without_fences(page), []
    for paragraph in _paragraphs(prose):
        text = "\n".join(line.text for line in paragraph)
        for match in SPAN.finditer(text):
            number = paragraph[0].line + text.count("\n", 0, match.start())
            found.append(Named(number, re.sub(r"\s+", " ", match[1])))
    return found


def _paragraphs(lines: list[Named]) -> list[list[Named]]:
    found: list[list[Named]] = [[]]
    for line in lines:
        if not line.text.strip():
            found.append([])
        else:
            found[-1].append(line)
    return [paragraph for paragraph in found if paragraph]


def links(page: str) -> list[Named]:
    """Targets of links that are no addresses, without what follows a #."""
    return [Named(line.line, match["target"].split("#")[0])
            for line in without_fences(page) for match in LINK.finditer(line.text)
            if not re.match(r"[a-z]+:", match["target"]) and not match["target"].startswith("#")]


def paths(page: str) -> list[Named]:
    """Paths of the repository that are named anywhere on the page."""
    return [Named(number, match[0]) for number, line in enumerate(page.splitlines(), start=1)
            for match in PATH.finditer(line)]


def section(page: str, heading: str) -> str:
    """From a heading to the next one of its level."""
    match = re.search(rf"^(#+) {re.escape(heading)}$", page, re.MULTILINE)
    if match is None:
        raise ValueError(f"no heading '{heading}'")
    rest = page[match.end():]
    end = re.search(rf"^#{{1,{len(match[1])}}} ", rest, re.MULTILINE)
    return rest[:end.start()] if end else rest
