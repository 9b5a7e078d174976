# SPDX-License-Identifier: Apache-2.0
"""Counts what the interfaces of a network namespace have carried, again and again, until SIGTERM.

    python3 link_counter.py    prints a line, and at its end {"unix_s": [...], "interfaces":
                               {NAME: {"received": [...], "sent": [...]}}}, bytes at those times

A program of its own, because it has to be in the namespace.
"""

from __future__ import annotations

import json
import signal
import time

INTERVAL_SECONDS = 0.005
# Then every second one is dropped, and the pause doubled: memory is bounded however long it runs.
MAX_SAMPLES = 20_000
# Of a line of /proc/net/dev, behind the interface's name.
_RECEIVED, _SENT = 0, 8

Sample = tuple[float, dict[str, tuple[int, int]]]


def count(text: str) -> dict[str, tuple[int, int]]:
    """Bytes received and sent by each interface in the text of /proc/net/dev."""
    counters = {}
    for line in text.splitlines()[2:]:
        name, words = line.split(":")
        fields = words.split()
        counters[name.strip()] = int(fields[_RECEIVED]), int(fields[_SENT])
    return counters


def main() -> None:
    # Waited for, not handled: a handler that sets an Event which the thread just waits on can find
    # its lock taken, for ever.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    samples: list[Sample] = []
    pause = INTERVAL_SECONDS
    with open("/proc/net/dev", encoding="ascii") as file:
        print("counting", flush=True)
        due = time.monotonic()
        stop = None
        while stop is None:
            file.seek(0)
            samples.append((time.time(), count(file.read())))
            if len(samples) >= MAX_SAMPLES:
                samples, pause = samples[::2], pause * 2
            due = max(due + pause, time.monotonic())
            stop = signal.sigtimedwait({signal.SIGTERM}, max(0.0, due - time.monotonic()))
    print(json.dumps({"unix_s": [at for at, _ in samples], "interfaces": {
        name: {"received": [counters[name][0] for _, counters in samples],
               "sent": [counters[name][1] for _, counters in samples]}
        for name in samples[0][1]} if samples else {}}), flush=True)


if __name__ == "__main__":
    main()
