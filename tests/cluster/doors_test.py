#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Strangers who hold what they have: idle connections where descriptors are few, idle streams.

The numbers are bounded: bench/flood.py has ten thousand connections."""

from __future__ import annotations

import contextlib
import resource
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import case
from case import HANG, ClusterCase
from labkit import strangers
from labkit.daemon import Daemon
from labkit.process import wait_until

DESCRIPTORS = 256
CONNECTIONS = 400   # more than the process may have descriptors
STREAMS = 256       # of each of these connections
STREAM_CONNECTIONS = 4
WATCHED_SECONDS = 8.0
CROWD = 5000
CROWDED_DESCRIPTORS = 4096  # fewer than that
OWN_DESCRIPTORS = 200  # of this process, beside those of a crowd
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, HEADERS, END_HEADERS = 4, 1, 4


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + \
        struct.pack(">I", stream) + payload


def literals(headers: dict[str, str]) -> bytes:
    """HPACK's simplest form: each header with its name and value in full."""
    return b"".join(b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) +
                    value.encode() for name, value in headers.items())


def begin_call(stream: int, path: str) -> bytes:
    return frame(HEADERS, END_HEADERS, stream, literals(
        {":method": "POST", ":scheme": "http", ":path": path, ":authority": "x",
         "content-type": "application/grpc", "te": "trailers"}))


def files(daemon: Daemon) -> int:
    return len(list(Path(f"/proc/{daemon.pid}/fd").iterdir()))


def threads(daemon: Daemon) -> int:
    return len(list(Path(f"/proc/{daemon.pid}/task").iterdir()))


class Doors(ClusterCase):
    coordinator_settings = {"web": {"listen": "127.0.0.1:0"}}
    helper_settings = {**ClusterCase.helper_settings, "endpoint": {"address": "tcp:127.0.0.1:0"}}

    def connect(self, address: str, words: bytes = b"") -> socket.socket:
        host, port = address.rsplit(":", 1)
        connection = socket.create_connection((host, int(port)), timeout=HANG)
        self.addCleanup(connection.close)
        with contextlib.suppress(OSError):  # it may have been closed already
            connection.sendall(words)
        return connection

    def doors(self) -> dict[str, tuple[Daemon, str]]:
        node = self.cluster.node_status()["node-1"]
        return {"coordinator": (self.cluster.coordinator, self.cluster.coordinator.address),
                "control port": (self.cluster.helpers["node-1"], node["control_address"]),
                "data port": (self.cluster.helpers["node-1"], node["data_address"])}

    def other_doors(self) -> dict[str, tuple[Daemon, str]]:
        """Those through which no repair goes."""
        helper = self.cluster.helpers["node-1"]
        return {"pages": (self.cluster.coordinator, self.cluster.coordinator.ready["web"]),
                "endpoint": (helper, helper.ready["endpoint"].removeprefix("tcp:"))}

    def assert_opens(self, name: str, address: str) -> None:
        """Who comes now is served: a page, what the endpoint says to half a request, or the first
        frame of gRPC."""
        settings = (PREFACE + frame(SETTINGS, 0, 0), 3, bytes([SETTINGS]))  # after its length
        words, skipped, answer = {
            "coordinator": settings, "control port": settings,
            "pages": (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 0, b"HTTP/1.1 200"),
            "endpoint": (bytes(16), 0, b"ECPR")}[name]

        def served() -> bool:
            host, port = address.rsplit(":", 1)
            with contextlib.suppress(OSError), \
                    socket.create_connection((host, int(port)), timeout=HANG) as connection:
                connection.sendall(words)
                said = connection.recv(skipped + len(answer), socket.MSG_WAITALL)
                return said[skipped:] == answer
            return False
        wait_until(served, HANG, f"the {name} to be served again")

    def crowd(self, address: str, count: int) -> list[socket.socket]:
        """Silent connections. A port whose queue is full answers late or not at all: nobody waits
        for that, and what has not come about by the end is no connection."""
        host, port = address.rsplit(":", 1)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        crowd: list[socket.socket] = []
        for _ in range(min(count, most - OWN_DESCRIPTORS)):
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex((host, int(port)))
            crowd.append(connection)
            self.addCleanup(connection.close)
        return crowd

    def assert_all_live(self) -> None:
        states = {name: node["state"] for name, node in self.cluster.node_status().items()}
        self.assertEqual(set(states.values()), {"live"}, states)

    def repair_over_node_1(self) -> None:
        lost = next(block for block in self.manifest["stripes"][0]["blocks"]
                    if "node-1" not in self.cluster.block_file(block["block_id"]).parts)
        self.repair(lost["block_id"], "--scheme", "rp-all", "--sha256", lost["sha256"])


