#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shapes of bugs that other systems have with survivors that are not what they should be, and with
helpers that fail on the way; docs/field.md has the list."""

from __future__ import annotations

import itertools
import random
import threading
from typing import Any

import case
from case import HANG, SCHEMES
from client import DATA_LOSS, EcpipeError
from field_case import FieldCase, Stripe
from labkit.process import wait_until
from relay import Relay

SLICE = 4096


class Survivors(FieldCase):
    """rs(6,4) with one block lost and one spoilt: the four others are just enough."""

    nodes = 8
    size = 5 * SLICE + 3

    def spoilt(self, how: str, *arguments: str) -> Stripe:
        stripe = self.add("rs(6,4)", how + "".join(arguments), self.size, *arguments)
        good, file = stripe.contents[1], self.cluster.block_file(stripe.ids([1])[0])
        file.write_bytes({
            "empty": b"", "half": good[:len(good) // 2], "a-byte-short": good[:-1],
            "a-byte-long": good + b"\0", "zeros": bytes(len(good)),
            "of-another-index": stripe.contents[2],
            "of-another-generation": random.Random(how).randbytes(len(good))}[how])
        return stripe

    LENGTHS = ("empty", "half", "a-byte-short", "a-byte-long")
    SAME_LENGTH = ("zeros", "of-another-index", "of-another-generation")

    def test_ranges(self) -> None:
        """What a checksum file or a length tells is told before a byte is used."""
        for how, arguments in (*itertools.product(self.LENGTHS + self.SAME_LENGTH, ((),)),
                               *itertools.product(self.LENGTHS, (("--no-checksums",),))):
            with self.subTest(how=how, arguments=arguments):
                stripe = self.spoilt(how, *arguments)
                for scheme in SCHEMES[:3]:
                    got = self.client.read(*stripe.ids([0]), 777, 3 * SLICE, scheme=scheme)
                    self.assertTrue(got == stripe.contents[0][777:777 + 3 * SLICE])

    def test_whole_blocks(self) -> None:
        """Without checksum files it shows at the end. The survivors are checked then, and the next
        repair knows which it was."""
        for how, arguments in itertools.product(self.LENGTHS + self.SAME_LENGTH,
                                                ((), ("--no-checksums",))):
            with self.subTest(how=how, arguments=arguments):
                stripe = self.spoilt(how, *arguments)
                try:
                    self.rebuilt(stripe, [0], scheme="rp")
                except EcpipeError as error:
                    self.assertEqual(error.code, DATA_LOSS, error)
                    self.assertIn((how, arguments), itertools.product(
                        self.SAME_LENGTH, (("--no-checksums",),)))
                    wait_until(lambda: not any(mark["suspect"] for mark in self.marks()), HANG,
                               "the survivors to be checked")
                    self.rebuilt(stripe, [0], scheme="rp")
                self.assertIn(stripe.ids([1])[0], [mark["block_id"] for mark in self.marks()])

    def test_a_target_with_an_old_file_of_the_same_name(self) -> None:
        for how, old in (("other-length", b"old"), ("same-length", bytes(self.size))):
            stripe = self.add("rs(6,4)", f"target-of-{how}", self.size)
            [lost] = stripe.ids([3])
            self.cluster.block_file(lost).unlink()
            spare = self.cluster.node_ids[-1]
            stored = self.cluster.block_path(spare, lost)
            stored.write_bytes(old)
            stored.with_name(f".crc32c.{lost}").write_bytes(b"of something else")
            self.cluster.cli("repair", lost, "--to", spare)
            self.assertEqual(stored.read_bytes(), stripe.contents[3])
            self.assertEqual(self.client.read(lost, scheme="direct"), stripe.contents[3])

    def test_corruption_behind_slices_that_were_used(self) -> None:
        """Each survivor in turn has a wrong bit in a later slice: the slices before have been
        handed over by then, and the read goes on behind them."""
        slices = 40
        for number, at in enumerate((1, 7, slices - 1)):
            stripe = self.add("rs(6,4)", f"slice-{at}", slices * SLICE)
            file = self.cluster.block_file(stripe.ids([1 + number])[0])
            content = bytearray(file.read_bytes())
            content[at * SLICE + 100] ^= 4
            file.write_bytes(content)
            self.assertTrue(self.client.read(*stripe.ids([0]), scheme="rp", slice_bytes=SLICE)
                            == stripe.contents[0], f"slice {at}")
            self.assertIn(file.name, [mark["block_id"] for mark in self.marks()])

    def marks(self) -> list[dict[str, Any]]:
        return self.cluster.cli_json("corrupt", "list")


class OnTheWay(FieldCase):
    """Reads of which much is still to come when a helper fails; a limit of rate sees to it."""

    nodes = 9
    code = "rs(8,4)"
    block_bytes = 1 << 20
    file_bytes = 4 << 20

    def limit(self, mbit: float) -> None:
        """Of what each helper that answers sends; 0: none."""
        names = [name for name, node in self.cluster.node_status().items() if node["answers"]]
        self.cluster.cli("limits", *(("set", "--repair-mbit", str(mbit)) if mbit else ("reset",)),
                         "--node", ",".join(names))
        wait_until(lambda: all(node["repair_mbit"] == mbit
                               for node in self.cluster.cli_json("limits")["nodes"]
                               if node["node"] in names), HANG, f"the limit {mbit}")

    def setUp(self) -> None:
        self.cluster.wait_settled()
        self.content = self.stripe.contents[0]

    def read(self, **options: Any) -> bytes:
        return self.client.read(*self.stripe.ids([0]), scheme="rp", slice_bytes=SLICE, **options)

    def test_a_source_that_is_cut_within_its_stream(self) -> None:
        """At each of these bytes of what it sends, frames' headers among them."""
        node = self.stripe.blocks[1]["node"]
        helper = self.cluster.helpers[node]
        relay = self.enterContext(Relay(helper.ready["data"]))
        helper.settings["listen"] |= {"data": helper.ready["data"], "advertise_data": relay.address}
        helper.restart()
        self.cluster.wait_live([node])
        def undo() -> None:
            helper.settings["listen"].pop("advertise_data")
            helper.restart()
            self.cluster.wait_live([node])
        self.addCleanup(undo)
        for after in (1, 511, 512, SLICE + 7, 3 * SLICE):
            self.cluster.wait_settled()  # then the first survivors are read, it among them
            relay.cut_after = after
            for scheme in SCHEMES:
                got = self.client.read(*self.stripe.ids([0]), 777, 5 * SLICE + 1, scheme=scheme,
                                       slice_bytes=SLICE)
                self.assertTrue(got == self.content[777:777 + 5 * SLICE + 1], f"{after}, {scheme}")
        self.assertGreater(relay.cuts, 0)

    def test_a_hop_that_goes_on_when_its_buffers_serve_others(self) -> None:
        victims: list[Any] = []
        self.limit(8)

        def taken(_: int) -> None:
            if not victims:
                victims.append(self.cluster.helpers[self.helpers_at_work()[1]])
                victims[0].pause()
                self.limit(0)
        try:
            self.assertTrue(self.read(taken=taken) == self.content)
            failed: list[str] = []

            def read_others(thread: int) -> None:
                order = random.Random(thread)
                for _ in range(5):
                    lost, offset = order.randrange(8), order.randrange(1000)
                    if self.client.read(*self.stripe.ids([lost]), offset, 99_999, scheme="rp",
                                        slice_bytes=order.choice((512, SLICE, 65536))
                                        ) != self.stripe.contents[lost][offset:offset + 99_999]:
                        failed.append(f"block {lost}, from {offset} on")
            threads = [threading.Thread(target=read_others, args=(i,)) for i in range(8)]
            for thread in threads[:4]:
                thread.start()
        finally:
            victims[0].resume()
        for thread in threads[4:]:
            thread.start()
        for thread in threads:
            thread.join(HANG)
        self.assertEqual(failed, [])
        self.cluster.wait_live(self.cluster.node_ids)
        self.limit(0)
        self.assert_nothing_left()

    def test_failures_in_turn_within_one_read(self) -> None:
        """More helpers than the code can lose, but for one at a time."""
        stripe = self.add("rs(6,4)", "in-turn", 8 << 20)
        dead: list[Any] = []
        next_at = 0
        self.limit(4)

        def revive() -> None:
            dead[-1].restart()
            self.cluster.wait_live([dead[-1].name])

        def taken(size: int) -> None:
            nonlocal next_at
            if size < next_at:
                return
            next_at = size + 16 * SLICE
            if dead and not dead[-1].running():
                revive()
            elif len(dead) == 4:
                self.limit(0)
                next_at = stripe.code.k * len(stripe.contents[0])  # never again
            elif len(at_work := self.helpers_at_work()) == 4:
                dead.append(self.cluster.helpers[at_work[len(dead)]])
                dead[-1].kill()
        try:
            self.assertTrue(self.client.read(*stripe.ids([0]), scheme="rp", slice_bytes=SLICE,
                                             taken=taken) == stripe.contents[0])
        finally:
            if dead and not dead[-1].running():
                revive()
            self.limit(0)
        self.assertEqual(len(dead), 4)
        repair = self.cluster.status()["repairs"][0]
        self.assertEqual(repair["state"], "done")
        self.assertGreaterEqual(repair["attempt"], 4)
        self.assert_nothing_left()

    def test_three_readmitted_and_four_lost_at_once(self) -> None:
        """Who was silent and answers again must help where no others are left."""
        def helpers(*indices: int) -> list[Any]:
            return [self.cluster.helpers[self.stripe.blocks[index]["node"]] for index in indices]
        for helper in helpers(1, 2, 3):
            helper.pause()
        try:
            self.assertTrue(self.client.read(*self.stripe.ids([0]), 0, 50_000, scheme="rp")
                            == self.content[:50_000])
        finally:
            for helper in helpers(1, 2, 3):
                helper.resume()
        for helper in helpers(4, 5, 6, 7):
            helper.kill()
        try:
            for index in (4, 5, 6, 7):
                self.assertTrue(self.client.read(*self.stripe.ids([index]), scheme="rp")
                                == self.stripe.contents[index], f"block {index}")
            self.rebuilt(self.stripe, [7, 4, 6, 5])
        finally:
            for helper in helpers(4, 5, 6, 7):
                helper.restart()
            self.cluster.wait_live(self.cluster.node_ids)
        self.assert_nothing_left()


if __name__ == "__main__":
    case.main()
