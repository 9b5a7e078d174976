# SPDX-License-Identifier: Apache-2.0
"""What the tests here share: stripes of many codes in one cluster, whose bytes are known from an
encoder that is not the programs', and a handle of libecpipe. docs/field.md says where each case
comes from."""

from __future__ import annotations

import json
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

import case
from case import ClusterCase
from client import Client
from encoder import Code, code_of


@dataclass(frozen=True)
class Stripe:
    code: Code
    name: str
    blocks: list[dict[str, str]]
    contents: list[bytes]

    def ids(self, indices: Sequence[int]) -> list[str]:
        return [self.blocks[index]["block_id"] for index in indices]

    def all_but(self, lost: Sequence[int]) -> list[int]:
        return [index for index in range(self.code.n) if index not in lost]


class FieldCase(ClusterCase):
    nodes = 11
    code = "rs(7,4)"
    block_bytes = 4099
    file_bytes = 4 * 4099

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        # What is rebuilt by the hundred need not wait for a disk.
        memory = Path("/dev/shm")
        cls.out = Path(cls.enterClassContext(tempfile.TemporaryDirectory(
            dir=memory if memory.is_dir() else None)))
        cls.client = Client(case.BIN_DIR.parent / "lib" / "libecpipe.so.0",
                            cls.cluster.coordinator.address)
        cls.addClassCleanup(cls.client.close)
        cls.stripe = cls.known(cls.code, cls.source.read_bytes(), cls.manifest)

    @classmethod
    def known(cls, name: str, content: bytes, manifest: dict[str, Any]) -> Stripe:
        """The one stripe of a file, which the programs must have encoded as the encoder here."""
        code, size = code_of(name), manifest["block_bytes"]
        padded = content.ljust(code.k * size, b"\0")
        contents = code.encode([padded[i * size:(i + 1) * size] for i in range(code.k)])
        [stripe] = manifest["stripes"]
        for block, expected in zip(stripe["blocks"], contents, strict=True):
            found = cls.cluster.block_file(block["block_id"]).read_bytes()
            if found != expected:
                raise AssertionError(f"{name}: {block['block_id']} is encoded to other bytes")
        return Stripe(code, name, stripe["blocks"], contents)

    @classmethod
    def add(cls, name: str, file: str, block_bytes: int, *arguments: str,
            file_bytes: int = 0) -> Stripe:
        """A file of one stripe more, of this code."""
        code = code_of(name)
        source = cls.work / f"{file}.source"
        source.write_bytes(random.Random(file).randbytes(file_bytes or code.k * block_bytes))
        cls.cluster.cli("encode", source, "--out", cls.work / file, "--code", name,
                        "--block-size", str(block_bytes), "--name", file,
                        "--nodes", ",".join(cls.cluster.node_ids), *arguments)
        manifest = cls.work / file / f"{file}.manifest.json"
        for node in cls.cluster.node_ids:
            for each in (cls.work / file / node).glob("*"):
                each.rename(cls.cluster.data_dir() / node / each.name)
        cls.cluster.cli("catalog", "load", manifest)
        return cls.known(name, source.read_bytes(), json.loads(manifest.read_text()))

    def rebuilt(self, stripe: Stripe, lost: Sequence[int], **options: Any) -> None:
        """The lost blocks come back as they were, in the order in which they are asked for."""
        contents = self.client.repair(stripe.ids(lost), self.out, **options)
        # Not assertEqual, which would show kilobytes.
        self.assertTrue(contents == [stripe.contents[index] for index in lost],
                        f"{stripe.name}, lost {lost}, {options}")
