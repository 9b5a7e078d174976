#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: lintian has no error, and in a clean Debian 12 with a real systemd they are
installed, used, upgraded, removed and purged."""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import re
import shutil
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path
from typing import Any

import debian_root
from debian_root import Booted, DebianRoot, Unavailable
from labkit.process import LabError, interruptible, run, wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD_DIR = Path()
SCRATCH = Path()
SKIPPED = 77
PACK_SECONDS = 240.0
DAEMONS = ("ecpipe-coordinator", "ecpipe-helper")
PACKAGES = (*DAEMONS, "ecpipe", "libecpipe0", "libecpipe-dev", "ecpipe-qfs")
NODES = ("a", "b", "c")
UNITS = ("ecpipe-coordinator.service", *(f"ecpipe-helper@{node}.service" for node in NODES))
TRIES = 10.0


@functools.cache
def packages(revision: str, *options: str) -> Path:
    """The folder that has them."""
    output = SCRATCH / f"revision-{revision}"
    run([REPOSITORY / "deploy" / "make-packages.sh", "--build", BUILD_DIR, "--output", output,
         "--revision", revision, *options], timeout=PACK_SECONDS)
    return output


class Contents(unittest.TestCase):
    """What one gives to users, without a system to install it on."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = packages("1")

    def deb(self, name: str) -> Path:
        [found] = self.folder.glob(f"{name}_*.deb")
        return found

    def test_lintian_has_no_error(self) -> None:
        done = run(["lintian", "--allow-root", "--fail-on", "error",
                    *self.folder.glob("*.deb")], timeout=PACK_SECONDS, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_package_is_there_with_its_symbols(self) -> None:
        names = {path.name.split("_")[0] for path in self.folder.glob("*.deb")} - {"ecpipe-hdfs"}
        symbols = {f"{name}-dbgsym" for name in PACKAGES if name != "libecpipe-dev"}
        self.assertEqual(names, {*PACKAGES, *symbols})

    def test_the_configuration_is_the_sample(self) -> None:
        for daemon in DAEMONS:
            with self.subTest(daemon), tempfile.TemporaryDirectory() as tree:
                run(["dpkg-deb", "--raw-extract", self.deb(daemon), tree])
                name = f"{daemon.removeprefix('ecpipe-')}.toml"
                self.assertEqual((Path(tree) / "etc" / "ecpipe" / name).read_text(),
                                 (REPOSITORY / "deploy" / name).read_text())
                self.assertEqual((Path(tree) / "DEBIAN" / "conffiles").read_text(),
                                 f"/etc/ecpipe/{name}\n")

    def test_the_archive_has_the_programs(self) -> None:
        [archive] = self.folder.glob("ecpipe-*.tar.gz")
        names = run(["tar", "--list", "--file", archive]).stdout
        for name in ("bin/ecpipe", "bin/ecpipe-helper", "lib/systemd/system/ecpipe-helper.service",
                     "include/ecpipe.h", "share/man/man1/ecpipe-repair.1.gz",
                     "share/doc/ecpipe/helper.toml"):
            self.assertRegex(names, rf"(?m)^[^/]+/{name}$")
        self.assertNotRegex(names, r"(?m)^(\./)?(etc|usr)/")

    def test_qfs_has_what_its_readme_names(self) -> None:
        names = run(["dpkg-deb", "--contents", self.deb("ecpipe-qfs")]).stdout
        for name in (r"lib/(\S+/)?libecpipe_qfs\.so", r"lib/(\S+/)?libecpipe_qfs\.so\.0",
                     "include/ecpipe_qfs.h", "include/ecpipe_ext_reader.h", "bin/qfs_chunk_reader",
                     "share/doc/ecpipe/qfs-shim.conf", "share/doc/ecpipe-qfs/README.md.*"):
            self.assertRegex(names, rf"(?m) \./usr/{name}( ->.*)?$")
        needs = run(["dpkg-deb", "--field", self.deb("ecpipe-qfs"), "Depends"]).stdout
        self.assertNotRegex(needs, "grpc|absl|protobuf|isal")

    def test_hdfs_has_the_jar_that_maven_built(self) -> None:
        jars = list((REPOSITORY / "build" / "hdfs" / "maven").glob("ecpipe-hdfs-*.jar"))
        if not jars:
            self.skipTest("Maven has not made the jar of integrations/hdfs: tests/run.sh --label "
                          "host, or integrations/hdfs/itest/unit_tests.py")
        with tempfile.TemporaryDirectory() as tree:
            run(["dpkg-deb", "--extract", self.deb("ecpipe-hdfs"), tree])
            [jar] = (Path(tree) / "usr" / "share" / "java").iterdir()
            self.assertIn(jar.name, [built.name for built in jars])
            self.assertEqual(jar.read_bytes(), jars[0].with_name(jar.name).read_bytes())
            with zipfile.ZipFile(jar) as archive:
                classes = archive.namelist()
            readme = (REPOSITORY / "integrations" / "hdfs" / "README.md").read_text()
            hooks = re.findall(r"^\| `(io\.ecpipe\.hdfs\.\w+)` \|", readme, re.MULTILINE)
            self.assertEqual(len(hooks), 3)
            for hook in hooks:
                self.assertIn(f"{hook.replace('.', '/')}.class", classes)
            documents = {path.name.removesuffix(".gz") for path in
                         (Path(tree) / "usr" / "share" / "doc" / "ecpipe-hdfs").iterdir()}
            self.assertLessEqual({"README.md", "copyright", "changelog.Debian"}, documents)

    def test_bash_completes(self) -> None:
        script = BUILD_DIR / "packages" / "completions" / "ecpipe"
        for line, expected in ((("re",), {"read", "repair", "repairs", "recover-node", "recovery"}),
                               (("limits", "s"), {"set"}),
                               (("dr",), {"drain"}),
                               (("nodes", "r"), {"readmit"}),
                               (("nodes", "m"), {"maintain"}),
                               (("--coordinator", "h:1", "limits", "set", "--rep"),
                                {"--repair-mbit"}),
                               (("repair", "block", "--sch"), {"--scheme"})):
            done = run(["bash", "-c", 'source "$1"; shift; COMP_WORDS=(ecpipe "$@"); '
                        'COMP_CWORD=$#; _ecpipe; printf "%s\\n" "${COMPREPLY[@]}"',
                        "bash", script, *line])
            self.assertEqual(set(done.stdout.split()), expected, line)


class Life(unittest.TestCase):
    """One machine, from the first installation to the purge."""

    suite = debian_root.SUITE

    @classmethod
    def made(cls) -> dict[str, Path]:
        """The folders with the packages, by revision."""
        return {"1": packages("1"), "2": packages("2", "--fast")}

    @classmethod
    def setUpClass(cls) -> None:
        made = cls.made()
        cls.root = cls.enterClassContext(DebianRoot(SCRATCH / "root", cls.suite))
        for revision, folder in made.items():
            shutil.copytree(folder, cls.root.folder / "debs" / revision)

    def files(self, revision: str) -> list[str]:
        """All but the jar, which needs a Java, and the symbols."""
        return [f"/debs/{revision}/{path.name}"
                for path in sorted((self.root.folder / "debs" / revision).glob("*.deb"))
                if path.name.split("_")[0] in PACKAGES]

    def state(self) -> dict[str, str]:
        """Of each file in the block roots: the owner and the sum."""
        place = self.root.folder / "var" / "lib" / "ecpipe"
        return {str(path.relative_to(place)):
                f"{path.stat().st_uid} {hashlib.sha256(path.read_bytes()).hexdigest()}"
                for path in sorted(place.glob("blocks*/**/*")) if path.is_file()}

    def test_from_installation_to_purge(self) -> None:
        self.install()
        with self.root.booted() as machine:
            self.nothing_runs_yet(machine)
            self.helper_waits_for_its_coordinator(machine)
            self.blocks_are_repaired(machine)
            self.upgrade_restarts_nothing(machine)
            self.a_crash_and_a_hang_are_mended(machine)
            self.remove_and_purge(machine)
            self.ansible_installs_changes_and_upgrades(machine)
            self.a_key_is_a_credential(machine)

    def install(self) -> None:
        """By apt, which gets what they depend on."""
        self.root.apt("install", *self.files("1"), "ansible-core", "python3-apt")
        version = self.root.run("ecpipe", "--version").stdout
        for daemon in DAEMONS:
            self.assertEqual(self.root.run(daemon, "--version").stdout,
                             version.replace("ecpipe ", f"{daemon} "))
            name = f"/etc/ecpipe/{daemon.removeprefix('ecpipe-')}.toml"
            self.assertEqual(self.root.run(daemon, "--check-config", "--config", name).stdout,
                             f"{name} is valid\n")
        for library in ("libecpipe.so.0", "libecpipe_qfs.so"):
            self.assertIn(library, self.root.run("ldconfig", "--print-cache").stdout)
        self.assertIn("nologin", self.root.run("getent", "passwd", "ecpipe").stdout)

    def nothing_runs_yet(self, machine: Booted) -> None:
        """It has no configuration yet that somebody wrote."""
        for unit in ("ecpipe-coordinator", "ecpipe-helper"):
            self.assertEqual(machine.property(unit, "UnitFileState"), "disabled")
            self.assertEqual(machine.property(unit, "ActiveState"), "inactive")

    def helper_waits_for_its_coordinator(self, machine: Booted) -> None:
        sample = (REPOSITORY / "deploy" / "helper.toml").read_text()
        for number, node in enumerate(NODES):
            text = (sample.replace('"node-1"', f'"{node}"')
                    .replace("/var/lib/ecpipe/blocks", f"/var/lib/ecpipe/blocks-{node}")
                    .replace(":7711", f":78{number}1").replace(":7712", f":78{number}2"))
            (self.root.folder / "etc" / "ecpipe" / f"helper-{node}.toml").write_text(text)
        machine.run("systemctl", "start", "--no-block", UNITS[1])
        machine.wait_for(UNITS[1], "activating")
        wait_until(lambda: "is not registered" in machine.property(UNITS[1], "StatusText"),
                   TRIES, "it to say why")
        machine.run("systemctl", "enable", "--now", *UNITS)  # ends when all are ready
        for unit in UNITS:
            self.assertEqual(machine.property(unit, "ActiveState"), "active", unit)
        status = machine.run("ecpipe", "status").stdout
        for node in NODES:
            self.assertRegex(status, rf"(?m)^{node} .* live ")

    def blocks_are_repaired(self, machine: Booted) -> None:
        """The hardened daemons read blocks, send slices and store what is rebuilt."""
        machine.run("sh", "-ec", """
            head -c 3000000 /dev/urandom >/root/mine
            ecpipe encode /root/mine --out /root/blocks --code 'rs(3,2)' --block-size 1MiB \
                --name mine --nodes a,b,c
            for node in a b c; do
                cp /root/blocks/$node/* /var/lib/ecpipe/blocks-$node/
                cp -a /root/blocks/$node/.[!.]* /var/lib/ecpipe/blocks-$node/ 2>/dev/null || true
                chown -R ecpipe: /var/lib/ecpipe/blocks-$node
            done
            ecpipe catalog load /root/blocks/mine.manifest.json
            rm /var/lib/ecpipe/blocks-b/mine-s00000-b01
            ecpipe repair mine-s00000-b01 --to b
            cmp /var/lib/ecpipe/blocks-b/mine-s00000-b01 /root/blocks/b/mine-s00000-b01
        """)

    def upgrade_restarts_nothing(self, machine: Booted) -> None:
        edited = self.root.folder / "etc" / "ecpipe" / "helper.toml"
        edited.write_text(edited.read_text() + "# ours\n")
        before = {unit: machine.property(unit, "MainPID") for unit in UNITS}
        blocks = self.state()
        machine.apt("install", *self.files("2"))
        installed = machine.run("dpkg-query", "--show", "--showformat=${Version}",
                                "ecpipe-helper").stdout
        self.assertTrue(installed.endswith("-2"), installed)
        self.assertEqual({unit: machine.property(unit, "MainPID") for unit in UNITS}, before)
        self.assertEqual(machine.property(UNITS[1], "NeedDaemonReload"), "no")
        self.assertEqual(self.state(), blocks)
        self.assertIn("# ours", edited.read_text())
        machine.run("ecpipe", "repair", "mine-s00000-b02", "-o", "/root/after")
        machine.run("systemctl", "restart", UNITS[1])
        self.assertNotEqual(machine.property(UNITS[1], "MainPID"), before[UNITS[1]])

    def a_crash_and_a_hang_are_mended(self, machine: Booted) -> None:
        unit = UNITS[2]
        drop_in = self.root.folder / "etc" / "systemd" / "system" / f"{unit}.d" / "test.conf"
        drop_in.parent.mkdir(parents=True)
        drop_in.write_text("[Service]\nWatchdogSec=3\nRestartSec=0.2\n")
        machine.run("systemctl", "daemon-reload")
        machine.run("systemctl", "restart", unit)
        for how, result in (("KILL", "signal"), ("STOP", "watchdog")):
            restarts = int(machine.property(unit, "NRestarts"))
            machine.run("systemctl", "kill", f"--signal={how}", "--kill-whom=main", unit)
            wait_until(lambda: int(machine.property(unit, "NRestarts")) > restarts, 30,
                       f"a restart after SIG{how}")
            machine.wait_for(unit, "active")
            said = machine.run("journalctl", "--no-pager", f"--unit={unit}").stdout
            self.assertIn(f"Failed with result '{result}'", said)

    def remove_and_purge(self, machine: Booted) -> None:
        blocks = self.state()
        self.assertTrue(blocks)
        self.assertTrue(any("mine-s00000-b01" in name for name in blocks))
        catalog = self.root.folder / "var" / "lib" / "ecpipe" / "coordinator" / "catalog.db"
        machine.apt("remove", *DAEMONS)
        for unit in UNITS:
            self.assertEqual(machine.property(unit, "MainPID"), "0", unit)
        self.assertTrue((self.root.folder / "etc" / "ecpipe" / "helper.toml").exists())
        configuration = self.root.folder / "etc" / "ecpipe"
        for name in ("node-1.key", "node-1.pem", "ca.key"):
            (configuration / name).write_text("")
        machine.apt("purge", DAEMONS[0])
        self.assertTrue((configuration / "node-1.key").exists(), "others may use it")
        for instance in configuration.glob("helper-*.toml"):
            instance.unlink()  # the operator's: keys go with the last configuration
        machine.apt("purge", *DAEMONS[1:])
        for name in ("helper.toml", "node-1.key", "node-1.pem"):
            self.assertFalse((configuration / name).exists(), name)
        self.assertTrue((configuration / "ca.key").exists())
        self.assertEqual(list((self.root.folder / "etc" / "systemd" / "system").glob(
            "multi-user.target.wants/ecpipe*")), [])
        self.assertEqual(self.state(), blocks)
        self.assertTrue(catalog.exists())
        machine.run("getent", "passwd", "ecpipe")

    def ansible_installs_changes_and_upgrades(self, machine: Booted) -> None:
        """The role of deploy/ansible, with this machine as both hosts of its inventory."""
        machine.apt("purge", "ecpipe")  # of the later revision
        folder = self.root.folder / "ansible"
        shutil.copytree(REPOSITORY / "deploy" / "ansible", folder)
        run([REPOSITORY / "deploy" / "make-certs.sh", folder / "certs", "head=coordinator",
             "node-1=helper", "ann=operator"])

        def play(revision: str, limits: dict[str, int]) -> dict[str, int]:
            """Runs the playbook; returns what was changed at each host."""
            packages = folder / "packages"
            shutil.rmtree(packages, ignore_errors=True)
            packages.mkdir()
            for path in self.files(revision):
                if Path(path).name.split("_")[0] in (*DAEMONS, "ecpipe"):
                    shutil.copy(self.root.folder / path[1:], packages)
            local = {"ansible_connection": "local", "ansible_become": False}
            helper = {"helper": {"coordinator": "127.0.0.1:7700"}, "limits": limits}
            (folder / "ours.yml").write_text(json.dumps({
                "ecpipe_coordinator": {"hosts": {"head": local}},
                "ecpipe_helpers": {"hosts": {"node-1": {**local, "ecpipe_rack": "/rack-1"}},
                                   "vars": {"ecpipe_roots": ["/data/1"],
                                            "ecpipe_settings": helper}},
                "all": {"vars": {"ecpipe_packages": "/ansible/packages",
                                 "ecpipe_certificates": "/ansible/certs"}}}))
            said = machine.run("sh", "-c", "cd /ansible && LC_ALL=C.UTF-8 "
                               "ansible-playbook --diff -i ours.yml site.yml",
                               seconds=120).stdout
            self.assertNotIn("PRIVATE KEY", said)
            changed = re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+) +unreachable=0 +failed=0", said,
                                 re.MULTILINE)
            return {host: int(count) for host, count in changed}

        def ask(command: str) -> Any:
            tls = [f"--tls-{option}=/ansible/certs/{file}" for option, file in
                   (("ca", "ca.pem"), ("cert", "ann.pem"), ("key", "ann.key"))]
            return json.loads(machine.run("ecpipe", *tls, command, "--json").stdout)

        # The catalog has blocks on others, which are not there.
        def node() -> dict[str, Any]:
            return next(each for each in ask("nodes") if each["node_id"] == "node-1")

        def most_sessions() -> int:
            return next(each["max_sessions"] for each in ask("limits")["nodes"]
                        if each["node"] == "node-1")

        first = play("1", {"max_sessions": 5})
        self.assertEqual(sorted(first), ["head", "node-1"])
        self.assertGreater(min(first.values()), 3)
        self.assertEqual((node()["node_id"], node()["state"], node()["rack"]),
                         ("node-1", "live", "/rack-1"))
        wait_until(lambda: most_sessions() == 5, TRIES, "the limit")
        self.assertEqual(machine.property("ecpipe-helper", "UnitFileState"), "enabled")
        process = machine.property("ecpipe-helper", "MainPID")
        self.assertEqual(play("1", {"max_sessions": 5}), {"head": 0, "node-1": 0})
        self.assertEqual(machine.property("ecpipe-helper", "MainPID"), process)
        self.assertEqual(play("1", {"max_sessions": 6})["head"], 0)
        self.assertNotEqual(machine.property("ecpipe-helper", "MainPID"), process)
        wait_until(lambda: most_sessions() == 6, TRIES, "the new limit")
        upgraded = play("2", {"max_sessions": 6})
        self.assertGreater(min(upgraded.values()), 0)
        self.assertTrue(machine.run("dpkg-query", "--show", "--showformat=${Version}",
                                    "ecpipe-helper").stdout.endswith("-2"))
        self.assertEqual(node()["state"], "live")
        # What it refuses is not written, and the daemon goes on.
        process = machine.property("ecpipe-helper", "MainPID")
        with self.assertRaises(LabError) as refused:
            play("2", {"max_sessions": 0})
        self.assertIn("max_sessions must be an integer from 1", str(refused.exception))
        self.assertEqual(machine.property("ecpipe-helper", "MainPID"), process)

    def a_key_is_a_credential(self, machine: Booted) -> None:
        """The drop-in credentials.conf, as the package brings it, for the helper with TLS that
        Ansible has installed. It is ready when a coordinator with TLS has registered it."""
        unit, name = "ecpipe-helper", "etc/systemd/system/ecpipe-helper.service.d/credentials.conf"
        sample = self.root.folder / "usr/share/doc/ecpipe-helper/examples/credentials.conf"
        (self.root.folder / name).write_text(sample.read_text())
        settings = self.root.folder / "etc" / "ecpipe" / "helper.toml"
        text = settings.read_text()
        for file, credential in (("node-1.pem", "certificate"), ("node-1.key", "key")):
            self.assertIn(f'"/etc/ecpipe/{file}"', text)
            text = text.replace(f"/etc/ecpipe/{file}",
                                f"/run/credentials/ecpipe-helper.service/{credential}")
        settings.write_text(text)
        machine.run("sh", "-ec", "cd /etc/ecpipe; chown root:root node-1.*; chmod 600 node-1.*")
        as_ecpipe = ("setpriv", "--reuid=ecpipe", "--regid=ecpipe", "--clear-groups")
        with self.assertRaisesRegex(LabError, "Permission denied"):
            machine.run(*as_ecpipe, "cat", "/etc/ecpipe/node-1.key")
        machine.run("systemctl", "daemon-reload")
        process = machine.property(unit, "MainPID")
        machine.run("systemctl", "restart", unit)
        self.assertEqual(machine.property(unit, "ActiveState"), "active")
        self.assertNotEqual(machine.property(unit, "MainPID"), process)


def main() -> int:
    global BUILD_DIR, SCRATCH
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=Path, required=True)
    arguments, rest = parser.parse_known_args()
    BUILD_DIR = arguments.build_dir.resolve()
    try:
        debian_root.require("debootstrap", "systemd-nspawn", "help2man", "lintian", "nsenter")
        debian_root.mirror()
    except Unavailable as error:
        print(f"SKIP: {error}")
        return SKIPPED
    with interruptible(), tempfile.TemporaryDirectory(prefix="ecpipe-package-") as scratch:
        SCRATCH = Path(scratch)
        program = unittest.main(argv=[sys.argv[0], *rest], verbosity=2, exit=False)
    return 0 if program.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
