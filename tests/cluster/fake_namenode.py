# SPDX-License-Identifier: Apache-2.0
"""A NameNode that answers fsck and /jmx over HTTP, and nothing else."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from hdfs_group import Group, fsck_text

STANDBY = """FSCK started by hdfs (auth:SIMPLE) from /127.0.0.1 for path / at Sun Nov 22 \
02:00:00 UTC 2026
FSCK ended at Sun Nov 22 02:00:00 UTC 2026 in 17 milliseconds
Operation category READ is not supported in state standby. Visit https://s.apache.org/sbnn-error


Fsck on path '/' FAILED"""


class FakeNameNode:
    """`groups` are those that it tells of; with `cut_off` each answer ends in the middle, with
    `standby` it says what one of an HA pair says that is not the active one. `contacts` are the
    seconds since DataNodes were heard of, by UUID; those in `dead` count as dead."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        self.groups: list[Group] = []
        self.contacts: dict[str, int] = {}
        self.dead: set[str] = set()
        self.safe_mode = ""
        self.cut_off = False
        self.standby = False
        self.queries: list[dict[str, list[str]]] = []
        namenode = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                if parts.path == "/jmx":
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.write(namenode.beans().encode())
                    return
                if parts.path != "/fsck":
                    self.send_error(404)
                    return
                namenode.queries.append(parse_qs(parts.query, keep_blank_values=True))
                text = (STANDBY if namenode.standby else fsck_text(namenode.groups)).encode()
                self.send_response(200)
                self.end_headers()  # no length: the end of the connection is the end
                self.wfile.write(text[:len(text) * 2 // 3] if namenode.cut_off else text)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer((address, port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def beans(self) -> str:
        def nodes(dead: bool) -> str:
            return json.dumps({f"10.0.0.{i}:9866": {"uuid": uuid, "lastContact": contact}
                               for i, (uuid, contact) in enumerate(sorted(self.contacts.items()))
                               if (uuid in self.dead) == dead})
        kind = "Hadoop:service=NameNode,name=NameNode"
        return json.dumps({"beans": [
            {"name": f"{kind}Status", "State": "standby" if self.standby else "active"},
            {"name": f"{kind}Info", "Safemode": self.safe_mode, "LiveNodes": nodes(False),
             "DeadNodes": nodes(True)}]})

    @property
    def url(self) -> str:
        address, port = self._server.server_address[:2]
        return f"http://{address!s}:{port}"

    def __enter__(self) -> FakeNameNode:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
