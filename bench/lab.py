#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lab: the paper's evaluation on an emulated network on this machine.

Each node has a network namespace with links of a limited rate and runs the real daemons. The lab
needs root, and the programs of a release build. Times on a shared machine drift, so every run also
sends one block directly over the same links, and the results are ratios to that direct send.
`bench/lab.py EXPERIMENT --help` lists the options of an experiment, with units and defaults.

    bench/lab.py single --n 14 --k 10 --block-mib 64 --slice-kib 32 --rate-mbit 1000 \\
                 --schemes direct,conventional,ppr,rp --transport tcp --runs 5 --json OUT
    bench/lab.py multi --failed 1,2,3,4          bench/lab.py edge --edge-mbit 1000,500,200,100
    bench/lab.py rack --racks 3 --cross-mbit 400,800
    bench/lab.py geo --matrix north-america|asia|FILE
    bench/lab.py links --matrix north-america|asia|FILE|random:SEED --node-mbit 500
    bench/lab.py slowed --seeds 5,11 --at 0.25 --to 0.1    a link becomes slow midway
    bench/lab.py node --nodes 16 --stripes 64 --requestors 1,2,4,8,16 \\
                 --policies rp,rp-greedy,rp-balanced,conventional,ppr
    bench/lab.py slices | blocks | codes | implementations
    bench/lab.py hdfs --policies RS-6-3,RS-10-4  a real HDFS-3; needs a JDK and Maven
    bench/lab.py qfs --chunk-mib 1,8 --slice-kib 32 --recover 12    chunk files of QFS
    bench/lab.py all --quick | --full            all figures but figure 10 (HDFS), into
                                                 bench/results/; --figures 10 adds that one
    bench/lab.py load --kib 64 --p99-ms 100      small reads a second, alone and beside a recovery
    bench/lab.py chaos --seed 1 --minutes 30     operations under faults, see docs/reliability.md
    bench/lab.py report                          write bench/RESULTS.md from bench/results/
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments import EXPERIMENTS, load, programs_of, report, results, suite
from experiments.chaos import command as chaos
from experiments.outputs import (
    add_json_argument, add_output_arguments, check_output_arguments, write_outputs)
from experiments.testbed import Emulated
from labkit import netns
from labkit.command_line import add_bin_dir_argument, check_programs, print_error
from labkit.process import LabError, interruptible
from labkit.work_folder import work_folder

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "bench" / "results"
PAGE = REPOSITORY / "bench" / "RESULTS.md"
EXIT_FAILED = 1
EXIT_CANNOT_RUN_HERE = 3


def parse_arguments() -> argparse.Namespace:
    places, outputs, json_only = (argparse.ArgumentParser(add_help=False) for _ in range(3))
    add_output_arguments(outputs)
    add_json_argument(json_only)
    add_bin_dir_argument(places, REPOSITORY)
    places.add_argument("--work-dir", type=Path,
                        help="directory for blocks, configurations and logs, kept afterwards "
                             "(default: a temporary one, removed at the end)")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    subparsers = parser.add_subparsers(dest="experiment", required=True)
    for name, module in EXPERIMENTS.items():
        summary = (module.__doc__ or name).split("\n\n")[0]
        module.add_arguments(subparsers.add_parser(
            name, help=summary, description=summary, parents=[outputs, places]))
    suite.add_arguments(subparsers.add_parser(
        suite.NAME,
        help="every figure of the paper, and the page of results", parents=[outputs, places]),
        RESULTS)
    load.add_arguments(subparsers.add_parser(
        load.NAME, help="small reads a second, within a limit of their p99",
        parents=[json_only, places], description=load.__doc__))
    chaos.add_arguments(subparsers.add_parser(
        chaos.NAME,
        help="repairs and reads while processes, links and blocks fail",
        parents=[json_only, places], description=chaos.__doc__))
    report.add_arguments(subparsers.add_parser(
        report.NAME, help="the page of results, from an earlier run's results"), RESULTS, PAGE)
    return parser.parse_args()


def check_requirements(arguments: argparse.Namespace) -> None:
    """What must be built and installed, before anything starts."""
    module = EXPERIMENTS.get(arguments.experiment)
    more = (load.PROGRAM,) if arguments.experiment == load.NAME else ()
    check_programs(arguments.bin_dir, programs_of(module, arguments) if module else more)
    if module or arguments.experiment == suite.NAME:
        check_output_arguments(arguments)


def run_experiment(arguments: argparse.Namespace) -> None:
    with work_folder(arguments.work_dir, "ecpipe-lab-") as work_dir:
        testbed = Emulated(arguments.bin_dir, work_dir, keep=bool(arguments.work_dir))
        if arguments.experiment == suite.NAME:
            # The page of results elsewhere is beside them.
            page = PAGE if arguments.out == RESULTS else arguments.out / PAGE.name
            suite.run(arguments, testbed, REPOSITORY, lambda: report.write(arguments.out, page))
            return
        if arguments.experiment == load.NAME:
            load.show(arguments, load.run(arguments, testbed), REPOSITORY)
            return
        rows = EXPERIMENTS[arguments.experiment].run(arguments, testbed)
    results.print_rows(rows)
    write_outputs(arguments, rows, REPOSITORY)


def run_chaos(arguments: argparse.Namespace) -> int:
    with work_folder(arguments.work_dir, "ecpipe-chaos-") as work_dir:
        clean = chaos.run(arguments, work_dir, bool(arguments.work_dir), REPOSITORY)
    return 0 if clean else EXIT_FAILED


def main() -> int:
    arguments = parse_arguments()
    try:
        if arguments.experiment == report.NAME:
            report.write(arguments.results, arguments.page)
            return 0
        check_requirements(arguments)
        loopback = arguments.experiment == chaos.NAME and arguments.loopback
        obstacle = None if loopback else netns.why_not()
        if obstacle:
            print(f"lab.py: {obstacle}", file=sys.stderr)
            return EXIT_CANNOT_RUN_HERE
        with interruptible():
            if arguments.experiment == chaos.NAME:
                return run_chaos(arguments)
            run_experiment(arguments)
    except LabError as error:
        print_error("lab.py", error)
        return EXIT_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
