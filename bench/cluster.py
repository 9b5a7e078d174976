#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lab's experiments on machines of your own, over ssh.

    bench/cluster.py --inventory hosts.toml single --block-mib 64 --runs 10 --json OUT
    bench/cluster.py --inventory hosts.toml geo --unshaped --runs 10 --json OUT

It copies the programs to the machines, starts the daemons, measures, collects the results, stops
the daemons and removes what it has copied, also after ctrl-C and after a failure. The machines need
Linux on this machine's architecture, Python 3, the libraries of the programs
(`deploy/install-deps.sh run build`), redis-server for --transport redis, and an ssh login without a
password. The data plane is not encrypted: use private networks only. The head of
bench/labkit/inventory.py describes the inventory file.

Links are used at the speed that they have: options for link rates have no effect, and results have
no theory. The experiments edge, rack and geo are about links of given speeds and therefore run only
with --unshaped, over the links as they are; geo measures these links first.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments import EXPERIMENTS, programs_of, results
from experiments.outputs import add_output_arguments, check_output_arguments, write_outputs
from experiments.ssh_testbed import Machines
from labkit.command_line import add_bin_dir_argument, check_programs, print_error
from labkit.inventory import read_inventory
from labkit.process import LabError, interruptible
from labkit.work_folder import work_folder

REPOSITORY = Path(__file__).resolve().parents[1]
EXIT_FAILED = 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inventory", type=Path, required=True, metavar="FILE",
                        help="TOML file that lists the machines")
    common = argparse.ArgumentParser(add_help=False)
    add_output_arguments(common)
    add_bin_dir_argument(common, REPOSITORY)
    subparsers = parser.add_subparsers(dest="experiment", required=True)
    for name, module in EXPERIMENTS.items():
        summary = (module.__doc__ or name).split("\n\n")[0]
        experiment = subparsers.add_parser(name, help=summary, description=summary,
                                           parents=[common])
        module.add_arguments(experiment)
        experiment.add_argument("--unshaped", action="store_true",
                                help="use the links as they are, even if the experiment is about "
                                     "links of given speeds")
    return parser.parse_args()


def run_experiment(arguments: argparse.Namespace) -> None:
    module = EXPERIMENTS[arguments.experiment]
    check_programs(arguments.bin_dir, programs_of(module, arguments))
    check_output_arguments(arguments)
    if module.NEEDS_SHAPING and not arguments.unshaped:
        raise LabError(f"{arguments.experiment} is about links of given speeds, which only lab.py "
                       "can make; use --unshaped to run it over the links as they are")
    inventory = read_inventory(arguments.inventory)
    with work_folder(None, "ecpipe-cluster-") as work_dir:
        rows = module.run(arguments, Machines(arguments.bin_dir, work_dir, inventory))
    results.print_rows(rows)
    write_outputs(arguments, rows, REPOSITORY)


def main() -> int:
    arguments = parse_arguments()
    try:
        with interruptible():
            run_experiment(arguments)
    except LabError as error:
        print_error("cluster.py", error)
        return EXIT_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
