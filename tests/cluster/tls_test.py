#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster over TLS: repairs and recovery, who may do what, and new certificates under way."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Iterator

import case
from case import FAILED, HANG, UNAVAILABLE, USAGE, ClusterCase, sha256
from labkit.certificates import Certificates
from labkit.cluster import COORDINATOR, REQUESTOR
from labkit.daemon import Daemon
from labkit.process import wait_until
from labkit.settings import toml_text


class TlsCase(ClusterCase):
    tls = True

    def certificates(self) -> Certificates:
        assert self.cluster.certificates is not None
        return self.cluster.certificates

    def as_name(self, name: str, *arguments: str, certificates: Certificates | None = None,
                coordinator: str | None = None) -> subprocess.CompletedProcess[str]:
        """The command with the certificate of this name."""
        identity = (certificates or self.certificates()).arguments(name)
        return subprocess.run(
            [case.BIN_DIR / "ecpipe", "--coordinator",
             coordinator or self.cluster.coordinator.address, *identity, *arguments],
            capture_output=True, text=True, timeout=HANG)

    def refused(self, name: str, *arguments: str) -> str:
        """PERMISSION_DENIED, and what was said of it."""
        done = self.as_name(name, *arguments)
        self.assertEqual(done.returncode, FAILED, done.stdout + done.stderr)
        self.assertIn("PERMISSION_DENIED", done.stderr)
        return done.stderr

    @contextlib.contextmanager
    def helper_with(self, certificate: str, node: str) -> Iterator[Daemon]:
        """A helper that says that it is `node`, with somebody's certificate."""
        config, root = self.work / f"{node}.toml", self.work / f"root-{node}"
        root.mkdir()
        config.write_text(toml_text({
            "helper": {"node_id": node, "coordinator": self.cluster.coordinator.address,
                       "roots": [str(root)]},
            "listen": {"control": "127.0.0.1:0", "data": "127.0.0.1:0"},
            "tls": self.certificates().settings(certificate)}))
        daemon = Daemon(node, [case.BIN_DIR / "ecpipe-helper", "--config", config],
                        self.work / f"{node}.log")
        daemon.start()
        try:
            yield daemon
        finally:
            daemon.stop()


class Repairs(TlsCase):
    def test_every_way_of_repairing(self) -> None:
        lost = self.block(0, 0)
        for scheme in case.SCHEMES:
            report = self.repair(lost["block_id"], "--scheme", scheme, "--sha256", lost["sha256"])
            self.assertEqual(report["transport"], "tcp")
        done = self.cluster.cli("read", lost["block_id"], "--offset", "100", "--length", "1000",
                                "-o", self.work / "range")
        self.assertEqual(done.returncode, 0)
        self.assertEqual((self.work / "range").read_bytes(),
                         self.bytes_of(lost["block_id"])[100:1100])
        self.assert_nothing_left()

    def test_redis_is_plain_text_and_refused(self) -> None:
        said = self.fails(FAILED, "repair", self.block(0, 0)["block_id"], "--transport", "redis",
                          "-o", self.work / "never")
        self.assertIn("plain text", said)
        self.assertFalse((self.work / "never").exists())
        said = self.fails(FAILED, "recover-node", "node-1", "--even-if-live", "--transport",
                          "redis", "--detach")
        self.assertIn("plain text", said)

    def test_data_port_answers_no_plain_tcp(self) -> None:
        host, port = self.cluster.node_status()["node-1"]["data_address"].rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=HANG) as stranger:
            stranger.sendall(b"ECPH" + bytes(48))
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while more := stranger.recv(1000):
                    answer += more
        self.assertLess(len(answer), 20)  # at most an alert

    def test_no_certificate(self) -> None:
        done = subprocess.run(
            [case.BIN_DIR / "ecpipe", "--coordinator", self.cluster.coordinator.address, "status"],
            capture_output=True, text=True, timeout=HANG)
        self.assertEqual(done.returncode, UNAVAILABLE, done.stdout + done.stderr)


class Roles(TlsCase):
    def setUp(self) -> None:
        self.certificates().make(["app=requestor", "ann=operator"])

    def test_requestor(self) -> None:
        lost = self.block(0, 0)
        done = self.as_name("app", "repair", lost["block_id"], "-o", str(self.work / "app"),
                            "--sha256", lost["sha256"])
        self.assertEqual(done.returncode, 0, done.stderr)
        said = self.refused("app", "recover-node", "node-1", "--detach")
        self.assertIn("GetNodeLoss needs one of the roles operator", said)  # its first call
        self.assertIn("'app' has requestor", said)
        self.assertIn("PutStripes", self.refused("app", "catalog", "load",
                                                 str(self.manifest_path)))
        self.assertIn("GetStatus", self.refused("app", "status"))
        self.assertIn("stores blocks on nodes", self.refused("app", "repair", lost["block_id"],
                                                  "--to", "node-7"))

    def test_helper_orders_nothing(self) -> None:
        for words in (["recover-node", "node-1", "--detach"], ["recovery", "list"],
                      ["repair", self.block(0, 0)["block_id"], "-o", str(self.work / "no")],
                      ["catalog", "load", str(self.manifest_path)], ["status"]):
            self.assertIn("'node-3' has helper", self.refused("node-3", *words))

    def test_operator(self) -> None:
        self.assertEqual(self.as_name("ann", "status").returncode, 0)
        self.assertEqual(self.as_name("ann", "links").returncode, 0)

    def test_who_may_be_a_helper(self) -> None:
        """A requestor cannot register, and a helper not as another one."""
        for certificate, node in (("app", "node-8"), ("node-2", "node-9")):
            with self.helper_with(certificate, node) as helper:
                wait_until(lambda: "PERMISSION_DENIED" in helper.log_tail(), HANG, "the refusal")
                self.assertIn(f"'{certificate}'", helper.log_tail())
                self.assertNotIn(node, self.cluster.node_status())

    def test_impostor_of_a_coordinator(self) -> None:
        """A helper takes no orders from, and tells nothing to, what has no such certificate."""
        config = self.work / "impostor.toml"
        (self.work / "impostor").mkdir()
        config.write_text(toml_text({
            "coordinator": {"listen": "127.0.0.1:0", "data_directory": str(self.work / "impostor")},
            "tls": self.certificates().settings("app")}))
        ready = self.work / "impostor.json"
        daemon = Daemon("impostor", [case.BIN_DIR / "ecpipe-coordinator", "--config", config,
                                     "--ready-file", ready], self.work / "impostor.log")
        daemon.start()
        try:
            daemon.wait_ready(ready.exists, 60)
            address = ready.read_text().split('"')[3]
            done = self.as_name("ann", "status", coordinator=address)
            self.assertEqual(done.returncode, UNAVAILABLE, done.stderr)
            self.assertIn("lacks the role coordinator", done.stderr)
        finally:
            daemon.stop()


