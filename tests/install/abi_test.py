#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that were built against an earlier libecpipe run with this one: its binary interface is
compared with that of each release in tests/install/abi. At a release record its own:

    tests/install/abi_test.py --library build/release/lib/libecpipe.so --record
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

REPOSITORY = Path(__file__).resolve().parents[2]
RELEASES = Path(__file__).resolve().parent / "abi"
HEADERS = REPOSITORY / "src/requestor/client"
LIBRARY = Path()
SKIPPED = 77


def breaks(old: Path, new: Path) -> str:
    """What a program that was built against `old` would stumble over; empty: nothing. Both are
    libraries or what dump() has written."""
    done = subprocess.run(
        ["abidiff", "--suppressions", RELEASES / "grown_structs.abignore", "--no-added-syms",
         old, new], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        return done.stdout + done.stderr
    # That leaves out structs that have grown, and with them whatever else changed in those.
    later = members(new)
    for struct, first in members(old).items():
        if later.get(struct, [])[: len(first)] != first:
            return f"{struct} had the members {first}, and begins with others now: {later[struct]}"
    return ""


def members(interface: Path) -> dict[str, list[tuple[str, str, str]]]:
    """Of each struct: the names, types and places (in bits) of its members."""
    text = interface.read_text() if interface.suffix == ".abi" else dump(interface)
    root = ElementTree.fromstring(text)
    types = {node.get("id"): node for node in root.iter() if node.get("id")}

    def name_of(type_id: str | None) -> str:
        node = types[type_id]
        inner = name_of(node.get("type-id")) if node.get("type-id") else ""
        size = node.get("dimensions", "") and node.get("size-in-bits", "")
        return f"{node.tag} {node.get('name', '')} {inner} {size}".strip()

    return {struct.get("name", ""): [
                (variable.get("name", ""), name_of(variable.get("type-id")),
                 member.get("layout-offset-in-bits", ""))
                for member in struct.iter("data-member") for variable in member.iter("var-decl")]
            for struct in root.iter("class-decl") if struct.get("is-declaration-only") != "yes"}


def dump(library: Path) -> str:
    """The interface, without places on this machine."""
    ours = ["--headers-dir", HEADERS, "--drop-private-types"] if library == LIBRARY else []
    return subprocess.run(
        ["abidw", "--exported-interfaces-only", "--no-elf-needed", "--no-show-locs",
         "--no-corpus-path", "--no-comp-dir-path", *ours, library],
        capture_output=True, text=True, timeout=120, check=True).stdout


def interface(members: str, parameters: str, name: str = "ecpipe_f") -> str:
    """A C file with one struct, and one function that does nothing."""
    return (f"typedef struct ecpipe_s {{ {members} }} ecpipe_s;\n"
            f"int {name}({parameters}) {{ return s != 0; }}\n")


def compiled(source: str, into: Path) -> Path:
    into.mkdir()
    (into / "i.c").write_text(source)
    library = into / "libi.so"
    subprocess.run(["cc", "-g", "-shared", "-fPIC", into / "i.c", "-o", library], check=True,
                   timeout=60)
    return library


class Abi(unittest.TestCase):
    def test_each_release(self) -> None:
        releases = sorted(RELEASES.glob("*.abi"))
        self.assertTrue(releases)
        for release in releases:
            self.assertEqual(breaks(release, LIBRARY), "", f"not compatible with {release.name}")

    def test_the_whole_interface_is_recorded(self) -> None:
        header = (HEADERS / "ecpipe.h").read_text()
        declared = set(re.findall(r"ECPIPE_API[^;(]*?\b(ecpipe_\w+)\(", header))
        self.assertIn("ecpipe_open", declared)
        text = dump(LIBRARY)
        for name in declared:
            self.assertIn(f"mangled-name='{name}'", text)
        self.assertRegex(text, r"class-decl name='ecpipe_options'[^>]*is-struct='yes'")
        self.assertIn("var-decl name='redis_password_file'", text)

    def test_what_breaks_callers_is_found(self) -> None:
        """And what does not is let pass: so the comparison itself is no empty one."""
        members, one = "unsigned long struct_bytes; int a; long b;", "const ecpipe_s* s"
        first = interface(members, one)
        for why, other, compatible in (
                ("the same", first, True),
                ("a later member", interface(members + " char* c;", one), True),
                ("a member of another type",
                 interface(members.replace("int a", "long a"), one), False),
                ("a member in between",
                 interface(members.replace("int a;", "int a; double z;"), one), False),
                ("another parameter", interface(members, one + ", int i"), False),
                ("another name", interface(members, one, name="ecpipe_g"), False)):
            with self.subTest(why), tempfile.TemporaryDirectory() as folder:
                said = breaks(compiled(first, Path(folder) / "old"),
                              compiled(other, Path(folder) / "new"))
                self.assertEqual(said == "", compatible, said)


def main() -> int:
    global LIBRARY
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--record", action="store_true", help="write this version's interface")
    arguments, rest = parser.parse_known_args()
    LIBRARY = arguments.library.resolve()  # libecpipe.so.VERSION
    if shutil.which("abidiff") is None:
        print("SKIP: abidiff is not installed (deploy/install-deps.sh test)")
        return SKIPPED
    if arguments.record:
        file = RELEASES / f"{LIBRARY.name}.abi"
        file.write_text(dump(LIBRARY))
        print(f"wrote {file.relative_to(REPOSITORY)}")
        return 0
    unittest.main(argv=[sys.argv[0], *rest])
    return 0


if __name__ == "__main__":
    sys.exit(main())
