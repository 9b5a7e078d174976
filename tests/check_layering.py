#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the rules of docs/design that a compiler does not: which room may include which, where each
library may be seen, how long files and lines may grow.

    tests/check_layering.py [ROOT]       check a source tree, exit 1 when a rule is broken
    tests/check_layering.py --self-test  break each rule in a tree of its own and see it found
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Iterator

from cpp_functions import cpp_functions

# Each folder of src/, and the other folders that its files may include.
BASE = frozenset({"base", "base/bytes", "base/process"})
MODEL = frozenset({"base", "base/bytes", "model", "model/plan", "model/systems"})
NET = BASE | MODEL | {"net", "net/redis", "net/tls"}
ENGINE = NET | {"codec", "pipeline"}
PLANNING = BASE | MODEL | {"codec", "coordinator/cluster", "coordinator/store"}
REPAIRS = PLANNING | {"coordinator/planning"}
HELPER = ENGINE | {"helper/store", "helper/store/plain", "helper/store/qfs"}
CLIENT = ENGINE
ROOMS: dict[str, frozenset[str]] = {
    "base": frozenset({"base/bytes"}),
    "base/bytes": frozenset({"base"}),
    "base/process": BASE,
    "model": MODEL, "model/plan": MODEL, "model/systems": MODEL,
    "net": NET, "net/redis": NET, "net/tls": NET,
    "codec": MODEL, "pipeline": ENGINE,
    "rpc": NET, "web": NET,
    "rpc/convert": NET | {"rpc"}, "rpc/examine": NET | {"rpc"},
    "coordinator/store": BASE | MODEL | {"coordinator/cluster"},
    "coordinator/cluster": BASE | MODEL | {"net"},
    "coordinator/planning": PLANNING,
    "coordinator/planning/schemes": REPAIRS | {"coordinator/planning/trees"},
    "coordinator/planning/trees": BASE,
    "coordinator/repairs": REPAIRS, "coordinator/recovery/placement": PLANNING,
    "coordinator/recovery": REPAIRS | {"coordinator/repairs", "coordinator/recovery/placement"},
    "coordinator/pages": REPAIRS | {"coordinator/repairs", "coordinator/recovery", "web"},
    "coordinator/upkeep": REPAIRS | {"coordinator/repairs", "coordinator/recovery"},
    "coordinator/sources": PLANNING | {"net"},
    "coordinator/sources/qfs": PLANNING | {"net", "coordinator/sources"},
    "coordinator/edge": REPAIRS | NET | {
        "coordinator/pages", "coordinator/repairs", "coordinator/recovery", "coordinator/sources",
        "coordinator/sources/qfs", "coordinator/upkeep", "web"},
    "helper/store": ENGINE,
    **dict.fromkeys(("helper/store/plain", "helper/store/qfs"), ENGINE | {"helper/store"}),
    "helper/sessions": HELPER,
    "helper/edge": HELPER | {"helper/sessions", "web"},
    "requestor/client": CLIENT, "requestor/files": MODEL | {"codec"},
    **dict.fromkeys(("requestor/catalog", "requestor/endpoint", "requestor/limits"),
                    CLIENT | {"requestor/client"}),
    "requestor/cli": CLIENT | {
        "requestor/catalog", "requestor/client", "requestor/files", "requestor/limits"},
    "requestor/backup": CLIENT | {"requestor/cli"},
    "requestor/doctor": CLIENT | {"requestor/client", "requestor/cli"},
    "requestor/upkeep": CLIENT | {
        "requestor/backup", "requestor/client", "requestor/cli", "requestor/doctor"},
}
DAEMONS = frozenset({"coordinator", "helper", "requestor"})
# The helper daemon hosts requestors: its composition root may include their endpoint.
COMPOSITION_ROOT = ("helper/edge", frozenset({"server", "main"}))
# Edge files talk to the network through gRPC, whose headers only they see. ecpipe.cc: libecpipe.
EDGE_STEM = re.compile(r"^(.+_service|.+_client|server|main|ecpipe)$")
GRPC_HEADER = re.compile(r"^(grpc|grpcpp|grpc\+\+)/|\.pb\.h$")

