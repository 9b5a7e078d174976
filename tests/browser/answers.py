# SPDX-License-Identifier: Apache-2.0
"""Made-up answers of /status.json, and a server that gives them to the real files of the page."""

from __future__ import annotations

import http.server
import json
import threading
import time
import urllib.request
from typing import Any, Iterator

Json = dict[str, Any]
FILES = ("/", "/page/style.css", "/page/icon.svg", *(f"/page/{name}.js" for name in (
    "main", "dom", "words", "graph", "nodes", "overview", "recoveries", "repairs")))
NOW = int(time.time() * 1000)
MB = 1_000_000


def node(name: str, **changes: Any) -> Json:
    return {"node": name, "state": "live", "heartbeat_seconds_ago": 0.4,
            "heartbeat_unknown": False, "silent_because": "", "kept_out": "",
            "blocks": 1200, "block_bytes": 1200 * 64 * MB, "counting": False,
            "free_bytes": 1_240_000 * MB, "disk_bytes": 4_000_000 * MB, "failed_roots": [],
            "parts": 0, "max_parts": 64, "limit_bytes_per_second": 0,
            "send_bytes_per_second": 0, "receive_bytes_per_second": 0, **changes}


def cluster(racks: dict[str, list[Json]]) -> Json:
    """The nodes of an answer."""
    everyone = [one for nodes in racks.values() for one in nodes]
    there = [one["state"] for one in everyone
             if (one["state"], one["kept_out"]) != ("dead", "in maintenance")]
    states = {state: there.count(state) for state in ("live", "draining", "dead")}
    away = len(everyone) - len(there)
    return {"all": len(everyone), **states, "away": away, "more": 0, "refused": [], "racks": [
        {"rack": rack, "all": len(nodes), "live": sum(one["state"] == "live" for one in nodes),
         "nodes": nodes} for rack, nodes in racks.items()]}


def answer(**changes: Any) -> Json:
    return {"version": "0.1.0", "unix_ms": NOW, "state": "healthy",
            "summary": "2 nodes, nothing to repair",
            "limits": {"repair_bytes_per_second": 0, "max_running": 256},
            "marks": {"suspect_blocks": 0, "corrupt_blocks": 0},
            "nodes": cluster({"r1": [node("node-1")], "r2": [node("node-2")]}),
            "recoveries": {"all": 0, "more": 0, "shown": []},
            "repairs": {"all": 0, "more": 0, "shown": []},
            "ended": {"error": None, "shown": []},
            "queue": {"all": 0, "more": 0, "shown": []}, **changes}


def listed(shown: list[Json], name: str = "shown", more: int = 0) -> Json:
    return {"all": len(shown) + more, "more": more, name: shown}


def link(start: str, end: str, speed: float | None = 110 * MB, share: float = 0.2,
         streams: int = 1) -> Json:
    return {"from": start, "to": end, "streams": streams, "bytes_per_second": speed,
            "network_share": share}


def path(*names: str) -> list[Json]:
    return [link(start, end) for start, end in zip(names, names[1:])]


def ring(names: list[str], end: str) -> list[Json]:
    """Cyclic lanes: each begins at another node of the ring, so that the links form a circle."""
    return [*path(*names, names[0]), *(link(name, end) for name in names)]


def repair(number: int, links: list[Json], held: Json | None = None, **changes: Any) -> Json:
    return {"repair": f"{number:06x}", "blocks": [f"file-s{number:05}-b03"], "scheme": "rp",
            "transport": "tcp", "attempt": 0, "requestor": "reader", "hosts": ["node-77"],
            "recovery": 4, "started_unix_ms": NOW - 9000, "phase": "running", "bytes": 64 * MB,
            "done_bytes": 23 * MB, "heard_seconds_ago": 1.2, "bytes_per_second": 3.1 * MB,
            "eta_seconds": 13.2, "pipeline": {**listed(links, "links"), "held_back_by": held},
            **changes}


