#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemons' lives: registration, restarts, the journal, draining, signals, health, configs."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

import case
from case import FAILED, HANG, USAGE, ClusterCase
from labkit.process import wait_until

DEAD_AFTER = 5.0    # timeouts.dead_after_seconds, by default
LOOK_SECONDS = 1.0  # how often the coordinator looks at who is dead


class Lives(ClusterCase):
    nodes = 6
    block_bytes = 64 << 20
    file_bytes = 4 * (64 << 20)
    helper_settings = {"timeouts": {"stall_seconds": 25.0, "drain_seconds": 5.0}}

    def test_coordinator_restart(self) -> None:
        lost = self.block(0, 0)
        process = self.begin_read(lost["block_id"], "--timeout", "25")
        self.cluster.coordinator.kill()
        self.cluster.coordinator.restart()
        self.cluster.wait_live(self.cluster.node_ids)
        states = [repair["state"] for repair in self.cluster.status()["repairs"]]
        self.assertIn("interrupted", states)
        taken, said = process.communicate(timeout=HANG)
        self.assertEqual(process.returncode, 0, said)  # the bytes do not pass the coordinator
        self.assertEqual(taken, self.bytes_of(lost["block_id"]))
        # The catalog is still there.
        self.repair(lost["block_id"], "--sha256", lost["sha256"])
        self.assertEqual(self.cluster.status()["repairs"][0]["state"], "done")

    def test_a_node_that_died_before_the_coordinator_began_is_known(self) -> None:
        node = self.block(0, 5)["node"]
        self.cluster.helpers[node].kill()
        self.cluster.coordinator.kill()
        self.cluster.coordinator.restart()
        wait_until(lambda: self.cluster.node_status().get(node, {}).get("state") == "dead", HANG,
                   "the coordinator to miss the node")
        self.assertEqual(self.cluster.node_status()[node]["block_count"], 1)
        doctor = self.cluster.cli("doctor", check=False)
        self.assertEqual(doctor.returncode, FAILED)
        self.assertIn(node, doctor.stdout)
        self.cluster.helpers[node].restart()
        self.cluster.wait_live(self.cluster.node_ids)

    def test_a_second_coordinator_finds_the_state_in_use(self) -> None:
        first = self.cluster.coordinator
        state = first.settings["coordinator"]["data_directory"]
        config = self.work / "second.toml"
        config.write_text(f'[coordinator]\nlisten="127.0.0.1:0"\ndata_directory="{state}"\n')
        reading = self.begin_read(self.block(0, 0)["block_id"])
        done = subprocess.run([case.BIN_DIR / "ecpipe-coordinator", "--config", config],
                              capture_output=True, text=True, timeout=HANG)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{state} is in use by process {first.pid}", done.stderr)
        # It has not taken the first one's repair for interrupted.
        with contextlib.closing(sqlite3.connect(f"{state}/journal.db")) as journal:
            rows = journal.execute("SELECT count(*) FROM repairs WHERE state = 'running'")
            self.assertEqual(rows.fetchone(), (1,))
        reading.kill()
        reading.wait()

    def test_drain(self) -> None:
        lost = self.block(0, 0)
        node = self.block(0, 1)["node"]
        self.assertEqual(self.cluster.helpers[node].stop(20), 0)
        wait_until(lambda: self.cluster.node_status()[node]["state"] != "live", HANG,
                   "the coordinator to notice")
        self.assertIn(self.cluster.node_status()[node]["state"], ("draining", "dead"))
        self.repair(lost["block_id"], "--sha256", lost["sha256"])
        self.cluster.helpers[node].restart()
        self.cluster.wait_live([node])

    def test_a_helper_starts_with_the_roots_that_open(self) -> None:
        lost, there = self.block(0, 0), self.block(0, 1)
        helper = self.cluster.helpers[there["node"]]
        roots, gone = helper.settings["helper"]["roots"], str(self.work / "gone")
        helper.settings["helper"]["roots"] = [gone, *roots]
        helper.restart()
        self.cluster.wait_live([there["node"]])
        wait_until(lambda: self.cluster.node_status()[there["node"]]["failed_roots"], HANG,
                   "the root to be named")
        self.assertIn(f"{gone}: ", self.cluster.node_status()[there["node"]]["failed_roots"][0])
        self.repair(lost["block_id"], "--scheme", "rp-all", "--sha256", lost["sha256"])
        helper.settings["helper"]["roots"] = roots
        helper.restart()
        self.cluster.wait_live([there["node"]])

    def test_a_successor_starts_while_a_helper_still_drains(self) -> None:
        lost = self.block(0, 0)
        node = self.block(0, 1)["node"]
        old = self.cluster.helpers[node]
        old.settings["listen"] = {"control": old.ready["control"], "data": old.ready["data"]}
        old.settings["timeouts"]["drain_seconds"] = 20.0
        old.restart()
        self.cluster.wait_live([node])
        self.cluster.wait_settled()
        process = self.begin_read(lost["block_id"], "--timeout", "25")
        wait_until(lambda: self.cluster.node_status()[node]["active_sessions"] == 1, HANG,
                   "a part there")
        old.send_signal(signal.SIGTERM)
        wait_until(lambda: "helper.draining" in old.log_tail(50), HANG, "the drain to begin")
        # Not a second live one on its ports: a port has one owner.
        successor = self.cluster.add_successor(node)
        self.assertTrue(old.running(), "it has a part to finish")
        self.assertEqual(successor.ready["control"], old.ready["control"])
        taken, said = process.communicate(timeout=HANG)
        self.assertEqual(process.returncode, 0, said)
        self.assertEqual(taken, self.bytes_of(lost["block_id"]))
        self.assertEqual(old.reap(HANG), 0)
        wait_until(lambda: self.cluster.node_status()[node]["state"] == "live", HANG, "it live")
        self.repair(lost["block_id"], "--sha256", lost["sha256"])

    def test_a_successor_waits_for_the_ports(self) -> None:
        helper = self.cluster.helpers["node-5"]
        for key in ("control", "data"):
            with self.subTest(key=key), socket.socket() as predecessor:
                helper.stop()
                predecessor.bind(("127.0.0.1", 0))
                predecessor.listen()
                helper.settings["listen"][key] = "127.0.0.1:%d" % predecessor.getsockname()[1]
                timer = threading.Timer(0.7, predecessor.close)
                timer.start()
                helper.launch()
                helper.await_ready()
                timer.join()
                self.assertEqual(helper.ready[key], helper.settings["listen"][key])
                helper.settings["listen"][key] = "127.0.0.1:0"
        helper.restart()
        self.cluster.wait_live(["node-5"])

    def test_a_node_id_of_a_live_helper_elsewhere_is_refused(self) -> None:
        first = self.cluster.helpers["node-1"]
        copy = self.work / "copy.toml"
        copy.write_text(
            f'[helper]\nnode_id="node-1"\ncoordinator="{self.cluster.coordinator.address}"\n'
            f'roots=["{self.work}"]\n[listen]\ncontrol="127.0.0.2:0"\ndata="127.0.0.2:0"\n')
        log = self.work / "copy.log"
        with log.open("wb") as output:
            process = subprocess.Popen([case.BIN_DIR / "ecpipe-helper", "--config", copy],
                                       stderr=output, stdout=output)
        self.addCleanup(process.wait, HANG)
        self.addCleanup(process.terminate)
        wait_until(lambda: "coordinator.refused" in log.read_text(), HANG, "the refusal")
        self.assertIn("has this node_id", log.read_text())
        [refused] = self.cluster.status()["refused_nodes"]
        self.assertEqual(refused["node_id"], "node-1")
        self.assertIn("127.0.0.2:", refused["control_address"])
        self.assertIn("the coordinator refuses a helper", self.cluster.cli("status").stdout)
        self.assertEqual(self.cluster.coordinator.log_tail(1000).count("node.refused"), 1)
        self.assertEqual(self.address_of("node-1"), first.ready["control"])
        self.assertEqual(self.cluster.node_status()["node-1"]["troubles"], [])
        # It has moved.
        first.kill()
        try:
            wait_until(lambda: self.address_of("node-1") == refused["control_address"], HANG,
                       "it to be taken")
        finally:
            process.terminate()
            process.wait(HANG)
            first.restart()
        self.cluster.wait_live(["node-1"])
        self.assertEqual(self.cluster.status()["refused_nodes"], [])

    def test_a_slow_disk_of_the_coordinator_keeps_no_dead_node_alive(self) -> None:
        def plan() -> str:
            lost = self.block(0, 0)["block_id"]
            return self.cluster.cli("plan", lost, "--format", "json").stdout
        planned = plan()
        gone = next(node for node in self.cluster.node_ids if f'"{node}"' in planned)
        directory = Path(self.cluster.coordinator.settings["coordinator"]["data_directory"])
        with contextlib.closing(sqlite3.connect(directory / "journal.db")) as journal:
            journal.isolation_level = None
            journal.execute("BEGIN EXCLUSIVE")
            self.cluster.helpers[gone].kill()
            # Planning a repair waits for no disk of the journal.
            wait_until(lambda: f'"{gone}"' not in plan(), 15, f"{gone} to be dead")
            journal.execute("ROLLBACK")
        self.cluster.helpers[gone].restart()
        self.cluster.wait_live([gone])

    def test_two_live_daemons_do_not_share_a_port(self) -> None:
        text = (f'[helper]\nnode_id="other"\ncoordinator="{self.cluster.coordinator.address}"\n'
                f'roots=["{self.work}"]\n[listen]\n')
        control, data = (self.cluster.helpers["node-3"].ready[key] for key in ("control", "data"))
        for listen in (f'control="{control}"\ndata="127.0.0.1:0"\n',
                       f'control="127.0.0.1:0"\ndata="{data}"\n'):
            config = self.work / "other.toml"
            config.write_text(text + listen)
            done = subprocess.run([case.BIN_DIR / "ecpipe-helper", "--config", config],
                                  capture_output=True, text=True, timeout=HANG)
            self.assertEqual(done.returncode, 1)
            self.assertIn("Address already in use", done.stderr)

    def test_a_node_with_the_address_of_another_is_refused(self) -> None:
        first = self.cluster.helpers["node-1"]
        other = self.cluster.helpers["node-6"]
        other.settings["listen"]["advertise_control"] = first.ready["control"]
        other.stop()
        wait_until(lambda: self.cluster.node_status()["node-6"]["state"] == "dead", HANG, "it dead")

        def as_before() -> None:
            other.settings["listen"].pop("advertise_control")
            other.restart()
            self.cluster.wait_live(["node-6"])
        self.addCleanup(as_before)
        other.launch()
        other.await_ready()
        wait_until(lambda: "coordinator.refused" in other.log_tail(50), HANG, "the refusal")
        self.assertIn("node node-1, which is live, has address", other.log_tail(50))
        self.assertEqual(self.cluster.node_status()["node-6"]["state"], "dead")
        self.assertEqual(self.cluster.node_status()["node-1"]["state"], "live")

    def test_when_the_machine_stands_still_nobody_was_silent(self) -> None:
        """As a virtual machine that is held for a while: some heartbeats come only after the
        coordinator has looked at the time."""
        daemons = [*self.cluster.helpers.values(), self.cluster.coordinator]
        self.cluster.wait_live(self.cluster.node_ids)
        said = self.deaths()
        try:
            for daemon in daemons:
                daemon.pause()
            time.sleep(DEAD_AFTER + 1)
        finally:
            for daemon in reversed(daemons):
                daemon.resume()
        time.sleep(2.5 * LOOK_SECONDS)
        self.assertEqual(self.deaths(), said)
        self.assertEqual({node["state"] for node in self.cluster.node_status().values()}, {"live"})

    def deaths(self) -> list[str]:
        """What the coordinator has logged of nodes that it takes for dead."""
        log = self.cluster.coordinator.log_file.read_text().splitlines()
        return [line for line in log if " node.dead " in line]

    def test_status_says_why_a_node_is_silent(self) -> None:
        node = self.cluster.helpers["node-2"]
        self.assertEqual(self.cluster.node_status()["node-2"]["troubles"], [])
        node.pause()
        try:
            status = self.cluster.cli("status").stdout
        finally:
            node.resume()
        self.assertRegex(status, r"(?m)^node-2 .* silent ")
        self.assertIn("trouble with node-2:", status)
        self.assertIn("the helper does not answer this command: ", status)
        self.assertIn("the coordinator reaches both its ports", status)
        wait_until(lambda: not self.cluster.node_status()["node-2"]["troubles"], HANG, "no trouble")

    def test_health_and_reflection(self) -> None:
        for address in (self.cluster.coordinator.address, self.address_of("node-1")):
            done = subprocess.run([case.BIN_DIR / "health_client", address], capture_output=True,
                                  text=True, timeout=HANG)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("serving", done.stdout)
            self.assertIn("ecpipe.v1.", done.stdout)

    def address_of(self, node: str) -> str:
        return self.cluster.node_status()[node]["control_address"]

    def test_log_level_reload(self) -> None:
        helper = self.cluster.helpers["node-2"]
        helper.send_signal(signal.SIGHUP)
        wait_until(lambda: "config.reloaded" in helper.log_tail(50), HANG, "the reload")

    def test_log_in_json(self) -> None:
        helper = self.cluster.helpers["node-2"]
        text = helper.config_file.read_text()
        self.addCleanup(lambda: (helper.config_file.write_text(text),
                                 helper.send_signal(signal.SIGHUP)))
        helper.config_file.write_text(text + '\n[log]\nformat = "json"\n')
        helper.send_signal(signal.SIGHUP)

        def reloaded() -> bool:
            lines = [line for line in helper.log_tail(50).splitlines() if line.startswith("{")]
            return any(json.loads(line)["event"] == "config.reloaded" for line in lines)

        wait_until(reloaded, HANG, "a line in JSON")

    def test_memory_does_not_grow_with_the_block(self) -> None:
        small = self.peak_after_repair(offset=0, length=4 << 20)
        large = self.peak_after_repair(offset=0, length=64 << 20)
        for node, peak in small.items():
            self.assertLess(large[node], peak * 1.10 + (1 << 20), node)

    def peak_after_repair(self, offset: int, length: int) -> dict[str, int]:
        self.repair(self.block(0, 0)["block_id"], "--scheme", "rp", "--offset", str(offset),
                    "--length", str(length))
        return {name: node["peak_resident_bytes"]
                for name, node in self.cluster.wait_idle().items()}


