#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the first inputs of the fuzz targets that are not text, as seed-* into corpus/: valid
ones, from which a fuzzer finds its way.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"
TOKEN = bytes(range(16))


# ---- Protobuf's wire format, as much of it as the messages need ---------------------------------

def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value % 2**64)


def fixed64(field: int, value: int) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<Q", value)


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def nested(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def packed(field: int, values: list[int]) -> bytes:
    return nested(field, b"".join(varint(value % 2**64) for value in values))


# ---- Messages -----------------------------------------------------------------------------------

def text(value: bytes | str) -> bytes:
    """As FuzzInput::Text reads it."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<H", len(data)) + data


def grid(offset: int, size: int, slice_bytes: int) -> bytes:
    return number(1, offset) + number(2, size) + number(3, slice_bytes)


def run(first: int, count: int, stride: int) -> bytes:
    return number(1, first) + number(2, count) + number(3, stride)


def edge(from_hop: int, rows: list[int]) -> bytes:
    return number(1, from_hop) + nested(3, TOKEN) + nested(4, "n2") + packed(5, rows)


def part(*, rows: list[int], stores: bytes = b"", sub_blocks: int = 1,
         probe: bool = False) -> bytes:
    layout = number(1, sub_blocks) + (number(2, 100) if sub_blocks > 1 else b"")
    block = (nested(1, "b1") + number(2, 1000) + nested(3, bytes([3]) * len(rows) * sub_blocks)
             + packed(4, list(range(sub_blocks))))
    source = nested(1, edge(0, rows)) + nested(2, "127.0.0.1:1")
    hop = (number(1, 0) + number(2, 1) + nested(3, run(0, 2, 2)) + nested(3, run(4, 1, 1))
           + packed(4, rows) + nested(5, block) + nested(6, source))
    hop += packed(8, rows) if stores else nested(7, edge(1, rows) + number(6, 1))
    return (fixed64(1, 99) + number(2, 1) + nested(3, grid(0, 1000 // sub_blocks, 100))
            + number(4, 1) + nested(5, hop) + stores + nested(9, layout) + number(8, int(probe)))


def explained() -> bytes:
    def hop(node: str, index: int, *, source: int | None, stored: bool) -> bytes:
        data = nested(1, node) + number(2, index) + nested(3, f"b{index}") + packed(4, [0])
        data += nested(5, b"\x05") + packed(9, [0]) if index >= 0 else b""
        if source is not None:
            data += nested(6, number(1, source) + packed(2, [0]))
        return data + (packed(7, [0]) if stored else b"") + nested(8, "/r1")

    lane = (nested(1, run(0, 10, 1)) + nested(2, hop("n1", 1, source=None, stored=False))
            + nested(2, hop("n2", 2, source=0, stored=False))
            + nested(2, hop("client", -1, source=1, stored=True)))
    prediction = nested(1, "rp") + double(2, 0.5) + double(3, 1.1) + number(4, 1000)
    return (nested(1, "rp") + nested(2, "s1000") + nested(3, "rs(6,4)")
            + nested(4, grid(0, 1000, 100)) + packed(5, [0]) + nested(6, lane)
            + nested(7, number(2, 1000) + double(5, 0.5)) + nested(8, prediction)
            + nested(9, number(1, 1)))


def calls(*, scheme: str = "rp", to: tuple[str, ...] = ()) -> bytes:
    """A row of calls for the coordinator target: a method's number, then its request."""
    target = nested(1, "b0") + nested(4, scheme) + number(5, 100)
    target += b"".join(nested(8, node) for node in to)
    wanted = nested(1, target) + nested(2, "client")
    node = (nested(1, "n6") + nested(2, "/r") + nested(3, "n6:1") + nested(4, "n6:2")
            + fixed64(6, 1))
    places = b"".join(nested(4, nested(1, f"x{i}") + nested(2, f"n{i}")) for i in range(6))
    stripe = nested(1, "s1") + nested(2, "rs(6,4)") + number(3, 4096) + places
    spec = nested(1, "n0") + nested(3, scheme) + nested(4, "balanced")
    links = nested(1, nested(1, "n0") + nested(2, "n1")) + number(2, 65536)
    timing = nested(1, "n1") + number(2, 10**6) + double(3, 1.0) + double(4, 0.9)
    report = nested(1, "n0") + fixed64(2, 5) + nested(5, "no") + nested(9, timing)
    answer = struct.pack("<Qdd", 65536, 0.01, 0.009)
    return b"".join([
        b"\x00" + text(nested(1, node)), b"\x06" + text(wanted), b"\x03" + text(wanted),
        b"\x07" + text(nested(1, stripe)), b"\x0a" + text(nested(1, spec) + number(2, 1)),
        b"\x0c" + answer + text(links), b"\x02" + text(report), b"\x0d"])


# ---- Rows on disk, streams, texts ---------------------------------------------------------------

def journal_rows() -> dict[str, bytes]:
    numbers = struct.pack("<q", 1)
    blocks = b"".join(bytes([row]) + text(f"b{row}") + text("n1" if row == 0 else "NULL")
                      + bytes([1 - row]) for row in range(2))
    repair = (b"\x00" + numbers * 3 + text("rp") + text("tcp") + text("client") + numbers + b"\x00"
              + numbers * 2 + text("why") + blocks)
    recovery = (b"\x01" + text("n1") + text("rp") + b"\x0b" + numbers + b"\x06" + numbers + b"\x00"
                + numbers * 8 + b"\x00" + text("n2") + b"\x01" + text("n3"))
    return {"repair": repair, "recovery": recovery}


def catalog_rows() -> dict[str, bytes]:
    header = text("s1") + text("rs(3,2)") + struct.pack("<Q", 4096)
    # Of the tables: whether the checksum is right, then (shape, node, length, block id) a block.
    rows = b"\x01" + b"\x08\x00\x02b1" + b"\x08\x01\x02b2" + b"\x08\x02\x02b3"
    sums = b"\x01" + b"\x09\x00\x02b1\x02ab" + b"\x09\x01\x02b2\x02cd"
    return {"rows": header + rows, "rows-sha256": header + sums,
            "rows-wrong": header + b"\x00" + rows[1:]}


def streams() -> dict[str, bytes]:
    good = bytes([0, 1] * 4)
    head = bytes([16, 3])  # payload bytes, frames
    return {"good": head + good, "bit": head + bytes([0, 1, 1, 9, 0, 1]),
            "odd": head + bytes([0, 0, 2, 3, 5, 0, 0, 0, 4]) + b"abcd",
            "error": head + bytes([0, 1, 3, 13, 3]) + b"why" + b"\x01",
            "raw": head + bytes([4, 6]) + b"ECPF\x01\x01"}


def redis_streams() -> dict[str, bytes]:
    head = bytes([0, 16, 3])
    return {"good": head + bytes([0, 0] * 4), "error": head + bytes([0, 0, 3, 13, 3]) + b"why\x00",
            "array": head + bytes([0, 3]), "raw": head + bytes([4, 5]) + b"*2\r\n$" + b"\x05",
            "credits": bytes([1, 1, 8, 0, 1, 16, 0, 0, 0, 2, 1, 0, 0, 0, 1, 32, 3])}


def slice_inputs() -> dict[str, bytes]:
    head = struct.pack("<QQIBIHIII", 100, 1000, 100, 2, 512, 4, 300, 600, 10)
    return {"runs": head + struct.pack("<IIIIII", 0, 2, 2, 4, 6, 1)}


def hdfs_inputs() -> dict[str, bytes]:
    name = text("BP-1-127.0.0.1-17.blk_-9223372036854775789_1001")
    version = text("#now\nstorageID=DS-1\ndatanodeUuid=c8b9e6e2-1\n")

    block = bytes(range(200)) * 3

    def meta(kind: int, chunk_bytes: int) -> bytes:
        chunks = [block[at:at + chunk_bytes] for at in range(0, len(block), chunk_bytes)]
        sums = [zlib.crc32(chunk) if kind == 1 else 0 for chunk in chunks if kind]
        return text(struct.pack(">HBI", 1, kind, chunk_bytes)
                    + b"".join(struct.pack(">I", value) for value in sums))

    return {"crc32c": name + version + meta(2, 512) + b"\x00\x00" + block,
            "crc32": name + version + meta(1, 100) + b"\x63\x00" + block,
            "none": name + version + meta(0, 512) + b"\x00\x00" + block}


def qfs_chunk_inputs() -> dict[str, bytes]:
    def seed(content: bytes, *, own_sum: bool = True) -> bytes:
        header = struct.pack("<IIqqqq", 0xCAFECAFE, 1, 5, 65539, 1, len(content))
        sums = [zlib.adler32(content[at:at + 65536].ljust(65536, b"\0"))
                for at in range(0, len(content), 65536)]
        header += struct.pack("<1024I", *sums, *[0] * (1024 - len(sums)))
        header = header.ljust(4400, b"\0")
        header += struct.pack("<Q", zlib.adler32(header) if own_sum else 0)
        return text("qfs.5.65539.1") + header + struct.pack("<I", 7) + content
    return {"one": seed(bytes(range(256)) * 4), "none": seed(b"", own_sum=False),
            "two": seed(bytes(range(251)) * 270)}


def qfs_meta_inputs() -> dict[str, bytes]:
    where = ("OK\r\nCseq: 1\r\nStatus: 0\r\nChunk-offset: 0\r\nChunk-version: 1\r\n"
             "File-handle: 5\r\nFile-size: 10007\r\nStriper-type: 2\r\nNum-stripes: 6\r\n"
             "Num-recovery-stripes: 3\r\nStripe-size: 65536\r\n\r\n")
    places = ("0 65539 1 1 127.0.0.1 22001 402653184 65540 1 0 469762048 65541 1 1 h 2 "
              "536870912 65542 1 2 a 1 b 2 ")
    layout = (f"OK\r\nCseq: 1\r\nStatus: 0\r\nFile-size: 10007\r\n"
              f"Content-length: {len(places)}\r\n\r\n{places}")
    claim = ("file 5\nchunk 65539\nversion 1\nchunk-offset 0\nfile-size 10007\nstriper 2\n"
             "data 6\nparity 3\ncell 65536\n")
    return {name: struct.pack("<H", meet) + text(claim) + answer.encode()
            for name, meet, answer in (("where", 20, where), ("layout", 90, layout))}


def endpoint_inputs() -> dict[str, bytes]:
    request = ("store hdfs\npool BP-1-127.0.0.1-17\ngroup -9223372036854775792\nstamp 1001\n"
               "group-bytes 13300001\ncodec rs\ndata 6\nparity 3\ncell 1048576\ntarget 2\n"
               "offset 5\nbytes 2097147\nsource 0 dn-1\nsource 0 dn-2\nsource 8 dn-3\n").encode()
    more = request + b"timeout-ms 50\nscheme rp\nclient reader 1\n"
    several = request.replace(b"target 2", b"target 0 4 8").replace(
        b"bytes 2097147", b"bytes 2814236 2097147 1")
    header = b"ECPR" + bytes([1, 1, 0, 0]) + struct.pack("<II", len(request), 0)
    data = b"ECPR" + bytes([1, 3, 2, 0]) + struct.pack("<II", 4096, 0)
    qfs = ("store qfs\nfile 5\nchunk 65541\nversion 1\nchunk-offset 134217728\n"
           "file-size 402653184\nstriper 2\ndata 6\nparity 3\ncell 65536\noffset 0\n"
           "bytes 1048576\n").encode()
    return {"request": bytes(16) + request, "more": header + more, "several": data + several,
            "qfs": bytes(16) + qfs}


def block_reports() -> dict[str, bytes]:
    """A whole report in two pieces, and one that continues it."""
    def piece(sequence: int, after: int, last: bool, *pools: bytes) -> bytes:
        return text(nested(1, "n1") + fixed64(2, 7) + number(3, sequence) + number(4, after)
                    + b"".join(nested(5, pool) for pool in pools) + number(6, last))

    def pool(name: str, ids: list[int], removed: list[int]) -> bytes:
        many = len(ids)
        return (nested(1, name) + nested(2, struct.pack(f"<{many}q", *ids))
                + packed(3, [1001] * many) + packed(4, [65536] * many) + packed(5, [9] * many)
                + nested(6, struct.pack(f"<{len(removed)}q", *removed)))
    first = -(2**63) + 16
    whole = (piece(1, 0, False, pool("BP-1", [first, first + 3], []))
             + piece(1, 0, True, pool("BP-2", [first + 17], [])))
    return {"whole": whole,
            "changes": whole + piece(2, 1, True, pool("BP-1", [first + 1], [first + 3]))}


def fsck_texts() -> dict[str, bytes]:
    begin = ("FSCK started by hdfs (auth:SIMPLE) from /127.0.0.1 for path / at Sun Nov 22 "
             "02:00:00 UTC 2026\n\n/ <dir>\n")
    file = ("/ec/a 7 bytes, erasure-coded: policy=RS-3-2-1024k, 1 block(s):  OK\n"
            "0. BP-1-127.0.0.1-17:blk_-9223372036854775792_1001 len=7 Live_repl=3\n\n")
    end = ("FSCK ended at Sun Nov 22 02:00:01 UTC 2026 in 12 milliseconds\n\n\n"
           "The filesystem under path '/' is HEALTHY")
    growing = ("Under Construction Block:\n"
               "1. BP-1-127.0.0.1-17:blk_-9223372036854775776_1002 len=0 Expected_repl=3\n\n")
    meet = struct.pack("<H", 150)
    return {"healthy": meet + (begin + file + end).encode(),
            "open": meet + (begin + file.replace("1 block(s):", "2 block(s), OPENFORWRITE:")
                            + growing + end).encode(),
            "missing": meet + (begin + "\n\nPath '/x' does not exist").encode()}


def qfs_shim_inputs() -> dict[str, bytes]:
    """A frame's header, a chunk's place, and a text."""
    def chunk(slot: int, file_size: int, cell_kib: int, data: int) -> bytes:
        return struct.pack("<HBqHBbii", slot, 0, file_size, cell_kib, 2, data, 5, 1000)

    header = b"ECPR" + bytes([1, 3, 0, 0]) + struct.pack("<II", 65536, 0)
    settings = (b"# a comment\nendpoint unix:/run/ecpipe/endpoint.sock\ntimeout-ms 50\n"
                b"stall-ms 600000\nretry-ms 0\nbackground 0\nscheme rp\nclient here\n")
    tcp = (b"endpoint tcp:[::1]:7713\ntls-ca /a\ntls-certificate /b\ntls-key /c\n"
           b"insecure 1\n")
    return {"settings": header + chunk(2, 10000019, 64, 6) + settings,
            "tcp": header + chunk(20, 384 << 20, 1024, 6) + tcp,
            "error": header + chunk(66, 5 << 32, 4, 64) + b"code UNAVAILABLE\nmessage no\n"}


SEEDS = {
    "catalog_row": catalog_rows(),
    "code": {name: text(name) + bytes([1, 1] + [0] * 20) for name in
             ("rs(14,10)", "rs-cauchy(6,4)", "rs-vandermonde(9,6)", "xor(5,4)", "lrc(12,2,2)",
              "rotated-rs(6,4)", "rotated-rs(6,4,4,512)", "rs-legacy(9,6)",
              "hdfs:RS-6-3-1024k")},
    "block_report": block_reports(),
    "coordinator": {"rp": calls(), "ppr": calls(scheme="ppr"), "auto": calls(scheme=""),
                    "hosted": calls(to=("n5",))},
    "endpoint": endpoint_inputs(),
    "explain": {"path": explained()},
    "fsck": fsck_texts(),
    "hdfs": hdfs_inputs(),
    "qfs_chunk": qfs_chunk_inputs(),
    "qfs_meta": qfs_meta_inputs(),
    "journal": journal_rows(),
    "part": {"whole": part(rows=[0]), "rows": part(rows=[0, 1]),
             "probe": part(rows=[0], probe=True), "sub_blocks": part(rows=[0, 1], sub_blocks=2),
             "stores": part(rows=[0], stores=nested(6, number(1, 0) + nested(2, "b0")
                                                    + number(3, 1000)))},
    "qfs_shim": qfs_shim_inputs(),
    "redis_stream": redis_streams(),
    "slices": slice_inputs(),
    "tcp_stream": streams(),
    "text": {"id": b"file-s00000-b01", "size": b"64MiB", "address": b"[::1]:7712",
             "host": b"node-7.example:7711", "faults": b"store.commit=crash@3,x=error",
             "message": "Übertragung: 数 \U0001F600".encode()},
    "topology": {"racks": b"# host rack\nnode-1 /hall/rack-1\n10.0.0.7\t/rack-2\r\n",
                 "links": b"a b 8\n/r1 /r2 1e3\nb a 98.7  # measured\n",
                 "script": b"/hall/rack-7\n"},
}


def main() -> None:
    for target, seeds in SEEDS.items():
        (CORPUS / target).mkdir(parents=True, exist_ok=True)
        for name, data in seeds.items():
            stem = "".join(c if c.isalnum() else "-" for c in name).strip("-")
            (CORPUS / target / f"seed-{stem}").write_bytes(data)


if __name__ == "__main__":
    main()
