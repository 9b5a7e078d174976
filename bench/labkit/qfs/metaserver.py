# SPDX-License-Identifier: Apache-2.0
"""A metaserver of QFS that answers GETPATHNAME, GETLAYOUT and LOOKUP_PATH, and nothing else.

As a program it answers from a file that save() has written:

    metaserver.py HOST PORT FILE
"""

from __future__ import annotations

import json
import socketserver
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

PARITIES = 3
NO_ENTRY = -2
FILE_FIELDS = ("file_id", "size", "version", "striper", "data", "cell")
CHUNK_FIELDS = ("chunk_id", "address")


class FakeMetaServer:
    """`files`, such as QfsFiles, by path; `places` has "HOST PORT" of each chunk's chunkservers, by
    chunk id. Chunks whose ids are `unlisted` are in no layout. With `garbage` it answers that."""

    def __init__(self, address: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        self.files: dict[str, Any] = {}
        self.places: dict[int, list[str]] = {}
        self.unlisted: set[int] = set()
        self.most_chunks = 1000  # in an answer
        self.garbage: bytes | None = None
        self.requests: list[str] = []
        self.changed = threading.Lock()
        server = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                while request := self.request_lines():
                    with server.changed:
                        server.requests.append(request["name"])
                        answer = server.garbage or server.answer(request)
                    self.wfile.write(answer)

            def request_lines(self) -> dict[str, str]:
                fields: dict[str, str] = {}
                while (line := self.rfile.readline().decode().rstrip("\r\n")):
                    key, separator, value = line.partition(": ")
                    fields[key if separator else "name"] = value if separator else key
                return fields

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        self._server = Server(address, Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        host, port = self._server.server_address[:2]
        return f"{host}:{port}"

    def __enter__(self) -> FakeMetaServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: dict[str, str]) -> bytes:
        begin = f"OK\r\nCseq: {request['Cseq']}\r\n"
        if request["name"] == "GETPATHNAME":
            for path, file in self.files.items():
                for chunk in file.chunks:
                    if chunk.chunk_id == int(request["Chunk-handle"]):
                        return (begin + self.where(file, chunk, path)).encode()
        elif request["name"] == "LOOKUP_PATH" and request["Pathname"] in self.files:
            attributes = self.attributes(self.files[request["Pathname"]])
            return (begin + "Status: 0\r\n" + attributes).encode()
        elif request["name"] == "GETLAYOUT":
            for file in self.files.values():
                if file.file_id == int(request["File-handle"]):
                    return (begin + self.layout(file, request)).encode()
        return f"{begin}Status: {NO_ENTRY}\r\n\r\n".encode()

    def attributes(self, file: Any) -> str:
        return (f"File-handle: {file.file_id}\r\nFile-size: {file.size}\r\n"
                f"Striper-type: {file.striper}\r\nNum-stripes: {file.data}\r\n"
                f"Num-recovery-stripes: {PARITIES}\r\nStripe-size: {file.cell}\r\n\r\n")

    def where(self, file: Any, chunk: Any, path: str) -> str:
        replicas = self.places.get(chunk.chunk_id, [])
        return (f"Status: 0\r\nChunk-offset: {chunk.address}\r\nChunk-version: {file.version}\r\n"
                f"Num-replicas: {len(replicas)}\r\nReplicas: {' '.join(replicas)}\r\n"
                f"Path-name: {path}\r\n" + self.attributes(file))

    def layout(self, file: Any, request: dict[str, str]) -> str:
        chunks = [chunk for chunk in file.chunks if chunk.address >= int(request["Start-offset"])
                  and chunk.chunk_id not in self.unlisted]
        lost = any(not self.places.get(chunk.chunk_id) for chunk in chunks)
        if lost and request.get("Continue-if-no-replicas") != "1":
            return "Status: -113\r\n\r\n"
        most = min(int(request["Max-chunks"]), self.most_chunks)
        content = ""
        for chunk in chunks[:most]:
            replicas = self.places.get(chunk.chunk_id, [])
            content += " ".join([str(chunk.address), str(chunk.chunk_id), str(file.version),
                                 str(len(replicas)), *replicas]) + " "
        more = "Has-more-chunks: 1\r\n" if len(chunks) > most else ""
        return (f"Status: 0\r\nFile-size: {file.size}\r\nNum-chunks: {len(chunks[:most])}"
                f"\r\n{more}Content-length: {len(content)}\r\n\r\n{content}")

    def save(self, path: Path) -> None:
        def fields(of: Any, names: tuple[str, ...]) -> dict[str, Any]:
            return {name: getattr(of, name) for name in names}
        path.write_text(json.dumps({
            "places": self.places,
            "files": {name: {**fields(file, FILE_FIELDS),
                             "chunks": [fields(chunk, CHUNK_FIELDS) for chunk in file.chunks]}
                      for name, file in self.files.items()}}))

    def load(self, path: Path) -> None:
        saved = json.loads(path.read_text())
        self.places = {int(chunk): places for chunk, places in saved["places"].items()}
        for name, file in saved["files"].items():
            chunks = [SimpleNamespace(**chunk) for chunk in file.pop("chunks")]
            self.files[name] = SimpleNamespace(**file, chunks=chunks)


if __name__ == "__main__":
    with FakeMetaServer((sys.argv[1], int(sys.argv[2]))) as metaserver:
        metaserver.load(Path(sys.argv[3]))
        print(json.dumps({"listen": metaserver.address}), flush=True)
        threading.Event().wait()
