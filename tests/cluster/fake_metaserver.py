# SPDX-License-Identifier: Apache-2.0
"""A metaserver of QFS that answers GETPATHNAME, GETLAYOUT and LOOKUP_PATH, and nothing else."""

from __future__ import annotations

import socketserver
import threading

from qfs_file import PARITIES, Chunk, QfsFile

NO_ENTRY = -2


class FakeMetaServer:
    """`files` by path; `places` has "HOST PORT" of each chunk's chunkservers, by chunk id. Chunks
    whose ids are `unlisted` are in no layout. With `garbage` it answers that."""

    def __init__(self) -> None:
        self.files: dict[str, QfsFile] = {}
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

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

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

    def attributes(self, file: QfsFile) -> str:
        return (f"File-handle: {file.file_id}\r\nFile-size: {len(file.content)}\r\n"
                f"Striper-type: {file.striper}\r\nNum-stripes: {file.data}\r\n"
                f"Num-recovery-stripes: {PARITIES}\r\nStripe-size: {file.cell}\r\n\r\n")

    def where(self, file: QfsFile, chunk: Chunk, path: str) -> str:
        replicas = self.places.get(chunk.chunk_id, [])
        return (f"Status: 0\r\nChunk-offset: {chunk.address}\r\nChunk-version: {file.version}\r\n"
                f"Num-replicas: {len(replicas)}\r\nReplicas: {' '.join(replicas)}\r\n"
                f"Path-name: {path}\r\n" + self.attributes(file))

    def layout(self, file: QfsFile, request: dict[str, str]) -> str:
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
        return (f"Status: 0\r\nFile-size: {len(file.content)}\r\nNum-chunks: {len(chunks[:most])}"
                f"\r\n{more}Content-length: {len(content)}\r\n\r\n{content}")
