# SPDX-License-Identifier: Apache-2.0
"""Nodes on other machines, over ssh: a host for each, and the network that they make.

For each node one ssh connection runs agent.py there. Nothing has to be installed there but Python 3
and the programs' libraries; programs are copied once a machine. Closing the connection cleans up.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import queue
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Mapping, Sequence

from .cluster import Ports
from .host import COMMAND_SECONDS, Word
from .inventory import Inventory, Machine
from .links import LinkBytes, Links
from .process import LabError, die_with_parent, wait_until

ANSWER_SECONDS = 60.0
CONNECT_SECONDS = 60.0
CLOSE_SECONDS = 30.0    # the agent gives its children ten
PIECE_BYTES = 1 << 20
# BatchMode: a password prompt would wait for ever. A machine that goes away is noticed in a minute.
SSH_OPTIONS = ("-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20",
               "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4")
AGENT = Path(__file__).with_name("agent.py")


class RemoteProcess:
    def __init__(self, host: SshHost, pid: int) -> None:
        self.pid = pid
        self._host = host
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            self._code = self._host.ask("poll", pid=self.pid)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """subprocess.TimeoutExpired after `timeout`, as Popen; never longer than a minute."""
        try:
            wait_until(lambda: self.poll() is not None, timeout or ANSWER_SECONDS, "its end")
        except LabError:
            if self.poll() is None:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or ANSWER_SECONDS) from None
        return self._code or 0

    def send_signal(self, sig: int) -> None:
        self._host.ask("signal", pid=self.pid, number=int(sig))


class SshHost:
    """Connects at once; connected() waits for that, so that many can connect together.
    `neighbour`: a host on the same machine, which has programs there already."""

    python = "python3"

    def __init__(self, name: str, machine: Machine, ssh_options: Sequence[str],
                 neighbour: SshHost | None) -> None:
        self.name = name
        self._neighbour = neighbour
        self._programs: dict[Path, Path] = {}
        self._asked = 0
        self._answers: queue.Queue[str] = queue.Queue()
        source = AGENT.read_bytes()
        # The agent's source comes first on its standard input, then the requests.
        bootstrap = (f"import sys,os; b=b''\nwhile len(b)<{len(source)}: "
                     f"b+=os.read(0,{len(source)}-len(b)) or sys.exit(1)\n"
                     "exec(compile(b,'agent','exec'))")
        words = [self.python, "-u", "-c", bootstrap, *([machine.directory] if machine.directory
                                                       else [])]
        self._ssh = subprocess.Popen(
            ["ssh", *SSH_OPTIONS, *ssh_options, machine.ssh, shlex.join(words)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
            preexec_fn=die_with_parent)
        threading.Thread(target=self._read, daemon=True).start()
        self._write(source)

    def connected(self) -> None:
        self.directory = Path(self.ask("hello", seconds=CONNECT_SECONDS))

    def ask(self, operation: str, *, seconds: float = ANSWER_SECONDS, **arguments: Any) -> Any:
        """LabError when the agent reports an error, or nothing in time."""
        self._asked += 1
        self._write((json.dumps({"id": self._asked, "do": operation, **arguments}) + "\n").encode())
        answer = self._answer(operation, time.monotonic() + seconds)
        if "error" in answer:
            raise LabError(f"{self.name}: {operation}: {answer['error']}")
        return answer["ok"]

    def _answer(self, operation: str, deadline: float) -> dict[str, Any]:
        """An interrupt may have left answers behind that nobody waited for."""
        while True:
            try:
                line = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise LabError(f"{self.name} did not answer {operation} in time") from None
            if not line:
                self._answers.put(line)  # for whoever asks next
                raise LabError(f"{self.name}: the ssh connection has ended, exit code "
                               f"{self._ssh.poll()}")
            answer = json.loads(line)
            if answer["id"] == self._asked:
                return answer

    def close(self) -> None:
        """The agent sees the end of its input and cleans up; waits until it has."""
        if self._ssh.stdin:
            with contextlib.suppress(OSError):
                self._ssh.stdin.close()
        try:
            self._ssh.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            print(f"{self.name}: no end of cleaning up within {CLOSE_SECONDS:g} s",
                  file=sys.stderr)
            self._ssh.kill()
            self._ssh.wait()

    def _write(self, content: bytes) -> None:
        try:
            self._ssh.stdin.write(content)
            self._ssh.stdin.flush()
        except OSError as error:
            raise LabError(f"{self.name}: the ssh connection has ended: {error}") from None

    def _read(self) -> None:
        for line in self._ssh.stdout:
            self._answers.put(line.decode())
        self._answers.put("")

    # ---- Host ------------------------------------------------------------------------------

    def spawn(self, words: Sequence[Word], log: Path,
              environment: Mapping[str, str] | None = None) -> RemoteProcess:
        return self._spawn(words, log, None, environment)

    def _spawn(self, words: Sequence[Word], log: Path, errors: Path | None,
               environment: Mapping[str, str] | None) -> RemoteProcess:
        return RemoteProcess(self, self.ask(
            "spawn", words=[str(word) for word in words], log=str(log),
            errors=str(errors) if errors else None, environment=dict(environment or {})))

    def run(self, words: Sequence[Word], *, timeout: float = COMMAND_SECONDS, check: bool = True,
            environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        output, errors = self.directory / "run.out", self.directory / "run.err"
        self.remove(output)
        self.remove(errors)
        process = self._spawn(words, output, errors, environment)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise LabError(f"{self.name}: still running after {timeout:g} s, so it was ended: "
                           f"{' '.join(map(str, words))}") from None
        finally:
            if process.poll() is None:
                process.send_signal(9)
        done = subprocess.CompletedProcess(list(words), code, self.read_text(output),
                                           self.read_text(errors))
        if check and code != 0:
            raise LabError(f"{self.name}: exit code {code}: {' '.join(map(str, words))}\n"
                           f"{done.stdout}{done.stderr}".rstrip())
        return done

    def cpu_seconds(self, pid: int) -> float:
        return self.ask("cpu_seconds", pid=pid)

    def free_port(self) -> int:
        return self.ask("free_port", address="0.0.0.0")

    def base(self, work_dir: Path) -> Path:
        return self.directory

    def program(self, local: Path) -> Path:
        if self._neighbour:
            return self._neighbour.program(local)
        if local not in self._programs:
            self.make_directory(self.directory / "bin")
            there = self.directory / "bin" / local.name
            self.put(local, there)
            self._programs[local] = there
        return self._programs[local]

    def put(self, local: Path, path: Path) -> None:
        with local.open("rb") as file:
            begin = True
            while (piece := file.read(PIECE_BYTES)) or begin:
                self.ask("write", path=str(path), content=base64.b64encode(piece).decode(),
                         begin=begin, executable=os.access(local, os.X_OK))
                begin = False

    def make_directory(self, path: Path) -> None:
        self.ask("make_directory", path=str(path))

    def write_text(self, path: Path, text: str) -> None:
        self.ask("write", path=str(path), content=base64.b64encode(text.encode()).decode(),
                 begin=True, executable=False)

    def read_text(self, path: Path) -> str:
        return self.ask("read_text", path=str(path))

    def exists(self, path: Path) -> bool:
        return self.ask("exists", path=str(path))

    def remove(self, path: Path) -> None:
        self.ask("remove", path=str(path))

    def list_directory(self, path: Path) -> list[str]:
        return self.ask("list_directory", path=str(path))

    def sha256(self, path: Path) -> str:
        return self.ask("sha256", path=str(path))


class Network:
    """The machines of an inventory, as COORDINATOR, REQUESTOR and nodes. A context manager."""

    insecure = True
    links = Links()  # not known
    congestion_control = "of the machines"

    def __init__(self, machines: Mapping[str, Machine], inventory: Inventory) -> None:
        self._machines = dict(machines)
        self._options = inventory.ssh_options
        self._hosts: dict[str, SshHost] = {}
        self.ports = Ports(inventory.coordinator_port, inventory.control_port,
                           inventory.data_port, inventory.redis_port)

    def __enter__(self) -> Network:
        try:
            first: dict[str, SshHost] = {}
            for name, machine in self._machines.items():
                self._hosts[name] = SshHost(name, machine, self._options, first.get(machine.ssh))
                first.setdefault(machine.ssh, self._hosts[name])
            for host in self._hosts.values():
                host.connected()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """All at once: each may take a while to stop what runs there."""
        threads = [threading.Thread(target=host.close) for host in self._hosts.values()]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 2 * CLOSE_SECONDS
        for thread in threads:
            thread.join(max(0.1, deadline - time.monotonic()))

    def address(self, node: str) -> str:
        return self._machines[node].address

    def host(self, node: str) -> SshHost:
        return self._hosts[node]

    def rack(self, node: str) -> str | None:
        return self._machines[node].rack

    def link_bytes(self) -> dict[str, LinkBytes] | None:
        return None

    def watch_point(self) -> None:
        return None
