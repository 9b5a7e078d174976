#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shapes of bugs in the codecs of other systems, and in what those are asked for; docs/field.md has
the list. With --full, every pattern of wide codes and a whole block beyond 2 GiB instead."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import threading
from typing import Any, Iterator

import case
from case import HANG, SCHEMES, USAGE
from client import FAILED_PRECONDITION, INVALID_ARGUMENT, EcpipeError
from encoder import code_of
from field_case import FieldCase, Stripe

SLICE = 512


class Patterns(FieldCase):
    def tries(self, stripe: Stripe, lost: tuple[int, ...], **options: Any) -> bool:
        """Rebuilds the blocks if anybody could, and sees them refused if nobody could."""
        if stripe.code.determines(stripe.all_but(lost), lost):
            self.rebuilt(stripe, lost, **options)
            return True
        with self.assertRaises(EcpipeError, msg=f"{stripe.name}, lost {lost}") as caught:
            self.client.repair(stripe.ids(lost), self.out, **options)
        self.assertEqual(caught.exception.code, FAILED_PRECONDITION, caught.exception)
        return False

    def tries_all(self, stripe: Stripe, most: int) -> tuple[int, int]:
        """Every pattern of up to so many lost blocks, in any order: how many came back, and how
        many could not."""
        order = random.Random(stripe.name)
        done = [self.tries(stripe, tuple(order.sample(lost, len(lost))),
                           scheme=order.choice(SCHEMES))
                for count in range(1, most + 1)
                for lost in itertools.combinations(range(stripe.code.n), count)]
        return sum(done), len(done) - sum(done)


