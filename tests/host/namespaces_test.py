#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster set up from integrations/hdfs/README.md alone: the page's own files and properties,
read out of it and not copied, on hosts of their own. Each host is a network namespace with the
page's names, paths and ports; a real NameNode is on `head`, real DataNodes on `node-1` and so on.
When all nodes are live a DataNode and its helper are killed, and a read must be served by ECPipe
alone. This machine gets empty directories as mount points for a while, where it lacks them.

Twice: with `insecure = true`, and with the page's [tls]. Needs root, namespaces, a JDK and Maven.
Exit code 77 with "SKIP: reason" where these are missing.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "bench"), str(REPOSITORY / "tests" / "docs")]

import documented  # noqa: E402
from labkit import netns  # noqa: E402
from labkit.cluster import COORDINATOR, Ports  # noqa: E402
from labkit.daemon import Daemon, stop_all  # noqa: E402
from labkit.hdfs.driver import Driver  # noqa: E402
from labkit.hdfs.hadoop import Hdfs, await_state  # noqa: E402
from labkit.hdfs.toolchain import NEWEST, Toolchain, Unavailable  # noqa: E402
from labkit.host import LocalHost  # noqa: E402
from labkit.links import Links  # noqa: E402
from labkit.process import LabError, interruptible, wait_until  # noqa: E402

PAGE = REPOSITORY / "integrations" / "hdfs" / "README.md"
EXIT_FAILED, EXIT_SKIPPED = 1, 77
HEAD, SAMPLE = "head", "node-1"     # as the page calls its hosts
NODES = [f"node-{i}" for i in range(1, 4)]  # as many as XOR-2-1 has blocks
OPERATOR = "ann"
READY_SECONDS = 60
BLOCK_BYTES = 4 << 20
FILE_BYTES, SEED = 13_000_001, 7    # two groups
# Of a client; two seconds are short for two cores with all JVMs.
TIMEOUT_MS = 10_000
# Directories of a host that are its own. Its DataNode, its helper and its clients share them.
OWN = ("/etc/ecpipe", "/run/ecpipe", "/var/lib/ecpipe")


class Failed(Exception):
    pass


def expect(holds: bool, message: str) -> None:
    if not holds:
        raise Failed(message)


class Page:
    """What the page tells a new user to write."""

    def __init__(self) -> None:
        steps = documented.section(PAGE.read_text(), "From a stock Hadoop to a degraded read")
        fences = documented.fences(steps)
        self._toml = [fence.text for fence in fences if fence.language == "toml"]
        self._shell = "\n".join(fence.text for fence in fences if fence.language == "sh")
        [xml] = [fence.text for fence in fences if fence.language == "xml"]
        self.properties = {
            entry.findtext("name"): entry.findtext("value")
            for entry in ElementTree.fromstring(f"<all>{xml}</all>")}

    def file(self, name: str) -> str:
        """The file with this path in its first line."""
        [text] = [text for text in self._toml if text.startswith(f"# {name},")]
        return text

    @property
    def tls(self) -> str:
        [text] = [text for text in self._toml if text.startswith("[tls]")]
        return text

    def command(self, program: str) -> list[str]:
        [line] = [line for line in self._shell.splitlines() if line.startswith(program)]
        return shlex.split(line, comments=True)


def on_host(text: str, node: str) -> str:
    return re.sub(rf"\b{SAMPLE}\b", node, text)


def with_tls(text: str, tls: str) -> str:
    """As the page says: a section instead of the key `insecure`."""
    kept = [line for line in text.splitlines() if not line.startswith("insecure")]
    expect(len(kept) < len(text.splitlines()), "the file has no key `insecure`")
    return "\n".join([*kept, "", tls, ""])


