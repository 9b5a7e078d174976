# SPDX-License-Identifier: Apache-2.0
"""Mounts that nobody else sees, and that nobody has to clean up."""

from __future__ import annotations

import ctypes
import os

from .process import LabError, run

_CLONE_NEWNS = 0x00020000
_libc = ctypes.CDLL(None, use_errno=True)


def enter_mount_namespace() -> None:
    """What this thread mounts from now on, and its later threads and children, is seen by them
    alone and goes with them, however they end. LabError where the machine does not allow it."""
    if os.geteuid() != 0:
        raise LabError("mounts need root (try sudo)")
    if _libc.unshare(_CLONE_NEWNS) != 0:
        raise LabError(f"no mount namespace: {os.strerror(ctypes.get_errno())}")
    run(["mount", "--make-rprivate", "/"])