# What plans, tracks, runs and carries repairs knows no storage system: a new one must not need a
# change there.
SYSTEM_NAMES = re.compile(
    r"hdfs|name_?node|data_?node|qfs|meta_?server|chunk_?server", re.IGNORECASE)
ROOMS_WITHOUT_SYSTEMS = (
    "coordinator/planning", "coordinator/repairs", "coordinator/recovery", "coordinator/cluster",
    "pipeline", "net",
)

# Libraries that one file wraps, so that replacing one stays a change to one file.
ONE_FILE_LIBRARIES: dict[str, re.Pattern[str]] = {
    "SQLite": re.compile(r"^sqlite3\.h$"),
    "hiredis": re.compile(r"^hiredis/"),
    "toml++": re.compile(r"^toml(\+\+/|\.hpp$)"),
    "CLI11": re.compile(r"^CLI/"),
    "libcurl": re.compile(r"^curl/"),
    "zlib": re.compile(r"^zlib\.h$"),
    "prometheus-cpp": re.compile(r"^prometheus/"),
    "OpenSSL's TLS": re.compile(r"^openssl/ssl"),
    "OpenSSL's certificates": re.compile(r"^openssl/(pem|x509)"),
}
# Each main.cc parses its own command line; the `ecpipe` command may add one file to that.
MAIN_MAY_INCLUDE = frozenset({"CLI11"})
ISAL_HOMES = {
    "isa-l/erasure_code.h": "src/codec/kernel.cc",
    "isa-l/crc.h": "src/base/bytes/crc32c.cc",
}