class Codes(Patterns):
    def test_order_of_lost(self) -> None:
        for count in (1, 2, 3):
            for number, lost in enumerate(itertools.permutations(range(7), count)):
                self.rebuilt(self.stripe, lost, scheme=SCHEMES[number % len(SCHEMES)])
        self.assert_nothing_left()

    def test_only_parities_and_a_parity_beside_data(self) -> None:
        for lost, scheme in itertools.product(((4, 5, 6), (6,), (0, 4), (6, 3)), SCHEMES):
            self.rebuilt(self.stripe, lost, scheme=scheme)

    def test_survivors_that_do_not_determine(self) -> None:
        lrc = self.add("lrc(4,2,1)", "lrc", 4099)
        self.assertTrue(self.tries(lrc, (6, 0, 2)), "two in groups, and the global parity")
        self.assertFalse(self.tries(lrc, (4, 0, 1)), "a whole group, though k blocks are left")
        right, refused = self.tries_all(lrc, 4)
        self.assertEqual(right + refused, 7 + 21 + 35 + 35)
        self.assertGreaterEqual(right, 7 + 21)
        self.assertGreaterEqual(refused, 35, "no three blocks determine four")

    def test_every_pattern_of_xor_and_rotated_codes(self) -> None:
        xor = self.add("xor(3,2)", "xor", 4099)
        self.assertEqual(self.tries_all(xor, 2), (3, 3))
        rotated = self.add(f"rotated-rs(6,4,2,{SLICE})", "rotated", 4 * 2 * SLICE)
        self.assertEqual(self.tries_all(rotated, 3), (6 + 15, 20))

    def test_a_matrix_that_is_singular_is_no_code(self) -> None:
        source = self.work / "source"
        for name in ("rs-vandermonde(18,9)", "rs-vandermonde(20,10)"):
            said = self.fails(USAGE, "encode", source, "-o", self.work / "no", "--code", name)
            self.assertIn("use rs-cauchy", said)

    def test_lengths_around_slices_and_lanes(self) -> None:
        lanes = (1, 3, 4)  # of a path, of rp-cyclic, of all that read for k = 4
        lengths = sorted({1} | {lane * slices * SLICE + odd for lane in lanes
                                for slices in (1, 2) for odd in (-1, 0, 1)})
        block = self.stripe.contents[2]
        for length, scheme in itertools.product(lengths, SCHEMES):
            for offset in (min(1, len(block) - length), len(block) - length):
                [content] = self.client.repair(self.stripe.ids([2]), self.out, offset, length,
                                               scheme=scheme, slice_bytes=SLICE)
                self.assertTrue(content == block[offset:offset + length],
                                 f"{length} bytes from {offset} on by {scheme}")
        for length in (1, SLICE - 1, SLICE, SLICE + 1, 4 * SLICE + 1):
            stripe = self.add("rs(7,4)", f"length-{length}", length)
            for index, scheme in enumerate(SCHEMES):
                self.rebuilt(stripe, (index % 7, (index + 3) % 7), scheme=scheme,
                             slice_bytes=SLICE)

    def test_a_file_that_ends_within_its_first_block(self) -> None:
        stripe = self.add("rs(7,4)", "short", 4099, file_bytes=1000)
        for lost in ((0,), (1,), (3, 6), (0, 1, 2), (4, 5, 6)):
            self.rebuilt(stripe, lost)

    def test_ranges_at_the_end(self) -> None:
        [block_id] = self.stripe.ids([1])
        block = self.stripe.contents[1]
        end = len(block)
        for offset, length in ((0, 1), (end - 1, 1), (end - 1, 0), (0, 0), (0, end)):
            self.assertEqual(self.client.read(block_id, offset, length, scheme="rp"),
                             block[offset:offset + length if length else end])
        for offset, length in ((end, 0), (end, 1), (end - 1, 2), (0, end + 1), (end + 1, 1),
                               (1, 2**64 - 1), (2**63, 2**63)):
            with self.assertRaises(EcpipeError, msg=f"{length} bytes from {offset} on") as caught:
                self.client.read(block_id, offset, length, scheme="rp")
            self.assertEqual((caught.exception.code, caught.exception.so_far),
                             (INVALID_ARGUMENT, b""), caught.exception)

    def test_sixteen_threads_of_one_handle(self) -> None:
        """Five codes of k = 4 and three sizes of slices at once, so that buffers of one size go to
        sessions of another."""
        size = 49 * 2 * SLICE
        stripes = [self.add(name, f"thread-{number}", size) for number, name in enumerate((
            "rs(7,4)", "rs-vandermonde(6,4)", "lrc(4,2,1)", f"rotated-rs(6,4,2,{SLICE})",
            "xor(5,4)"))]
        failed: list[str] = []

        def work(thread: int) -> None:
            order = random.Random(thread)
            for turn in range(6):
                stripe = stripes[(thread + turn) % len(stripes)]
                lost = order.randrange(stripe.code.n)
                offset = order.randrange(size - 1)
                length = 1 + order.randrange(size - offset)
                try:
                    content = self.client.read(
                        *stripe.ids([lost]), offset, length, scheme=order.choice(SCHEMES),
                        slice_bytes=(SLICE, 1000, 32768)[(thread + turn) % 3])
                    if content != stripe.contents[lost][offset:offset + length]:
                        failed.append(f"wrong bytes: {stripe.name}, {lost}, {offset}, {length}")
                except EcpipeError as error:
                    failed.append(f"{stripe.name}, {lost}: {error}")
        threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG)
        self.assertEqual(failed, [])
        self.assert_nothing_left()


