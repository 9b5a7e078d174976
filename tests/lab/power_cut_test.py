#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Power cuts: what was acknowledged is there afterwards, and all that is kept can be opened.

The program power_cut writes blocks, catalog, journal, limits, marks and losses on a file system in
a file. At a random instant the file system is shut down, by its own call and without a flush of its
journal: what has not reached the disk by then never does. Then it is unmounted, mounted again and
compared with what was acknowledged.

    sudo tests/lab/power_cut_test.py [--cuts 20] [--seed S] [--file-system ext4|xfs]

Exit code 77 with "SKIP: reason" where that cannot be done: without root, a loop device, or a file
system with such a call. All mounts are in a namespace of this process, and go with it.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "bench"))

from labkit.command_line import add_bin_dir_argument  # noqa: E402
from labkit.mounts import enter_mount_namespace  # noqa: E402
from labkit.process import LabError, die_with_parent, interruptible, run, wait_until  # noqa: E402

EXIT_SKIPPED = 77
DRIVER = "power_cut"
CUTS_OF_A_FILE_SYSTEM = 10  # then a new one, so that first starts are cut as well
START, ACKNOWLEDGED = "start", "first acknowledged step"
# Of cuts that hit starts, and of those that hit what runs. They take turns.
LONGEST_SECONDS = {START: 0.04, ACKNOWLEDGED: 0.4}
HANG = 60.0
# The same number in ext4 (EXT4_IOC_SHUTDOWN) and XFS (XFS_IOC_GOINGDOWN): _IOR('X', 125, __u32).
SHUTDOWN = 0x8004587D
WITHOUT_FLUSH = 2
IMAGE_MIB = {"ext4": 64, "xfs": 320}  # mkfs.xfs makes none below 300
MAKE = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"]}

Steps = dict[str, int]


class Skipped(Exception):
    """The machine lacks something; the message says what."""


