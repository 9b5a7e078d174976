# SPDX-License-Identifier: Apache-2.0
"""A port in front of a port, for a test that cuts one direction between two programs off."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType

CHUNK = 1 << 16


class Relay:
    """Passes bytes between whoever connects to `address` and `target`. While `silent`, the caller's
    bytes pass and the answers are held back, as a firewall that works in one direction does. With
    `cut_after` a connection ends after so many bytes of its answer; `cuts` counts these."""

    def __init__(self, target: str) -> None:
        host, port = target.rsplit(":", 1)
        self._target = (host, int(port))
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._server.getsockname()[1]
        self.cut_after: int | None = None
        self.cuts = 0
        self._answers = threading.Event()
        self._answers.set()
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.set_silent(False)
        for each in [self._server, *self._sockets]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(10)

    def set_silent(self, silent: bool) -> None:
        if silent:
            self._answers.clear()
        else:
            self._answers.set()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._server.accept()
                target = socket.create_connection(self._target, 10)
            except OSError:
                return
            target.settimeout(None)
            self._sockets += [caller, target]
            for source, sink, answers in ((caller, target, False), (target, caller, True)):
                thread = threading.Thread(target=self._pass, args=(source, sink, answers),
                                          daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pass(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        left = self.cut_after if answers else None
        with contextlib.suppress(OSError):
            while content := source.recv(CHUNK if left is None else min(CHUNK, left)):
                if answers:
                    self._answers.wait()
                sink.sendall(content)
                left = None if left is None else left - len(content)
                if left == 0:
                    self.cuts += 1
                    source.shutdown(socket.SHUT_RDWR)
                    break
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