def recovery(number: int, name: str, **changes: Any) -> Json:
    return {"recovery": number, "node": name, "kind": "rebuild", "only_announced": False,
            "state": "running", "started_unix_ms": NOW - 400_000,
            "ended_unix_ms": None, "listing": False, "blocks": 1200, "done_blocks": 431,
            "there_blocks": 0, "failed_blocks": 0, "running_blocks": 24, "waiting_blocks": 745,
            "bytes": 1200 * 64 * MB, "done_bytes": 431 * 64 * MB, "bytes_per_second": 71 * MB,
            "eta_seconds": 693.0, "begins_in_seconds": 0, "waits": [
                {"kind": "next", "blocks": 713, "reason": "blocks with fewer survivors go first"},
                {"kind": "streams", "blocks": 30, "reason": "the nodes that may take it are in 4 "
                 "repairs already, the limit of a node (limits.streams_per_node): node-9"},
                {"kind": "survivors", "blocks": 2, "reason": "5 of 6 survivors that it needs can "
                 "be used: node-12 is dead"}], **changes}


def waiting(number: int, **changes: Any) -> Json:
    return {"block": f"file-s{number:05}-b01", "recovery": 4, "node": "node-33", "bytes": 64 * MB,
            "spare_survivors": 2, "attempts": 0, "kind": "next", "reason": "its turn comes next",
            "next_try_in_seconds": 0, **changes}


def ended(number: int, **changes: Any) -> Json:
    return {"repair": f"{number:06x}", "blocks": [f"file-s{number:05}-b02"], "scheme": "rp",
            "transport": "tcp", "attempt": 0, "requestor": "reader", "hosts": [], "recovery": None,
            "started_unix_ms": NOW - 60_000, "ended_unix_ms": NOW - 58_800, "bytes": 64 * MB,
            "state": "done", "detail": "", **changes}


def large() -> Json:
    """500 nodes in 20 racks, two dead, two in trouble, a recovery that has much to do."""
    racks: dict[str, list[Json]] = {}
    for i in range(500):
        racks.setdefault(f"hall-1/rack-{i % 20:02}", []).append(node(
            f"node-{i}", send_bytes_per_second=(i % 7) * 9 * MB,
            receive_bytes_per_second=(i % 5) * 12 * MB, parts=i % 4))
    racks["hall-1/rack-13"][1].update(state="dead", heartbeat_seconds_ago=412,   # node-33
                                      free_bytes=None, disk_bytes=None)
    racks["hall-1/rack-12"][0].update(state="dead", heartbeat_seconds_ago=8412)  # node-12
    racks["hall-1/rack-13"][7].update(failed_roots=["/srv/disk4: Input/output error"])
    racks["hall-1/rack-05"][2].update(silent_because="its control port does not answer")
    racks["hall-1/rack-07"][0].update(state="dead", kept_out="in maintenance",
                                     heartbeat_unknown=True, heartbeat_seconds_ago=12)   # node-7
    racks["hall-1/rack-08"][3].update(state="draining", limit_bytes_per_second=40 * MB,
                                      send_bytes_per_second=38 * MB)
    names = [f"node-{i}" for i in (4, 18, 101, 230, 311, 402)]
    slow = path(*names, "node-77")
    for one in slow:  # nobody is faster than what comes to him, or goes on from him
        one.update(bytes_per_second=3.1 * MB, network_share=0.03)
    slow[3].update(network_share=0.97)
    star = [link(name, "node-90", 20 * MB) for name in names]
    repairs = [
        repair(1, slow, {"kind": "link", "from": "node-230", "to": "node-311"}),
        repair(2, star, {"kind": "disk", "from": "node-18", "to": "node-90"}, scheme="conventional",
               hosts=["node-90"]),
        repair(3, ring(names, "requestor:reader"), hosts=[], recovery=None, scheme="rp-cyclic"),
        *(repair(i, path(*names, f"node-{i}")) for i in range(4, 25))]
    return answer(
        state="repairing", summary="24 repairs running, 745 blocks waiting; 2 dead nodes, 1 node "
        "that answers no call, 1 failed root",
        nodes=cluster(racks), repairs=listed(repairs),
        recoveries=listed([recovery(4, "node-33"), recovery(
            5, "node-7", kind="maintenance", only_announced=True, blocks=0, done_blocks=0,
            running_blocks=0, waiting_blocks=0, bytes=0, done_bytes=0, bytes_per_second=0,
            eta_seconds=None, begins_in_seconds=5400, waits=[]), recovery(
            3, "node-12", state="partial", ended_unix_ms=NOW - 90_000, done_blocks=1198,
            failed_blocks=2, waiting_blocks=0, running_blocks=0, waits=[], eta_seconds=None,
            bytes_per_second=None)]),
        queue=listed([
            waiting(1, spare_survivors=-1, attempts=3, kind="survivors", next_try_in_seconds=42,
                    reason="5 of 6 survivors that it needs can be used: node-12 is dead"),
            waiting(2, spare_survivors=0, kind="streams", reason="the nodes that may take it are "
                    "in 4 repairs already, the limit of a node (limits.streams_per_node)"),
            *(waiting(i) for i in range(3, 51))], more=695),
        ended={"error": None, "shown": [ended(900, state="failed", detail="too few survivors"),
                                        *(ended(i) for i in range(901, 920))]})


