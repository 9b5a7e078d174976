#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ISA-L chooses its kernels by the processor; here each choice computes what the oracle does.

    instruction_sets.py CODEC_UNIT_TEST

Runs the tests of kernels and the golden parities on emulated processors with ever more instruction
sets. What the machine itself has beyond them (AVX-512, GFNI) the unit tests run on. Exit code 77
without qemu-x86_64 (Debian: qemu-user), or on another kind of processor."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys

SKIPPED = 77
EMULATOR = "qemu-x86_64"
LOADER = "/lib64/ld-linux-x86-64.so.2"
TESTS = "*Kernel*:*GoldenParities*"
# The model, and the highest level of the psABI that it has: the emulator must emulate it.
MODELS = {"core2duo": "", "Nehalem": "x86-64-v2", "SandyBridge": "x86-64-v2",
          "Haswell": "x86-64-v3"}


def emulate(model: str, *command: str) -> str:
    done = subprocess.run([EMULATOR, "-cpu", model, *command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{model}: {' '.join(command)} ended with {done.returncode}\n"
                 f"{done.stdout}{done.stderr}")
    return done.stdout


def level_of(model: str) -> str:
    """What glibc's loader finds there."""
    found = re.findall(r"(x86-64-v\d) \(supported", emulate(model, LOADER, "--help"))
    return max(found, default="")


def main() -> int:
    if platform.machine() != "x86_64" or shutil.which(EMULATOR) is None:
        print(f"SKIP: needs an x86-64 machine and {EMULATOR} (qemu-user)")
        return SKIPPED
    for model, level in MODELS.items():
        if level_of(model) != level:
            sys.exit(f"{EMULATOR} -cpu {model} has {level_of(model) or 'x86-64'}, not "
                     f"{level or 'x86-64'}")
        said = emulate(model, sys.argv[1], f"--gtest_filter={TESTS}", "--gtest_brief=1")
        passed = re.search(r"\[  PASSED  \] (\d+) tests", said)
        if passed is None or int(passed[1]) < 10:
            sys.exit(f"{model}: hardly any test ran\n{said}")
        print(f"{model}: {passed[1]} tests passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