class Configs(unittest.TestCase):
    """Unknown keys and bad values: the daemon refuses to start and names file and line."""

    def run_with(self, program: str, text: str, *options: str) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "config.toml"
            path.write_text(text.replace("DIR", directory))
            return subprocess.run([case.BIN_DIR / program, "--config", path, *options],
                                  capture_output=True, text=True, timeout=HANG)

    def refuses(self, program: str, text: str, *expected: str, may_mend: bool = False,
                options: tuple[str, ...] = ()) -> None:
        """So does --check-config. `may_mend`: without an edit, so systemd is to start it again."""
        for checks in ((), ("--check-config",)):
            done = self.run_with(program, text, *options, *checks)
            self.assertEqual(done.returncode, 1 if may_mend and not checks else USAGE, done.stderr)
            for part in expected:
                self.assertIn(part, done.stderr)

    def test_check_config_starts_nothing(self) -> None:
        helper = '[helper]\nnode_id="n"\ncoordinator="127.0.0.1:1"\nroots=["/no/such/root"]\n'
        requestor = ('[requestor]\ncoordinator="127.0.0.1:1"\n'
                     '[endpoint]\naddress="unix:DIR/socket"\n')
        for program, text, options in (
                ("ecpipe-helper", helper, []),
                ("ecpipe-helper", requestor, ["--requestor-only"]),
                ("ecpipe-coordinator", '[coordinator]\ndata_directory="/no/such/place"\n', [])):
            done = self.run_with(program, text, "--check-config", *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"^.*/config\.toml is valid\n$")
            self.assertEqual(done.stderr, "")

    def test_all_troubles_are_named_at_once(self) -> None:
        self.refuses("ecpipe-helper", '[helper]\nnode_id="a/b"\nroots=["DIR"]\nstore=7\n'
                     '[limits]\nmax_sessions=0\n[log]\nlevel="loud"\n',
                     "config.toml: required key helper.coordinator",
                     "config.toml:2: helper.node_id",
                     "config.toml:4: helper.store must be a string",
                     "config.toml:6: limits.max_sessions", "config.toml:8: log.level")
        self.refuses("ecpipe-coordinator", '[coordinator]\ncolour=1\n[topology]\n'
                     'racks="/no/racks"\nlinks="/no/links"\n', "coordinator.data_directory",
                     "config.toml:2: unknown key", "config.toml:4: topology.racks",
                     "config.toml:5: topology.links")

    def test_so_are_those_that_only_the_use_of_the_values_shows(self) -> None:
        """What protects ports, and files of TLS and secrets: beside what is wrong in the file."""
        endpoint = ('address="tcp:127.0.0.1:0"\ncookie_mode="0644"\nallow_users=["daemon"]\n')
        web = '[web]\ntls=true\nlisten="0.0.0.0:0"\n'
        tls = '[tls]\nca="/no/ca"\ncertificate="/no/c"\nkey="/no/k"\n'
        self.lines_of("ecpipe-helper", '[helper]\nnode_id="a/b"\ncoordinator="192.0.2.1:7700"\n'
                      'roots=["DIR"]\n[listen]\ncontrol="0.0.0.0:0"\ndata="nowhere"\n'
                      '[redis]\naddress="192.0.2.1:6379"\npassword_file="/no/secret"\n'
                      f"{web}[endpoint]\n{endpoint}", [2, 6, 6, 7, 9, 10, 12, 15, 16, 17])
        self.lines_of("ecpipe-helper", f'[requestor]\nname=1\ncoordinator="127.0.0.1:1"\n'
                      f"[endpoint]\n{endpoint}{tls}", [2, 5, 6, 7, 9, 10, 11],
                      "--requestor-only")
        self.lines_of("ecpipe-coordinator", f'[coordinator]\ndata_directory="DIR"\n{tls}'
                      '[defaults]\nscheme="magic"\ntransport="redis"\n'
                      '[web]\nlisten="0.0.0.0:0"\n', [4, 5, 6, 8, 9, 11])

    def lines_of(self, program: str, text: str, lines: list[int], *options: str) -> None:
        """What is said of the file, a line each, also where the daemon is to start."""
        for checks in ([], ["--check-config"]):
            done = self.run_with(program, text, *options, *checks)
            self.assertEqual(done.returncode, USAGE, done.stderr)
            self.assertEqual([int(line) for line in re.findall(
                r"^.*/config\.toml:(\d+): ", done.stderr, re.MULTILINE)], lines, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), len(lines), done.stderr)

    def test_helper(self) -> None:
        good = '[helper]\nnode_id="n"\ncoordinator="127.0.0.1:1"\nroots=["DIR"]\n'
        self.refuses("ecpipe-helper", good + "colour=1\n", "config.toml:5", "helper.colour")
        self.refuses("ecpipe-helper", good + "[redis]\nport=1\n", "config.toml:6", "redis.port")
        self.refuses("ecpipe-helper", good.replace('"n"', "7"), "config.toml:2", "string")
        self.refuses("ecpipe-helper", good.replace('"n"', '"a/b"'), "config.toml:2", "node_id")
        self.refuses("ecpipe-helper", good + 'store="zfs"\n', "config.toml:5", "plain")
        self.refuses("ecpipe-helper", good + "[log]\nlevel=\n", "config.toml:6")
        self.refuses("ecpipe-helper", good + '[log]\nlevel="loud"\n', "config.toml:6", "warning")
        self.refuses("ecpipe-helper", good + '[web]\nlisten="0.0.0.0:0"\n', "web.listen")
        tls = '[tls]\nca="/no/ca"\ncertificate="/no/c"\nkey="/no/k"\n'
        self.refuses("ecpipe-helper", good + tls, "/no/", may_mend=True)
        self.refuses("ecpipe-helper", "[helper]\n", "helper.node_id", "missing")
        self.refuses("ecpipe-helper", good + '[listen]\ncontrol="0.0.0.0:0"\n', "insecure")

    def test_a_coordinator_elsewhere_wants_addresses_that_it_reaches(self) -> None:
        text = ('[helper]\nnode_id="n"\ncoordinator="192.0.2.1:7700"\nroots=["DIR"]\n'
                'insecure=true\n[listen]\n')
        node = 'control="192.0.2.2:7711"\ndata="192.0.2.2:7712"\n'
        for listen, key, host in (
                ("", "control", "127.0.0.1"),
                (node.replace("192.0.2.2:7711", "localhost:7711"), "control", "localhost"),
                (node.replace("192.0.2.2:7712", "[::1]:7712"), "data", "::1"),
                (node.replace("192.0.2.2:7712", "0.0.0.0:7712"), "data", "every address"),
                (node + 'advertise_data="127.0.1.1:7712"\n', "data", "127.0.1.1")):
            self.refuses("ecpipe-helper", text + listen, host, f"set [listen] {key}",
                         f"advertise_{key}")
        advertised = ('control="127.0.0.1:0"\ndata="0.0.0.0:0"\nadvertise_control="node-1:1"\n'
                      'advertise_data="192.0.2.2:2"\n')
        for listen in (node, advertised):
            done = self.run_with("ecpipe-helper", text + listen, "--check-config")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_addresses_of_endpoints(self) -> None:
        helper = '[helper]\nnode_id="n"\ncoordinator="127.0.0.1:1"\nroots=["DIR"]\n'
        requestor = '[requestor]\ncoordinator="127.0.0.1:1"\n\n\n'
        cases = (("/run/x", "config.toml:6", "endpoint.address", "unix:/path"),
                 (f"unix:/{'x' * 107}", "config.toml:6", "endpoint.address", "107 bytes"),
                 ("tcp:0.0.0.0:0", "endpoint tcp:0.0.0.0:0", "insecure"))
        for text, options in ((helper, ()), (requestor, ("--requestor-only",))):
            for address, *expected in cases:
                self.refuses("ecpipe-helper", text + f'[endpoint]\naddress="{address}"\n',
                             *expected, options=options)

    def test_coordinator(self) -> None:
        good = '[coordinator]\ndata_directory="DIR"\nlisten="127.0.0.1:0"\n'
        self.refuses("ecpipe-coordinator", good + '[defaults]\nscheme="magic"\n', "config.toml:5",
                     "conventional")
        self.refuses("ecpipe-coordinator", good + "[defaults]\nslice_bytes=0\n", "config.toml:5")
        self.refuses("ecpipe-coordinator", good + "[typo]\nx=1\n", "config.toml:4", "typo")
        self.refuses("ecpipe-coordinator", "[coordinator]\nlisten=1\n", "config.toml:2")

    def test_a_new_data_directory_is_its_groups_whatever_the_umask(self) -> None:
        for mask in (0, 0o077):
            with self.subTest(umask=oct(mask)), tempfile.TemporaryDirectory() as directory:
                data, config, ready = (Path(directory) / name
                                       for name in ("data", "config.toml", "ready"))
                config.write_text(f'[coordinator]\ndata_directory="{data}"\n'
                                  'listen="127.0.0.1:0"\n')
                process = subprocess.Popen(
                    [case.BIN_DIR / "ecpipe-coordinator", "--config", config,
                     "--ready-file", ready], umask=mask, stderr=subprocess.DEVNULL)
                try:
                    wait_until(ready.exists, HANG, "the coordinator to be ready")
                finally:
                    process.terminate()
                    self.assertEqual(process.wait(HANG), 0)
                self.assertEqual(data.stat().st_mode & 0o7777, 0o750)
                modes = {file.name: file.stat().st_mode & 0o7777 for file in data.iterdir()}
                self.assertIn("catalog.db", modes)
                self.assertEqual(set(modes.values()), {0o640}, modes)

    def test_no_such_file(self) -> None:
        done = subprocess.run([case.BIN_DIR / "ecpipe-helper", "--config", "/no/such.toml"],
                              capture_output=True, text=True, timeout=HANG)
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("/no/such.toml", done.stderr)


if __name__ == "__main__":
    case.main()
