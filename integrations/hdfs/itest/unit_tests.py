# SPDX-License-Identifier: Apache-2.0
"""The Java module's own tests, through Maven. Exit code 77 with "SKIP: reason" without Maven. Where
only the native library of Hadoop's Unix sockets cannot be had, all others run."""

from __future__ import annotations

import sys

from labkit.hdfs.toolchain import Unavailable, alone, maven, require_tools


def run_tests() -> None:
    try:
        maven("-Plibhadoop", "package")
    except Unavailable as error:
        maven("package")
        print(f"LEFT OUT: the tests of Hadoop's Unix sockets: {error}")


def main() -> int:
    try:
        require_tools()
        with alone():
            run_tests()
    except Unavailable as error:
        print(f"SKIP: {error}")
        return 77
    except RuntimeError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