class Hosts(netns.Network):
    """Namespaces in which names, and some directories, are each host's own as well."""

    ports = Ports()

    def __init__(self, work: Path, roots: list[str]) -> None:
        super().__init__([HEAD, *NODES], Links())
        self.work = work
        self.own = [*OWN, *roots]
        self._made: list[Path] = []
        self._has_files = False

    def __enter__(self) -> Hosts:
        super().__enter__()
        self._make_mount_points()
        for node in self.nodes:
            for path in self.own:
                self.place(node, path).mkdir(parents=True, exist_ok=True)
            (self.work / f"{node}.hosts").write_text(
                "127.0.0.1 localhost\n" + "".join(
                    f"{self.address(other)} {other}\n" for other in self.nodes))
        self._has_files = True
        return self

    def place(self, node: str, path: str) -> Path:
        """Where a directory of the host's own is on this machine."""
        return self.work / "hosts" / node / path.lstrip("/")

    def address(self, node: str) -> str:
        return super().address(HEAD if node == COORDINATOR else node)

    def host(self, node: str) -> LocalHost:
        """Each process gets a view of the files of its own, which goes with it."""
        node = HEAD if node == COORDINATOR else node
        if not self._has_files:  # the network is still being made
            return super().host(node)
        binds = [(str(self.work / f"{node}.hosts"), "/etc/hosts"),
                 *((str(self.place(node, path)), path) for path in self.own)]
        lines = [f"mount --bind {shlex.quote(source)} {path}" for source, path in binds]
        script = " && ".join([f"hostname {node}", *lines, 'exec "$@"'])
        return LocalHost([*super().host(node).prefix, "unshare", "--mount", "--uts",
                          "--propagation", "private", "env", "HADOOP_USER_NAME=hdfs",
                          "sh", "-c", script, node])

    def _make_mount_points(self) -> None:
        """Empty directories in this machine's own view, where it has none of these names."""
        for path in map(Path, self.own):
            for folder in reversed([path, *path.parents]):
                if not folder.exists():
                    folder.mkdir()
                    self._made.append(folder)

    def close(self) -> None:
        super().close()
        while self._made:
            try:
                self._made.pop().rmdir()
            except OSError:
                pass  # somebody else has put something there


class Site:
    """The page's cluster."""

    def __init__(self, page: Page, hosts: Hosts, bin_dir: Path, work: Path, tls: bool) -> None:
        self.page, self.hosts, self.bin_dir, self.work, self.tls = page, hosts, bin_dir, work, tls
        self.daemons: dict[str, Daemon] = {}
        if tls:
            self._make_certificates()

    def _make_certificates(self) -> None:
        words = self.page.command("deploy/make-certs.sh")
        directory = self.work / "certs"
        roles = [word for word in words[2:] if not re.match(r"node-\d", word)]
        of_node = next(word.split("=")[1] for word in words if word.startswith(f"{SAMPLE}="))
        subprocess.run([REPOSITORY / words[0], directory, *roles,
                        *(f"{node}={of_node}" for node in NODES)], check=True, capture_output=True)
        for node in self.hosts.nodes:
            for name in ("ca.pem", f"{node}.pem", f"{node}.key"):
                shutil.copy(directory / name, self.hosts.place(node, "/etc/ecpipe") / name)
        for name in (f"{OPERATOR}.pem", f"{OPERATOR}.key"):
            shutil.copy(directory / name, self.hosts.place(HEAD, "/etc/ecpipe") / name)

    def start_program(self, node: str, program: str, file: str) -> None:
        text = on_host(self.page.file(file), node)
        if self.tls:
            text = with_tls(text, on_host(self.page.tls, node))
        self.hosts.place(node, "/etc/ecpipe").joinpath(Path(file).name).write_text(text)
        daemon = Daemon(f"{program}-{node}", [self.bin_dir / program, "--config", file],
                        self.work / f"{program}-{node}.log", host=self.hosts.host(node))
        daemon.start()
        daemon.wait_ready(lambda: ".serving" in daemon.log_tail(50), READY_SECONDS)
        self.daemons[daemon.name] = daemon

    def status(self, *more: str) -> subprocess.CompletedProcess[str]:
        """The page's own last check."""
        words = self.page.command("ecpipe ")
        identity = []
        if self.tls:
            expect("--tls-ca" in PAGE.read_text(), "the page does not say how `status` uses TLS")
            identity = ["--tls-ca", "/etc/ecpipe/ca.pem",
                        "--tls-cert", f"/etc/ecpipe/{OPERATOR}.pem",
                        "--tls-key", f"/etc/ecpipe/{OPERATOR}.key"]
        return self.hosts.host(HEAD).run(
            [self.bin_dir / words[0], *words[1:], *identity, *more], check=False)


def start_hdfs(page: Page, hosts: Hosts, tools: Toolchain, work: Path, roots: list[str]) -> Hdfs:
    """With the page's properties on DataNodes."""
    hdfs = Hdfs(tools, work, network=hosts, settings={
        "dfs.blocksize": BLOCK_BYTES, "ecpipe.timeout-ms": TIMEOUT_MS,
        "dfs.namenode.http-address": f"{HEAD}:9870"})
    hdfs.http = f"{hosts.address(HEAD)}:9870"
    shared = {name: page.properties[name] for name in ("dfs.datanode.plugins", "ecpipe.endpoint")}
    for node in NODES:
        datanode = hdfs.add_datanode(node, {
            **shared, "dfs.datanode.data.dir": ",".join(f"file://{root}" for root in roots)})
        datanode.volume = hosts.place(node, roots[0])
    hdfs.start()
    for datanode in hdfs.datanodes:
        log = datanode.daemon.log_file.read_text()
        said = f"ecpipe: reconstruction goes through {page.properties['ecpipe.endpoint']}"
        expect(said in log and said in PAGE.read_text(), f"{datanode.name} does not say '{said}'")
    return hdfs


