# SPDX-License-Identifier: Apache-2.0
"""The check of which DataNodes live: HDFS goes by the NameNode, and so does the coordinator."""

from __future__ import annotations

from typing import Any

from labkit.hdfs.hadoop import await_state

from scenario import RECOVERED_SECONDS, Scenario, expect


def datanode_crashed(scenario: Scenario) -> dict[str, Any]:
    """A DataNode crashes and the helper beside it lives. In safe mode the NameNode has nothing
    rebuilt, which `recover-node` says; when the DataNode is back, nothing is lost."""
    if not scenario.middleware.real:
        return {}
    if not scenario.hdfs.tells_uuids():
        return {"skipped": "this release's NameNode tells no UUIDs, and all nodes are on one host"}
    node, _ = scenario.node_with_data_of_most_files()
    live = len(scenario.hdfs.live())
    loss = scenario.middleware.loss(node)
    expect(loss["state"] == loss["state_in_hdfs"] == "live", f"of a live DataNode: {loss}")
    scenario.driver.do("admin", "-safemode", "enter")
    node.daemon.kill()

    def dead() -> bool:
        loss.update(scenario.middleware.loss(node))
        return loss["state"] == "dead"
    await_state(dead, RECOVERED_SECONDS, f"{node.name} dead, as the NameNode sees it")
    expect(loss["helper_state"] == "live", f"its helper: {loss}")
    expect(loss["outstanding"]["blocks"] == loss["lost"]["blocks"] > 0, f"what it had: {loss}")
    hints = " ".join(loss["hints"])
    expect("safe mode" in hints and "10.5" not in hints, f"in safe mode the hints are {hints}")
    blocks = loss["lost"]["blocks"]
    node.daemon.start()
    scenario.hdfs.wait_live(live)
    scenario.driver.do("admin", "-safemode", "leave")

    def back() -> bool:
        loss.update(scenario.middleware.loss(node))
        return loss["state"] == "live" and loss["lost"]["blocks"] == 0
    await_state(back, RECOVERED_SECONDS, f"{node.name} live again")
    scenario.await_complete()
    return {"blocks": blocks}
