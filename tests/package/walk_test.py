#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an operator does with the packages and the documents, from the first evening on.

A coordinator and 15 helpers run under a real systemd, with TLS, each on a host of its own, and
Debian's Prometheus watches them with the packaged rules. Hosts are network namespaces. The daemons
are installed, loaded, upgraded one after the other under load, get new certificates, meet many
troubles at once, lose the coordinator's disk and have it restored, lose a node's disk, and have
another node drained. No read fails, and no byte is wrong; those that begin while the coordinator is
away are told so, and tried again. Each alert fires and ends at the times of its rule.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Iterable, Sequence

import debian_root
import package_test
from debian_root import Booted, DebianRoot, Unavailable
from hosts import Hosts
from labkit.process import interruptible, wait_until
from load import Load
from troubles import NAMENODE_PORT, Aside, Disk, FewDescriptors, NameNode, rot
from watcher import Watcher

REPOSITORY = Path(__file__).resolve().parents[2]
SKIPPED = 77
COORDINATOR, OPERATOR, NAMENODE = "10.7.0.1", "10.7.0.2", "10.7.0.3"
NODES = {f"node-{number}": f"10.7.0.{10 + number}" for number in range(1, 16)}
CODE = "rs(9,6)"
PATIENCE = 60.0
FAILING_REPAIRS = 15
# Who has which trouble. encode puts the stripes' blocks on node-1 to node-12.
ENDS_FIRST, CUT_OFF, TWO_DISKS, FEW_DESCRIPTORS = "node-15", "node-12", "node-14", "node-10"
LOSES_ITS_DISK, DRAINED = "node-4", "node-7"
ROTTEN = ("node-5", "mine-s00000-b04")
# A stripe of one file, whose first block is on the node that is cut off.
POOR_NODES = (CUT_OFF, "node-13", "node-14", "node-15", "node-1", "node-2", "node-3", "node-5",
              "node-6")
POOR = "poor-s00000-b00"
# Alerts that need a helper of a wrong configuration, a target less or a disk that is nearly full.
NOT_HERE = {"EcpipeHelperNotRegistered", "EcpipeCoordinatorNotScraped", "EcpipeStateDiskShort"}
TLS = [f"--tls-{option}=/root/certs/{file}" for option, file in
       (("ca", "ca.pem"), ("cert", "ann.pem"), ("key", "ann.key"))]


