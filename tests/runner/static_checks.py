# SPDX-License-Identifier: Apache-2.0
"""Checks on the sources that need no build."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections import defaultdict
from pathlib import Path

import check_layering
from runner.children import REPOSITORY
from runner.tally import Session, Tally


def run_static(session: Session) -> None:
    tally, start, cpu_start = Tally("tree", "static"), time.monotonic(), time.process_time()
    for check in (check_layers, check_python, check_shell):
        check(tally)
    tally.took(time.monotonic() - start, time.process_time() - cpu_start)
    session.record(tally)


def repository_files(*suffixes: str) -> list[Path]:
    """Of the tree, without what a build or a tool put there."""
    found = []
    for folder, folders, names in os.walk(REPOSITORY):
        folders[:] = sorted(set(folders) - {"build", ".git", "__pycache__", ".cache"})
        found += [Path(folder, name) for name in sorted(names) if name.endswith(suffixes)]
    return found


def check_layers(tally: Tally) -> None:
    """Each rule is one test."""
    by_rule: dict[str, list[str]] = defaultdict(list)
    for violation in check_layering.check_tree(REPOSITORY):
        by_rule[violation.rule].append(str(violation))
    for rule in check_layering.RULES:
        if rule in by_rule:
            tally.fail(f"layering.{rule}", "\n".join(by_rule[rule]))
        else:
            tally.passed += 1


def check_python(tally: Tally) -> None:
    for path in repository_files(".py"):
        try:
            compile(path.read_text(encoding="utf-8"), str(path), "exec")
            tally.passed += 1
        except SyntaxError as error:
            tally.fail(f"python {path.relative_to(REPOSITORY)}", str(error))


def check_shell(tally: Tally) -> None:
    for path in [*repository_files(".sh"), REPOSITORY / ".ci" / "run"]:
        name = str(path.relative_to(REPOSITORY))
        done = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True)
        if done.returncode == 0 and shutil.which("shellcheck"):
            done = subprocess.run(["shellcheck", "--severity=warning", str(path)],
                                  capture_output=True, text=True)
        # The executable bit is easily lost, and CI starts these by name.
        if done.returncode:
            tally.fail(f"shell {name}", done.stdout + done.stderr)
        elif not os.access(path, os.X_OK):
            tally.fail(f"shell {name}", "not executable")
        else:
            tally.passed += 1