# QFS's shim comes into a chunkserver's process: only itself, OpenSSL, the system, these headers.
SHIM = "integrations/qfs/"
SHIM_MAY_INCLUDE = frozenset({"base/bytes/little_endian.h", "base/unique_fd.h"})
SHIM_FORBIDDEN = re.compile(r"^(absl|grpc|grpcpp|isa-l|CLI|google)/|\.pb\.h$")

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 70
MAX_FOLDER_FILES = 25  # source files in a folder of src/
MAX_LINE_COLUMNS = 100
SPDX = "SPDX-License-Identifier: Apache-2.0"
SPDX_WITHIN_LINES = 3
NATIVE_FLAG = re.compile(r"-m(arch|tune|cpu)=" + "native")
# Waiting for time to pass hides races and wastes minutes. Where it is the point, say why:
#   std::this_thread::sleep_for(pause);  // sleep-ok: the reason
SLEEP_CALL = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep|absl::SleepFor|::sleep)\s*\(")
SLEEP_TAG = "sleep-ok:"
# AtomicFile follows no link, and its files have the mode that they should.
FILE_MAKERS = re.compile(r"\bofstream\b|\bfopen\s*\(|\bO_CREAT\b")
FILE_MAKER_FILES = frozenset({"src/base/file_io.cc", "src/coordinator/store/sqlite_db.cc",
                              # One is a lock, one only grows, one nobody but its owner opens.
                              "src/base/process/directory_lock.cc", "src/rpc/audit_file.cc",
                              "src/requestor/endpoint/endpoint_access.cc"})
# An environment is inherited by accident; options and configurations are not.
ENVIRONMENT = re.compile(r"\bgetenv\s*\(")
ENVIRONMENT_ROOMS = frozenset({"requestor/cli"})
ENVIRONMENT_FILES = frozenset({"src/base/process/service_manager.cc"})
# Standard error may be a pipe that nobody reads: a line is written when no lock is held.
LOCK = re.compile(r"\bMutexLock \w+\(")
LOG = re.compile(r"\bLog\(")
LOG_UNDER_LOCK_FILES = frozenset({  # they were there before the rule
    "src/coordinator/recovery/recovery_manager.cc", "src/net/tls/tls.cc"})
CHECKED_FOLDERS = ("src", "proto", "tests", "bench", "deploy", "integrations", "cmake")
CPP_SUFFIXES = frozenset({".h", ".hpp", ".cc", ".c"})
SOURCE_SUFFIXES = CPP_SUFFIXES | {".proto", ".py", ".sh", ".java", ".html", ".css", ".js"}
SKIPPED_PARTS = frozenset({"build", "testdata", "__pycache__"})
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

RULES = (
    "room", "system-name", "sibling", "rooted-include", "grpc", "rpc-edge", "one-file-library",
    "isa-l", "shim", "file-length", "function-length", "folder-size", "line-length", "spdx",
    "native", "sleep", "files", "environment", "log-under-lock",
)


@dataclass(frozen=True, order=True)
class Violation:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"


@dataclass(frozen=True)
class SourceFile:
    """A file of the tree: `path` is relative to the root, with forward slashes."""

    path: PurePosixPath
    lines: list[str]

    @property
    def room(self) -> str | None:
        """The folder of a file under src/, None elsewhere."""
        parts = self.path.parts
        return "/".join(parts[1:-1]) if len(parts) > 2 and parts[0] == "src" else None

    @property
    def is_edge(self) -> bool:
        return self.room.split("/")[0] == "rpc" or EDGE_STEM.match(self.path.stem) is not None

    def violation(self, line: int, rule: str, message: str) -> Violation:
        return Violation(str(self.path), line, rule, message)

    def includes(self) -> Iterator[tuple[int, bool, str]]:
        """Line number, whether in quotes, header."""
        for number, text in enumerate(self.lines, 1):
            match = INCLUDE.match(text)
            if match:
                yield number, match.group(1) == '"', match.group(2)


def read_tree(root: Path) -> list[SourceFile]:
    files = [root / name for name in ("CMakeLists.txt", "CMakePresets.json")]
    for folder in CHECKED_FOLDERS:
        files += sorted((root / folder).rglob("*"))
    sources = []
    for file in files:
        relative = file.relative_to(root)
        if not file.is_file() or SKIPPED_PARTS.intersection(relative.parts):
            continue
        if file.suffix in SOURCE_SUFFIXES | {".cmake"} or file.name.startswith("CMake"):
            text = file.read_text(encoding="utf-8")
            sources.append(SourceFile(PurePosixPath(relative.as_posix()), text.splitlines()))
    return sources


def check_rooms(file: SourceFile) -> Iterator[Violation]:
    """Which room may include which. Only files under src/ live in rooms."""
    if file.room is None or file.path.suffix not in CPP_SUFFIXES:
        return
    if file.room not in ROOMS:
        yield file.violation(1, "room", f"src/{file.room} is not a room of the design")
        return
    for line, quoted, header in file.includes():
        target = header.rpartition("/")[0]
        if ".." in header.split("/") or (quoted and "/" not in header):
            yield file.violation(line, "rooted-include", f'"{header}": write it from src/ on')
        elif target in ROOMS and target != file.room:
            yield from check_room_edge(file, line, target)


def check_room_edge(file: SourceFile, line: int, target: str) -> Iterator[Violation]:
    room = file.room or ""
    daemon, other = room.split("/")[0], target.split("/")[0]
    if target in ROOMS[room]:
        return
    if other == "rpc" and daemon in DAEMONS:
        if not file.is_edge:
            yield file.violation(
                line, "rpc-edge", "rpc/ is for *_service, *_client, server and main files")
    elif daemon in DAEMONS and other in DAEMONS - {daemon}:
        composed = room == COMPOSITION_ROOT[0] and file.path.stem in COMPOSITION_ROOT[1]
        if not (composed and target == "requestor/endpoint"):
            yield file.violation(
                line, "sibling", f"{daemon} and {other} meet on the wire, not in a header")
    else:
        yield file.violation(line, "room", f"{room} may not include {target}")


def check_system_names(file: SourceFile) -> Iterator[Violation]:
    """Texts and comments as well: what names one system is wrong for the next."""
    room = file.room or ""
    if not any(room == kept or room.startswith(kept + "/") for kept in ROOMS_WITHOUT_SYSTEMS):
        return
    for line, text in enumerate(file.lines, 1):
        if named := SYSTEM_NAMES.search(text):
            yield file.violation(
                line, "system-name", f"{room} names a storage system: '{named.group()}'")


def check_folders(files: list[SourceFile]) -> Iterator[Violation]:
    """How many files one has to look through in a room."""
    folders: dict[str, list[SourceFile]] = defaultdict(list)
    for file in files:
        if file.room is not None and file.path.suffix in CPP_SUFFIXES:
            folders[file.room].append(file)
    for room, members in folders.items():
        if len(members) > MAX_FOLDER_FILES:
            yield members[0].violation(
                1, "folder-size", f"src/{room} has {len(members)} files, limit {MAX_FOLDER_FILES}")


def check_shim(file: SourceFile) -> Iterator[Violation]:
    """What libecpipe_qfs.so and its hook are made of."""
    if not str(file.path).startswith(SHIM) or file.path.suffix not in CPP_SUFFIXES:
        return
    for line, quoted, header in file.includes():
        own = header.startswith("shim/") or header in SHIM_MAY_INCLUDE
        if SHIM_FORBIDDEN.search(header) or (quoted and not own):
            yield file.violation(
                line, "shim", f"{header}: the shim brings nothing of ECPipe into a chunkserver")


def check_functions(file: SourceFile) -> Iterator[Violation]:
    ours = file.room is not None or str(file.path).startswith(SHIM)
    if not ours or file.path.suffix not in CPP_SUFFIXES:
        return
    for function in cpp_functions("\n".join(file.lines)):
        if function.lines > MAX_FUNCTION_LINES:
            yield file.violation(
                function.line, "function-length",
                f"{function.lines} lines, limit {MAX_FUNCTION_LINES}: {function.head}")


def check_library_headers(file: SourceFile) -> Iterator[Violation]:
    """Headers whose place is known from the file alone: gRPC's and ISA-L's."""
    if file.room is None:
        return
    for line, _, header in file.includes():
        if GRPC_HEADER.search(header) and not file.is_edge:
            yield file.violation(
                line, "grpc", f"<{header}> belongs to rpc/ and the edge files of a daemon")
        if header.startswith("isa-l") and str(file.path) != ISAL_HOMES.get(header):
            home = ISAL_HOMES.get(header, " and ".join(ISAL_HOMES))
            yield file.violation(line, "isa-l", f"<{header}> is not included here; see {home}")


def check_one_file_libraries(files: list[SourceFile]) -> Iterator[Violation]:
    """Each wrapped library is included by one .cc and no header."""
    users: dict[str, dict[PurePosixPath, tuple[SourceFile, int]]] = defaultdict(dict)
    for file in files:
        for line, _, header in file.includes() if file.room else ():
            for library, pattern in ONE_FILE_LIBRARIES.items():
                exempt = library in MAIN_MAY_INCLUDE and file.path.name == "main.cc"
                if pattern.search(header) and not exempt:
                    users[library].setdefault(file.path, (file, line))
    for library, by_path in users.items():
        homes = [path for path in by_path if path.suffix == ".cc"]
        for path, (file, line) in by_path.items():
            if path.suffix != ".cc":
                yield file.violation(line, "one-file-library", f"{library} in a header")
            elif len(homes) > 1:
                others = ", ".join(str(other) for other in homes if other != path)
                yield file.violation(line, "one-file-library", f"{library} is also in {others}")


def check_shape(file: SourceFile) -> Iterator[Violation]:
    if file.path.suffix in SOURCE_SUFFIXES:
        if not any(SPDX in text for text in file.lines[:SPDX_WITHIN_LINES]):
            yield file.violation(1, "spdx", f"no '{SPDX}' in the first {SPDX_WITHIN_LINES} lines")
        if len(file.lines) > MAX_FILE_LINES:
            yield file.violation(
                len(file.lines), "file-length", f"{len(file.lines)} lines, limit {MAX_FILE_LINES}")
    for line, text in enumerate(file.lines, 1):
        if len(text) > MAX_LINE_COLUMNS and file.path.suffix != ".json":
            yield file.violation(
                line, "line-length", f"{len(text)} columns, limit {MAX_LINE_COLUMNS}")
        if NATIVE_FLAG.search(text):
            yield file.violation(line, "native", "binaries must run on other machines as well")


def check_sleeps(file: SourceFile) -> Iterator[Violation]:
    watched = (file.room is not None or file.path.parts[:2] == ("tests", "unit")
               or str(file.path).startswith(SHIM))
    if not watched or file.path.suffix not in CPP_SUFFIXES:
        return
    for line, text in enumerate(file.lines, 1):
        if SLEEP_CALL.search(text) and SLEEP_TAG not in text:
            yield file.violation(
                line, "sleep", f"wait for an event, or add '// {SLEEP_TAG} why' to the line")


def check_locks(file: SourceFile) -> Iterator[Violation]:
    if file.room is None or file.path.suffix not in CPP_SUFFIXES:
        return
    depth, locks = 0, []  # the depths of the blocks that hold one
    for line, text in enumerate(file.lines, 1):
        code = re.sub(r'"(\\.|[^"\\])*"', '""', text).split("//")[0]
        if LOCK.search(code):
            locks.append(depth)
        elif locks and LOG.search(code) and str(file.path) not in LOG_UNDER_LOCK_FILES:
            yield file.violation(line, "log-under-lock", "release the lock first")
        for brace in re.findall("[{}]", code):
            depth += 1 if brace == "{" else -1
            locks = [held for held in locks if held <= depth]


def check_surroundings(file: SourceFile) -> Iterator[Violation]:
    if file.room is None or file.path.suffix not in CPP_SUFFIXES:
        return
    for line, text in enumerate(file.lines, 1):
        if FILE_MAKERS.search(text) and str(file.path) not in FILE_MAKER_FILES:
            yield file.violation(line, "files", "make files by AtomicFile (base/file_io.h)")
        known = file.room in ENVIRONMENT_ROOMS or str(file.path) in ENVIRONMENT_FILES
        if ENVIRONMENT.search(text) and not known:
            yield file.violation(line, "environment", "take an option or a key instead")


def check_tree(root: Path) -> list[Violation]:
    files = read_tree(root)
    found = [*check_one_file_libraries(files), *check_folders(files)]
    for file in files:
        for check in (
                check_rooms, check_system_names, check_shim, check_library_headers,
                check_functions, check_shape, check_sleeps, check_surroundings, check_locks):
            found += check(file)
    return sorted(found)


# ---- Self-test ----------------------------------------------------------------------------------

HEAD = f"// {SPDX}\n"

# Files that keep every rule, some of them only just.
GOOD_TREE = {
    "CMakeLists.txt": "project(x)\n",
    "src/base/process/log.cc": HEAD + "#include <spdlog/spdlog.h>\n",
    "src/base/bytes/crc32c.cc": HEAD + "#include <isa-l/crc.h>\n",
    "src/net/data_server.cc": HEAD + '#include "base/process/log.h"\n',
    "src/codec/kernel.cc": HEAD + '#include <isa-l/erasure_code.h>\n#include "base/check.h"\n',
    "src/rpc/convert/plan_proto.h": HEAD + '#include "ecpipe/v1/plan.pb.h"\n',
    "src/coordinator/edge/main.cc":
        HEAD + '#include <CLI/CLI.hpp>\n#include "rpc/convert/plan_proto.h"\n',
    "src/coordinator/recovery/manager.cc": HEAD + '#include "coordinator/repairs/tracker.h"\n',
    "src/helper/edge/main.cc": HEAD + "#include <CLI/CLI.hpp>\n",
    "src/helper/edge/server.cc":
        HEAD + '#include "requestor/endpoint/endpoint.h"\n#include <grpcpp/grpcpp.h>\n',
    "src/requestor/cli/commands.cc": HEAD + "#include <CLI/CLI.hpp>\n",
    "src/requestor/client/helper_client.cc": HEAD + '#include "rpc/channel.h"\n',
    "src/helper/store/calls.cc":
        HEAD + 'void F() {\n  {\n    MutexLock lock(&m);\n  }\n  Log(x, "}");\n}\n',
    "src/codec/long_function.cc":
        HEAD + "int F() {\n" + "//\n" * (MAX_FUNCTION_LINES - 2) + "}\n",
    "integrations/qfs/shim/frame.cc":
        HEAD + '#include "shim/crc32c.h"\n#include "base/unique_fd.h"\n#include <openssl/ssl.h>\n',
    "tests/unit/wait_test.cc": HEAD + f"usleep(1);  // {SLEEP_TAG} the code under test waits\n",
    "tests/unit/long_test.cc": HEAD + "//\n" * (MAX_FILE_LINES - 1),
    "tests/unit/wide_test.cc": HEAD + "//" + "é" * (MAX_LINE_COLUMNS - 2) + "\n",
} | {f"src/pipeline/file_{i}.cc": HEAD for i in range(MAX_FOLDER_FILES)}
# Each file, added to the good tree alone, breaks exactly this rule.
BAD_FILES = [
    ("room", "src/codec/up.cc", HEAD + '#include "pipeline/slice_pipeline.h"\n'),
    ("room", "src/base/up.cc", HEAD + '#include "codec/matrix.h"\n'),
    ("room", "src/model/loud.cc", HEAD + '#include "base/process/log.h"\n'),
    ("room", "src/coordinator/repairs/engine.cc",
     HEAD + '#include "pipeline/slice_pipeline.h"\n'),
    ("room", "src/coordinator/repairs/up.cc", HEAD + '#include "coordinator/recovery/queue.h"\n'),
    ("room", "src/coordinator/planning/places.cc", HEAD + '#include "coordinator/sources/a.h"\n'),
    ("room", "src/coordinator/planning/planner.h",
     HEAD + '#include "coordinator/planning/schemes/rp.h"\n'),
    ("room", "src/misc/anything.cc", HEAD),
    ("room", "src/coordinator/anything.cc", HEAD),
    ("sibling", "src/helper/sessions/session.cc", HEAD + '#include "requestor/client/api.h"\n'),
    ("sibling", "src/helper/edge/main.cc", HEAD + '#include "requestor/client/api.h"\n'),
    ("sibling", "src/requestor/cli/main.cc", HEAD + '#include "coordinator/planning/planner.h"\n'),
    ("system-name", "src/coordinator/planning/texts.cc", HEAD + "// HDFS stores it itself\n"),
    ("system-name", "src/coordinator/planning/schemes/near.cc", HEAD + "// beside its DataNode\n"),
    ("system-name", "src/net/hello.cc", HEAD + "int qfs_version;\n"),
    ("rooted-include", "src/codec/flat.cc", HEAD + '#include "matrix.h"\n'),
    ("rooted-include", "src/codec/dots.cc", HEAD + '#include "../base/check.h"\n'),
    ("grpc", "src/helper/sessions/session.h", HEAD + "#include <grpcpp/grpcpp.h>\n"),
    ("grpc", "src/coordinator/repairs/tracker.cc", HEAD + '#include "ecpipe/v1/plan.pb.h"\n'),
    ("rpc-edge", "src/coordinator/repairs/tracker.cc",
     HEAD + '#include "rpc/convert/plan_proto.h"\n'),
    ("one-file-library", "src/helper/store/cli.cc", HEAD + "#include <CLI/CLI.hpp>\n"),
    ("one-file-library", "src/net/tls/tls.h", HEAD + "#include <openssl/ssl.h>\n"),
    ("shim", "integrations/qfs/shim/wire.cc",
     HEAD + '#include "requestor/endpoint/endpoint_wire.h"\n'),
    ("shim", "integrations/qfs/shim/status.h", HEAD + "#include <absl/status/status.h>\n"),
    ("function-length", "integrations/qfs/shim/long.cc",
     HEAD + "int F(int a,\n      int b) {\n" + "//\n" * (MAX_FUNCTION_LINES - 2) + "}\n"),
    ("isa-l", "src/codec/matrix.cc", HEAD + "#include <isa-l/erasure_code.h>\n"),
    ("isa-l", "src/base/all.cc", HEAD + "#include <isa-l.h>\n"),
    ("file-length", "src/base/long.cc", HEAD + "//\n" * MAX_FILE_LINES),
    ("function-length", "src/codec/long_function.cc",
     HEAD + "int F(int a,\n      int b) {\n" + "//\n" * (MAX_FUNCTION_LINES - 2) + "}\n"),
    ("folder-size", "src/pipeline/one_too_many.cc", HEAD),
    ("line-length", "proto/wide.proto", HEAD + "//" + "x" * (MAX_LINE_COLUMNS - 1) + "\n"),
    ("spdx", "tests/cluster/bare.py", "import sys\n"),
    ("native", "cmake/flags.cmake", "add_compile_options(-march=" + "native)\n"),
    ("sleep", "src/base/nap.cc", HEAD + "std::this_thread::sleep_for(pause);\n"),
    ("sleep", "tests/unit/nap_test.cc", HEAD + "usleep(10);\n"),
    ("files", "src/base/process/ready.cc", HEAD + "std::ofstream file(path);\n"),
    ("files", "src/helper/store/own.cc", HEAD + "open(path, O_WRONLY | O_CREAT, 0666);\n"),
    ("environment", "src/helper/edge/main.cc", HEAD + 'std::getenv("ECPIPE_X");\n'),
    ("log-under-lock", "src/helper/store/calls.cc",
     HEAD + 'void F() {\n  if (a) {\n    MutexLock lock(&m);\n    Log(x, "{");\n  }\n}\n'),
]


def write_tree(root: Path, tree: dict[str, str]) -> None:
    for name, text in tree.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def violations_of(tree: dict[str, str]) -> list[Violation]:
    with tempfile.TemporaryDirectory(prefix="ecpipe-layering-") as folder:
        write_tree(Path(folder), tree)
        return check_tree(Path(folder))


def self_test() -> list[str]:
    """What the checker gets wrong: empty when it is right."""
    mistakes = [f"good tree: {violation}" for violation in violations_of(GOOD_TREE)]
    for rule, name, text in BAD_FILES:
        found = {violation.rule for violation in violations_of(GOOD_TREE | {name: text})}
        if found != {rule}:
            mistakes.append(f"{name}: expected {rule}, found {sorted(found) or 'nothing'}")
    untested = set(RULES) - {rule for rule, _, _ in BAD_FILES}
    mistakes += [f"rule {rule} has no example" for rule in sorted(untested)]
    return mistakes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--self-test", action="store_true", help="check the checker")
    arguments = parser.parse_args()
    if arguments.self_test:
        problems = self_test()
        summary = f"{len(BAD_FILES)} broken trees and a good one"
    else:
        problems = [str(violation) for violation in check_tree(arguments.root)]
        summary = f"{len(RULES)} rules"
    for problem in problems:
        print(problem)
    print(f"{summary}: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