def check_live(site: Site) -> None:
    def all_live() -> bool:
        told = site.status().stdout
        return (all(re.search(rf"^{node} .* live ", told, re.MULTILINE) for node in NODES)
                and "trouble with" not in told)
    try:
        wait_until(all_live, READY_SECONDS, "all nodes live, without trouble")
    except LabError as error:
        done = site.status()
        raise Failed(f"{error}\n{done.stdout}{done.stderr}") from None


def check_read(site: Site, hdfs: Hdfs, driver: Driver) -> dict[str, Any]:
    driver.do("policy", "/ec", "XOR-2-1-1024k")
    driver.do("put", "/ec/file", FILE_BYTES, SEED)
    [victim] = {uuid for group in driver.groups("/ec/file")[:1]
                for index, uuid in group.nodes.items() if index == 0}
    node = hdfs.by_uuid(victim)
    if node.name == NODES[-1]:  # the client is there
        [victim] = {uuid for group in driver.groups("/ec/file")[:1]
                    for index, uuid in group.nodes.items() if index == 1}
        node = hdfs.by_uuid(victim)
    node.daemon.kill()
    site.daemons[f"ecpipe-helper-{node.name}"].kill()
    before, start = driver.counters(), time.monotonic()
    expect(int(driver.do("cat", "/ec/file", SEED)) == FILE_BYTES, "the file has another length")
    used = driver.counters() - before
    expect(used.repairs > 0 and used.repaired_bytes > 0, f"nothing came through ECPipe: {used}")
    expect(used.fallbacks == 0, f"HDFS had to help itself: {used}")
    seconds = round(time.monotonic() - start, 2)

    def told() -> bool:
        return f"trouble with {node.name}:" in site.status().stdout
    await_state(told, READY_SECONDS, f"status to tell of {node.name}")
    return {"killed": node.name, "repairs": used.repairs, "repaired_bytes": used.repaired_bytes,
            "fallbacks": used.fallbacks, "seconds": seconds}


def run(arguments: argparse.Namespace, tools: Toolchain, work: Path, tls: bool) -> None:
    page, start = Page(), time.monotonic()
    roots = tomllib.loads(page.file("/etc/ecpipe/helper.toml"))["helper"]["roots"]
    with Hosts(work, roots) as hosts:
        site = Site(page, hosts, arguments.bin_dir, work, tls)
        hdfs: Hdfs | None = None
        driver: Driver | None = None
        try:
            site.start_program(HEAD, "ecpipe-coordinator", "/etc/ecpipe/coordinator.toml")
            # The volumes come with the DataNodes; until then helpers have nothing to serve.
            hdfs = start_hdfs(page, hosts, tools, work / "hdfs", roots)
            for node in NODES:
                site.start_program(node, "ecpipe-helper", "/etc/ecpipe/helper.toml")
            check_live(site)
            client = hdfs.configuration("client", {
                name: page.properties[name] for name in ("fs.hdfs.impl", "ecpipe.endpoint")})
            driver = Driver(hdfs, hosts.host(NODES[-1]), client, work / "driver.log")
            result = check_read(site, hdfs, driver)
        finally:
            if driver is not None:
                driver.stop()
            stop_all(list(site.daemons.values()))
            if hdfs is not None:
                hdfs.stop()
    print(f"ok     {'[tls]' if tls else 'insecure'}: {result}, "
          f"{time.monotonic() - start:.1f} s in all", flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin-dir", type=Path, required=True, help="ECPipe's programs")
    parser.add_argument("--hadoop", default=NEWEST, metavar="VERSION")
    parser.add_argument("--keep", action="store_true", help="keep the work directory")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    arguments.bin_dir = arguments.bin_dir.resolve()
    if reason := netns.why_not():
        print(f"SKIP: {reason}")
        return EXIT_SKIPPED
    work = Path(tempfile.mkdtemp(prefix="ecpipe-hosts-"))
    passed = False
    try:
        with interruptible():
            tools = Toolchain(arguments.hadoop)
            for tls in (False, True):
                part = work / ("tls" if tls else "insecure")
                part.mkdir()
                run(arguments, tools, part, tls)
        passed = True
    except Unavailable as error:
        print(f"SKIP: {error}")
        passed = True
        return EXIT_SKIPPED
    except (Failed, LabError) as error:
        print(f"FAILED {type(error).__name__}: {error}")
    finally:
        if arguments.keep or not passed:
            print(f"logs and data: {work}", flush=True)
        else:
            shutil.rmtree(work, ignore_errors=True)
    return 0 if passed else EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