class FileSystem:
    """In a file, on a loop device that goes when it is unmounted."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.image = folder / "image"
        self.folder = folder / "mounted"
        self.folder.mkdir()
        self.kind = kind

    def make(self) -> None:
        with self.image.open("wb") as file:
            file.truncate(IMAGE_MIB[self.kind] << 20)
        run([*MAKE[self.kind], self.image])

    @contextlib.contextmanager
    def mounted(self) -> Iterator[Path]:
        run(["mount", "-t", self.kind, "-o", "loop", self.image, self.folder])
        try:
            yield self.folder
        finally:
            wait_until(lambda: run(["umount", self.folder], check=False).returncode == 0, HANG,
                       f"{self.folder} to be unmounted")

    def leave(self) -> None:
        """For the end of a test that was interrupted just as it unmounted."""
        if self.folder.is_mount():
            run(["umount", "--lazy", self.folder], check=False)

    def cut(self) -> None:
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(folder, SHUTDOWN, struct.pack("I", WITHOUT_FLUSH))
        finally:
            os.close(folder)

    def why_not(self) -> str | None:
        """Why this machine cannot cut such a file system off; None when it can."""
        if shutil.which(MAKE[self.kind][0]) is None:
            return f"{MAKE[self.kind][0]} is missing"
        try:
            self.make()
            with self.mounted():
                self.cut()
        except (LabError, OSError) as error:
            return f"this machine cannot shut a file system in a file down: {error}"
        return None


def steps_in(said: str) -> tuple[Steps, list[str]]:
    """The last step of each part, and what has failed. Half a line at the end was not said."""
    steps: Steps = {}
    failed: list[str] = []
    for line in said.splitlines(keepends=True):
        if line.startswith("failed "):
            failed.append(line.strip())
        elif line.endswith("\n"):
            part, step = line.split()
            steps[part] = int(step)
    return steps, failed


@dataclass(frozen=True)
class Moment:
    seconds: float
    after: str  # START or ACKNOWLEDGED


def write_and_cut(driver: Path, system: FileSystem, steps: Steps, moment: Moment,
                  said: Path) -> tuple[Steps, Steps]:
    """The steps that were acknowledged before the cut, and those that were said to be. At the very
    moment of the cut ext4 lets fdatasync succeed for bytes that never reach the disk: a loop of
    pwrite and fdatasync alone shows it. After a power cut nobody has heard of that."""
    with said.open("wb") as output, system.mounted() as folder:
        writer = subprocess.Popen(
            [driver, "write", folder, *(f"{part}={step}" for part, step in steps.items())],
            stdout=output, stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        try:
            if moment.after == ACKNOWLEDGED:
                wait_until(lambda: bool(said.read_text()) or writer.poll() is not None, HANG,
                           "the first step to be acknowledged")
            time.sleep(moment.seconds)
            before, failed = steps_in(said.read_text())
            if failed or writer.poll() is not None:
                raise LabError("before the cut: " + "\n".join(failed))
            system.cut()
            with contextlib.suppress(subprocess.TimeoutExpired):
                writer.wait(1)  # it finds out, unless the machine is slow
        finally:
            writer.kill()
            writer.communicate(timeout=HANG)
    return {**steps, **before}, {**steps, **steps_in(said.read_text())[0]}


def check(driver: Path, system: FileSystem, before: Steps, after: Steps) -> Steps:
    """The steps that are there; LabError when an acknowledged one is not."""
    with system.mounted() as folder:
        done = run([driver, "check", folder,
                    *(f"{part}={before.get(part, 0)}-{step}" for part, step in after.items())],
                   HANG, check=False)
    steps, failed = steps_in(done.stdout)
    if failed or done.returncode != 0:
        raise LabError("\n".join(["after the cut:", *failed, done.stderr.strip()]))
    return steps


def cut_often(driver: Path, system: FileSystem, cuts: int, seed: int) -> None:
    if obstacle := system.why_not():
        raise Skipped(obstacle)
    said = system.image.with_name("said")
    moments = random.Random(seed)
    acknowledged = 0
    steps: Steps = {}
    for number in range(cuts):
        if number % CUTS_OF_A_FILE_SYSTEM == 0:
            system.make()
            steps = {}
        after = (START, ACKNOWLEDGED)[number % 2]
        moment = Moment(moments.uniform(0, LONGEST_SECONDS[after]), after)
        try:
            before, said_to_be = write_and_cut(driver, system, steps, moment, said)
            acknowledged += sum(before.values()) - sum(steps.values())
            steps = check(driver, system, before, said_to_be)
        except LabError as error:
            raise LabError(f"cut {number + 1} of seed {seed}, {moment.seconds:.3f} s after the "
                           f"{moment.after}: {error}") from None
    print(f"{cuts} power cuts on {system.kind}, seed {seed}: {acknowledged} steps were "
          "acknowledged, and all were there")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuts", type=int, default=20, help="how many (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1,
                        help="of the instants (default %(default)s)")
    parser.add_argument("--file-system", choices=sorted(MAKE), default="ext4",
                        help="default %(default)s")
    add_bin_dir_argument(parser, REPOSITORY)
    arguments = parser.parse_args()
    driver = arguments.bin_dir / DRIVER
    if not driver.is_file():
        print(f"power_cut_test.py: {driver} is missing: build the target {DRIVER}",
              file=sys.stderr)
        return 1
    try:
        enter_mount_namespace()
    except LabError as error:
        print(f"SKIP: {error}")
        return EXIT_SKIPPED
    try:
        with interruptible() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ecpipe-power-cut-"))
            system = FileSystem(Path(folder), arguments.file_system)
            stack.callback(system.leave)
            cut_often(driver, system, arguments.cuts, arguments.seed)
    except Skipped as reason:
        print(f"SKIP: {reason}")
        return EXIT_SKIPPED
    except LabError as error:
        print(f"power_cut_test.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
