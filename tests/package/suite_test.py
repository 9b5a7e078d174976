#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The packages on Debian 13: those of Debian 12 are refused by name, and those that are built in a
clean Debian 13, by the commands of docs/operations.md, are installed, used, upgraded, removed and
purged in another one.

    tests/run.sh --label suite
    tests/package/suite_test.py --build-dir build/release [--packages DIR]

--packages: a folder that has them in the folders 1 and 2, by revision; then none are built.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import debian_root
import package_test
from debian_root import DebianRoot, Unavailable
from labkit.process import LabError, interruptible, run

SUITE = "trixie"
BUILT: Path | None = None
BUILD_SECONDS, BUILD_GIB = 5400.0, 8


def copy_sources(target: Path) -> None:
    """What git tracks, as it stands here."""
    target.mkdir()
    listed = subprocess.run(["git", "-C", package_test.REPOSITORY, "ls-files", "-z"], check=True,
                            capture_output=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        source = package_test.REPOSITORY / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target / name)


def build_packages(output: Path) -> None:
    """As docs/operations.md says, in a Debian 13 that has nothing yet."""
    with DebianRoot(package_test.SCRATCH / "builder", SUITE, BUILD_GIB) as root:
        copy_sources(root.folder / "src")
        for command in ("deploy/install-deps.sh build package",
                        "cmake --preset release -D ECPIPE_TESTS=OFF",
                        "cmake --build --preset release",
                        "deploy/make-packages.sh --output /debs/1",
                        "deploy/make-packages.sh --output /debs/2 --revision 2 --fast"):
            root.build("sh", "-ec", command, folder="/src", seconds=BUILD_SECONDS)
        shutil.copytree(root.folder / "debs", output)


class OnDebian13(package_test.Life):
    suite = SUITE

    @classmethod
    def made(cls) -> dict[str, Path]:
        folder = BUILT
        if folder is None:
            folder = package_test.SCRATCH / "debs"
            build_packages(folder)
        return {revision: folder / revision for revision in ("1", "2")}

    def install(self) -> None:
        """Those of Debian 12 depend on libraries that Debian 13 does not have."""
        older = self.root.folder / "debs" / "older"
        shutil.copytree(package_test.packages("1", "--fast"), older)
        with self.assertRaises(LabError) as refused:
            self.root.apt("install", *(f"/debs/older/{path.name}"
                                       for path in older.glob("ecpipe-helper_*.deb")))
        print(f"of Debian 12: {refused.exception}")
        self.assertRegex(str(refused.exception),
                         re.compile(r"ecpipe-helper : Depends: lib\S+ .*not installable"))
        self.assertEqual(self.root.run("dpkg-query", "--show", "ecpipe*", check=False).stdout, "")
        super().install()


def main() -> int:
    global BUILT
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=Path, required=True)
    parser.add_argument("--packages", type=Path)
    arguments, rest = parser.parse_known_args()
    package_test.BUILD_DIR = arguments.build_dir.resolve()
    BUILT = arguments.packages and arguments.packages.resolve()
    try:
        debian_root.require("debootstrap", "systemd-nspawn", "help2man", "nsenter", "git")
        debian_root.mirror(SUITE)
    except Unavailable as error:
        print(f"SKIP: {error}")
        return package_test.SKIPPED
    with interruptible(), tempfile.TemporaryDirectory(prefix="ecpipe-suite-") as scratch:
        package_test.SCRATCH = Path(scratch)
        program = unittest.main(argv=[sys.argv[0], *rest], verbosity=2, exit=False)
    return 0 if program.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