class FewDescriptors(Doors):
    def test_idle_connections(self) -> None:
        self.repair_over_node_1()
        for name, (daemon, address) in self.doors().items():
            with self.subTest(door=name):
                before = files(daemon)
                self.assertLess(before, DESCRIPTORS // 2)
                limits = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
                resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, limits[1]))
                crowd = [self.connect(address, PREFACE + frame(SETTINGS, 0, 0) if i % 2 else b"")
                         for i in range(CONNECTIONS)]
                if name != "data port":  # which shares what is left with its own process only
                    self.assert_all_live()
                    self.repair_over_node_1()
                for connection in crowd:
                    connection.close()
                wait_until(lambda: files(daemon) <= before + 20, HANG, "what they held to be free")
                self.repair_over_node_1()
                self.assert_all_live()
                resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, limits)


    def test_pages_and_endpoint(self) -> None:
        for name, (daemon, address) in self.other_doors().items():
            with self.subTest(door=name):
                self.assert_opens(name, address)
                before = files(daemon)
                limits = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
                resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (before + 4, limits[1]))
                crowd = self.crowd(address, CONNECTIONS)
                self.assertGreater(len(crowd), 4)
                for connection in crowd:
                    connection.close()
                self.assert_opens(name, address)
                resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, limits)
                self.assert_all_live()
                self.repair_over_node_1()


class Crowd(Doors):
    """Thousands who come and say nothing, or go at once."""

    def test_idle_connections_to_the_control_plane(self) -> None:
        for name, (daemon, address) in self.doors().items():
            if name == "data port":
                continue  # flood_test.py
            with self.subTest(door=name):
                before = files(daemon)
                limits = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
                resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE,
                                 (CROWDED_DESCRIPTORS, limits[1]))
                crowd = self.crowd(address, CROWD)
                self.assertGreater(len(crowd), CROWDED_DESCRIPTORS, "descriptors of this process")
                self.assert_all_live()
                self.repair_over_node_1()
                for connection in crowd:
                    connection.close()
                self.assert_opens(name, address)
                self.repair_over_node_1()
                wait_until(lambda: files(daemon) <= before + 20, HANG, "what they held to be free")
                resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, limits)

    def test_idle_connections(self) -> None:
        for name, (daemon, address) in self.other_doors().items():
            with self.subTest(door=name):
                before = files(daemon)
                crowd = self.crowd(address, CROWD)
                self.assert_all_live()
                self.repair_over_node_1()
                for connection in crowd:
                    connection.close()
                self.assert_opens(name, address)
                wait_until(lambda: files(daemon) <= before + 20, HANG, "what they held to be free")

    def test_who_comes_and_goes(self) -> None:
        doors = self.other_doors()
        flood = subprocess.Popen(
            [sys.executable, strangers.__file__, str(CROWD), "4",
             *(address for _, address in doors.values())], stdout=subprocess.DEVNULL)
        try:
            self.repair_over_node_1()
            self.assertEqual(flood.wait(HANG), 0)
        finally:
            flood.kill()
            flood.wait()
        for name, (_, address) in doors.items():
            self.assert_opens(name, address)
        self.repair_over_node_1()
        self.assert_all_live()


class IdleStreams(Doors):
    def test_reflection(self) -> None:
        path = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        doors = {name: door for name, door in self.doors().items() if name != "data port"}
        before = {name: threads(daemon) for name, (daemon, _) in doors.items()}
        for _, address in doors.values():
            for _ in range(STREAM_CONNECTIONS):
                self.connect(address, PREFACE + frame(SETTINGS, 0, 0) + b"".join(
                    begin_call(2 * i + 1, path) for i in range(STREAMS)))
        deadline = time.monotonic() + WATCHED_SECONDS
        most = dict(before)
        while time.monotonic() < deadline:
            self.assert_all_live()
            for name, (daemon, _) in doors.items():
                most[name] = max(most[name], threads(daemon))
        self.repair_over_node_1()
        for name in doors:
            self.assertLess(most[name] - before[name], STREAMS, f"threads of {name}")
        self.assert_nothing_left()


if __name__ == "__main__":
    case.main()
