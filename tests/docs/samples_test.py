#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sample files of deploy/ have each key that the daemons know, with the value that holds
without it. What a daemon knows is what it logs of its configuration when it starts. Here it has no
more than the keys that it needs, and ends then, because a directory is missing."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path
from typing import Any

from commands_test import COMMENTED_OUT

REPOSITORY = Path(__file__).resolve().parents[2]
BIN_DIR = Path()
SECONDS = 60.0
# Of each sample: the program, and a configuration with which it ends at once.
DAEMONS: dict[str, tuple[list[str], dict[str, dict[str, Any]]]] = {
    "coordinator": (["ecpipe-coordinator"],
                    {"coordinator": {"data_directory": "/dev/null/state"}}),
    "helper": (["ecpipe-helper"],
               {"helper": {"node_id": "node-1", "coordinator": "127.0.0.1:1",
                           "roots": ["/dev/null/blocks"]}}),
    "requestor": (["ecpipe-helper", "--requestor-only"],
                  {"requestor": {"coordinator": "127.0.0.1:1"},
                   "endpoint": {"address": "unix:/dev/null/endpoint.sock"}}),
}
VALUES = re.compile(r'config\.effective values=("(?:[^"\\]|\\.)*")')
Keys = dict[str, Any]  # by section.key


def flat(text: str) -> Keys:
    return {f"{section}.{key}": value for section, keys in tomllib.loads(text).items()
            for key, value in keys.items()}


def effective(name: str) -> Keys:
    """All keys that the daemon knows, by its own word."""
    words, needed = DAEMONS[name]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "least.toml")
        file.write_text("".join(
            f"[{section}]\n" + "".join(f"{key} = {json.dumps(value)}\n"
                                       for key, value in keys.items())
            for section, keys in needed.items()))
        done = subprocess.run([BIN_DIR / words[0], *words[1:], "--config", file],
                              capture_output=True, text=True, timeout=SECONDS)
    match = VALUES.search(done.stderr)
    assert match, done.stderr
    keys: Keys = {}
    for each in re.split(r" (?=\w+\.\w+=)", json.loads(match[1])):
        key, value = each.split("=", 1)
        keys[key] = tomllib.loads(f"value = {value}")["value"]
    return keys


def problems(sample: str, defaults: Keys, needed: set[str]) -> list[str]:
    """`needed`: keys without a default. An example may stand for a default that is nothing."""
    in_force, all_keys = flat(sample), flat(COMMENTED_OUT.sub(r"\1", sample))
    found = [f"{key} is not in the sample" for key in sorted(set(defaults) - set(all_keys))]
    found += [f"no {key} is known" for key in sorted(set(all_keys) - set(defaults))]
    for key in sorted(set(defaults) & set(all_keys) - needed):
        example = key not in in_force and defaults[key] in ("", [])
        if all_keys[key] != defaults[key] and not example:
            found.append(f"{key} is {all_keys[key]!r}, but {defaults[key]!r} without it")
    return found


class Samples(unittest.TestCase):
    def test_each_has_all_keys_and_their_defaults(self) -> None:
        for name, (_, needed) in DAEMONS.items():
            with self.subTest(name):
                sample = (REPOSITORY / "deploy" / f"{name}.toml").read_text()
                defaults = effective(name)
                self.assertGreater(len(defaults), 10)
                required = {f"{section}.{key}" for section, keys in needed.items()
                            for key in keys}
                self.assertEqual(problems(sample, defaults, required), [])

    def test_what_is_wrong_is_found(self) -> None:
        defaults = {"a.size": "1MiB", "a.off": "", "a.new": 3}
        sample = '[a]\n# size = "2MiB"\n# off = "x"\nold = 1\n'
        self.assertEqual(problems(sample, defaults, set()), [
            "a.new is not in the sample", "no a.old is known",
            "a.size is '2MiB', but '1MiB' without it"])
        self.assertEqual(problems('[a]\noff = "x"\n', {"a.off": ""}, set()),
                         ["a.off is 'x', but '' without it"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin-dir", type=Path, required=True)
    arguments, rest = parser.parse_known_args()
    BIN_DIR = arguments.bin_dir.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
