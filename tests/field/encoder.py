# SPDX-License-Identifier: Apache-2.0
"""Stripes by the formulas of the codes' papers, with arithmetic of its own: what the programs
encode and rebuild is compared with these bytes. GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Sequence

Row = list[int]

POWERS = [1]  # of 2
while len(POWERS) < 255:
    doubled = POWERS[-1] << 1
    POWERS.append(doubled ^ 0x11d if doubled > 255 else doubled)
LOGARITHMS = {power: exponent for exponent, power in enumerate(POWERS)}


def multiply(a: int, b: int) -> int:
    return POWERS[(LOGARITHMS[a] + LOGARITHMS[b]) % 255] if a and b else 0


def inverse(a: int) -> int:
    return POWERS[-LOGARITHMS[a] % 255]


PRODUCTS = [bytes(multiply(a, b) for b in range(256)) for a in range(256)]


def combine(coefficients: Sequence[int], sources: Sequence[bytes]) -> bytes:
    """The sum of the sources, each times its coefficient."""
    total = 0
    for coefficient, source in zip(coefficients, sources, strict=True):
        if coefficient:
            total ^= int.from_bytes(source.translate(PRODUCTS[coefficient]), "little")
    return total.to_bytes(len(sources[0]), "little")


def rank(rows: Sequence[Row]) -> int:
    rest = [list(row) for row in rows]
    found = 0
    for column in range(len(rest[0]) if rest else 0):
        pivot = next((i for i in range(found, len(rest)) if rest[i][column]), None)
        if pivot is None:
            continue
        rest[found], rest[pivot] = rest[pivot], rest[found]
        scale = inverse(rest[found][column])
        for i in range(found + 1, len(rest)):
            if factor := multiply(rest[i][column], scale):
                rest[i] = [a ^ multiply(factor, b) for a, b in zip(rest[i], rest[found])]
        found += 1
    return found


@dataclass(frozen=True)
class Code:
    """`generator` has `rows` rows for each of the n blocks, over as many sub-blocks of each of the
    k data blocks. Units of a block's sub-blocks come in turn."""

    n: int
    k: int
    generator: list[Row]
    rows: int = 1
    unit: int = 0

    def encode(self, data: Sequence[bytes]) -> list[bytes]:
        sub_blocks = [each for block in data for each in self._split(block)]
        sums = [combine(row, sub_blocks) for row in self.generator[self.k * self.rows:]]
        return [*data, *(self._join(sums[i:i + self.rows])
                         for i in range(0, len(sums), self.rows))]

    def determines(self, survivors: Sequence[int], wanted: Sequence[int]) -> bool:
        """Whether the wanted blocks follow from the survivors."""
        known = self._rows_of(survivors)
        return rank(known + self._rows_of(wanted)) == rank(known)

    def _rows_of(self, blocks: Sequence[int]) -> list[Row]:
        return [self.generator[block * self.rows + i] for block in blocks for i in range(self.rows)]

    def _split(self, block: bytes) -> list[bytes]:
        if self.rows == 1:
            return [block]
        units = [block[at:at + self.unit] for at in range(0, len(block), self.unit)]
        return [b"".join(units[i::self.rows]) for i in range(self.rows)]

    def _join(self, sub_blocks: Sequence[bytes]) -> bytes:
        if self.rows == 1:
            return sub_blocks[0]
        units = [sub[at:at + self.unit] for at in range(0, len(sub_blocks[0]), self.unit)
                 for sub in sub_blocks]
        return b"".join(units)


def identity(size: int) -> list[Row]:
    return [[int(i == j) for j in range(size)] for i in range(size)]


def cauchy(n: int, k: int) -> Code:
    return Code(n, k, identity(k) + [[inverse(i ^ j) for j in range(k)] for i in range(k, n)])


def vandermonde(n: int, k: int) -> Code:
    return Code(n, k, identity(k) + [[POWERS[p * j % 255] for j in range(k)]
                                     for p in range(n - k)])


def xor(n: int, k: int) -> Code:
    return Code(n, k, identity(k) + [[1] * k for _ in range(n - k)])


def azure_lrc(k: int, groups: int, parities: int) -> Code:
    """Huang et al.: coefficients of one group in the low four bits, of the other in the high ones,
    and their squares; with other numbers of parities, scaled rows of a Cauchy matrix."""
    size = k // groups
    local = [[int(j // size == group) for j in range(k)] for group in range(groups)]
    if parities == 2 and groups <= 2 and size <= 15:
        first = [(j % size + 1) << (0 if j < size else 4) for j in range(k)]
        shared = [first, [multiply(c, c) for c in first]]
    else:
        shared = [[multiply(inverse((k + p) ^ j), k ^ j) for j in range(k)]
                  for p in range(1, parities + 1)]
    return Code(k + groups + parities, k, identity(k) + local + shared)


def rotated(n: int, k: int, rows: int, unit: int) -> Code:
    """Khan et al.: parity j takes the next sub-block of the first k j / m data blocks."""
    generator = identity(k * rows)
    for j in range(n - k):
        for b in range(rows):
            row = [0] * (k * rows)
            for i in range(k):
                taken = (b + 1) % rows if i < k * j // (n - k) else b
                row[i * rows + taken] = POWERS[i * j % 255]
            generator.append(row)
    return Code(n, k, generator, rows, unit)


FAMILIES: dict[str, Callable[..., Code]] = {
    "rs": cauchy, "rs-vandermonde": vandermonde, "xor": xor, "lrc": azure_lrc,
    "rotated-rs": rotated}


def code_of(name: str) -> Code:
    """The code that the programs call so."""
    family, numbers = re.fullmatch(r"([a-z-]+)\(([\d,]+)\)", name).groups()
    return FAMILIES[family](*map(int, numbers.split(",")))
