# SPDX-License-Identifier: Apache-2.0
"""The paper's evaluation, over the harness in bench/labkit. The experiments, by name; each has

    EXPERIMENT                     its name on the command line and in results
    NEEDS_SHAPING                  whether it is about links of certain speeds
    add_arguments(parser)
    run(arguments, testbed)        the rows; LabError when bytes are wrong
    programs(arguments)            optional: what of bench/ it runs beside the daemons
"""

import argparse
from types import ModuleType

from . import (
    blocks, codes, edge, geo, hdfs, implementations, links, multi, node, qfs, rack, single, slices,
    slowed)

EXPERIMENTS = {module.EXPERIMENT: module for module in (
    single, multi, edge, rack, geo, links, slowed, node, slices, blocks, codes, implementations,
    hdfs, qfs)}


def programs_of(module: ModuleType, arguments: argparse.Namespace) -> tuple[str, ...]:
    """What has to be built for an experiment beside what each cluster needs."""
    return module.programs(arguments) if hasattr(module, "programs") else ()
