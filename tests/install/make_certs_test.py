#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/make-certs.sh makes certificates, renews those that end soon, and no others."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "deploy" / "make-certs.sh"
SECONDS = 60.0


class MakeCerts(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name, "certs")

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True,
                              timeout=SECONDS)

    def make(self, *arguments: str) -> None:
        done = self.call(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)

    def renewed(self, *options: str) -> list[str]:
        done = self.call("--renew", *options, str(self.folder))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def shown(self, name: str, *what: str) -> str:
        return subprocess.run(["openssl", "x509", "-in", self.folder / f"{name}.pem", "-noout",
                               *what], capture_output=True, text=True, check=True,
                              timeout=SECONDS).stdout

    def test_what_ends_soon_is_renewed_as_it_was(self) -> None:
        self.make("--days", "10", str(self.folder), "node-1=helper,storage:10.0.0.1_1",
                  "ann=operator,requestor")
        self.make("--days", "60", str(self.folder), "head=coordinator")
        names = ("node-1", "ann", "head")
        before = {name: self.shown(name, "-serial", "-ext", "subjectAltName") for name in names}
        keys = {name: (self.folder / f"{name}.key").read_text() for name in names}
        self.assertEqual(self.renewed("--days", "40"), ["ann", "node-1"])
        for name in ("node-1", "ann"):
            serial, names_before = before[name].split("\n", 1)
            now = self.shown(name, "-serial", "-ext", "subjectAltName")
            self.assertNotIn(serial, now)
            self.assertEqual(now.split("\n", 1)[1], names_before)
            self.assertNotEqual((self.folder / f"{name}.key").read_text(), keys[name])
            self.assertEqual((self.folder / f"{name}.key").stat().st_mode & 0o777, 0o600)
            subprocess.run(["openssl", "verify", "-CAfile", self.folder / "ca.pem",
                            self.folder / f"{name}.pem"], check=True, capture_output=True,
                           timeout=SECONDS)
        self.assertEqual(self.shown("head", "-serial", "-ext", "subjectAltName"), before["head"])
        self.assertEqual(self.renewed(), [])
        self.assertEqual(self.renewed("--within", "50"), ["ann", "node-1"])
        self.assertEqual([path.name for path in self.folder.iterdir()
                          if path.name.startswith(".")], [])

    def verifies(self, name: str, *options: str) -> bool:
        return subprocess.run(["openssl", "verify", "-CAfile", self.folder / "ca.pem", *options,
                               self.folder / f"{name}.pem"], capture_output=True,
                              timeout=SECONDS).returncode == 0

    def test_hosts_are_named_also_after_a_renewal(self) -> None:
        self.make("--days", "10", str(self.folder),
                  "head=coordinator,dns:head.example,ip:10.0.0.1,ip:2001:db8::1")
        for _ in range(2):
            for option, good, bad in (("-verify_hostname", "head.example", "node-1.example"),
                                      ("-verify_ip", "10.0.0.1", "10.0.0.2"),
                                      ("-verify_ip", "2001:db8::1", "2001:db8::2")):
                self.assertTrue(self.verifies("head", option, good), good)
                self.assertFalse(self.verifies("head", option, bad), bad)
            self.assertEqual(self.renewed("--days", "10"), ["head"])

    def test_one_of_others_that_names_hosts_alone_is_left_alone(self) -> None:
        self.make("--days", "10", str(self.folder), "site=dns:site.example", "ann=operator")
        done = self.call("--renew", str(self.folder))
        self.assertEqual(done.stdout.split(), ["ann"])
        self.assertIn("site.pem names no role", done.stderr)

    def test_a_revoked_one_is_not_renewed(self) -> None:
        self.make("--days", "10", str(self.folder), "node-1=helper", "node-2=helper")
        self.make("--revoke", str(self.folder), "node-1")
        self.assertEqual(self.renewed(), ["node-2"])
        # A new one of the same name may be: another certificate was revoked.
        self.make("--days", "10", str(self.folder), "node-1=helper")
        self.assertEqual(self.renewed(), ["node-1"])

    def revoked_serials(self) -> str:
        return subprocess.run(["openssl", "crl", "-in", self.folder / "crl.pem", "-noout",
                               "-text"], capture_output=True, text=True, check=True,
                              timeout=SECONDS).stdout

    def test_what_a_name_has_had_is_revoked_with_it(self) -> None:
        """A key that was stolen before a renewal is good no longer; names that begin alike are."""
        serials: dict[str, list[str]] = {"bob": [], "bob.1": []}
        for _ in range(3):
            self.make("--days", "10", str(self.folder), "bob=operator", "bob.1=helper")
            for name, found in serials.items():
                found.append(self.shown(name, "-serial").strip().removeprefix("serial="))
        self.assertEqual(sorted(self.renewed()), ["bob", "bob.1"])
        serials["bob"].append(self.shown("bob", "-serial").strip().removeprefix("serial="))
        self.make("--revoke", str(self.folder), "bob")
        listed = self.revoked_serials()
        self.assertEqual([serial in listed for serial in serials["bob"]], [True] * 4)
        self.assertEqual([serial in listed for serial in serials["bob.1"]], [False] * 3)
        # Another time, after a new one of the name: the others are on the list already.
        self.make(str(self.folder), "bob=operator")
        last = self.shown("bob", "-serial").strip().removeprefix("serial=")
        self.assertNotIn(last, self.revoked_serials())
        self.make("--revoke", str(self.folder), "bob")
        listed = self.revoked_serials()
        self.assertEqual([serial in listed for serial in [*serials["bob"], last]], [True] * 5)

    def test_only_what_could_still_be_used_is_kept(self) -> None:
        def kept() -> list[str]:
            return sorted(path.name.split("=")[0] for path in self.folder.glob("replaced/*"))
        self.make("--days", "-1", str(self.folder), "ended=helper", "gone=helper")
        self.make("--days", "10", str(self.folder), "ended=helper", "gone=helper", "b=helper")
        self.assertEqual(kept(), [])
        self.make("--revoke", str(self.folder), "gone")
        self.make(str(self.folder), "ended=helper", "gone=helper")
        self.assertEqual(kept(), ["ended"])
        self.make("--revoke", str(self.folder), "ended")
        self.make(str(self.folder), "ended=helper")
        self.assertEqual(kept(), [])

    def test_what_it_cannot_renew_does_not_keep_it_from_the_others(self) -> None:
        self.make("--days", "10", str(self.folder), "a=helper", "m=helper", "z=helper")
        (self.folder / "b.pem").write_text("no certificate\n")
        quick = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                 "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=other", "-days", "5",
                 "-keyout", self.folder / "other.key", "-out", self.folder / "other.pem"]
        subprocess.run(quick, check=True, capture_output=True, timeout=SECONDS)
        done = self.call("--renew", str(self.folder))
        self.assertEqual((done.returncode, done.stdout.split()), (1, ["a", "m", "z"]))
        self.assertIn("b.pem is no certificate", done.stderr)
        self.assertIn("other.pem names no role", done.stderr)
        (self.folder / "b.pem").unlink()
        done = self.call("--renew", str(self.folder))
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_the_ca_cannot_be_renewed_and_says_so(self) -> None:
        self.make("--days", "10", str(self.folder), "node-1=helper")
        done = self.call("--renew", "--within", "4000", str(self.folder))
        self.assertEqual((done.returncode, done.stdout), (3, "node-1\n"))
        self.assertIn("the CA itself ends within 4000 days", done.stderr)

    def test_what_it_refuses(self) -> None:
        self.make(str(self.folder), "node-1=helper")
        (self.folder / "other.pem").write_text("no certificate\n")
        for arguments, said in (
                (["--renew", str(self.folder)], "other.pem is no certificate"),
                (["--renew", str(self.folder / "none")], "there is no directory"),
                (["--renew", str(self.folder), "node-1"], "Usage:"),
                (["--renew", "--within", "soon", str(self.folder)], "--within takes a number"),
                (["--days", "1.5", str(self.folder), "a=helper"], "--days takes a number"),
                (["--days"], "--days takes a number"), (["--what"], "Usage:"), ([], "Usage:")):
            with self.subTest(arguments):
                done = self.call(*arguments)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    sys.exit(0 if unittest.main(verbosity=2, exit=False).result.wasSuccessful() else 1)
