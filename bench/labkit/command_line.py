# SPDX-License-Identifier: Apache-2.0
"""What programs that start clusters have in common on their command lines."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Sequence

from .process import LabError

PROGRAMS = ("ecpipe", "ecpipe-coordinator", "ecpipe-helper")


def add_bin_dir_argument(parser: argparse.ArgumentParser, repository: Path) -> None:
    parser.add_argument("--bin-dir", type=Path,
                        default=Path(os.environ.get("ECPIPE_BIN_DIR",
                                                    default_bin_dir(repository))),
                        help="directory of the programs (default: $ECPIPE_BIN_DIR, or "
                             "build/release/bin)")


def default_bin_dir(repository: Path) -> Path:
    return repository / "build" / "release" / "bin"


def check_programs(bin_dir: Path, more: Sequence[str] = ()) -> None:
    """Before anything starts. `more`: of bench/, beside the programs that each cluster needs."""
    missing = [name for name in (*PROGRAMS, *more) if not (bin_dir / name).is_file()]
    if missing:
        preset = bin_dir.parent.name if bin_dir.parent.parent.name == "build" else "release"
        raise LabError(
            f"{', '.join(missing)}: not built in {bin_dir}; build with `cmake --preset {preset} && "
            f"cmake --build --preset {preset} --target {' '.join(missing)}`")


def print_error(program: str, error: LabError) -> None:
    """The reason is the last line: what comes with it, such as the end of a log, goes before."""
    reason, *details = str(error).splitlines() or ["failed"]
    print("\n".join([*details, f"{program}: {reason}"]), file=sys.stderr)
