# SPDX-License-Identifier: Apache-2.0
"""An sshd of the test's own on loopback: its own port, host key, user key and configuration."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from pathlib import Path
from typing import Iterator

from labkit.daemon import Daemon
from labkit.process import LabError, free_port, run

SSHD = "/usr/sbin/sshd"
PORT_ATTEMPTS = 5
READY_SECONDS = 20.0
# sshd insists on this directory when root starts it; Debian's service would make it.
PRIVILEGE_SEPARATION = Path("/run/sshd")
CONFIGURATION = """
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
StrictModes no
MaxStartups 200
MaxSessions 200
"""


def why_not() -> str | None:
    missing = [tool for tool in (SSHD, "ssh", "ssh-keygen") if not shutil.which(tool)]
    return (f"{', '.join(missing)} is missing: deploy/install-deps.sh test installs it"
            if missing else None)


@contextlib.contextmanager
def loopback_sshd(folder: Path) -> Iterator[list[str]]:
    """The options with which `ssh 127.0.0.1` logs in there."""
    for key in ("host_key", "user_key"):
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key])
    with privilege_separation_directory():
        daemon, port = start(folder)
        try:
            host = " ".join((folder / "host_key.pub").read_text().split()[:2])
            (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {host}\n")
            yield ["-F", "none", "-p", str(port), "-i", str(folder / "user_key"),
                   "-o", f"UserKnownHostsFile={folder / 'known_hosts'}",
                   "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=yes"]
        finally:
            daemon.stop()


def start(folder: Path) -> tuple[Daemon, int]:
    """sshd does not choose a port by itself; one that somebody took costs another attempt."""
    for attempt in range(PORT_ATTEMPTS):
        port = free_port()
        configuration = folder / "sshd_config"
        configuration.write_text(CONFIGURATION.format(port=port, folder=folder))
        daemon = Daemon("sshd", [SSHD, "-D", "-e", "-f", configuration],
                        folder / f"sshd.{attempt}.log")
        daemon.start()
        try:
            daemon.wait_ready(lambda: answers(port), READY_SECONDS)
            return daemon, port
        except LabError as error:
            daemon.kill()
            last_error = error
    raise LabError(f"sshd: {last_error}")


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0) as probe:
        probe.settimeout(1.0)
        return probe.recv(4) == b"SSH-"
    return False


@contextlib.contextmanager
def privilege_separation_directory() -> Iterator[None]:
    if os.geteuid() != 0 or PRIVILEGE_SEPARATION.exists():
        yield
        return
    PRIVILEGE_SEPARATION.mkdir(mode=0o755)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            PRIVILEGE_SEPARATION.rmdir()
