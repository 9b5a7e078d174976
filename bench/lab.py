#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lab: ECPipe's schemes on an emulated network of this machine.

Each node has a network namespace with shaped links and runs the real daemons. Needs root. Times on
a shared machine drift, so every run sends one block directly over the same links, and results are
ratios to that.

    bench/lab.py single --n 14 --k 10 --block-mib 64 --slice-kib 32 --rate-mbit 1000 \\
                 --schemes direct,conventional,ppr,rp --transport tcp --runs 5 --json OUT
    bench/lab.py multi --failed 1,2,3,4 --schemes conventional,rp,mixed
    bench/lab.py node --nodes 16 --stripes 32 --requestors 1,4,all \\
                 --policies rp,rp-greedy,rp-balanced,conventional,ppr
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from labkit import multi, netns, node, single
from labkit.measure import MIB, commit, machine, print_table
from labkit.process import LabError, interruptible

REPOSITORY = Path(__file__).resolve().parents[1]
DEFAULT_BIN_DIR = REPOSITORY / "build" / "release" / "bin"
PROGRAMS = ("ecpipe", "ecpipe-coordinator", "ecpipe-helper")
EXIT_FAILED = 1
EXIT_CANNOT_RUN_HERE = 3

# Each experiment: add_arguments(parser) and run(arguments, bin_dir, work_dir) -> rows.
EXPERIMENTS = {module.EXPERIMENT: module for module in (single, multi, node)}


def parse_arguments() -> argparse.Namespace:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", type=Path, metavar="OUT", help="write the results here")
    common.add_argument("--bin-dir", type=Path,
                        default=Path(os.environ.get("ECPIPE_BIN_DIR", DEFAULT_BIN_DIR)),
                        help="where the programs are (default build/release/bin)")
    common.add_argument("--work-dir", type=Path,
                        help="blocks, configs and logs; kept afterwards (default: a temporary one)")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    subparsers = parser.add_subparsers(dest="experiment", required=True)
    for name, module in EXPERIMENTS.items():
        summary = (module.__doc__ or name).split("\n\n")[0]
        module.add_arguments(subparsers.add_parser(
            name, help=summary, description=summary, parents=[common]))
    return parser.parse_args()


def check_programs(bin_dir: Path) -> None:
    missing = [name for name in PROGRAMS if not (bin_dir / name).is_file()]
    if missing:
        raise LabError(f"no {', '.join(missing)} in {bin_dir}: build them with "
                       "`cmake --preset release && cmake --build --preset release`")


def print_rows(rows: list[dict[str, Any]]) -> None:
    def shown(row: dict[str, Any]) -> list[str]:
        theory = row.get("theory_timeslots")
        return [row["scheme"], row["parameters"]["transport"], f"{row['median_s']:.3f}",
                f"{row['spread_s']:.3f}", f"{row['ratio_to_direct']:.3f}",
                f"{theory:.3f}" if theory else "-",
                f"{row['of_bound']:.2f}" if "of_bound" in row else "-", f"{row['cpu_s']:.2f}",
                f"{row['busiest_link_bytes'] / MIB:.1f}", f"{row['total_bytes'] / MIB:.1f}",
                "ok" if row["sha256_ok"] else "WRONG"]
    print()
    print_table(["scheme", "transport", "median s", "spread s", "x direct", "theory", "of bound",
                 "CPU s", "busiest MiB", "total MiB", "sha256"], [shown(row) for row in rows])


def run_experiment(arguments: argparse.Namespace) -> None:
    check_programs(arguments.bin_dir)
    work_dir = arguments.work_dir or Path(tempfile.mkdtemp(prefix="ecpipe-lab-"))
    try:
        rows = EXPERIMENTS[arguments.experiment].run(arguments, arguments.bin_dir, work_dir)
    finally:
        if arguments.work_dir is None:
            shutil.rmtree(work_dir, ignore_errors=True)
    print_rows(rows)
    if arguments.json:
        arguments.json.write_text(json.dumps(
            {"machine": machine(), "commit": commit(REPOSITORY), "rows": rows}, indent=1) + "\n")


def main() -> int:
    arguments = parse_arguments()
    obstacle = netns.why_not()
    if obstacle:
        print(f"lab.py: {obstacle}", file=sys.stderr)
        return EXIT_CANNOT_RUN_HERE
    try:
        with interruptible():
            run_experiment(arguments)
    except LabError as error:
        print(f"lab.py: {error}", file=sys.stderr)
        return EXIT_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
