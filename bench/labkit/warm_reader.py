# SPDX-License-Identifier: Apache-2.0
"""Reads ranges of lost blocks through libecpipe, in one process that keeps its connections, as a
storage system's shim does. A program of its own, so that it can run on any node.

    warm_reader.py LIBRARY COORDINATOR

Each line of the input is a read, as JSON: block, offset, bytes, scheme, slice_bytes. Each line of
the output is its report."""

from __future__ import annotations

import ctypes
import hashlib
import json
import sys
from typing import Any

_TAKE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class _Sized(ctypes.Structure):
    """The structs of ecpipe.h begin with their own size."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(struct_bytes=ctypes.sizeof(self), **fields)


class _Error(_Sized):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("code", ctypes.c_int),
                ("message", ctypes.c_char * 1020)]


class _Options(_Sized):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("coordinator", ctypes.c_char_p),
                ("name", ctypes.c_char_p), ("call_timeout_s", ctypes.c_double),
                ("stall_timeout_s", ctypes.c_double), ("tls_ca", ctypes.c_char_p),
                ("tls_certificate", ctypes.c_char_p), ("tls_key", ctypes.c_char_p),
                ("redis_password_file", ctypes.c_char_p)]


class _Target(_Sized):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("block_ids", ctypes.POINTER(ctypes.c_char_p)),
                ("block_count", ctypes.c_size_t), ("offset", ctypes.c_uint64),
                ("bytes", ctypes.c_uint64), ("scheme", ctypes.c_char_p),
                ("transport", ctypes.c_char_p), ("verify", ctypes.c_char_p),
                ("slice_bytes", ctypes.c_uint64), ("link_mbit", ctypes.c_double)]


class _Report(_Sized):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("repair_id", ctypes.c_uint64),
                ("block_bytes", ctypes.c_uint64), ("bytes", ctypes.c_uint64),
                ("bytes_received", ctypes.c_uint64), ("seconds", ctypes.c_double),
                ("attempts", ctypes.c_uint64)]


class Client:
    def __init__(self, library: str, coordinator: str) -> None:
        self._library = ctypes.CDLL(library)
        self._client = ctypes.c_void_p()
        options = _Options(coordinator=coordinator.encode())
        self._check(self._library.ecpipe_open, ctypes.byref(options), ctypes.byref(self._client))

    def read(self, wanted: dict[str, Any]) -> dict[str, Any]:
        block = (ctypes.c_char_p * 1)(wanted["block"].encode())
        target = _Target(block_ids=block, block_count=1, offset=wanted["offset"],
                         bytes=wanted["bytes"], scheme=wanted["scheme"].encode(),
                         slice_bytes=wanted["slice_bytes"])
        report, pieces = _Report(), []

        def take(data: int, size: int, _: object) -> int:
            pieces.append(ctypes.string_at(data, size))
            return 0

        self._check(self._library.ecpipe_read, self._client, ctypes.byref(target), _TAKE(take),
                    None, None, ctypes.byref(report))
        return {"seconds": report.seconds, "attempts": report.attempts,
                "bytes_received": report.bytes_received,
                "sha256": hashlib.sha256(b"".join(pieces)).hexdigest()}

    def close(self) -> None:
        self._library.ecpipe_close(self._client)

    @staticmethod
    def _check(function: Any, *arguments: Any) -> None:
        error = _Error()
        if function(*arguments, ctypes.byref(error)) != 0:
            raise SystemExit(f"warm_reader.py: {error.message.decode()}")


def main() -> None:
    client = Client(*sys.argv[1:])
    for line in sys.stdin:
        print(json.dumps(client.read(json.loads(line))), flush=True)
    client.close()


if __name__ == "__main__":
    main()
