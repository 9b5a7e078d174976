#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A requestor endpoint that other hosts can reach: over TLS, and for requestors only. It listens on
all addresses, and the test dials loopback."""

from __future__ import annotations

import hashlib
import ssl
import tempfile
import unittest
from pathlib import Path
from typing import Any

import case
from endpoint_client import Connection
from hdfs_group import Group, make_volume
from labkit.certificates import Certificates
from labkit.cluster import COORDINATOR, REQUESTOR, Cluster, EcpipeDaemon, node_names

NODES = 9


class EndpointOverTls(unittest.TestCase):
    """Block i of the group is on node i + 1."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.work = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.nodes = node_names(NODES)
        cls.group = Group(6 * 65536 + 777)
        cls.sources = {}
        for index, node in enumerate(cls.nodes):
            volume, uuid = cls.work / "data" / node, f"uuid-of-{node}"
            make_volume(volume, uuid)
            cls.group.put(volume, index)
            if index != 0:
                cls.sources[index] = [uuid]
        cls.certificates = Certificates(cls.work / "certificates")
        cls.certificates.make_for_cluster(COORDINATOR, REQUESTOR, cls.nodes,
                                          {node: f"uuid-of-{node}" for node in cls.nodes})
        cls.cluster = cls.enterClassContext(Cluster(
            case.BIN_DIR, cls.work, cls.nodes, certificates=cls.certificates,
            helper_settings={"helper": {"store": "hdfs"}}))
        endpoint = cls.make_endpoint("open", {"tls": cls.certificates.settings(REQUESTOR)})
        endpoint.launch()
        cls.addClassCleanup(endpoint.stop)
        endpoint.await_ready()
        cls.address = endpoint.ready["endpoint"].replace("0.0.0.0", "127.0.0.1")

    @classmethod
    def make_endpoint(cls, name: str, settings: dict[str, Any]) -> EcpipeDaemon:
        config, ready = cls.work / f"{name}.toml", cls.work / f"{name}.json"
        return EcpipeDaemon(
            name=name, command=[case.BIN_DIR / "ecpipe-helper", "--requestor-only",
                                "--config", config, "--ready-file", ready],
            log_file=cls.work / f"{name}.log", config_file=config, ready_file=ready,
            settings={"requestor": {"coordinator": cls.cluster.coordinator.address},
                      "endpoint": {"address": "tcp:0.0.0.0:0"}, **settings})

    def context(self, name: str | None) -> ssl.SSLContext:
        """With the certificate of this name, or without one."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(self.certificates.directory / "ca.pem")
        if name:
            files = self.certificates.settings(name)
            context.load_cert_chain(files["certificate"], files["key"])
        return context

    def ask(self, tls: ssl.SSLContext | None) -> bytes:
        with Connection(self.address, tls) as connection:
            connection.ask(self.group, 0, self.sources)
            return connection.answer().content

    def test_a_requestor_gets_its_block(self) -> None:
        content = self.ask(self.context(REQUESTOR))
        self.assertEqual(hashlib.sha256(content).hexdigest(),
                         hashlib.sha256(self.group.blocks[0]).hexdigest())

    def test_nobody_else_gets_anything(self) -> None:
        for who, tls in (("plain", None), ("no certificate", self.context(None)),
                         ("a helper", self.context("node-2"))):
            with self.subTest(who=who), self.assertRaises(OSError):  # ssl.SSLError is one
                self.ask(tls)
        self.assertEqual(self.ask(self.context(REQUESTOR)), self.group.blocks[0])

    def test_without_tls_it_does_not_start(self) -> None:
        plain = self.make_endpoint("plain", {})
        plain.launch()
        self.assertNotEqual(plain.reap(30), 0)
        self.assertIn("not a loopback address", plain.log_tail())


if __name__ == "__main__":
    case.main()
