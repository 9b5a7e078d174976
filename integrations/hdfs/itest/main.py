# SPDX-License-Identifier: Apache-2.0
"""A real NameNode and DataNodes on loopback, with ECPipe beside them: degraded reads through
EcpipeFileSystem, reconstruction through DataNodePlugin, and HDFS as always when ECPipe is away.

Exit code 0 when all checks passed, 1 when one failed, 77 with "SKIP: reason" where the test cannot
run. Logs stay in the work directory when something failed, or with --keep.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any, Callable

from labkit.hdfs.driver import Driver, DriverError
from labkit.hdfs.hadoop import FILE_SYSTEM, PLUGIN, Hdfs, Resources
from labkit.hdfs.toolchain import OLDEST, REPOSITORY, Toolchain, Unavailable
from labkit.host import LocalHost
from labkit.process import LabError, interruptible

import checks
import group_checks
import latency
import lives
from middleware import Daemons, Middleware, StandIn
from scenario import BLOCK_BYTES, TIMEOUT_SECONDS, CheckFailed, Scenario

EXIT_FAILED, EXIT_SKIPPED = 1, 77
PROGRAMS = ("ecpipe-coordinator", "ecpipe-helper", "ecpipe")


class Report:
    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []

    def run(self, name: str, check: Callable[[], dict[str, Any]]) -> bool:
        start = time.monotonic()
        entry: dict[str, Any] = {"check": name, "passed": True}
        try:
            entry.update(check())
        except (CheckFailed, DriverError, LabError, OSError) as error:
            entry.update(passed=False, error=f"{type(error).__name__}: {error}")
            traceback.print_exc()
        entry["total_seconds"] = round(time.monotonic() - start, 2)
        self.entries.append(entry)
        details = {key: value for key, value in entry.items() if key not in ("check", "passed")}
        print(f"{'ok    ' if entry['passed'] else 'FAILED'} {name}: {details}", flush=True)
        return entry["passed"]


def run_checks(scenario: Scenario, report: Report) -> None:
    """A check builds on the state that those before it left, so the first failure ends the run but
    for the look at the logs."""
    baseline: dict[str, Resources] = {}

    def remember() -> dict[str, Any]:
        baseline.update(checks.open_now(scenario))
        return {}
    steps: list[tuple[str, Callable[[Scenario], dict[str, Any]]]] = [
        ("healthy reads", checks.healthy_reads),
        ("open file repaired by name", checks.open_file_by_name),
        ("DataNode crashed, its helper lives", lives.datanode_crashed),
        ("resources at the start", lambda _: remember()),
        ("DataNode killed, sequential reads", checks.node_killed),
        ("DataNode killed, hdfs dfs -cat", checks.dfs_cat),
        ("DataNode killed, positional reads", checks.positional_reads),
        ("DataNode killed, seeks", checks.seeks),
        ("DataNode killed, FileContext", checks.file_context),
        ("DataNode killed, many threads", checks.many_threads),
        ("DataNode removed from the NameNode", checks.removed_from_namenode),
        ("blocks repaired by name", checks.repaired_by_name),
        ("node rebuilt", checks.node_rebuilt),
        ("blocks of short groups lost", checks.short_groups_rebuilt),
        ("two blocks of a group lost", group_checks.several_lost(2)),
        ("three blocks of a group lost", group_checks.several_lost(3)),
        ("one repair of several blocks, or one of each", group_checks.one_repair_or_one_each),
        ("corrupt replica", group_checks.corrupt_replica),
        ("corrupt survivor of a read", group_checks.corrupt_survivor_of_a_read),
        ("corrupt survivor of a reconstruction",
         group_checks.corrupt_survivor_of_a_reconstruction),
        ("DataNode decommissioned", checks.decommissioned),
        ("no session left", checks.no_sessions),
        ("helper killed in mid-read", helper_killed),
        ("silent endpoint", checks.silent_endpoint),
        ("ECPipe down, reconstruction", checks.middleware_down),
        ("healthy, nothing left", lambda it: checks.nothing_left(it, baseline)),
    ]
    for name, check in steps:
        if not report.run(name, lambda: check(scenario)):
            break
    report.run("no stack trace in the logs", lambda: checks.no_stack_traces(scenario))


def helper_killed(scenario: Scenario) -> dict[str, Any]:
    """With a block lost whose repair runs while another helper goes."""
    scenario.driver.do("admin", "-safemode", "enter")
    group = scenario.driver.groups(scenario.big.path)[-1]
    index = scenario.data_index_to_lose(group)
    kept = scenario.lose(group, [index])
    result = checks.helper_killed_in_mid_read(scenario)
    scenario.driver.do("admin", "-safemode", "leave")
    scenario.await_same(group, kept)
    return result


def run(arguments: argparse.Namespace, work: Path, report: Report) -> None:
    tools = Toolchain(arguments.hadoop)
    hdfs = Hdfs(tools, work, settings={
        "dfs.blocksize": BLOCK_BYTES, "ecpipe.timeout-ms": TIMEOUT_SECONDS * 1000,
        # What is rotten is found by those who read it, or not at all.
        "dfs.block.scanner.volume.bytes.per.second": 0})
    for i in range(arguments.nodes):
        hdfs.add_datanode(f"dn-{i + 1}", PLUGIN)
    client = hdfs.configuration("client", {
        **FILE_SYSTEM, "ecpipe.endpoint": f"unix:{hdfs.datanodes[-1].socket}"})
    middleware: Middleware | None = None
    driver: Driver | None = None
    try:
        start = time.monotonic()
        hdfs.start()
        middleware = StandIn(hdfs) if arguments.stand_in else Daemons(hdfs, arguments.bin_dir)
        middleware.start()
        driver = Driver(hdfs, LocalHost(), client, work / "logs" / "driver.log")
        scenario = Scenario(hdfs, driver, middleware, hdfs.datanodes[-1])
        if arguments.latency:
            latency.put_files(scenario)
            report.run("latency", lambda: {"rows": latency.measure(
                scenario, arguments.latency, arguments.read_bytes, arguments.schemes.split(","))})
            return
        scenario.put_files()
        print(f"cluster up with files after {time.monotonic() - start:.1f} s", flush=True)
        run_checks(scenario, report)
    finally:
        if driver is not None:
            driver.stop()
        if middleware is not None:
            middleware.stop()
        hdfs.stop()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="itest.sh", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hadoop", default=OLDEST, metavar="VERSION",
                        help=f"the release, e.g. 3.1.1, 3.3.6, 3.4.2, 3.5.0 (default {OLDEST})")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the results there")
    parser.add_argument("--bin-dir", type=Path, default=REPOSITORY / "build" / "dev" / "bin",
                        help="ECPipe's programs (default build/dev/bin)")
    parser.add_argument("--nodes", type=int, default=12,
                        help="DataNodes, at least 12; with 15 RS-10-4 is tested too (default 12)")
    parser.add_argument("--stand-in", action="store_true",
                        help="test the Java side alone: no daemons of ECPipe, a process that "
                             "decodes with Hadoop's own coder answers in their place")
    parser.add_argument("--latency", type=int, metavar="READS",
                        help="no test: measure so many positional reads of a lost block, through "
                             "ECPipe and by HDFS's own decoding")
    parser.add_argument("--read-bytes", type=int, default=64 << 10, metavar="BYTES",
                        help="of each read that --latency measures (default 65536)")
    parser.add_argument("--schemes", default="auto",
                        help="that --latency measures, comma-separated (default auto)")
    parser.add_argument("--keep", action="store_true", help="keep the work directory")
    return parser.parse_args()


def obstacle(arguments: argparse.Namespace) -> str | None:
    missing = [name for name in PROGRAMS if not (arguments.bin_dir / name).exists()]
    if missing and not arguments.stand_in:
        return f"{arguments.bin_dir} has no {', '.join(missing)}: build first"
    return None


def main() -> int:
    arguments = parse_arguments()
    if reason := obstacle(arguments):
        print(f"SKIP: {reason}")
        return EXIT_SKIPPED
    work, report, start = Path(tempfile.mkdtemp(prefix="ecpipe-hdfs-")), Report(), time.monotonic()
    failed = True
    try:
        with interruptible():
            run(arguments, work, report)
        failed = not all(entry["passed"] for entry in report.entries)
    except Unavailable as error:
        print(f"SKIP: {error}")
        failed = False
        return EXIT_SKIPPED
    finally:
        if failed or arguments.keep:
            print(f"logs and data: {work}", flush=True)
        else:
            shutil.rmtree(work, ignore_errors=True)
    seconds = round(time.monotonic() - start, 1)
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "hadoop": arguments.hadoop, "nodes": arguments.nodes, "seconds": seconds,
            "stand_in": arguments.stand_in, "checks": report.entries}, indent=2) + "\n")
    passed = sum(entry["passed"] for entry in report.entries)
    print(f"{passed} passed, {int(failed)} failed, "
          f"Hadoop {arguments.hadoop}, {seconds} s")
    return EXIT_FAILED if failed else 0


if __name__ == "__main__":
    sys.exit(main())
