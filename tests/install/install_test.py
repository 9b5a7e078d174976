#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` gives a user: programs, libecpipe with headers, ways to find it, and one
version number. The programs of docs/examples are built against it outside of the tree and run
against a small cluster of the installed daemons."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import case
from case import REPOSITORY, ClusterCase

BUILD_DIR = Path()
EXAMPLES = REPOSITORY / "docs" / "examples"
STRICT_C = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
STRICT_CXX = ["-std=c++17", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-pedantic"]
# What libecpipe.so may need, by the beginnings of the names. A new one is a burden for each user.
NEEDED = {
    "libisal": "the codec", "libgrpc": "the control plane", "libgpr": "gRPC's",
    "libabsl_": "gRPC's", "libprotobuf": "the control plane", "libssl": "TLS",
    "libcrypto": "TLS, SHA-256", "libstdc++": "", "libgcc_s": "", "libc.": "", "libm.": "",
    "ld-linux": "",
}
# The same of libecpipe_qfs.so, which comes into a chunkserver's process.
QFS_NEEDED = ("libssl", "libcrypto", "libstdc++", "libgcc_s", "libc.", "libm.", "ld-linux")


def run(*command: str | Path, **options: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=120, **options)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, command))}: exit {done.returncode}\n"
                             f"{done.stdout}{done.stderr}")
    return done.stdout


