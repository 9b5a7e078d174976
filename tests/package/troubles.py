# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on the hosts of the walk, and how it is mended."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from debian_root import Booted
from hosts import Hosts
from labkit.process import die_with_parent

NAMENODE_PORT = 9870
STORE = "var/lib/ecpipe"


class NameNode:
    """A context manager: a stand-in for HDFS's, on a host of its own."""

    def __init__(self, hosts: Hosts, host: str, address: str) -> None:
        self._before = hosts.command_outside(
            host, [sys.executable, Path(__file__).with_name("namenode.py"), address,
                   str(NAMENODE_PORT)])
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, groups: int = 0) -> None:
        """It lists so many block groups, of which no helper has a block."""
        self.stop()
        self._process = subprocess.Popen([*self._before, str(groups)], preexec_fn=die_with_parent)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = None

    def __enter__(self) -> NameNode:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Disk:
    """A second disk of a node: a folder that is mounted, with the root `path` in it."""

    def __init__(self, machine: Booted, node: str) -> None:
        self._machine = machine
        self.mount_point = f"/data/{node}"
        self.path = f"{self.mount_point}/blocks"
        self._disk = f"/disks/{node}"
        machine.run("sh", "-ec", f"""
            mkdir -p {self.mount_point} {self._disk}
            install -d -o ecpipe -g ecpipe -m 750 {self._disk}/blocks
        """)
        self.mount()

    def mount(self) -> None:
        self._machine.run("mount", "--bind", self._disk, self.mount_point)

    def unmount(self) -> None:
        self._machine.run("umount", self.mount_point)


def rot(root: Path, node: str, block: str) -> None:
    """A byte of the block on the node's disk is not what was written."""
    with (root / STORE / f"blocks-{node}" / block).open("r+b") as file:
        file.seek(50_000)
        byte = file.read(1)[0]
        file.seek(50_000)
        file.write(bytes([byte ^ 0x10]))


class FewDescriptors:
    """The process may open few descriptors beyond those that it has."""

    def __init__(self, machine: Booted, process: str) -> None:
        self._machine, self._process = machine, process
        self._most = ""

    def begin(self) -> None:
        self._most = self._prlimit("--nofile", "--noheadings", "--output", "SOFT")
        opened = len(self._machine.run("ls", f"/proc/{self._process}/fd").stdout.split())
        self._prlimit(f"--nofile={opened * 10 // 9}:")

    def end(self) -> None:
        self._prlimit(f"--nofile={self._most}:")

    def _prlimit(self, *arguments: str) -> str:
        """As the process's own user and group: root of a container may do without the capability
        that others' limits need."""
        status = self._machine.run("cat", f"/proc/{self._process}/status").stdout
        user, group = (re.search(rf"^{name}:\s+(\d+)", status, re.M)[1] for name in ("Uid", "Gid"))
        return self._machine.run(
            "setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "prlimit", "--pid",
            self._process, *arguments).stdout.strip()


class Aside:
    """Files of blocks that are taken out of their nodes' disks, and put back."""

    def __init__(self, machine: Booted, blocks: dict[str, str]) -> None:
        """`blocks`: their nodes."""
        self._machine, self._blocks = machine, blocks

    def take(self) -> None:
        self._machine.run("sh", "-ec", "mkdir -p /root/aside\n" + "\n".join(
            f"mv /{STORE}/blocks-{node}/{block} /root/aside/"
            for block, node in self._blocks.items()))

    def put_back(self) -> None:
        self._machine.run("sh", "-ec", "\n".join(
            f"mv /root/aside/{block} /{STORE}/blocks-{node}/"
            for block, node in self._blocks.items()))
