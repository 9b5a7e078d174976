#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an operator does with the packages and the documents, from the first evening on.

A coordinator and 15 helpers run under a real systemd, with TLS, each at an address of its own. They
are installed, loaded, upgraded one after the other under load, get new certificates, lose the
coordinator's disk and have it restored, lose a node, and have another one drained. No read fails,
and no byte is wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import debian_root
import package_test
from debian_root import Booted, DebianRoot, Unavailable
from labkit.process import LabError, interruptible, run, wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
SKIPPED = 77
COORDINATOR = "10.7.0.1"
NODES = {f"node-{number}": f"10.7.0.{10 + number}" for number in range(1, 16)}
CODE, SURVIVORS = "rs(9,6)", 6
PATIENCE = 60.0
READERS = 2
TLS = [f"--tls-{option}=/root/certs/{file}" for option, file in
       (("ca", "ca.pem"), ("cert", "ann.pem"), ("key", "ann.key"))]


class Load:
    """Reads of random blocks, lost ones among them, until the end of the block."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.reads = 0
        self.failures: list[str] = []
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._read, args=(seed,))
                         for seed in range(READERS)]

    def _read(self, seed: int) -> None:
        chance = random.Random(seed)
        while not self._ends.is_set():
            block, want = chance.choice(sorted(self.walk.sums.items()))
            said = self.walk.machine.run(
                "sh", "-c", f"ecpipe {' '.join(TLS)} --coordinator {COORDINATOR}:7700 "
                f"read {block} --output - --quiet | sha256sum", check=False)
            self.reads += 1
            if said.stdout.split()[:1] != [want]:
                self.failures.append(f"{block}: {said.stdout}{said.stderr}")

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()


class Walk(unittest.TestCase):
    machine: Booted
    sums: dict[str, str]  # SHA-256 of each block
    lost: list[str]       # blocks whose files are gone

    def test_walk(self) -> None:
        with DebianRoot(package_test.SCRATCH / "walk") as root:
            self.root = root
            for revision, options in (("1", []), ("2", ["--fast"])):
                folder = root.folder / "debs" / revision
                folder.mkdir(parents=True)
                for deb in package_test.packages(revision, *options).glob("*.deb"):
                    if deb.name.split("_")[0] in (*package_test.DAEMONS, "ecpipe"):
                        (folder / deb.name).write_bytes(deb.read_bytes())
            root.apt("install", "iproute2", "openssl", *self.debs("1"))
            with root.booted() as self.machine:
                for step in (self.bring_up, self.load_blocks, self.upgrade_under_load,
                             self.renew_certificates, self.restore_a_backup, self.lose_a_node,
                             self.drain_a_node):
                    began = time.monotonic()
                    done = step()
                    print(f"{step.__name__.replace('_', ' ')}: {done} "
                          f"({time.monotonic() - began:.0f} s)", flush=True)

    def debs(self, revision: str) -> list[str]:
        return [f"/{path.relative_to(self.root.folder)}"
                for path in sorted((self.root.folder / "debs" / revision).iterdir())]

    def ecpipe(self, *words: str, seconds: float = PATIENCE) -> str:
        return self.machine.run("ecpipe", *TLS, "--coordinator", f"{COORDINATOR}:7700", *words,
                                seconds=seconds).stdout

    def await_live(self, nodes: set[str]) -> None:
        def live() -> set[str]:
            return {node["node_id"] for node in json.loads(self.ecpipe("nodes", "--json"))
                    if node["state"] == "live"}
        wait_until(lambda: live() >= nodes, PATIENCE, f"{len(nodes)} live nodes")

    def process_of(self, unit: str) -> str:
        return self.machine.property(unit, "MainPID")

    # ---- The steps -----------------------------------------------------------------------------

    def bring_up(self) -> str:
        etc = self.root.folder / "etc" / "ecpipe"
        for address in (COORDINATOR, *NODES.values()):
            self.machine.run("ip", "address", "add", f"{address}/24", "dev", "lo")
        self.machine.run("ecpipe-make-certs", "--days", "20", "/root/certs", "head=coordinator",
                         "ann=operator", *(f"{node}=helper" for node in NODES))
        self.copy_certificates()
        (etc / "coordinator.toml").write_text(
            f'[coordinator]\nlisten = "{COORDINATOR}:7700"\nnode_addresses = ["10.7.0.0/24"]\n'
            'data_directory = "/var/lib/ecpipe/coordinator"\n' + self.tls("head"))
        for node, address in NODES.items():
            (etc / f"helper-{node}.toml").write_text(
                f'[helper]\nnode_id = "{node}"\ncoordinator = "{COORDINATOR}:7700"\n'
                f'roots = ["/var/lib/ecpipe/blocks-{node}"]\nrack = "/rack-{address[-1]}"\n'
                f'[listen]\ncontrol = "{address}:7711"\ndata = "{address}:7712"\n' + self.tls(node))
        self.machine.run("systemctl", "enable", "--now", "ecpipe-coordinator",
                         *(f"ecpipe-helper@{node}" for node in NODES), seconds=PATIENCE)
        self.await_live(set(NODES))
        return f"{len(NODES)} helpers live, with TLS; {self.examine(('certificates',))}"

    def examine(self, troubles: tuple[str, ...]) -> str:
        """`ecpipe doctor` finds these troubles, and no other but a full disk of the test's host."""
        found = json.loads(self.machine.run(
            "sh", "-c", f"ecpipe {' '.join(TLS)} --coordinator {COORDINATOR}:7700 doctor --json "
            "|| test $? = 1", seconds=PATIENCE).stdout)["findings"]
        wrong = [each for each in found if each["severity"] in ("error", "warning")
                 and each["check"] != "disk room"]
        self.assertEqual({each["check"] for each in wrong}, set(troubles), wrong)
        return f"the doctor made {len(found)} findings, of which {len(wrong)} are troubles"

    def tls(self, name: str) -> str:
        return (f'[tls]\nca = "/etc/ecpipe/ca.pem"\ncertificate = "/etc/ecpipe/{name}.pem"\n'
                f'key = "/etc/ecpipe/{name}.key"\n')

    def copy_certificates(self) -> None:
        self.machine.run("sh", "-ec", "cd /root/certs; for file in ca.pem head.* node-*; do "
                         "install -o root -g ecpipe -m 0640 $file /etc/ecpipe/; done")

    def load_blocks(self) -> str:
        self.machine.run("sh", "-ec", f"""
            head -c 24000000 /dev/urandom >/root/mine
            ecpipe encode /root/mine --out /root/blocks --code '{CODE}' --block-size 1MiB \
                --name mine --nodes {','.join(NODES)}
            for node in {' '.join(NODES)}; do
                cp -a /root/blocks/$node/. /var/lib/ecpipe/blocks-$node/
                chown -R ecpipe: /var/lib/ecpipe/blocks-$node
            done
        """)
        self.ecpipe("catalog", "load", "/root/blocks/mine.manifest.json")
        blocks = self.root.folder / "root" / "blocks"
        files = [path for path in blocks.glob("node-*/*") if path.name.startswith("mine-")]
        self.sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        self.lost = sorted(self.sums)[::9]  # one of each stripe
        for path in files:
            if path.name in self.lost:
                (self.root.folder / "var/lib/ecpipe" / f"blocks-{path.parent.name}"
                 / path.name).unlink()
        return f"{len(self.sums)} blocks, of which {len(self.lost)} are lost"

    def upgrade_under_load(self) -> str:
        units = ("ecpipe-coordinator", *(f"ecpipe-helper@{node}" for node in NODES))
        before = {unit: self.process_of(unit) for unit in units}
        with Load(self) as load:
            self.machine.apt("install", *self.debs("2"))
            self.assertEqual({unit: self.process_of(unit) for unit in units}, before)
            for unit in units[1:]:
                self.machine.run("systemctl", "restart", unit, seconds=PATIENCE)
                self.assertNotEqual(self.process_of(unit), before[unit])
                self.await_live(set(NODES))
            wanted = load.reads + 20
            wait_until(lambda: load.reads > wanted, PATIENCE, "reads after the upgrade")
        self.assertEqual(load.failures, [])
        self.machine.run("systemctl", "restart", "ecpipe-coordinator", seconds=PATIENCE)
        self.await_live(set(NODES))
        return f"{load.reads} reads, none failed, none wrong"

    def renew_certificates(self) -> str:
        processes = {node: self.process_of(f"ecpipe-helper@{node}") for node in NODES}
        renewed = self.machine.run("ecpipe-make-certs", "--renew", "/root/certs").stdout.split()
        self.assertEqual(set(renewed), {"head", "ann", *NODES})
        with Load(self) as load:
            self.copy_certificates()
            wait_until(lambda: self.days_left() > 80, PATIENCE, "the new certificate in use")
            wanted = load.reads + 20
            wait_until(lambda: load.reads > wanted, PATIENCE, "reads with new certificates")
        self.assertEqual(load.failures, [])
        self.assertEqual({node: self.process_of(f"ecpipe-helper@{node}") for node in NODES},
                         processes)
        return (f"{len(renewed)} renewed, nothing restarted, {load.reads} reads went on; "
                + self.examine(()))

    def days_left(self) -> int:
        """Of the certificate that node-1 shows to who connects."""
        ends = self.machine.run(
            "sh", "-c", f"openssl s_client -connect {NODES['node-1']}:7711 -CAfile "
            "/root/certs/ca.pem -cert /root/certs/ann.pem -key /root/certs/ann.key -alpn h2 "
            "</dev/null 2>/dev/null | openssl x509 -noout -enddate | cut -d= -f2 | "
            "date -f - +%s").stdout
        return int((int(ends) - time.time()) / 86400)

    def restore_a_backup(self) -> str:
        self.ecpipe("backup", "/root/coordinator.tar")
        self.machine.run("sh", "-ec", """
            systemctl stop ecpipe-coordinator
            cd /var/lib/ecpipe
            rm -rf coordinator
            sudo() { setpriv --reuid=ecpipe --regid=ecpipe --clear-groups "$@"; }
            install -d -o ecpipe -g ecpipe -m 750 coordinator
            cat /root/coordinator.tar | sudo tar -C coordinator -xf -
            sudo sh -c 'cd coordinator && sha256sum -c SHA256SUMS'
            systemctl start ecpipe-coordinator
        """, seconds=PATIENCE)
        self.await_live(set(NODES))
        block = self.lost[0]
        self.ecpipe("repair", block, "--output", "/root/rebuilt", "--sha256", self.sums[block])
        return f"restored, and {block} repaired"

    def lose_a_node(self) -> str:
        gone = "node-4"
        self.machine.run("systemctl", "disable", "--now", f"ecpipe-helper@{gone}",
                         seconds=PATIENCE)
        said = self.ecpipe("recover-node", gone, "--delay", "0", seconds=300)
        self.assertRegex(said, r"(\d+) of \1 blocks verified")
        self.read_all()
        return said.strip().splitlines()[-1]

    def drain_a_node(self) -> str:
        leaves = "node-7"
        with Load(self) as load:
            said = self.ecpipe("drain", leaves, seconds=300)
        self.assertRegex(said, r"([1-9]\d*) of \1 blocks verified")
        self.assertEqual(load.failures, [])
        self.machine.run("systemctl", "disable", "--now", f"ecpipe-helper@{leaves}",
                         seconds=PATIENCE)
        self.read_all()
        return f"{said.strip().splitlines()[-1]}; {load.reads} reads went on"

    def read_all(self) -> None:
        for block, want in self.sums.items():
            self.machine.run("sh", "-c", f"ecpipe {' '.join(TLS)} --coordinator {COORDINATOR}:7700 "
                             f"read {block} --output - --quiet | sha256sum | grep -q {want}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(".", maxsplit=1)[0])
    parser.add_argument("--build-dir", type=Path, required=True)
    arguments, rest = parser.parse_known_args()
    package_test.BUILD_DIR = arguments.build_dir.resolve()
    try:
        debian_root.require("debootstrap", "systemd-nspawn", "help2man", "nsenter")
        debian_root.mirror()
    except Unavailable as error:
        print(f"SKIP: {error}")
        return SKIPPED
    with interruptible(), tempfile.TemporaryDirectory(prefix="ecpipe-walk-") as scratch:
        package_test.SCRATCH = Path(scratch)
        program = unittest.main(argv=[sys.argv[0], *rest], verbosity=2, exit=False)
    return 0 if program.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
