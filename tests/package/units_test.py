#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The units of deploy/systemd: systemd knows each key, and what a daemon could do to its host, were
it taken over, stays within a score."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

UNITS = Path(__file__).resolve().parents[2] / "deploy" / "systemd"
MOST_EXPOSED = 2.5  # of 10, as `systemd-analyze security` counts; 9.6 is a unit without hardening
OLDEST = 250  # since then it looks at files
# Since which version systemd knows them.
NEWER_KEYS = {"RestartSteps": 254, "RestartMaxDelaySec": 254}
VERSION = 0  # of the systemd here
SKIPPED = 77
SECONDS = 60.0


def services() -> list[Path]:
    return sorted(UNITS.glob("*.service"))


def exposure(unit: Path) -> float:
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", unit],
                          capture_output=True, text=True, timeout=SECONDS)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    assert found, done.stdout + done.stderr
    return float(found[1])


class Units(unittest.TestCase):
    def test_they_are_there(self) -> None:
        self.assertEqual([unit.name for unit in services()], [
            "ecpipe-coordinator.service", "ecpipe-helper.service", "ecpipe-helper@.service"])

    def test_the_score(self) -> None:
        for unit in services():
            with self.subTest(unit.name):
                score = exposure(unit)
                print(f"{unit.name}: {score}")
                self.assertLessEqual(score, MOST_EXPOSED)

    def test_a_unit_without_hardening_has_a_worse_score(self) -> None:
        hardening = re.compile(r"^(Protect|Private|Restrict|System|Capab|NoNew|Memory|User|Lock)"
                               r"\w*=.*\n", re.MULTILINE)
        for unit in services():
            with tempfile.TemporaryDirectory() as folder:
                bare = Path(folder, unit.name)
                bare.write_text(hardening.sub("", unit.read_text()))
                self.assertGreater(exposure(bare), MOST_EXPOSED)

    def test_systemd_knows_all_keys(self) -> None:
        """Of the units as well as of the drop-ins. An older one may lack those of NEWER_KEYS, which
        it leaves out."""
        with tempfile.TemporaryDirectory() as folder:
            for unit in services():
                text = re.sub(r"^ExecStart=.*", "ExecStart=/bin/true", unit.read_text(),
                              flags=re.MULTILINE)
                Path(folder, unit.name.replace("@", "@one")).write_text(text)
            drop_ins = Path(folder, "ecpipe-helper.service.d")
            drop_ins.mkdir()
            for drop_in in UNITS.glob("*.conf"):
                shutil.copy(drop_in, drop_ins)
            for sample in (UNITS / "certs").iterdir():
                text = re.sub(r"^ExecStart=(-?).*", r"ExecStart=\1/bin/true", sample.read_text(),
                              flags=re.MULTILINE)
                Path(folder, sample.name).write_text(text)
            files = sorted([*Path(folder).glob("*.service"), *Path(folder).glob("*.timer")])
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", *files],
                                  capture_output=True, text=True, timeout=SECONDS)
            said = [line for line in done.stderr.splitlines() if folder in line
                    or "ecpipe" in line]
            unknown = [key for key, since in NEWER_KEYS.items() if VERSION < since]
            expected = [f"{Path(folder, unit.name.replace('@', '@one'))}: Unknown key '{key}' in "
                        "section [Service], ignoring." for unit in services() for key in unknown]
            self.assertEqual(sorted(re.sub(r":\d+:", ":", line) for line in said),
                             sorted(expected))
            self.assertEqual(done.returncode, 0)

    def test_pauses_between_restarts_grow_but_end_before_a_recovery_begins(self) -> None:
        sample = tomllib.loads((UNITS.parent / "coordinator.toml").read_text())
        for unit in services():
            pauses = dict(re.findall(r"^(Restart\w+)=(\d+)$", unit.read_text(), re.MULTILINE))
            self.assertLess(int(pauses["RestartSec"]), int(pauses["RestartMaxDelaySec"]))
            self.assertLess(int(pauses["RestartMaxDelaySec"]),
                            sample["recovery"]["delay_seconds"])
            self.assertGreater(int(pauses["RestartSteps"]), 1)

    def test_no_core_has_a_private_key(self) -> None:
        for unit in services():
            self.assertRegex(unit.read_text(), r"(?m)^LimitCORE=0$", unit.name)

    def test_helpers_know_who_calls_at_their_endpoints(self) -> None:
        """In a user namespace of its own a daemon sees nobody in place of each other user."""
        for unit in services():
            if "helper" in unit.name:
                self.assertNotRegex(unit.read_text(), r"(?m)^PrivateUsers=(?!no\b)", unit.name)

    def test_both_units_of_the_helper_are_one(self) -> None:
        """But for what belongs to an instance."""
        def directives(name: str) -> list[str]:
            lines = (UNITS / name).read_text().replace("-%i", "").replace(" %i", "").splitlines()
            return [line for line in lines if line and not line.startswith("#")]
        self.assertEqual(directives("ecpipe-helper.service"), directives("ecpipe-helper@.service"))


def main() -> int:
    global VERSION
    try:
        said = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True,
                              timeout=SECONDS).stdout
    except OSError:
        said = ""
    version = re.match(r"systemd (\d+)", said)
    if version is None or int(version[1]) < OLDEST:
        print(f"SKIP: no systemd-analyze of {OLDEST} or newer here")
        return SKIPPED
    VERSION = int(version[1])
    return 0 if unittest.main(verbosity=2, exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
