#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ecpipe doctor`: a healthy cluster passes, and each trouble is found by name, with advice."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Iterator

import case
from case import FAILED, HANG, UNAVAILABLE, ClusterCase
from fake_namenode import FakeNameNode
from hdfs_group import Group, make_volume
from labkit.certificates import Certificates
from labkit.cluster import COORDINATOR, REQUESTOR, Cluster, EcpipeDaemon, node_names
from labkit.process import run, wait_until

Finding = dict[str, str]
TROUBLE = ("error", "warning")
REFUSES = "it refuses the coordinator's TLS connections"


def replace(path: Path, content: bytes) -> None:
    """At once, as operators should: daemons read it at any time."""
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(content)
    new.chmod(0o600)
    os.replace(new, path)


class DoctorCase(ClusterCase):
    nodes = 6
    block_bytes = 100_003
    file_bytes = 750_001

    def setUp(self) -> None:
        self.cluster.wait_live(self.cluster.node_ids)

    def doctor(self) -> tuple[int, list[Finding]]:
        done = self.cluster.cli("doctor", "--json", check=False)
        self.assertIn(done.returncode, (0, FAILED), done.stderr)
        said = json.loads(done.stdout)
        errors = [each for each in said["findings"] if each["severity"] == "error"]
        self.assertEqual(said["errors"], len(errors))
        self.assertEqual(done.returncode == FAILED, bool(errors), said)
        return done.returncode, said["findings"]

    def wait_found(self, severity: str, check: str, where: str, words: str) -> Finding:
        """Until the doctor says this; what depends on heartbeats takes a moment."""
        found: list[Finding] = []

        def said() -> bool:
            found[:] = [each for each in self.doctor()[1]
                        if (each["severity"], each["check"], each["where"])
                        == (severity, check, where) and words in each["what"]]
            return bool(found)
        wait_until(said, HANG, f"{severity} {check} {where}: {words}")
        self.assertTrue(found[0]["advice"] or severity not in TROUBLE)
        return found[0]

    def wait_well(self) -> list[Finding]:
        """Until nothing is wrong; how full the machine's disk is is not the test's matter."""
        last: list[Finding] = []

        def well() -> bool:
            last[:] = self.doctor()[1]
            return not [each for each in last
                        if each["severity"] in TROUBLE and each["check"] != "disk room"]
        wait_until(well, HANG, "the doctor to find nothing")
        return last


