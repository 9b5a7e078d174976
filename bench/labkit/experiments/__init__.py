# SPDX-License-Identifier: Apache-2.0
"""The experiments, by name. Each module has

    EXPERIMENT                     its name on the command line and in results
    NEEDS_SHAPING                  whether it is about links of certain speeds
    add_arguments(parser)
    run(arguments, testbed)        the rows; LabError when bytes are wrong
"""

from . import (
    blocks, codes, edge, geo, hdfs, implementations, multi, node, rack, single, slices)

EXPERIMENTS = {module.EXPERIMENT: module for module in (
    single, multi, edge, rack, geo, node, slices, blocks, codes, implementations,
    hdfs)}
