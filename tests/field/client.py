# SPDX-License-Identifier: Apache-2.0
"""libecpipe in this process: hundreds of repairs on one handle, without a process for each."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Callable, Sequence

OK, INVALID_ARGUMENT, FAILED_PRECONDITION, DATA_LOSS = 0, 3, 9, 15  # of ecpipe.h


class _Error(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("code", ctypes.c_int),
                ("message", ctypes.c_char * 1020)]


class _Options(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("coordinator", ctypes.c_char_p),
                ("name", ctypes.c_char_p), ("call_timeout_s", ctypes.c_double),
                ("stall_timeout_s", ctypes.c_double), ("tls_ca", ctypes.c_char_p),
                ("tls_certificate", ctypes.c_char_p), ("tls_key", ctypes.c_char_p),
                ("redis_password_file", ctypes.c_char_p)]


class _Target(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("block_ids", ctypes.POINTER(ctypes.c_char_p)),
                ("block_count", ctypes.c_size_t), ("offset", ctypes.c_uint64),
                ("bytes", ctypes.c_uint64), ("scheme", ctypes.c_char_p),
                ("transport", ctypes.c_char_p), ("verify", ctypes.c_char_p),
                ("slice_bytes", ctypes.c_uint64), ("link_mbit", ctypes.c_double)]


_Take = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class EcpipeError(Exception):
    def __init__(self, error: _Error) -> None:
        super().__init__(error.message.decode(errors="replace"))
        self.code = error.code


class Client:
    """Used by several threads at once. Close it when no call is under way."""

    def __init__(self, library: Path, coordinator: str) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.ecpipe_close.argtypes = [ctypes.c_void_p]
        self._library.ecpipe_close.restype = None
        self._handle = ctypes.c_void_p()
        options = _Options(ctypes.sizeof(_Options), coordinator.encode(), b"field")
        self._call("ecpipe_open", ctypes.byref(options), ctypes.byref(self._handle))

    def close(self) -> None:
        self._library.ecpipe_close(self._handle)

    def read(self, block_id: str, offset: int = 0, length: int = 0, *, scheme: str | None = None,
             slice_bytes: int = 0, taken: Callable[[int], object] = lambda _: None) -> bytes:
        """A degraded read; `taken` hears how many bytes there are, each time that some come. With
        EcpipeError it leaves what came as `so_far`."""
        content = bytearray()
        raised: list[Exception] = []

        def take(piece: int, size: int, _: object) -> int:
            content.extend(ctypes.string_at(piece, size))
            try:
                taken(len(content))
            except Exception as error:  # nothing may be raised through the library
                raised.append(error)
            return len(raised)
        callback = _Take(take)
        target = self._target([block_id], offset, length, scheme, slice_bytes)
        try:
            self._call("ecpipe_read", self._handle, ctypes.byref(target), callback, None, None,
                       None)
        except EcpipeError as error:
            if raised:
                raise raised[0] from None
            error.so_far = bytes(content)
            raise
        return bytes(content)

    def repair(self, block_ids: Sequence[str], folder: Path, offset: int = 0, length: int = 0, *,
               scheme: str | None = None, slice_bytes: int = 0) -> list[bytes]:
        """Rebuilds blocks of a stripe into files, and takes these away."""
        paths = [folder / block_id for block_id in block_ids]
        names = (ctypes.c_char_p * len(paths))(*[str(path).encode() for path in paths])
        target = self._target(block_ids, offset, length, scheme, slice_bytes)
        self._call("ecpipe_repair_to_files", self._handle, ctypes.byref(target), names, None, None)
        contents = [path.read_bytes() for path in paths]
        for path in paths:
            path.unlink()
        return contents

    def _target(self, block_ids: Sequence[str], offset: int, length: int, scheme: str | None,
                slice_bytes: int) -> _Target:
        ids = (ctypes.c_char_p * len(block_ids))(*[each.encode() for each in block_ids])
        return _Target(ctypes.sizeof(_Target), ids, len(block_ids), offset, length,
                       scheme.encode() if scheme else None, None, None, slice_bytes)

    def _call(self, function: str, *arguments: object) -> None:
        error = _Error(ctypes.sizeof(_Error))
        if getattr(self._library, function)(*arguments, ctypes.byref(error)) != OK:
            raise EcpipeError(error)