class Doctor(DoctorCase):
    def files(self) -> list[str]:
        return sorted(str(file) for file in self.cluster.data_dir().glob("*/*"))

    def test_a_healthy_cluster_passes(self) -> None:
        before = self.files()
        said = {each["check"]: each for each in self.wait_well()}
        self.assertEqual(
            set(said), {"helpers", "versions", "ports", "roots", "stores", "store format",
                        "disk room", "descriptors", "clocks", "certificates", "tls chain",
                        "storage systems"})
        for check in ("helpers", "versions", "ports", "roots", "stores", "store format",
                      "descriptors", "clocks"):
            self.assertEqual(said[check]["severity"], "ok", said[check])
        # The coordinator and each helper to both ports of each other, each to the coordinator.
        self.assertIn(f"all {6 * 2 + 6 * (5 * 2 + 1)} ways", said["ports"]["what"])
        self.assertIn("all 7 daemons run", said["versions"]["what"])
        blocks = [Path(name) for name in before if Path(name).is_file()]
        # On a busy machine half a second may be too short for all.
        said["store format"] = self.wait_found("ok", "store format", "",
                                               f" {len(blocks)} names were looked at")
        self.assertRegex(said["store format"]["what"], "[1-9][0-9]* headers read")
        for check in ("certificates", "tls chain", "storage systems"):
            self.assertEqual(said[check]["severity"], "not checked")
        self.assertEqual(self.files(), before)  # nothing is left where a file was made

    def test_text_for_people(self) -> None:
        self.wait_well()
        said = self.cluster.cli("doctor").stdout
        self.assertIn("\nok  ports: all ", said)
        self.assertNotIn("\x1b", said)

    def test_a_helper_that_is_stopped_costs_its_deadline(self) -> None:
        helper = self.cluster.helpers["node-2"]
        helper.pause()
        self.addCleanup(helper.resume)
        found = self.wait_found("error", "helpers", "node-2", "does not answer the coordinator")
        self.assertIn("systemctl status ecpipe-helper", found["advice"])
        self.assertNotIn("node-3", {each["where"] for each in self.doctor()[1]
                                    if each["check"] == "helpers"})
        helper.resume()
        self.wait_well()

    def test_a_data_port_that_nobody_reaches(self) -> None:
        helper = self.cluster.helpers["node-3"]
        listen = helper.settings["listen"]
        listen["advertise_data"] = "127.0.0.1:1"
        helper.restart()
        self.cluster.wait_live(["node-3"])
        try:
            found = self.wait_found("error", "ports", "node-3", "data port 127.0.0.1:1")
            self.assertIn("coordinator, node-1", found["what"])
            self.assertIn("advertise_data", found["advice"])
        finally:
            del listen["advertise_data"]
            helper.restart()
        self.cluster.wait_live(["node-3"])
        self.wait_well()

    def test_a_root_that_is_gone(self) -> None:
        root = self.cluster.data_dir() / "node-4"
        aside = self.work / "aside"
        root.rename(aside)
        try:
            root.write_text("no directory")
            found = self.wait_found("error", "roots", "node-4", str(root))
            self.assertIn("mounted", found["advice"])
        finally:
            root.unlink()
            aside.rename(root)
        self.wait_well()

    def test_a_checksum_file_of_another_version(self) -> None:
        block = self.cluster.block_file(self.block(0, 1)["block_id"])
        sums = block.with_name(f".crc32c.{block.name}")
        before = sums.read_bytes()
        sums.write_bytes(before[:4] + b"\x02" + before[5:])
        os.utime(sums, (0, 0))  # one of the last minute may be ahead of its block
        try:
            found = self.wait_found("error", "store format", block.parent.name, block.name)
            self.assertIn("has format 2, and this program knows only format 1", found["what"])
            self.assertIn("upgrade this helper", found["advice"])
        finally:
            sums.write_bytes(before)
        self.wait_well()

    def test_files_of_others_in_a_root(self) -> None:
        root = self.cluster.data_dir() / "node-1"
        foreign = root / "a text.txt"
        foreign.write_text("not a block")
        found = self.wait_found("warning", "store format", "node-1", "a text.txt")
        self.assertIn("move them elsewhere", found["advice"])
        foreign.unlink()
        volume = root / "current"
        volume.mkdir()
        (volume / "VERSION").write_text("storageType=DATA_NODE\nlayoutVersion=-57\n")
        found = self.wait_found("error", "store format", "node-1", "a volume of an HDFS DataNode")
        self.assertIn("[helper] store", found["advice"])
        shutil.rmtree(volume)
        self.wait_well()

    def test_few_descriptors(self) -> None:
        helper = self.cluster.helpers["node-5"]
        before = resource.prlimit(helper.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(helper.pid, resource.RLIMIT_NOFILE, (512, before[1]))
        found = self.wait_found("warning", "descriptors", "node-5", "of 512 are in use")
        self.assertIn("LimitNOFILE", found["advice"])
        self.assertEqual(self.doctor()[0], 0)  # a warning is no failure
        resource.prlimit(helper.pid, resource.RLIMIT_NOFILE, before)

    def test_a_dead_node(self) -> None:
        helper = self.cluster.helpers["node-6"]
        helper.kill()
        self.wait_found("error", "helpers", "node-6", "no heartbeat")
        helper.restart()
        self.cluster.wait_live(["node-6"])
        self.wait_well()

    def test_no_coordinator(self) -> None:
        done = subprocess.run([case.BIN_DIR / "ecpipe", "--coordinator", "127.0.0.1:1", "doctor"],
                              capture_output=True, text=True, timeout=HANG)
        self.assertEqual(done.returncode, UNAVAILABLE, done.stderr)


class WithNameNode(DoctorCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.namenode = FakeNameNode()
        cls.namenode.__enter__()
        cls.addClassCleanup(cls.namenode.__exit__)
        cls.coordinator_settings = {
            "hdfs": {"namenodes": [cls.namenode.url], "refresh_seconds": 1}}
        super().setUpClass()

    def test_a_namenode_that_does_not_answer(self) -> None:
        self.wait_found("ok", "storage systems", "", "the NameNode answered")
        self.namenode.cut_off = self.namenode.standby = True
        found = self.wait_found("error", "storage systems", "coordinator",
                                "the NameNode does not answer")
        self.assertIn("[hdfs] namenodes", found["advice"])


class WithVolumes(DoctorCase):
    """Helpers beside DataNodes."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.work = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.group = Group(400_000, data=3, parity=2)
        for index, node in enumerate(node_names(5)):
            make_volume(cls.volume(node), f"c8b9e6e2-0000-4000-8000-{node}")
            cls.group.put(cls.volume(node), index)
        cls.cluster = cls.enterClassContext(Cluster(
            case.BIN_DIR, cls.work, node_names(5), helper_settings={"helper": {"store": "hdfs"}}))

    @classmethod
    def volume(cls, node: str) -> Path:
        return cls.work / "data" / node

    def test_volumes_of_their_layout(self) -> None:
        # On a busy machine half a second may be too short for all.
        self.wait_found("ok", "store format", "", "10 headers read, which is all of them")

    def test_another_layout(self) -> None:
        version = self.volume("node-2") / "current" / "VERSION"
        before = version.read_text()
        version.write_text(before.replace("-57", "-56"))
        self.wait_found("error", "store format", "node-2", "layout version -56")
        version.write_text(before)
        self.wait_found("ok", "store format", "", "the 5 roots")

    def test_checksums_of_another_version(self) -> None:
        meta = self.group.meta_file(self.volume("node-3"), 2)
        before = meta.read_bytes()
        meta.write_bytes(b"\x00\x02" + before[2:])
        found = self.wait_found("error", "store format", "node-3", meta.name)
        self.assertIn("has version 2", found["what"])
        meta.write_bytes(before)
        self.wait_found("ok", "store format", "", "the 5 roots")


class WithTls(DoctorCase):
    tls = True

    def certificates(self) -> Certificates:
        assert self.cluster.certificates is not None
        return self.cluster.certificates

    def test_certificates_near_their_end(self) -> None:
        said = {each["check"]: each for each in self.wait_well()}
        self.assertIn("of 8 the first ends in", said["certificates"]["what"])
        self.assertIn("each of 8 accepts the certificates of all", said["tls chain"]["what"])
        certificates = self.certificates()
        certificates.make(["node-1=helper"], days=20)
        self.wait_found("warning", "certificates", "node-1", "ends in")
        certificates.make([f"{COORDINATOR}=coordinator"], days=5)
        found = self.wait_found("error", "certificates", COORDINATOR, "ends in")
        self.assertIn("ecpipe-make-certs", found["advice"])
        certificates.make([f"{REQUESTOR}=requestor,operator"], days=5)
        self.wait_found("error", "certificates", "this command", "ends in")
        certificates.make_for_cluster(COORDINATOR, REQUESTOR, self.cluster.node_ids)
        self.wait_well()

    @contextlib.contextmanager
    def own_files(self, daemon: EcpipeDaemon) -> Iterator[dict[str, Path]]:
        """The daemon has copies of its files, to be changed while it runs; at the end all is as
        before."""
        shared = dict(daemon.settings["tls"])
        folder = self.work / f"files-{daemon.name}"
        folder.mkdir()
        own = {key: Path(shutil.copy(path, folder)) for key, path in shared.items()}
        daemon.settings["tls"] = {key: str(path) for key, path in own.items()}
        daemon.restart()
        self.wait_well()
        try:
            yield own
        finally:
            daemon.settings["tls"] = shared
            daemon.restart()
            shutil.rmtree(folder)
        self.cluster.wait_live(self.cluster.node_ids)
        self.wait_well()

    def other_ca(self, *pairs: str) -> Certificates:
        other = Certificates(Path(self.enterContext(tempfile.TemporaryDirectory())) / "other")
        other.make([*pairs, "nobody=requestor"])
        return other

    @contextlib.contextmanager
    def restarted_in_vain(self, helper: EcpipeDaemon) -> Iterator[None]:
        """It cannot register, and is not ready. At the end it is killed."""
        # Where it listened: the coordinator knows no other port.
        [node] = [each for each in json.loads(self.cluster.cli("nodes", "--json").stdout)
                  if each["node_id"] == helper.name]
        listen = helper.settings["listen"]
        before = dict(listen)
        listen["control"] = node["control_address"]
        helper.stop()
        helper.launch()
        try:
            yield
        finally:
            helper.kill()
            listen.update(before)

    def test_a_helper_that_believes_another_ca(self) -> None:
        """Its heartbeats go on over the connection that it has; when it begins anew it counts as
        dead, and runs."""
        helper = self.cluster.helpers["node-2"]
        ca = (self.other_ca().directory / "ca.pem").read_bytes()
        with self.own_files(helper) as own:
            replace(own["ca"], ca)
            found = self.wait_found("error", "tls chain", "node-2",
                                    REFUSES)
            self.assertIn("the CA of the coordinator's certificate", found["advice"])
            with self.restarted_in_vain(helper):
                found = self.wait_found("error", "helpers", "node-2", "no heartbeat")
                self.assertIn("recover-node node-2", found["advice"])
                self.assertIn("see `tls chain`", found["advice"])
                self.wait_found("error", "tls chain", "node-2", REFUSES)

    def test_a_helper_without_tls(self) -> None:
        helper = self.cluster.helpers["node-1"]
        tls = helper.settings.pop("tls")
        with self.restarted_in_vain(helper):
            found = self.wait_found("error", "tls chain", "node-1", "there is no TLS handshake")
            self.assertIn("has a [tls]", found["advice"])
        helper.settings["tls"] = tls
        helper.restart()
        self.cluster.wait_live(["node-1"])
        self.wait_well()

    def test_a_certificate_of_a_ca_that_only_the_coordinator_believes(self) -> None:
        other = self.other_ca("node-3=helper")
        with self.own_files(self.cluster.coordinator) as head, \
                self.own_files(self.cluster.helpers["node-3"]) as own:
            both = head["ca"].read_bytes() + (other.directory / "ca.pem").read_bytes()
            replace(head["ca"], both)
            replace(own["ca"], both)
            replace(own["key"], (other.directory / "node-3.key").read_bytes())
            replace(own["certificate"], (other.directory / "node-3.pem").read_bytes())
            found = self.wait_found("error", "tls chain", "node-3", "is not accepted by node-1")
            self.assertIn("node-6 and ", found["what"])
            self.assertIn("issued by CN=ECPipe CA", found["what"])
            replace(own["ca"], (other.directory / "ca.pem").read_bytes())

    def test_a_certificate_of_another_name(self) -> None:
        with self.own_files(self.cluster.helpers["node-4"]) as own:
            for key, end in (("key", "key"), ("certificate", "pem")):
                replace(own[key], (self.certificates().directory / f"node-1.{end}").read_bytes())
            found = self.wait_found("error", "tls chain", "node-4", "node 'node-1'")
            self.assertIn("of this name", found["advice"])

    def test_files_that_cannot_be_used(self) -> None:
        with self.own_files(self.cluster.helpers["node-5"]) as own:
            everybodys = own["key"].with_name("everybodys.key")
            shutil.copy(own["key"], everybodys)
            everybodys.chmod(0o644)
            os.replace(everybodys, own["key"])
            found = self.wait_found("error", "tls chain", "node-5", "cannot be used")
            self.assertIn("chmod 640", found["what"])
            self.assertIn("would not start again", found["advice"])
            own["key"].chmod(0o640)
            self.wait_well()
            replace(own["ca"], b"no certificate")
            found = self.wait_found("error", "tls chain", "node-5", REFUSES)
            self.assertIn("see whether the files", found["advice"])

    def test_lists_of_revoked_certificates(self) -> None:
        folder = self.certificates().directory
        self.certificates().make(["stolen=requestor"])
        self.certificates().revoke(["stolen"])
        helper = self.cluster.helpers["node-6"]
        helper.settings["tls"]["crl"] = str(folder / "crl.pem")
        helper.restart()
        try:
            found = self.wait_found("warning", "tls chain", "node-1",
                                    "it has no list of revoked certificates of CN=ECPipe CA")
            self.assertIn("[tls] crl", found["advice"])
            self.assertNotIn("node-6", {each["where"] for each in self.doctor()[1]
                                        if each["check"] == "tls chain"})
            settings = self.work / "ca.cnf"
            settings.write_text(f"[ca]\ndefault_ca=own\n[own]\ndatabase={folder}/revoked.txt\n"
                                "default_md=sha256\nunique_subject=no\n")
            run(["openssl", "ca", "-config", settings, "-cert", folder / "ca.pem", "-keyfile",
                 folder / "ca.key", "-gencrl", "-crl_lastupdate", "20250101000000Z",
                 "-crl_nextupdate", "20250201000000Z", "-out", folder / "crl.pem"])
            self.wait_found("warning", "tls chain", "node-6", "due on 2025-02-01 00:00 UTC")
        finally:
            del helper.settings["tls"]["crl"]
            helper.restart()
        self.cluster.wait_live(["node-6"])
        self.wait_well()

    def test_only_operators_and_only_the_coordinator(self) -> None:
        self.certificates().make(["guest=requestor"])
        done = subprocess.run(
            [case.BIN_DIR / "ecpipe", "--coordinator", self.cluster.coordinator.address,
             *self.certificates().arguments("guest"), "doctor"],
            capture_output=True, text=True, timeout=HANG)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.assertIn("PERMISSION_DENIED", done.stderr)


if __name__ == "__main__":
    case.main()