class Replacement(TlsCase):
    block_bytes = 64 << 20
    file_bytes = 4 * (64 << 20)
    helper_settings = {"timeouts": {"stall_seconds": 25.0, "drain_seconds": 5.0}}

    def test_a_new_ca_while_a_repair_runs(self) -> None:
        lost = self.block(0, 0)
        old = self.work / "old-certificates"
        shutil.copytree(self.certificates().directory, old)
        process = self.begin_read(lost["block_id"], "--timeout", "60")
        (self.certificates().directory / "ca.pem").unlink()
        self.certificates().make_for_cluster(COORDINATOR, REQUESTOR, self.cluster.node_ids)
        # Daemons look at their files once a second; nobody believes the old CA any more then.
        wait_until(lambda: self.cluster.cli("status", check=False).returncode == 0, HANG,
                   "the new certificates to be in use")
        wait_until(lambda: self.as_name(REQUESTOR, "status", certificates=Certificates(old))
                   .returncode == UNAVAILABLE, HANG, "the old ones to be refused")
        taken, said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, said)
        self.assertEqual(taken, self.bytes_of(lost["block_id"]))
        # Streams and calls that begin now: helpers among each other, too.
        self.cluster.wait_live(self.cluster.node_ids)
        self.repair(lost["block_id"], "--scheme", "rp", "--sha256", lost["sha256"])
        self.assert_nothing_left()


class Recovery(TlsCase):
    def test_recovery_of_a_node(self) -> None:
        lost = self.block(0, 0)
        self.cluster.helpers[lost["node"]].kill()
        shutil.rmtree(self.cluster.data_dir() / lost["node"])
        self.cluster.cli("recover-node", lost["node"], "--even-if-live")
        for stripe in self.manifest["stripes"]:
            for block in stripe["blocks"]:
                self.assertEqual(sha256(self.bytes_of(block["block_id"])), block["sha256"])
        self.assert_nothing_left()


class Configs(TlsCase):
    nodes = 6

    def start_fails(self, settings: dict, *expected: str, code: int = USAGE) -> None:
        """1: without an edit it may start the next time."""
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "config.toml"
            config.write_text(toml_text({
                "helper": {"node_id": "node-1", "coordinator": "127.0.0.1:1", "roots": [folder]},
                "listen": {"control": "127.0.0.1:0", "data": "127.0.0.1:0"}, **settings}))
            done = subprocess.run([case.BIN_DIR / "ecpipe-helper", "--config", config],
                                  capture_output=True, text=True, timeout=HANG)
        self.assertEqual(done.returncode, code, done.stderr)
        for part in expected:
            self.assertIn(part, done.stderr)

    def test_refused(self) -> None:
        good = self.certificates().settings("node-1")
        self.start_fails({"tls": {"ca": good["ca"]}}, "config.toml:", "all three")
        self.start_fails({"tls": {**good, "key": "/no/such.key"}}, "/no/such.key", code=1)
        self.start_fails({"tls": {**good, "key": self.certificates().settings("node-2")["key"]}},
                         "node-2.key: key values mismatch", code=1)
        # TLS does not protect these.
        self.start_fails({"tls": good, "redis": {"address": "192.0.2.1:6379"}}, "redis.address")
        self.start_fails({"tls": good, "web": {"listen": "0.0.0.0:0"}}, "0.0.0.0:0")

    def test_off_loopback_with_tls(self) -> None:
        ready = self.work / "open.json"
        config = self.work / "open.toml"
        root = self.work / "open"
        root.mkdir()
        config.write_text(toml_text({
            "helper": {"node_id": "node-1", "coordinator": "127.0.0.1:1", "roots": [str(root)]},
            "listen": {"control": "0.0.0.0:0", "data": "0.0.0.0:0"},
            "tls": self.certificates().settings("node-1")}))
        daemon = Daemon("open", [case.BIN_DIR / "ecpipe-helper", "--config", config,
                                 "--ready-file", ready], self.work / "open.log")
        daemon.start()
        try:
            daemon.wait_ready(ready.exists, 60)
        finally:
            self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    case.main()
