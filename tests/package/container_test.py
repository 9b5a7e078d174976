#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The image of deploy/containers is built of this build's packages over a clean Debian 12, and
compose.yaml runs a cluster of it that repairs a block. The storage is the test's own."""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import debian_root
from debian_root import DebianRoot, Unavailable
from labkit.process import LabError, interruptible, run, wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
CONTAINERS = REPOSITORY / "deploy" / "containers"
BUILD_DIR = Path()
SCRATCH = Path()
SKIPPED = 77
NODES = ("node-1", "node-2", "node-3", "node-4")
PROJECT = f"ecpipe-test-{os.getpid()}"
SECONDS, BUILD_SECONDS, START_SECONDS = 60.0, 300.0, 120.0


def limits() -> list[str]:
    """podman asks for more descriptors and processes than root may have in a container."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return [f"--ulimit=nofile=1024:{files}", "--ulimit=nproc=4096:4096"]


class Podman:
    """With a storage of its own, so that it neither sees nor leaves anything of the machine's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "podman"
        # crun of Debian 12 does not run where both versions of control groups are mounted.
        runtime = shutil.which("runc") or "crun"
        self.program.write_text(
            f"#!/bin/sh\nexec podman --root {folder}/storage --runroot {folder}/run "
            f'--network-config-dir {folder}/networks --runtime {runtime} "$@"\n')
        self.program.chmod(0o755)

    def __call__(self, *words: str | Path, seconds: float = SECONDS) -> str:
        return run([self.program, *words], timeout=seconds).stdout

    def compose(self, *words: str) -> None:
        run(["podman-compose", "--podman-path", self.program,
             f"--podman-run-args={' '.join(limits())}", "--project-name", PROJECT,
             "--file", CONTAINERS / "compose.yaml", *words], timeout=START_SECONDS)

    def inside(self, node: str, script: str, seconds: float = SECONDS) -> str:
        return self("exec", f"{PROJECT}_{node}_1", "sh", "-ec", script, seconds=seconds)

    def copy(self, node: str, path: str, to: str, there: str) -> None:
        on_the_way = Path(tempfile.mkdtemp(dir=self.folder))
        self("cp", f"{PROJECT}_{node}_1:{path}", f"{on_the_way}/")
        self("cp", f"{on_the_way}/.", f"{PROJECT}_{to}_1:{there}")

    def end(self) -> None:
        """Ends what runs, and unmounts the storage, so that the folder can go."""
        for words in ([self.program, "rm", "--all", "--force", "--time", "0"],
                      [self.program, "network", "prune", "--force"],
                      ["umount", "--lazy", self.folder / "storage" / "overlay"]):
            run(words, timeout=SECONDS, check=False)

    def can_run(self, image: str) -> None:
        """Unavailable if not: some sandboxes have no right to make containers, or bridges."""
        try:
            self("network", "create", PROJECT)
            self("run", "--rm", "--network", PROJECT, *limits(), image, "true")
        except LabError as error:
            raise Unavailable(f"podman runs no container here: {str(error)[-300:]}") from None


def make_base(podman: Podman) -> None:
    with DebianRoot(SCRATCH / "root") as root:
        archive = podman.folder / "base.tar"
        run(["tar", "--create", "--file", archive, "--directory", root.folder, "."],
            timeout=SECONDS)
        podman("import", archive, "localhost/debian", seconds=BUILD_SECONDS)
        archive.unlink()


class Containers(unittest.TestCase):
    def test_a_cluster_of_the_image_repairs_a_block(self) -> None:
        podman = Podman(SCRATCH)
        self.addCleanup(podman.end)
        make_base(podman)
        try:
            podman.can_run("localhost/debian")
        except Unavailable as error:
            self.skipTest(str(error))
        self.build(podman)
        os.environ["ECPIPE_IMAGE"] = "localhost/ecpipe"
        podman.compose("up", "-d")
        self.addCleanup(lambda: podman.compose("down", "--volumes"))
        self.a_block_is_repaired(podman)
        self.a_helper_that_is_stopped_drains(podman)

    def build(self, podman: Podman) -> None:
        packages = SCRATCH / "packages"
        run([REPOSITORY / "deploy" / "make-packages.sh", "--build", BUILD_DIR,
             "--output", packages, "--fast"], timeout=BUILD_SECONDS)
        # What runs in it is apt alone, over the network of this machine, as in the chroot of
        # package_test.py.
        podman("build", "--isolation", "chroot", "--network", "host", *limits(),
               "--build-arg", "BASE=localhost/debian", "--tag", "localhost/ecpipe",
               "--file", CONTAINERS / "Dockerfile", packages, seconds=BUILD_SECONDS)
        said = podman("run", "--rm", "--network", "none", *limits(), "localhost/ecpipe",
                      "sh", "-c", "id -u; ecpipe --version")
        self.assertRegex(said, r"^880\necpipe \d")

    def a_block_is_repaired(self, podman: Podman) -> None:
        def live() -> bool:
            try:
                status = podman.inside("head", "ecpipe status")
            except LabError:  # it does not serve yet
                return False
            return all(f"\n{node} " in status for node in NODES) and status.count(" live ") == 4
        wait_until(live, START_SECONDS, "four live helpers")
        podman.inside("head", """
            head -c 3000000 /dev/urandom >mine
            ecpipe encode mine --out encoded --code 'rs(3,2)' --block-size 1MiB --name mine \
                --nodes node-1,node-2,node-3
        """)
        for node in NODES[:3]:
            podman.copy("head", f"/var/lib/ecpipe/encoded/{node}/.", node,
                        "/var/lib/ecpipe/blocks/")
        podman.inside("head", "ecpipe catalog load encoded/mine.manifest.json")
        block = "mine-s00000-b01"
        before = podman.inside("node-2", f"cd blocks; sha256sum {block}; rm {block}")
        podman.inside("head", f"ecpipe repair {block} --to node-4")
        after = podman.inside("node-4", f"cd blocks; sha256sum {block}; stat -c %u {block}")
        self.assertEqual(after, before + "880\n")

    def a_helper_that_is_stopped_drains(self, podman: Podman) -> None:
        """It is process 1 of its container, which has no default actions for signals."""
        podman("stop", "--time", "40", f"{PROJECT}_node-1_1")
        state = podman("inspect", "--format", "{{.State.ExitCode}}", f"{PROJECT}_node-1_1")
        self.assertEqual(state, "0\n")
        said = run([podman.program, "logs", f"{PROJECT}_node-1_1"], timeout=SECONDS)
        self.assertIn("helper.draining", said.stdout + said.stderr)


def main() -> int:
    global BUILD_DIR, SCRATCH
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=Path, required=True)
    arguments, rest = parser.parse_known_args()
    BUILD_DIR = arguments.build_dir.resolve()
    try:
        debian_root.require("debootstrap", "help2man")
        debian_root.require("podman", "podman-compose", group="containers")
        debian_root.mirror()
    except Unavailable as error:
        print(f"SKIP: {error}")
        return SKIPPED
    with interruptible(), tempfile.TemporaryDirectory(prefix="ecpipe-containers-") as scratch:
        SCRATCH = Path(scratch)
        result = unittest.main(argv=[sys.argv[0], *rest], verbosity=2, exit=False).result
    if result.skipped:
        print(f"SKIP: {result.skipped[0][1]}")
        return SKIPPED
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
