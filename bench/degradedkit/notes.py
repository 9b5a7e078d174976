# SPDX-License-Identifier: Apache-2.0
"""What the numbers of a figure mean. The numbers in these texts come from the rows."""

from __future__ import annotations

from typing import Callable

from .summary import Rows

NOTES: dict[str, Callable[[Rows], str]] = {}