class Walk(unittest.TestCase):
    machine: Booted
    hosts: Hosts
    namenode: NameNode
    second_disk: Disk
    few_descriptors: FewDescriptors
    sums: dict[str, str]   # SHA-256 of each block
    homes: dict[str, str]  # the node of each block at first
    lost: list[str]        # blocks whose files are gone

    def test_walk(self) -> None:
        with DebianRoot(package_test.SCRATCH / "walk") as root:
            self.root = root
            for revision in ("1", "2"):
                folder = root.folder / "debs" / revision
                folder.mkdir(parents=True)
                for deb in package_test.packages(revision, "--fast").glob("*.deb"):
                    if deb.name.split("_")[0] in package_test.PACKAGES:
                        (folder / deb.name).write_bytes(deb.read_bytes())
            root.apt("install", "iproute2", "openssl", "prometheus", *self.debs("1"))
            with root.booted() as self.machine:
                self.hosts = Hosts(self.machine, OPERATOR, {"head": COORDINATOR, **NODES,
                                                            "namenode": NAMENODE})
                self.namenode = self.enterContext(NameNode(self.hosts, "namenode", NAMENODE))
                self.watcher = Watcher(self.machine, root.folder)
                for step in (self.bring_up, self.load_blocks, self.fail_repairs,
                             self.upgrade_under_load, self.renew_certificates,
                             self.have_troubles_at_once, self.restore_a_backup,
                             self.lose_a_node, self.drain_a_node):
                    began = time.monotonic()
                    done = step()
                    print(f"{step.__name__.replace('_', ' ')}: {done} "
                          f"({time.monotonic() - began:.0f} s)", flush=True)
                self.assertEqual(self.watcher.fired() | NOT_HERE, self.watcher.alerts())

    def debs(self, revision: str, *names: str) -> list[str]:
        """Of these packages; no names: of all."""
        return [f"/{path.relative_to(self.root.folder)}"
                for path in sorted((self.root.folder / "debs" / revision).iterdir())
                if not names or path.name.split("_")[0] in names]

    def ecpipe(self, *words: str, seconds: float = PATIENCE) -> str:
        return self.machine.run("ecpipe", *TLS, "--coordinator", f"{COORDINATOR}:7700", *words,
                                seconds=seconds).stdout

    def fails(self, *words: str, seconds: float = PATIENCE) -> None:
        """ecpipe ends by itself, with an exit code that is not 0."""
        done = self.machine.run("ecpipe", *TLS, "--coordinator", f"{COORDINATOR}:7700", *words,
                                seconds=seconds, check=False)
        self.assertGreater(done.returncode, 0, done.stdout)

    def load(self, blocks: Sequence[str] = ()) -> Load:
        """Of these blocks; none: of all."""
        return Load(self.machine, self.root.folder, ("ecpipe", *TLS, "--coordinator",
                    f"{COORDINATOR}:7700"), f"{COORDINATOR}:7700",
                    {block: self.sums[block] for block in blocks or self.sums})

    def expect_no_trouble(self, load: Load) -> None:
        self.assertEqual((load.wrong, load.failures), ([], []))

    def expect_quiet(self) -> None:
        self.assertEqual(self.watcher.firing(), set())

    def await_live(self, nodes: set[str]) -> None:
        self.await_state("live", nodes)

    def await_state(self, state: str, nodes: set[str]) -> None:
        def found() -> set[str]:
            return {node["node_id"] for node in json.loads(self.ecpipe("nodes", "--json"))
                    if node["state"] == state}
        wait_until(lambda: found() >= nodes, PATIENCE, f"{len(nodes)} {state} nodes")

    def process_of(self, unit: str) -> str:
        return self.machine.property(unit, "MainPID")

    # ---- The steps -----------------------------------------------------------------------------

    def bring_up(self) -> str:
        etc = self.root.folder / "etc" / "ecpipe"
        self.place_units()
        self.machine.run("ecpipe-make-certs", "--days", "20", "/root/certs", "head=coordinator",
                         "ann=operator", "prometheus=requestor",
                         *(f"{node}=helper" for node in NODES))
        self.machine.run("ecpipe-make-certs", "--days", "5", "/root/certs", f"{ENDS_FIRST}=helper")
        self.copy_certificates()
        (etc / "coordinator.toml").write_text(
            f'[coordinator]\nlisten = "{COORDINATOR}:7700"\n'
            'data_directory = "/var/lib/ecpipe/coordinator"\n'
            f'[hdfs]\nnamenodes = ["http://{NAMENODE}:{NAMENODE_PORT}"]\nrefresh_seconds = 10\n'
            + self.pages(f"{COORDINATOR}:9700") + self.tls("head"))
        for node, address in NODES.items():
            roots = [f"/var/lib/ecpipe/blocks-{node}"]
            if node == TWO_DISKS:
                roots.append(self.second_disk.path)
            (etc / f"helper-{node}.toml").write_text(
                f'[helper]\nnode_id = "{node}"\ncoordinator = "{COORDINATOR}:7700"\n'
                f'roots = {json.dumps(roots)}\nrack = "/rack-{address[-1]}"\n'
                f'[listen]\ncontrol = "{address}:7711"\ndata = "{address}:7712"\n'
                + self.pages(f"{address}:9711") + self.tls(node))
        self.machine.run("systemctl", "enable", "--now", "ecpipe-coordinator",
                         *(f"ecpipe-helper@{node}" for node in NODES), seconds=PATIENCE)
        self.await_live(set(NODES))
        self.watcher.start("/root/certs", f"{COORDINATOR}:9700",
                           [f"{address}:9711" for address in NODES.values()])
        self.watcher.await_firing("EcpipeCertificateEndsSoon", "EcpipeCertificateEnds")
        return (f"{len(NODES)} helpers live, with TLS, and a Prometheus that scrapes all; "
                + self.examine({"certificates"}) + "; two alerts fired")

    def place_units(self) -> None:
        """Each on its host, and the second disk for who writes to it."""
        self.second_disk = Disk(self.machine, TWO_DISKS)
        units = self.root.folder / "etc" / "systemd" / "system"
        for name, text in (
                ("ecpipe-coordinator.service.d/host.conf", self.hosts.drop_in("head")),
                ("ecpipe-helper@.service.d/host.conf", self.hosts.drop_in("%i")),
                (f"ecpipe-helper@{TWO_DISKS}.service.d/block-roots.conf",
                 "[Service]\nReadWritePaths=-/data\n")):
            (units / name).parent.mkdir(parents=True)
            (units / name).write_text(text)
        self.machine.run("systemctl", "daemon-reload")

    def examine(self, troubles: set[str]) -> str:
        """`ecpipe doctor` finds these troubles, and no other but a full disk of the test's host
        and that no helper is beside a DataNode of the stand-in for HDFS."""
        found = json.loads(self.machine.run(
            "sh", "-c", f"ecpipe {' '.join(TLS)} --coordinator {COORDINATOR}:7700 doctor --json "
            "|| test $? = 1", seconds=PATIENCE).stdout)["findings"]
        wrong = [each for each in found if each["severity"] in ("error", "warning")
                 and each["check"] != "disk room"
                 and not each["what"].startswith("it serves no DataNode's blocks")]
        self.assertEqual({each["check"] for each in wrong}, troubles, wrong)
        return f"the doctor made {len(found)} findings, of which {len(wrong)} are troubles"

    def pages(self, address: str) -> str:
        return f'[web]\nlisten = "{address}"\ntls = true\n'

    def tls(self, name: str) -> str:
        return (f'[tls]\nca = "/etc/ecpipe/ca.pem"\ncertificate = "/etc/ecpipe/{name}.pem"\n'
                f'key = "/etc/ecpipe/{name}.key"\n')

    def copy_certificates(self) -> None:
        self.machine.run("sh", "-ec", "cd /root/certs; for file in ca.pem head.* node-*; do "
                         "install -o root -g ecpipe -m 0640 $file /etc/ecpipe/$file.new; "
                         "mv /etc/ecpipe/$file.new /etc/ecpipe/$file; done")

    def load_blocks(self) -> str:
        self.sums, self.homes = {}, {}
        self.encode("mine", 24_000_000, NODES)
        self.lost = sorted(self.sums)[::9]  # one of each stripe
        for block in self.lost:
            (self.root.folder / "var/lib/ecpipe" / f"blocks-{self.homes[block]}" / block).unlink()
        return f"{len(self.sums)} blocks, of which {len(self.lost)} are lost"

    def encode(self, name: str, size: int, nodes: Iterable[str]) -> None:
        self.machine.run("sh", "-ec", f"""
            head -c {size} /dev/urandom >/root/{name}
            ecpipe encode /root/{name} --out /root/blocks-{name} --code '{CODE}' \
                --block-size 1MiB --name {name} --nodes {','.join(nodes)}
            for node in $(ls -d /root/blocks-{name}/node-* | xargs -n 1 basename); do
                cp -a /root/blocks-{name}/$node/. /var/lib/ecpipe/blocks-$node/
                chown -R ecpipe: /var/lib/ecpipe/blocks-$node
            done
        """)
        self.ecpipe("catalog", "load", f"/root/blocks-{name}/{name}.manifest.json")
        for path in (self.root.folder / "root" / f"blocks-{name}").glob(f"node-*/{name}-*"):
            self.sums[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
            self.homes[path.name] = path.parent.name

    def fail_repairs(self) -> str:
        """Most of all, since none were made before. The reads of the next step make them few."""
        self.encode("poor", 6 << 20, POOR_NODES)
        files = self.poor_files(0, 1, 2, 3)
        files.take()
        for _ in range(FAILING_REPAIRS):
            self.fails("repair", POOR, "--output", "/root/poor-block")
        self.watcher.await_firing("EcpipeRepairsFail")
        files.put_back()
        return f"an alert fired after {FAILING_REPAIRS} failed repairs"

    def poor_files(self, *indexes: int) -> Aside:
        return Aside(self.machine, {f"poor-s00000-b0{index}": POOR_NODES[index]
                                    for index in indexes})

    def upgrade_under_load(self) -> str:
        """In the order of docs/operations.md. Reads go on between any two of its steps."""
        helpers = [f"ecpipe-helper@{node}" for node in NODES]
        before = {unit: self.process_of(unit) for unit in ("ecpipe-coordinator", *helpers)}
        self.ecpipe("backup", "/root/before-upgrade.tar")
        began = time.monotonic()
        with self.load() as load:
            load.await_more(10)
            self.upgrade(before, "ecpipe-coordinator")
            load.await_more(10)
            self.restart("ecpipe-coordinator", before)
            load.await_more(10)
            refused = load.refused
            self.upgrade(before, "ecpipe-helper")
            for unit in helpers:
                self.restart(unit, before)
                load.await_more(5)
            for packages in (["ecpipe"], ["libecpipe0", "libecpipe-dev"], ["ecpipe-qfs"]):
                self.upgrade(before, *packages)
                load.await_more(10)
        self.expect_no_trouble(load)
        self.assertEqual(load.refused, refused, "the coordinator was not away any more")
        self.watcher.await_end("EcpipeRepairsFail")
        return (f"{load.reads} reads in {time.monotonic() - began:.0f} s, none failed, none wrong; "
                f"while the coordinator restarted, {load.refused} calls were refused and tried "
                f"again, until the read went through after {load.longest_wait:.1f} s at most")

    def upgrade(self, processes: dict[str, str], *packages: str) -> None:
        """Restarts nothing; `processes` has that of each unit."""
        self.machine.apt("install", *self.debs("2", *packages))
        for package in packages:
            self.assertTrue(self.machine.run("dpkg-query", "--show", "--showformat=${Version}",
                                             package).stdout.endswith("-2"))
        self.assertEqual({unit: self.process_of(unit) for unit in processes}, processes)

    def restart(self, unit: str, processes: dict[str, str]) -> None:
        """Ends when it is ready, and all nodes are live."""
        self.machine.run("systemctl", "restart", unit, seconds=PATIENCE)
        self.assertNotEqual(self.process_of(unit), processes[unit])
        processes[unit] = self.process_of(unit)
        self.await_live(set(NODES))

    def renew_certificates(self) -> str:
        processes = {node: self.process_of(f"ecpipe-helper@{node}") for node in NODES}
        renewed = self.machine.run("ecpipe-make-certs", "--renew", "/root/certs").stdout.split()
        self.assertEqual(set(renewed), {"head", "ann", "prometheus", *NODES})
        with self.load() as load:
            self.copy_certificates()
            self.watcher.copy_certificates("/root/certs")
            wait_until(lambda: self.days_left() > 80, PATIENCE, "the new certificate in use")
            load.await_more(20)
        self.expect_no_trouble(load)
        self.assertEqual(load.refused, 0)
        self.watcher.await_end("EcpipeCertificateEndsSoon", "EcpipeCertificateEnds")
        self.assertEqual({node: self.process_of(f"ecpipe-helper@{node}") for node in NODES},
                         processes)
        return (f"{len(renewed)} renewed, nothing restarted, {load.reads} reads went on; "
                + self.examine(set()) + "; both alerts ended")

    def days_left(self) -> int:
        """Of the certificate that node-1 shows to who connects."""
        ends = self.machine.run(
            "sh", "-c", f"openssl s_client -connect {NODES['node-1']}:7711 -CAfile "
            "/root/certs/ca.pem -cert /root/certs/ann.pem -key /root/certs/ann.key -alpn h2 "
            "</dev/null 2>/dev/null | openssl x509 -noout -enddate | cut -d= -f2 | "
            "date -f - +%s").stdout
        return int((int(ends) - time.time()) / 86400)

    def have_troubles_at_once(self) -> str:
        self.expect_quiet()
        reads = self.begin_troubles()
        self.watcher.await_firing("EcpipeRootFailed", "EcpipeBlockCorrupt",
                                  "EcpipeDescriptorsShort")
        self.mend_a_node_each()
        self.watcher.await_firing("EcpipeHelperDown", "EcpipeNodeDead", "EcpipeRecoveryStuck",
                                  "EcpipeSourceDown")
        self.namenode.start(groups=1)  # of which no node has a block
        files = self.poor_files(1, 2, 3)
        self.give_a_block_up(files)
        self.watcher.await_end("EcpipeRecoveryStuck", "EcpipeSourceDown")
        self.watcher.await_firing("EcpipeStripesLost")
        self.namenode.start()  # its file was deleted
        files.put_back()
        self.assertRegex(self.ecpipe("recover-node", CUT_OFF, "--delay", "0", seconds=300),
                         r"(\d+) of \1 blocks verified")
        with self.load(self.lost) as load:
            self.watcher.await_end("EcpipeBlocksGivenUp", "EcpipeStripesLost")
            load.await_more(50)
        self.expect_no_trouble(load)
        self.hosts.join(CUT_OFF)
        self.await_live(set(NODES))
        self.watcher.await_end("EcpipeHelperDown", "EcpipeNodeDead")
        self.expect_quiet()
        return (f"nine alerts fired, and ended; {reads} reads while they began and {load.reads} of "
                "lost blocks while they ended, none failed, none wrong; " + self.examine(set()))

    def begin_troubles(self) -> int:
        """How many reads went on meanwhile."""
        self.machine.run("systemctl", "stop", f"ecpipe-helper@{TWO_DISKS}", seconds=PATIENCE)
        self.second_disk.unmount()
        self.machine.run("systemctl", "start", f"ecpipe-helper@{TWO_DISKS}", seconds=PATIENCE)
        self.await_live(set(NODES))
        with self.load() as load:
            load.await_more(5)
            self.hosts.cut(CUT_OFF)
            self.namenode.stop()
            rot(self.root.folder, *ROTTEN)
            self.fails("corrupt", "check", ROTTEN[1])
            self.await_state("dead", {CUT_OFF})
            load.await_more(50)
        self.expect_no_trouble(load)
        self.assertEqual(load.refused, 0)
        self.ecpipe("recover-node", CUT_OFF, "--to", CUT_OFF, "--delay", "0", "--detach")
        self.few_descriptors = FewDescriptors(self.machine,
                                              self.process_of(f"ecpipe-helper@{FEW_DESCRIPTORS}"))
        self.few_descriptors.begin()
        return load.reads

    def mend_a_node_each(self) -> None:
        self.few_descriptors.end()  # before the doctor, whose calls take the last ones
        self.examine({"helpers", "roots", "storage systems"})
        self.second_disk.mount()
        [corrupt] = json.loads(self.ecpipe("status", "--json"))["corrupt_blocks"]
        self.ecpipe(*corrupt["repair"].split()[1:])
        self.watcher.await_end("EcpipeRootFailed", "EcpipeBlockCorrupt", "EcpipeDescriptorsShort")

    def give_a_block_up(self, files: Aside) -> None:
        """The node that is cut off has it, and too few others have theirs."""
        files.take()
        [waiting] = json.loads(self.ecpipe("recovery", "list", "--json"))
        self.ecpipe("recovery", "cancel", str(waiting["recovery_id"]))
        self.fails("recover-node", CUT_OFF, "--delay", "0", seconds=300)
        self.watcher.await_firing("EcpipeBlocksGivenUp")

    def restore_a_backup(self) -> str:
        self.ecpipe("backup", "/root/coordinator.tar")
        self.machine.run("sh", "-ec", """
            systemctl stop ecpipe-coordinator
            rm -rf /var/lib/ecpipe/coordinator
        """)
        self.watcher.await_firing("EcpipeCoordinatorDown")
        self.machine.run("sh", "-ec", """
            cd /var/lib/ecpipe
            sudo() { setpriv --reuid=ecpipe --regid=ecpipe --clear-groups "$@"; }
            install -d -o ecpipe -g ecpipe -m 750 coordinator
            cat /root/coordinator.tar | sudo tar -C coordinator -xf -
            sudo sh -c 'cd coordinator && sha256sum -c SHA256SUMS'
            systemctl start ecpipe-coordinator
        """, seconds=PATIENCE)
        self.await_live(set(NODES))
        block = self.lost[0]
        self.ecpipe("repair", block, "--output", "/root/rebuilt", "--sha256", self.sums[block])
        self.watcher.await_end("EcpipeCoordinatorDown")
        return f"an alert fired; restored, and {block} repaired; it ended"

    def lose_a_node(self) -> str:
        """It comes back with a new disk."""
        gone = LOSES_ITS_DISK
        self.machine.run("systemctl", "stop", f"ecpipe-helper@{gone}", seconds=PATIENCE)
        self.machine.run("find", f"/var/lib/ecpipe/blocks-{gone}", "-mindepth", "1", "-delete")
        self.await_state("dead", {gone})
        said = self.ecpipe("recover-node", gone, "--delay", "0", seconds=300)
        self.assertRegex(said, r"(\d+) of \1 blocks verified")
        self.read_all()
        self.machine.run("systemctl", "start", f"ecpipe-helper@{gone}", seconds=PATIENCE)
        self.await_live(set(NODES))
        return f"{said.splitlines()[-1].strip()}, and all {len(self.sums)} read"

    def drain_a_node(self) -> str:
        leaves = DRAINED
        with self.load() as load:
            said = self.ecpipe("drain", leaves, seconds=300)
            load.await_more(20)
        self.assertRegex(said, r"([1-9]\d*) of \1 blocks verified")
        self.expect_no_trouble(load)
        self.assertEqual(load.refused, 0)
        self.machine.run("systemctl", "disable", "--now", f"ecpipe-helper@{leaves}",
                         seconds=PATIENCE)
        self.read_all()
        return f"{said.splitlines()[-1].strip()}; {load.reads} reads went on"

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
