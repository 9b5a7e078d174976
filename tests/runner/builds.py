# SPDX-License-Identifier: Apache-2.0
"""Builds a preset."""

from __future__ import annotations

import re
from typing import Sequence

from runner.children import REPOSITORY
from runner.tally import BUILD, Session, Tally

BUILD_SECONDS = 4500  # against a hang: tests beside it have the processors first

SANITIZER_OPTIONS = {
    # Debian's gRPC is not instrumented, and without the first option each of its threads is "racy".
    # Of the second for which each process with threads would sleep at its end, for late reports, a
    # tenth is left: the cluster tests start hundreds.
    "TSAN_OPTIONS": "ignore_noninstrumented_modules=1 halt_on_error=1 atexit_sleep_ms=100 "
                    f"suppressions={REPOSITORY / 'tests' / 'tsan.supp'}",
    "ASAN_OPTIONS": "detect_leaks=1",
    "LSAN_OPTIONS": f"print_suppressions=0 suppressions={REPOSITORY / 'tests' / 'lsan.supp'}",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
WARNING = re.compile(r"\bwarning: ")


def build(session: Session, preset: str, targets: Sequence[str]) -> bool:
    """Builds these targets, or all. A failed build is one failed test; a good one is none, it only
    has a time."""
    tally = Tally(preset, BUILD)
    configure = ["cmake", "--preset", preset]
    compile_them = ["cmake", "--build", "--preset", preset,
                    *(["--target", *targets] if targets else [])]
    for number, command in enumerate((configure, compile_them)):
        log = session.logs / f"build-{preset}-{number}.log"
        # Tests that run beside a build watch the clock, and a compiler does not.
        end = session.children.run(command, log, BUILD_SECONDS, SANITIZER_OPTIONS, gives_way=True)
        tally.took(end.seconds, end.cpu_seconds)
        output = log.read_text(errors="replace")
        if end.code:
            tally.fail(f"{' '.join(command)} (exit code {end.code})", output)
            break
        # The presets for users let a newer compiler warn. Ours must have nothing to say.
        warnings = [line for line in output.splitlines() if WARNING.search(line)]
        if warnings:
            tally.fail("warnings", "\n".join(warnings))
            break
    session.record(tally)
    return tally.failed == 0
