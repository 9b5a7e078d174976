#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The parities in golden_parities.txt, computed by Jerasure, which shares no code with ECPipe.

golden_parities.py          compares them with the file; exit 1 if they differ, 77 without Jerasure
golden_parities.py --write  writes the file anew, when a code has been added

The file is for ever: blocks that lie on disks were encoded so. golden_parities_test.cc compares
ECPipe's parities with it. Here each code's matrix is written down once more, from its definition.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from pathlib import Path
from typing import Callable, NamedTuple

GOLDEN = Path(__file__).with_name("golden_parities.txt")
SKIPPED = 77
WORD_BITS = 8  # Jerasure's field is then ours: polynomial 0x11d
ALIGNED = 8  # Jerasure encodes whole words
HEX_COLUMNS = 96
Matrix = list[list[int]]


class Shape(NamedTuple):
    name: str
    data: int  # of sub-blocks, as is `parity`
    parity: Callable[[], Matrix]
    block_bytes: int
    sub_blocks: int = 1
    unit_bytes: int = 0


def load_jerasure() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("libJerasure.so.2")
    except OSError:
        return None


JERASURE = load_jerasure()


def times(a: int, b: int) -> int:
    return JERASURE.galois_single_multiply(a, b, WORD_BITS)


def inverse(a: int) -> int:
    return JERASURE.galois_single_divide(1, a, WORD_BITS)


def power(base: int, exponent: int) -> int:
    result = 1
    for _ in range(exponent):
        result = times(result, base)
    return result


def cauchy(n: int, k: int) -> Matrix:
    return [[inverse((k + p) ^ j) for j in range(k)] for p in range(n - k)]


def vandermonde(n: int, k: int) -> Matrix:
    return [[power(power(2, p), j) for j in range(k)] for p in range(n - k)]


def systematic_vandermonde(k: int, m: int) -> Matrix:
    """Jerasure's own, which QFS calls."""
    JERASURE.reed_sol_vandermonde_coding_matrix.restype = ctypes.POINTER(ctypes.c_int)
    flat = JERASURE.reed_sol_vandermonde_coding_matrix(k, m, WORD_BITS)
    return [flat[row * k:(row + 1) * k] for row in range(m)]


def legacy(n: int, k: int) -> Matrix:
    """Row p, column j: the coefficient of x^p in x^(m+j) mod the product of (x + 2^i), i < m."""
    m = n - k
    generator = [1]  # lowest power first
    for i in range(m):
        root = power(2, i)
        shifted = [0, *generator]
        generator = [a ^ times(root, b) for a, b in zip(shifted, [*generator, 0])]
    columns = []
    remainder = generator[:m]  # of x^m
    for _ in range(k):
        columns.append(remainder)
        top = remainder[-1]
        remainder = [a ^ times(top, g) for a, g in zip([0, *remainder[:-1]], generator)]
    return [[column[p] for column in columns] for p in range(m)]


def xor(k: int) -> Matrix:
    return [[1] * k]