class Sparse(FieldCase):
    """Blocks of zeros, with noise where numbers of 31 and 32 bits end. A range has no SHA-256, so
    these need none."""

    nodes = 7
    noise_bytes = 3000

    def sparse(self, name: str, length: int) -> tuple[list[dict[str, str]], list[dict[int, bytes]]]:
        """The blocks of a stripe, and what each has where."""
        code, order = code_of("rs(7,4)"), random.Random(length)
        places = [at - 1000 for at in (2**31, 2**32) if at + self.noise_bytes < length]
        places.append(length - self.noise_bytes)
        blocks = [{"block_id": f"{name}-{i}", "node": self.cluster.node_ids[i], "sha256": "0" * 64}
                  for i in range(code.n)]
        contents: list[dict[int, bytes]] = [{} for _ in blocks]
        for at in places:
            noise = code.encode([order.randbytes(self.noise_bytes) for _ in range(code.k)])
            for content, piece in zip(contents, noise, strict=True):
                content[at] = piece
        for block, content in zip(blocks, contents, strict=True):
            with (self.cluster.data_dir() / block["node"] / block["block_id"]).open("wb") as file:
                file.truncate(length)
                for at, piece in content.items():
                    file.seek(at)
                    file.write(piece)
        manifest = self.work / f"{name}.json"
        manifest.write_text(json.dumps({
            "format": "ecpipe-manifest-1", "name": name, "file_bytes": code.k * length,
            "file_sha256": "0" * 64, "code": "rs-cauchy(7,4)", "block_bytes": length,
            "stripes": [{"stripe_id": name, "blocks": blocks}]}))
        self.cluster.cli("catalog", "load", manifest)
        return blocks, contents

    def test_numbers_of_31_and_32_bits_end(self) -> None:
        for length in (2**31 - 1, 2**31, 2**31 + 1, 2**32 + 70_001):
            blocks, contents = self.sparse(f"sparse-{length}", length)
            for number, (at, piece) in enumerate(contents[2].items()):
                for offset, size in ((at, self.noise_bytes), (at + 999, 2), (at + 1000, 1)):
                    got = self.client.read(blocks[2]["block_id"], offset, size, slice_bytes=SLICE,
                                           scheme=SCHEMES[number % len(SCHEMES)])
                    self.assertTrue(got == piece[offset - at:offset - at + size],
                                     f"{size} bytes from {offset} on of {length}")
            last = self.client.read(blocks[5]["block_id"], length - 1, scheme="rp")
            self.assertEqual(last, list(contents[5].values())[-1][-1:])
            with self.assertRaises(EcpipeError):
                self.client.read(blocks[2]["block_id"], length, 1, scheme="rp")


class EveryPatternOfWideCodes(Patterns):
    nodes = 16

    def test_all(self) -> None:
        for name, most in (("rs(14,10)", 4), ("lrc(4,2,2)", 5), ("lrc(6,2,2)", 5),
                           ("lrc(12,2,2)", 4), ("rotated-rs(9,6,2,512)", 4), ("xor(9,8)", 2)):
            with self.subTest(name):
                stripe = self.add(name, name.translate(str.maketrans("(),", "---")), 2048)
                right, refused = self.tries_all(stripe, most)
                print(f"{name}: {right} rebuilt, {refused} refused", flush=True)


class WholeBlock(Sparse):
    """One that its slices' numbers times their size leave 31 bits in."""

    def test_numbers_of_31_and_32_bits_end(self) -> None:
        length = 2**31 + 70_001
        blocks, contents = self.sparse("whole", length)
        process = subprocess.Popen(
            self.cluster.command("-q", "read", blocks[1]["block_id"], "--scheme", "rp",
                                 "--offset", "1"), stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        for at, piece in self.pieces(length, contents[1]):
            self.assertTrue(process.stdout.read(len(piece)) == piece, f"from {at} on")
        self.assertEqual((process.stdout.read(), process.wait(HANG)), (b"", 0))

    def pieces(self, length: int, content: dict[int, bytes]) -> Iterator[tuple[int, bytes]]:
        """All but the first byte, in order."""
        at = 1
        for begin, noise in content.items():
            while at < begin:
                zeros = bytes(min(1 << 20, begin - at))
                yield at, zeros
                at += len(zeros)
            yield at, noise
            at += len(noise)


def load_tests(loader: Any, _tests: Any, _pattern: Any) -> Any:
    chosen = (EveryPatternOfWideCodes, WholeBlock) if FULL else (Codes, Sparse)
    return loader.suiteClass([loader.loadTestsFromTestCase(each) for each in chosen])


if __name__ == "__main__":
    FULL = "--full" in sys.argv
    if FULL:
        sys.argv.remove("--full")
    case.main()