HOSTILE = '"><img src=x onerror="document.title=1"><script>document.title=2</script>\u202e</td>'


def hostile() -> Json:
    """Every word that somebody outside chooses is markup."""
    nodes = cluster({HOSTILE: [node(HOSTILE, silent_because=HOSTILE, failed_roots=[HOSTILE]),
                               node(HOSTILE), node("__proto__"), node("constructor")]})
    nodes["refused"] = [{"node": HOSTILE, "address": HOSTILE, "reason": HOSTILE}]
    links = [link(HOSTILE, "__proto__"), link("__proto__", HOSTILE), link(HOSTILE, HOSTILE)]
    return answer(
        version=HOSTILE, state="stuck", summary=HOSTILE, nodes=nodes,
        repairs=listed([repair(1, links, {"kind": HOSTILE, "from": HOSTILE, "to": HOSTILE},
                               blocks=[HOSTILE] * 16, scheme=HOSTILE, transport=HOSTILE,
                               hosts=[HOSTILE], phase=HOSTILE)]),
        recoveries=listed([recovery(1, HOSTILE, waits=[
            {"kind": HOSTILE, "blocks": 1, "reason": HOSTILE}])]),
        queue=listed([waiting(1, block=HOSTILE, node=HOSTILE, kind=HOSTILE, reason=HOSTILE)] * 2),
        ended={"error": HOSTILE, "shown": [ended(1, blocks=[HOSTILE], state=HOSTILE,
                                                 detail=HOSTILE, requestor=HOSTILE)]})


class Stand:
    """Serves the files of a coordinator's page, as it sends them, and beside them `answers`: a
    status and a body each, the last one for ever. With `ticking` each JSON answer is newer than the
    one before."""

    def __init__(self, coordinator: str) -> None:
        self.files = dict(self._fetch(coordinator))
        self.answers: list[tuple[int, Json | str]] = [(200, answer())]
        self.ticking = True
        self.asked = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer._serve(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    @staticmethod
    def _fetch(coordinator: str) -> Iterator[tuple[str, tuple[list[tuple[str, str]], bytes]]]:
        for file in FILES:
            with urllib.request.urlopen(f"http://{coordinator}{file}", timeout=60) as reply:
                kept = [(name, value) for name, value in reply.headers.items()
                        if name.lower() not in ("connection", "content-length", "keep-alive")]
                yield file, (kept, reply.read())

    def _serve(self, request: http.server.BaseHTTPRequestHandler) -> None:
        status, headers, body = 404, [("Content-Type", "text/plain")], b"no such page"
        if request.path in self.files:
            status, (headers, body) = 200, self.files[request.path]
        elif request.path == "/status.json":
            self.asked += 1
            told: Json | str
            status, told = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if isinstance(told, dict) and self.ticking:
                told = {**told, "unix_ms": told.get("unix_ms", 0) + 1000 * self.asked}
            body = (told if isinstance(told, str) else json.dumps(told)).encode()
        request.send_response(status)
        for name, value in headers:
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def __enter__(self) -> Stand:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)