def local_parities(k: int, groups: int) -> Matrix:
    size = k // groups
    return [[int(j // size == group) for j in range(k)] for group in range(groups)]


def lrc_nibbles(k: int, groups: int) -> Matrix:
    """Two global parities of at most two groups: one group's coefficients lie in the low nibble,
    the other's in the high one; the second parity has their squares."""
    size = k // groups
    coefficients = [(j % size + 1) << (4 * (j // size)) for j in range(k)]
    return [*local_parities(k, groups), coefficients, [times(c, c) for c in coefficients]]


def lrc_cauchy(k: int, groups: int, parities: int) -> Matrix:
    rows = cauchy(k + parities + 1, k)
    return [*local_parities(k, groups),
            *([times(row[j], inverse(rows[0][j])) for j in range(k)] for row in rows[1:])]


def rotated(n: int, k: int, r: int) -> Matrix:
    rows = []
    for j in range(n - k):
        for b in range(r):
            row = [0] * (k * r)
            for i in range(k):
                turned = (b + 1) % r if i < k * j // (n - k) else b
                row[i * r + turned] = power(2, i * j)
            rows.append(row)
    return rows


def shapes() -> list[Shape]:
    made = []
    for n, k in ((6, 4), (9, 6), (14, 10)):
        made.append(Shape(f"rs({n},{k})", k, lambda n=n, k=k: cauchy(n, k), 97))
        made.append(Shape(f"rs-vandermonde({n},{k})", k, lambda n=n, k=k: vandermonde(n, k), 97))
        made.append(Shape(f"rs-legacy({n},{k})", k, lambda n=n, k=k: legacy(n, k), 97))
    for k in (2, 5, 12):
        made.append(Shape(f"xor({k + 1},{k})", k, lambda k=k: xor(k), 97))
    for k, groups in ((6, 2), (12, 2)):
        made.append(Shape(f"lrc({k},{groups},2)", k, lambda k=k, g=groups: lrc_nibbles(k, g), 97))
    made.append(Shape("lrc(12,3,3)", 12, lambda: lrc_cauchy(12, 3, 3), 97))
    for n, k, r, unit in ((6, 4, 2, 32), (9, 6, 4, 16), (16, 12, 2, 24)):
        made.append(Shape(f"rotated-rs({n},{k},{r},{unit})", k * r,
                          lambda n=n, k=k, r=r: rotated(n, k, r), 2 * r * unit, r, unit))
    for name, n, k, rows in (("RS-6-3", 9, 6, cauchy), ("RS-LEGACY-6-3", 9, 6, legacy),
                             ("RS-10-4", 14, 10, cauchy), ("RS-3-2", 5, 3, cauchy)):
        made.append(Shape(f"hdfs:{name}", k, lambda n=n, k=k, rows=rows: rows(n, k), 97))
    for k in (6, 64):
        made.append(Shape(f"qfs-rs({k},3)", k, lambda k=k: vandermonde(k + 3, k), 97))
    made.append(Shape("qfs-jerasure(6,3)", 6, lambda: systematic_vandermonde(6, 3), 97))
    made.append(Shape("hdfs:XOR-2-1", 2, lambda: xor(2), 97))
    return made


def data_byte(block: int, offset: int) -> int:
    """The same in golden_parities_test.cc."""
    mixed = ((block + 1) * 2654435761 + (offset + 1) * 40503) % 2**32
    mixed ^= mixed >> 15
    return mixed * 2246822519 % 2**32 >> 24


def cut(block: bytes, shape: Shape) -> list[bytes]:
    """The sub-blocks."""
    if shape.sub_blocks == 1:
        return [block]
    units = [block[at:at + shape.unit_bytes] for at in range(0, len(block), shape.unit_bytes)]
    return [b"".join(units[a::shape.sub_blocks]) for a in range(shape.sub_blocks)]


def joined(sub_blocks: list[bytes], shape: Shape) -> bytes:
    if shape.sub_blocks == 1:
        return sub_blocks[0]
    units = range(0, len(sub_blocks[0]), shape.unit_bytes)
    return b"".join(piece[at:at + shape.unit_bytes] for at in units for piece in sub_blocks)


def parities_of(shape: Shape) -> list[bytes]:
    data = []
    for block in range(shape.data // shape.sub_blocks):
        text = bytes(data_byte(block, offset) for offset in range(shape.block_bytes))
        data += cut(text, shape)
    rows = shape.parity()
    parities = encode(rows, data)
    return [joined(parities[at:at + shape.sub_blocks], shape)
            for at in range(0, len(parities), shape.sub_blocks)]


def encode(rows: Matrix, data: list[bytes]) -> list[bytes]:
    length = len(data[0])
    padded = -(-length // ALIGNED) * ALIGNED
    sources = [ctypes.create_string_buffer(text, padded) for text in data]
    targets = [ctypes.create_string_buffer(padded) for _ in rows]
    flat = (ctypes.c_int * (len(rows) * len(data)))(*(c for row in rows for c in row))
    JERASURE.jerasure_matrix_encode(len(data), len(rows), WORD_BITS, flat, pointers(sources),
                                    pointers(targets), padded)
    return [target.raw[:length] for target in targets]


def pointers(buffers: list[ctypes.Array[ctypes.c_char]]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(buffers))(*(ctypes.addressof(buffer) for buffer in buffers))


def lines_of(shape: Shape) -> list[str]:
    lines = [f"code {shape.name} {shape.block_bytes}"]
    for parity in parities_of(shape):
        text = parity.hex()
        lines.append("parity")
        lines += ["  " + text[at:at + HEX_COLUMNS] for at in range(0, len(text), HEX_COLUMNS)]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the file")
    arguments = parser.parse_args()
    if JERASURE is None:
        print("SKIP: libJerasure.so.2 cannot be loaded: deploy/install-deps.sh test installs it")
        return SKIPPED
    computed = "".join(line + "\n" for shape in shapes() for line in lines_of(shape))
    if arguments.write:
        GOLDEN.write_text(computed)
    elif computed != GOLDEN.read_text():
        print(f"Jerasure's parities are not those of {GOLDEN}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