class InstallTest(ClusterCase):
    block_bytes = 300_007
    file_bytes = 1_200_001

    @classmethod
    def setUpClass(cls) -> None:
        cls.prefix = Path(cls.enterClassContext(tempfile.TemporaryDirectory())) / "usr"
        run("cmake", "--install", BUILD_DIR, "--prefix", cls.prefix)
        case.BIN_DIR = cls.prefix / "bin"
        super().setUpClass()

    def find(self, pattern: str) -> Path:
        found = sorted(self.prefix.glob(pattern))
        self.assertEqual(len(found), 1, f"{pattern}: {found}")
        return found[0]

    def library_folder(self) -> Path:
        return self.find("lib*/**/libecpipe.so").parent

    def project_version(self) -> str:
        match = re.search(r"project\(ecpipe VERSION ([0-9.]+)",
                          (REPOSITORY / "CMakeLists.txt").read_text())
        assert match
        return match[1]

    def check_examples(self, folder: Path) -> None:
        """The built examples, against the cluster."""
        environment = {**os.environ, "LD_LIBRARY_PATH": str(self.library_folder())}
        coordinator = self.cluster.coordinator.address
        blocks = [self.block(0, index)["block_id"] for index in (0, 1)]
        for reader in ("read_block", "read_event_loop"):
            done = subprocess.run([folder / reader, coordinator, blocks[0]], capture_output=True,
                                  env=environment, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, self.bytes_of(blocks[0]))
            done = subprocess.run([folder / reader, coordinator, "no-such-block"],
                                  capture_output=True, env=environment, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"no-such-block", done.stderr)
            with Path("/dev/full").open("wb") as full:
                done = subprocess.run([folder / reader, coordinator, blocks[0]], stdout=full,
                                      stderr=subprocess.PIPE, env=environment, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"standard output could not be written", done.stderr)
        with tempfile.TemporaryDirectory() as output:
            run(folder / "repair_blocks", coordinator, output, *blocks, env=environment)
            for block in blocks:
                self.assertEqual((Path(output) / block).read_bytes(), self.bytes_of(block))
        read = run(folder / "read_many", coordinator, *blocks, env=environment)
        self.assertEqual(sorted(read.splitlines()),
                         [f"{block} {self.block_bytes}" for block in blocks])

    def test_find_package(self) -> None:
        with tempfile.TemporaryDirectory() as build:
            run("cmake", "-S", EXAMPLES, "-B", build, "-G", "Ninja",
                f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror",
                "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
            run("cmake", "--build", build)
            self.check_examples(Path(build))

    def test_pkg_config(self) -> None:
        pc_folder = self.find("lib*/**/ecpipe.pc").parent
        words = run("pkg-config", "--cflags", "--libs", "ecpipe",
                    env={**os.environ, "PKG_CONFIG_PATH": str(pc_folder)}).split()
        with tempfile.TemporaryDirectory() as build:
            for source in sorted(EXAMPLES.glob("*.c")):
                run("cc", *STRICT_C, source, "-o", Path(build) / source.stem, *words)
            for source in sorted(EXAMPLES.glob("*.cc")):
                run("c++", *STRICT_CXX, source, "-o", Path(build) / source.stem, *words)
            self.check_examples(Path(build))

    def test_one_version_number(self) -> None:
        version = self.project_version()
        for program in ("ecpipe", "ecpipe-coordinator", "ecpipe-helper"):
            self.assertEqual(run(self.prefix / "bin" / program, "--version"),
                             f"{program} {version}\n")
        library = (self.library_folder() / "libecpipe.so").resolve()
        self.assertEqual(library.name, f"libecpipe.so.{version}")
        self.assertIn(f"soname: [libecpipe.so.{version.split('.')[0]}]",
                      run("readelf", "-d", library))
        said = run(sys.executable, "-c",
                   "import ctypes, sys; library = ctypes.CDLL(sys.argv[1]); "
                   "library.ecpipe_version.restype = ctypes.c_char_p; "
                   "print(library.ecpipe_version().decode())", library)
        self.assertEqual(said, f"{version}\n")
        pc = self.find("lib*/**/ecpipe.pc")
        self.assertIn(f"Version: {version}\n", pc.read_text())
        module = REPOSITORY / "integrations" / "hdfs"
        pom = re.search(r"<artifactId>ecpipe-hdfs</artifactId>\s*<version>([^<]+)</version>",
                        (module / "pom.xml").read_text())
        assert pom
        self.assertEqual(pom[1], version)
        for file in (module / "README.md", REPOSITORY / "bench/labkit/hdfs/toolchain.py"):
            named = set(re.findall(r"ecpipe-hdfs-([0-9.]+)\.jar", file.read_text()))
            self.assertEqual(named, {version}, file)

    def test_what_is_installed_is_hardened(self) -> None:
        """By cmake/hardening.cmake."""
        programs = sorted(path for path in (self.prefix / "bin").iterdir()
                          if path.read_bytes().startswith(b"\x7fELF"))
        self.assertGreaterEqual({path.name for path in programs},
                                {"ecpipe", "ecpipe-coordinator", "ecpipe-helper"})
        for file in (*programs, self.library_folder() / "libecpipe.so",
                     self.find("lib*/**/libecpipe_qfs.so")):
            with self.subTest(file.name):
                shown = run("readelf", "--wide", "--file-header", "--segments", "--dynamic", file)
                self.assertRegex(shown, r"Type: +DYN ")
                self.assertRegex(shown, r"GNU_STACK .* RW ")
                self.assertIn("GNU_RELRO", shown)
                self.assertRegex(shown, r"\(FLAGS_1\).* NOW\b")
                if file in programs:
                    self.assertRegex(shown, r"\(FLAGS_1\).* PIE\b")
        # Of our own code; libraries that are linked with it statically are hardened by Debian.
        called = run("readelf", "--wide", "--symbols", *BUILD_DIR.glob("src/*/libecpipe_*.a"))
        self.assertRegex(called, r"UND __stack_chk_fail\b")
        self.assertRegex(called, r"UND __(read|recv|pread|poll|mem\w+|v?snprintf)_chk\b")

    def test_library_shows_c_only(self) -> None:
        library = self.library_folder() / "libecpipe.so"
        shown = {line.split()[-1] for line in
                 run("nm", "--dynamic", "--defined-only", library).splitlines()}
        declared = set(re.findall(r"\b(ecpipe_\w+)\(",
                                  "\n".join(re.findall(r"ECPIPE_API [^;]+;", (
                                      self.prefix / "include" / "ecpipe.h").read_text()))))
        self.assertEqual(shown, declared)
        needed = re.findall(r"\(NEEDED\).*\[([^\]]+)\]", run("readelf", "-d", library))
        self.assertTrue(needed)
        for name in needed:
            self.assertTrue(any(name.startswith(known) for known in NEEDED), name)
        self.assertNotIn("RUNPATH", run("readelf", "-d", library))

    def test_qfs_library_shows_c_only_and_needs_little(self) -> None:
        library = self.find("lib*/**/libecpipe_qfs.so")
        shown = {line.split()[-1] for line in
                 run("nm", "--dynamic", "--defined-only", library).splitlines()}
        declared = set(re.findall(r"\b(ecpipe_qfs_\w+)\(",
                                  "\n".join(re.findall(r"ECPIPE_QFS_API [^;]+;", (
                                      self.prefix / "include" / "ecpipe_qfs.h").read_text()))))
        self.assertEqual(shown, declared)
        dynamic = run("readelf", "-d", library)
        needed = re.findall(r"\(NEEDED\).*\[([^\]]+)\]", dynamic)
        self.assertIn("libssl.so.3", needed)
        for name in needed:
            self.assertTrue(name.startswith(QFS_NEEDED), name)
        self.assertNotIn("RUNPATH", dynamic)

    def test_qfs_chunk_reader_finds_the_library(self) -> None:
        """The program, the library and the sample as they are installed, without an endpoint."""
        sample = self.find("share/doc/ecpipe/qfs-shim.conf").read_text()
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder, "qfs-shim.conf")
            config.write_text(sample.replace("/run/ecpipe/endpoint.sock", f"{folder}/none.sock"))
            done = subprocess.run(
                [self.prefix / "bin" / "qfs_chunk_reader", "--config", config, "--chunk",
                 "5.65541.1", "--chunk-offset", "134217728", "--file-size", "402653184",
                 "--output", Path(folder, "chunk")],
                capture_output=True, text=True, timeout=60, env={
                    **os.environ, "LD_LIBRARY_PATH": str(self.library_folder())})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("code 14: connect to unix:", done.stderr)

    def test_headers_show_nothing_else(self) -> None:
        headers = sorted(path.name for path in (self.prefix / "include").rglob("*"))
        self.assertEqual(headers, ["ecpipe.h", "ecpipe.hpp", "ecpipe_ext_reader.h",
                                   "ecpipe_qfs.h"])
        for header in headers:
            text = (self.prefix / "include" / header).read_text()
            self.assertNotIn("absl", text)
            for included in re.findall(r"#include <(\w+\.h)>", text):
                self.assertIn(included, ("ecpipe.h", "ecpipe_qfs.h", "dlfcn.h", "stddef.h",
                                         "stdint.h"))

    def test_each_header_stands_alone(self) -> None:
        include = f"-I{self.prefix / 'include'}"
        for compiler, flags, header in (("cc", STRICT_C, "ecpipe.h"),
                                        ("c++", STRICT_CXX, "ecpipe.h"),
                                        ("c++", STRICT_CXX, "ecpipe.hpp"),
                                        ("cc", STRICT_C, "ecpipe_qfs.h"),
                                        ("c++", STRICT_CXX, "ecpipe_qfs.h"),
                                        ("c++", STRICT_CXX, "ecpipe_ext_reader.h"),
                                        ("c++", [*STRICT_CXX, "-std=c++11"],
                                         "ecpipe_ext_reader.h")):
            run(compiler, *flags, include, "-fsyntax-only", "-x",
                "c" if compiler == "cc" else "c++", "-", input=f"#include <{header}>\n")

    def test_samples_are_there(self) -> None:
        for name in ("coordinator.toml", "helper.toml", "requestor.toml"):
            self.find(f"share/doc/ecpipe/{name}")

    def test_library_alone(self) -> None:
        """Who wants the library alone needs neither tests nor their libraries, nor the programs."""
        with tempfile.TemporaryDirectory() as build, tempfile.TemporaryDirectory() as prefix:
            # The package of a library that tests need must not be looked for.
            run("cmake", "-S", REPOSITORY, "-B", build, "-G", "Ninja", "-DECPIPE_TESTS=OFF",
                "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON",
                "-DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON")
            targets = run("ninja", "-C", build, "-t", "targets", "all")
            self.assertNotIn("_test:", targets)
            for component in ("library", "development"):
                run("cmake", "--install", BUILD_DIR, "--prefix", prefix, "--component", component)
            self.assertFalse((Path(prefix) / "bin").exists())
            self.assertTrue((Path(prefix) / "include" / "ecpipe.hpp").exists())


def main() -> None:
    global BUILD_DIR
    at = sys.argv.index("--build-dir")
    BUILD_DIR = Path(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    case.main()


if __name__ == "__main__":
    main()
