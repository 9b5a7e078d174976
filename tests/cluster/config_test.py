#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The configuration by which daemons run: it is shown, and SIGHUP takes up what can be taken up."""

from __future__ import annotations

import json
import signal
import subprocess
import tomllib
from typing import Any

import case
from case import HANG, NOT_FOUND, ClusterCase
from labkit.cluster import EcpipeDaemon
from labkit.process import wait_until
from labkit.settings import toml_text


class RunningConfig(ClusterCase):
    nodes = 6

    def shown(self, *node: str) -> dict[str, Any]:
        return tomllib.loads(self.cluster.cli("config", *node).stdout)

    def reload(self, daemon: EcpipeDaemon, event: str = "config.reloaded") -> str:
        """Sends SIGHUP with the settings as they are now; returns what the daemon logs of it."""
        daemon.host.write_text(daemon.config_file, toml_text(daemon.settings))
        return self.hang_up(daemon, event)

    def hang_up(self, daemon: EcpipeDaemon, event: str) -> str:
        before = daemon.log_tail(10_000)
        daemon.send_signal(signal.SIGHUP)
        wait_until(lambda: daemon.log_tail(10_000).count(event) > before.count(event), HANG, event)
        return daemon.log_tail(10_000)[len(before):]

    def test_what_is_shown_is_a_configuration_with_all_values(self) -> None:
        for node, program in (("", "ecpipe-coordinator"), ("node-2", "ecpipe-helper")):
            shown = self.cluster.cli("config", *([node] if node else [])).stdout
            file = self.work / "shown.toml"
            file.write_text(shown)
            done = subprocess.run([case.BIN_DIR / program, "--config", file, "--check-config"],
                                  capture_output=True, text=True, timeout=HANG)
            self.assertEqual(done.returncode, 0, done.stderr)
            daemon = self.cluster.helpers[node] if node else self.cluster.coordinator
            values = tomllib.loads(shown)
            for section, settings in daemon.settings.items():
                for key, value in settings.items():
                    if (section, key) == ("coordinator", "listen"):
                        continue  # port 0 at first
                    self.assertEqual(values[section][key], value, f"{section}.{key}")
            self.assertIn("drain_seconds" if node else "handout_seconds", values["timeouts"])
            [line] = [line for line in daemon.log_tail(10_000).splitlines()
                      if "config.effective" in line]
            self.assertIn("log.level=", line)
        told = json.loads(self.cluster.cli("config", "node-2", "--json").stdout)
        self.assertEqual(told["node"], "node-2")
        self.assertIn("limits.max_sessions", told["reloadable"])
        self.assertEqual(told["values"]["helper.node_id"], '"node-2"')
        self.assertIn("ecpipe nodes", self.fails(NOT_FOUND, "config", "node-99"))

    def test_a_helper_takes_up_limits_and_names_what_it_cannot(self) -> None:
        helper = self.cluster.helpers["node-1"]
        helper.settings["limits"] = {"max_sessions": 7, "repair_mbit": 80}
        helper.settings["helper"]["rack"] = "/elsewhere"
        try:
            said = self.reload(helper)
            self.assertIn('taken="limits.max_sessions limits.repair_mbit"', said)
            wait_until(lambda: "config.needs_restart" in helper.log_tail(50), HANG, "the refusal")
            self.assertIn("key=helper.rack", helper.log_tail(50))
            wait_until(lambda: self.limits_of("node-1") == (7, 80), HANG, "the limits")
            shown = self.shown("node-1")
            self.assertEqual(shown["limits"]["max_sessions"], 7)
            self.assertNotEqual(shown["helper"]["rack"], "/elsewhere", "the old value holds")
        finally:
            del helper.settings["limits"], helper.settings["helper"]["rack"]
            self.reload(helper)
        wait_until(lambda: self.limits_of("node-1") == (64, 0), HANG, "the limits of before")

    def limits_of(self, node: str) -> tuple[int, int]:
        [limits] = [entry for entry in self.cluster.cli_json("limits")["nodes"]
                    if entry["node"] == node]
        return limits["max_sessions"], limits["repair_mbit"]

    def test_a_coordinator_takes_up_racks_and_links(self) -> None:
        coordinator = self.cluster.coordinator
        racks, links = self.work / "racks.txt", self.work / "links.txt"
        racks.write_text("node-3 /new\n")
        links.write_text("node-1 node-2 123\n")
        coordinator.settings["topology"] = {"racks": str(racks), "links": str(links)}
        said = self.reload(coordinator)
        self.assertIn('taken="topology.links topology.racks"', said)
        self.assertEqual(self.cluster.node_status()["node-3"]["rack"], "/new")
        self.assertIn("123", self.cluster.cli("links").stdout)
        # The same file with other lines is taken up, too.
        racks.write_text("node-3 /newer\n")
        self.reload(coordinator)
        self.assertEqual(self.cluster.node_status()["node-3"]["rack"], "/newer")
        # A file that is wrong changes nothing.
        racks.write_text("node-3\n")
        coordinator.settings["log"] = {"level": "error"}
        said = self.reload(coordinator, "config.reload_failed")
        self.assertIn("racks.txt", said)
        self.assertEqual(self.cluster.node_status()["node-3"]["rack"], "/newer")
        self.assertEqual(self.shown()["log"]["level"], "info")
        racks.write_text("node-3 /newer\n")
        del coordinator.settings["log"]
        self.reload(coordinator)


if __name__ == "__main__":
    case.main()
