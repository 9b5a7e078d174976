#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same binaries with the ISA-L of Debian 13, which has the same SONAME and other kernels.

The package is fetched from the archive that this machine's apt uses, checked, and unpacked beside
the build; nothing is installed.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import case
from case import HANG, SCHEMES, ClusterCase

PACKAGE = "libisal2"
DEB = "libisal2_2.31.1-1.1_amd64.deb"
SHA256 = "871f684c9b91c2534988c7534860443ce39900709e58cc1c0a2e655c920cb6a9"
FETCH_SECONDS = 120.0
SKIPPED = 77


class Unavailable(Exception):
    """The library cannot be had here."""


def output_of(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{command[0]}: {error}") from None
    if done.returncode:
        said = done.stderr.strip()[-200:]
        raise Unavailable(f"{command[0]} ended with {done.returncode}: {said}")
    return done.stdout


def library_folder(unpacked: Path) -> Path:
    """Where Debian 13's libisal.so.2 lies, fetched and unpacked if it has not been yet."""
    if platform.machine() != "x86_64":
        raise Unavailable(f"{DEB} is not for {platform.machine()}")
    found = list(unpacked.glob("usr/lib/*/libisal.so.2"))
    if not found:
        # 'URI' file size hash: of this Debian's package, which lies in the same folder.
        printed = output_of("apt-get", "--print-uris", "download", PACKAGE)
        folder = printed.split("'")[1].rsplit("/", 1)[0]
        unpacked.mkdir(parents=True, exist_ok=True)
        deb = unpacked / DEB
        output_of("/usr/lib/apt/apt-helper", "download-file", f"{folder}/{DEB}", str(deb),
                  f"SHA256:{SHA256}")
        output_of("dpkg-deb", "--extract", str(deb), str(unpacked))
        found = list(unpacked.glob("usr/lib/*/libisal.so.2"))
    return found[0].parent


class NextDebian(ClusterCase):
    def test_it_is_in_use(self) -> None:
        folder = os.environ["LD_LIBRARY_PATH"]
        for helper in self.cluster.helpers.values():
            maps = Path(f"/proc/{helper.pid}/maps").read_text()
            self.assertIn(folder, maps)

    def test_blocks(self) -> None:
        lost = self.block(0, 1)
        for scheme in SCHEMES:
            with self.subTest(scheme=scheme):
                self.repair(lost["block_id"], "--scheme", scheme, "--slice-size", "65537",
                            "--sha256", lost["sha256"])
        self.assert_decodes()

    def test_short_ranges_and_tails(self) -> None:
        lost = self.block(0, 2)
        want = self.bytes_of(lost["block_id"])
        end = self.block_bytes
        for offset, length in ((0, 1), (7, 31), (0, 63), (64, 64), (end - 1, 1), (end - 63, 63),
                               (5, 32 * 1024 + 17)):
            with self.subTest(offset=offset, length=length):
                done = subprocess.run(
                    self.cluster.command("-q", "read", lost["block_id"], "--offset", str(offset),
                                         "--length", str(length), "--scheme", "rp"),
                    capture_output=True, timeout=HANG, check=True)
                self.assertEqual(done.stdout, want[offset:offset + length])

    def test_codecs(self) -> None:
        done = subprocess.run([str(case.BIN_DIR / "codec_unit_test"), "--gtest_brief=1"],
                              capture_output=True, text=True, timeout=5 * HANG)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])


if __name__ == "__main__":
    # The daemons and the command take it from this process.
    binaries = Path(sys.argv[sys.argv.index("--bin-dir") + 1])
    try:
        os.environ["LD_LIBRARY_PATH"] = str(library_folder(binaries.parent / "debian-13"))
    except Unavailable as reason:
        print(f"SKIP: no libisal2 of Debian 13: {reason}")
        sys.exit(SKIPPED)
    case.main()
